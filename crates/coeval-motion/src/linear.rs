//! The few vector and quaternion operations that this crate needs, on plain arrays.
use coeval_value::Quat;

pub(crate) type V3 = [f64; 3];

/// Below this angle (rad) the rotation coefficients come from their series, above from closed forms: at 1 rad the
/// closed forms lose at most one digit to cancellation and ten terms of the series are exact to the last bit.
const SERIES_BELOW_RAD: f64 = 1.0;
const SERIES_TERMS: usize = 10;

pub(crate) const IDENTITY: Quat = Quat { x: 0.0, y: 0.0, z: 0.0, w: 1.0 };

#[inline]
pub(crate) fn add(a: V3, b: V3) -> V3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

#[inline]
pub(crate) fn sub(a: V3, b: V3) -> V3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline]
pub(crate) fn scale(k: f64, a: V3) -> V3 {
    [k * a[0], k * a[1], k * a[2]]
}

/// `a + k b`.
#[inline]
pub(crate) fn axpy(a: V3, k: f64, b: V3) -> V3 {
    [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]]
}

#[inline]
pub(crate) fn dot(a: V3, b: V3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[inline]
pub(crate) fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[inline]
pub(crate) fn norm(a: V3) -> f64 {
    dot(a, a).sqrt()
}

#[inline]
pub(crate) fn finite(a: V3) -> bool {
    a[0].is_finite() && a[1].is_finite() && a[2].is_finite()
}

#[inline]
pub(crate) fn finite_quat(q: Quat) -> bool {
    q.x.is_finite() && q.y.is_finite() && q.z.is_finite() && q.w.is_finite()
}

/// The unit quaternion along `q`; identity when `q` has no direction (zero, or not finite).
#[inline]
pub(crate) fn unit(q: Quat) -> Quat {
    let square = q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w;
    if !(square > 0.0 && square.is_finite()) {
        return IDENTITY;
    }
    let k = square.sqrt().recip();
    if !k.is_finite() {
        return IDENTITY;
    }
    Quat { x: k * q.x, y: k * q.y, z: k * q.z, w: k * q.w }
}

/// Hamilton product: rotate by `b`, then by `a`.
#[inline]
pub(crate) fn mul(a: Quat, b: Quat) -> Quat {
    Quat {
        x: a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
        y: a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
        z: a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
        w: a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
    }
}

#[inline]
pub(crate) fn inverse(q: Quat) -> Quat {
    Quat { x: -q.x, y: -q.y, z: -q.z, w: q.w }
}

/// `v` turned by the unit quaternion `q`.
#[inline]
pub(crate) fn rotate(q: Quat, v: V3) -> V3 {
    let axis = [q.x, q.y, q.z];
    let t = scale(2.0, cross(axis, v));
    add(axpy(v, q.w, t), cross(axis, t))
}

/// The rotation by the vector `phi` (rad along its axis): the exponential map, smooth through zero.
#[inline]
pub(crate) fn exp(phi: V3) -> Quat {
    let half = 0.5 * norm(phi);
    // sin(h)/h by its first terms where they are exact to the last bit.
    let k = if half < 1e-4 { 0.5 * (1.0 - half * half / 6.0) } else { 0.5 * half.sin() / half };
    unit(Quat { x: k * phi[0], y: k * phi[1], z: k * phi[2], w: half.cos() })
}

/// The rotation vector of a unit quaternion, the shorter way round (at most pi): the inverse of [`exp`].
pub(crate) fn log(q: Quat) -> V3 {
    let q = if q.w < 0.0 { Quat { x: -q.x, y: -q.y, z: -q.z, w: -q.w } } else { q };
    let axis = [q.x, q.y, q.z];
    let sine = norm(axis);
    let k = if sine < 1e-8 { 2.0 } else { 2.0 * sine.atan2(q.w) / sine };
    scale(k, axis)
}

/// The angle between two attitudes, rad, 0 to pi.
pub(crate) fn angle_between(a: Quat, b: Quat) -> f64 {
    norm(log(mul(inverse(unit(a)), unit(b))))
}

/// From `a` to `b` at constant rate the shorter way, at fraction `u` (Shoemake 1985, written as a rotation vector).
pub(crate) fn slerp(a: Quat, b: Quat, u: f64) -> Quat {
    let (a, b) = (unit(a), unit(b));
    unit(mul(a, exp(scale(u, log(mul(inverse(a), b))))))
}

/// `sum of (-1)^k square^k table[k]`.
#[inline]
fn series(square: f64, table: &[f64; SERIES_TERMS]) -> f64 {
    table.iter().rev().fold(0.0, |sum, term| term - square * sum)
}

/// `1 / ((2k + above)! (2k + over))`, and without the second factor when `over` is zero.
const fn table(above: usize, over: usize) -> [f64; SERIES_TERMS] {
    let mut terms = [0.0; SERIES_TERMS];
    let mut k = 0;
    while k < SERIES_TERMS {
        let mut product = if over == 0 { 1.0 } else { (2 * k + over) as f64 };
        let mut n = 2;
        while n <= 2 * k + above {
            product *= n as f64;
            n += 1;
        }
        terms[k] = 1.0 / product;
        k += 1;
    }
    terms
}

const B: [f64; SERIES_TERMS] = table(2, 0);
const C: [f64; SERIES_TERMS] = table(3, 0);
const D: [f64; SERIES_TERMS] = table(1, 3);
const E: [f64; SERIES_TERMS] = table(2, 4);

/// Coefficients of the first two time integrals of a rotation by `theta`:
/// `integral exp([phi] u) du = I + b [phi] + c [phi]^2` and `integral u exp([phi] u) du = I/2 + d [phi] + e [phi]^2`.
pub(crate) struct Integrals {
    pub(crate) b: f64,
    pub(crate) c: f64,
    pub(crate) d: f64,
    pub(crate) e: f64,
}

impl Integrals {
    pub(crate) fn of(theta: f64) -> Self {
        if theta < SERIES_BELOW_RAD {
            let square = theta * theta;
            return Self {
                b: series(square, &B),
                c: series(square, &C),
                d: series(square, &D),
                e: series(square, &E),
            };
        }
        let (sin, cos) = theta.sin_cos();
        let square = theta * theta;
        Self {
            b: (1.0 - cos) / square,
            c: (theta - sin) / (square * theta),
            d: (sin - theta * cos) / (square * theta),
            e: (0.5 - (cos + theta * sin - 1.0) / square) / square,
        }
    }

    /// `integral over 0..1 of exp([phi] u) v du`.
    pub(crate) fn first(&self, phi: V3, v: V3) -> V3 {
        let once = cross(phi, v);
        axpy(axpy(v, self.b, once), self.c, cross(phi, once))
    }

    /// `integral over 0..1 of u exp([phi] u) a du`.
    pub(crate) fn second(&self, phi: V3, a: V3) -> V3 {
        let once = cross(phi, a);
        axpy(axpy(scale(0.5, a), self.d, once), self.e, cross(phi, once))
    }
}
