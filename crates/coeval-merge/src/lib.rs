//! The merge rule as pure data: last writer wins, on a tree.
//!
//! The oracle, and the whole truth: every replica shows what replaying all batches in stamp order, the operations of
//! a batch in program order, on an empty tree would show, with entity deletions hoisted first. Arrival order,
//! repetition and grouping do not matter.
//!
//! | file | what it holds |
//! |---|---|
//! | [`state`] | [`NodeState`], [`Life`], [`SlotState`], [`Entry`]: the joinable fragments that replicas exchange |
//! | [`tree`] | [`Tree`]: one entity's nodes with the rule itself, generic over where leaves live ([`LeafStore`]) |
//! | [`replica`] | the [`Replica`] trait: what replication needs of a store |
pub mod replica;
pub mod state;
pub mod tree;

pub use replica::{Applied, Change, Drained, LinkTag, Origin, Refusal, Replica, Scan, SlotId, SlotSummary};
pub use state::{Digest, Entry, EntryBody, Life, NodeState, SlotKey, SlotState};
pub use tree::{JoinReport, LeafStore, Tree, Visibility};
