//! Wall time: the session's common wall clock, and the local monotonic clock it is computed from.
use crate::sim::fmt_seconds;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An instant of *session wall time*: nanoseconds since 1970-01-01T00:00:00, uniform (leap seconds do not repeat).
///
/// Every peer of a session estimates the same session wall time; it starts from a host's OS clock. Ends in 2554.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(u64);

/// A signed length of wall time, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallDuration(i64);

/// An instant of this process's monotonic clock: nanoseconds since an origin private to the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
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

    /// Session wall time that reads as the civil UTC time `at`; `None` before 1970 or after 2554.
    ///
    /// A leap second (which `chrono` holds as a second of two billion nanoseconds) reads as the second that follows.
    pub fn from_chrono(at: chrono::DateTime<chrono::Utc>) -> Option<Self> {
        let secs = u64::try_from(at.timestamp()).ok()?;
        let nanos = secs.checked_mul(1_000_000_000)?.checked_add(u64::from(at.timestamp_subsec_nanos()))?;
        Some(Self(nanos))
    }

    /// The civil reading of this instant. Session wall time counts no leap seconds, so it is UTC to within what the
    /// host's OS clock was when the session began, and the leap seconds inserted since.
    pub fn to_chrono(self) -> chrono::DateTime<chrono::Utc> {
        // 2^63 nanoseconds end in 2262; splitting keeps the whole range.
        chrono::DateTime::from_timestamp((self.0 / 1_000_000_000) as i64, (self.0 % 1_000_000_000) as u32)
            .unwrap_or(chrono::DateTime::UNIX_EPOCH)
    }

    /// The earliest instant.
    pub const MIN: Self = Self(0);
    /// The latest instant, in 2554.
    pub const MAX: Self = Self(u64::MAX);

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

impl fmt::Display for WallTime {
    /// For example `2026-11-30T18:49:17.000000000 session wall`: its civil reading in the session's uniform scale.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::civil::fmt_nanos(f, i128::from(self.0))?;
        f.write_str(" session wall")
    }
}

impl fmt::Display for WallDuration {
    /// For example `-0.050000000 s wall`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_seconds(f, i128::from(self.0))?;
        f.write_str(" wall")
    }
}

impl fmt::Display for MonoTime {
    /// For example `12.000000000 s monotonic`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_seconds(f, i128::from(self.0))?;
        f.write_str(" monotonic")
    }
}

macro_rules! debug_as_display {
    ($($name:ty),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_as_display!(WallTime, WallDuration, MonoTime);
