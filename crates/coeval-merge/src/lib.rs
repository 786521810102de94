//! The merge rule as pure data: last writer wins, on a tree.
//!
//! The oracle, and the whole truth: every replica shows what replaying all batches in stamp order, the operations of
//! a batch in program order, on an empty tree would show, with entity deletions hoisted first. Arrival order,
//! repetition and grouping do not matter.
//!
//! | file | what it holds |
//! |---|---|
//! | [`state`] | [`NodeState`], [`Life`], [`SlotState`], [`Entry`]: the joinable fragments that replicas exchange |
//! | [`op`] | [`Op`]: create, delete, set, remove, replace |
//! | [`batch`] | [`Batch`]: program order resolved into fragments of one stamp |
//! | [`tree`] | [`Tree`]: one entity's nodes with the rule itself, generic over where leaves live ([`LeafStore`]) |
//! | [`digest`] | contributions to the [`Digest`] |
//! | [`replica`] | the [`Replica`] trait: what replication needs of a store |
//! | [`world`] | [`World`], [`Content`]: how a session goes back to a checkpoint |
//! | [`plain`] | [`PlainReplica`]: a whole replica for one thread, the reference for stores and replication |
pub mod batch;
pub mod digest;
pub mod op;
pub mod plain;
pub mod replica;
pub mod state;
pub mod tree;
pub mod world;

pub use batch::{Batch, BatchError};
pub use op::Op;
pub use plain::{PlainLimits, PlainReplica, WriteError};
pub use replica::{
    Applied, Change, Drained, Fate, LinkTag, Origin, Own, Refusal, Replica, Scan, SlotId, SlotSummary,
    bucket_of, refuse_mates,
};
pub use state::{Digest, Entry, EntryBody, Life, NodeState, SlotKey, SlotState};
pub use tree::{JoinReport, LeafStore, Tree, Visibility};
pub use world::{Content, Entered, World};
