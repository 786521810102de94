//! A [`Motion`] between two samples, and the curves that numbers share with it.
use crate::linear::{V3, add, axpy, inverse, rotate, scale, slerp, sub};
use crate::models::{attitude, extrapolate, is_body, is_finite, parent_velocity};
use coeval_value::{Motion, MotionModel};

/// From `a` to `b` at fraction `u`, straight. Equal ends give that end bit for bit.
#[inline]
pub(crate) fn line(a: f64, b: f64, u: f64) -> f64 {
    let straight = a + (b - a) * u;
    // The difference of two huge numbers overflows; their weighted sum does not.
    if straight.is_finite() { straight } else { a * (1.0 - u) + b * u }
}

#[inline]
pub(crate) fn line_each<const N: usize>(a: [f64; N], b: [f64; N], u: f64) -> [f64; N] {
    std::array::from_fn(|i| line(a[i], b[i], u))
}

/// Value and rate at fraction `u` of the cubic with values `a`, `b` and rates `va`, `vb` per second, `span` s apart.
#[inline]
pub(crate) fn hermite(a: f64, va: f64, b: f64, vb: f64, span: f64, u: f64) -> (f64, f64) {
    let (step, left, right) = (b - a, span * va, span * vb);
    // Newton form about a: exact at both ends for equal rates, and for a steady rate a straight line.
    let bend = 3.0 * step - 2.0 * left - right;
    let twist = left + right - 2.0 * step;
    let value = a + u * (left + u * (bend + u * twist));
    let rate = (left + u * (2.0 * bend + 3.0 * u * twist)) / span;
    (value, rate)
}

/// The motion at `since_a` seconds after `a`, with `b` written `span` seconds after `a` (negative when sim time ran
/// backward); `since_a / span` lies within 0 to 1.
///
/// - Position: cubic Hermite when both velocities are known (turned into the parent frame in the body models), else a
///   straight line. Velocity is the derivative of that cubic, in the axes of `a`'s model.
/// - Attitude: the shorter way at constant rate. Rates and accelerations: straight lines.
/// - Two orbits about one center: each carried to the instant and blended, so that both ends are exact and an arc of
///   any length between them stays an orbit.
///
/// The model, frame and presence are those of `a`. `None` when the two cannot be joined (different frames, no time
/// between them, a result that is not finite): `a` then holds.
pub fn between(a: &Motion, b: &Motion, span: f64, since_a: f64) -> Option<Motion> {
    let u = since_a / span;
    if a.frame != b.frame || !(0.0..=1.0).contains(&u) {
        return None;
    }
    if u == 0.0 {
        return Some(*a);
    }
    let orbits = a.model == MotionModel::TwoBody && b.model == MotionModel::TwoBody && a.mu == b.mu;
    let blended = if orbits { orbit_between(a, b, span, since_a) } else { None };
    let next = blended.unwrap_or_else(|| curve_between(a, b, span, u));
    is_finite(&next).then_some(next)
}

fn curve_between(a: &Motion, b: &Motion, span: f64, u: f64) -> Motion {
    let mut next = *a;
    if a.orientation.is_some() || b.orientation.is_some() {
        next.orientation = Some(slerp(attitude(a), attitude(b), u));
    }
    next.angular_velocity = join(a.angular_velocity, b.angular_velocity, u);
    next.angular_acceleration = join(a.angular_acceleration, b.angular_acceleration, u);
    let (start, end) = (a.position.unwrap_or_default(), b.position.unwrap_or_default());
    match (parent_velocity(a), parent_velocity(b)) {
        (Some(va), Some(vb)) => {
            let (position, velocity) = cubic(start, va, end, vb, span, u);
            next.position = Some(position);
            let body = is_body(a.model);
            next.velocity = Some(if body { rotate(inverse(attitude(&next)), velocity) } else { velocity });
        }
        _ if a.position.is_some() || b.position.is_some() => {
            next.position = Some(line_each(start, end, u));
        }
        _ => {}
    }
    if is_body(a.model) == is_body(b.model) {
        next.acceleration = join(a.acceleration, b.acceleration, u);
    }
    next
}

fn join(a: Option<V3>, b: Option<V3>, u: f64) -> Option<V3> {
    match (a, b) {
        (Some(a), Some(b)) => Some(line_each(a, b, u)),
        _ => a,
    }
}

fn cubic(a: V3, va: V3, b: V3, vb: V3, span: f64, u: f64) -> (V3, V3) {
    let axes: [(f64, f64); 3] = std::array::from_fn(|i| hermite(a[i], va[i], b[i], vb[i], span, u));
    (axes.map(|(value, _)| value), axes.map(|(_, rate)| rate))
}

/// Both orbits at the instant, the weight moving from the first to the second with no slope at either end.
fn orbit_between(a: &Motion, b: &Motion, span: f64, since_a: f64) -> Option<Motion> {
    let from_a = extrapolate(a, since_a).ok()?;
    let from_b = extrapolate(b, since_a - span).ok()?;
    let u = since_a / span;
    let weight = u * u * (3.0 - 2.0 * u);
    let weight_rate = 6.0 * u * (1.0 - u) / span;
    let gap = sub(from_b.position?, from_a.position?);
    let drift = sub(from_b.velocity?, from_a.velocity?);
    let mut next = from_a;
    next.position = Some(axpy(from_a.position?, weight, gap));
    next.velocity = Some(add(axpy(from_a.velocity?, weight, drift), scale(weight_rate, gap)));
    if a.orientation.is_some() || b.orientation.is_some() {
        next.orientation = Some(slerp(attitude(&from_a), attitude(&from_b), weight));
    }
    next.angular_velocity = join(from_a.angular_velocity, from_b.angular_velocity, u);
    Some(next)
}
