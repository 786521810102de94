//! Local writes: the fast way through one cell, and batches through the entities' mutexes.
use crate::cell::{Cell, FORWARDED, INDEXED, LIVE, Payload, payload};
use crate::core::Core;
use crate::entity::{EntityNode, Inner, Phase};
use crate::error::WriteError;
use crate::layout::Header;
use crate::slot::Pending;
use crate::store::Store;
use coeval_merge::{Batch, Op, Refusal, SlotKey, SlotState};
use coeval_time::{Context, Stamp};
use coeval_value::words::{MAX_INLINE_WORDS, Words};
use coeval_value::{EntityId, Key, Path, SampleMeta, Value};
use parking_lot::MutexGuard;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Writes that take effect together, under one stamp: readers of snapshots and watches, here and at every other peer,
/// see all or none of them. Operations count in program order.
#[must_use = "a batch does nothing until it is committed"]
pub struct WriteBatch<'a> {
    store: &'a Store,
    context: Context,
    batch: Batch,
}

/// The writer's time, from its context.
pub(crate) fn meta_of(context: &Context, discontinuous: bool) -> SampleMeta {
    SampleMeta { sim: context.sim, epoch: context.epoch, direction: context.direction, discontinuous }
}

impl WriteBatch<'_> {
    /// Creates an entity. `id` must be fresh: a v7 UUID at run time.
    pub fn create(&mut self, entity: EntityId) -> Result<&mut Self, WriteError> {
        self.push(Op::Create { entity })
    }

    /// Deletes an entity, for ever.
    pub fn delete(&mut self, entity: EntityId) -> Result<&mut Self, WriteError> {
        self.push(Op::Delete { entity })
    }

    /// Writes a value; a map replaces what is there.
    pub fn set(
        &mut self,
        entity: EntityId,
        path: &Path,
        value: impl Into<Value>,
    ) -> Result<&mut Self, WriteError> {
        let op = self.checked(entity, path, value.into())?;
        self.push(op)
    }

    /// Writes a value that did not come there by moving: reads never interpolate or smooth from the one before.
    pub fn teleport(
        &mut self,
        entity: EntityId,
        path: &Path,
        value: impl Into<Value>,
    ) -> Result<&mut Self, WriteError> {
        let op = self.checked(entity, path, value.into())?;
        self.batch.push_discontinuous(op)?;
        Ok(self)
    }

    /// Removes a parameter and all below it. Removing what is not there changes nothing.
    pub fn remove(&mut self, entity: EntityId, path: &Path) -> Result<&mut Self, WriteError> {
        self.push(Op::Remove { entity, path: path.clone() })
    }

    /// Makes a parameter a map with just this content.
    pub fn replace(
        &mut self,
        entity: EntityId,
        path: &Path,
        map: BTreeMap<Key, Value>,
    ) -> Result<&mut Self, WriteError> {
        self.set(entity, path, Value::Map(Arc::new(map)))
    }

    /// Puts everything into effect.
    ///
    /// # Errors
    /// [`WriteError`]; nothing of the batch took effect.
    pub fn commit(self) -> Result<Stamp, WriteError> {
        let meta = meta_of(&self.context, false);
        self.store.core.check_context(&self.context)?;
        self.store.core.commit(&self.batch, meta, At::Context(&self.context))
    }

    fn checked(&self, entity: EntityId, path: &Path, value: Value) -> Result<Op, WriteError> {
        self.store.core.check_value(entity, path, &value)?;
        Ok(Op::Set { entity, path: path.clone(), value })
    }

    fn push(&mut self, op: Op) -> Result<&mut Self, WriteError> {
        self.batch.push(op)?;
        Ok(self)
    }
}

impl Store {
    /// A batch of writes at `context`.
    pub fn batch(&self, context: Context) -> WriteBatch<'_> {
        WriteBatch { store: self, context, batch: Batch::new() }
    }

    /// Creates an entity with a fresh id (a v7 UUID at run time) and, if given, a name that no living entity bears.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed.
    pub fn create_entity(
        &self,
        context: Context,
        id: EntityId,
        name: Option<&str>,
    ) -> Result<Stamp, WriteError> {
        self.create_entity_with(context, id, name, [])
    }

    /// As [`create_entity`](Self::create_entity), with initial parameters that appear together with the entity.
    pub fn create_entity_with(
        &self,
        context: Context,
        id: EntityId,
        name: Option<&str>,
        parameters: impl IntoIterator<Item = (Path, Value)>,
    ) -> Result<Stamp, WriteError> {
        let mut batch = self.batch(context);
        batch.create(id)?;
        // Look and make under one lock: two local threads may not both find the name free.
        let _naming = self.core.naming.lock();
        if let Some(name) = name {
            let bearers = self.core.names.lock().bearers(name);
            if !bearers.is_empty() {
                return Err(WriteError::NameTaken { name: name.into(), bearers });
            }
            batch.set(id, &self.core.name_path, name)?;
        }
        for (path, value) in parameters {
            batch.set(id, &path, value)?;
        }
        batch.commit()
    }

    /// Deletes an entity: permanent, everywhere.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed.
    pub fn delete_entity(&self, context: Context, id: EntityId) -> Result<Stamp, WriteError> {
        let mut batch = self.batch(context);
        batch.delete(id)?;
        batch.commit()
    }

    /// Writes one parameter by name. A map replaces what is there.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed.
    pub fn set(
        &self,
        context: Context,
        entity: EntityId,
        path: &Path,
        value: impl Into<Value>,
    ) -> Result<Stamp, WriteError> {
        self.write(context, entity, path, value.into(), false)
    }

    /// Writes a value that did not come there by moving: reads never interpolate or smooth from the one before.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed.
    pub fn teleport(
        &self,
        context: Context,
        entity: EntityId,
        path: &Path,
        value: impl Into<Value>,
    ) -> Result<Stamp, WriteError> {
        self.write(context, entity, path, value.into(), true)
    }

    /// Removes a parameter and all below it. Removing what is not there changes nothing.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed.
    pub fn remove(&self, context: Context, entity: EntityId, path: &Path) -> Result<Stamp, WriteError> {
        let mut batch = self.batch(context);
        batch.remove(entity, path)?;
        batch.commit()
    }

    /// The initial values of a config: every operation gets [`Stamp::GENESIS`], below every other write. `meta` is the
    /// session's genesis in sim time. Programs that parse the same config apply the same operations.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed. Entities that exist already are no error: the operations merge.
    pub fn apply_genesis(&self, ops: Vec<Op>, meta: SampleMeta) -> Result<(), WriteError> {
        let mut batch = Batch::new();
        for op in ops {
            if let Op::Set { entity, path, value } = &op {
                self.core.check_value(*entity, path, value)?;
            }
            batch.push(op)?;
        }
        self.core.commit(&batch, meta, At::Genesis).map(drop)
    }

    fn write(
        &self,
        context: Context,
        entity: EntityId,
        path: &Path,
        value: Value,
        teleport: bool,
    ) -> Result<Stamp, WriteError> {
        let core = &self.core;
        core.check_context(&context)?;
        core.check_value(entity, path, &value)?;
        let node = core.index.get(entity).ok_or(WriteError::UnknownEntity(entity))?;
        if let (Some(cell), false) = (node.cell(path), matches!(value, Value::Map(_))) {
            let mut words: Words = [0; MAX_INLINE_WORDS];
            let mut payload = Some(payload(value.clone(), &mut words));
            if let Some(stamp) = core.write_fast(&cell, &context, teleport, &mut payload)? {
                return Ok(stamp);
            }
        }
        core.write_slow(context, entity, path, value, teleport)
    }
}

impl Core {
    #[inline]
    pub(crate) fn check_context(&self, context: &Context) -> Result<(), WriteError> {
        if context.session == self.hub.session { Ok(()) } else { Err(WriteError::ForeignContext) }
    }

    pub(crate) fn check_value(&self, entity: EntityId, path: &Path, value: &Value) -> Result<(), WriteError> {
        let checked = self.hub.limits.value.check(value);
        checked.map_err(|source| WriteError::Value { entity, path: path.clone(), source })
    }

    /// A write that needs nobody's leave: the cell is live and has room. `None`, with the payload left where it was,
    /// when it is not that simple.
    #[inline]
    pub(crate) fn write_fast(
        &self,
        cell: &Arc<Cell>,
        context: &Context,
        teleport: bool,
        payload: &mut Option<Payload<'_>>,
    ) -> Result<Option<Stamp>, WriteError> {
        let mut cell = cell.tip();
        let mut writer = cell.lock();
        while writer.status() & FORWARDED != 0 {
            drop(writer);
            cell = cell.tip();
            writer = cell.lock();
        }
        let words = payload.as_ref().map_or(0, Payload::words);
        if writer.status() & (LIVE | INDEXED) != LIVE || !cell.fits(words) {
            return Ok(None);
        }
        let Some(payload) = payload.take() else { return Ok(None) };
        // Under the lock, so that stamps of one cell are published in their order.
        let stamp = self.hub.stamp(context.wall, Stamp::NONE)?;
        let header = Header::new(stamp, &meta_of(context, teleport), &self.hub.epochs);
        cell.publish(&mut writer, header, payload, &self.hub);
        let slot = cell.slot;
        drop(writer);
        self.hub.mark(slot);
        Ok(Some(stamp))
    }

    /// Any write of one value.
    #[cold]
    pub(crate) fn write_slow(
        &self,
        context: Context,
        entity: EntityId,
        path: &Path,
        value: Value,
        teleport: bool,
    ) -> Result<Stamp, WriteError> {
        let mut batch = Batch::new();
        batch.push(Op::Set { entity, path: path.clone(), value })?;
        self.commit(&batch, meta_of(&context, teleport), At::Context(&context))
    }

    /// Checks and applies a batch, all or nothing.
    fn commit(&self, batch: &Batch, meta: SampleMeta, at: At<'_>) -> Result<Stamp, WriteError> {
        let _all_or_nothing = self.batch.read();
        let merging = matches!(at, At::Genesis);
        let nodes = batch.entities().map(|(id, created, _)| self.node_for_write(id, created || merging));
        let nodes: Vec<Arc<EntityNode>> = nodes.collect::<Result<_, _>>()?;
        // In id order, so that two batches never wait for each other.
        let mut guards: Vec<MutexGuard<'_, Inner>> = nodes.iter().map(|node| node.inner.lock()).collect();
        if !merging {
            for (node, (_, created, _)) in nodes.iter().zip(batch.entities()) {
                self.check_phase(node, created)?;
            }
        }
        // Under the locks, so that nothing newer is there yet. A stamp that comes to nothing does no harm.
        let stamp = match at {
            At::Context(context) => self.hub.stamp(context.wall, Stamp::NONE)?,
            At::Genesis => Stamp::GENESIS,
        };
        let mut fragments = batch.fragments(stamp, meta);
        self.check_room(&nodes, &guards, &fragments)?;
        // What lies deepest first: a replaced map's new values are there before the old ones go.
        fragments
            .sort_by_key(|(key, _)| Reverse(key.path.as_ref().map_or(usize::MAX, |path| path.keys().len())));
        for (key, state) in fragments {
            let Ok(at) = nodes.binary_search_by_key(&key.entity, |node| node.id) else { continue };
            let (node, inner) = (&nodes[at], &mut *guards[at]);
            let joined = match (&key.path, &state) {
                (Some(path), SlotState::Node(state)) => self.join(node, inner, path, state, Pending::Written),
                (_, SlotState::Life(life)) => self.join_life(node, inner, life, Pending::Written),
                (None, SlotState::Node(_)) => Err(Refusal::WrongKind),
            };
            debug_assert!(joined.is_ok() || merging, "a checked batch was refused: {joined:?}");
        }
        Ok(stamp)
    }

    fn node_for_write(&self, id: EntityId, create: bool) -> Result<Arc<EntityNode>, WriteError> {
        if let Some(node) = self.index.get(id) {
            return Ok(node);
        }
        if !create {
            return Err(WriteError::UnknownEntity(id));
        }
        self.node(id).map_err(|_| WriteError::Limit { entity: id, what: "entities" })
    }

    fn check_phase(&self, node: &EntityNode, created: bool) -> Result<(), WriteError> {
        let id = node.id;
        match (node.phase(), created) {
            (Phase::Deleted, _) => Err(WriteError::Deleted(id)),
            (Phase::Alive, true) => Err(WriteError::Exists(id)),
            (Phase::Unknown, false) => Err(WriteError::UnknownEntity(id)),
            (Phase::Unknown, true) if self.tombstones_full() => {
                Err(WriteError::Limit { entity: id, what: "deleted entities" })
            }
            _ => Ok(()),
        }
    }

    fn check_room(
        &self,
        nodes: &[Arc<EntityNode>],
        guards: &[MutexGuard<'_, Inner>],
        fragments: &[(SlotKey, SlotState)],
    ) -> Result<(), WriteError> {
        let mut more = vec![0usize; nodes.len()];
        for (key, _) in fragments {
            let at = nodes.binary_search_by_key(&key.entity, |node| node.id);
            if let (Ok(at), Some(path)) = (at, &key.path)
                && guards[at].tree.get(path).is_none()
            {
                more[at] += path.keys().len();
            }
        }
        for ((node, inner), more) in nodes.iter().zip(guards).zip(more) {
            self.room(&inner.paths, more)
                .map_err(|_| WriteError::Limit { entity: node.id, what: "paths" })?;
        }
        Ok(())
    }
}

/// What a batch is stamped with.
#[derive(Clone, Copy)]
enum At<'a> {
    /// A new stamp for this context.
    Context(&'a Context),
    /// The genesis stamp; what exists already is merged with.
    Genesis,
}
