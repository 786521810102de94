//! The index from entity ids to entities: the only file that knows the concurrent map.
//!
//! No guard of the map leaves this file or is held across a call; nothing here is iterated.
use crate::entity::EntityNode;
use coeval_value::EntityId;
use dashmap::DashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// Many shards: a shard that grows stalls an insert in it, and only in it, for milliseconds.
const SHARDS: usize = 256;

pub(crate) struct Index {
    map: DashMap<EntityId, Arc<EntityNode>, foldhash::fast::RandomState>,
    /// Serializes births, so that an entity is numbered once. Look-ups do not take it.
    births: Mutex<()>,
}

impl Index {
    pub(crate) fn new() -> Self {
        let map = DashMap::with_hasher_and_shard_amount(foldhash::fast::RandomState::default(), SHARDS);
        Self { map, births: Mutex::new(()) }
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<Arc<EntityNode>> {
        self.map.get(&id).map(|found| Arc::clone(found.value()))
    }

    /// The entity `id`, made by `make` if it is not there.
    pub(crate) fn get_or_make<E>(
        &self,
        id: EntityId,
        make: impl FnOnce() -> Result<Arc<EntityNode>, E>,
    ) -> Result<Arc<EntityNode>, E> {
        if let Some(found) = self.get(id) {
            return Ok(found);
        }
        let _births = self.births.lock();
        if let Some(found) = self.get(id) {
            return Ok(found);
        }
        let node = make()?;
        self.map.insert(id, Arc::clone(&node));
        Ok(node)
    }
}
