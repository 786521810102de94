//! Reading: from a cell to a value at an instant, and reads by name.
use crate::cell::{Cell, DELETED, FORWARDED, MAP, Newest, Older, SLOTS};
use crate::core::Core;
use crate::entity::{EntityNode, Phase};
use crate::error::ReadError;
use crate::history::KEPT;
use crate::layout::{ABANDONED, Buffer, Header};
use crate::store::Store;
use coeval_merge::Visibility;
use coeval_motion::{Evolve, Moment, Policy, Quality, Sample};
use coeval_time::{Context, Incarnation, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, Parameter, Path, TypeMismatch, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A value at an instant, and how good it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reading<T> {
    /// The value at the context's sim time.
    pub value: T,
    /// How it came about.
    pub quality: Quality,
    /// Sim time of the sample it rests on.
    pub sim: SimTime,
    /// Stamp of that sample.
    pub stamp: Stamp,
    /// Since when its author is lost; `None` while it lives.
    pub lost_since: Option<WallTime>,
    /// Newer writes that did not count, by authors that had not heard of a jump.
    pub stale: u32,
}

impl<T> Reading<T> {
    /// Who wrote the sample.
    pub fn author(&self) -> Incarnation {
        self.stamp.writer
    }

    /// The same reading of what `f` makes of the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        let Self { value, quality, sim, stamp, lost_since, stale } = self;
        Reading { value: f(value), quality, sim, stamp, lost_since, stale }
    }
}

/// The value, then how good it is: `… (extrapolated by 0.25 s)`.
impl<T: fmt::Debug> fmt::Display for Reading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} (", self.value)?;
        match self.quality {
            Quality::Exact => f.write_str("exact")?,
            Quality::Interpolated => f.write_str("interpolated")?,
            Quality::Extrapolated { by } => write!(f, "extrapolated by {} s", by.as_secs_f64())?,
            Quality::Held { by } => write!(f, "held for {} s", by.as_secs_f64())?,
        }
        if self.lost_since.is_some() {
            f.write_str(", author lost")?;
        }
        f.write_str(")")
    }
}

/// What a read looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layer {
    /// The exact value that a local publisher keeps, where there is one; else the register.
    Truth,
    /// What was written and goes to the peers.
    Register,
}

/// Why a cell gave no value; the caller knows where it is.
pub(crate) enum Fault {
    Missing,
    /// The tree shows a map.
    Map,
    Deleted,
    Type(TypeMismatch),
    Motion(coeval_motion::ReadError),
}

impl Fault {
    pub(crate) fn at(self, entity: EntityId, path: &Path) -> ReadError {
        let path = path.clone();
        match self {
            Self::Missing | Self::Motion(coeval_motion::ReadError::Empty) => {
                ReadError::Missing { entity, path }
            }
            Self::Map => {
                let source = TypeMismatch::Type { found: "map", asked: "a value" };
                ReadError::Type { entity, path, source }
            }
            Self::Deleted => ReadError::Deleted { entity, path },
            Self::Type(source) => ReadError::Type { entity, path, source },
            Self::Motion(coeval_motion::ReadError::TooFarPast { by }) => {
                ReadError::TooFarPast { entity, path, by }
            }
            Self::Motion(coeval_motion::ReadError::TooFarFuture { by }) => {
                ReadError::TooFarFuture { entity, path, by }
            }
        }
    }
}

impl Core {
    /// What `cell` gives at `context`. No lock; no allocation for types that have none.
    #[inline]
    pub(crate) fn evaluate<T: Parameter + Evolve>(
        &self,
        cell: &Arc<Cell>,
        context: &Context,
        policy: &Policy,
        layer: Layer,
    ) -> Result<coeval_motion::Reading<T>, Fault> {
        let mut words: Buffer = [0; _];
        let moment = Moment::of(context, self.clock.genesis().wall);
        loop {
            let cell = cell.tip();
            return match cell.newest(&mut words) {
                Newest::Absent(status) if status & FORWARDED != 0 => continue,
                Newest::Absent(status) if status & DELETED != 0 => Err(Fault::Deleted),
                Newest::Absent(status) if status & MAP != 0 => Err(Fault::Map),
                Newest::Absent(_) => Err(Fault::Missing),
                Newest::Inline(register) => {
                    let header = match layer {
                        Layer::Truth => cell.truth_over(&register, &mut words).unwrap_or(register),
                        Layer::Register => register,
                    };
                    // Words that no value has cannot have been written.
                    let value = T::read_words(header.kind, header.value(&words)).ok_or(Fault::Missing)?;
                    self.at_moment(cell, &header, value.map_err(Fault::Type)?, &moment, policy)
                }
                Newest::Heap(heap) => {
                    let value = T::from_value(&heap.value).map_err(Fault::Type)?;
                    self.at_moment(cell, &heap.header, value, &moment, policy)
                }
            };
        }
    }

    /// The newest sample carried to the moment; older samples are asked when it does not answer alone.
    #[inline]
    fn at_moment<T: Parameter + Evolve>(
        &self,
        cell: &Cell,
        header: &Header,
        value: T,
        moment: &Moment,
        policy: &Policy,
    ) -> Result<coeval_motion::Reading<T>, Fault> {
        let meta = header.meta(&self.hub.epochs);
        if header.flags & ABANDONED == 0
            && let Some(reading) = coeval_motion::read_newest(&value, header.stamp, &meta, moment, policy)
        {
            return Ok(reading);
        }
        let mut samples: SmallVec<[Sample<T>; KEPT + SLOTS]> = SmallVec::new();
        cell.for_each_before(header, |older, value| {
            let value = match value {
                Older::Words(words) => T::read_words(older.kind, words).and_then(Result::ok),
                Older::Heap(value) => T::from_value(value).ok(),
            };
            // A sample of another type is no sample of this value.
            if let Some(value) = value {
                samples.push(Sample { stamp: older.stamp, meta: older.meta(&self.hub.epochs), value });
            }
        });
        samples.push(Sample { stamp: header.stamp, meta, value });
        samples.sort_unstable_by_key(|sample| sample.stamp);
        samples.dedup_by_key(|sample| sample.stamp);
        let sim_at = |wall| Some(self.clock.sim_at(wall));
        coeval_motion::read_with(&samples, moment, policy, sim_at).map_err(Fault::Motion)
    }

    /// Adds what the store knows about the author.
    #[inline]
    pub(crate) fn reading<T>(&self, reading: coeval_motion::Reading<T>) -> Reading<T> {
        let coeval_motion::Reading { value, quality, stamp, sim, stale, .. } = reading;
        Reading { value, quality, sim, stamp, lost_since: self.authors.lost_since(stamp.writer), stale }
    }
}

impl Store {
    /// The value of a parameter at `context`, by name, with the default policy. Maps are put together from what is
    /// below; they take the entity's mutex, all else takes no lock.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn get(&self, context: Context, entity: EntityId, path: &Path) -> Result<Value, ReadError> {
        match self.read(context, entity, path) {
            Ok(reading) => Ok(reading.value),
            Err(Found::Map(node)) => {
                let missing = || ReadError::Missing { entity, path: path.clone() };
                self.map_at(&node, Some(path), &context).ok_or_else(missing)
            }
            Err(Found::Fault(error)) => Err(error),
        }
    }

    /// As [`get`](Self::get), for one value with its quality; not for maps.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn get_reading(
        &self,
        context: Context,
        entity: EntityId,
        path: &Path,
    ) -> Result<Reading<Value>, ReadError> {
        self.read(context, entity, path).map_err(|found| match found {
            Found::Map(_) => Fault::Map.at(entity, path),
            Found::Fault(error) => error,
        })
    }

    /// Many reads at one context.
    pub fn read_many<'a>(
        &self,
        context: Context,
        parameters: impl IntoIterator<Item = (EntityId, &'a Path)>,
    ) -> Vec<Result<Reading<Value>, ReadError>> {
        parameters.into_iter().map(|(entity, path)| self.get_reading(context, entity, path)).collect()
    }

    /// Everything of a living entity at `context`, as a map; `None` if it does not exist.
    pub fn entity_map(&self, context: Context, entity: EntityId) -> Option<Value> {
        let node = self.core.index.get(entity).filter(|node| node.phase() == Phase::Alive)?;
        self.map_at(&node, None, &context)
    }

    fn read(&self, context: Context, entity: EntityId, path: &Path) -> Result<Reading<Value>, Found> {
        let fault = |fault: Fault| Found::Fault(fault.at(entity, path));
        if context.session != self.core.hub.session {
            return Err(Found::Fault(ReadError::ForeignContext));
        }
        let node = self.core.index.get(entity).ok_or_else(|| fault(Fault::Missing))?;
        let Some(cell) = node.cell(path) else {
            return Err(fault(if node.phase() == Phase::Deleted { Fault::Deleted } else { Fault::Missing }));
        };
        match self.core.evaluate::<Value>(&cell, &context, &Policy::default(), Layer::Truth) {
            Ok(reading) => Ok(self.core.reading(reading)),
            Err(Fault::Map) => Err(Found::Map(node)),
            Err(other) => Err(fault(other)),
        }
    }

    /// The map shown at `path` (`None`: the whole entity), its leaves carried to `context`.
    fn map_at(&self, node: &EntityNode, path: Option<&Path>, context: &Context) -> Option<Value> {
        let inner = node.inner.lock();
        if path.is_some_and(|path| inner.tree.visibility(path) != Visibility::Map)
            || node.phase() != Phase::Alive
        {
            return None;
        }
        let base = path.map_or(0, |path| path.keys().len());
        // Backward, so that what is below a map is known when the map is met.
        let mut levels: Vec<BTreeMap<_, _>> = vec![BTreeMap::new()];
        let below: Vec<_> =
            inner.tree.nodes().filter(|(at, _)| path.is_none_or(|path| path.contains(at))).collect();
        for (at, leaf) in below.into_iter().rev() {
            let depth = at.keys().len() - base;
            if depth == 0 {
                continue;
            }
            levels.resize_with(levels.len().max(depth + 1), BTreeMap::new);
            let children = std::mem::take(&mut levels[depth]);
            let value = match inner.tree.visibility(at) {
                Visibility::Hidden => continue,
                Visibility::Map => Value::Map(Arc::new(children)),
                Visibility::Leaf { .. } => {
                    match self.core.evaluate(&leaf.cell, context, &Policy::default(), Layer::Truth) {
                        Ok(reading) => reading.value,
                        Err(_) => continue,
                    }
                }
            };
            levels[depth - 1].insert(at.last().clone(), value);
        }
        Some(Value::Map(Arc::new(std::mem::take(&mut levels[0]))))
    }
}

/// What a read by name found other than a value.
enum Found {
    Map(Arc<EntityNode>),
    Fault(ReadError),
}
