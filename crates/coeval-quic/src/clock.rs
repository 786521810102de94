//! The process's monotonic clock, shared by the driver and the façade.
use coeval_time::MonoTime;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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

    /// The instant that `at` names on the operating system's monotonic clock.
    pub(crate) fn instant(at: MonoTime) -> Instant {
        let origin = Self::origin();
        // A machine may ask for a timer that never comes; a century is never, and cannot overflow `Instant`.
        const FOREVER: Duration = Duration::from_secs(100 * 366 * 86_400);
        origin + Duration::from_nanos(at.as_nanos()).min(FOREVER)
    }

    fn origin() -> Instant {
        *ORIGIN.get_or_init(Instant::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_goes_back_and_maps_to_the_os_clock() {
        let first = MonoClock::now();
        let second = MonoClock::now();
        assert!(second >= first);
        let gap = MonoClock::instant(second).elapsed();
        assert!(gap < Duration::from_secs(5), "{gap:?}");
        assert!(MonoClock::instant(MonoTime::from_nanos(u64::MAX)) > Instant::now());
    }
}
