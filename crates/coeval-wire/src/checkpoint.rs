//! Checkpoints as bytes: what a file holds, and what a program may keep wherever it likes.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `coevalcp` |
//! | 2 | version of the layout |
//! | 8 | how many bytes follow the checksum |
//! | 16 | their XXH3-128: damage is found before anything is read |
//! | 16 | the session's id |
//! | 8 | session wall time at which it was taken, nanoseconds since the Unix epoch |
//! | 8 + 4 | sim time: seconds and nanoseconds since the PTP epoch |
//! | 8 | scale |
//! | 8 | number of states |
//! | rest | groups of a length (4), keys, a length (4), states: bodies of [`crate::body`], numbered from 0 on |
//!
//! Numbers are little-endian. States are in key order, each once. The checksum detects accidents, not forgeries.
use crate::body::{self, BodyError, BodyLimits, MAX_BODY};
use bytes::{Buf, BufMut};
use coeval_merge::{Content, SlotId, SlotKey, SlotState};
use coeval_time::{SessionId, SimTime, WallTime};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

/// Version of the layout.
pub const CHECKPOINT_VERSION: u16 = 1;

/// Most bytes of a checkpoint.
pub const MAX_CHECKPOINT: u64 = 8 << 30;

const MAGIC: &[u8; 8] = b"coevalcp";
/// Magic, version, length, checksum.
const HEAD: usize = 8 + 2 + 8 + 16;
/// Session, wall time, sim time, scale, number of states.
const FIELDS: usize = 16 + 8 + 12 + 8 + 8;
/// States in a group.
const GROUP: usize = 1024;

/// A world's content, with whose it is and when it was taken.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Of which session.
    pub session: SessionId,
    /// Session wall time at which it was taken.
    pub taken: WallTime,
    /// Entities, values and the clock.
    pub content: Content,
}

/// Why bytes are no checkpoint, or a checkpoint cannot be written. Nothing was kept.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The first bytes are another file's.
    #[error("not a checkpoint of coeval: it begins otherwise")]
    NotACheckpoint,
    /// Written by another release.
    #[error(
        "checkpoint of version {0}: this program reads version {CHECKPOINT_VERSION}; use the release that wrote it"
    )]
    Version(u16),
    /// The end is missing, or something follows it.
    #[error("checkpoint of {found} bytes that says it has {said}: it was cut off, or something was added")]
    Length {
        /// How long it is.
        found: u64,
        /// How long it says it is.
        said: u64,
    },
    /// The checksum says that bytes were changed.
    #[error("the checkpoint is damaged: its checksum does not match; take another copy")]
    Damaged,
    /// Longer than [`MAX_CHECKPOINT`].
    #[error("checkpoint of {0} bytes: at most {MAX_CHECKPOINT}")]
    TooLong(u64),
    /// Whole, but not as coeval writes them.
    #[error("the checkpoint makes no sense: {0}")]
    Malformed(&'static str),
    /// A part of it does not read.
    #[error("the checkpoint makes no sense: {0}")]
    Body(#[from] BodyError),
}

impl Checkpoint {
    /// The bytes.
    ///
    /// # Errors
    /// [`CheckpointError::TooLong`]; [`CheckpointError::Body`] for a value that no frame could carry either.
    pub fn encode(&self) -> Result<Vec<u8>, CheckpointError> {
        let mut out = Vec::with_capacity(HEAD + FIELDS + 64 * self.content.states.len());
        out.put_slice(MAGIC);
        out.put_u16_le(CHECKPOINT_VERSION);
        out.put_bytes(0, 8 + 16);
        out.put_slice(self.session.0.as_bytes());
        out.put_u64_le(self.taken.as_nanos());
        let (secs, nanos) = self.content.sim.secs_nanos();
        out.put_i64_le(secs);
        out.put_u32_le(nanos);
        out.put_u64_le(self.content.scale.to_bits());
        out.put_u64_le(self.content.states.len() as u64);
        for (group, states) in self.content.states.chunks(GROUP).enumerate() {
            put_group(&mut out, group * GROUP, states)?;
        }
        let length = (out.len() - HEAD) as u64;
        if length > MAX_CHECKPOINT {
            return Err(CheckpointError::TooLong(length));
        }
        let sum = xxh3_128(&out[HEAD..]);
        out[10..18].copy_from_slice(&length.to_le_bytes());
        out[18..HEAD].copy_from_slice(&sum.to_le_bytes());
        Ok(out)
    }

    /// Reads the bytes, whole or not at all.
    ///
    /// # Errors
    /// [`CheckpointError`] says what is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let mut from = checked(bytes)?;
        let mut session = [0; 16];
        from.copy_to_slice(&mut session);
        let taken = WallTime::from_nanos(from.get_u64_le());
        let (secs, nanos) = (from.get_i64_le(), from.get_u32_le());
        let scale = f64::from_bits(from.get_u64_le());
        if nanos >= 1_000_000_000 || !scale.is_finite() {
            return Err(CheckpointError::Malformed("its sim time or scale is none"));
        }
        let count = from.get_u64_le();
        let mut states: Vec<(SlotKey, SlotState)> = Vec::new();
        while !from.is_empty() {
            get_group(&mut from, &mut states)?;
        }
        if states.len() as u64 != count {
            return Err(CheckpointError::Malformed("it does not hold as many states as it says"));
        }
        if !states.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(CheckpointError::Malformed("its states are out of order"));
        }
        let content = Content { sim: SimTime::from_secs_nanos(secs, nanos), scale, states };
        Ok(Self { session: SessionId(Uuid::from_bytes(session)), taken, content })
    }
}

/// What follows the head, if that vouches for it.
fn checked(bytes: &[u8]) -> Result<&[u8], CheckpointError> {
    let mut head = bytes;
    if !bytes.starts_with(&MAGIC[..bytes.len().min(8)]) || bytes.is_empty() {
        return Err(CheckpointError::NotACheckpoint);
    }
    let cut = |said| CheckpointError::Length { found: bytes.len() as u64, said };
    if bytes.len() < 10 {
        return Err(cut((HEAD + FIELDS) as u64));
    }
    head.advance(8);
    match head.get_u16_le() {
        CHECKPOINT_VERSION => {}
        other => return Err(CheckpointError::Version(other)),
    }
    if bytes.len() < HEAD {
        return Err(cut((HEAD + FIELDS) as u64));
    }
    let (length, sum) = (head.get_u64_le(), head.get_u128_le());
    if length > MAX_CHECKPOINT {
        return Err(CheckpointError::TooLong(length));
    }
    if head.len() as u64 != length {
        return Err(cut(HEAD as u64 + length));
    }
    if xxh3_128(head) != sum {
        return Err(CheckpointError::Damaged);
    }
    if head.len() < FIELDS { Err(CheckpointError::Malformed("it ends too early")) } else { Ok(head) }
}

/// Writes states from number `first` on: in halves, if they are too long together.
fn put_group(
    out: &mut Vec<u8>,
    first: usize,
    states: &[(SlotKey, SlotState)],
) -> Result<(), CheckpointError> {
    let start = out.len();
    let number = |at: usize| SlotId(u32::try_from(first + at).unwrap_or(u32::MAX));
    let keys: Vec<_> = states.iter().enumerate().map(|(at, (key, _))| (number(at), key)).collect();
    let values: Vec<_> = states.iter().enumerate().map(|(at, (_, state))| (number(at), state)).collect();
    let both = put_body(out, |out| body::encode_keys(&keys, out))
        .and_then(|()| put_body(out, |out| body::encode_states(&values, out)));
    match both {
        Err(BodyError::TooLong(_)) if states.len() > 1 => {
            out.truncate(start);
            let (front, back) = states.split_at(states.len() / 2);
            put_group(out, first, front)?;
            put_group(out, first + front.len(), back)
        }
        other => Ok(other?),
    }
}

fn put_body(
    out: &mut Vec<u8>,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    let start = out.len();
    out.put_u32_le(0);
    encode(out)?;
    // At most `MAX_BODY`.
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn get_group(from: &mut &[u8], states: &mut Vec<(SlotKey, SlotState)>) -> Result<(), CheckpointError> {
    let limits = BodyLimits { items: GROUP, ..BodyLimits::default() };
    let keys = body::decode_keys(get_body(from)?, &limits)?;
    let values = body::decode_states(get_body(from)?, &limits)?;
    if keys.len() != values.len() || keys.is_empty() {
        return Err(CheckpointError::Malformed("a group without as many states as keys"));
    }
    for ((number, key), (same, state)) in keys.into_iter().zip(values) {
        if number != same || number.0 as usize != states.len() {
            return Err(CheckpointError::Malformed("its states are not numbered in order"));
        }
        if key.path.is_none() != matches!(state, SlotState::Life(_)) {
            return Err(CheckpointError::Malformed("a value where an entity's life belongs, or the reverse"));
        }
        states.push((key, state));
    }
    Ok(())
}

fn get_body<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], CheckpointError> {
    let cut = || CheckpointError::Malformed("a group that ends too early");
    let length = from.try_get_u32_le().map_err(|_| cut())? as usize;
    if length > MAX_BODY || length > from.len() {
        return Err(cut());
    }
    let (now, later) = from.split_at(length);
    *from = later;
    Ok(now)
}
