//! The shared heart of a store: finds and makes entities and cells, and applies structural changes.
//!
//! Order of locks, outermost first: `batch`, one entity's mutex after another in id order, `names`, one slot's `pump`,
//! a cell's writer lock. Fast writes take the last only.
use crate::append::AppendTable;
use crate::authors::Authors;
use crate::cell::{ALIVE, Cell, DELETED, INDEXED};
use crate::entity::{EntityNode, Inner, Paths, Phase};
use crate::entries::Entries;
use crate::events::Events;
use crate::hub::Hub;
use crate::index::Index;
use crate::leaf::CellLeaf;
use crate::names::Names;
use crate::pump::PumpState;
use crate::slot::{Pending, Slot};
use crate::watch::Watches;
use coeval_faults::{Fault, active};
use coeval_merge::{Life, NodeState, Refusal, SlotKey, SlotState, Tree, World};
use coeval_time::{Clock, Stamp};
use coeval_value::path::MAX_KEYS;
use coeval_value::words::MAX_INLINE_WORDS;
use coeval_value::{EntityId, Key, Path, SIM_ENTITY, Value};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Core {
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) slots: AppendTable<Slot>,
    pub(crate) index: Index,
    pub(crate) names: Mutex<Names>,
    /// Held, outside all other locks, from looking whether a name is free until it is taken.
    pub(crate) naming: Mutex<()>,
    /// The path of an entity's name.
    pub(crate) name_path: Path,
    /// Held shared by whoever changes more than one cell, exclusively by drains and snapshots: they see all or none.
    pub(crate) batch: RwLock<()>,
    pub(crate) entries: Mutex<Entries>,
    pub(crate) pump: Mutex<PumpState>,
    pub(crate) watches: Watches,
    pub(crate) authors: Authors,
    pub(crate) events: Events,
    /// The stamp that showed that another program writes as this store's incarnation.
    pub(crate) fork: Mutex<Option<Stamp>>,
    pub(crate) world: Mutex<World>,
    entities: AtomicU32,
    pub(crate) tombstones: AtomicU32,
}

/// What a join did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Joined {
    Changed,
    /// Known already, or too late.
    Superseded,
}

impl Core {
    pub(crate) fn new(hub: Arc<Hub>, clock: Arc<Clock>) -> Self {
        let name_path = Path::new([Key::new("name").expect("a short key")]).expect("one key");
        Self {
            clock,
            slots: AppendTable::new(),
            index: Index::new(),
            names: Mutex::default(),
            naming: Mutex::default(),
            name_path,
            batch: RwLock::new(()),
            entries: Mutex::default(),
            pump: Mutex::default(),
            watches: Watches::new(hub.limits.watch_changes),
            authors: Authors::default(),
            events: Events::default(),
            fork: Mutex::default(),
            world: Mutex::new(World::FIRST),
            entities: AtomicU32::new(0),
            tombstones: AtomicU32::new(0),
            hub,
        }
    }

    pub(crate) fn tombstones_full(&self) -> bool {
        self.tombstones.load(Ordering::Relaxed) >= self.hub.limits.tombstones
    }

    /// Whether another entity may become known.
    pub(crate) fn entities_full(&self) -> bool {
        self.entities.load(Ordering::Relaxed) >= self.hub.limits.entities
            || self.slots.len() >= self.hub.limits.slots()
    }

    /// The entity `id`, known from now on.
    pub(crate) fn node(&self, id: EntityId) -> Result<Arc<EntityNode>, Refusal> {
        self.index.get_or_make(id, || {
            if self.entities_full() {
                return Err(Refusal::Limit);
            }
            let node = Arc::new(EntityNode::new(id));
            let key = SlotKey { entity: id, path: None };
            let slot = self.slots.push(Slot::new(key, Arc::clone(&node))).ok_or(Refusal::Limit)?;
            node.slot.get_or_init(|| slot);
            self.entities.fetch_add(1, Ordering::Relaxed);
            Ok(node)
        })
    }

    /// The slot of a path, numbered from now on.
    pub(crate) fn path_slot(&self, node: &Arc<EntityNode>, path: &Path) -> Result<u32, Refusal> {
        let mut inner = node.inner.lock();
        if let Some(leaf) = inner.tree.get(path) {
            return Ok(leaf.cell.slot);
        }
        if let Some(&slot) = inner.paths.reserved.get(path) {
            return Ok(slot);
        }
        // A deleted entity keeps its slots, and no list of them by path.
        let is_it =
            |number: &&u32| self.slots.get(**number).is_some_and(|slot| slot.key.path.as_ref() == Some(path));
        if node.phase() == Phase::Deleted
            && let Some(&slot) = inner.paths.slots.iter().find(is_it)
        {
            return Ok(slot);
        }
        self.room(&inner.paths, MAX_KEYS)?;
        let slot = self.new_slot(node, &mut inner.paths, path).ok_or(Refusal::Limit)?;
        inner.paths.reserved.insert(path.clone(), slot);
        Ok(slot)
    }

    /// The cell of a path, made if it is not there; with room for `words` words if it is made.
    pub(crate) fn ensure_cell(
        &self,
        node: &Arc<EntityNode>,
        inner: &mut Inner,
        path: &Path,
        words: usize,
    ) -> Result<Arc<Cell>, Refusal> {
        if let Some(leaf) = inner.tree.get(path) {
            return Ok(Arc::clone(&leaf.cell));
        }
        self.room(&inner.paths, MAX_KEYS)?;
        let Inner { tree, paths, .. } = inner;
        let orphans = paths.orphans;
        let cell =
            Arc::clone(&tree.ensure(path, &mut |at| self.make_leaf(node, paths, at, at == path, words)).cell);
        // What the program asks for is its own, not left over from anyone.
        let own = std::mem::replace(&mut paths.orphans, orphans) - orphans;
        self.hub.counters.orphans.fetch_sub(own, Ordering::Relaxed);
        node.publish_cells(paths);
        Ok(cell)
    }

    /// Whether `more` paths fit into an entity and the store.
    pub(crate) fn room(&self, paths: &Paths, more: usize) -> Result<(), Refusal> {
        let limits = &self.hub.limits;
        let full = paths.slots.len() + more > limits.paths_per_entity as usize
            || self.slots.len() as usize + more > limits.slots() as usize;
        if full { Err(Refusal::Limit) } else { Ok(()) }
    }

    fn new_slot(&self, node: &Arc<EntityNode>, paths: &mut Paths, path: &Path) -> Option<u32> {
        let key = SlotKey { entity: node.id, path: Some(path.clone()) };
        let slot = self.slots.push(Slot::new(key, Arc::clone(node)))?;
        paths.slots.push(slot);
        Some(slot)
    }

    /// A node of the tree for `path`: the one asked for, or an ancestor of it.
    pub(crate) fn make_leaf(
        &self,
        node: &Arc<EntityNode>,
        paths: &mut Paths,
        path: &Path,
        asked: bool,
        words: usize,
    ) -> CellLeaf {
        let slot = paths.reserved.remove(path).or_else(|| self.new_slot(node, paths, path));
        // `room` keeps far away from the table's end.
        let slot = slot.expect("the slot table ends beyond its limit");
        let alive = if node.phase() == Phase::Alive { ALIVE } else { 0 };
        if node.phase() == Phase::Unknown {
            paths.orphans += 1;
            self.hub.counters.orphans.fetch_add(1, Ordering::Relaxed);
        }
        let indexed = if *path == self.name_path { INDEXED } else { 0 };
        let cell = Arc::new(Cell::new(slot, if asked { words } else { 0 }, alive | indexed));
        paths.fresh.push((path.clone(), Arc::clone(&cell)));
        if let Some(slot) = self.slots.get(slot) {
            slot.pump.lock().cell = Some(Arc::clone(&cell));
        }
        CellLeaf::new(cell, Arc::clone(&self.hub))
    }

    /// Joins a fragment of a path into the entity's tree and notes what changed. The caller holds `batch` shared.
    pub(crate) fn join(
        &self,
        node: &Arc<EntityNode>,
        inner: &mut Inner,
        path: &Path,
        state: &NodeState,
        by: Pending,
    ) -> Result<Joined, Refusal> {
        if active(Fault::DeletionLoses) && state.newest() > inner.life.deleted {
            self.bring_back(node, inner);
        }
        match node.phase() {
            Phase::Deleted => {
                self.hub.counters.after_deletion.fetch_add(1, Ordering::Relaxed);
                return Ok(Joined::Superseded);
            }
            // What was received was looked at before, and local writers have asked for all of their batch: this is for
            // slots that others took meanwhile.
            _ if by != Pending::Written && inner.tree.get(path).is_none() => self.room(&inner.paths, 0)?,
            _ => {}
        }
        let words = state.leaf.as_ref().map_or(0, |leaf| width_of(&leaf.value));
        let Inner { tree, paths, .. } = inner;
        let report = tree.join(path, state, &mut |at| self.make_leaf(node, paths, at, at == path, words));
        node.publish_cells(paths);
        for touched in &report.touched {
            let Some(number) = tree.get(touched).map(|leaf| leaf.cell.slot) else { continue };
            if let Some(slot) = self.slots.get(number) {
                slot.touch(by);
                self.hub.mark(number);
            }
        }
        // What was overtaken before it was there was written all the same: its mates must not go out alone.
        if by == Pending::Written
            && !report.changed
            && let Some(number) = tree.get(path).map(|leaf| leaf.cell.slot)
            && let Some(slot) = self.slots.get(number)
        {
            slot.touch(by);
            self.hub.mark(number);
        }
        if path.keys().first() == self.name_path.keys().first() {
            self.refresh_name(node, inner);
        }
        Ok(if report.changed { Joined::Changed } else { Joined::Superseded })
    }

    /// Whether a received fragment may replace or hide what was written here since the last drain: at its own path, above
    /// it or below it; with a deletion, anywhere.
    pub(crate) fn overtakes(&self, inner: &Inner, slot: &Slot, state: &SlotState) -> bool {
        let written = |number: u32| self.slots.get(number).is_some_and(|slot| self.is_written(slot));
        match (&slot.key.path, state) {
            (Some(path), _) => {
                let mut above = std::iter::successors(Some(path.clone()), Path::parent);
                above.any(|at| inner.tree.get(&at).is_some_and(|leaf| written(leaf.cell.slot)))
                    || inner.tree.below(path).any(|leaf| written(leaf.cell.slot))
            }
            (None, SlotState::Life(life)) if !life.deleted.is_none() => {
                self.is_written(slot) || inner.paths.slots.iter().any(|number| written(*number))
            }
            _ => false,
        }
    }

    /// Whether a slot was written here since the last drain.
    fn is_written(&self, slot: &Slot) -> bool {
        let pump = slot.pump.lock();
        let leaf = pump.cell.as_ref().map_or(Stamp::NONE, |cell| cell.tip().stamp());
        pump.is_written(leaf, self.hub.hybrid.issues(leaf.writer))
    }

    /// Joins a fragment of an entity's life. The caller holds `batch` shared.
    pub(crate) fn join_life(
        &self,
        node: &Arc<EntityNode>,
        inner: &mut Inner,
        life: &Life,
        by: Pending,
    ) -> Result<Joined, Refusal> {
        if node.id == SIM_ENTITY && !life.deleted.is_none() {
            return Err(Refusal::Protected);
        }
        let mut joined = inner.life;
        joined.join(life);
        if joined == inner.life {
            return Ok(Joined::Superseded);
        }
        inner.life = joined;
        let phase = Phase::of(&joined);
        if phase != node.phase() {
            self.enter_phase(node, inner, phase);
        }
        let slot = node.life_slot();
        if let Some(entry) = self.slots.get(slot) {
            entry.touch(by);
        }
        self.hub.mark(slot);
        Ok(Joined::Changed)
    }

    fn enter_phase(&self, node: &Arc<EntityNode>, inner: &mut Inner, phase: Phase) {
        self.hub.counters.orphans.fetch_sub(std::mem::take(&mut inner.paths.orphans), Ordering::Relaxed);
        node.set_phase(phase);
        for &slot in &inner.paths.slots {
            let Some(entry) = self.slots.get(slot) else { continue };
            let mut pump = entry.pump.lock();
            let Some(cell) = pump.cell.as_ref().map(|cell| Arc::clone(cell.tip())) else { continue };
            let mut writer = cell.lock();
            match phase {
                Phase::Deleted => {
                    cell.drop_leaf(&mut writer);
                    writer.set_status(DELETED);
                    pump.cell = None;
                }
                _ => {
                    let status = writer.status();
                    writer.set_status(status | ALIVE);
                }
            }
            drop(writer);
            drop(pump);
            self.hub.mark(slot);
        }
        if phase == Phase::Deleted {
            self.tombstones.fetch_add(1, Ordering::Relaxed);
            inner.tree = Tree::new();
            inner.paths = Paths { slots: std::mem::take(&mut inner.paths.slots), ..Paths::default() };
            node.cells.store(Arc::default());
        }
        self.refresh_name(node, inner);
    }

    /// Forgets that an entity was deleted: what no replica does, unless a fault is put in.
    fn bring_back(&self, node: &Arc<EntityNode>, inner: &mut Inner) {
        if node.phase() == Phase::Deleted {
            inner.life.deleted = Stamp::NONE;
            self.tombstones.fetch_sub(1, Ordering::Relaxed);
            self.enter_phase(node, inner, if inner.life.is_live() { Phase::Alive } else { Phase::Unknown });
            self.hub.mark(node.life_slot());
        }
    }

    /// Forgets entities that were deleted a while ago: what no replica does, unless a fault is put in.
    pub(crate) fn forget_old_tombstones(&self) {
        let old = (self.hub.now)().as_nanos().saturating_sub(2_000_000_000);
        for slot in (0..self.slots.len()).filter_map(|number| self.slots.get(number)) {
            let mut inner = slot.entity.inner.lock();
            if slot.key.path.is_none() && !inner.life.deleted.is_none() && inner.life.deleted.hlc < old {
                inner.life.created = Stamp::NONE;
                self.bring_back(&slot.entity, &mut inner);
            }
        }
    }

    /// The entity's name as readers see it.
    pub(crate) fn shown_name(&self, node: &EntityNode, inner: &Inner) -> Option<Arc<str>> {
        let shown = match node.phase() {
            Phase::Alive => {
                inner.tree.get(&self.name_path).filter(|leaf| leaf.cell.status() & crate::cell::SHOWN != 0)
            }
            _ => None,
        };
        match shown.and_then(|leaf| leaf.cell.leaf(&self.hub)).map(|leaf| leaf.value) {
            Some(Value::Text(name)) => Some(name),
            _ => None,
        }
    }

    /// Brings the index of names up to date with the entity's `name`.
    fn refresh_name(&self, node: &EntityNode, inner: &mut Inner) {
        let name = self.shown_name(node, inner);
        if name == inner.name {
            return;
        }
        let clash = self.names.lock().rename(node.id, inner.name.as_ref(), name.as_ref());
        inner.name = name;
        if let Some((name, ids)) = clash {
            self.events.push(crate::events::StoreEvent::NameClash { name, ids });
        }
    }
}

/// Words of a value in a cell; 0 for one on the heap.
pub(crate) fn width_of(value: &Value) -> usize {
    coeval_value::words::encode_words(value, &mut [0; MAX_INLINE_WORDS]).map_or(0, |(_, words)| words)
}
