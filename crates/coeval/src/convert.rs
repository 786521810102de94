//! The errors of the floors below, as errors of the façade: the same words, and a kind for programs.
use crate::{Error, ErrorKind};
use coeval_quic::{DialError, RefusalCode, Stopped};
use coeval_store::{EntryError, LookupError, ParamError, ReadError, WriteError};
use coeval_sync::EventError;

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::UnknownEntity(_) => ErrorKind::NotFound,
            WriteError::Deleted(_) => ErrorKind::Deleted,
            WriteError::Exists(_) | WriteError::NameTaken { .. } => ErrorKind::Exists,
            WriteError::Limit { .. } => ErrorKind::Limit,
            _ => ErrorKind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Missing { .. } => ErrorKind::Missing,
            ReadError::TooFarPast { .. } => ErrorKind::TooFarPast,
            ReadError::TooFarFuture { .. } => ErrorKind::TooFarFuture,
            ReadError::Deleted { .. } => ErrorKind::Deleted,
            ReadError::Type { .. } => ErrorKind::WrongType,
            _ => ErrorKind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<LookupError> for Error {
    fn from(error: LookupError) -> Self {
        let kind = match &error {
            LookupError::NoSuchName(_) => ErrorKind::NotFound,
            LookupError::Ambiguous { .. } => ErrorKind::Ambiguous,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<ParamError> for Error {
    fn from(error: ParamError) -> Self {
        let kind = match &error {
            ParamError::Deleted(_) => ErrorKind::Deleted,
            ParamError::Limit { .. } => ErrorKind::Limit,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<EntryError> for Error {
    fn from(error: EntryError) -> Self {
        let kind = match &error {
            EntryError::Limit(_) => ErrorKind::Limit,
            _ => ErrorKind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<EventError> for Error {
    fn from(error: EventError) -> Self {
        let kind = match &error {
            EventError::Busy { .. } => ErrorKind::Busy,
            EventError::Absent(_) => ErrorKind::NotFound,
            _ => ErrorKind::Invalid,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        Self::new(ErrorKind::Stopped, stopped.to_string())
    }
}

impl From<DialError> for Error {
    fn from(error: DialError) -> Self {
        let kind = match &error {
            DialError::Refused(refusal) if refusal.code == RefusalCode::Version => ErrorKind::Invalid,
            DialError::Refused(_) => ErrorKind::Refused,
            _ => ErrorKind::Network,
        };
        Self::new(kind, error.to_string())
    }
}
