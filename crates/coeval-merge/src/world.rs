//! Worlds: how a session goes back to a checkpoint.
//!
//! The replicated state is a pair, world and content, and joins lexicographically: of two worlds the greater one wins
//! with all its content, and what belongs to a lesser one is inert. Restoring a checkpoint makes the next world, whose
//! content is the checkpoint's. Of two that were made at once the one with the greater stamp wins everywhere.
//!
//! Content is what entities hold, and the edits of the clock. The other write-once entries (members, invites) are
//! facts of the session: they belong to no world, and join by union whatever the worlds are.
use crate::{Life, SlotKey, SlotState};
use coeval_time::{EditId, Epoch, Genesis, Incarnation, SimTime, Stamp, WallTime};
use std::cmp::Ordering;

/// The most slots that [`Entered`] names.
pub const MAX_FALLEN: usize = 1024;

/// A world of a session, and where its clock stands at its beginning.
///
/// Ordered, and equal, by number and stamp: the rest follows from these.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// How many restores led to it. The world that a session begins with has number 0.
    pub number: u64,
    /// The stamp of the restore; [`Stamp::NONE`] for the first world.
    pub stamp: Stamp,
    /// Sim time at its beginning; of no meaning for the first world, whose clock starts from the session's genesis.
    pub sim: SimTime,
    /// The scale that the clock is set to, paused; finite.
    pub scale: f64,
}

/// What a replica left behind when it entered a world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entered {
    /// The world that it left.
    pub left: World,
    /// What this writer had written there, still held there, and is not part of the new world: in slot order, at most
    /// [`MAX_FALLEN`].
    pub fallen: Vec<SlotKey>,
    /// How many more there were.
    pub more: u64,
}

impl World {
    /// The world that a session begins with.
    pub const FIRST: Self = Self { number: 0, stamp: Stamp::NONE, sim: SimTime::from_nanos(0), scale: 1.0 };

    /// The identity, which all else follows from.
    pub const fn id(&self) -> (u64, Stamp) {
        (self.number, self.stamp)
    }

    /// Whether it can be: the first world has no stamp, every other one has, and its scale is finite.
    pub fn is_sound(&self) -> bool {
        self.scale.is_finite() && (self.number == 0) == self.stamp.is_none()
    }

    /// Who restored it.
    pub const fn author(&self) -> Incarnation {
        self.stamp.writer
    }

    /// The epoch of sim time that begins with it.
    pub fn epoch(&self) -> Epoch {
        match self.number {
            0 => Epoch::GENESIS,
            _ => Epoch { at: self.stamp.wall(), jump: EditId { stamp: self.stamp, index: 0 } },
        }
    }

    /// What its clock starts from, paused.
    pub const fn genesis(&self) -> Genesis {
        Genesis { wall: self.stamp.wall(), sim: self.sim, scale: self.scale }
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for World {}

impl PartialOrd for World {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for World {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id().cmp(&other.id())
    }
}

/// The content of a world at one instant between batches: what a restore brings back.
///
/// It holds no members and no invites.
#[derive(Clone, Debug)]
pub struct Content {
    /// Sim time.
    pub sim: SimTime,
    /// The scale set; finite.
    pub scale: f64,
    /// Every entity's life, and the canonical states of the living ones, in key order. Samples of the epoch in effect
    /// then carry [`CURRENT`](Self::CURRENT) in its place.
    pub states: Vec<(SlotKey, SlotState)>,
}

impl Content {
    /// Stands for the epoch that was in effect when the content was taken. Samples of it are samples of the epoch that
    /// begins with the restored world: what flew then goes on from there, while what threads write late with the old
    /// world's time in hand belongs to an abandoned branch.
    pub const CURRENT: Epoch = Epoch {
        at: WallTime::MAX,
        jump: EditId { stamp: Stamp { hlc: u64::MAX, writer: Incarnation(u64::MAX) }, index: u32::MAX },
    };

    /// The content with samples of the epoch `from` moved to `to`.
    #[must_use]
    pub fn moved(mut self, from: Epoch, to: Epoch) -> Self {
        for (_, state) in &mut self.states {
            if let SlotState::Node(node) = state
                && let Some(leaf) = node.leaf.as_mut().filter(|leaf| leaf.meta.epoch == from)
            {
                leaf.meta.epoch = to;
            }
        }
        self
    }

    /// What two replicas, or a replica and a checkpoint, have in common exactly when entities, values and stamps are the
    /// same: the digest without the session's entries.
    pub fn digest(&self) -> crate::Digest {
        let of = |(key, state): &(SlotKey, SlotState)| match (state, &key.path) {
            (SlotState::Node(node), Some(path)) => crate::digest::of_node(key.entity, path, node),
            (SlotState::Life(life), _) => crate::digest::of_life(key.entity, life),
            (SlotState::Node(_), None) => crate::Digest::ZERO,
        };
        self.states.iter().fold(crate::Digest::ZERO, |sum, state| sum.plus(of(state)))
    }

    /// The newest stamp in it.
    pub fn newest(&self) -> Stamp {
        self.states.iter().map(|(_, state)| state.newest()).max().unwrap_or(Stamp::NONE)
    }
}

/// Whether the state `old`, left behind for `new`, held something that `writer` wrote and `new` does not.
pub fn fell(writer: Incarnation, old: &SlotState, new: Option<&SlotState>) -> bool {
    let written = |state: &SlotState| match state {
        SlotState::Life(Life { created, deleted }) => [*created, *deleted],
        SlotState::Node(node) => [node.leaf.as_ref().map_or(Stamp::NONE, |leaf| leaf.stamp), node.floor],
    };
    let kept = new.map_or([Stamp::NONE; 2], written);
    written(old).into_iter().any(|stamp| stamp.writer == writer && !stamp.is_none() && !kept.contains(&stamp))
}

impl Entered {
    /// Nothing left behind yet.
    pub const fn leaving(left: World) -> Self {
        Self { left, fallen: Vec::new(), more: 0 }
    }

    /// Notes that a slot's write fell.
    pub fn fallen(&mut self, key: &SlotKey) {
        if self.fallen.len() < MAX_FALLEN {
            self.fallen.push(key.clone());
        } else {
            self.more += 1;
        }
    }
}
