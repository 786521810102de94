//! The store as replication sees it.
use crate::core::Core;
use crate::entity::{EntityNode, Phase};
use crate::slot::Slot;
use crate::store::Store;
use coeval_faults::{Fault, active};
use coeval_merge::{
    Applied, Digest, Drained, Entered, Entry, EntryBody, LinkTag, NodeState, Origin, Refusal, Replica, Scan,
    SlotId, SlotKey, SlotState, SlotSummary, World,
};
use coeval_time::hybrid::STAMP_LIMIT;
use coeval_time::{EditId, Incarnation, Stamp, StampError, WallTime};
use coeval_value::{EntityId, Path};

impl Replica for Store {
    fn drain(&self) -> Drained {
        self.core.drain()
    }

    fn position(&self) -> u64 {
        self.core.pump.lock().position
    }

    fn register(&self, newest: Stamp) {
        if active(Fault::ClockRaisedAfterPublishing) {
            return;
        }
        // A stamp at the end of the range is refused with the fragment that carries it.
        _ = self.core.hub.hybrid.observe(newest);
    }

    fn take_fork(&self) -> Option<Stamp> {
        self.core.fork.lock().take()
    }

    fn renew(&self, writer: Incarnation) {
        self.core.hub.hybrid.renew(writer);
    }

    fn resolve(&self, key: &SlotKey) -> Result<SlotId, Refusal> {
        let node = self.core.node(key.entity)?;
        match &key.path {
            None => Ok(SlotId(node.life_slot())),
            Some(path) => self.core.path_slot(&node, path).map(SlotId),
        }
    }

    fn key(&self, slot: SlotId) -> Option<SlotKey> {
        self.core.slots.get(slot.0).map(|slot| slot.key.clone())
    }

    fn read(&self, slot: SlotId) -> Option<SlotState> {
        self.core.slots.get(slot.0).map(state_of)
    }

    fn apply(&self, link: LinkTag, states: &[(SlotId, SlotState)], entries: Vec<Entry>) -> Applied {
        let newest =
            states.iter().map(|(_, state)| state.newest()).chain(entries.iter().map(|e| e.id.stamp)).max();
        if let Some(newest) = newest {
            // Before anything becomes readable: what a thread writes after reading must win.
            self.register(newest.min(Stamp::new(STAMP_LIMIT - 1, newest.writer)));
        }
        let core = &self.core;
        let _all_or_nothing = core.batch.read();
        let mut applied = core.apply_states(states);
        for entry in entries {
            let stamp = entry.id.stamp;
            match core.add_entry(Origin::Remote { link, author: stamp.writer }, entry) {
                Ok(true) => {
                    core.look_for_fork(Stamp::NONE, stamp);
                    applied.changed += 1;
                }
                _ => applied.superseded += 1,
            }
        }
        if let (true, Some(newest)) = (active(Fault::ClockRaisedAfterPublishing), newest) {
            _ = core.hub.hybrid.observe(newest);
        }
        applied
    }

    fn scan(&self, from: SlotId, since: u64, limit: usize) -> Scan {
        let core = &self.core;
        let mut scan = Scan::default();
        for number in from.0..core.slots.len() {
            if scan.states.len() == limit {
                scan.next = Some(SlotId(number));
                break;
            }
            // A slot that is still being made holds nothing yet; what it will hold is drained later.
            let Some(slot) = core.slots.get(number) else { continue };
            if slot.pump.lock().drained_at <= since {
                continue;
            }
            let state = state_of(slot);
            if !state.is_empty() {
                scan.states.push((SlotId(number), state));
            }
        }
        scan
    }

    fn entries_since(&self, since: u64) -> Vec<Entry> {
        self.core.entries.lock().since(since)
    }

    fn entry(&self, id: EditId) -> Option<Entry> {
        self.core.entries.lock().get(id).cloned()
    }

    fn digest(&self) -> Digest {
        self.core.pump.lock().total()
    }

    fn bucket_digests(&self) -> Vec<Digest> {
        self.core.pump.lock().buckets().to_vec()
    }

    fn entity_digests(&self, bucket: u8) -> Vec<(EntityId, Digest)> {
        let pump = self.core.pump.lock();
        let digest = |id| self.core.index.get(id).map(|node| (id, *node.digest.lock()));
        pump.members(bucket).filter_map(digest).filter(|(_, digest)| *digest != Digest::default()).collect()
    }

    fn summary(&self, entity: EntityId) -> Vec<SlotSummary> {
        self.core.index.get(entity).map_or_else(Vec::new, |node| summary_of(&node))
    }

    fn entry_ids(&self) -> Vec<EditId> {
        self.core.entries.lock().iter().map(|entry| entry.id).collect()
    }

    fn world(&self) -> World {
        *self.core.world.lock()
    }

    fn issue(&self, wall: WallTime) -> Result<Stamp, StampError> {
        self.core.hub.stamp(wall, Stamp::NONE)
    }

    fn enter(&self, world: World, states: Vec<(SlotId, SlotState)>, entries: Vec<Entry>) -> Option<Entered> {
        self.core.enter(world, states, entries)
    }
}

fn state_of(slot: &Slot) -> SlotState {
    match &slot.key.path {
        None => slot.entity.inner.lock().life.into(),
        Some(path) => Core::node_state(&slot.entity, path).into(),
    }
}

fn summary_of(node: &EntityNode) -> Vec<SlotSummary> {
    let inner = node.inner.lock();
    let life = SlotSummary {
        slot: SlotId(node.life_slot()),
        key: SlotKey { entity: node.id, path: None },
        // Of a deleted entity only the tombstone counts.
        first: if inner.life.deleted.is_none() { inner.life.created } else { Stamp::NONE },
        floor: inner.life.deleted,
        kind: Stamp::NONE,
    };
    let path = |(path, state): (Path, NodeState)| {
        let slot = SlotId(inner.tree.get(&path)?.cell.slot);
        let first = state.leaf.as_ref().map_or(Stamp::NONE, |leaf| leaf.stamp);
        let key = SlotKey { entity: node.id, path: Some(path) };
        Some(SlotSummary { slot, key, first, floor: state.floor, kind: state.kind })
    };
    let known = (!inner.life.is_empty()).then_some(life);
    // What waits for the entity's creation is no part of the canonical state.
    let nodes = inner.tree.canonical().filter(|_| node.phase() == Phase::Alive);
    known.into_iter().chain(nodes.filter_map(path)).collect()
}

impl Core {
    /// A stamp came with a fragment and is here now. All that this store's own incarnation wrote was here before: if this
    /// is of it, and was not, another program writes under the same one.
    pub(crate) fn look_for_fork(&self, was: Stamp, is: Stamp) {
        if is != was && is.writer == self.hub.hybrid.writer() {
            self.fork.lock().get_or_insert(is);
        }
    }

    /// Adds a write-once entry and puts it into effect. `Ok(false)`: known already. The caller holds `batch` shared.
    pub(crate) fn add_entry(&self, origin: Origin, entry: Entry) -> Result<bool, Refusal> {
        let mut entries = self.entries.lock();
        if entries.get(entry.id).is_some() {
            return Ok(false);
        }
        if entries.len() >= self.hub.limits.entries {
            return Err(Refusal::Limit);
        }
        if entry.id.stamp.hlc >= STAMP_LIMIT || entry.id.stamp.is_none() {
            return Err(Refusal::NotNormal);
        }
        match &entry.body {
            EntryBody::Clock(edit) => {
                let fits = edit.id == entry.id && self.clock.insert(edit, (self.hub.now)()).is_ok();
                if !fits {
                    return Err(Refusal::NotNormal);
                }
            }
            EntryBody::Record { value, .. } => {
                self.hub.limits.value.check(value).map_err(|_| Refusal::Limit)?;
            }
        }
        let added = entries.add(origin, entry);
        drop(entries);
        self.hub.ring();
        Ok(added)
    }
}
