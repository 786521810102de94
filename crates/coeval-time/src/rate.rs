//! Exact rates: a finite `f64` is a dyadic rational, and is multiplied with integer nanoseconds as one.
use crate::{SimTime, WallTime};

/// A rate of sim time per wall time as `mantissa * 2^exponent`, sign in the mantissa. Subnormals included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate {
    mantissa: i64,
    exponent: i32,
}

const MANTISSA_BITS: u32 = 52;

impl Rate {
    /// The exact value of `rate`, or `None` if it is not finite.
    pub(crate) fn of(rate: f64) -> Option<Self> {
        if !rate.is_finite() {
            return None;
        }
        let bits = rate.to_bits();
        let fraction = (bits & ((1 << MANTISSA_BITS) - 1)) as i64;
        let biased = ((bits >> MANTISSA_BITS) & 0x7ff) as i32;
        // IEEE 754: subnormals lack the hidden bit and share the exponent of the smallest normal numbers.
        let (size, biased) =
            if biased == 0 { (fraction, 1) } else { (fraction | (1 << MANTISSA_BITS), biased) };
        let mantissa = if rate.is_sign_negative() { -size } else { size };
        Some(Self { mantissa, exponent: biased - 1075 })
    }

    /// This rate times `elapsed` nanoseconds (at most 2^64 either way), formed exactly and rounded once, half to even,
    /// saturating at the ends of `i128`. Rounding works on the size, so it is the same in both directions.
    pub(crate) fn times(self, elapsed: i128) -> i128 {
        // At most 53 + 65 bits: the product always fits.
        let exact = u128::from(self.mantissa.unsigned_abs()) * elapsed.unsigned_abs();
        let size = scaled(exact, self.exponent);
        let negative = (self.mantissa < 0) != (elapsed < 0);
        match (i128::try_from(size), negative) {
            (Ok(size), true) => -size,
            (Ok(size), false) => size,
            (Err(_), true) => i128::MIN,
            (Err(_), false) => i128::MAX,
        }
    }
}

/// `exact * 2^exponent`, rounded half to even, saturating.
fn scaled(exact: u128, exponent: i32) -> u128 {
    if exact == 0 {
        return 0;
    }
    if exponent >= 0 {
        let room = exact.leading_zeros();
        return if exponent.unsigned_abs() <= room { exact << exponent } else { u128::MAX };
    }
    let shift = exponent.unsigned_abs();
    if shift >= u128::BITS {
        // Less than 2^118 / 2^128.
        return 0;
    }
    let (floor, rest, half) = (exact >> shift, exact & ((1 << shift) - 1), 1_u128 << (shift - 1));
    floor + u128::from(rest > half || (rest == half && floor & 1 == 1))
}

/// A straight piece of the wall-to-sim mapping: where it starts and how it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) wall: WallTime,
    pub(crate) sim: SimTime,
    pub(crate) rate: Rate,
}

impl Line {
    /// Sim time at `wall`, saturating at the ends of the range of sim time.
    pub(crate) fn at(&self, wall: WallTime) -> SimTime {
        let elapsed = i128::from(wall.as_nanos()) - i128::from(self.wall.as_nanos());
        SimTime::from_nanos(self.sim.as_nanos().saturating_add(self.rate.times(elapsed)))
    }

    /// Whether the line stands at an end of the range of sim time at `wall`, where it no longer follows its rate.
    pub(crate) fn saturated(&self, wall: WallTime) -> bool {
        let sim = self.at(wall);
        sim == SimTime::MIN || sim == SimTime::MAX
    }

    /// The first wall instant in `[from, to]` at which sim time is at or beyond `target` in the direction `up`, or
    /// `None`. The mapping is monotone, so halving finds it exactly, rounding included.
    pub(crate) fn reaches(
        &self,
        target: SimTime,
        up: bool,
        from: WallTime,
        to: WallTime,
    ) -> Option<WallTime> {
        let there = |wall: u64| {
            let sim = self.at(WallTime::from_nanos(wall));
            if up { sim >= target } else { sim <= target }
        };
        let (mut low, mut high) = (from.as_nanos(), to.as_nanos());
        if low > high || !there(high) {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if there(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(WallTime::from_nanos(low))
    }
}
