//! The Rust types a parameter can be read and written as.
use crate::number::number;
use crate::words::{Inline, Words, decode_words, encode_words};
use crate::{EntityId, Key, Matrix, Motion, Quat, Ramp, TypeMismatch, Value, kind};
use coeval_time::{SimDuration, SimTime};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A Rust type that parameters are read and written as.
///
/// Implement it for your own types with [`TYPE_NAME`](Self::TYPE_NAME), [`from_value`](Self::from_value) and
/// [`into_value`](Self::into_value); the word methods are the path without allocation of the types that have one.
pub trait Parameter: Sized {
    /// What errors call this type.
    const TYPE_NAME: &'static str;

    /// Reads a value. Numbers convert exactly or not at all.
    fn from_value(value: &Value) -> Result<Self, TypeMismatch>;

    /// The value to store.
    fn into_value(self) -> Value;

    /// Writes the word form: kind and number of words. `None`, with `out` untouched: this type (or this value of it)
    /// has none, go through [`into_value`](Self::into_value).
    fn write_words(&self, out: &mut Words) -> Option<(u8, usize)> {
        let _ = out;
        None
    }

    /// Reads the word form, converting as [`from_value`](Self::from_value) does. `None`: no value has these words.
    fn read_words(kind: u8, words: &[u64]) -> Option<Result<Self, TypeMismatch>> {
        Some(Self::from_value(&decode_words(kind, words)?))
    }
}

fn mismatch<T: Parameter>(value: &Value) -> TypeMismatch {
    TypeMismatch::Type { found: value.type_name(), asked: T::TYPE_NAME }
}

/// Reads words of another kind than `T`'s own. A motion converts to nothing, so it is never built (it would allocate).
fn read_other<T: Parameter>(kind: u8, words: &[u64]) -> Option<Result<T, TypeMismatch>> {
    if kind == kind::MOTION {
        return Some(Err(TypeMismatch::Type { found: "motion", asked: T::TYPE_NAME }));
    }
    Some(T::from_value(&decode_words(kind, words)?))
}

/// `From` and `TryFrom` of a parameter type.
macro_rules! conversions {
    ($t:ty $(, $($generics:tt)*)?) => {
        impl<$($($generics)*)?> From<$t> for Value {
            fn from(v: $t) -> Self {
                v.into_value()
            }
        }
        impl<$($($generics)*)?> TryFrom<&Value> for $t {
            type Error = TypeMismatch;
            fn try_from(value: &Value) -> Result<Self, TypeMismatch> {
                Self::from_value(value)
            }
        }
        impl<$($($generics)*)?> TryFrom<Value> for $t {
            type Error = TypeMismatch;
            fn try_from(value: Value) -> Result<Self, TypeMismatch> {
                Self::from_value(&value)
            }
        }
    };
}
pub(crate) use conversions;

/// Types with a word form.
macro_rules! inline {
    ($($t:ty, $name:literal, |$value:ident| $read:expr, |$v:ident| $write:expr;)*) => {$(
        impl Parameter for $t {
            const TYPE_NAME: &'static str = $name;
            fn from_value($value: &Value) -> Result<Self, TypeMismatch> {
                $read
            }
            fn into_value(self) -> Value {
                let $v = self;
                $write
            }
            #[inline]
            fn write_words(&self, out: &mut Words) -> Option<(u8, usize)> {
                Some((<$t as Inline>::KIND, self.put(out)))
            }
            #[inline]
            fn read_words(kind: u8, words: &[u64]) -> Option<Result<Self, TypeMismatch>> {
                if kind == <$t as Inline>::KIND {
                    return <$t as Inline>::get(words).map(Ok);
                }
                read_other(kind, words)
            }
        }
        conversions!($t);
    )*};
}

/// The content of one variant, or the error.
macro_rules! only {
    ($value:ident, $variant:ident) => {
        match $value {
            Value::$variant(v) => Ok(v.clone()),
            other => Err(mismatch::<Self>(other)),
        }
    };
}

inline! {
    bool, "bool", |value| only!(value, Bool), |v| Value::Bool(v);
    i64, "i64", |value| number(value, Self::TYPE_NAME), |v| Value::Int(v);
    u64, "u64", |value| number(value, Self::TYPE_NAME), |v| Value::UInt(v);
    f64, "f64", |value| number(value, Self::TYPE_NAME), |v| Value::Float(v);
    f32, "f32", |value| number(value, Self::TYPE_NAME), |v| Value::Float32(v);
    Uuid, "uuid", |value| only!(value, Uuid), |v| Value::Uuid(v);
    EntityId, "entity", |value| only!(value, Entity), |v| Value::Entity(v);
    SimTime, "time", |value| only!(value, Time), |v| Value::Time(v);
    SimDuration, "duration", |value| only!(value, Duration), |v| Value::Duration(v);
    [f64; 2], "vec2", |value| only!(value, Vec2), |v| Value::Vec2(v);
    [f64; 3], "vec3", |value| only!(value, Vec3), |v| Value::Vec3(v);
    [f64; 4], "vec4", |value| only!(value, Vec4), |v| Value::Vec4(v);
    Quat, "quat", |value| only!(value, Quat), |v| Value::Quat(v);
    Ramp, "ramp", |value| only!(value, Ramp), |v| Value::Ramp(v);
    Motion, "motion", |value| only!(value, Motion).map(|boxed| *boxed), |v| Value::Motion(Box::new(v));
}

/// Small integers travel as the wide one of their sign.
macro_rules! small_integers {
    ($($t:ty => $wide:ty, $variant:ident, $name:literal;)*) => {$(
        impl Parameter for $t {
            const TYPE_NAME: &'static str = $name;
            fn from_value(value: &Value) -> Result<Self, TypeMismatch> {
                number(value, $name)
            }
            fn into_value(self) -> Value {
                Value::$variant(self as $wide)
            }
            fn write_words(&self, out: &mut Words) -> Option<(u8, usize)> {
                (*self as $wide).write_words(out)
            }
            fn read_words(kind: u8, words: &[u64]) -> Option<Result<Self, TypeMismatch>> {
                read_other(kind, words)
            }
        }
        conversions!($t);
    )*};
}

small_integers! {
    i8 => i64, Int, "i8";
    i16 => i64, Int, "i16";
    i32 => i64, Int, "i32";
    isize => i64, Int, "isize";
    u8 => u64, UInt, "u8";
    u16 => u64, UInt, "u16";
    u32 => u64, UInt, "u32";
    usize => u64, UInt, "usize";
}

/// Types on the heap: `from_value` and `into_value` alone.
macro_rules! heap {
    ($($t:ty, $name:literal, $variant:ident, |$v:ident| $read:expr, |$w:ident| $write:expr;)*) => {$(
        impl Parameter for $t {
            const TYPE_NAME: &'static str = $name;
            fn from_value(value: &Value) -> Result<Self, TypeMismatch> {
                match value {
                    Value::$variant($v) => Ok($read),
                    other => Err(mismatch::<Self>(other)),
                }
            }
            fn into_value(self) -> Value {
                let $w = self;
                Value::$variant($write)
            }
        }
        conversions!($t);
    )*};
}

heap! {
    String, "text", Text, |v| v.as_ref().to_owned(), |v| v.into();
    Arc<str>, "text", Text, |v| v.clone(), |v| v;
    Vec<u8>, "bytes", Bytes, |v| v.to_vec(), |v| v.into();
    Arc<[u8]>, "bytes", Bytes, |v| v.clone(), |v| v;
    Vec<i64>, "ints", Ints, |v| v.to_vec(), |v| v.into();
    Arc<[i64]>, "ints", Ints, |v| v.clone(), |v| v;
    Vec<u64>, "uints", UInts, |v| v.to_vec(), |v| v.into();
    Arc<[u64]>, "uints", UInts, |v| v.clone(), |v| v;
    Vec<f64>, "floats", Floats, |v| v.to_vec(), |v| v.into();
    Arc<[f64]>, "floats", Floats, |v| v.clone(), |v| v;
    Vec<f32>, "floats32", Floats32, |v| v.to_vec(), |v| v.into();
    Arc<[f32]>, "floats32", Floats32, |v| v.clone(), |v| v;
    Vec<Value>, "list", List, |v| v.to_vec(), |v| v.into();
    Arc<[Value]>, "list", List, |v| v.clone(), |v| v;
    Matrix, "matrix", Matrix, |v| Self::clone(v), |v| Arc::new(v);
    Arc<Matrix>, "matrix", Matrix, |v| v.clone(), |v| v;
    BTreeMap<Key, Value>, "map", Map, |v| v.as_ref().clone(), |v| Arc::new(v);
    Arc<BTreeMap<Key, Value>>, "map", Map, |v| v.clone(), |v| v;
}

/// Rows of a row-major matrix.
impl<const R: usize, const C: usize> Parameter for [[f64; C]; R] {
    const TYPE_NAME: &'static str = "matrix";

    fn from_value(value: &Value) -> Result<Self, TypeMismatch> {
        let Value::Matrix(matrix) = value else { return Err(mismatch::<Self>(value)) };
        if (usize::from(matrix.rows), usize::from(matrix.columns)) != (R, C) {
            return Err(TypeMismatch::Inexact { found: "matrix", asked: "a matrix of another shape" });
        }
        Ok(std::array::from_fn(|row| std::array::from_fn(|column| matrix.elements[row * C + column])))
    }

    fn into_value(self) -> Value {
        const {
            assert!(
                R <= u16::MAX as usize && C <= u16::MAX as usize,
                "a matrix has at most 65,535 rows and columns"
            )
        };
        Value::Matrix(Arc::new(Matrix { rows: R as u16, columns: C as u16, elements: self.concat() }))
    }
}
conversions!([[f64; C]; R], const R: usize, const C: usize);

/// Nothing, as a value.
impl Parameter for () {
    const TYPE_NAME: &'static str = "nil";
    fn from_value(value: &Value) -> Result<Self, TypeMismatch> {
        if matches!(value, Value::Nil) { Ok(()) } else { Err(mismatch::<Self>(value)) }
    }
    fn into_value(self) -> Value {
        Value::Nil
    }
    fn write_words(&self, _out: &mut Words) -> Option<(u8, usize)> {
        Some((kind::NIL, 0))
    }
    fn read_words(kind: u8, words: &[u64]) -> Option<Result<Self, TypeMismatch>> {
        read_other(kind, words)
    }
}
conversions!(());

/// Whatever is there.
impl Parameter for Value {
    const TYPE_NAME: &'static str = "any value";
    fn from_value(value: &Value) -> Result<Self, TypeMismatch> {
        Ok(value.clone())
    }
    fn into_value(self) -> Value {
        self
    }
    fn write_words(&self, out: &mut Words) -> Option<(u8, usize)> {
        encode_words(self, out)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.into())
    }
}
