//! The joinable fragments that replicas exchange. Each joins by pointwise maximum (creation: minimum).
use coeval_faults::{Fault, active};
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

impl NodeState {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.leaf.is_none() && self.floor.is_none() && self.kind.is_none()
    }

    /// The newest stamp in it; [`Stamp::NONE`] if it says nothing.
    pub fn newest(&self) -> Stamp {
        self.leaf.as_ref().map_or(Stamp::NONE, |l| l.stamp).max(self.floor).max(self.kind)
    }

    /// Joins another fragment of the same path by pointwise maximum. On equal stamps the leaves are one write.
    pub fn join(&mut self, other: &Self) {
        if let Some(theirs) = &other.leaf
            && self.leaf.as_ref().is_none_or(|ours| ours.stamp < theirs.stamp)
        {
            self.leaf = Some(theirs.clone());
        }
        self.floor = self.floor.max(other.floor);
        self.kind = self.kind.max(other.kind);
        // A leaf that was beaten by a child lives on as a floor where that is known; where it is a leaf, that implies it.
        if self.leaf.as_ref().is_some_and(|leaf| leaf.stamp == self.floor) {
            self.floor = Stamp::NONE;
        }
    }

    /// Whether a decoder may let it in: a leaf has a stamp, is no map, and shares its stamp neither with the kind
    /// (the batch that made both was not in normal form) nor with the floor (it is implied).
    pub fn is_normal(&self) -> bool {
        self.leaf.as_ref().is_none_or(|leaf| {
            !leaf.stamp.is_none()
                && !matches!(leaf.value, Value::Map(_))
                && leaf.stamp != self.kind
                && leaf.stamp != self.floor
        })
    }
}

impl Life {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.created.is_none() && self.deleted.is_none()
    }

    /// The entity exists: its creation is known and no deletion is.
    pub fn is_live(&self) -> bool {
        !self.created.is_none() && self.deleted.is_none()
    }

    /// The newest stamp in it; [`Stamp::NONE`] if it says nothing.
    pub fn newest(&self) -> Stamp {
        self.created.max(self.deleted)
    }

    /// Joins: the least creation, the least deletion.
    pub fn join(&mut self, other: &Self) {
        self.created = least(self.created, other.created);
        self.deleted = least(self.deleted, other.deleted);
    }
}

impl SlotState {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Life(life) => life.is_empty(),
            Self::Node(node) => node.is_empty(),
        }
    }

    /// The newest stamp in it; [`Stamp::NONE`] if it says nothing.
    pub fn newest(&self) -> Stamp {
        match self {
            Self::Life(life) => life.newest(),
            Self::Node(node) => node.newest(),
        }
    }

    /// The stamps in it.
    pub fn stamps(&self) -> impl Iterator<Item = Stamp> + use<> {
        let all = match self {
            Self::Life(life) => [life.created, life.deleted, Stamp::NONE],
            Self::Node(node) => {
                [node.leaf.as_ref().map_or(Stamp::NONE, |leaf| leaf.stamp), node.floor, node.kind]
            }
        };
        all.into_iter().filter(|stamp| !stamp.is_none())
    }

    /// Joins another fragment of the same slot. One of another kind changes nothing.
    pub fn join(&mut self, other: &Self) {
        match (self, other) {
            (Self::Life(ours), Self::Life(theirs)) => ours.join(theirs),
            (Self::Node(ours), Self::Node(theirs)) => ours.join(theirs),
            _ => {}
        }
    }

    /// The part of it whose stamps pass a test: a fragment too, for each part of a state joins by itself.
    #[must_use]
    pub fn part(&self, keep: impl Fn(Stamp) -> bool) -> Self {
        let stamp = |stamp: Stamp| if keep(stamp) { stamp } else { Stamp::NONE };
        match self {
            Self::Life(life) => {
                Self::Life(Life { created: stamp(life.created), deleted: stamp(life.deleted) })
            }
            Self::Node(NodeState { leaf, floor, kind }) => Self::Node(NodeState {
                leaf: leaf.clone().filter(|leaf| keep(leaf.stamp)),
                floor: stamp(*floor),
                kind: stamp(*kind),
            }),
        }
    }
}

/// Whether `leaf` replaces the leaf of stamp `held` at the same path: the newer stamp wins.
#[inline]
pub fn replaces(leaf: &Leaf, held: Stamp, value: impl FnOnce() -> Option<Leaf>) -> bool {
    let tie = leaf.stamp.hlc == held.hlc && leaf.stamp != held;
    if tie && active(Fault::EqualStampsTieByValue) {
        let words = |leaf: &Leaf| format!("{:?}", leaf.value);
        return value().is_none_or(|value| words(leaf) > words(&value));
    }
    leaf.stamp > held
}

/// The least of two stamps, where [`Stamp::NONE`] is "unknown".
fn least(a: Stamp, b: Stamp) -> Stamp {
    match (a.is_none(), b.is_none()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.min(b),
    }
}
