//! The error of a read that asks for another type than the one found.

/// A value is not of the type asked for, or its number has no exact equal there.
///
/// Says nothing about where: the reader adds entity and path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TypeMismatch {
    /// Another type.
    #[error("found {found}, asked for {asked}: read it as {found}")]
    Type {
        /// The type of the value.
        found: &'static str,
        /// The type asked for.
        asked: &'static str,
    },
    /// A number (or a shape) that the type asked for cannot hold exactly.
    #[error(
        "found {found} whose value {asked} cannot hold exactly: read it as {found} and round it yourself"
    )]
    Inexact {
        /// The type of the value.
        found: &'static str,
        /// The type asked for.
        asked: &'static str,
    },
}

impl TypeMismatch {
    /// The type of the value.
    pub const fn found(&self) -> &'static str {
        match self {
            Self::Type { found, .. } | Self::Inexact { found, .. } => found,
        }
    }

    /// The type asked for.
    pub const fn asked(&self) -> &'static str {
        match self {
            Self::Type { asked, .. } | Self::Inexact { asked, .. } => asked,
        }
    }
}
