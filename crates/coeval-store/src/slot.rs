//! A slot: the local number of an entity or of one of its paths, and what the pump knows of it.
use crate::cell::Cell;
use crate::entity::EntityNode;
use coeval_merge::{Digest, SlotKey};
use coeval_time::Stamp;
use parking_lot::Mutex;
use std::sync::Arc;

pub(crate) struct Slot {
    pub(crate) key: SlotKey,
    pub(crate) entity: Arc<EntityNode>,
    pub(crate) pump: Mutex<Pump>,
}

/// Who changed a slot since the last drain, other than by fast writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Pending {
    /// Nobody.
    #[default]
    Nobody,
    /// Another peer: it was received.
    Received,
    /// This peer, perhaps among others.
    Written,
}

/// What the pump keeps of a slot.
#[derive(Default)]
pub(crate) struct Pump {
    /// Position of the last drain that took this slot; 0: none yet.
    pub(crate) drained_at: u64,
    /// The stamp of the leaf when it was last drained.
    pub(crate) drained_leaf: Stamp,
    /// Whether watches know it as there.
    pub(crate) shown: bool,
    /// Changed by more than a fast write: the state must be asked of the tree.
    pub(crate) structural: bool,
    pub(crate) pending: Pending,
    /// What the slot adds to the digest of its entity.
    pub(crate) digest: Digest,
    /// The parameter's first cell; `None` before there is one, and after the entity was deleted.
    pub(crate) cell: Option<Arc<Cell>>,
}

impl Slot {
    pub(crate) fn new(key: SlotKey, entity: Arc<EntityNode>) -> Self {
        Self { key, entity, pump: Mutex::default() }
    }

    /// Notes a structural change.
    pub(crate) fn touch(&self, by: Pending) {
        let mut pump = self.pump.lock();
        pump.structural = true;
        pump.note(by);
    }
}

impl Pump {
    /// Notes who changed the slot.
    pub(crate) fn note(&mut self, by: Pending) {
        self.pending = self.pending.max(by);
    }

    /// Whether something was written here since the last drain; the leaf now is of `leaf`, issued here if `own`.
    pub(crate) fn is_written(&self, leaf: Stamp, own: bool) -> bool {
        // A fast write leaves no note, but a stamp.
        self.pending == Pending::Written || (own && leaf > self.drained_leaf)
    }

    /// Who is behind the change being drained.
    pub(crate) fn take_pending(&mut self, leaf: Stamp, own: bool) -> Pending {
        let written = self.is_written(leaf, own);
        let pending = std::mem::take(&mut self.pending);
        self.drained_leaf = leaf;
        if written { Pending::Written } else { pending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Pending::{Nobody, Received, Written};
    use coeval_time::Incarnation;

    fn pending(notes: &[Pending], leaf: Stamp) -> Pending {
        let mut pump = Pump { drained_leaf: Stamp::new(5, Incarnation(1)), ..Pump::default() };
        notes.iter().for_each(|&by| pump.note(by));
        pump.take_pending(leaf, leaf.writer == Incarnation(1))
    }

    #[test]
    fn a_fast_write_is_known_by_its_stamp() {
        let theirs = Stamp::new(9, Incarnation(8));
        let ours = Stamp::new(9, Incarnation(1));
        assert_eq!(pending(&[], theirs), Nobody);
        assert_eq!(pending(&[], ours), Written);
        assert_eq!(pending(&[], Stamp::new(5, Incarnation(1))), Nobody);
        assert_eq!(pending(&[Received], theirs), Received);
        assert_eq!(pending(&[Received, Written], theirs), Written);
        assert_eq!(pending(&[Written, Received], theirs), Written);
        assert_eq!(pending(&[Received], ours), Written);
    }
}
