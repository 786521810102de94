//! Wall time: the session's common wall clock, and the local monotonic clock it is computed from.
use serde::{Deserialize, Serialize};

/// An instant of *session wall time*: nanoseconds since 1970-01-01T00:00:00, uniform (leap seconds do not repeat).
///
/// Every peer of a session estimates the same session wall time; it starts from a host's OS clock. Ends in 2554.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(u64);

/// A signed length of wall time, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallDuration(i64);

/// An instant of this process's monotonic clock: nanoseconds since an origin private to the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct MonoTime(u64);

impl WallTime {
    /// The instant `nanos` nanoseconds after the Unix epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This instant moved by `by`, saturating at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, by: WallDuration) -> Self {
        Self(self.0.saturating_add_signed(by.0))
    }

    /// The signed time from `earlier` to this instant, saturating.
    pub const fn since(self, earlier: Self) -> WallDuration {
        if self.0 >= earlier.0 {
            let nanos = self.0 - earlier.0;
            WallDuration(if nanos > i64::MAX as u64 { i64::MAX } else { nanos as i64 })
        } else {
            let nanos = earlier.0 - self.0;
            WallDuration(if nanos > i64::MAX as u64 { i64::MIN } else { -(nanos as i64) })
        }
    }
}

impl WallDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// `secs` whole seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Seconds as `f64`.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
}

impl MonoTime {
    /// The instant `nanos` nanoseconds after the process's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the process's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This instant moved by `by`, saturating at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, by: WallDuration) -> Self {
        Self(self.0.saturating_add_signed(by.0))
    }

    /// The signed time from `earlier` to this instant.
    pub const fn since(self, earlier: Self) -> WallDuration {
        WallTime(self.0).since(WallTime(earlier.0))
    }
}
