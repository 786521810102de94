//! The doorbell: wakes a sleeping consumer, and only a sleeping one.

use coeval_faults::{Fault, active};

use crate::sync::{AtomicU8, Ordering, fence, sequential_point};

/// The consumer sleeps or is about to; the next ring must wake it.
const IDLE: u8 = 0;
/// The consumer is awake, or somebody is waking it already.
const ARMED: u8 = 1;

/// Tells writers whether they have to wake the consumer, which costs microseconds; almost always they do not.
///
/// The writer publishes its work, then rings; on `true` it wakes the consumer (unpark, socket, condition: whatever the
/// consumer sleeps on, as long as a wake before the sleep is remembered). The consumer goes to sleep like this:
///
/// ```
/// # use coeval_cell::{DirtyBits, Doorbell};
/// # fn work(bits: &DirtyBits) -> bool { let mut any = false; bits.drain(|_| any = true); any }
/// fn consume(bits: &DirtyBits, bell: &Doorbell, sleep: impl Fn()) {
///     while work(bits) {}             // awake: writers pay nothing; stay here for a gather window if you like
///     bell.begin_idle();
///     if work(bits) {                 // once more: a mark may have come before the bell was set
///         bell.arm();
///         return;                     // and round again
///     }
///     while !bell.armed() {
///         sleep();                    // until a wake or a timer of its own
///     }
/// }
/// # let (bits, bell) = (DirtyBits::new(), Doorbell::new());
/// # bits.mark(1);
/// # assert!(!bell.ring());
/// # consume(&bits, &bell, || assert!(bell.ring()));
/// ```
///
/// A new doorbell is armed: the consumer is taken to be awake until it says otherwise.
///
/// # Memory orders
/// The writer stores work, then looks at the bell; the consumer sets the bell, then looks for work. If both looks could
/// run ahead of both stores, the work would wait for the next ring. So all four need a place in the single `SeqCst`
/// order. [`DirtyBits::mark`](crate::DirtyBits::mark) is a `SeqCst` read-modify-write, after which
/// [`ring`](Self::ring) is one plain load on x86 while the bell is armed. Work handed over in any other way
/// takes [`ring_for_any`](Self::ring_for_any), which brings its own fence.
#[derive(Debug)]
pub struct Doorbell {
    state: AtomicU8,
}

impl Doorbell {
    /// An armed doorbell.
    pub fn new() -> Self {
        Doorbell { state: AtomicU8::new(ARMED) }
    }

    /// Rings after [`DirtyBits::mark`](crate::DirtyBits::mark). On `true` the caller must wake the consumer; of several
    /// callers at once, one is told so.
    #[inline]
    #[must_use = "on `true` the caller must wake the consumer, or it sleeps on"]
    pub fn ring(&self) -> bool {
        sequential_point();
        self.state.load(Ordering::SeqCst) == IDLE && self.state.swap(ARMED, Ordering::SeqCst) == IDLE
    }

    /// Rings after work was handed over by other means than `SeqCst` read-modify-writes, such as a queue or a flag.
    #[inline]
    #[must_use = "on `true` the caller must wake the consumer, or it sleeps on"]
    pub fn ring_for_any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.ring()
    }

    /// The consumer is about to sleep. It must look for work once more after this call, and only then sleep.
    pub fn begin_idle(&self) {
        self.state.store(IDLE, Ordering::SeqCst);
        if !active(Fault::BellFenceMissing) {
            fence(Ordering::SeqCst);
        }
    }

    /// The consumer found work after all, or woke by itself: rings need not wake it. (Without this call, one ring wakes
    /// it needlessly; nothing is lost.)
    pub fn arm(&self) {
        self.state.store(ARMED, Ordering::SeqCst);
    }

    /// Whether somebody rang since [`begin_idle`](Self::begin_idle): the consumer need not sleep (again).
    #[inline]
    pub fn armed(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ARMED
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(coeval_loom)))]
mod tests {
    use super::*;
    use crate::DirtyBits;
    use std::thread;

    #[test]
    fn only_the_first_ring_at_a_sleeping_consumer_wakes() {
        let bell = Doorbell::new();
        assert!(bell.armed() && !bell.ring() && !bell.ring_for_any());
        bell.begin_idle();
        assert!(!bell.armed());
        assert_eq!([bell.ring(), bell.ring(), bell.ring_for_any()], [true, false, false]);
        assert!(bell.armed());
        bell.begin_idle();
        bell.arm();
        assert!(!bell.ring());
        bell.begin_idle();
        assert!(bell.ring_for_any());
    }

    /// The consumer sleeps without a timer here: one lost wake, and the test would never end.
    #[test]
    fn no_wake_is_lost_between_busy_writers_and_a_drowsy_consumer() {
        const MARKS: u32 = 50_000;
        let (bits, bell) = (DirtyBits::new(), Doorbell::new());
        let mut seen = vec![false; 2 * MARKS as usize];
        thread::scope(|scope| {
            let consumer = thread::current();
            for who in 0..2 {
                let (bits, bell, consumer) = (&bits, &bell, consumer.clone());
                scope.spawn(move || {
                    for index in 0..MARKS {
                        bits.mark(2 * index + who);
                        if bell.ring() {
                            consumer.unpark();
                        }
                    }
                });
            }
            let mut left = seen.len();
            while left > 0 {
                bell.begin_idle();
                let before = left;
                bits.drain(|index| {
                    assert!(!std::mem::replace(&mut seen[index as usize], true), "{index} taken twice");
                    left -= 1;
                });
                while before == left && !bell.armed() {
                    thread::park();
                }
            }
        });
        assert!(bits.is_empty_hint());
    }
}
