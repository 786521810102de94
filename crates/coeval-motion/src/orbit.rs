//! Two-body (Kepler) motion in universal variables: one formula for ellipse, parabola and hyperbola, both ways in time.
//!
//! Units are made of the starting radius and `mu`, so that every quantity in the solver is a plain number near one.
//! The formulation follows Battin, *An Introduction to the Mathematics and Methods of Astrodynamics* (1999),
//! chapter 4 (universal functions U0 to U3), and Vallado, *Fundamentals of Astrodynamics*, section 2.3.
use crate::linear::{V3, axpy, cross, dot, finite, norm, scale, sub};
use std::f64::consts::{PI, TAU};

/// Below this `|z|` the Stumpff functions come from their series.
const SERIES_BELOW: f64 = 4.0;
/// Terms of the series: `4^16 / 35!` is far below one unit in the last place.
const SERIES_TERMS: u32 = 16;
/// Doublings of the bracket: enough for the widest finite `f64`.
const MAX_DOUBLINGS: u32 = 1100;
/// Newton and bisection steps; a bracket of `f64` is exhausted by fewer.
const MAX_STEPS: u32 = 200;

/// Why an orbit cannot be propagated or described.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OrbitError {
    /// A component, the time step or the result is not finite.
    #[error("position, velocity, mu, time step or result is not finite")]
    NotFinite,
    /// The gravitational parameter is absent, zero or negative.
    #[error("the gravitational parameter mu is missing or not positive: set Motion::mu in m³/s²")]
    NoCenter,
    /// The starting radius is zero, or the orbit falls through the center at the asked instant.
    #[error("the orbit has zero radius: the position is relative to the center of the attracting body")]
    ZeroRadius,
}

/// Position and velocity in an inertial frame centered on the attracting body.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OrbitState {
    /// m.
    pub position: [f64; 3],
    /// m/s.
    pub velocity: [f64; 3],
}

/// The state `dt` seconds (any sign) after `position` (m), `velocity` (m/s) about a body of `mu` (m³/s²).
///
/// For an ellipse `dt` is first reduced modulo the period, so that accuracy over many revolutions is that of the
/// period itself: about 1e-15 of the distance traveled for near-circular orbits.
///
/// # Errors
/// [`OrbitError`] for input without an orbit; never NaN, never an endless loop.
pub fn propagate(position: [f64; 3], velocity: [f64; 3], mu: f64, dt: f64) -> Result<OrbitState, OrbitError> {
    if !(finite(position) && finite(velocity) && mu.is_finite() && dt.is_finite()) {
        return Err(OrbitError::NotFinite);
    }
    if mu <= 0.0 {
        return Err(OrbitError::NoCenter);
    }
    let radius = norm(position);
    if radius == 0.0 {
        return Err(OrbitError::ZeroRadius);
    }
    if dt == 0.0 {
        return Ok(OrbitState { position, velocity });
    }
    let speed_unit = (mu / radius).sqrt();
    let r = scale(radius.recip(), position);
    let v = scale(speed_unit.recip(), velocity);
    let alpha = 2.0 - dot(v, v);
    let sigma = dot(r, v);
    let tau = reduced(dt * (speed_unit / radius), alpha);
    if !(tau.is_finite() && alpha.is_finite() && sigma.is_finite()) {
        return Err(OrbitError::NotFinite);
    }
    let x = tau.signum() * solve(alpha, sigma * tau.signum(), tau.abs());
    let u = Universal::at(x, alpha);
    let distance = u.radius(sigma);
    if distance.is_nan() || distance <= 0.0 {
        return Err(OrbitError::ZeroRadius);
    }
    let new_r = axpy(scale(1.0 - u.u2, r), u.u1 + sigma * u.u2, v);
    let new_v = axpy(scale(-u.u1 / distance, r), 1.0 - u.u2 / distance, v);
    let state = OrbitState { position: scale(radius, new_r), velocity: scale(speed_unit, new_v) };
    if finite(state.position) && finite(state.velocity) { Ok(state) } else { Err(OrbitError::NotFinite) }
}

/// The period of the ellipse through the state, s; `None` for open orbits and degenerate input.
pub fn period(position: [f64; 3], velocity: [f64; 3], mu: f64) -> Option<f64> {
    let a = (2.0 / norm(position) - dot(velocity, velocity) / mu).recip();
    let period = TAU * a * (a / mu).sqrt();
    (a > 0.0 && period.is_finite() && period > 0.0).then_some(period)
}

/// `tau` within half a period of zero when the orbit is an ellipse. The remainder itself is exact.
fn reduced(tau: f64, alpha: f64) -> f64 {
    let period = TAU / (alpha * alpha.sqrt());
    if alpha <= 0.0 || !period.is_finite() || tau.abs() <= 0.5 * period {
        return tau;
    }
    let rest = tau % period;
    if rest.abs() > 0.5 * period { rest - period.copysign(rest) } else { rest }
}

/// Universal functions of `x` for the energy parameter `alpha` (1/a, in units of the starting radius).
struct Universal {
    u0: f64,
    u1: f64,
    u2: f64,
    u3: f64,
}

impl Universal {
    fn at(x: f64, alpha: f64) -> Self {
        let z = alpha * x * x;
        let (c, s) = stumpff(z);
        Self { u0: 1.0 - z * c, u1: x * (1.0 - z * s), u2: x * x * c, u3: x * x * x * s }
    }

    /// Time since the start; grows strictly with `x`.
    fn time(&self, sigma: f64) -> f64 {
        self.u1 + sigma * self.u2 + self.u3
    }

    /// Distance from the center, which is also the derivative of [`time`](Self::time).
    fn radius(&self, sigma: f64) -> f64 {
        self.u0 + sigma * self.u1 + self.u2
    }
}

/// The Stumpff functions `C(z) = c2` and `S(z) = c3`.
fn stumpff(z: f64) -> (f64, f64) {
    if z.abs() < SERIES_BELOW {
        let (mut c, mut s) = (0.0, 0.0);
        for k in (0..SERIES_TERMS).rev() {
            let n = f64::from(2 * k);
            // c2 = 1/2 (1 - z/(3*4) (1 - ...)), c3 = 1/6 (1 - z/(4*5) (1 - ...)).
            c = (1.0 - z * c) / ((n + 1.0) * (n + 2.0));
            s = (1.0 - z * s) / ((n + 2.0) * (n + 3.0));
        }
        return (c, s);
    }
    let root = z.abs().sqrt();
    if z > 0.0 {
        let half = (0.5 * root).sin();
        (2.0 * half * half / z, (root - root.sin()) / (root * z))
    } else {
        let half = (0.5 * root).sinh();
        (-2.0 * half * half / z, (root.sinh() - root) / (root * -z))
    }
}

/// The universal anomaly at time `tau >= 0`: Newton kept inside a bracket, bisection where Newton does not halve.
fn solve(alpha: f64, sigma: f64, tau: f64) -> f64 {
    let misses_low = |x: f64| Universal::at(x, alpha).time(sigma) < tau;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..MAX_DOUBLINGS {
        // Beyond the largest numbers the time is infinite or NaN: not low, so the bracket ends there.
        if !misses_low(high) {
            break;
        }
        low = high;
        high *= 2.0;
    }
    let mut x = if tau > low && tau < high { tau } else { 0.5 * (low + high) };
    let mut last_step = high - low;
    for _ in 0..MAX_STEPS {
        let u = Universal::at(x, alpha);
        let miss = u.time(sigma) - tau;
        if miss == 0.0 {
            break;
        }
        if miss < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let newton = x - miss / u.radius(sigma);
        let useful = newton > low && newton < high && (newton - x).abs() < 0.5 * last_step;
        let next = if useful { newton } else { 0.5 * (low + high) };
        last_step = (next - x).abs();
        x = next;
        if last_step <= 2.0 * f64::EPSILON * x.abs() {
            break;
        }
    }
    x
}

/// Classical orbital elements about a body at the origin. Angles in rad.
///
/// Where an angle has no meaning it is zero and the next one takes its part: an equatorial orbit has its node on the
/// x axis, a circular one its periapsis at the node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Elements {
    /// Semi-latus rectum `p = a (1 - e²)`, m, positive: finite for the parabola too.
    pub semi_latus_rectum: f64,
    /// Eccentricity, at least 0.
    pub eccentricity: f64,
    /// Inclination to the xy plane, 0 to pi.
    pub inclination: f64,
    /// Right ascension of the ascending node.
    pub ascending_node: f64,
    /// Argument of periapsis.
    pub argument_of_periapsis: f64,
    /// True anomaly.
    pub true_anomaly: f64,
}

impl Elements {
    /// The elements of the ellipse with semi-major axis `a` (m) at *mean* anomaly `mean_anomaly` (rad).
    ///
    /// # Errors
    /// [`OrbitError::NotFinite`] unless `a > 0`, `0 <= eccentricity < 1` and the angles are finite.
    pub fn from_mean(
        a: f64,
        eccentricity: f64,
        angles: [f64; 3],
        mean_anomaly: f64,
    ) -> Result<Self, OrbitError> {
        if !(a > 0.0 && (0.0..1.0).contains(&eccentricity) && finite(angles) && mean_anomaly.is_finite()) {
            return Err(OrbitError::NotFinite);
        }
        let [inclination, ascending_node, argument_of_periapsis] = angles;
        let semi_latus_rectum = a * (1.0 - eccentricity * eccentricity);
        // From periapsis in its own plane, `mean_anomaly / n` later: the solver for states serves anomalies too.
        let (rp, mu) = (1.0 - eccentricity, 1.0);
        let vp = ((1.0 + eccentricity) / (1.0 - eccentricity)).sqrt();
        let state = propagate([rp, 0.0, 0.0], [0.0, vp, 0.0], mu, mean_anomaly)?;
        let true_anomaly = state.position[1].atan2(state.position[0]);
        Ok(Self {
            semi_latus_rectum,
            eccentricity,
            inclination,
            ascending_node,
            argument_of_periapsis,
            true_anomaly,
        })
    }

    /// Position and velocity, about a body of `mu` (m³/s²).
    ///
    /// # Errors
    /// [`OrbitError`] when `mu` or the semi-latus rectum is not positive, or the anomaly lies beyond a hyperbola's
    /// asymptote.
    pub fn state(&self, mu: f64) -> Result<OrbitState, OrbitError> {
        if mu.is_nan() || mu <= 0.0 {
            return Err(OrbitError::NoCenter);
        }
        let (sin, cos) = self.true_anomaly.sin_cos();
        let radius = self.semi_latus_rectum / (1.0 + self.eccentricity * cos);
        if radius.is_nan() || radius <= 0.0 {
            return Err(OrbitError::ZeroRadius);
        }
        let speed = (mu / self.semi_latus_rectum).sqrt();
        let (p, q) = self.axes();
        let state = OrbitState {
            position: axpy(scale(radius * cos, p), radius * sin, q),
            velocity: axpy(scale(-speed * sin, p), speed * (self.eccentricity + cos), q),
        };
        if finite(state.position) && finite(state.velocity) { Ok(state) } else { Err(OrbitError::NotFinite) }
    }

    /// The elements of a state about a body of `mu` (m³/s²).
    ///
    /// # Errors
    /// [`OrbitError`] for degenerate input, [`OrbitError::ZeroRadius`] for a straight fall (no plane).
    pub fn from_state(state: &OrbitState, mu: f64) -> Result<Self, OrbitError> {
        let (r, v) = (state.position, state.velocity);
        if !(finite(r) && finite(v) && mu.is_finite()) {
            return Err(OrbitError::NotFinite);
        }
        if mu <= 0.0 {
            return Err(OrbitError::NoCenter);
        }
        let h = cross(r, v);
        let (radius, momentum) = (norm(r), norm(h));
        if radius == 0.0 || momentum == 0.0 {
            return Err(OrbitError::ZeroRadius);
        }
        let toward_periapsis = sub(scale(mu.recip(), cross(v, h)), scale(radius.recip(), r));
        let eccentricity = norm(toward_periapsis);
        let horizontal = h[0].hypot(h[1]);
        let ascending_node = if horizontal <= 1e-12 * momentum { 0.0 } else { h[0].atan2(-h[1]) };
        let node = [ascending_node.cos(), ascending_node.sin(), 0.0];
        let across = scale(momentum.recip(), cross(h, node));
        let angle = |a: V3| dot(a, across).atan2(dot(a, node));
        let argument_of_periapsis = if eccentricity < 1e-12 { 0.0 } else { angle(toward_periapsis) };
        Ok(Self {
            semi_latus_rectum: momentum * (momentum / mu),
            eccentricity,
            inclination: horizontal.atan2(h[2]),
            ascending_node,
            argument_of_periapsis,
            true_anomaly: wrapped(angle(r) - argument_of_periapsis),
        })
    }

    /// Unit vectors toward periapsis and 90° ahead of it.
    fn axes(&self) -> (V3, V3) {
        let (si, ci) = self.inclination.sin_cos();
        let (sn, cn) = self.ascending_node.sin_cos();
        let (sw, cw) = self.argument_of_periapsis.sin_cos();
        let p = [cn * cw - sn * sw * ci, sn * cw + cn * sw * ci, sw * si];
        let q = [-cn * sw - sn * cw * ci, -sn * sw + cn * cw * ci, cw * si];
        (p, q)
    }
}

/// `angle` within -pi..=pi.
fn wrapped(angle: f64) -> f64 {
    if angle > PI {
        angle - TAU
    } else if angle < -PI {
        angle + TAU
    } else {
        angle
    }
}
