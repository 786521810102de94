//! A whole replica for one thread at a time: the reference that stores and replication are tested against.
//!
//! It does everything the [`Replica`](crate::Replica) trait promises, in the plainest way: ordered maps under one lock, digests
//! recomputed per changed entity at each drain. It has no handles, history or watches; programs want the concurrent
//! store instead.
use crate::{
    Applied, Batch, Change, Digest, Drained, Entry, EntryBody, Fate, LeafStore, Life, LinkTag, NodeState,
    Origin, Own, Refusal, SlotId, SlotKey, SlotState, Tree, Visibility, World, digest, refuse_mates,
};
use coeval_time::{EditId, Incarnation, Stamp, WallTime};
use coeval_value::{EntityId, Leaf, Path, SIM_ENTITY, SampleMeta, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

mod replication;
mod worlds;

/// How much a [`PlainReplica`] holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainLimits {
    /// Live and deleted entities; at the limit creation is refused, never deletion.
    pub entities: usize,
    /// Slots ever given out.
    pub slots: usize,
    /// Entities with writes but no known creation; beyond it the one that came first is forgotten.
    pub orphans: usize,
    /// Write-once entries.
    pub entries: usize,
}

impl Default for PlainLimits {
    fn default() -> Self {
        Self { entities: 1 << 20, slots: 1 << 26, orphans: 4096, entries: 1 << 20 }
    }
}

/// Why a local write was refused; nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The entity is deleted.
    #[error("entity {0:?} is deleted, for ever: create another under a new id")]
    Deleted(EntityId),
    /// The entity's creation is not known here.
    #[error("entity {0:?} does not exist here: create it, or wait until its creation arrives")]
    Unknown(EntityId),
    /// A limit of the replica is reached.
    #[error("the replica holds as many entities, slots or entries as it may: raise its limits")]
    Limit,
}

/// A complete single-threaded [`Replica`](crate::Replica). See the [module](self).
#[derive(Debug)]
pub struct PlainReplica(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    writer: Incarnation,
    fork: Option<Stamp>,
    limits: PlainLimits,
    /// The hybrid clock: at least every stamp issued or received.
    clock: Stamp,
    slots: Vec<Slot>,
    index: BTreeMap<SlotKey, SlotId>,
    entities: BTreeMap<EntityId, Body>,
    /// How many of them are created or deleted, the `SimEntity` apart.
    known: usize,
    /// Orphans in the order they came; those created or deleted since are skipped.
    orphans: VecDeque<EntityId>,
    orphans_evicted: u64,
    /// Changed since the last drain; whether (also) by a local write.
    dirty: BTreeMap<SlotId, bool>,
    entries: BTreeMap<EditId, Entry>,
    drained_entries: Vec<(u64, EditId)>,
    new_entries: Vec<(Origin, EditId)>,
    entries_digest: Digest,
    position: u64,
    world: World,
}

#[derive(Debug)]
struct Slot {
    key: SlotKey,
    /// The position of the last drain that took it; 0: never.
    drained_at: u64,
}

#[derive(Debug, Default)]
struct Body {
    life: Life,
    tree: Tree<PlainLeaf>,
    /// As of the last drain.
    digest: Digest,
}

#[derive(Debug, Default)]
struct PlainLeaf(Option<Leaf>);

impl LeafStore for PlainLeaf {
    fn stamp(&self) -> Stamp {
        self.0.as_ref().map_or(Stamp::NONE, |l| l.stamp)
    }

    fn leaf(&self) -> Option<Leaf> {
        self.0.clone()
    }

    fn write(&mut self, leaf: Leaf) -> bool {
        let newer = leaf.stamp > self.stamp();
        if newer {
            self.0 = Some(leaf);
        }
        newer
    }

    fn clear_below(&mut self, clear: Stamp) -> Option<Stamp> {
        self.0.take_if(|l| l.stamp < clear).map(|l| l.stamp)
    }

    /// Readers ask the tree, which knows.
    fn set_visibility(&mut self, _: Visibility) {}
}

impl PlainReplica {
    /// An empty world but for the `SimEntity`, written to as `writer`.
    pub fn new(writer: Incarnation) -> Self {
        Self::with_limits(writer, PlainLimits::default())
    }

    /// The same with other limits.
    pub fn with_limits(writer: Incarnation, limits: PlainLimits) -> Self {
        let mut inner = Inner {
            writer,
            fork: None,
            limits,
            clock: Stamp::NONE,
            slots: Vec::new(),
            index: BTreeMap::new(),
            entities: BTreeMap::new(),
            known: 0,
            orphans: VecDeque::new(),
            orphans_evicted: 0,
            dirty: BTreeMap::new(),
            entries: BTreeMap::new(),
            drained_entries: Vec::new(),
            new_entries: Vec::new(),
            entries_digest: Digest::ZERO,
            position: 0,
            world: World::FIRST,
        };
        // Every world has it from the start, so it is nothing to drain and nothing to count.
        let life = Life { created: Stamp::GENESIS, deleted: Stamp::NONE };
        inner.entities.insert(SIM_ENTITY, Body { life, ..Body::default() });
        Self(Mutex::new(inner))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a batch with a new stamp, above `wall`, all stamps known here, and all issued here.
    pub fn write(&self, batch: &Batch, wall: WallTime, meta: SampleMeta) -> Result<Stamp, WriteError> {
        let mut inner = self.inner();
        inner.check(batch)?;
        let stamp = inner.issue(wall);
        inner.write(batch.fragments(stamp, meta));
        Ok(stamp)
    }

    /// Writes a batch with a given stamp, wherever it falls among those known: replays and tests.
    ///
    /// Nothing is checked but the limits: a batch may write to entities that are deleted or not created here, as if
    /// it had been received.
    pub fn replay(&self, batch: &Batch, stamp: Stamp, meta: SampleMeta) {
        let mut inner = self.inner();
        inner.clock = inner.clock.max(stamp);
        inner.write(batch.fragments(stamp, meta));
    }

    /// Adds a write-once entry with a new stamp made for `body`.
    pub fn add_entry(
        &self,
        wall: WallTime,
        body: impl FnOnce(EditId) -> EntryBody,
    ) -> Result<EditId, WriteError> {
        let mut inner = self.inner();
        if inner.entries.len() >= inner.limits.entries {
            return Err(WriteError::Limit);
        }
        let id = EditId { stamp: inner.issue(wall), index: 0 };
        inner.add_entry(Entry { id, body: body(id) }, Origin::Local);
        Ok(id)
    }

    /// What a reader sees of an entity: a map; `None` if it is not known, not created or deleted.
    pub fn show(&self, entity: EntityId) -> Option<Value> {
        let inner = self.inner();
        let body = inner.entities.get(&entity)?;
        if body.life.is_live() { body.tree.show(None) } else { None }
    }

    /// Creation and deletion of an entity, as far as known.
    pub fn life(&self, entity: EntityId) -> Life {
        self.inner().entities.get(&entity).map_or(Life::default(), |b| b.life)
    }

    /// The canonical state of all live entities, in order.
    pub fn canonical(&self) -> Vec<(EntityId, Path, NodeState)> {
        let inner = self.inner();
        let live = inner.entities.iter().filter(|(_, b)| b.life.is_live());
        live.flat_map(|(id, b)| b.tree.canonical().map(|(p, s)| (*id, p, s))).collect()
    }

    /// How many orphans were forgotten to make room.
    pub fn orphans_evicted(&self) -> u64 {
        self.inner().orphans_evicted
    }

    /// The newest stamp issued or received.
    pub fn clock(&self) -> Stamp {
        self.inner().clock
    }
}

impl Inner {
    fn issue(&mut self, wall: WallTime) -> Stamp {
        let hlc = wall.as_nanos().max(self.clock.hlc).saturating_add(1);
        self.clock = Stamp::new(hlc, self.writer);
        self.clock
    }

    fn check(&self, batch: &Batch) -> Result<(), WriteError> {
        let mut made = 0;
        for (entity, creates, _) in batch.entities() {
            let life = self.entities.get(&entity).map_or(Life::default(), |b| b.life);
            if !life.deleted.is_none() {
                return Err(WriteError::Deleted(entity));
            }
            if life.created.is_none() {
                if !creates {
                    return Err(WriteError::Unknown(entity));
                }
                made += 1;
            }
        }
        if made > 0 && self.known + made > self.limits.entities {
            return Err(WriteError::Limit);
        }
        let new_slots =
            batch.fragments(Stamp::GENESIS, SampleMeta::default()).iter().map(depth).sum::<usize>();
        if self.slots.len() + new_slots > self.limits.slots { Err(WriteError::Limit) } else { Ok(()) }
    }

    fn write(&mut self, fragments: Vec<(SlotKey, SlotState)>) {
        for (key, state) in fragments {
            if let Ok(slot) = self.resolve(&key) {
                // Refusals were checked for, or stand for what a received fragment would meet.
                let _ = self.join(slot, &state, true);
            }
        }
    }

    fn resolve(&mut self, key: &SlotKey) -> Result<SlotId, Refusal> {
        if let Some(&slot) = self.index.get(key) {
            return Ok(slot);
        }
        if self.slots.len() >= self.limits.slots {
            return Err(Refusal::Limit);
        }
        if key.path.is_some() {
            // So that an entity's life comes before its paths in slot order.
            self.resolve(&SlotKey { entity: key.entity, path: None })?;
        }
        let slot = SlotId(u32::try_from(self.slots.len()).map_err(|_| Refusal::Limit)?);
        self.slots.push(Slot { key: key.clone(), drained_at: 0 });
        self.index.insert(key.clone(), slot);
        Ok(slot)
    }

    /// Joins one fragment. Says whether it changed anything.
    fn join(&mut self, slot: SlotId, state: &SlotState, local: bool) -> Result<bool, Refusal> {
        let key = self.slots.get(slot.0 as usize).ok_or(Refusal::UnknownSlot)?.key.clone();
        match (&key.path, state) {
            (None, SlotState::Life(life)) => self.join_life(slot, key.entity, life, local),
            (Some(path), SlotState::Node(node)) => self.join_node(key.entity, path, node, local),
            _ => Err(Refusal::WrongKind),
        }
    }

    fn join_life(
        &mut self,
        slot: SlotId,
        entity: EntityId,
        life: &Life,
        local: bool,
    ) -> Result<bool, Refusal> {
        if entity == SIM_ENTITY && !life.deleted.is_none() {
            return Err(Refusal::Protected);
        }
        let known = self.entities.get(&entity).map_or(Life::default(), |b| b.life);
        if known.is_empty()
            && !life.is_empty()
            && life.deleted.is_none()
            && self.known >= self.limits.entities
        {
            return Err(Refusal::Limit);
        }
        let mut joined = known;
        joined.join(life);
        if joined == known {
            return Ok(false);
        }
        self.known += usize::from(known.is_empty());
        let body = self.entities.entry(entity).or_default();
        body.life = joined;
        if !joined.deleted.is_none() {
            body.tree = Tree::new();
        }
        self.mark(slot, local);
        Ok(true)
    }

    fn join_node(
        &mut self,
        entity: EntityId,
        path: &Path,
        state: &NodeState,
        local: bool,
    ) -> Result<bool, Refusal> {
        if !state.is_normal() {
            return Err(Refusal::NotNormal);
        }
        let mut above = path.parent();
        while let Some(at) = above {
            // Before anything changes: a join may touch ancestors, and the slots may run out.
            above = at.parent();
            self.resolve(&SlotKey { entity, path: Some(at) })?;
        }
        if !self.entities.contains_key(&entity) {
            self.make_orphan(entity);
        }
        let body = self.entities.entry(entity).or_default();
        if !body.life.deleted.is_none() {
            return Ok(false);
        }
        let report = body.tree.join(path, state, &mut |_| PlainLeaf::default());
        for at in report.touched {
            let slot = self.resolve(&SlotKey { entity, path: Some(at) })?;
            self.mark(slot, local);
        }
        Ok(report.changed)
    }

    /// Writes that overtook their entity's creation are kept, within bounds: first in, first out.
    fn make_orphan(&mut self, entity: EntityId) {
        let entities = &self.entities;
        self.orphans.retain(|id| entities.get(id).is_some_and(|b| b.life.is_empty()));
        while self.orphans.len() >= self.limits.orphans.max(1) {
            if let Some(oldest) = self.orphans.pop_front() {
                self.entities.remove(&oldest);
                self.orphans_evicted += 1;
            }
        }
        self.orphans.push_back(entity);
    }

    fn mark(&mut self, slot: SlotId, local: bool) {
        *self.dirty.entry(slot).or_default() |= local;
    }

    fn state(&self, slot: SlotId) -> Option<SlotState> {
        let key = &self.slots.get(slot.0 as usize)?.key;
        let body = self.entities.get(&key.entity);
        Some(match &key.path {
            None => body.map_or(Life::default(), |b| b.life).into(),
            Some(path) => body.and_then(|b| b.tree.state(path)).unwrap_or_default().into(),
        })
    }

    fn add_entry(&mut self, entry: Entry, origin: Origin) -> bool {
        let consistent = match &entry.body {
            EntryBody::Clock(edit) => edit.id == entry.id,
            EntryBody::Record { .. } => true,
        };
        let room = self.entries.len() < self.limits.entries;
        if !consistent || !room || entry.id.stamp.is_none() || self.entries.contains_key(&entry.id) {
            return false;
        }
        self.new_entries.push((origin, entry.id));
        self.entries.insert(entry.id, entry);
        true
    }

    fn drain(&mut self) -> Drained {
        if self.dirty.is_empty() && self.new_entries.is_empty() {
            return Drained { position: self.position, ..Drained::default() };
        }
        self.position += 1;
        let mut changes = Vec::new();
        let mut entities = BTreeSet::new();
        for (slot, local) in std::mem::take(&mut self.dirty) {
            let here = &mut self.slots[slot.0 as usize];
            here.drained_at = self.position;
            entities.insert(here.key.entity);
            // A node that holds nothing any more tells peers nothing: what emptied it does.
            if let Some(state) = self.state(slot).filter(|s| !s.is_empty()) {
                let ours = |stamp: Stamp| stamp.writer == self.writer;
                let own = if local { Own::of(&state, ours) } else { Own::Nothing };
                changes.push(Change { slot, state, own });
            }
        }
        for entity in entities {
            if let Some(body) = self.entities.get_mut(&entity) {
                body.digest = digest_of(entity, body);
            }
        }
        let mut entries = Vec::new();
        for (origin, id) in std::mem::take(&mut self.new_entries) {
            let entry = self.entries[&id].clone();
            self.entries_digest = self.entries_digest.plus(digest::of_entry(&entry));
            self.drained_entries.push((self.position, id));
            entries.push((origin, entry));
        }
        Drained { position: self.position, changes, entries }
    }

    fn apply(&mut self, link: LinkTag, states: &[(SlotId, SlotState)], entries: Vec<Entry>) -> Applied {
        let mut applied = Applied::default();
        let mut refusals: Vec<Option<Refusal>> =
            states.iter().map(|(slot, state)| self.unfit(*slot, state).err()).collect();
        refuse_mates(states, &mut refusals);
        for (&(slot, ref state), refusal) in states.iter().zip(refusals) {
            self.clock = self.clock.max(state.newest());
            let before = self.own_stamps(slot);
            let local = self.overtakes(slot);
            let joined = refusal.map_or_else(|| self.join(slot, state, false), Err);
            // What is of this writer and was not here before was written by someone else.
            let strange = self.own_stamps(slot).into_iter().find(|stamp| !before.contains(stamp));
            self.fork = self.fork.or(strange);
            let fate = match joined {
                Ok(true) if local => Fate::Overtook,
                Ok(true) => Fate::Changed,
                Ok(false) => Fate::Superseded,
                Err(refusal) => Fate::Refused(refusal),
            };
            applied.note(slot, fate);
        }
        for entry in entries {
            let author = entry.id.stamp.writer;
            self.clock = self.clock.max(entry.id.stamp);
            let stamp = entry.id.stamp;
            let changed = self.add_entry(entry, Origin::Remote { link, author });
            if changed && author == self.writer {
                self.fork = self.fork.or(Some(stamp));
            }
            *(if changed { &mut applied.changed } else { &mut applied.superseded }) += 1;
        }
        applied
    }

    /// Whether a change of this slot may replace or hide what was written here since the last drain: at the slot itself,
    /// above it or below it.
    fn overtakes(&self, slot: SlotId) -> bool {
        let Some(key) = self.slots.get(slot.0 as usize).map(|slot| &slot.key) else { return false };
        let near = |other: &SlotKey| {
            let related = |a: &Path, b: &Path| a.contains(b) || b.contains(a);
            let paths = key.path.as_ref().zip(other.path.as_ref());
            other.entity == key.entity && paths.is_none_or(|(a, b)| related(a, b))
        };
        self.dirty.iter().any(|(other, local)| *local && near(&self.slots[other.0 as usize].key))
    }

    /// What can be told of a fragment that will be refused.
    fn unfit(&self, slot: SlotId, state: &SlotState) -> Result<(), Refusal> {
        let key = &self.slots.get(slot.0 as usize).ok_or(Refusal::UnknownSlot)?.key;
        match (&key.path, state) {
            (None, SlotState::Life(life)) if key.entity == SIM_ENTITY && !life.deleted.is_none() => {
                Err(Refusal::Protected)
            }
            (Some(_), SlotState::Node(node)) if !node.is_normal() => Err(Refusal::NotNormal),
            (None, SlotState::Life(_)) | (Some(_), SlotState::Node(_)) => Ok(()),
            _ => Err(Refusal::WrongKind),
        }
    }

    /// The stamps of this writer in the value, the creation or the deletion of a slot.
    fn own_stamps(&self, slot: SlotId) -> Vec<Stamp> {
        let stamps = match self.state(slot) {
            Some(SlotState::Life(life)) => vec![life.created, life.deleted],
            Some(SlotState::Node(node)) => node.leaf.into_iter().map(|leaf| leaf.stamp).collect(),
            None => Vec::new(),
        };
        stamps.into_iter().filter(|stamp| stamp.writer == self.writer).collect()
    }

    fn digests(&self) -> impl Iterator<Item = (EntityId, Digest)> {
        self.entities.iter().map(|(&id, body)| {
            let extra = if id == SIM_ENTITY { self.entries_digest } else { Digest::ZERO };
            (id, body.digest.plus(extra))
        })
    }
}

/// How many slots a fragment may need: its entity's, and one for each key of its path.
fn depth((key, _): &(SlotKey, SlotState)) -> usize {
    1 + key.path.as_ref().map_or(0, |p| p.keys().len())
}

/// The `SimEntity`'s creation is the same in every world: not counted.
fn digest_of(entity: EntityId, body: &Body) -> Digest {
    let whole = digest::of_entity(entity, &body.life, &body.tree);
    if entity == SIM_ENTITY { whole.minus(digest::of_life(entity, &body.life)) } else { whole }
}
