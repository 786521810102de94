//! Sim time: integer nanoseconds on the TAI scale since 1970-01-01T00:00:00 TAI (the PTP epoch).

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: i128 = 1_000_000_000;

/// An instant of simulated time: integer nanoseconds on the TAI scale since 1970-01-01T00:00:00 TAI.
///
/// The range is that of `i64` seconds (about ±2.9e11 years); arithmetic saturates at its ends. Zero is an
/// ordinary instant: there are no magic values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SimTime(i128);

/// A signed length of simulated time, integer nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct SimDuration(i128);

const MIN_NANOS: i128 = i64::MIN as i128 * NANOS_PER_SEC;
const MAX_NANOS: i128 = i64::MAX as i128 * NANOS_PER_SEC + (NANOS_PER_SEC - 1);

const fn clamp(nanos: i128) -> i128 {
    if nanos < MIN_NANOS {
        MIN_NANOS
    } else if nanos > MAX_NANOS {
        MAX_NANOS
    } else {
        nanos
    }
}

impl SimTime {
    /// 1970-01-01T00:00:00 TAI.
    pub const EPOCH: Self = Self(0);
    /// The earliest representable instant.
    pub const MIN: Self = Self(MIN_NANOS);
    /// The latest representable instant.
    pub const MAX: Self = Self(MAX_NANOS);

    /// The instant `nanos` TAI nanoseconds after the epoch, saturating at [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    pub const fn from_nanos(nanos: i128) -> Self {
        Self(clamp(nanos))
    }

    /// TAI nanoseconds since the epoch.
    pub const fn as_nanos(self) -> i128 {
        self.0
    }

    /// The instant `secs` seconds and `nanos` (0 to 999,999,999) after the epoch: the serialised form.
    pub const fn from_secs_nanos(secs: i64, nanos: u32) -> Self {
        Self(clamp(secs as i128 * NANOS_PER_SEC + nanos as i128))
    }

    /// Whole seconds (rounded down) and the remaining nanoseconds: the serialised form.
    pub const fn secs_nanos(self) -> (i64, u32) {
        (self.0.div_euclid(NANOS_PER_SEC) as i64, self.0.rem_euclid(NANOS_PER_SEC) as u32)
    }

    /// This instant moved by `by`, saturating at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, by: SimDuration) -> Self {
        Self(clamp(self.0.saturating_add(by.0)))
    }

    /// The signed time from `earlier` to this instant.
    pub const fn since(self, earlier: Self) -> SimDuration {
        SimDuration(self.0 - earlier.0)
    }

    /// Seconds from `earlier` to this instant as `f64`: exact to the nanosecond up to 104 days, to 1e-16 relative beyond.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        SimDuration(self.0 - earlier.0).as_secs_f64()
    }
}

impl SimDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i128) -> Self {
        Self(nanos)
    }

    /// `secs` whole seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs as i128 * NANOS_PER_SEC)
    }

    /// `secs` seconds rounded to the nanosecond, or `None` if `secs` is not finite or out of range.
    pub fn from_secs_f64(secs: f64) -> Option<Self> {
        let whole = secs.trunc();
        let nanos = ((secs - whole) * 1e9).round_ties_even();
        (secs.abs() < 9.2e18).then(|| Self(whole as i128 * NANOS_PER_SEC + nanos as i128))
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i128 {
        self.0
    }

    /// Seconds as `f64`.
    pub fn as_secs_f64(self) -> f64 {
        // The common case avoids the 128-bit conversion, which is a library call on every target.
        match i64::try_from(self.0) {
            Ok(nanos) => nanos as f64 * 1e-9,
            Err(_) => self.0 as f64 * 1e-9,
        }
    }
}
