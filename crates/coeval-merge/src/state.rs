//! The joinable fragments that replicas exchange. Each joins by pointwise maximum (creation: minimum).
use coeval_time::{Edit, EditId, Stamp};
use coeval_value::{EntityId, Leaf, Path, Value};
use std::sync::Arc;

/// What a fragment is about: an entity's life (`path` is `None`), or one path of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotKey {
    /// The entity.
    pub entity: EntityId,
    /// The path inside it; `None` for the entity's own creation and deletion.
    pub path: Option<Path>,
}

/// The state of one path of an entity.
#[derive(Clone, Debug, Default)]
pub struct NodeState {
    /// The newest value written here, unless it is dominated for ever.
    pub leaf: Option<Leaf>,
    /// The newest clear here ([`Stamp::NONE`]: never): descendants show only if not older. A leaf is an implied clear
    /// at its own stamp, not repeated here.
    pub floor: Stamp,
    /// The newest child write ever, also of children since removed, or the newest explicit map write
    /// ([`Stamp::NONE`]: never).
    pub kind: Stamp,
}

/// Creation and deletion of an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Life {
    /// The least creation stamp known; [`Stamp::NONE`]: creation unknown.
    pub created: Stamp,
    /// The least deletion stamp known; [`Stamp::NONE`]: not deleted. Deletion is permanent.
    pub deleted: Stamp,
}

/// The state of a slot.
#[derive(Clone, Debug)]
pub enum SlotState {
    /// Of an entity.
    Life(Life),
    /// Of a path.
    Node(NodeState),
}

/// A write-once entry of the `SimEntity`: session state that only ever grows.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Identity.
    pub id: EditId,
    /// Content.
    pub body: EntryBody,
}

/// The content of an [`Entry`].
#[derive(Clone, Debug)]
pub enum EntryBody {
    /// A clock edit; its `id` equals the entry's.
    Clock(Edit),
    /// Anything else of the session (an invite, a member, a life-cycle state) under a topic.
    Record {
        /// What kind of fact.
        topic: Arc<str>,
        /// The fact.
        value: Value,
    },
}

/// An order-independent 128-bit sum over canonical state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Digest(pub u128);
