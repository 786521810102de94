//! The bell that tells the I/O thread of local changes: cheap to ring, wakes only a parked thread.
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

/// The pump sleeps: a ring must wake it.
const PARKED: u8 = 0;
/// The pump is awake and has drained everything rung for.
const ARMED: u8 = 1;
/// The pump is awake and must drain again before it parks.
const RUNG: u8 = 2;

/// Rings for the pump. Clones ring the same bell.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: AtomicU8,
    notify: Notify,
}

impl Bell {
    /// A new bell. Give it to a [`Config`](crate::Config), and clones to whoever writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the pump that there are changes. Call it *after* the change is marked (its dirty bit is set).
    ///
    /// One atomic swap when the pump is awake; a wake-up (microseconds) only when it sleeps. Never blocks.
    pub fn ring(&self) {
        // The swap is unconditional: a plain load that skips it could be ordered before the caller's own mark, see an
        // armed pump that is about to park, and lose the change. In the modification order of `state` this swap
        // comes either before the pump's `take` (which then sees the mark) or after it (and stops it from parking).
        if self.0.state.swap(RUNG, Ordering::AcqRel) == PARKED {
            self.0.notify.notify_one();
        }
    }

    /// Pump: waits for a ring. Only after [`park`](Self::park) succeeded.
    pub(crate) async fn rung(&self) {
        self.0.notify.notified().await;
    }

    /// Pump: takes the ring; drain after this.
    pub(crate) fn take(&self) {
        self.0.state.swap(ARMED, Ordering::AcqRel);
    }

    /// Pump: parks, unless it was rung since the last [`take`](Self::take).
    pub(crate) fn park(&self) -> bool {
        self.0.state.compare_exchange(ARMED, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    /// Whatever the interleaving, a change rung for is drained: the pump never sleeps on a mark.
    #[test]
    fn ring_while_parking_is_never_lost() {
        const ROUNDS: u64 = 20_000;
        let bell = Bell::new();
        let marks = Arc::new(AtomicU64::new(0));
        let drained = Arc::new(AtomicU64::new(0));
        let writer = {
            let (bell, marks, drained) = (bell.clone(), marks.clone(), drained.clone());
            std::thread::spawn(move || {
                for round in 1..=ROUNDS {
                    marks.fetch_add(1, Ordering::Release);
                    bell.ring();
                    // Every 64th mark waits for its drain, so that the pump parks often.
                    while round % 64 == 0 && drained.load(Ordering::Acquire) < round {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            while drained.load(Ordering::Relaxed) < ROUNDS {
                tokio::time::timeout(Duration::from_secs(5), bell.rung()).await.expect("a ring was lost");
                loop {
                    bell.take();
                    let taken = marks.swap(0, Ordering::AcqRel);
                    drained.fetch_add(taken, Ordering::Release);
                    if bell.park() {
                        break;
                    }
                }
            }
        });
        writer.join().unwrap();
        assert_eq!(drained.load(Ordering::Relaxed), ROUNDS);
    }
}
