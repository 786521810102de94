//! What can go wrong, one enum for each family of operations. Every message says what, where, and what to do.
use coeval_merge::BatchError;
use coeval_time::{EditError, SimDuration, StampError};
use coeval_value::{EntityId, LimitError, Path, TypeMismatch};
use std::sync::Arc;

/// Why a write was refused; nothing was changed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The entity is not known here.
    #[error("entity {0} is not known: create it first, or wait until its creation has arrived")]
    UnknownEntity(EntityId),
    /// The entity was deleted, which is for ever.
    #[error("entity {0} was deleted: make a new entity under a new id")]
    Deleted(EntityId),
    /// An entity with this id exists.
    #[error("entity {0} exists already: use a fresh id")]
    Exists(EntityId),
    /// A living entity bears the name.
    #[error(
        "the name {name:?} is borne by entity {}: choose another name, or delete that entity first",
        ids(bearers)
    )]
    NameTaken {
        /// The name.
        name: Arc<str>,
        /// Who bears it.
        bearers: Vec<EntityId>,
    },
    /// The value is larger than the store admits.
    #[error("value of {path:?} in entity {entity}: {source}")]
    Value {
        /// The entity.
        entity: EntityId,
        /// The parameter.
        path: Path,
        /// Which limit.
        source: LimitError,
    },
    /// The store is full.
    #[error(
        "entity {entity}: the store's limit of {what} is reached; raise it when the peer is opened, or use fewer"
    )]
    Limit {
        /// The entity that was written to.
        entity: EntityId,
        /// Of what.
        what: &'static str,
    },
    /// The operation cannot be done in any store.
    #[error(transparent)]
    Operation(#[from] BatchError),
    /// The hybrid clock is at its end.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// The context was read from the clock of another session.
    #[error("the context is of another session: take it from the peer that is written to")]
    ForeignContext,
}

/// Why a read has no answer.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing is there now; it may come (back).
    #[error("{path:?} of entity {entity} is missing: it was not written yet, or was removed")]
    Missing {
        /// The entity.
        entity: EntityId,
        /// The parameter.
        path: Path,
    },
    /// The entity was deleted, which is for ever.
    #[error("entity {entity} was deleted, and {path:?} with it")]
    Deleted {
        /// The entity.
        entity: EntityId,
        /// The parameter.
        path: Path,
    },
    /// The value is of another type.
    #[error("{path:?} of entity {entity}: {source}")]
    Type {
        /// The entity.
        entity: EntityId,
        /// The parameter.
        path: Path,
        /// The type found and the type asked for.
        source: TypeMismatch,
    },
    /// Earlier than the samples and the policy reach.
    #[error("{path:?} of entity {entity}: too far past, {} s from its oldest sample", by.as_secs_f64())]
    TooFarPast {
        /// The entity.
        entity: EntityId,
        /// The parameter.
        path: Path,
        /// Sim time from the oldest sample to the read.
        by: SimDuration,
    },
    /// Later than the samples and the policy reach.
    #[error("{path:?} of entity {entity}: too far future, {} s from its sample", by.as_secs_f64())]
    TooFarFuture {
        /// The entity.
        entity: EntityId,
        /// The parameter.
        path: Path,
        /// Sim time from the sample to the read.
        by: SimDuration,
    },
    /// The context was read from the clock of another session.
    #[error("the context is of another session: take it from the peer that is read")]
    ForeignContext,
}

/// Why an entity was not found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LookupError {
    /// Nobody bears the name.
    #[error("no entity is named {0:?}")]
    NoSuchName(String),
    /// Several do.
    #[error("{} entities are named {name:?}: {}; take one by its id, or rename all but one", bearers.len(), ids(bearers))]
    Ambiguous {
        /// The name.
        name: String,
        /// Who bears it, in id order.
        bearers: Vec<EntityId>,
    },
}

/// Why a handle could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParamError {
    /// The entity was deleted, which is for ever.
    #[error("entity {0} was deleted: there will never be a parameter in it")]
    Deleted(EntityId),
    /// The store is full.
    #[error(
        "{path:?} of entity {entity}: the store's limit of paths is reached; raise it when the peer is opened"
    )]
    Limit {
        /// The entity.
        entity: EntityId,
        /// The parameter.
        path: Path,
    },
}

/// Why an entry or a clock edit was refused; nothing was changed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum EntryError {
    /// The edit makes no sense.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The hybrid clock is at its end.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// The value is too large.
    #[error("session entry {topic:?}: {source}")]
    Value {
        /// What kind of fact.
        topic: Arc<str>,
        /// Which limit.
        source: LimitError,
    },
    /// There are too many.
    #[error("the session holds {0} entries, which is the store's limit; raise it when the peer is opened")]
    Limit(usize),
}

fn ids(bearers: &[EntityId]) -> String {
    bearers.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join(", ")
}
