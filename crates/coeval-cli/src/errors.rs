//! How the command fails: one line for people, one exit code for scripts.
use coeval::{Error, ErrorKind};
use std::fmt;

/// What the process ends with. Documented in `--help`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It did what was asked.
    Ok = 0,
    /// Something else went wrong.
    Failure = 1,
    /// The command line, a value or a config makes no sense.
    Usage = 2,
    /// There is no such entity, parameter or peer.
    NotFound = 3,
    /// It did not happen, or was not acknowledged, in time.
    Timeout = 4,
    /// The session refused, or the invite cannot be used.
    Refused = 5,
    /// The network or the operating system said no.
    Network = 6,
}

/// Why the command ends without having done what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

/// What fallible functions of the command return.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: one_line(&message.to_string()) }
    }

    /// Bad input.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The reader of standard output is gone: end, and say nothing.
    pub(crate) fn silent() -> Self {
        Self { exit: Exit::Ok, message: String::new() }
    }

    /// The same failure, saying where it happened.
    #[must_use]
    pub(crate) fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = one_line(&format!("{place}: {}", self.message));
        self
    }

    /// What the process ends with.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::NotFound | ErrorKind::Missing | ErrorKind::Deleted => Exit::NotFound,
            ErrorKind::Exists | ErrorKind::Ambiguous | ErrorKind::WrongType | ErrorKind::Invalid => {
                Exit::Usage
            }
            ErrorKind::Timeout | ErrorKind::NoPeers | ErrorKind::Busy => Exit::Timeout,
            ErrorKind::Refused => Exit::Refused,
            ErrorKind::Network | ErrorKind::Journal => Exit::Network,
            _ => Exit::Failure,
        };
        Self::new(exit, error)
    }
}

impl From<std::io::Error> for Failure {
    /// An error of writing to standard output.
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::silent();
        }
        Self::new(Exit::Network, format!("standard output: {error}"))
    }
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// What clap says about a bad command line, as one line: its first paragraph and its tips.
pub(crate) fn command_line(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let mut parts = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.trim();
        if let Some(what) = paragraph.strip_prefix("error: ") {
            parts.push(joined(what));
        } else if let Some(tip) = paragraph.strip_prefix("tip: ") {
            parts.push(joined(tip));
        }
    }
    if parts.is_empty() {
        parts.push("the command line makes no sense".to_owned());
    }
    parts.push("see `coeval --help`".to_owned());
    Failure::usage(parts.join("; "))
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_whatever_caused_it() {
        let failure = Failure::usage("first\n  second\n\nthird").at("here");
        assert_eq!(failure.to_string(), "here: first; second; third");
        assert_eq!(failure.exit(), Exit::Usage);
    }

    #[test]
    fn a_broken_pipe_says_nothing() {
        let failure = Failure::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit(), failure.to_string().as_str()), (Exit::Ok, ""));
        let full = Failure::from(std::io::Error::from(std::io::ErrorKind::StorageFull));
        assert_eq!(full.exit(), Exit::Network);
    }
}
