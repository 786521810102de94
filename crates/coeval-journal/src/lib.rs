//! The journal of coeval: an append-only log on disk, from which a peer comes back with all that it was told is safe.
//!
//! | file | what it holds |
//! |---|---|
//! | [`disk`] | [`Disk`], [`Tail`], [`Source`]: what the journal needs of a disk; [`FileDisk`]: the real one |
//! | [`simulated`] | [`SimDisk`]: one in memory that fills up, tears, rots and fails as told |
//! | [`header`] | [`Header`]: whose journal this is, and of which session |
//! | [`mod@format`] | the bytes: header, records, checksums |
//! | [`read`] | [`Recovery`]: what a journal holds, up to the last whole batch |
//! | [`writer`] | [`Writer`]: appends, syncs, and lets a new file take the place of the old |
//! | [`scribe`] | [`Scribe`]: the writer on a thread of its own; [`SyncPolicy`] |
//! | [`lock`] | [`Lock`]: one program at a time |
//! | [`error`] | [`JournalError`] |
//!
//! # What a journal is
//! A journal holds the very messages that a link would carry: definitions of slots, states, entries, and marks. Whoever
//! reads it keeps the messages aside until a mark and applies them together, so it never sees half a batch. The first
//! mark closes a snapshot of everything; what follows are the changes. A file that has grown long is not rewritten: a new
//! one is begun beside it with a fresh snapshot, and takes its place, by a rename, when that snapshot is safely on disk.
//! At every instant one whole journal is there.
//!
//! # What a journal survives
//! * *The end of the process*, at any instant: what was handed to the operating system is there.
//! * *The end of the machine*: what was synced is there ([`SyncPolicy`]). A tail that was not is cut at the last mark.
//! * *Damage* to what was once synced is told, with the place; never passed over ([`JournalError::Damaged`]).
//! * *A full or failing disk*: the file is given up as it stands, and a new one is begun when there is room.
pub mod disk;
pub mod error;
pub mod format;
pub mod header;
pub mod lock;
pub mod read;
pub mod scribe;
pub mod simulated;
pub mod writer;

pub use disk::{Disk, FileDisk, Source, Tail};
pub use error::JournalError;
pub use header::Header;
pub use lock::Lock;
pub use read::{OnDamage, Recovery};
pub use scribe::{Report, Scribe, SyncPolicy};
pub use simulated::SimDisk;
pub use writer::Writer;
