//! Contexts: the session, the sim time and the wall instant that a thread reads and writes at.
use crate::{EditId, SimTime, WallTime};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Identity of a session: always new when hosted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub Uuid);

/// Identity of the newest clock jump in effect. Replicated; ordered as the fold orders edits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Epoch {
    /// When the jump took effect.
    pub at: WallTime,
    /// Which jump.
    pub jump: EditId,
}

impl Epoch {
    /// Before the first jump.
    pub const GENESIS: Self = Self {
        at: WallTime::from_nanos(0),
        jump: EditId { stamp: crate::Stamp { hlc: 0, writer: crate::Incarnation(0) }, index: 0 },
    };
}

/// The way sim time runs: the sign of the last non-zero rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub enum Direction {
    /// Sim time grows with wall time.
    #[default]
    Forward,
    /// Sim time falls with wall time.
    Backward,
}

/// What a thread reads and writes at: one reading of the session clock, or a sim time chosen with [`at`](Self::at).
///
/// Small and `Copy`; it never changes under its holder. There is no hidden clock read behind a read or a write.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Context {
    /// The session.
    pub session: SessionId,
    /// The sim time that reads evaluate at and writes are labeled with.
    pub sim: SimTime,
    /// The session wall instant of the clock reading.
    pub wall: WallTime,
    /// The rate of sim time per wall time in effect (0 while paused or stopped).
    pub rate: f64,
    /// The sign of the last non-zero rate.
    pub direction: Direction,
    /// Local count of discontinuities of the wall-to-sim mapping. Never sent.
    pub generation: u64,
    /// The newest jump in effect.
    pub epoch: Epoch,
    /// Whether this is the clock's own reading: false after [`at`](Self::at).
    pub live: bool,
}

impl Context {
    /// This context moved to sim time `sim`. Smoothing never applies to a moved context.
    #[must_use]
    pub const fn at(self, sim: SimTime) -> Self {
        Self { sim, live: false, ..self }
    }
}
