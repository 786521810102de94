//! Sim time: integer nanoseconds on the TAI scale since 1970-01-01T00:00:00 TAI (the PTP epoch).
//!
//! Both types are serialized as `(i64 seconds, u32 nanoseconds)`, seconds rounded down, so that a length of -0.5 s
//! is `(-1, 500_000_000)`.
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, ops};

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: i128 = 1_000_000_000;

/// An instant of simulated time: integer nanoseconds on the TAI scale since 1970-01-01T00:00:00 TAI.
///
/// The range is that of `i64` seconds (about ±2.9e11 years); arithmetic saturates at its ends. Zero is an
/// ordinary instant: there are no magic values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(i128);

/// A signed length of simulated time, integer nanoseconds (SI seconds, as TAI counts them).
///
/// The range is that of [`SimTime`]; arithmetic saturates at its ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
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

/// `nanos` as a length, or `None` outside the range.
const fn checked(nanos: i128) -> Option<SimDuration> {
    if nanos < MIN_NANOS || nanos > MAX_NANOS { None } else { Some(SimDuration(nanos)) }
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

    /// The instant `secs` seconds and `nanos` (0 to 999,999,999) after the epoch: the serialized form.
    pub const fn from_secs_nanos(secs: i64, nanos: u32) -> Self {
        Self(clamp(secs as i128 * NANOS_PER_SEC + nanos as i128))
    }

    /// Whole seconds (rounded down) and the remaining nanoseconds: the serialized form.
    pub const fn secs_nanos(self) -> (i64, u32) {
        (self.0.div_euclid(NANOS_PER_SEC) as i64, self.0.rem_euclid(NANOS_PER_SEC) as u32)
    }

    /// This instant moved by `by`, saturating at the ends of the range.
    #[must_use]
    pub const fn saturating_add(self, by: SimDuration) -> Self {
        Self(clamp(self.0.saturating_add(by.0)))
    }

    /// This instant moved back by `by`, saturating at the ends of the range.
    #[must_use]
    pub const fn saturating_sub(self, by: SimDuration) -> Self {
        Self(clamp(self.0 - by.0))
    }

    /// This instant moved by `by`, or `None` outside the range.
    pub const fn checked_add(self, by: SimDuration) -> Option<Self> {
        match checked(self.0 + by.0) {
            Some(moved) => Some(Self(moved.0)),
            None => None,
        }
    }

    /// This instant moved back by `by`, or `None` outside the range.
    pub const fn checked_sub(self, by: SimDuration) -> Option<Self> {
        match checked(self.0 - by.0) {
            Some(moved) => Some(Self(moved.0)),
            None => None,
        }
    }

    /// The signed time from `earlier` to this instant, saturating at the ends of the range of [`SimDuration`].
    pub const fn since(self, earlier: Self) -> SimDuration {
        SimDuration(clamp(self.0 - earlier.0))
    }

    /// The signed time from `earlier` to this instant, or `None` when it is longer than a [`SimDuration`] holds.
    pub const fn checked_since(self, earlier: Self) -> Option<SimDuration> {
        checked(self.0 - earlier.0)
    }

    /// Seconds from `earlier` to this instant as `f64`: exact to the nanosecond up to 104 days, to 1e-16 relative beyond.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        seconds(self.0 - earlier.0)
    }
}

/// Nanoseconds as seconds.
fn seconds(nanos: i128) -> f64 {
    // The common case avoids the 128-bit conversion, which is a library call on every target.
    match i64::try_from(nanos) {
        Ok(nanos) => nanos as f64 * 1e-9,
        Err(_) => nanos as f64 * 1e-9,
    }
}

impl SimDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The most negative length.
    pub const MIN: Self = Self(MIN_NANOS);
    /// The greatest length.
    pub const MAX: Self = Self(MAX_NANOS);

    /// `nanos` nanoseconds, saturating at [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    pub const fn from_nanos(nanos: i128) -> Self {
        Self(clamp(nanos))
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis as i128 * 1_000_000)
    }

    /// `secs` whole seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs as i128 * NANOS_PER_SEC)
    }

    /// `secs` seconds (which may be negative) plus `nanos` (0 to 999,999,999): the serialized form.
    pub const fn from_secs_nanos(secs: i64, nanos: u32) -> Self {
        Self(clamp(secs as i128 * NANOS_PER_SEC + nanos as i128))
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

    /// Whole seconds (rounded down) and the remaining nanoseconds: the serialized form.
    pub const fn secs_nanos(self) -> (i64, u32) {
        SimTime(self.0).secs_nanos()
    }

    /// Seconds as `f64`.
    pub fn as_secs_f64(self) -> f64 {
        seconds(self.0)
    }

    /// Whether this length is below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The length without its sign, saturating.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(clamp(self.0.abs()))
    }

    /// The sum, or `None` outside the range.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        checked(self.0 + other.0)
    }

    /// The difference, or `None` outside the range.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        checked(self.0 - other.0)
    }

    /// The product, or `None` outside the range.
    pub const fn checked_mul(self, by: i64) -> Option<Self> {
        match self.0.checked_mul(by as i128) {
            Some(nanos) => checked(nanos),
            None => None,
        }
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(clamp(self.0 + other.0))
    }

    /// The difference, saturating.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(clamp(self.0 - other.0))
    }

    /// The product, saturating.
    #[must_use]
    pub const fn saturating_mul(self, by: i64) -> Self {
        Self(clamp(self.0.saturating_mul(by as i128)))
    }
}

// The operators saturate: sim time has ends, and arithmetic that panics at them in one build profile and wraps in
// another would be worse than standing at the end. Callers that must know use the `checked_` forms.
impl ops::Add<SimDuration> for SimTime {
    type Output = Self;
    fn add(self, by: SimDuration) -> Self {
        self.saturating_add(by)
    }
}

impl ops::Sub<SimDuration> for SimTime {
    type Output = Self;
    fn sub(self, by: SimDuration) -> Self {
        self.saturating_sub(by)
    }
}

impl ops::Sub for SimTime {
    type Output = SimDuration;
    fn sub(self, earlier: Self) -> SimDuration {
        self.since(earlier)
    }
}

impl ops::AddAssign<SimDuration> for SimTime {
    fn add_assign(&mut self, by: SimDuration) {
        *self = *self + by;
    }
}

impl ops::SubAssign<SimDuration> for SimTime {
    fn sub_assign(&mut self, by: SimDuration) {
        *self = *self - by;
    }
}

impl ops::Add for SimDuration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl ops::Sub for SimDuration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl ops::Neg for SimDuration {
    type Output = Self;
    fn neg(self) -> Self {
        Self(clamp(-self.0))
    }
}

impl ops::Mul<i64> for SimDuration {
    type Output = Self;
    fn mul(self, by: i64) -> Self {
        self.saturating_mul(by)
    }
}

impl fmt::Display for SimTime {
    /// For example `2028-04-25T05:30:00.000000000 TAI`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_civil(crate::CivilScale::Tai))
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes nanoseconds as seconds with nine decimals.
pub(crate) fn fmt_seconds(f: &mut fmt::Formatter<'_>, nanos: i128) -> fmt::Result {
    let (sign, size) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let unit = NANOS_PER_SEC as u128;
    write!(f, "{sign}{}.{:09} s", size / unit, size % unit)
}

impl fmt::Display for SimDuration {
    /// For example `-12.500000000 s`: seconds as TAI counts them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_seconds(f, self.0)
    }
}

impl fmt::Debug for SimDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads the serialized form, which refuses what no writer produces: two spellings of one instant would be two digests.
fn read_parts<'de, D: Deserializer<'de>>(from: D) -> Result<(i64, u32), D::Error> {
    let (secs, nanos) = <(i64, u32)>::deserialize(from)?;
    if i128::from(nanos) >= NANOS_PER_SEC {
        return Err(de::Error::custom(format_args!(
            "{nanos} ns in a time: at most 999,999,999 beside the seconds"
        )));
    }
    Ok((secs, nanos))
}

impl Serialize for SimTime {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.secs_nanos().serialize(to)
    }
}

impl<'de> Deserialize<'de> for SimTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_parts(from).map(|(secs, nanos)| Self::from_secs_nanos(secs, nanos))
    }
}

impl Serialize for SimDuration {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.secs_nanos().serialize(to)
    }
}

impl<'de> Deserialize<'de> for SimDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_parts(from).map(|(secs, nanos)| Self::from_secs_nanos(secs, nanos))
    }
}
