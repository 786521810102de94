//! A slot: the local number of an entity or of one of its paths, and what the pump knows of it.
use crate::cell::Cell;
use crate::entity::EntityNode;
use coeval_merge::{Digest, LinkTag, NodeState, Origin, SlotKey};
use coeval_time::{Incarnation, Stamp};
use parking_lot::Mutex;
use std::sync::Arc;

pub(crate) struct Slot {
    pub(crate) key: SlotKey,
    pub(crate) entity: Arc<EntityNode>,
    pub(crate) pump: Mutex<Pump>,
}

/// Who changed a slot since the last drain, other than by fast writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Pending {
    /// Nobody.
    #[default]
    Nobody,
    /// This peer, or several: the change goes to everyone.
    Local,
    /// One author, over one link. `leaf`: nothing but the leaf.
    Remote { link: LinkTag, author: Incarnation, leaf: bool },
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
        self.pending = match (self.pending, by) {
            (before, Pending::Nobody) => before,
            (Pending::Nobody, by) => by,
            (
                Pending::Remote { link: a, author: x, leaf: before },
                Pending::Remote { link: b, author: y, leaf },
            ) if a == b && x == y => Pending::Remote { link: a, author: x, leaf: leaf && before },
            // A leaf that replaces a leaf leaves nothing of the earlier one to be sent.
            (Pending::Remote { leaf: true, .. }, by @ Pending::Remote { leaf: true, .. }) => by,
            _ => Pending::Local,
        };
    }

    /// The origin of the change being drained, whose leaf now is of `leaf`, issued here if `own`; `None`: nothing to
    /// tell.
    pub(crate) fn take_origin(&mut self, leaf: Stamp, own: bool) -> Option<Origin> {
        // A fast write leaves no note, but a stamp.
        let fast = own && leaf > self.drained_leaf;
        let origin = match std::mem::take(&mut self.pending) {
            Pending::Nobody if !fast => None,
            Pending::Remote { link, author, .. } if !fast => Some(Origin::Remote { link, author }),
            _ => Some(Origin::Local),
        };
        self.drained_leaf = leaf;
        origin
    }
}

/// Who is behind a fragment that arrived over `link`.
pub(crate) fn behind(link: LinkTag, state: &NodeState) -> Pending {
    let leaf = state.leaf.as_ref().map_or(Stamp::NONE, |leaf| leaf.stamp);
    let mut authors = [leaf, state.floor, state.kind].into_iter().filter(|stamp| !stamp.is_none());
    let Some(first) = authors.next() else { return Pending::Nobody };
    if authors.all(|other| other.writer == first.writer) {
        let leaf = state.floor.is_none() && state.kind.is_none();
        Pending::Remote { link, author: first.writer, leaf }
    } else {
        Pending::Local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Pending = Pending::Remote { link: LinkTag(1), author: Incarnation(7), leaf: true };
    const B: Pending = Pending::Remote { link: LinkTag(2), author: Incarnation(8), leaf: true };
    const CLEAR: Pending = Pending::Remote { link: LinkTag(2), author: Incarnation(8), leaf: false };

    fn origin(notes: &[Pending], leaf: Stamp) -> Option<Origin> {
        let mut pump = Pump { drained_leaf: Stamp::new(5, Incarnation(1)), ..Pump::default() };
        notes.iter().for_each(|&by| pump.note(by));
        pump.take_origin(leaf, leaf.writer == Incarnation(1))
    }

    #[test]
    fn what_two_changed_goes_to_everyone() {
        let theirs = Stamp::new(9, Incarnation(8));
        let ours = Stamp::new(9, Incarnation(1));
        let b = Some(Origin::Remote { link: LinkTag(2), author: Incarnation(8) });
        assert_eq!(origin(&[], theirs), None);
        assert_eq!(origin(&[], ours), Some(Origin::Local));
        assert_eq!(origin(&[], Stamp::new(5, Incarnation(1))), None);
        assert_eq!(origin(&[A, B], theirs), b);
        assert_eq!(origin(&[CLEAR, CLEAR], theirs), b);
        assert_eq!(origin(&[A, CLEAR], theirs), Some(Origin::Local));
        assert_eq!(origin(&[B, Pending::Local], theirs), Some(Origin::Local));
        assert_eq!(origin(&[B], ours), Some(Origin::Local));
    }
}
