//! The one error type of the façade: opaque, one line, with a kind for programs.
use std::fmt;

/// What a fallible call of coeval returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of trouble an [`Error`] is, for programs that decide by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such entity, peer or invite.
    NotFound,
    /// It exists already.
    Exists,
    /// Several entities carry the name.
    Ambiguous,
    /// The entity was deleted, for ever.
    Deleted,
    /// The parameter has no value (yet, or any more).
    Missing,
    /// The context is earlier than the parameter's samples and the policy of the read reach.
    TooFarPast,
    /// The context is later than the parameter's samples and the policy of the read reach.
    TooFarFuture,
    /// The value is of another type than was asked for.
    WrongType,
    /// The argument makes no sense: nothing was changed.
    Invalid,
    /// A limit is reached: nothing was changed.
    Limit,
    /// Too much is waiting to be sent; try again later.
    Busy,
    /// It did not happen in time.
    Timeout,
    /// No other peer is connected.
    NoPeers,
    /// The other side said no.
    Refused,
    /// The journal cannot be written or read: the disk is full, the file is damaged, in use, or no journal.
    Journal,
    /// The network or the operating system said no.
    Network,
    /// The peer has left its session, or its I/O thread failed.
    Stopped,
}

/// An error of coeval: displays as one line that says what, where and what to do.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Invalid, message.to_string())
    }

    /// What kind of trouble this is.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
