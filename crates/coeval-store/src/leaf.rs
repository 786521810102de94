//! The tree's view of a cell.
use crate::cell::{ALIVE, Cell, EXCLUSIVE, INDEXED, LEAF, MAP, SHOWN, payload};
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
    /// What the cell holds is another world's: to the tree it holds nothing, to readers it stands until its successor
    /// does.
    stale: std::cell::Cell<bool>,
}

/// The status bits that say what the tree shows.
fn bits_of(visibility: Visibility) -> u32 {
    match visibility {
        Visibility::Hidden => 0,
        Visibility::Map => MAP,
        Visibility::Leaf { exclusive: false } => SHOWN,
        Visibility::Leaf { exclusive: true } => SHOWN | EXCLUSIVE,
    }
}

impl CellLeaf {
    pub(crate) fn new(cell: Arc<Cell>, hub: Arc<Hub>) -> Self {
        Self { cell, hub, stale: std::cell::Cell::new(false) }
    }

    /// For a cell that another world has filled.
    pub(crate) fn stale(cell: Arc<Cell>, hub: Arc<Hub>) -> Self {
        Self { cell, hub, stale: std::cell::Cell::new(true) }
    }

    /// The tree of the new world is whole: what the cell still holds of the old one goes.
    pub(crate) fn settle(&self, visibility: Visibility, alive: bool) {
        let mut writer = self.cell.lock();
        if self.stale.take() && writer.status() & LEAF != 0 {
            self.cell.drop_leaf(&mut writer);
        }
        let kept = writer.status() & (LEAF | INDEXED);
        writer.set_status(kept | bits_of(visibility) | if alive { ALIVE } else { 0 });
        drop(writer);
        self.cell.drop_truth();
    }
}

impl LeafStore for CellLeaf {
    fn stamp(&self) -> Stamp {
        if self.stale.get() { Stamp::NONE } else { self.cell.stamp() }
    }

    fn leaf(&self) -> Option<Leaf> {
        if self.stale.get() { None } else { self.cell.leaf(&self.hub) }
    }

    fn write(&mut self, leaf: Leaf) -> bool {
        let mut words: Words = [0; MAX_INLINE_WORDS];
        let header = Header::new(leaf.stamp, &leaf.meta, &self.hub.epochs);
        let mut writer = self.cell.lock();
        let stale = self.stale.take();
        // Fast writers may have been here since the tree looked.
        if !stale && !replaces(&leaf, self.cell.stamp(), || self.cell.leaf(&self.hub)) {
            return false;
        }
        let payload = payload(leaf.value, &mut words);
        let count = payload.words();
        if stale && self.cell.fits(count) {
            self.cell.renew(&mut writer, header, payload, &self.hub);
            return true;
        }
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
        let stamp = if self.stale.get() { Stamp::NONE } else { self.cell.stamp() };
        if stamp.is_none() || stamp >= clear {
            return None;
        }
        self.cell.drop_leaf(&mut writer);
        drop(writer);
        self.hub.dirty.mark(self.cell.slot);
        Some(stamp)
    }

    fn set_visibility(&mut self, visibility: Visibility) {
        if self.stale.get() {
            return;
        }
        let bits = bits_of(visibility);
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
