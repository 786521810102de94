//! The tree's view of a cell.
use crate::cell::{Cell, EXCLUSIVE, LEAF, MAP, SHOWN, payload};
use crate::hub::Hub;
use crate::layout::Header;
use coeval_merge::state::replaces;
use coeval_merge::{LeafStore, Visibility};
use coeval_time::Stamp;
use coeval_value::Leaf;
use coeval_value::words::{MAX_INLINE_WORDS, Words};
use std::sync::Arc;

/// One node of an entity's tree: the cell where its leaf lives. Used under the entity's mutex.
pub(crate) struct CellLeaf {
    pub(crate) cell: Arc<Cell>,
    pub(crate) hub: Arc<Hub>,
}

impl LeafStore for CellLeaf {
    fn stamp(&self) -> Stamp {
        self.cell.stamp()
    }

    fn leaf(&self) -> Option<Leaf> {
        self.cell.leaf(&self.hub)
    }

    fn write(&mut self, leaf: Leaf) -> bool {
        let mut words: Words = [0; MAX_INLINE_WORDS];
        let header = Header::new(leaf.stamp, &leaf.meta, &self.hub.epochs);
        let mut writer = self.cell.lock();
        // Fast writers may have been here since the tree looked.
        if !replaces(&leaf, self.cell.stamp(), || self.cell.leaf(&self.hub)) {
            return false;
        }
        let payload = payload(leaf.value, &mut words);
        let count = payload.words();
        if self.cell.fits(count) {
            self.cell.publish(&mut writer, header, payload, &self.hub);
            return true;
        }
        let next = self.cell.outgrow(&mut writer, count, |next, writer| {
            next.publish(writer, header, payload, &self.hub);
        });
        drop(writer);
        self.cell = next;
        true
    }

    fn clear_below(&mut self, clear: Stamp) -> Option<Stamp> {
        let mut writer = self.cell.lock();
        let stamp = self.cell.stamp();
        if stamp.is_none() || stamp >= clear {
            return None;
        }
        self.cell.drop_leaf(&mut writer);
        drop(writer);
        self.hub.dirty.mark(self.cell.slot);
        Some(stamp)
    }

    fn set_visibility(&mut self, visibility: Visibility) {
        let bits = match visibility {
            Visibility::Hidden => 0,
            Visibility::Map => MAP,
            Visibility::Leaf { exclusive: false } => SHOWN,
            Visibility::Leaf { exclusive: true } => SHOWN | EXCLUSIVE,
        };
        let mut writer = self.cell.lock();
        let before = writer.status();
        let after = before & !(SHOWN | EXCLUSIVE | MAP) | bits;
        if after == before {
            return;
        }
        writer.set_status(after);
        drop(writer);
        // Watches want to know, also when the path's own state did not change.
        if (before ^ after) & (SHOWN | MAP | LEAF) != 0 {
            self.hub.dirty.mark(self.cell.slot);
        }
    }
}
