//! When a publisher must send: its exact truth against what readers predict from the register.
use crate::linear::{angle_between, norm, sub};
use crate::models::{attitude, is_finite};
use coeval_time::{WallDuration, WallTime};
use coeval_value::Motion;

/// What a publisher's readers may be off by, and how often it speaks at least and at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thresholds {
    /// Largest Euclidean position error left uncorrected, m.
    pub position: f64,
    /// Largest rotation left uncorrected, rad.
    pub angle: f64,
    /// Longest silence, wall time.
    pub heartbeat: WallDuration,
    /// Shortest time between corrections, wall time; zero for none. Heartbeats and first writes ignore it.
    pub min_interval: WallDuration,
}

impl Default for Thresholds {
    /// 1 m, 3°, a heartbeat every 5 s, no minimum interval.
    fn default() -> Self {
        Self {
            position: 1.0,
            angle: 3.0_f64.to_radians(),
            heartbeat: WallDuration::from_secs(5),
            min_interval: WallDuration::ZERO,
        }
    }
}

/// Why a publisher sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// It has not sent yet, or the register holds no motion.
    First,
    /// Model, frame or gravitational parameter differ from the register's.
    Changed,
    /// The position error, m, is above its threshold.
    Position(f64),
    /// The rotation error, rad, is above its threshold.
    Rotation(f64),
    /// The clock jumped or turned round since it last sent.
    Turned,
    /// The heartbeat is due.
    Heartbeat,
}

/// What to do with a truth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Decision {
    /// Send it.
    Publish(Reason),
    /// Readers are near enough: errors in m and rad.
    Keep {
        /// Position error, m.
        position: f64,
        /// Rotation error, rad.
        angle: f64,
    },
    /// A correction is needed, and waits for the minimum interval.
    Wait(Reason),
    /// The truth is not finite: it must not be sent, and its author should hear of it.
    Refuse,
}

/// Decides for one motion. Holds nothing but its thresholds and when it last sent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Publisher {
    /// The thresholds; may change between decisions.
    pub thresholds: Thresholds,
    last_sent: Option<WallTime>,
}

impl Publisher {
    /// A publisher that has not sent yet.
    pub const fn new(thresholds: Thresholds) -> Self {
        Self { thresholds, last_sent: None }
    }

    /// When it last sent.
    pub const fn last_sent(&self) -> Option<WallTime> {
        self.last_sent
    }

    /// Notes that a truth was sent at `now`.
    pub const fn sent(&mut self, now: WallTime) {
        self.last_sent = Some(now);
    }

    /// Whether `truth` must be sent at wall instant `now`, given what the register (whoever wrote it) predicts for
    /// the truth's sim time: `None` when it holds no motion or predicts none.
    pub fn decide(&self, truth: &Motion, predicted: Option<&Motion>, now: WallTime) -> Decision {
        if !is_finite(truth) {
            return Decision::Refuse;
        }
        let (Some(predicted), Some(last)) = (predicted, self.last_sent) else {
            return Decision::Publish(Reason::First);
        };
        let silent = now.since(last);
        if silent >= self.thresholds.heartbeat {
            return Decision::Publish(Reason::Heartbeat);
        }
        let (position, angle) = errors(truth, predicted);
        let same = (truth.model, truth.frame, truth.mu) == (predicted.model, predicted.frame, predicted.mu);
        // Written so that a prediction that is not a number needs correcting.
        let near = |error: f64, limit: f64| error <= limit;
        let reason = if !same {
            Reason::Changed
        } else if !near(position, self.thresholds.position) {
            Reason::Position(position)
        } else if !near(angle, self.thresholds.angle) {
            Reason::Rotation(angle)
        } else {
            return Decision::Keep { position, angle };
        };
        if silent < self.thresholds.min_interval { Decision::Wait(reason) } else { Decision::Publish(reason) }
    }
}

/// Euclidean position error (m) and rotation angle (rad) between two motions in one frame.
pub fn errors(truth: &Motion, predicted: &Motion) -> (f64, f64) {
    let position = norm(sub(truth.position.unwrap_or_default(), predicted.position.unwrap_or_default()));
    let angle = angle_between(attitude(truth), attitude(predicted));
    let predicted_is_finite = predicted.orientation.is_none_or(crate::linear::finite_quat);
    (position, if predicted_is_finite { angle } else { f64::NAN })
}

/// Since when an author counts as lost: 2.4 heartbeats after it was last heard, once `now` is past that.
pub fn lost_since(last_heard: WallTime, heartbeat: WallDuration, now: WallTime) -> Option<WallTime> {
    let nanos = i128::from(heartbeat.as_nanos()) * 12 / 5;
    let limit = WallDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
    let due = last_heard.saturating_add(limit);
    (now >= due).then_some(due)
}
