//! A [`Motion`] at another instant, by its own model.
//!
//! The world-axes and body-axes models are the dead-reckoning algorithms of IEEE 1278.1 (annex on dead reckoning),
//! written with the rotation vector `phi = omega dt`, so that the body matrices R1 and R2 stay smooth through zero
//! rotation. Where that standard holds the angular velocity, so do we, exactly; an angular acceleration, which it
//! does not know, is integrated numerically (see [`extrapolate`]).
use crate::linear::{
    IDENTITY, Integrals, V3, add, axpy, cross, exp, finite, finite_quat, mul, norm, rotate, scale, unit,
};
use crate::orbit::{OrbitError, propagate};
use coeval_value::{Motion, MotionModel, Quat};

/// Largest rotation per step under angular acceleration, rad.
const STEP_RAD: f64 = 0.05;
/// Most steps per evaluation: bounds the time that a read can take.
const MAX_STEPS: f64 = 512.0;

const ZERO: V3 = [0.0; 3];

/// Why a motion has no value at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModelError {
    /// The model's result is not finite: the sample or the time step is not, or the result overflows.
    #[error("the motion at the asked instant is not finite: check the sample's components and the time step")]
    NotFinite,
    /// The orbit cannot be propagated.
    #[error("two-body motion: {0}")]
    Orbit(#[from] OrbitError),
}

/// `motion` `dt` seconds of sim time after (before, if negative) its sample, with position, velocity, attitude and
/// angular velocity all taken at that instant. `dt == 0` returns the sample bit for bit.
///
/// Absent components count as zero (attitude: as identity), and become present when one that they follow from is.
/// Components that a model does not use are passed on unchanged. Attitude is turned in the models of type R and in
/// two-body motion, in closed form for a constant angular velocity.
///
/// With an angular acceleration the attitude takes fourth-order Magnus steps of at most 0.05 rad, and the path of
/// the body models Simpson's rule over the same steps: within 1e-8 rad, and 1e-8 of the distance flown, over the
/// first 25 rad of rotation; beyond (512 steps) steps grow and accuracy falls with their fourth power.
///
/// # Errors
/// [`ModelError::NotFinite`] when the result is not finite, [`ModelError::Orbit`] for an orbit without a center,
/// a radius or a gravitational parameter.
#[inline]
pub fn extrapolate(motion: &Motion, dt: f64) -> Result<Motion, ModelError> {
    if dt == 0.0 {
        return Ok(*motion);
    }
    let next = match motion.model {
        MotionModel::Static => *motion,
        MotionModel::Fpw => moved(motion, dt, false),
        MotionModel::Fvw => moved(motion, dt, true),
        MotionModel::Rpw => turned(&moved(motion, dt, false), motion, dt),
        MotionModel::Rvw => turned(&moved(motion, dt, true), motion, dt),
        MotionModel::Fpb => flown(motion, dt, false, false),
        MotionModel::Fvb => flown(motion, dt, true, false),
        MotionModel::Rpb => flown(motion, dt, false, true),
        MotionModel::Rvb => flown(motion, dt, true, true),
        MotionModel::TwoBody => orbited(motion, dt)?,
    };
    if is_finite(&next) && dt.is_finite() { Ok(next) } else { Err(ModelError::NotFinite) }
}

/// Whether `model` holds everywhere: across jumps and for any span of time.
#[inline]
pub const fn is_global(model: MotionModel) -> bool {
    matches!(model, MotionModel::TwoBody)
}

/// Whether `model` gives velocity and acceleration in body axes.
#[inline]
pub const fn is_body(model: MotionModel) -> bool {
    matches!(model, MotionModel::Fpb | MotionModel::Rpb | MotionModel::Rvb | MotionModel::Fvb)
}

/// The velocity in the parent frame, m/s, whichever axes the model gives it in. `None` when it is not known: absent,
/// or a static motion.
pub fn parent_velocity(motion: &Motion) -> Option<[f64; 3]> {
    let velocity = motion.velocity.filter(|_| motion.model != MotionModel::Static)?;
    Some(if is_body(motion.model) { rotate(attitude(motion), velocity) } else { velocity })
}

/// Whether every present component is finite.
pub(crate) fn is_finite(m: &Motion) -> bool {
    m.position.is_none_or(finite)
        && m.velocity.is_none_or(finite)
        && m.acceleration.is_none_or(finite)
        && m.angular_velocity.is_none_or(finite)
        && m.angular_acceleration.is_none_or(finite)
        && m.orientation.is_none_or(finite_quat)
        && m.mu.is_none_or(f64::is_finite)
}

pub(crate) fn attitude(motion: &Motion) -> Quat {
    unit(motion.orientation.unwrap_or(IDENTITY))
}

/// Straight or parabolic path in parent axes.
#[inline]
fn moved(motion: &Motion, dt: f64, accelerated: bool) -> Motion {
    let mut next = *motion;
    let acceleration = motion.acceleration.filter(|_| accelerated);
    if motion.velocity.is_some() || acceleration.is_some() {
        let velocity = motion.velocity.unwrap_or(ZERO);
        let mean = acceleration.map_or(velocity, |a| axpy(velocity, 0.5 * dt, a));
        next.position = Some(axpy(motion.position.unwrap_or(ZERO), dt, mean));
        next.velocity = Some(acceleration.map_or(velocity, |a| axpy(velocity, dt, a)));
    }
    next
}

/// `next` with the attitude and angular velocity of `motion` after `dt`.
#[inline]
fn turned(next: &Motion, motion: &Motion, dt: f64) -> Motion {
    let mut next = *next;
    if let Some(spin) = Spin::of(motion) {
        let start = attitude(motion);
        next.orientation = Some(match spin.acceleration {
            None => unit(mul(start, exp(scale(dt, spin.rate)))),
            Some(_) => spin.steps(start, ZERO, ZERO, dt).0,
        });
        next.angular_velocity = Some(spin.rate_at(dt));
    }
    next
}

/// Path flown with body-axes velocity `v + a dt`: fixed attitude, or turning (`rotating`).
fn flown(motion: &Motion, dt: f64, accelerated: bool, rotating: bool) -> Motion {
    let mut next = *motion;
    let acceleration = motion.acceleration.filter(|_| accelerated);
    let (v, a) = (motion.velocity.unwrap_or(ZERO), acceleration.unwrap_or(ZERO));
    let start = attitude(motion);
    let path = match Spin::of(motion).filter(|_| rotating) {
        None => rotate(start, scale(dt, axpy(v, 0.5 * dt, a))),
        Some(spin) => {
            let (end, path) = match spin.acceleration {
                None => spin.closed(start, v, a, dt),
                Some(_) => spin.steps(start, v, a, dt),
            };
            next.orientation = Some(end);
            next.angular_velocity = Some(spin.rate_at(dt));
            path
        }
    };
    if motion.velocity.is_some() || acceleration.is_some() {
        next.position = Some(add(motion.position.unwrap_or(ZERO), path));
        next.velocity = Some(axpy(v, dt, a));
    }
    next
}

fn orbited(motion: &Motion, dt: f64) -> Result<Motion, OrbitError> {
    let position = motion.position.unwrap_or(ZERO);
    let velocity = motion.velocity.unwrap_or(ZERO);
    let state = propagate(position, velocity, motion.mu.unwrap_or(0.0), dt)?;
    let next = Motion { position: Some(state.position), velocity: Some(state.velocity), ..*motion };
    Ok(turned(&next, motion, dt))
}

/// Angular velocity and its derivative, body axes; `acceleration` only when it is not zero.
struct Spin {
    rate: V3,
    acceleration: Option<V3>,
}

impl Spin {
    fn of(motion: &Motion) -> Option<Self> {
        let acceleration = motion.angular_acceleration.filter(|a| *a != ZERO);
        if motion.angular_velocity.is_none() && acceleration.is_none() {
            return None;
        }
        Some(Self { rate: motion.angular_velocity.unwrap_or(ZERO), acceleration })
    }

    fn rate_at(&self, dt: f64) -> V3 {
        self.acceleration.map_or(self.rate, |a| axpy(self.rate, dt, a))
    }

    /// End attitude and path, constant rate: `R(q) (dt R1 v + dt^2 R2 a)`.
    fn closed(&self, start: Quat, v: V3, a: V3, dt: f64) -> (Quat, V3) {
        let phi = scale(dt, self.rate);
        let integrals = Integrals::of(norm(phi));
        let path = axpy(scale(dt, integrals.first(phi, v)), dt * dt, integrals.second(phi, a));
        (unit(mul(start, exp(phi))), rotate(start, path))
    }

    /// End attitude and path under angular acceleration, by steps.
    fn steps(&self, start: Quat, v: V3, a: V3, dt: f64) -> (Quat, V3) {
        let alpha = self.acceleration.unwrap_or(ZERO);
        let bound = (norm(self.rate) + norm(alpha) * dt.abs()) * dt.abs();
        // NaN becomes one step, whose result is not finite and refused by the caller.
        let count = (bound / STEP_RAD).ceil().clamp(1.0, MAX_STEPS).max(1.0);
        let h = dt / count;
        let (mut q, mut path) = (start, ZERO);
        for k in 0..count as u32 {
            let t = f64::from(k) * h;
            let rate = axpy(self.rate, t, alpha);
            let middle = mul(q, exp(magnus(rate, alpha, 0.5 * h)));
            let end = unit(mul(q, exp(magnus(rate, alpha, h))));
            let ends = add(rotate(q, axpy(v, t, a)), rotate(end, axpy(v, t + h, a)));
            let mean = axpy(ends, 4.0, rotate(middle, axpy(v, t + 0.5 * h, a)));
            path = axpy(path, h / 6.0, mean);
            q = end;
        }
        (q, path)
    }
}

/// Rotation vector over `h` of a body whose rate is `rate + alpha t`: fourth-order Magnus expansion (Iserles &
/// Nørsett 1999), exact when `alpha` is parallel to `rate`.
fn magnus(rate: V3, alpha: V3, h: f64) -> V3 {
    let mean = axpy(scale(h, rate), 0.5 * h * h, alpha);
    axpy(mean, h * h * h / 12.0, cross(rate, alpha))
}
