//! What a program may ask for: the operations of a batch.
use coeval_value::{EntityId, Key, Path, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One operation.
#[derive(Clone, Debug)]
pub enum Op {
    /// Makes an entity.
    Create {
        /// Which; a fresh id.
        entity: EntityId,
    },
    /// Deletes an entity for ever, whatever the order of stamps.
    Delete {
        /// Which.
        entity: EntityId,
    },
    /// Writes one value and clears everything older below. A [`Value::Map`] makes it a [`Op::Replace`].
    Set {
        /// In which entity.
        entity: EntityId,
        /// Where. Ancestors become maps.
        path: Path,
        /// What.
        value: Value,
    },
    /// Clears a path and everything below. Removing what is not there changes nothing.
    Remove {
        /// In which entity.
        entity: EntityId,
        /// Where. Ancestors stay what they are.
        path: Path,
    },
    /// Makes a path a map with just this content. Nested maps become nodes of their own.
    Replace {
        /// In which entity.
        entity: EntityId,
        /// Where. Ancestors become maps.
        path: Path,
        /// The new content.
        map: Arc<BTreeMap<Key, Value>>,
    },
}

impl Op {
    /// The entity it is about.
    pub fn entity(&self) -> EntityId {
        match self {
            Self::Create { entity }
            | Self::Delete { entity }
            | Self::Set { entity, .. }
            | Self::Remove { entity, .. }
            | Self::Replace { entity, .. } => *entity,
        }
    }
}
