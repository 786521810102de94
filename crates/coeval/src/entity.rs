//! Entities and parameters: what a program reads and writes.
use crate::info::ParamInfo;
use crate::publisher::{PublishOptions, Publisher};
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};
use coeval_motion::{Evolve, Policy};
use coeval_store::Reading;
use coeval_time::Context;
use coeval_value::{EntityId, Motion, Parameter, Path, Value};
use std::sync::Arc;

/// What can name a parameter: a [`Path`], or its text (`"pose/position"`).
pub trait IntoPath {
    /// The path.
    fn into_path(self) -> Result<Path>;
}

impl IntoPath for Path {
    fn into_path(self) -> Result<Path> {
        Ok(self)
    }
}

impl IntoPath for &Path {
    fn into_path(self) -> Result<Path> {
        Ok(self.clone())
    }
}

impl IntoPath for &str {
    fn into_path(self) -> Result<Path> {
        Path::parse(self).map_err(Error::invalid)
    }
}

/// A handle to an entity, by its id. Cheap to clone; outlives the entity, which it then reports as deleted.
#[derive(Clone)]
pub struct Entity {
    shared: Arc<Shared>,
    id: EntityId,
}

impl Entity {
    pub(crate) fn new(shared: Arc<Shared>, id: EntityId) -> Self {
        Self { shared, id }
    }

    /// Its id, the same at every peer.
    pub fn id(&self) -> EntityId {
        self.id
    }

    /// Its name, a label.
    pub fn name(&self) -> Option<String> {
        self.shared.name_of(self.id)
    }

    /// Whether it exists now.
    pub fn exists(&self) -> bool {
        self.shared.store.exists(self.id)
    }

    /// Writes `value` at `path`, as of the context's sim time. A [`Value::Map`] replaces what is beneath the path.
    pub fn set(&self, context: Context, path: impl IntoPath, value: impl Into<Value>) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.store.set(context, self.id, &path.into_path()?, value)?;
        Ok(())
    }

    /// Writes `value` at `path` as a teleport: no reader interpolates or smooths across it.
    pub fn teleport(&self, context: Context, path: impl IntoPath, value: impl Into<Value>) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.store.teleport(context, self.id, &path.into_path()?, value)?;
        Ok(())
    }

    /// What `path` holds at the context's sim time; a map for what has parameters beneath.
    pub fn get(&self, context: Context, path: impl IntoPath) -> Result<Value> {
        Ok(self.shared.store.get(context, self.id, &path.into_path()?)?)
    }

    /// What `path` holds at the context's sim time, as a `T`: losslessly converted or an error.
    pub fn get_as<T: Parameter + Evolve>(&self, context: Context, path: impl IntoPath) -> Result<T> {
        self.param::<T>(path)?.get(context)
    }

    /// All parameters at the context's sim time, as one map.
    pub fn map(&self, context: Context) -> Result<Value> {
        self.shared.check_context(context)?;
        let map = self.shared.store.entity_map(context, self.id);
        map.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("entity {} does not exist (any more)", self.id))
        })
    }

    /// Removes the parameter at `path` and what is beneath it. Removing what is not there changes nothing.
    pub fn remove(&self, context: Context, path: impl IntoPath) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.store.remove(context, self.id, &path.into_path()?)?;
        Ok(())
    }

    /// A handle to the parameter at `path`: resolved once, read and written without look-up or lock.
    ///
    /// Succeeds when the parameter is absent; reads say [`ErrorKind::Missing`] until it appears.
    pub fn param<T: Parameter + Evolve>(&self, path: impl IntoPath) -> Result<Param<T>> {
        let inner = self.shared.store.param::<T>(self.id, &path.into_path()?)?;
        Ok(Param { shared: Arc::clone(&self.shared), inner })
    }

    /// A publisher of the motion at `path`: sends only when readers' prediction is off.
    pub fn publisher(&self, path: impl IntoPath, options: PublishOptions) -> Result<Publisher> {
        Ok(Publisher::new(self.param::<Motion>(path)?, options))
    }

    /// Its parameters, in path order, with who wrote them and when.
    pub fn parameters(&self) -> Result<Vec<ParamInfo>> {
        ParamInfo::all(&self.shared, self.id)
    }

    /// Deletes it for ever: no write brings it back, wherever it comes from.
    pub fn delete(&self) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.store.delete_entity(self.shared.context(), self.id)?;
        Ok(())
    }
}

impl std::fmt::Debug for Entity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Entity").field(&self.id).finish()
    }
}

/// A handle to one parameter. Cheap to clone, usable from any thread.
pub struct Param<T> {
    shared: Arc<Shared>,
    inner: coeval_store::Param<T>,
}

impl<T> Clone for Param<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), inner: self.inner.clone() }
    }
}

impl<T: Parameter + Evolve> Param<T> {
    /// Writes the value as of the context's sim time.
    pub fn set(&self, context: Context, value: T) -> Result<()> {
        self.shared.check_writable()?;
        self.inner.set(context, value)?;
        Ok(())
    }

    /// Writes the value as a teleport: no reader interpolates or smooths across it.
    pub fn teleport(&self, context: Context, value: T) -> Result<()> {
        self.shared.check_writable()?;
        self.inner.teleport(context, value)?;
        Ok(())
    }

    /// The value at the context's sim time: interpolated between samples, or by its motion model.
    pub fn get(&self, context: Context) -> Result<T> {
        Ok(self.inner.get(context)?)
    }

    /// The value at the context's sim time, and how good it is.
    pub fn read(&self, context: Context) -> Result<Reading<T>> {
        Ok(self.inner.read(context)?)
    }

    /// This handle with another policy for reads beyond the samples.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { inner: self.inner.with_policy(policy), ..self }
    }

    pub(crate) fn inner(&self) -> &coeval_store::Param<T> {
        &self.inner
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}
