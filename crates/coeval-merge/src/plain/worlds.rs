//! Going to another world, in the plainest way: everything but the session's records is forgotten, then the new content
//! is joined to nothing.
use super::{Body, Inner, PlainReplica};
use crate::world::fell;
use crate::{
    Content, Digest, Entered, Entry, EntryBody, Life, Origin, SlotId, SlotKey, SlotState, World, digest,
};
use coeval_time::{Epoch, SimTime, Stamp};
use coeval_value::SIM_ENTITY;
use std::collections::BTreeMap;

impl PlainReplica {
    /// What a checkpoint holds, with the clock as given: its sim time, its scale, the epoch in effect.
    pub fn content(&self, sim: SimTime, scale: f64, epoch: Epoch) -> Content {
        let inner = self.inner();
        let mut states = Vec::new();
        for (&entity, body) in &inner.entities {
            if body.life.is_empty() {
                continue;
            }
            // The SimEntity is in every world.
            if entity != SIM_ENTITY {
                states.push((SlotKey { entity, path: None }, body.life.into()));
            }
            let nodes = body.tree.canonical().filter(|_| body.life.is_live());
            states.extend(nodes.map(|(path, node)| (SlotKey { entity, path: Some(path) }, node.into())));
        }
        Content { sim, scale, states }.moved(epoch, Content::CURRENT)
    }
}

impl Inner {
    pub(super) fn enter(
        &mut self,
        world: World,
        states: Vec<(SlotId, SlotState)>,
        entries: Vec<Entry>,
    ) -> Option<Entered> {
        if world <= self.world {
            return None;
        }
        let old: Vec<(SlotId, SlotState)> =
            (0..self.slots.len() as u32).filter_map(|n| Some((SlotId(n), self.state(SlotId(n))?))).collect();
        let mut entered = Entered::leaving(std::mem::replace(&mut self.world, world));
        self.clock = self.clock.max(world.stamp);
        self.forget_world();
        for (slot, state) in &states {
            self.clock = self.clock.max(state.newest());
            // What is refused would have been refused as a delta too.
            let _ = self.join(*slot, state, false);
        }
        for entry in entries {
            self.clock = self.clock.max(entry.id.stamp);
            self.add_entry(entry, Origin::Local);
        }
        let new: BTreeMap<SlotId, SlotState> = states.into_iter().collect();
        for (slot, state) in old {
            if fell(self.writer, &state, new.get(&slot)) {
                entered.fallen(&self.slots[slot.0 as usize].key);
            }
        }
        Some(entered)
    }

    /// Empties the replica but for its slots and the session's records.
    fn forget_world(&mut self) {
        self.entities.clear();
        let life = Life { created: Stamp::GENESIS, deleted: Stamp::NONE };
        self.entities.insert(SIM_ENTITY, Body { life, ..Body::default() });
        self.known = 0;
        self.orphans.clear();
        self.dirty.clear();
        self.entries.retain(|_, entry| matches!(entry.body, EntryBody::Record { .. }));
        let entries = &self.entries;
        self.new_entries.retain(|(_, id)| entries.contains_key(id));
        self.drained_entries.retain(|(_, id)| entries.contains_key(id));
        let drained = self.drained_entries.iter().filter_map(|(_, id)| entries.get(id));
        self.entries_digest = drained.map(digest::of_entry).fold(Digest::ZERO, Digest::plus);
    }
}
