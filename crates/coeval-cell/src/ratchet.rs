//! The ratchet: a counter that only climbs.

use coeval_faults::{Fault, active};

use crate::sync::{AtomicU64, Ordering};

/// A monotone counter, shared by all threads of a peer: the memory of its hybrid clock.
///
/// # Memory orders
/// `Relaxed` is enough, because all that is promised concerns this one atomic. A read-modify-write always works on its
/// last value, so no two ticks are equal. And a thread that learned from another (by whatever released and
/// acquired) that the counter stands at `x` can find no less than `x` here: one atomic never goes back for a thread
/// that comes after. That also makes it safe to raise nothing when a plain look already shows enough.
#[derive(Debug)]
pub struct Ratchet {
    value: AtomicU64,
}

impl Ratchet {
    /// A ratchet that stands at `start`.
    pub fn new(start: u64) -> Self {
        Ratchet { value: AtomicU64::new(start) }
    }

    /// Where it stands: no less than any tick or raise that the caller knows of.
    #[inline]
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Climbs to a number that no other tick of any thread gets, above every earlier tick and raise, and at
    /// least `floor`; returns it.
    ///
    /// # Panics
    /// If it already stands at `u64::MAX`. Whoever raises it with numbers from outside must bound them first.
    #[inline]
    pub fn tick(&self, floor: u64) -> u64 {
        let mut current = self.get();
        loop {
            let above = current.checked_add(1).expect("the ratchet is at its end: a raise was not bounded");
            let next = above.max(floor);
            match self.value.compare_exchange_weak(current, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(actual) => current = actual,
            }
        }
    }

    /// Climbs to `to`, unless it stands there or higher: every later tick is above `to`.
    #[inline]
    pub fn raise(&self, to: u64) {
        if self.get() < to && active(Fault::ClockSetNotRaised) {
            self.value.store(to, Ordering::Relaxed);
        } else if self.get() < to {
            self.value.fetch_max(to, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(coeval_loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread;

    #[test]
    fn ticks_are_above_everything_before_and_not_below_the_floor() {
        let ratchet = Ratchet::new(10);
        assert_eq!([ratchet.tick(0), ratchet.tick(11), ratchet.tick(12), ratchet.tick(40)], [11, 12, 13, 40]);
        ratchet.raise(20);
        assert_eq!(ratchet.get(), 40);
        ratchet.raise(50);
        assert_eq!([ratchet.get(), ratchet.tick(50), ratchet.tick(u64::MAX)], [50, 51, u64::MAX]);
    }

    #[test]
    #[should_panic(expected = "a raise was not bounded")]
    fn at_its_end_it_refuses_rather_than_repeats() {
        Ratchet::new(u64::MAX).tick(0);
    }

    #[test]
    fn no_two_threads_get_the_same_tick() {
        let ratchet = Ratchet::new(0);
        let ticks: Vec<Vec<u64>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..3u64)
                .map(|who| {
                    let ratchet = &ratchet;
                    scope.spawn(move || {
                        let tick = |i: u64| {
                            if i % 100 == who {
                                ratchet.raise(2 * i);
                            }
                            ratchet.tick(i)
                        };
                        (0..50_000).map(tick).collect()
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(ticks.iter().all(|of_one| of_one.is_sorted_by(|a, b| a < b)));
        assert_eq!(ticks.iter().flatten().collect::<BTreeSet<_>>().len(), 150_000);
    }
}
