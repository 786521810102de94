//! A value with what was true when it was written.
use crate::Value;
use coeval_time::{Direction, Epoch, SimTime, Stamp};

/// The writer's time when it wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SampleMeta {
    /// The sim time the value is for.
    pub sim: SimTime,
    /// The newest jump the writer knew.
    pub epoch: Epoch,
    /// The way the writer's sim time ran.
    pub direction: Direction,
    /// A teleport: never interpolated or smoothed across.
    pub discontinuous: bool,
}

/// A value at a path, with its stamp and its writer's time.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Which write this is.
    pub stamp: Stamp,
    /// The writer's time.
    pub meta: SampleMeta,
    /// The value. Never a [`Value::Map`].
    pub value: Value,
}
