//! Applying what was received: first every fragment is looked at, then a batch is joined whole or not at all.
use crate::cell::{Cell, INDEXED, LIVE, payload};
use crate::core::{Core, Joined};
use crate::entity::{Inner, Phase};
use crate::layout::Header;
use crate::slot::{Pending, Slot};
use coeval_merge::state::replaces;
use coeval_merge::{Applied, Fate, NodeState, Refusal, SlotId, SlotState, refuse_mates};
use coeval_time::Stamp;
use coeval_time::hybrid::STAMP_LIMIT;
use coeval_value::words::{MAX_INLINE_WORDS, Words};
use coeval_value::{EntityId, Leaf, Path, SIM_ENTITY};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a delta would add to what is limited, as far as it was looked at.
#[derive(Default)]
struct Load {
    /// Entities whose life comes with the delta.
    lives: BTreeSet<EntityId>,
    /// Nodes of entities that are not known.
    orphans: u64,
    /// Whether some were too many.
    orphans_refused: bool,
    /// Nodes that will be made, of each entity.
    made: BTreeMap<EntityId, Made>,
}

/// Nodes of one entity that are not there yet.
#[derive(Default)]
struct Made {
    paths: BTreeSet<Path>,
    /// How many of them need a slot.
    slots: usize,
}

impl Core {
    /// Joins states that were received. The caller holds `batch` shared.
    pub(crate) fn apply_states(&self, states: &[(SlotId, SlotState)]) -> Applied {
        let refusals = self.refusals(states);
        // Lives first, so that values are not taken for those of an unknown entity; then what lies deepest, so that a
        // replaced map's new values are there before the old ones go, and no reader finds a gap.
        let mut order: Vec<usize> = (0..states.len()).collect();
        order.sort_by_cached_key(|at| self.slots.get(states[*at].0.0).map_or(Reverse(0), depth));
        let mut fates = vec![Fate::Superseded; states.len()];
        for at in order {
            let (slot, state) = &states[at];
            let joined = refusals[at].map_or_else(|| self.apply_one(*slot, state), Err);
            fates[at] = joined.unwrap_or_else(Fate::Refused);
        }
        let mut applied = Applied::default();
        for ((slot, _), fate) in states.iter().zip(fates) {
            applied.note(*slot, fate);
        }
        applied
    }

    /// Why fragments are refused, if they are: of a batch all or none.
    fn refusals(&self, states: &[(SlotId, SlotState)]) -> Vec<Option<Refusal>> {
        let mut refusals = vec![None; states.len()];
        loop {
            let mut load = Load { lives: self.lives(states, &refusals), ..Load::default() };
            for ((slot, state), refusal) in states.iter().zip(&mut refusals) {
                if refusal.is_none() {
                    *refusal = self.look_at(*slot, state, &mut load).err();
                }
            }
            refuse_mates(states, &mut refusals);
            if load.orphans_refused {
                let refused = refusals.iter().flatten().count() as u64;
                self.hub.counters.orphans_refused.fetch_add(refused, Ordering::Relaxed);
            }
            // Where a life is refused, what was counted as the entity's is an orphan.
            if refusals.iter().all(Option::is_none) || self.lives(states, &refusals) == load.lives {
                return refusals;
            }
        }
    }

    /// The entities whose life is among states that are not refused.
    fn lives(&self, states: &[(SlotId, SlotState)], refusals: &[Option<Refusal>]) -> BTreeSet<EntityId> {
        let entity = |((slot, state), refusal): (&(SlotId, SlotState), &Option<Refusal>)| match state {
            SlotState::Life(life) if refusal.is_none() && !life.is_empty() => {
                Some(self.slots.get(slot.0)?.key.entity)
            }
            _ => None,
        };
        states.iter().zip(refusals).filter_map(entity).collect()
    }

    /// Whether a fragment is sound and has room.
    fn look_at(&self, slot: SlotId, state: &SlotState, load: &mut Load) -> Result<(), Refusal> {
        let slot = self.slots.get(slot.0).ok_or(Refusal::UnknownSlot)?;
        if state.newest().hlc >= STAMP_LIMIT {
            return Err(Refusal::NotNormal);
        }
        match (&slot.key.path, state) {
            (None, SlotState::Life(life)) if slot.key.entity == SIM_ENTITY && !life.deleted.is_none() => {
                Err(Refusal::Protected)
            }
            (None, SlotState::Life(_)) => Ok(()),
            (Some(_), SlotState::Node(state)) if !state.is_normal() => Err(Refusal::NotNormal),
            (Some(path), SlotState::Node(state)) => {
                let value =
                    state.leaf.as_ref().map_or(Ok(()), |leaf| self.hub.limits.value.check(&leaf.value));
                value.map_err(|_| Refusal::Limit)?;
                self.look_for_room(slot, path, load)
            }
            _ => Err(Refusal::WrongKind),
        }
    }

    fn look_for_room(&self, slot: &Slot, path: &Path, load: &mut Load) -> Result<(), Refusal> {
        let node = &slot.entity;
        let there = || slot.pump.lock().cell.is_some();
        if node.phase() == Phase::Deleted || (node.phase() == Phase::Alive && there()) {
            return Ok(());
        }
        let inner = node.inner.lock();
        let made = load.made.entry(node.id).or_default();
        let missing = |at: &Path| inner.tree.get(at).is_none() && !made.paths.contains(at);
        let new: Vec<Path> =
            std::iter::successors(Some(path.clone()), Path::parent).filter(missing).collect();
        // A path that was named has its slot already.
        let slots = new.iter().filter(|at| *at != path && !inner.paths.reserved.contains_key(*at)).count();
        self.room(&inner.paths, made.slots + slots)?;
        if node.phase() == Phase::Unknown && !load.lives.contains(&node.id) {
            let held = self.hub.counters.orphans.load(Ordering::Relaxed);
            if held + load.orphans + new.len() as u64 > u64::from(self.hub.limits.orphans) {
                load.orphans_refused = true;
                return Err(Refusal::Limit);
            }
            load.orphans += new.len() as u64;
        }
        made.slots += slots;
        made.paths.extend(new);
        Ok(())
    }

    /// Joins one fragment.
    fn apply_one(&self, slot: SlotId, state: &SlotState) -> Result<Fate, Refusal> {
        let number = slot.0;
        let slot = self.slots.get(number).ok_or(Refusal::UnknownSlot)?;
        let node = &slot.entity;
        if let SlotState::Node(state) = state
            && let Some(fate) = self.apply_leaf(number, slot, state)
        {
            return Ok(fate);
        }
        let mut inner = node.inner.lock();
        let overtakes = self.overtakes(&inner, slot, state);
        let joined = match (&slot.key.path, state) {
            (None, SlotState::Life(life)) => {
                let before = inner.life;
                let joined = self.join_life(node, &mut inner, life, Pending::Received)?;
                for (was, is) in [(before.created, inner.life.created), (before.deleted, inner.life.deleted)]
                {
                    self.look_for_fork(was, is);
                }
                joined
            }
            (Some(path), SlotState::Node(state)) => {
                let before = leaf_stamp(&inner, path);
                let joined = self.join(node, &mut inner, path, state, Pending::Received)?;
                self.look_for_fork(before, leaf_stamp(&inner, path));
                joined
            }
            _ => return Err(Refusal::WrongKind),
        };
        Ok(match joined {
            Joined::Changed if overtakes => Fate::Overtook,
            Joined::Changed => Fate::Changed,
            Joined::Superseded => Fate::Superseded,
        })
    }

    /// A leaf for a live cell: no mutex, no tree. `None` when it is not that simple.
    fn apply_leaf(&self, number: u32, slot: &Slot, state: &NodeState) -> Option<Fate> {
        let leaf = state.leaf.as_ref().filter(|_| state.floor.is_none() && state.kind.is_none())?;
        let cell = slot.pump.lock().cell.as_ref().map(|cell| Arc::clone(cell.tip()))?;
        let Some(before) = publish_if_newer(&cell, self, leaf)? else { return Some(Fate::Superseded) };
        let mut pump = slot.pump.lock();
        let overtook = pump.is_written(before, self.hub.hybrid.issues(before.writer));
        pump.note(Pending::Received);
        drop(pump);
        self.hub.mark(number);
        self.look_for_fork(Stamp::NONE, leaf.stamp);
        Some(if overtook { Fate::Overtook } else { Fate::Changed })
    }
}

/// Sorts lives before paths and long paths before short ones.
fn depth(slot: &Slot) -> Reverse<usize> {
    Reverse(slot.key.path.as_ref().map_or(usize::MAX, |path| path.keys().len()))
}

fn leaf_stamp(inner: &Inner, path: &Path) -> Stamp {
    inner.tree.state(path).and_then(|state| state.leaf).map_or(Stamp::NONE, |leaf| leaf.stamp)
}

/// Publishes a leaf that is newer than what is there, whose stamp it returns. The outer `None` says that the cell cannot
/// take it without asking the tree.
fn publish_if_newer(cell: &Cell, core: &Core, leaf: &Leaf) -> Option<Option<Stamp>> {
    let mut words: Words = [0; MAX_INLINE_WORDS];
    let header = Header::new(leaf.stamp, &leaf.meta, &core.hub.epochs);
    let payload = payload(leaf.value.clone(), &mut words);
    let mut writer = cell.lock();
    if writer.status() & (LIVE | INDEXED) != LIVE || !cell.fits(payload.words()) {
        return None;
    }
    let before = cell.stamp();
    if !replaces(leaf, before, || cell.leaf(&core.hub)) {
        return Some(None);
    }
    cell.publish(&mut writer, header, payload, &core.hub);
    Some(Some(before))
}
