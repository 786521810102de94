//! Batches: several writes with one stamp, which every reader sees all of or none of.
use crate::entity::IntoPath;
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};
use coeval_store::LookupError;
use coeval_time::{Context, Stamp};
use coeval_value::{EntityId, Key, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Writes that take effect together at [`commit`](Self::commit), in the order they were asked for. A batch that is
/// dropped does nothing.
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    shared: Arc<Shared>,
    context: Context,
    steps: Vec<Step>,
}

enum Step {
    Create(EntityId, Option<String>),
    Delete(EntityId),
    Set(EntityId, coeval_value::Path, Value),
    Remove(EntityId, coeval_value::Path),
}

impl Batch {
    pub(crate) fn new(shared: Arc<Shared>, context: Context) -> Self {
        Self { shared, context, steps: Vec::new() }
    }

    /// Makes an entity called `name`; its id can be used by what follows in the batch.
    pub fn create(&mut self, name: &str) -> Result<EntityId> {
        let here =
            self.steps.iter().any(|step| matches!(step, Step::Create(_, Some(other)) if other == name));
        if here || !matches!(self.shared.store.entity_named(name), Err(LookupError::NoSuchName(_))) {
            return Err(Error::new(
                ErrorKind::Exists,
                format!("an entity {name:?} exists already: choose another name"),
            ));
        }
        let id = EntityId::v7(self.context.wall.as_nanos() / 1_000_000, rand::random());
        self.steps.push(Step::Create(id, Some(name.to_owned())));
        Ok(id)
    }

    /// Makes an entity without a name.
    pub fn create_unnamed(&mut self) -> EntityId {
        let id = EntityId::v7(self.context.wall.as_nanos() / 1_000_000, rand::random());
        self.steps.push(Step::Create(id, None));
        id
    }

    /// Writes a value.
    pub fn set(&mut self, entity: EntityId, path: impl IntoPath, value: impl Into<Value>) -> Result<()> {
        self.steps.push(Step::Set(entity, path.into_path()?, value.into()));
        Ok(())
    }

    /// Replaces what is beneath a path by a map.
    pub fn replace(
        &mut self,
        entity: EntityId,
        path: impl IntoPath,
        map: BTreeMap<Key, Value>,
    ) -> Result<()> {
        self.set(entity, path, Value::Map(Arc::new(map)))
    }

    /// Removes a parameter and what is beneath it.
    pub fn remove(&mut self, entity: EntityId, path: impl IntoPath) -> Result<()> {
        self.steps.push(Step::Remove(entity, path.into_path()?));
        Ok(())
    }

    /// Deletes an entity for ever.
    pub fn delete(&mut self, entity: EntityId) {
        self.steps.push(Step::Delete(entity));
    }

    /// Makes all writes take effect, with one stamp; on an error none.
    pub fn commit(self) -> Result<Stamp> {
        self.shared.check_writable()?;
        let mut batch = self.shared.store.batch(self.context);
        for step in self.steps {
            match step {
                Step::Create(id, name) => {
                    batch.create(id)?;
                    if let Some(name) = name {
                        batch.set(id, "name".into_path().as_ref().map_err(Clone::clone)?, name.as_str())?;
                    }
                }
                Step::Delete(id) => {
                    batch.delete(id)?;
                }
                Step::Set(id, path, value) => {
                    batch.set(id, &path, value)?;
                }
                Step::Remove(id, path) => {
                    batch.remove(id, &path)?;
                }
            }
        }
        Ok(batch.commit()?)
    }
}
