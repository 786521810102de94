//! What a store refuses to outgrow.
use crate::append::CAPACITY;
use coeval_time::WallDuration;

/// Bounds of a store. Everything that a peer can make grow has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Entities known: living, deleted, and those written to before their creation arrived.
    pub entities: u32,
    /// Slots: one for each entity, one for each path ever used.
    pub slots: u32,
    /// Paths of one entity.
    pub paths_per_entity: u32,
    /// Paths that hold values of entities whose creation has not arrived.
    pub orphans: u32,
    /// Deleted entities. At this number *creation* is refused, never deletion.
    pub tombstones: u32,
    /// How large one value may be.
    pub value: coeval_value::Limits,
    /// Write-once entries of the `SimEntity`.
    pub entries: usize,
    /// Changes that one watch holds before it only says that it overflowed.
    pub watch_changes: usize,
    /// Wall time that the samples kept for reads at past times reach back.
    pub history_span: WallDuration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entities: 1 << 20,
            slots: 8 << 20,
            paths_per_entity: 65_536,
            orphans: 65_536,
            tombstones: 1 << 20,
            value: coeval_value::Limits { total: 1 << 20, ..coeval_value::Limits::MAX },
            entries: 1 << 18,
            watch_changes: 1 << 20,
            history_span: WallDuration::from_millis(250),
        }
    }
}

impl Limits {
    /// The bound on slots that the slot table can honor, leaving room for threads that check it at once.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.min(CAPACITY - (1 << 16))
    }
}
