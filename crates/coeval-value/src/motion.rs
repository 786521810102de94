//! Kinematic state as one atomic value, so that position and velocity never come from different writes.
use crate::EntityId;

/// A rotation as a Hamilton unit quaternion, `parent_from_body`: it rotates body-frame vectors into the parent frame.
#[derive(Clone, Copy, PartialEq, Debug)]
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

/// A scalar that changes steadily: `value` at the sample's sim time, `rate` per second of sim time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ramp {
    /// The value at the sample time.
    pub value: f64,
    /// Change per second of sim time.
    pub rate: f64,
}

/// How a motion continues from its sample. Codes 1 to 9 are the dead-reckoning algorithms of IEEE 1278.1.
///
/// `F`ixed or `R`otating; rate of `P`osition or of `V`elocity held; `W`orld or `B`ody axes. In the body models the
/// acceleration is the derivative of the body velocity *components*.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum MotionModel {
    /// Does not move.
    #[default]
    Static = 1,
    /// Constant velocity, world axes.
    Fpw = 2,
    /// Constant velocity and angular velocity, world axes.
    Rpw = 3,
    /// Constant acceleration and angular velocity, world axes.
    Rvw = 4,
    /// Constant acceleration, world axes.
    Fvw = 5,
    /// Constant body velocity, body axes fixed.
    Fpb = 6,
    /// Constant body velocity and angular velocity.
    Rpb = 7,
    /// Constant body acceleration and angular velocity.
    Rvb = 8,
    /// Constant body acceleration, body axes fixed.
    Fvb = 9,
    /// Two-body (Kepler) orbit about the origin of the frame; needs `mu`. Valid everywhere (global).
    TwoBody = 16,
}

/// Position, attitude and their rates, relative to the entity `frame` (or to the world when `None`).
///
/// SI units: meters, seconds, radians. Absent components count as zero (orientation: as identity).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Motion {
    /// How it continues from the sample.
    pub model: MotionModel,
    /// m, in the parent frame.
    pub position: Option<[f64; 3]>,
    /// m/s, in the parent frame (body components in the body models).
    pub velocity: Option<[f64; 3]>,
    /// m/s², in the parent frame (derivative of the body velocity components in the body models).
    pub acceleration: Option<[f64; 3]>,
    /// `parent_from_body`.
    pub orientation: Option<Quat>,
    /// rad/s, of the body relative to its parent, in body axes.
    pub angular_velocity: Option<[f64; 3]>,
    /// rad/s², in body axes.
    pub angular_acceleration: Option<[f64; 3]>,
    /// Gravitational parameter of the central body, m³/s², for [`MotionModel::TwoBody`].
    pub mu: Option<f64>,
    /// The entity this motion is relative to.
    pub frame: Option<EntityId>,
}
