//! Stamps: the total order of writes, hybrid-clock nanoseconds first, writer second.
use crate::WallTime;
use serde::{Deserialize, Serialize};

/// Identity of one opened peer: fresh random 64 bits each time, never reused. Zero and one are reserved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

/// The stamp of a write batch: hybrid-clock nanoseconds of session wall time, then the writer.
///
/// Totally ordered; unique per write batch. A hybrid clock (Kulkarni et al. 2014) kept in one integer: it follows
/// session wall time and never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// Hybrid-clock nanoseconds of session wall time since the Unix epoch.
    pub hlc: u64,
    /// Who wrote.
    pub writer: Incarnation,
}

impl Stamp {
    /// Below every stamp: "never".
    pub const NONE: Self = Self { hlc: 0, writer: Incarnation(0) };
    /// The stamp of a config's initial values: above [`NONE`](Self::NONE), below every write.
    pub const GENESIS: Self = Self { hlc: 0, writer: Incarnation(1) };

    /// A stamp from its parts.
    pub const fn new(hlc: u64, writer: Incarnation) -> Self {
        Self { hlc, writer }
    }

    /// Whether this is [`NONE`](Self::NONE).
    pub const fn is_none(self) -> bool {
        self.hlc == 0 && self.writer.0 == 0
    }

    /// The session wall time this stamp claims.
    pub const fn wall(self) -> WallTime {
        WallTime::from_nanos(self.hlc)
    }
}

/// Identity of one write-once entry (a clock edit, say): the stamp of its batch and its index in the batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct EditId {
    /// The stamp of the batch.
    pub stamp: Stamp,
    /// Position inside the batch.
    pub index: u32,
}
