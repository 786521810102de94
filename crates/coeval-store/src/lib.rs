//! The concurrent replica: every thread of a program reads and writes its copy of the world at memory speed.
//!
//! No async, no sockets, no clock of its own: session wall time comes in as a function, changes go out through
//! [`coeval_merge::Replica`].
//!
//! | file | what it holds |
//! |---|---|
//! | [`store`] | [`Store`], [`StoreConfig`]: the replica as a whole, names, entries, clock edits |
//! | [`mod@write`] | [`WriteBatch`], and writes by name |
//! | [`read`] | [`Reading`], and reads by name |
//! | [`param`] | [`Param`]: a parameter resolved once |
//! | [`inspect`] | names and values of an entity, as people look at it |
//! | [`snapshot`] | [`Snapshot`]: the world between two batches |
//! | [`watch`] | [`Watch`], [`WatchFilter`]: what changed since one last looked |
//! | [`events`] | [`StoreEvent`]: what a replica tells once |
//! | [`error`] | one error enum for each family of operations |
//! | [`limits`] | [`Limits`]: what a store refuses to outgrow |
//! | `core` | entities, cells and structural changes; the order of locks |
//! | `entity`, `slot`, `index`, `names` | an entity; local numbers; from ids and names to entities |
//! | `cell`, `layout`, `history`, `leaf` | the newest sample and older ones; their words; the tree's view of a cell |
//! | `truth` | a publisher's exact value beside the register |
//! | `pump`, `apply` | draining and digests; joining what was received, each batch whole or not at all |
//! | `replica`, `entries` | the trait that replication drives; session entries |
//! | `worlds` | going to the content of a checkpoint, all at once |
//! | `hub`, `epochs`, `authors`, `append` | what all of these share |
//!
//! # How a change travels
//! A writer publishes into the parameter's cell, marks the slot's dirty bit, and rings. The pump drains: it takes the
//! bits, reads the states, brings the digests up to date, feeds the watches, and hands the changes to replication,
//! which applies them to other stores. A write to a parameter that exists touches nothing but its cell; what changes
//! structure holds the entity's mutex and goes through the merge tree, which tells the cells who may read them and
//! which may be written without asking.
mod append;
mod apply;
mod authors;
mod cell;
mod core;
mod entity;
mod entries;
mod epochs;
pub mod error;
pub mod events;
mod history;
mod hub;
mod index;
pub mod inspect;
mod layout;
mod leaf;
pub mod limits;
mod names;
pub mod param;
mod pump;
pub mod read;
mod replica;
mod slot;
pub mod snapshot;
pub mod store;
mod truth;
pub mod watch;
mod worlds;
pub mod write;

pub use error::{EntryError, LookupError, ParamError, ReadError, WriteError};
pub use events::StoreEvent;
pub use hub::{Counters, NowFn, WakeFn};
pub use limits::Limits;
pub use param::Param;
pub use read::Reading;
pub use snapshot::{EntityView, Shown, Snapshot};
pub use store::{Store, StoreConfig};
pub use watch::{ChangeKind, KeyPattern, PathFilter, Watch, WatchChanges, WatchFilter};
pub use write::WriteBatch;
