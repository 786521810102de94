//! What holds at any time, as one reader of one replica sees it.
use crate::check::{Check, Violation};
use coeval_store::{Shown, Snapshot, Store};
use coeval_time::{Stamp, WallTime};
use coeval_value::{EntityId, Path};
use std::collections::{BTreeMap, BTreeSet};

/// The paths that are only ever written together, in one batch: each at its own entity, or below one.
#[derive(Clone, Debug, Default)]
pub struct Twins(pub Vec<(EntityId, Path)>);

/// What a reader of one replica has seen.
#[derive(Debug, Default)]
pub struct Witness {
    shown: BTreeMap<EntityId, BTreeMap<Path, Stamp>>,
    deleted: BTreeSet<EntityId>,
    newest: Stamp,
    session: WallTime,
    /// The paths whose batches must be whole.
    twins: Twins,
}

impl Witness {
    /// A witness that knows which paths are written together.
    pub fn new(twins: Twins) -> Self {
        Self { twins, ..Self::default() }
    }

    /// Session wall time, read again; what is wrong with it.
    pub fn session_time(&mut self, now: WallTime) -> Option<String> {
        let before = std::mem::replace(&mut self.session, now);
        (now < before).then(|| format!("went from {before} back to {now}"))
    }

    /// An entity was deleted here.
    pub fn deleted(&mut self, entity: EntityId) {
        self.deleted.insert(entity);
    }

    /// Whether an entity was seen to be deleted.
    pub fn knows_deleted(&self, entity: EntityId) -> bool {
        self.deleted.contains(&entity)
    }

    /// The newest stamp that was read.
    pub const fn newest(&self) -> Stamp {
        self.newest
    }

    /// Takes a snapshot and compares it with all before. `whole`: batches must not be torn.
    pub fn look(&mut self, store: &Store, whole: bool) -> Vec<Violation> {
        let snapshot = store.snapshot();
        let node = None;
        let mut found = Vec::new();
        for (entity, view) in snapshot.entities() {
            if self.deleted.contains(&entity) {
                let detail = format!("{entity} is shown again");
                found.push(Violation { check: Check::DeletedStaysDeleted, node, detail });
            }
            let seen = self.shown.entry(entity).or_default();
            for (path, shown) in &view.parameters {
                let Shown::Leaf(leaf) = shown else { continue };
                let last = seen.insert(path.clone(), leaf.stamp).unwrap_or_default();
                self.newest = self.newest.max(leaf.stamp);
                if leaf.stamp < last {
                    let detail = format!("{entity} {path} went from {last:?} back to {:?}", leaf.stamp);
                    found.push(Violation { check: Check::StampsGoOn, node, detail });
                }
            }
        }
        self.deleted.extend(self.shown.keys().copied().filter(|entity| store.is_deleted(*entity)));
        self.shown.retain(|entity, _| !self.deleted.contains(entity));
        found.extend(self.torn(&snapshot).filter(|_| whole));
        found
    }

    fn torn(&self, snapshot: &Snapshot) -> Option<Violation> {
        let stamp = |(entity, path): &(EntityId, Path)| snapshot.leaf(*entity, path).map(|leaf| leaf.stamp);
        let stamps: Vec<Option<Stamp>> = self.twins.0.iter().map(stamp).collect();
        let differ = stamps.windows(2).any(|pair| pair[0] != pair[1]);
        let detail = format!("what is written together has the stamps {stamps:?}");
        differ.then_some(Violation { check: Check::BatchesAreWhole, node: None, detail })
    }
}
