//! Rotations: Hamilton unit quaternions, and the little algebra that simulations need of them.
use serde::{Deserialize, Serialize};
use std::ops::Mul;

/// A rotation as a Hamilton unit quaternion, `parent_from_body`: it rotates body-frame vectors into the parent frame.
///
/// `parent_from_body * body_from_part` is `parent_from_part`. `q` and `-q` are the same rotation and different values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quat {
    /// First imaginary part.
    pub x: f64,
    /// Second imaginary part.
    pub y: f64,
    /// Third imaginary part.
    pub z: f64,
    /// Real part.
    pub w: f64,
}

/// Below this sine of half the angle between two rotations, slerp and lerp agree to the last bits of an `f64`.
const NEARLY_PARALLEL: f64 = 1e-8;

impl Quat {
    /// No rotation.
    pub const IDENTITY: Self = Self { x: 0.0, y: 0.0, z: 0.0, w: 1.0 };

    /// `[x, y, z, w]`: real part last.
    pub const fn to_array(self) -> [f64; 4] {
        [self.x, self.y, self.z, self.w]
    }

    /// From `[x, y, z, w]`: real part last.
    pub const fn from_array([x, y, z, w]: [f64; 4]) -> Self {
        Self { x, y, z, w }
    }

    /// The rotation by `angle` (rad, right-handed) about `axis` (any length); `None` for an axis without direction or
    /// an angle that is not finite.
    pub fn from_axis_angle(axis: impl Into<[f64; 3]>, angle: f64) -> Option<Self> {
        let [x, y, z] = axis.into();
        let Self { x, y, z, .. } = Self { x, y, z, w: 0.0 }.normalized()?;
        let (sin, cos) = (angle / 2.0).sin_cos();
        Some(Self { x: x * sin, y: y * sin, z: z * sin, w: cos }).filter(|q| q.is_finite())
    }

    /// Of length one; `None` if it has no direction (zero or not finite).
    pub fn normalized(self) -> Option<Self> {
        // Scaled by the largest part first: squares of large or tiny parts would leave the range of f64.
        let largest = self.to_array().iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if !self.is_finite() || largest == 0.0 {
            return None;
        }
        let scaled = self.to_array().map(|v| v / largest);
        let length = scaled.iter().map(|v| v * v).sum::<f64>().sqrt();
        Some(Self::from_array(scaled.map(|v| v / length)))
    }

    /// The inverse rotation of a unit quaternion.
    #[must_use]
    pub const fn conj(self) -> Self {
        Self { x: -self.x, y: -self.y, z: -self.z, w: self.w }
    }

    /// Rotates a vector: body components to parent components.
    pub fn rotate(self, v: impl Into<[f64; 3]>) -> [f64; 3] {
        // v + 2 u × (u × v + w v), with u the imaginary part: the expanded q v q*.
        let v = v.into();
        let u = [self.x, self.y, self.z];
        let a = cross(u, v);
        let b = cross(u, std::array::from_fn(|i| a[i] + self.w * v[i]));
        std::array::from_fn(|i| v[i] + 2.0 * b[i])
    }

    /// The angle of the rotation between the two, rad, 0 to π. Accurate for small and large angles alike.
    pub fn angle_to(self, other: Self) -> f64 {
        let d = self.conj() * other;
        2.0 * (d.x * d.x + d.y * d.y + d.z * d.z).sqrt().atan2(d.w.abs())
    }

    /// From `self` (at `t` = 0) to `other` (at 1) at constant angular velocity by the shorter way (Shoemake 1985).
    /// Values of `t` outside 0 to 1 continue the turn.
    #[must_use]
    pub fn slerp(self, other: Self, t: f64) -> Self {
        let dot = self.to_array().iter().zip(other.to_array()).map(|(a, b)| a * b).sum::<f64>();
        let sign = if dot < 0.0 { -1.0 } else { 1.0 };
        let half = self.angle_to(other) / 2.0;
        let sin = half.sin();
        let (a, b) = if sin < NEARLY_PARALLEL {
            (1.0 - t, t)
        } else {
            (((1.0 - t) * half).sin() / sin, (t * half).sin() / sin)
        };
        let mut parts = self.to_array();
        parts.iter_mut().zip(other.to_array()).for_each(|(p, o)| *p = a * *p + sign * b * o);
        let mixed = Self::from_array(parts);
        mixed.normalized().unwrap_or(mixed)
    }

    /// Whether every part is finite.
    pub fn is_finite(self) -> bool {
        self.to_array().iter().all(|v| v.is_finite())
    }
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

impl Default for Quat {
    fn default() -> Self {
        Self::IDENTITY
    }
}

/// The Hamilton product: first the right rotation, then the left.
impl Mul for Quat {
    type Output = Self;

    fn mul(self, r: Self) -> Self {
        Self {
            x: self.w * r.x + self.x * r.w + self.y * r.z - self.z * r.y,
            y: self.w * r.y - self.x * r.z + self.y * r.w + self.z * r.x,
            z: self.w * r.z + self.x * r.y - self.y * r.x + self.z * r.w,
            w: self.w * r.w - self.x * r.x - self.y * r.y - self.z * r.z,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_PI_2, PI};

    fn near(a: [f64; 3], b: [f64; 3]) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14), "{a:?} is not {b:?}");
    }

    #[test]
    fn a_quarter_turn_about_z_takes_x_to_y() {
        let q = Quat::from_axis_angle([0.0, 0.0, 5.0], FRAC_PI_2).unwrap();
        near(q.rotate([1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]);
        near(q.conj().rotate([0.0, 1.0, 0.0]), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn a_product_rotates_by_the_right_factor_first() {
        let a = Quat::from_axis_angle([1.0, 2.0, 3.0], 0.7).unwrap();
        let b = Quat::from_axis_angle([-1.0, 0.5, 0.1], 2.1).unwrap();
        near((a * b).rotate([1.0, -2.0, 0.5]), a.rotate(b.rotate([1.0, -2.0, 0.5])));
    }

    #[test]
    fn tiny_angles_are_not_lost() {
        let q = Quat::from_axis_angle([0.0, 1.0, 0.0], 1e-12).unwrap();
        assert!((Quat::IDENTITY.angle_to(q) - 1e-12).abs() < 1e-24);
        assert!(
            (Quat::IDENTITY.angle_to(Quat::from_axis_angle([0.0, 1.0, 0.0], PI).unwrap()) - PI).abs() < 1e-15
        );
    }

    #[test]
    fn slerp_takes_the_shorter_way_at_constant_rate() {
        let a = Quat::from_axis_angle([0.0, 0.0, 1.0], 0.2).unwrap();
        let b = Quat::from_axis_angle([0.0, 0.0, 1.0], 1.0).unwrap();
        let minus_b = Quat::from_array(b.to_array().map(|v| -v));
        for t in [0.0, 0.25, 1.0, 1.5, -0.5] {
            let want = Quat::from_axis_angle([0.0, 0.0, 1.0], 0.2 + 0.8 * t).unwrap();
            assert!(a.slerp(b, t).angle_to(want) < 1e-14);
            assert!(a.slerp(minus_b, t).angle_to(want) < 1e-14);
        }
        assert!(a.slerp(a, 0.5).angle_to(a) < 1e-15);
    }

    #[test]
    fn lengths_at_the_ends_of_the_range_normalize() {
        for scale in [1e-300, 1.0, 1e300] {
            let q = Quat::from_array([scale, scale, scale, scale]).normalized().unwrap();
            assert!(q.to_array().iter().all(|v| (v - 0.5).abs() < 1e-15));
        }
        assert_eq!(Quat::from_array([0.0; 4]).normalized(), None);
        assert_eq!(Quat::from_array([f64::NAN, 0.0, 0.0, 1.0]).normalized(), None);
        assert_eq!(Quat::from_axis_angle([0.0; 3], 1.0), None);
    }
}
