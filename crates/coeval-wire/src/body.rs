//! The packed bodies of deltas, definitions and entries: the hot part of the protocol, encoded once for all links.
//!
//! A body starts with its version and what it holds, then the number of items. Items follow one after another; each is
//! written as its difference from the one before, so that neighbors in slot number, stamp and sim time cost a few
//! bytes. Numbers are the *sender's* slot numbers. All fixed-size numbers are little-endian.
//!
//! | item | bytes |
//! |---|---|
//! | count, length | LEB128 varint, shortest form only |
//! | slot | zigzag varint of the difference from the slot after the previous item's |
//! | flags | one byte per state: what follows (see [`states`]) |
//! | stamp | zigzag varint of the difference from the previous stamp's nanoseconds, then its writer |
//! | writer, epoch | number in order of first use in this body; the first use carries the content |
//! | sim time | zigzag varint of how much more it moved than the stamp did since the previous leaf |
//! | value | kind (one byte, see [`coeval_value::kind`]), then its content (see [`value`]) |
//!
//! One body has one spelling only in all that costs nothing to check: decoders refuse long varints, flags that say
//! nothing, maps out of order, trailing bytes. They also refuse state that is not in normal form, and check every count
//! against the bytes that are there before they allocate. Encoders refuse what a decoder would refuse.
mod bytes;
pub mod entries;
pub mod keys;
pub mod states;
mod table;
pub mod value;

use crate::frame::MAX_FRAME;
use coeval_value::{LimitError, Limits};

pub use entries::{decode_entries, encode_entries};
pub use keys::{decode_keys, encode_keys};
pub use states::{decode_states, encode_states};
pub use value::{decode_value, encode_value};

/// Version of the layout of all bodies.
pub const BODY_VERSION: u8 = 1;

/// Most bytes of a body: what a message holds beside its own fields.
pub const MAX_BODY: usize = MAX_FRAME - 4096;

/// Bounds that a decoder enforces beside [`MAX_BODY`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyLimits {
    /// Items of one body.
    pub items: usize,
    /// Bounds on each value.
    pub value: Limits,
}

/// 262,144 items; values up to [`Limits::MAX`].
impl Default for BodyLimits {
    fn default() -> Self {
        Self { items: 1 << 18, value: Limits::MAX }
    }
}

/// Why a body was not read or not written. Offsets count bytes from the start of the body.
///
/// A decoder that fails gives nothing; an encoder that fails leaves its output as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyError {
    /// Longer than [`MAX_BODY`].
    #[error("body of {0} bytes: at most {MAX_BODY}; send fewer items at once")]
    TooLong(usize),
    /// Of another version.
    #[error("body version {0}: this program reads version {BODY_VERSION}; run the same release everywhere")]
    Version(u8),
    /// Holds something else.
    #[error("body holds {found:#04x}, not {asked:#04x}: states, keys and entries are not exchangeable")]
    Content {
        /// What it says it holds.
        found: u8,
        /// What the caller asked for.
        asked: u8,
    },
    /// Ends in the middle.
    #[error("body ends inside an item at byte {at}")]
    Truncated {
        /// Where the missing bytes should start.
        at: usize,
    },
    /// Goes on after its last item.
    #[error("{left} bytes after the last item, at byte {at}")]
    Trailing {
        /// Where they start.
        at: usize,
        /// How many.
        left: usize,
    },
    /// A code that this version does not know.
    #[error("unknown {what} {code:#04x} at byte {at}")]
    Unknown {
        /// What it codes.
        what: &'static str,
        /// The code.
        code: u8,
        /// Where.
        at: usize,
    },
    /// Not the one spelling of what it says.
    #[error("{what} not in its one spelling, before byte {at}")]
    NotCanonical {
        /// What.
        what: &'static str,
        /// Where it ends.
        at: usize,
    },
    /// A number that its type cannot hold.
    #[error("{what} out of range, before byte {at}")]
    Range {
        /// What.
        what: &'static str,
        /// Where it ends.
        at: usize,
    },
    /// Not UTF-8, or not a key or a path.
    #[error("malformed {what}, before byte {at}")]
    Malformed {
        /// What.
        what: &'static str,
        /// Where it ends.
        at: usize,
    },
    /// More items than admitted.
    #[error("{found} {what}: at most {limit}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many.
        found: u64,
        /// The bound.
        limit: usize,
    },
    /// A value beyond its limits.
    #[error("value before byte {at}: {error}")]
    Value {
        /// Where it ends.
        at: usize,
        /// Which limit.
        error: LimitError,
    },
    /// State that no batch in normal form leads to.
    #[error("state before byte {at} not in normal form: {why}")]
    NotNormal {
        /// What is wrong.
        why: &'static str,
        /// Where it ends.
        at: usize,
    },
}

/// Runs an encoder; on error, or when the body got too long, takes back what it wrote.
fn guarded(
    out: &mut Vec<u8>,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    let start = out.len();
    let result = encode(out).and_then(|()| match out.len() - start {
        long if long > MAX_BODY => Err(BodyError::TooLong(long)),
        _ => Ok(()),
    });
    if result.is_err() {
        out.truncate(start);
    }
    result
}
