//! One program at a time: a lock that the operating system takes back when its holder ends, however it ends.
use crate::JournalError;
use crate::disk::beside;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// The right to a journal, until dropped. Its file, `PATH.lock`, stays and is empty: the lock is on it, not in it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the journal at `path`.
    ///
    /// # Errors
    /// [`JournalError::InUse`] when someone has it; [`JournalError::Io`].
    pub fn take(path: &Path) -> Result<Self, JournalError> {
        let lock = beside(path, ".lock");
        let failed = |source| JournalError::io("lock", path, source);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(lock).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(JournalError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}
