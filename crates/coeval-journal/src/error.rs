//! What can go wrong with a journal.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a journal could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system refused.
    #[error("cannot {doing} the journal {path}: {source}", path = path.display())]
    Io {
        /// What was tried: "create", "write", "sync" and so on.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The file is something else, or its very beginning is damaged.
    #[error("{path} is not a journal ({why}): give the path of one, or restore it from a backup", path = path.display())]
    NotAJournal {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Written by another version.
    #[error(
        "the journal {path} has format version {found}, this program reads version {reads}: use the coeval version that \
         wrote it",
        path = path.display()
    )]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u16,
        /// The version read here.
        reads: u16,
    },
    /// Something in the middle was lost or changed after it had been synced: what follows cannot be trusted to be whole.
    #[error(
        "the journal {path} is damaged at byte {offset} of {len}: restore it from a backup, or salvage what comes before \
         (the first {kept} bytes, {marks} marks)",
        path = path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where the first bad record begins.
        offset: u64,
        /// How long the file is.
        len: u64,
        /// Bytes before, up to the last whole batch.
        kept: u64,
        /// Marks before.
        marks: u64,
    },
    /// Another program has it open.
    #[error(
        "the journal {path} is in use by another program (or another peer of this one): stop it first, or give each its own",
        path = path.display()
    )]
    InUse {
        /// Which file.
        path: PathBuf,
    },
}

impl JournalError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source: Arc::new(source) }
    }
}
