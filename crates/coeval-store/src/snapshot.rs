//! [`Snapshot`]: the world at one batch boundary, immutable and comparable.
use crate::core::Core;
use crate::entity::{EntityNode, Phase};
use crate::store::Store;
use coeval_merge::{Digest, Entry, Visibility, digest};
use coeval_time::Stamp;
use coeval_value::{EntityId, Leaf, Path};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a parameter shows in a snapshot.
#[derive(Clone, Debug)]
pub enum Shown {
    /// A value, as written.
    Leaf(Leaf),
    /// A map: the parameters below it, if any, follow.
    Map,
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(a), Self::Leaf(b)) => (a.stamp, a.meta, &a.value) == (b.stamp, b.meta, &b.value),
            (Self::Map, Self::Map) => true,
            _ => false,
        }
    }
}

/// One living entity in a snapshot.
#[derive(Clone, PartialEq, Debug)]
pub struct EntityView {
    /// The stamp of its creation.
    pub created: Stamp,
    /// What it shows, in path order: a map comes before what is below it.
    pub parameters: Vec<(Path, Shown)>,
}

impl EntityView {
    /// What is shown at `path`.
    pub fn get(&self, path: &Path) -> Option<&Shown> {
        let at = self.parameters.binary_search_by(|(other, _)| other.cmp(path)).ok()?;
        Some(&self.parameters[at].1)
    }

    /// The value at `path`; `None` for a map.
    pub fn leaf(&self, path: &Path) -> Option<&Leaf> {
        match self.get(path)? {
            Shown::Leaf(leaf) => Some(leaf),
            Shown::Map => None,
        }
    }
}

struct World {
    entities: BTreeMap<EntityId, EntityView>,
    entries: Vec<Entry>,
    position: u64,
    digest: Digest,
}

/// The world at one instant between batches. Cheap to clone and to hold; two compare equal when they show the same
/// entities and values, with the same stamps, and hold the same session entries.
#[derive(Clone)]
pub struct Snapshot(Arc<World>);

impl Snapshot {
    /// The living entities, in id order.
    pub fn entities(&self) -> impl Iterator<Item = (EntityId, &EntityView)> {
        self.0.entities.iter().map(|(id, view)| (*id, view))
    }

    /// One living entity.
    pub fn entity(&self, id: EntityId) -> Option<&EntityView> {
        self.0.entities.get(&id)
    }

    /// A value as written; `None` if it is not shown, or a map.
    pub fn leaf(&self, entity: EntityId, path: &Path) -> Option<&Leaf> {
        self.entity(entity)?.leaf(path)
    }

    /// The session's entries, in id order.
    pub fn entries(&self) -> &[Entry] {
        &self.0.entries
    }

    /// The position of the last drain before it: what is drained later may be newer.
    pub fn position(&self) -> u64 {
        self.0.position
    }

    /// The digest of the world it was taken of, deleted entities included.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        let ids = |world: &World| world.entries.iter().map(|entry| entry.id).collect::<Vec<_>>();
        self.0.entities == other.0.entities && ids(&self.0) == ids(&other.0)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("position", &self.0.position)
            .field("digest", &self.0.digest)
            .field("entities", &self.0.entities)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// The world now, between two batches. Walks everything: structural writes wait meanwhile, writes to existing
    /// parameters do not (each is in it or not).
    pub fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let _boundary = core.batch.write();
        let position = core.pump.lock().position;
        let mut entities = BTreeMap::new();
        let mut sum = Digest::ZERO;
        for number in 0..core.slots.len() {
            let Some(slot) = core.slots.get(number).filter(|slot| slot.key.path.is_none()) else { continue };
            sum = sum.plus(core.view(&slot.entity, &mut entities));
        }
        let entries: Vec<_> = core.entries.lock().iter().cloned().collect();
        let digest = entries.iter().fold(sum, |sum, entry| sum.plus(digest::of_entry(entry)));
        Snapshot(Arc::new(World { entities, entries, position, digest }))
    }
}

impl Core {
    /// Adds a living entity to `views`; returns what the entity adds to the digest.
    fn view(&self, node: &EntityNode, views: &mut BTreeMap<EntityId, EntityView>) -> Digest {
        let inner = node.inner.lock();
        let sum = digest::of_entity(node.id, &inner.life, &inner.tree);
        if node.phase() == Phase::Alive {
            let shown = |path: &Path, leaf: &crate::leaf::CellLeaf| match inner.tree.visibility(path) {
                Visibility::Hidden => None,
                Visibility::Map => Some(Shown::Map),
                Visibility::Leaf { .. } => leaf.cell.leaf(&self.hub).map(Shown::Leaf),
            };
            let parameters =
                inner.tree.nodes().filter_map(|(path, leaf)| Some((path.clone(), shown(path, leaf)?)));
            views.insert(
                node.id,
                EntityView { created: inner.life.created, parameters: parameters.collect() },
            );
        }
        sum
    }
}
