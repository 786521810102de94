//! What replication needs of a store, and nothing more.
use crate::{Digest, Entered, Entry, Life, NodeState, SlotKey, SlotState, World};
use coeval_time::{EditId, Incarnation, Stamp, StampError, WallTime};
use coeval_value::EntityId;
use std::collections::BTreeSet;

/// A local, append-only number for a [`SlotKey`]; never reused, meaningful to one replica only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SlotId(pub u32);

/// A link, as far as a replica must tell links apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LinkTag(pub u64);

/// Where a drained entry came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Written here: goes to every link.
    Local,
    /// Received over one link.
    Remote {
        /// The link it came by.
        link: LinkTag,
        /// Its author.
        author: Incarnation,
    },
}

/// What of a changed slot was written here since the last drain: that goes to every link. What was received is passed on
/// as it came, by who received it.
#[derive(Clone, Debug)]
pub enum Own {
    /// Nothing: all of the change was received.
    Nothing,
    /// All of its state.
    All,
    /// This part of it; what is empty says that it was written here and overtaken before it was drained.
    Part(SlotState),
}

impl Own {
    /// What of a state was written here, `ours` telling stamps that were issued here. What was read from the config that
    /// all have counts as written here.
    pub fn of(state: &SlotState, ours: impl Fn(Stamp) -> bool) -> Self {
        let own = |stamp: Stamp| stamp == Stamp::GENESIS || ours(stamp);
        if state.stamps().all(own) { Self::All } else { Self::Part(state.part(own)) }
    }
}

/// One changed slot, with its state at the drain.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which slot.
    pub slot: SlotId,
    /// Its state now.
    pub state: SlotState,
    /// What of it was written here.
    pub own: Own,
}

/// All that changed between two drains; contains all or none of each batch's surviving effects.
#[derive(Clone, Debug, Default)]
pub struct Drained {
    /// The position after this drain: counts drains that found something, from 1.
    pub position: u64,
    /// Changed slots, in slot order (so an entity's life comes before its paths).
    pub changes: Vec<Change>,
    /// New write-once entries.
    pub entries: Vec<(Origin, Entry)>,
}

/// One page of a [`Replica::scan`].
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Slots and their states now, in slot order.
    pub states: Vec<(SlotId, SlotState)>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<SlotId>,
}

/// The stamps of one slot of an entity, for narrowing a digest mismatch to cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotSummary {
    /// Which slot.
    pub slot: SlotId,
    /// What it is.
    pub key: SlotKey,
    /// Of an entity: creation. Of a path: the leaf's stamp.
    pub first: Stamp,
    /// Of an entity: deletion. Of a path: the floor.
    pub floor: Stamp,
    /// Of a path: the kind, as implied by all that was ever below.
    pub kind: Stamp,
}

/// Why a replica refused a slot or a fragment; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The slot is not one of this replica's.
    #[error("no such slot")]
    UnknownSlot,
    /// A life was sent for a path, or a node for an entity.
    #[error("state of the wrong kind for its slot")]
    WrongKind,
    /// Not in normal form: a leaf and a kind of one node carry the same stamp, or a map as a leaf.
    #[error("state not in normal form")]
    NotNormal,
    /// A limit of the replica (entities, slots, orphans, value size) is reached.
    #[error("a limit of the replica is reached")]
    Limit,
    /// Another part of the same batch was refused.
    #[error("another part of its batch was refused")]
    Mate,
    /// The `SimEntity` cannot be deleted.
    #[error("the SimEntity cannot be deleted")]
    Protected,
}

/// What became of an applied fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It changed this replica.
    Changed,
    /// It changed this replica, and overtook what was written here and not drained yet.
    Overtook,
    /// Known already, or too late.
    Superseded,
    /// Refused.
    Refused(Refusal),
}

/// What became of an applied delta.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Of each state, in the order they were given.
    pub fates: Vec<Fate>,
    /// How many fragments and entries changed this replica.
    pub changed: u64,
    /// How many were known already, or superseded.
    pub superseded: u64,
    /// The states that were refused, with the reason.
    pub refused: Vec<(SlotId, Refusal)>,
}

impl Applied {
    /// Notes what became of the next state.
    pub fn note(&mut self, slot: SlotId, fate: Fate) {
        self.fates.push(fate);
        match fate {
            Fate::Changed | Fate::Overtook => self.changed += 1,
            Fate::Superseded => self.superseded += 1,
            Fate::Refused(refusal) => self.refused.push((slot, refusal)),
        }
    }
}

/// A full replica, as replication sees it.
///
/// `drain`, `apply`, `scan` and the digests are called from one thread (the pump); local threads read and write
/// concurrently. The digests speak of the state as of the last drain, so they cost the writers nothing.
pub trait Replica {
    /// Takes all that changed since the last drain, at a batch boundary. An empty drain keeps the position.
    fn drain(&self) -> Drained;

    /// The position of the last drain that found something.
    fn position(&self) -> u64;

    /// Raises the hybrid clock to `newest`. Called before the value that carries it becomes readable.
    fn register(&self, newest: Stamp);

    /// Takes the stamp that showed that another program writes as this replica's writer (a cloned machine): one that
    /// arrived, counts, and was never issued here. `None`: no such stamp since the last call.
    fn take_fork(&self) -> Option<Stamp>;

    /// Writes as `writer` from now on.
    fn renew(&self, writer: Incarnation);

    /// The slot of `key`, made if it is not there.
    fn resolve(&self, key: &SlotKey) -> Result<SlotId, Refusal>;

    /// What a slot is; `None` for a number never given out.
    fn key(&self, slot: SlotId) -> Option<SlotKey>;

    /// The state of a slot now; `None` for a number never given out.
    fn read(&self, slot: SlotId) -> Option<SlotState>;

    /// Joins fragments that arrived over `link`, all at one batch boundary. A refused fragment changes nothing, nor do
    /// those that share a stamp with it: a batch is applied whole or not at all. The others are applied.
    fn apply(&self, link: LinkTag, states: &[(SlotId, SlotState)], entries: Vec<Entry>) -> Applied;

    /// Up to `limit` slots from number `from` on that were drained after position `since` and hold anything.
    fn scan(&self, from: SlotId, since: u64, limit: usize) -> Scan;

    /// Write-once entries drained after position `since`, in drain order.
    fn entries_since(&self, since: u64) -> Vec<Entry>;

    /// The entry `id`, if known.
    fn entry(&self, id: EditId) -> Option<Entry>;

    /// Digest of the whole drained state.
    fn digest(&self) -> Digest;

    /// Digests of the 256 buckets that entities fall into by [`bucket_of`].
    fn bucket_digests(&self) -> Vec<Digest>;

    /// Digests of the entities of a bucket, in id order. Entries count under the `SimEntity`.
    fn entity_digests(&self, bucket: u8) -> Vec<(EntityId, Digest)>;

    /// The stamps of all canonical slots of an entity, in path order.
    fn summary(&self, entity: EntityId) -> Vec<SlotSummary>;

    /// The ids of all entries, in order.
    fn entry_ids(&self) -> Vec<EditId>;

    /// The world it is in.
    fn world(&self) -> World;

    /// A new stamp, above all that is known here and above `wall`.
    ///
    /// # Errors
    /// [`StampError`] at the end of the range.
    fn issue(&self, wall: WallTime) -> Result<Stamp, StampError>;

    /// Goes to a newer world, all at one batch boundary: `states` and the clock edits among `entries` are its whole
    /// content; records among `entries` join those known. Slots keep their numbers, positions go on, the hybrid clock is
    /// raised and never lowered. What changes by it is drained as received.
    ///
    /// Between two worlds no batch is torn and nothing is missing that both hold. `None`, and nothing changed, when
    /// `world` is not newer than the one it is in.
    fn enter(&self, world: World, states: Vec<(SlotId, SlotState)>, entries: Vec<Entry>) -> Option<Entered>;
}

/// Refuses those fragments, too, that share a stamp with one that is refused, and those that share one with these:
/// `refusals` says of each fragment why it is refused.
pub fn refuse_mates(states: &[(SlotId, SlotState)], refusals: &mut [Option<Refusal>]) {
    let mut stamps: BTreeSet<Stamp> = BTreeSet::new();
    let mut news = refusals.iter().any(Option::is_some);
    while std::mem::take(&mut news) {
        for ((_, state), refusal) in states.iter().zip(&mut *refusals) {
            if refusal.is_none() && state.stamps().any(|stamp| stamps.contains(&stamp)) {
                *refusal = Some(Refusal::Mate);
            }
            if refusal.is_some() {
                // All that ever read the config wrote under the genesis stamp: it is no batch.
                for stamp in state.stamps().filter(|stamp| *stamp != Stamp::GENESIS) {
                    news |= stamps.insert(stamp);
                }
            }
        }
    }
}

/// The digest bucket an entity falls into.
pub fn bucket_of(entity: EntityId) -> u8 {
    // The last byte of a v7 or v5 UUID is random.
    entity.0.as_bytes()[15]
}

impl From<Life> for SlotState {
    fn from(life: Life) -> Self {
        Self::Life(life)
    }
}

impl From<NodeState> for SlotState {
    fn from(node: NodeState) -> Self {
        Self::Node(node)
    }
}
