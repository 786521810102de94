//! [`Param`]: a parameter resolved once, then read and written without a look-up.
use crate::cell::{Cell, DELETED, Payload};
use crate::core::Core;
use crate::entity::Phase;
use crate::error::{ParamError, ReadError, WriteError};
use crate::read::Layer;
use crate::read::Reading;
use crate::store::Store;
use coeval_merge::Refusal;
use coeval_motion::{Evolve, Policy};
use coeval_time::{Context, Stamp};
use coeval_value::words::{MAX_INLINE_WORDS, Words};
use coeval_value::{EntityId, Parameter, Path, Value};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A handle on one parameter, read and written as `T`.
///
/// Reads and writes of a parameter that exists cost no look-up, no ancestor walk, no lock but the cell's own for a
/// write, and no allocation for types without heap. A parameter that is absent reads as [`ReadError::Missing`] until
/// it appears, also after it was removed; of a deleted entity, as [`ReadError::Deleted`] for ever. A value of another
/// type is an error that lasts until a value of type `T` is written.
pub struct Param<T> {
    core: Arc<Core>,
    cell: Arc<Cell>,
    entity: EntityId,
    path: Path,
    policy: Policy,
    typed: PhantomData<fn() -> T>,
}

impl Store {
    /// A handle on a parameter, whether or not it is there now.
    ///
    /// # Errors
    /// [`ParamError`].
    pub fn param<T: Parameter + Evolve>(
        &self,
        entity: EntityId,
        path: &Path,
    ) -> Result<Param<T>, ParamError> {
        let full = |_: Refusal| ParamError::Limit { entity, path: path.clone() };
        let node = self.core.node(entity).map_err(full)?;
        // Asked first: the phase is set before the cells of what is deleted are taken out of reach.
        if node.phase() == Phase::Deleted {
            return Err(ParamError::Deleted(entity));
        }
        let cell = match node.cell(path) {
            Some(cell) => cell,
            None => {
                let mut inner = node.inner.lock();
                if node.phase() == Phase::Deleted {
                    return Err(ParamError::Deleted(entity));
                }
                // The size of the type is a good guess at the words of its values; a wrong one costs one indirection.
                let words = size_of::<T>().div_ceil(8).min(MAX_INLINE_WORDS);
                self.core.ensure_cell(&node, &mut inner, path, words).map_err(full)?
            }
        };
        let core = Arc::clone(&self.core);
        Ok(Param { core, cell, entity, path: path.clone(), policy: Policy::default(), typed: PhantomData })
    }
}

impl<T: Parameter + Evolve> Param<T> {
    /// This handle with another policy for reads beyond the samples.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The entity.
    pub fn entity(&self) -> EntityId {
        self.entity
    }

    /// The path inside it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value at the context's sim time.
    ///
    /// # Errors
    /// [`ReadError`].
    #[inline]
    pub fn get(&self, context: Context) -> Result<T, ReadError> {
        self.evaluate(&context, Layer::Truth).map(|reading| reading.value)
    }

    /// The value at the context's sim time, with how good it is.
    ///
    /// # Errors
    /// [`ReadError`].
    #[inline]
    pub fn read(&self, context: Context) -> Result<Reading<T>, ReadError> {
        self.evaluate(&context, Layer::Truth).map(|reading| self.core.reading(reading))
    }

    /// What the peers read at the context's sim time: the register, also where a local publisher knows better.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read_register(&self, context: Context) -> Result<Reading<T>, ReadError> {
        self.evaluate(&context, Layer::Register).map(|reading| self.core.reading(reading))
    }

    /// Drops the exact value that [`set_truth`](Self::set_truth) kept: local readers see the register again.
    pub fn drop_truth(&self) {
        self.cell.tip().drop_truth();
    }

    /// Keeps the exact value for the context's sim time beside the register: readers of this replica see it, nobody
    /// else does. The next write of the register, by whomever, drops it.
    ///
    /// Kept only where the register holds a value; and not for values on the heap.
    pub fn set_truth(&self, context: Context, value: &T) {
        let mut words: Words = [0; MAX_INLINE_WORDS];
        if let Some((kind, count)) = value.write_words(&mut words) {
            self.cell.tip().keep_truth(&context, kind, &words[..count], &self.core.hub.epochs);
        }
    }

    #[inline]
    fn evaluate(&self, context: &Context, layer: Layer) -> Result<coeval_motion::Reading<T>, ReadError> {
        if context.session != self.core.hub.session {
            return Err(ReadError::ForeignContext);
        }
        self.core
            .evaluate(&self.cell, context, &self.policy, layer)
            .map_err(|fault| fault.at(self.entity, &self.path))
    }

    /// Writes a value for the context's sim time.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed.
    #[inline]
    pub fn set(&self, context: Context, value: T) -> Result<Stamp, WriteError> {
        self.write(context, value, false)
    }

    /// Writes a value that did not come there by moving: reads never interpolate or smooth from the one before.
    ///
    /// # Errors
    /// [`WriteError`]; nothing changed.
    pub fn teleport(&self, context: Context, value: T) -> Result<Stamp, WriteError> {
        self.write(context, value, true)
    }

    #[inline]
    fn write(&self, context: Context, value: T, teleport: bool) -> Result<Stamp, WriteError> {
        let core = &self.core;
        core.check_context(&context)?;
        let mut words: Words = [0; MAX_INLINE_WORDS];
        let inline = value.write_words(&mut words);
        if let Some((kind, count)) = inline {
            let mut payload = Some(Payload::Inline(kind, &words[..count]));
            if let Some(stamp) = core.write_fast(&self.cell, &context, teleport, &mut payload)? {
                return Ok(stamp);
            }
        }
        self.write_value(context, value.into_value(), inline.is_none(), teleport)
    }

    #[cold]
    fn write_value(
        &self,
        context: Context,
        value: Value,
        heap: bool,
        teleport: bool,
    ) -> Result<Stamp, WriteError> {
        let core = &self.core;
        if self.cell.tip().status() & DELETED != 0 {
            return Err(WriteError::Deleted(self.entity));
        }
        core.check_value(self.entity, &self.path, &value)?;
        if heap && !matches!(value, Value::Map(_)) {
            let mut payload = Some(Payload::Heap(value.clone()));
            if let Some(stamp) = core.write_fast(&self.cell, &context, teleport, &mut payload)? {
                return Ok(stamp);
            }
        }
        core.write_slow(context, self.entity, &self.path, value, teleport)
    }
}

impl<T> Clone for Param<T> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            cell: Arc::clone(&self.cell),
            entity: self.entity,
            path: self.path.clone(),
            policy: self.policy,
            typed: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Param<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Param")
            .field("entity", &self.entity)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
