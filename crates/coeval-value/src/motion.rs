//! Kinematic state as one atomic value, so that position and velocity never come from different writes.
use crate::{EntityId, Quat};
use serde::{Deserialize, Serialize};

/// A scalar that changes steadily: `value` at the sample's sim time, `rate` per second of sim time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, Serialize, Deserialize)]
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
///
/// ```
/// use coeval_value::{Motion, MotionModel};
/// let m = Motion::at([0.0, 0.0, 100.0]).velocity([10.0, 0.0, 0.0]).acceleration([0.0, 0.0, -9.8]);
/// assert_eq!(m.model, MotionModel::Fvw);
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

impl MotionModel {
    /// Its code: for 1 to 9 that of IEEE 1278.1.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The model of a code; `None` for an unknown one.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Static,
            2 => Self::Fpw,
            3 => Self::Rpw,
            4 => Self::Rvw,
            5 => Self::Fvw,
            6 => Self::Fpb,
            7 => Self::Rpb,
            8 => Self::Rvb,
            9 => Self::Fvb,
            16 => Self::TwoBody,
            _ => return None,
        })
    }

    /// Whether velocity and acceleration are components along body axes.
    pub const fn is_body(self) -> bool {
        matches!(self, Self::Fpb | Self::Rpb | Self::Rvb | Self::Fvb)
    }
}

/// Builders. Each setter chooses the model anew from the components present, within the family in use: world axes,
/// body axes after [`body_axes`](Self::body_axes), two-body after [`orbit`](Self::orbit). To force another model, call
/// [`model`](Self::model) last.
impl Motion {
    /// Bit of [`position`](Self::position) in the presence mask.
    pub const POSITION: u8 = 1;
    /// Bit of [`velocity`](Self::velocity) in the presence mask.
    pub const VELOCITY: u8 = 1 << 1;
    /// Bit of [`acceleration`](Self::acceleration) in the presence mask.
    pub const ACCELERATION: u8 = 1 << 2;
    /// Bit of [`orientation`](Self::orientation) in the presence mask.
    pub const ORIENTATION: u8 = 1 << 3;
    /// Bit of [`angular_velocity`](Self::angular_velocity) in the presence mask.
    pub const ANGULAR_VELOCITY: u8 = 1 << 4;
    /// Bit of [`angular_acceleration`](Self::angular_acceleration) in the presence mask.
    pub const ANGULAR_ACCELERATION: u8 = 1 << 5;
    /// Bit of [`mu`](Self::mu) in the presence mask.
    pub const MU: u8 = 1 << 6;
    /// Bit of [`frame`](Self::frame) in the presence mask.
    pub const FRAME: u8 = 1 << 7;

    /// At rest at `position` (m, in the parent frame).
    pub fn at(position: impl Into<[f64; 3]>) -> Self {
        Self { position: Some(position.into()), ..Self::default() }
    }

    /// On a two-body orbit about the origin of its frame: position (m), velocity (m/s), and the gravitational
    /// parameter of the central body (m³/s²).
    pub fn orbit(position: impl Into<[f64; 3]>, velocity: impl Into<[f64; 3]>, mu: f64) -> Self {
        let (position, velocity) = (Some(position.into()), Some(velocity.into()));
        Self { model: MotionModel::TwoBody, position, velocity, mu: Some(mu), ..Self::default() }
    }

    /// With a position, m, in the parent frame.
    #[must_use]
    pub fn position(self, v: impl Into<[f64; 3]>) -> Self {
        Self { position: Some(v.into()), ..self }.derived()
    }

    /// With a velocity, m/s, in the parent frame (body components after [`body_axes`](Self::body_axes)).
    #[must_use]
    pub fn velocity(self, v: impl Into<[f64; 3]>) -> Self {
        Self { velocity: Some(v.into()), ..self }.derived()
    }

    /// With an acceleration, m/s², in the parent frame (after [`body_axes`](Self::body_axes): the derivative of the
    /// body velocity components).
    #[must_use]
    pub fn acceleration(self, v: impl Into<[f64; 3]>) -> Self {
        Self { acceleration: Some(v.into()), ..self }.derived()
    }

    /// With an attitude, `parent_from_body`.
    #[must_use]
    pub fn orientation(self, q: impl Into<Quat>) -> Self {
        Self { orientation: Some(q.into()), ..self }.derived()
    }

    /// With an angular velocity of the body relative to its parent, rad/s, in body axes.
    #[must_use]
    pub fn angular_velocity(self, v: impl Into<[f64; 3]>) -> Self {
        Self { angular_velocity: Some(v.into()), ..self }.derived()
    }

    /// With an angular acceleration, rad/s², in body axes.
    #[must_use]
    pub fn angular_acceleration(self, v: impl Into<[f64; 3]>) -> Self {
        Self { angular_acceleration: Some(v.into()), ..self }.derived()
    }

    /// Relative to the entity `frame`.
    #[must_use]
    pub fn relative_to(self, frame: EntityId) -> Self {
        Self { frame: Some(frame), ..self }
    }

    /// With velocity and acceleration along body axes.
    #[must_use]
    pub fn body_axes(self) -> Self {
        Self { model: MotionModel::Fpb, ..self }.derived()
    }

    /// With this model, whatever components are present. Call it last: the setters choose the model anew.
    #[must_use]
    pub fn model(self, model: MotionModel) -> Self {
        Self { model, ..self }
    }

    fn derived(self) -> Self {
        use MotionModel as M;
        let turns = self.angular_velocity.is_some() || self.angular_acceleration.is_some();
        let model = match (self.model, turns, self.acceleration.is_some()) {
            (M::TwoBody, ..) => M::TwoBody,
            (m, false, false) if m.is_body() => M::Fpb,
            (m, false, true) if m.is_body() => M::Fvb,
            (m, true, false) if m.is_body() => M::Rpb,
            (m, true, true) if m.is_body() => M::Rvb,
            (_, true, false) => M::Rpw,
            (_, true, true) => M::Rvw,
            (_, false, true) => M::Fvw,
            (_, false, false) if self.velocity.is_some() => M::Fpw,
            _ => M::Static,
        };
        Self { model, ..self }
    }

    /// Which components are present: the or of the mask bits.
    pub fn presence(&self) -> u8 {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        bit(self.position.is_some(), Self::POSITION)
            | bit(self.velocity.is_some(), Self::VELOCITY)
            | bit(self.acceleration.is_some(), Self::ACCELERATION)
            | bit(self.orientation.is_some(), Self::ORIENTATION)
            | bit(self.angular_velocity.is_some(), Self::ANGULAR_VELOCITY)
            | bit(self.angular_acceleration.is_some(), Self::ANGULAR_ACCELERATION)
            | bit(self.mu.is_some(), Self::MU)
            | bit(self.frame.is_some(), Self::FRAME)
    }

    /// Whether every component present is finite.
    pub fn is_finite(&self) -> bool {
        let vectors = [
            self.position,
            self.velocity,
            self.acceleration,
            self.angular_velocity,
            self.angular_acceleration,
        ];
        vectors.iter().flatten().flatten().all(|v| v.is_finite())
            && self.orientation.is_none_or(Quat::is_finite)
            && self.mu.is_none_or(f64::is_finite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MotionModel as M;

    #[test]
    fn the_model_follows_from_the_components() {
        let v = [1.0, 2.0, 3.0];
        let at = Motion::at([0.0; 3]);
        assert_eq!(at.model, M::Static);
        assert_eq!(at.orientation(Quat::IDENTITY).model, M::Static);
        assert_eq!(at.velocity(v).model, M::Fpw);
        assert_eq!(at.velocity(v).angular_velocity(v).model, M::Rpw);
        assert_eq!(at.acceleration(v).angular_velocity(v).model, M::Rvw);
        assert_eq!(at.acceleration(v).model, M::Fvw);
        assert_eq!(at.body_axes().velocity(v).model, M::Fpb);
        assert_eq!(at.velocity(v).angular_velocity(v).body_axes().model, M::Rpb);
        assert_eq!(at.body_axes().acceleration(v).angular_velocity(v).model, M::Rvb);
        assert_eq!(at.acceleration(v).body_axes().model, M::Fvb);
        assert_eq!(Motion::orbit(v, v, 1.0).angular_velocity(v).model, M::TwoBody);
        assert_eq!(at.velocity(v).model(M::Static).model, M::Static);
    }

    #[test]
    fn every_component_must_be_finite() {
        let m = Motion::orbit([1.0; 3], [1.0; 3], 1.0).orientation(Quat::IDENTITY);
        assert!(m.is_finite());
        assert!(!m.angular_acceleration([0.0, f64::NAN, 0.0]).is_finite());
        assert!(!m.orientation(Quat { w: f64::INFINITY, ..Quat::IDENTITY }).is_finite());
        assert!(!Motion { mu: Some(f64::NAN), ..m }.is_finite());
    }

    #[test]
    fn codes_name_the_models() {
        let known: Vec<u8> = (0..=255).filter(|c| M::from_code(*c).is_some_and(|m| m.code() == *c)).collect();
        assert_eq!(known, [1, 2, 3, 4, 5, 6, 7, 8, 9, 16]);
    }
}
