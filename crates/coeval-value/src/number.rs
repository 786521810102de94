//! Numbers convert losslessly or not at all: a conversion succeeds only if converting back gives the same bits.
use crate::{TypeMismatch, Value};

/// A number type that a numeric value may convert to exactly.
pub(crate) trait Number: Sized {
    fn exact_i64(v: i64) -> Option<Self>;
    fn exact_u64(v: u64) -> Option<Self>;
    fn exact_f64(v: f64) -> Option<Self>;
}

/// The number in `value` as a `T`, exactly.
pub(crate) fn number<T: Number>(value: &Value, asked: &'static str) -> Result<T, TypeMismatch> {
    let found = value.type_name();
    let exact = match *value {
        Value::Int(v) => T::exact_i64(v),
        Value::UInt(v) => T::exact_u64(v),
        Value::Float(v) => T::exact_f64(v),
        Value::Float32(v) => T::exact_f64(widen(v)),
        _ => return Err(TypeMismatch::Type { found, asked }),
    };
    exact.ok_or(TypeMismatch::Inexact { found, asked })
}

/// `v` as an `f64`. A NaN keeps its sign, payload and quiet bit, which the processor's own conversion does not promise.
fn widen(v: f32) -> f64 {
    if !v.is_nan() {
        return f64::from(v);
    }
    let bits = u64::from(v.to_bits());
    f64::from_bits((bits >> 31) << 63 | 0x7ff << 52 | (bits & 0x7f_ffff) << 29)
}

/// `v` as an `f32` that widens back to the same bits.
fn narrow(v: f64) -> Option<f32> {
    if !v.is_nan() {
        let narrow = v as f32;
        return (f64::from(narrow).to_bits() == v.to_bits()).then_some(narrow);
    }
    let bits = v.to_bits();
    let payload = (bits >> 29) & 0x7f_ffff;
    let kept = bits & 0x1fff_ffff == 0 && payload != 0;
    kept.then(|| f32::from_bits(((bits >> 63) << 31 | 0xff << 23 | payload) as u32))
}

/// The integer equal to `v`. Negative zero has none: its sign would be lost.
fn whole(v: f64) -> Option<i128> {
    let whole =
        v.is_finite() && v.trunc() == v && v.abs() < 2f64.powi(65) && v.to_bits() != (-0.0f64).to_bits();
    whole.then_some(v as i128)
}

impl Number for f64 {
    fn exact_i64(v: i64) -> Option<Self> {
        (v as f64 as i128 == i128::from(v)).then_some(v as f64)
    }
    fn exact_u64(v: u64) -> Option<Self> {
        (v as f64 as i128 == i128::from(v)).then_some(v as f64)
    }
    fn exact_f64(v: f64) -> Option<Self> {
        Some(v)
    }
}

impl Number for f32 {
    fn exact_i64(v: i64) -> Option<Self> {
        (v as f32 as i128 == i128::from(v)).then_some(v as f32)
    }
    fn exact_u64(v: u64) -> Option<Self> {
        (v as f32 as i128 == i128::from(v)).then_some(v as f32)
    }
    fn exact_f64(v: f64) -> Option<Self> {
        narrow(v)
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            fn exact_i64(v: i64) -> Option<Self> {
                v.try_into().ok()
            }
            fn exact_u64(v: u64) -> Option<Self> {
                v.try_into().ok()
            }
            fn exact_f64(v: f64) -> Option<Self> {
                whole(v)?.try_into().ok()
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_convert_exactly_or_not_at_all() {
        let read = |v: Value| (number::<i64>(&v, "i64").ok(), number::<f64>(&v, "f64").ok());
        assert_eq!(read(Value::Int(1 << 53)), (Some(1 << 53), Some(2f64.powi(53))));
        assert_eq!(read(Value::Int((1 << 53) + 1)), (Some((1 << 53) + 1), None));
        assert_eq!(read(Value::UInt(u64::MAX)), (None, None));
        assert_eq!(read(Value::UInt(1 << 63)), (None, Some(2f64.powi(63))));
        assert_eq!(read(Value::Float(-(2f64.powi(63)))), (Some(i64::MIN), Some(-(2f64.powi(63)))));
        assert_eq!(read(Value::Float(2f64.powi(63))).0, None);
        assert_eq!(read(Value::Float(0.5)).0, None);
        assert_eq!(read(Value::Float(-0.0)).0, None);
        assert_eq!(read(Value::Float(f64::INFINITY)).0, None);
        assert_eq!(number::<u8>(&Value::Int(256), "u8").ok(), None);
        assert_eq!(number::<u8>(&Value::Float32(255.0), "u8").ok(), Some(255));
        assert_eq!(number::<f32>(&Value::Float(0.1), "f32").ok(), None);
        assert_eq!(number::<f32>(&Value::Float(0.5), "f32").ok(), Some(0.5));
        assert_eq!(number::<f32>(&Value::Int(i64::MAX), "f32").ok(), None);
    }

    #[test]
    fn a_nan_keeps_its_payload_or_is_refused() {
        for bits in [0x7fc0_0000u32, 0xffc0_1234, 0x7f80_0001, 0xff9f_ffff] {
            let wide = widen(f32::from_bits(bits));
            assert!(wide.is_nan());
            assert_eq!(narrow(wide).map(f32::to_bits), Some(bits));
        }
        assert_eq!(narrow(f64::from_bits(0x7ff0_0000_0000_0001)).map(f32::to_bits), None);
        assert_eq!(narrow(f64::from_bits(0x7ff8_0000_0000_0001)).map(f32::to_bits), None);
    }

    #[test]
    fn a_refusal_names_both_types() {
        let wrong = number::<i64>(&Value::Bool(true), "i64").unwrap_err();
        assert_eq!((wrong.found(), wrong.asked()), ("bool", "i64"));
        let inexact = number::<i64>(&Value::Float(0.5), "i64").unwrap_err();
        assert_eq!(inexact, TypeMismatch::Inexact { found: "float", asked: "i64" });
    }
}
