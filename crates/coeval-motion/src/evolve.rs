//! What a value does with time: the one trait behind reads and publishers, for built-in and for users' own types.
use crate::interpolate::{between, hermite, line, line_each};
use crate::linear::slerp;
use crate::models::{extrapolate, is_global};
use coeval_time::{SimDuration, SimTime};
use coeval_value::{EntityId, Key, Matrix, Motion, Quat, Ramp, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A value that may have a model. The default methods describe one that has none: it holds.
pub trait Evolve: Clone {
    /// The value `dt` seconds of sim time after (before, if negative) its sample, by its own model. `None` when it
    /// has no model, or the model no finite value there: the sample then holds.
    #[inline]
    fn evolve(&self, dt: f64) -> Option<Self> {
        let _ = dt;
        None
    }

    /// The value `since` seconds after `self`, when `next` was written `span` seconds after `self` (`span` is not
    /// zero and may be negative; `since / span` lies within 0 to 1). `None` when there is nothing between the two:
    /// the earlier written holds.
    #[inline]
    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        let _ = (next, span, since);
        None
    }

    /// Whether the model holds everywhere (an orbit), not only within its epoch and a span.
    #[inline]
    fn is_global(&self) -> bool {
        false
    }
}

impl Evolve for f64 {
    #[inline]
    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        Some(line(*self, *next, since / span))
    }
}

impl Evolve for f32 {
    #[inline]
    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        Some(line(f64::from(*self), f64::from(*next), since / span) as f32)
    }
}

impl<const N: usize> Evolve for [f64; N] {
    #[inline]
    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        Some(line_each(*self, *next, since / span))
    }
}

impl Evolve for Quat {
    #[inline]
    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        Some(slerp(*self, *next, since / span))
    }
}

impl Evolve for Ramp {
    #[inline]
    fn evolve(&self, dt: f64) -> Option<Self> {
        let value = if dt == 0.0 { self.value } else { self.value + self.rate * dt };
        (value.is_finite() || dt == 0.0).then_some(Self { value, rate: self.rate })
    }

    #[inline]
    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        let (value, rate) = hermite(self.value, self.rate, next.value, next.rate, span, since / span);
        (value.is_finite() && rate.is_finite()).then_some(Self { value, rate })
    }
}

impl Evolve for Motion {
    #[inline]
    fn evolve(&self, dt: f64) -> Option<Self> {
        extrapolate(self, dt).ok()
    }

    #[inline]
    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        between(self, next, span, since)
    }

    #[inline]
    fn is_global(&self) -> bool {
        is_global(self.model)
    }
}

/// `Ramp` and `Motion` by their models; numbers, vectors and rotations interpolate; everything else holds. Two values
/// of different types have nothing between them.
impl Evolve for Value {
    fn evolve(&self, dt: f64) -> Option<Self> {
        match self {
            Self::Ramp(ramp) => ramp.evolve(dt).map(Self::Ramp),
            Self::Motion(motion) => motion.evolve(dt).map(|next| Self::Motion(Box::new(next))),
            _ => None,
        }
    }

    fn between(&self, next: &Self, span: f64, since: f64) -> Option<Self> {
        match (self, next) {
            (Self::Float(a), Self::Float(b)) => a.between(b, span, since).map(Self::Float),
            (Self::Float32(a), Self::Float32(b)) => a.between(b, span, since).map(Self::Float32),
            (Self::Vec2(a), Self::Vec2(b)) => a.between(b, span, since).map(Self::Vec2),
            (Self::Vec3(a), Self::Vec3(b)) => a.between(b, span, since).map(Self::Vec3),
            (Self::Vec4(a), Self::Vec4(b)) => a.between(b, span, since).map(Self::Vec4),
            (Self::Quat(a), Self::Quat(b)) => a.between(b, span, since).map(Self::Quat),
            (Self::Ramp(a), Self::Ramp(b)) => a.between(b, span, since).map(Self::Ramp),
            (Self::Motion(a), Self::Motion(b)) => {
                a.as_ref().between(b, span, since).map(|next| Self::Motion(Box::new(next)))
            }
            _ => None,
        }
    }

    fn is_global(&self) -> bool {
        matches!(self, Self::Motion(motion) if is_global(motion.model))
    }
}

/// Types without a model and without anything in between: every value holds until the next one.
macro_rules! hold {
    ($($t:ty),* $(,)?) => {$(
        impl Evolve for $t {}
    )*};
}

hold! {
    (), bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize,
    Uuid, EntityId, SimTime, SimDuration, String, Arc<str>, Matrix, Arc<Matrix>,
    BTreeMap<Key, Value>, Arc<BTreeMap<Key, Value>>,
    Vec<u8>, Vec<i64>, Vec<u64>, Vec<f64>, Vec<f32>, Vec<Value>,
    Arc<[u8]>, Arc<[i64]>, Arc<[u64]>, Arc<[f64]>, Arc<[f32]>, Arc<[Value]>,
}

impl<const R: usize, const C: usize> Evolve for [[f64; C]; R] {}
