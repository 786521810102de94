//! What was wrong with a sim config: file, line, key, and what to do.
use std::fmt;
use std::path::{Path, PathBuf};

/// A sim config that was refused. Nothing of it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as it was named by the caller.
    pub file: PathBuf,
    /// Line in the file, from 1.
    pub line: usize,
    /// The key concerned, in full (`entities.probe.parameters.mass`); empty for a fault of the whole file.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file.display(), self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// A fault at a byte of the source, before it is known which line and file that is.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) key: String,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at, key: key.into(), message: message.into() }
    }

    pub(crate) fn locate(self, file: &Path, source: &str) -> ConfigError {
        let at = self.at.min(source.len());
        let line = source.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        ConfigError { file: file.to_owned(), line, key: self.key, message: self.message }
    }
}
