//! Clock edits: the replicated, write-once facts that the shared clock is folded from.
use crate::{EditId, SimDuration, SimTime, WallTime};

/// What a session's clock starts from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Genesis {
    /// Session wall time at which the clock starts.
    pub wall: WallTime,
    /// Sim time at that instant.
    pub sim: SimTime,
    /// Seconds of sim time per second of wall time; finite.
    pub scale: f64,
}

/// What an edit does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum EditKind {
    /// Sets the rate of sim time per wall time; finite, zero and negative included.
    Scale(f64),
    /// Holds sim time, independently of the scale.
    Pause,
    /// Ends a pause and a stop.
    Resume,
    /// Moves sim time to an instant.
    JumpTo(SimTime),
    /// Moves sim time by a length.
    JumpBy(SimDuration),
    /// When sim time reaches the instant in the direction of the rate it is exactly that and stopped, once.
    StopAt(SimTime),
    /// Withdraws a waiting stop, or an edit whose `at` is later than this one's.
    Cancel(EditId),
}

/// One clock edit. Folded in `(at, id)` order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edit {
    /// Identity: stamp and index.
    pub id: EditId,
    /// Session wall time at which it takes effect.
    pub at: WallTime,
    /// What it does.
    pub kind: EditKind,
}
