//! A value with what was true when it was written.
use crate::Value;
use coeval_time::{Direction, Epoch, SimTime, Stamp};
use serde::{Deserialize, Deserializer, Serialize, de};

/// The writer's time when it wrote.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
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

/// A value at a path, with its stamp and its writer's time. Compared by bits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Leaf {
    /// Which write this is.
    pub stamp: Stamp,
    /// The writer's time.
    pub meta: SampleMeta,
    /// The value. Never a [`Value::Map`]: setting a map is a replacement of the subtree, and decoders refuse one here.
    #[serde(deserialize_with = "no_map")]
    pub value: Value,
}

fn no_map<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    match Value::deserialize(from)? {
        Value::Map(_) => Err(de::Error::custom("a map as a leaf: a map is one leaf for each of its keys")),
        value => Ok(value),
    }
}
