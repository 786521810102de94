//! When an instance's updates are due, and what all instances of a runner wait for together.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest single wait: very slow systems wait again.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The slots of a rate: slot `n` is due `n / rate` after the first, computed anew each time, so nothing accumulates.
#[derive(Debug)]
pub(crate) struct Pace {
    rate_hz: f64,
    slot: u64,
}

impl Pace {
    /// At `rate_hz`, above 0 and finite; the first slot is due at once.
    pub(crate) fn new(rate_hz: f64) -> Self {
        Self { rate_hz, slot: 0 }
    }

    /// Moves to the next slot not missed at `elapsed` since the first; how many were missed.
    ///
    /// What was missed is skipped, not caught up, so that a slow system cannot spiral: of the slots that are due, the
    /// newest is taken, at once.
    pub(crate) fn advance(&mut self, elapsed: Duration) -> u64 {
        let next = self.slot.saturating_add(1);
        let newest_due = (elapsed.as_secs_f64() * self.rate_hz).floor() as u64;
        self.slot = next.max(newest_due);
        self.slot - next
    }

    /// When the slot is due, since the first.
    pub(crate) fn due(&self) -> Duration {
        Duration::try_from_secs_f64(self.slot as f64 / self.rate_hz).unwrap_or(Duration::MAX)
    }
}

/// A stage of life that all instances reach together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Load,
    Init,
}

/// What the instances of one runner share: who is at which stage, and whether they are to stop.
#[derive(Debug)]
pub(crate) struct Together {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    loading: usize,
    initializing: usize,
    stop: bool,
}

impl Together {
    pub(crate) fn new(instances: usize) -> Self {
        let state = State { loading: instances, initializing: instances, stop: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Panics of systems never unwind through the lock; a poisoned one is still right.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One instance is through with a stage, well or not.
    pub(crate) fn pass(&self, stage: Stage) {
        let mut state = self.state();
        match stage {
            Stage::Load => state.loading = state.loading.saturating_sub(1),
            Stage::Init => state.initializing = state.initializing.saturating_sub(1),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until all are through with a stage; false when they are to stop instead.
    pub(crate) fn wait(&self, stage: Stage) -> bool {
        let busy = |state: &mut State| {
            let left = match stage {
                Stage::Load => state.loading,
                Stage::Init => state.initializing,
            };
            !state.stop && left > 0
        };
        let state = self.changed.wait_while(self.state(), busy).unwrap_or_else(PoisonError::into_inner);
        !state.stop
    }

    /// Waits until `due` after `start`; false when they are to stop instead.
    pub(crate) fn wait_until(&self, start: Instant, due: Duration) -> bool {
        let mut state = self.state();
        loop {
            let left = due.saturating_sub(start.elapsed());
            if state.stop || left.is_zero() {
                return !state.stop;
            }
            let waited = self.changed.wait_timeout(state, left.min(LONGEST_WAIT));
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells all to stop.
    pub(crate) fn stop(&self) {
        self.state().stop = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `pace` for updates that take no time, begun exactly when due.
    fn last_due(rate_hz: f64, updates: u64) -> Duration {
        let mut pace = Pace::new(rate_hz);
        for _ in 0..updates {
            let due = pace.due();
            // A slot's own instant, rounded to nanoseconds, may read as just before it, never as a slot missed.
            assert_eq!(pace.advance(due), 0, "at {due:?}");
        }
        pace.due()
    }

    #[test]
    fn a_rate_that_nanoseconds_cannot_hold_does_not_drift() {
        // A period of 1/60 s rounded to nanoseconds would be off by 72 us after 216,000 updates.
        assert_eq!(last_due(60.0, 216_000), Duration::from_secs(3_600));
        assert_eq!(last_due(3_000.0, 300_000), Duration::from_secs(100));
        assert_eq!(last_due(0.1, 864), Duration::from_secs(8_640));
        assert_eq!(last_due(1.0 / 86_400.0, 3), Duration::from_secs(3 * 86_400));
    }

    #[test]
    fn what_was_missed_is_counted_and_not_caught_up() {
        let mut pace = Pace::new(10.0);
        assert_eq!(pace.due(), Duration::ZERO);
        assert_eq!(pace.advance(Duration::from_millis(350)), 2, "slots 1 and 2 were missed, 3 is due");
        assert_eq!(pace.due(), Duration::from_millis(300));
        assert_eq!(pace.advance(Duration::from_millis(360)), 0);
        assert_eq!(pace.due(), Duration::from_millis(400));
        assert_eq!(pace.advance(Duration::from_secs(3_600)), 36_000 - 5);
        assert_eq!(pace.due(), Duration::from_secs(3_600));
    }

    #[test]
    fn extreme_rates_have_due_times() {
        let mut pace = Pace::new(1e-300);
        assert_eq!(pace.advance(Duration::MAX), 0);
        assert_eq!(pace.due(), Duration::MAX);
        let mut pace = Pace::new(1e300);
        assert_eq!(pace.advance(Duration::from_secs(1)), u64::MAX - 1);
        assert_eq!(pace.advance(Duration::from_secs(2)), 0);
    }
}
