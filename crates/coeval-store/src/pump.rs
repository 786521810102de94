//! Draining: what changed since the last time, at a batch boundary; digests and watches along the way.
use crate::cell::{ALIVE, INDEXED, LIVE, MAP, READABLE};
use crate::core::Core;
use crate::entity::{EntityNode, Phase};
use crate::slot::{Pending, Slot};
use crate::watch::ChangeKind;
use coeval_faults::{Fault, active};
use coeval_merge::digest;
use coeval_merge::{
    Change, Digest, Drained, Entry, NodeState, Origin, Own, SlotId, SlotKey, SlotState, replica::bucket_of,
};
use coeval_time::Stamp;
use coeval_value::{EntityId, Path, SIM_ENTITY};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const BUCKETS: usize = 256;

/// What the pump remembers from drain to drain.
pub(crate) struct PumpState {
    pub(crate) position: u64,
    total: Digest,
    buckets: Vec<Digest>,
    /// Entities that ever added to their bucket's digest.
    members: Vec<BTreeSet<EntityId>>,
}

impl Default for PumpState {
    fn default() -> Self {
        Self {
            position: 0,
            total: Digest::default(),
            buckets: vec![Digest::default(); BUCKETS],
            members: vec![BTreeSet::new(); BUCKETS],
        }
    }
}

impl PumpState {
    pub(crate) fn total(&self) -> Digest {
        self.total
    }

    pub(crate) fn buckets(&self) -> &[Digest] {
        &self.buckets
    }

    pub(crate) fn members(&self, bucket: u8) -> impl Iterator<Item = EntityId> + '_ {
        self.members[usize::from(bucket)].iter().copied()
    }

    /// Replaces the `old` contribution to `node`'s digest by `new`.
    pub(crate) fn replace(&mut self, node: &EntityNode, old: Digest, new: Digest) {
        if old == new {
            return;
        }
        let bucket = usize::from(bucket_of(node.id));
        let mut own = node.digest.lock();
        if *own == Digest::default() {
            self.members[bucket].insert(node.id);
        }
        for sum in [&mut *own, &mut self.buckets[bucket], &mut self.total] {
            *sum = sum.minus(old).plus(new);
        }
    }
}

/// One drain in the making.
struct Round<'a> {
    core: &'a Core,
    position: u64,
    changes: Vec<Change>,
    /// Entities whose structure changed: their digest is summed up anew.
    restructured: BTreeMap<EntityId, Arc<EntityNode>>,
    news: Vec<(&'a SlotKey, ChangeKind)>,
    watched: bool,
}

/// What a look at a slot found.
struct Look {
    state: SlotState,
    /// The leaf's stamp.
    leaf: Stamp,
    shown: bool,
    /// Nothing but the leaf of a path of one key changed.
    simple: bool,
}

impl Core {
    /// Takes all that changed since the last drain. The next change after the call began rings the bell again.
    pub(crate) fn drain(&self) -> Drained {
        let _all_or_nothing = self.batch.write();
        if active(Fault::TombstonesDropped) {
            self.forget_old_tombstones();
        }
        let mut pump = self.pump.lock();
        // Before the bits are taken: a change that comes too late for this drain must wake the pump for the next.
        self.hub.bell.begin_idle();
        let mut round = Round {
            core: self,
            position: pump.position + 1,
            changes: Vec::new(),
            restructured: BTreeMap::new(),
            news: Vec::new(),
            watched: self.watches.any(),
        };
        let mut slots = Vec::new();
        self.hub.dirty.drain(|slot| slots.push(slot));
        for number in slots {
            if let Some(slot) = self.slots.get(number) {
                round.take(number, slot, &mut pump);
            }
        }
        for node in std::mem::take(&mut round.restructured).values() {
            self.sum_up(node, &mut pump);
        }
        let mut entries = self.entries.lock();
        if !round.changes.is_empty() || entries.any_pending() {
            pump.position = round.position;
        }
        let entries = entries.drain(round.position);
        self.add_entries(&entries, &mut pump);
        self.watches.feed(&round.news);
        Drained { position: pump.position, changes: round.changes, entries }
    }

    fn add_entries(&self, entries: &[(Origin, Entry)], pump: &mut PumpState) {
        if let (false, Some(node)) = (entries.is_empty(), self.index.get(SIM_ENTITY)) {
            for (_, entry) in entries {
                pump.replace(&node, Digest::default(), digest::of_entry(entry));
            }
        }
    }

    /// Sums up an entity's digest anew, slot by slot.
    pub(crate) fn sum_up(&self, node: &Arc<EntityNode>, pump: &mut PumpState) {
        let inner = node.inner.lock();
        let mut wanted: BTreeMap<u32, Digest> = BTreeMap::new();
        if node.phase() == Phase::Alive {
            for (path, state) in inner.tree.canonical() {
                if let Some(leaf) = inner.tree.get(&path) {
                    wanted.insert(leaf.cell.slot, digest::of_node(node.id, &path, &state));
                }
            }
        }
        wanted.insert(node.life_slot(), digest::of_life(node.id, &inner.life));
        for &number in inner.paths.slots.iter().chain([&node.life_slot()]) {
            if let Some(slot) = self.slots.get(number) {
                let before = slot.pump.lock().digest;
                let gone = if active(Fault::DigestOverHidden) { before } else { Digest::default() };
                let new = wanted.remove(&number).unwrap_or(gone);
                let old = std::mem::replace(&mut slot.pump.lock().digest, new);
                pump.replace(node, old, new);
            }
        }
    }

    /// The state of a path now, with its leaf's stamp. Takes the entity's mutex.
    pub(crate) fn node_state(node: &EntityNode, path: &Path) -> NodeState {
        node.inner.lock().tree.state(path).unwrap_or_default()
    }
}

impl<'a> Round<'a> {
    fn take(&mut self, number: u32, slot: &'a Slot, totals: &mut PumpState) {
        let look = self.look(slot);
        let own = self.core.hub.hybrid.issues(look.leaf.writer);
        let mut pump = slot.pump.lock();
        let pending = pump.take_pending(look.leaf, own);
        let (was, now) = (std::mem::replace(&mut pump.shown, look.shown), look.shown);
        let kind = match (was, now) {
            (false, true) => Some(ChangeKind::Created),
            (true, true) => (pending != Pending::Nobody).then_some(ChangeKind::Changed),
            (true, false) => Some(ChangeKind::Removed),
            (false, false) => None,
        };
        if let (true, Some(kind)) = (self.watched, kind) {
            self.news.push((&slot.key, kind));
        }
        if let (true, SlotState::Node(state), Some(path)) = (look.simple, &look.state, &slot.key.path) {
            let new = digest::of_node(slot.entity.id, path, state);
            totals.replace(&slot.entity, std::mem::replace(&mut pump.digest, new), new);
        } else {
            self.restructured.entry(slot.entity.id).or_insert_with(|| Arc::clone(&slot.entity));
        }
        if pending != Pending::Nobody && !look.state.is_empty() {
            pump.drained_at = self.position;
            let ours = |stamp: Stamp| self.core.hub.hybrid.issues(stamp.writer);
            let own = if pending == Pending::Written { Own::of(&look.state, ours) } else { Own::Nothing };
            self.changes.push(Change { slot: SlotId(number), state: look.state, own });
        }
    }

    fn look(&self, slot: &Slot) -> Look {
        let Some(path) = &slot.key.path else {
            let life = slot.entity.inner.lock().life;
            slot.pump.lock().structural = false;
            let shown = life.is_live();
            return Look { state: SlotState::Life(life), leaf: Stamp::NONE, shown, simple: false };
        };
        let (structural, cell) = {
            let mut pump = slot.pump.lock();
            (std::mem::take(&mut pump.structural), pump.cell.as_ref().map(|cell| Arc::clone(cell.tip())))
        };
        let status = cell.as_ref().map_or(0, |cell| cell.status());
        let shown = status & READABLE == READABLE || status & (MAP | ALIVE) == MAP | ALIVE;
        let fast = !structural && status & (LIVE | INDEXED) == LIVE;
        let leaf = cell.filter(|_| fast).and_then(|cell| cell.leaf(&self.core.hub));
        let state = match leaf {
            // A live cell has nothing below it and its leaf outweighs its floor: the leaf is the whole state.
            Some(leaf) => NodeState { leaf: Some(leaf), ..NodeState::default() },
            None => Core::node_state(&slot.entity, path),
        };
        let leaf = state.leaf.as_ref().map_or(Stamp::NONE, |leaf| leaf.stamp);
        // A newer leaf can make the stored kind of an ancestor redundant, which changes the ancestor's canonical state.
        let simple = fast && path.keys().len() == 1;
        Look { state: SlotState::Node(state), leaf, shown, simple }
    }
}
