//! Going to another world: what every entity holds is replaced, all at one batch boundary.
//!
//! Writers wait meanwhile; readers do not. First every cell is taken from the fast writers, so that from then on all
//! writes wait at `batch` or meet a cell of the new world; then the clock goes back; then each entity gets a new tree
//! over its old cells. A cell that both worlds fill goes from one sample to the other with no gap between, so whoever
//! holds a handle reads the old world, then the new one.
use crate::cell::{Cell, DELETED, EXCLUSIVE};
use crate::core::Core;
use crate::entity::{EntityNode, Inner, Paths, Phase};
use crate::leaf::CellLeaf;
use crate::names::Names;
use crate::slot::Pending;
use crate::store::Store;
use coeval_merge::world::fell;
use coeval_merge::{
    Content, Digest, Entered, Entry, Life, NodeState, Origin, SlotId, SlotKey, SlotState, Tree, Visibility,
    World, digest,
};
use coeval_time::Stamp;
use coeval_time::hybrid::STAMP_LIMIT;
use coeval_value::{EntityId, Path, SIM_ENTITY};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an entity is to hold.
#[derive(Default)]
struct Body {
    life: Life,
    nodes: BTreeMap<Path, NodeState>,
}

/// What a path held.
struct Old {
    number: u32,
    state: NodeState,
    visibility: Visibility,
}

impl Store {
    /// What a checkpoint holds: the world between two batches, and the clock now.
    pub fn content(&self) -> Content {
        let core = &self.core;
        let _boundary = core.batch.write();
        let clock = core.clock.state(self.now());
        let mut states = BTreeMap::new();
        for number in 0..core.slots.len() {
            let Some(slot) = core.slots.get(number).filter(|slot| slot.key.path.is_none()) else { continue };
            let node = &slot.entity;
            let inner = node.inner.lock();
            // The SimEntity is in every world.
            if node.id != SIM_ENTITY && node.phase() != Phase::Unknown {
                states.insert(slot.key.clone(), inner.life.into());
            }
            if node.phase() == Phase::Alive {
                let key = |path| SlotKey { entity: node.id, path: Some(path) };
                states.extend(inner.tree.canonical().map(|(path, state)| (key(path), state.into())));
            }
        }
        let segment = clock.segment;
        Content { sim: clock.sim, scale: segment.scale, states: states.into_iter().collect() }
            .moved(segment.epoch, Content::CURRENT)
    }
}

impl Core {
    pub(crate) fn enter(
        &self,
        world: World,
        states: Vec<(SlotId, SlotState)>,
        entries: Vec<Entry>,
    ) -> Option<Entered> {
        let _alone = self.batch.write();
        let mut pump = self.pump.lock();
        let left = *self.world.lock();
        if world <= left || !world.is_sound() || world.stamp.hlc >= STAMP_LIMIT {
            return None;
        }
        let mut entered = Entered::leaving(left);
        let stamps = states.iter().map(|(_, state)| state.newest()).chain(entries.iter().map(|e| e.id.stamp));
        for stamp in stamps.chain([world.stamp]).filter(|stamp| stamp.hlc < STAMP_LIMIT) {
            // Before anything becomes readable, as ever.
            _ = self.hub.hybrid.observe(stamp);
        }
        self.freeze();
        // Only a scale that is not finite is refused, and a sound world has none.
        _ = self.clock.restart(world.genesis(), world.epoch(), (self.hub.now)());
        *self.world.lock() = world;
        let mut bodies = self.bodies(states);
        let nodes: Vec<Arc<EntityNode>> = (0..self.slots.len())
            .filter_map(|number| self.slots.get(number).filter(|slot| slot.key.path.is_none()))
            .map(|slot| Arc::clone(&slot.entity))
            .collect();
        for node in &nodes {
            let body = bodies.remove(&node.id).unwrap_or_default();
            self.renew(node, &mut node.inner.lock(), body, &mut entered);
            self.sum_up(node, &mut pump);
        }
        let deleted = nodes.iter().filter(|node| node.phase() == Phase::Deleted).count();
        self.tombstones.store(u32::try_from(deleted).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.name_anew(&nodes);
        let gone = self.entries.lock().forget_edits();
        if let Some(sim) = self.index.get(SIM_ENTITY) {
            gone.iter().for_each(|edit| pump.replace(&sim, digest::of_entry(edit), Digest::ZERO));
        }
        for entry in entries {
            // A record that is known, or what would have been refused as a part of a delta too.
            _ = self.add_entry(Origin::Local, entry);
        }
        self.hub.ring();
        Some(entered)
    }

    /// Sends all writers of parameters to the entities' mutexes, and so to `batch`.
    fn freeze(&self) {
        for slot in (0..self.slots.len()).filter_map(|number| self.slots.get(number)) {
            let cell = slot.pump.lock().cell.as_ref().map(|cell| Arc::clone(cell.tip()));
            if let Some(cell) = cell {
                let mut writer = cell.lock();
                let status = writer.status();
                writer.set_status(status & !EXCLUSIVE);
            }
        }
    }

    /// Sorts states by entity, without those that no replica admits.
    fn bodies(&self, states: Vec<(SlotId, SlotState)>) -> BTreeMap<EntityId, Body> {
        let mut bodies: BTreeMap<EntityId, Body> = BTreeMap::new();
        for (slot, state) in states {
            let Some(slot) = self.slots.get(slot.0) else { continue };
            let body = bodies.entry(slot.key.entity).or_default();
            match (&slot.key.path, state) {
                (None, SlotState::Life(life)) if life.newest().hlc < STAMP_LIMIT => body.life = life,
                (Some(path), SlotState::Node(node))
                    if node.newest().hlc < STAMP_LIMIT && node.is_normal() =>
                {
                    body.nodes.insert(path.clone(), node);
                }
                _ => {}
            }
        }
        let sim = bodies.entry(SIM_ENTITY).or_default();
        sim.life = Life { created: Stamp::GENESIS, deleted: Stamp::NONE };
        bodies
    }

    /// Gives an entity what it holds in the new world, and marks what changed by it.
    fn renew(&self, node: &Arc<EntityNode>, inner: &mut Inner, body: Body, entered: &mut Entered) {
        let own = self.hub.hybrid.writer();
        let (before, phase) = (node.phase(), Phase::of(&body.life));
        let old = self.left_behind(inner);
        let life = std::mem::replace(&mut inner.life, body.life);
        if life != body.life {
            self.changed(node.life_slot());
        }
        if fell(own, &life.into(), Some(&body.life.into())) {
            entered.fallen(&SlotKey { entity: node.id, path: None });
        }
        self.hub.counters.orphans.fetch_sub(std::mem::take(&mut inner.paths.orphans), Ordering::Relaxed);
        let cells = self.cells_of(inner);
        let reserved = old.iter().map(|(path, old)| (path.clone(), old.number)).collect();
        inner.paths = Paths { slots: std::mem::take(&mut inner.paths.slots), reserved, ..Paths::default() };
        inner.tree = Tree::new();
        node.set_phase(phase);
        match phase {
            Phase::Deleted => self.bury(node, inner, &cells),
            _ => self.fill(node, inner, &body.nodes, &cells),
        }
        for &number in &inner.paths.slots {
            let Some(slot) = self.slots.get(number) else { continue };
            let Some(path) = &slot.key.path else { continue };
            let now = inner.tree.state(path).unwrap_or_default();
            let (was, shown) = match old.get(path) {
                Some(old) => (old.state.clone(), old.visibility),
                None => Default::default(),
            };
            let seen = inner.tree.visibility(path);
            let sees = |visibility| std::mem::discriminant(&visibility);
            if !alike(&was, &now) || sees(shown) != sees(seen) || before != phase {
                self.changed(number);
            }
            if fell(own, &was.into(), Some(&now.into())) {
                entered.fallen(&slot.key);
            }
        }
    }

    /// What the paths of an entity held.
    fn left_behind(&self, inner: &Inner) -> BTreeMap<Path, Old> {
        let old = |number: &u32| {
            let path = self.slots.get(*number)?.key.path.clone()?;
            let state = inner.tree.state(&path).unwrap_or_default();
            let visibility = inner.tree.visibility(&path);
            Some((path, Old { number: *number, state, visibility }))
        };
        inner.paths.slots.iter().filter_map(old).collect()
    }

    /// The cells of an entity, which handles point at.
    fn cells_of(&self, inner: &Inner) -> BTreeMap<Path, Arc<Cell>> {
        let cell = |number: &u32| {
            let slot = self.slots.get(*number)?;
            let cell = slot.pump.lock().cell.as_ref().map(|cell| Arc::clone(cell.tip()))?;
            Some((slot.key.path.clone()?, cell))
        };
        inner.paths.slots.iter().filter_map(cell).collect()
    }

    /// Fills a new tree over old cells.
    fn fill(
        &self,
        node: &Arc<EntityNode>,
        inner: &mut Inner,
        nodes: &BTreeMap<Path, NodeState>,
        cells: &BTreeMap<Path, Arc<Cell>>,
    ) {
        let Inner { tree, paths, .. } = inner;
        for (path, state) in nodes {
            let words = state.leaf.as_ref().map_or(0, |leaf| crate::core::width_of(&leaf.value));
            tree.join(path, state, &mut |at| self.leaf_again(node, paths, at, at == path, words, cells));
        }
        for path in cells.keys() {
            // Who holds a handle on it reads that it is missing, and sees it when it is written again.
            tree.ensure(path, &mut |at| self.leaf_again(node, paths, at, false, 0, cells));
        }
        for path in cells.keys() {
            if let Some(leaf) = tree.get(path) {
                leaf.settle(tree.visibility(path), node.phase() == Phase::Alive);
            }
        }
        node.publish_cells(paths);
    }

    fn leaf_again(
        &self,
        node: &Arc<EntityNode>,
        paths: &mut Paths,
        path: &Path,
        asked: bool,
        words: usize,
        cells: &BTreeMap<Path, Arc<Cell>>,
    ) -> CellLeaf {
        let Some(cell) = cells.get(path) else { return self.make_leaf(node, paths, path, asked, words) };
        paths.reserved.remove(path);
        CellLeaf::stale(Arc::clone(cell), Arc::clone(&self.hub))
    }

    /// An entity that is deleted in the new world.
    fn bury(&self, node: &EntityNode, inner: &Inner, cells: &BTreeMap<Path, Arc<Cell>>) {
        for cell in cells.values() {
            let mut writer = cell.lock();
            cell.drop_leaf(&mut writer);
            writer.set_status(DELETED);
        }
        for slot in inner.paths.slots.iter().filter_map(|number| self.slots.get(*number)) {
            slot.pump.lock().cell = None;
        }
        node.cells.store(Arc::default());
    }

    /// Indexes all names anew: looking one up finds the old world's bearers, then the new one's.
    fn name_anew(&self, nodes: &[Arc<EntityNode>]) {
        let mut bearers = Vec::new();
        for node in nodes {
            let mut inner = node.inner.lock();
            inner.name = self.shown_name(node, &inner);
            bearers.extend(inner.name.clone().map(|name| (node.id, name)));
        }
        let mut names = Names::default();
        let clashes = bearers.iter().filter_map(|(id, name)| names.rename(*id, None, Some(name)));
        for (name, ids) in clashes.collect::<Vec<_>>() {
            self.events.push(crate::events::StoreEvent::NameClash { name, ids });
        }
        *self.names.lock() = names;
    }

    fn changed(&self, number: u32) {
        if let Some(slot) = self.slots.get(number) {
            slot.touch(Pending::Received);
        }
        self.hub.dirty.mark(number);
    }
}

/// Whether two states are the same, but perhaps for the epoch that their sample is counted to.
fn alike(a: &NodeState, b: &NodeState) -> bool {
    let stamp = |state: &NodeState| state.leaf.as_ref().map_or(Stamp::NONE, |leaf| leaf.stamp);
    (stamp(a), a.floor, a.kind) == (stamp(b), b.floor, b.kind)
}
