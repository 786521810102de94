//! Named conversions to and from the conventions of other worlds. Nothing here is guessed: each says whose it is.
//!
//! coeval's own: right-handed axes, meters, Hamilton quaternions `parent_from_body` with fields named `x, y, z, w`.
use crate::Quat;
use std::f64::consts::FRAC_PI_2;

/// Within this sine of straight up or down, yaw and roll turn about one axis and only their sum is known.
const GIMBAL_LOCK: f64 = 1.0 - 1e-15;

impl Quat {
    /// From the attitude quaternion of SpaceFOM (SISO-STD-018): scalar first, passive. It transforms components from
    /// the parent frame to the body frame, so its vector part has the opposite sign of ours.
    pub const fn from_spacefom([scalar, x, y, z]: [f64; 4]) -> Self {
        Self { x: -x, y: -y, z: -z, w: scalar }
    }

    /// As the attitude quaternion of SpaceFOM: `[scalar, x, y, z]`, passive (parent components to body components).
    pub const fn to_spacefom(self) -> [f64; 4] {
        [self.w, -self.x, -self.y, -self.z]
    }

    /// From the Euler angles of DIS (IEEE 1278.1), rad: from axes aligned with the parent, turn by `psi` about z, then
    /// by `theta` about the new y, then by `phi` about the new x.
    ///
    /// DIS measures them from the geocentric Earth-fixed frame; here the parent is whatever frame the motion is in.
    pub fn from_dis_euler(psi: f64, theta: f64, phi: f64) -> Self {
        let (sin_z, cos_z) = (psi / 2.0).sin_cos();
        let (sin_y, cos_y) = (theta / 2.0).sin_cos();
        let (sin_x, cos_x) = (phi / 2.0).sin_cos();
        let about_z = Self { z: sin_z, w: cos_z, x: 0.0, y: 0.0 };
        let about_y = Self { y: sin_y, w: cos_y, x: 0.0, z: 0.0 };
        let about_x = Self { x: sin_x, w: cos_x, y: 0.0, z: 0.0 };
        about_z * about_y * about_x
    }

    /// The Euler angles of DIS, rad: `(psi, theta, phi)` with theta in ±π/2 and the others in ±π. Straight up or down,
    /// where only their sum or difference is known, phi is 0.
    pub fn to_dis_euler(self) -> (f64, f64, f64) {
        let Self { x, y, z, w } = self;
        let sin_theta = 2.0 * (w * y - x * z);
        if sin_theta.abs() > GIMBAL_LOCK {
            let psi = 2.0 * (-x * sin_theta.signum()).atan2(w);
            return (wrap(psi), FRAC_PI_2.copysign(sin_theta), 0.0);
        }
        let psi = (2.0 * (x * y + w * z)).atan2(1.0 - 2.0 * (y * y + z * z));
        let phi = (2.0 * (y * z + w * x)).atan2(1.0 - 2.0 * (x * x + y * y));
        (psi, sin_theta.asin(), phi)
    }

    /// The same attitude in a left-handed world whose y axis is mirrored (x forward, y right, z up). The conversion is
    /// its own inverse.
    #[must_use]
    pub const fn mirrored_y(self) -> Self {
        Self { x: -self.x, y: self.y, z: -self.z, w: self.w }
    }
}

/// An angle in ±2π brought into ±π.
fn wrap(angle: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    if angle > PI {
        angle - TAU
    } else if angle < -PI {
        angle + TAU
    } else {
        angle
    }
}

/// A position, velocity or acceleration in meters, right-handed, for a left-handed engine in centimeters whose y axis
/// is mirrored (x forward, y right, z up, as Unreal has it).
pub fn to_left_handed_cm([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x * 100.0, -y * 100.0, z * 100.0]
}

/// A position, velocity or acceleration from a left-handed engine in centimeters with a mirrored y axis, as meters.
pub fn from_left_handed_cm([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x / 100.0, -y / 100.0, z / 100.0]
}

/// An angular velocity or acceleration in a world with a mirrored y axis: an axial vector, so the *other* components
/// change sign. Its own inverse; rad/s stay rad/s.
pub const fn axial_mirrored_y([x, y, z]: [f64; 3]) -> [f64; 3] {
    [-x, y, -z]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: [f64; 3], b: [f64; 3]) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?} is not {b:?}");
    }

    #[test]
    fn spacefom_takes_parent_components_to_body_components() {
        // A frame turned a quarter about z: the parent's x axis has body components (0, -1, 0).
        let half = FRAC_PI_2 / 2.0;
        let q = Quat::from_spacefom([half.cos(), 0.0, 0.0, -half.sin()]);
        near(q.rotate([1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]);
        assert_eq!(Quat::from_spacefom(q.to_spacefom()), q);
    }

    #[test]
    fn dis_angles_turn_psi_then_theta_then_phi() {
        // Nose: yaw 90° points along y, pitch up 90° (about y) points along -z.
        near(Quat::from_dis_euler(FRAC_PI_2, 0.0, 0.0).rotate([1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]);
        near(Quat::from_dis_euler(0.0, FRAC_PI_2, 0.0).rotate([1.0, 0.0, 0.0]), [0.0, 0.0, -1.0]);
        near(Quat::from_dis_euler(0.0, 0.0, FRAC_PI_2).rotate([0.0, 1.0, 0.0]), [0.0, 0.0, 1.0]);
        // After yaw, pitch is about the new y axis.
        near(Quat::from_dis_euler(FRAC_PI_2, FRAC_PI_2, 0.0).rotate([0.0, 0.0, 1.0]), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn dis_angles_come_back() {
        for psi in [-3.0, -1.0, 0.0, 2.5] {
            for theta in [-FRAC_PI_2, -1.2, 0.0, 0.9, FRAC_PI_2] {
                for phi in [-2.9, 0.0, 0.4, 3.1] {
                    let q = Quat::from_dis_euler(psi, theta, phi);
                    let (a, b, c) = q.to_dis_euler();
                    let error = q.angle_to(Quat::from_dis_euler(a, b, c));
                    assert!(error < 1e-7, "{psi} {theta} {phi}: {a} {b} {c} is off by {error} rad");
                }
            }
        }
    }

    #[test]
    fn the_left_handed_world_sees_the_same_turn() {
        let q = Quat::from_axis_angle([0.3, -0.8, 0.5], 1.1).unwrap();
        let v = [1.0, 2.0, 3.0];
        let there = q.mirrored_y().rotate(to_left_handed_cm(v));
        near(from_left_handed_cm(there), q.rotate(v));
        near(axial_mirrored_y(axial_mirrored_y(v)), v);
    }
}
