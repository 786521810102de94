//! One entity: its life, its tree, and the map that reads by name look into.
use crate::cell::Cell;
use crate::leaf::CellLeaf;
use arc_swap::ArcSwap;
use coeval_merge::{Digest, Life, Tree};
use coeval_value::{EntityId, Path};
use foldhash::fast::FixedState;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// What is known of an entity's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    /// No creation has arrived.
    Unknown = 0,
    Alive = 1,
    Deleted = 2,
}

impl Phase {
    pub(crate) fn of(life: &Life) -> Self {
        match (life.created.is_none(), life.deleted.is_none()) {
            (_, false) => Self::Deleted,
            (false, true) => Self::Alive,
            (true, true) => Self::Unknown,
        }
    }
}

pub(crate) struct EntityNode {
    pub(crate) id: EntityId,
    /// The number of the slot of its life; set before anyone else sees the node.
    pub(crate) slot: OnceLock<u32>,
    phase: AtomicU8,
    /// Cells by path, for reads by name without the mutex. Replaced under the mutex.
    pub(crate) cells: ArcSwap<CellMap>,
    /// What the entity added to the digest at the last drain. Touched by the pump only.
    pub(crate) digest: Mutex<Digest>,
    pub(crate) inner: Mutex<Inner>,
}

/// What the mutex of an entity guards.
#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) life: Life,
    pub(crate) tree: Tree<CellLeaf>,
    pub(crate) paths: Paths,
    /// The name under which the entity is indexed.
    pub(crate) name: Option<Arc<str>>,
}

/// The path slots of an entity.
#[derive(Default)]
pub(crate) struct Paths {
    /// All of them, in the order of their making.
    pub(crate) slots: Vec<u32>,
    /// Those without a node in the tree yet.
    pub(crate) reserved: BTreeMap<Path, u32>,
    /// Cells made while the entity's creation was not known.
    pub(crate) orphans: u64,
    /// Cells not in the map for readers yet.
    pub(crate) fresh: Vec<(Path, Arc<Cell>)>,
}

impl EntityNode {
    pub(crate) fn new(id: EntityId) -> Self {
        Self {
            id,
            slot: OnceLock::new(),
            phase: AtomicU8::new(Phase::Unknown as u8),
            cells: ArcSwap::default(),
            digest: Mutex::default(),
            inner: Mutex::default(),
        }
    }

    /// The slot of the entity's life.
    pub(crate) fn life_slot(&self) -> u32 {
        // A node is handed out by the index only after its slot was made.
        *self.slot.get().expect("an entity without a slot left its making")
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Unknown,
            1 => Phase::Alive,
            _ => Phase::Deleted,
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// The cell of `path`, where it is now. Takes no lock.
    pub(crate) fn cell(&self, path: &Path) -> Option<Arc<Cell>> {
        self.cells.load().get(path).map(|cell| Arc::clone(cell.tip()))
    }

    /// Lets readers by name see the cells made since.
    pub(crate) fn publish_cells(&self, paths: &mut Paths) {
        if !paths.fresh.is_empty() {
            let next = self.cells.load().with(paths.fresh.drain(..));
            self.cells.store(Arc::new(next));
        }
    }
}

type Cells = HashMap<Path, Arc<Cell>, FixedState>;

/// An immutable map from paths to cells that is cheap to extend: a large part shared from one version to the next, and
/// a small one that is copied. Never iterated in an order that anyone sees.
#[derive(Default)]
pub(crate) struct CellMap {
    base: Arc<Cells>,
    recent: Cells,
}

impl CellMap {
    pub(crate) fn get(&self, path: &Path) -> Option<&Arc<Cell>> {
        self.base.get(path).or_else(|| self.recent.get(path))
    }

    fn with(&self, more: impl Iterator<Item = (Path, Arc<Cell>)>) -> Self {
        let mut recent = self.recent.clone();
        recent.extend(more);
        if recent.len() <= 16 + self.base.len() / 16 {
            return Self { base: Arc::clone(&self.base), recent };
        }
        let mut base = Cells::clone(&self.base);
        base.extend(recent);
        Self { base: Arc::new(base), recent: Cells::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_the_cell_map_finds_all_its_paths() {
        let mut map = CellMap::default();
        let path = |n: u32| Path::parse(&format!("p/{n}")).expect("path");
        for n in 0..500 {
            map = map.with([(path(n), Arc::new(Cell::new(n, 1, 0)))].into_iter());
            let found = (0..=n).all(|m| map.get(&path(m)).is_some_and(|cell| cell.slot == m));
            assert!(found && map.get(&path(n + 1)).is_none(), "after {n}");
        }
    }
}
