//! The process's monotonic clock, shared by the driver and the façade.
use coeval_sync::Now;
use coeval_time::MonoTime;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longer than any program runs, and short enough that no instant overflows by it.
pub(crate) const FOREVER: Duration = Duration::from_secs(100 * 366 * 86_400);

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// The monotonic clock of this process: one origin, fixed at its first reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonoClock;

impl MonoClock {
    /// Nanoseconds since the origin. Never goes back.
    pub fn now() -> MonoTime {
        let nanos = Self::origin().elapsed().as_nanos();
        MonoTime::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn origin() -> Instant {
        *ORIGIN.get_or_init(Instant::now)
    }
}

/// The clock of one driver: that of its runtime, counted from an origin.
///
/// A runtime's clock is the operating system's, so this is [`MonoClock`], except where a simulation pauses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverClock {
    origin: tokio::time::Instant,
}

impl DriverClock {
    /// [`MonoClock`].
    pub(crate) fn system() -> Self {
        Self::counting_from(MonoClock::origin().into())
    }

    /// A clock that shows zero at `origin`.
    pub(crate) fn counting_from(origin: tokio::time::Instant) -> Self {
        Self { origin }
    }

    /// The time, as the machine is told it.
    pub(crate) fn now(self) -> Now {
        let nanos = self.origin.elapsed().as_nanos();
        Now { mono: MonoTime::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)) }
    }

    /// The instant that `at` names. A machine may ask for a timer that never comes: a century is never.
    pub(crate) fn instant(self, at: MonoTime) -> tokio::time::Instant {
        self.origin + Duration::from_nanos(at.as_nanos()).min(FOREVER)
    }
}

/// The instant `after` from now; whoever waits for ever waits a century.
pub(crate) fn deadline(after: Duration) -> tokio::time::Instant {
    tokio::time::Instant::now() + after.min(FOREVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_goes_back_and_is_that_of_a_driver() {
        let clock = DriverClock::system();
        let first = MonoClock::now();
        let second = clock.now().mono;
        let third = MonoClock::now();
        assert!(first <= second && second <= third);
        let gap = clock.instant(second).elapsed();
        assert!(gap < Duration::from_secs(5), "{gap:?}");
        assert!(clock.instant(MonoTime::from_nanos(u64::MAX)) > deadline(Duration::from_secs(1)));
        assert!(deadline(Duration::MAX) > deadline(Duration::from_secs(1)));
    }
}
