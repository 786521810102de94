//! The bytes of a journal.
//!
//! ```text
//! file    = "coevaljl" version:u16 length:u32 checksum:u64 header[length] record*
//! record  = length:u32 kind:[2] checksum:u64 payload[length]
//! kind    = "MS": a message | "MK": synced:u64, then a message that is a mark | "EN": synced:u64
//! ```
//! Integers are big-endian; checksums are XXH3 (64 bits). A record's covers its length, its kind and its payload and is
//! seeded by the header's checksum and the record's place in the file, so that a record of another file, or one that was
//! moved or doubled, does not pass.
//!
//! `synced` tells up to where the file was synced when the record was written. What is broken before that place was safe
//! once: that is damage. What is broken after it may never have reached the disk: that is a torn tail. `EN` is written,
//! and synced, when a journal is closed in order.
use std::io;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// The version written and read here.
pub const VERSION: u16 = 1;
/// Most bytes in the payload of a record.
pub const MAX_PAYLOAD: usize = 8 << 20;
/// Most bytes in the header.
pub const MAX_HEADER: usize = 1 << 20;

pub(crate) const MAGIC: &[u8; 8] = b"coevaljl";
/// Magic, version, length, checksum.
pub(crate) const FILE_HEAD: usize = 8 + 2 + 4 + 8;
/// Length, kind, checksum.
pub(crate) const RECORD_HEAD: usize = 4 + 2 + 8;

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Message,
    Mark,
    End,
}

impl Kind {
    const fn tag(self) -> [u8; 2] {
        match self {
            Self::Message => *b"MS",
            Self::Mark => *b"MK",
            Self::End => *b"EN",
        }
    }

    fn from_tag(tag: [u8; 2]) -> Option<Self> {
        [Self::Message, Self::Mark, Self::End].into_iter().find(|kind| kind.tag() == tag)
    }

    /// Whether its payload begins with the place up to which the file was synced.
    const fn tells_synced(self) -> bool {
        !matches!(self, Self::Message)
    }
}

/// The head of a file, and the checksum that seeds its records.
pub(crate) fn file_head(header: &[u8]) -> io::Result<(Vec<u8>, u64)> {
    let length = u32::try_from(header.len()).ok().filter(|_| header.len() <= MAX_HEADER);
    let length = length.ok_or_else(|| io::Error::other("the header is too long"))?;
    let checksum = header_checksum(VERSION, header);
    let mut out = Vec::with_capacity(FILE_HEAD + header.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(header);
    Ok((out, checksum))
}

pub(crate) fn header_checksum(version: u16, header: &[u8]) -> u64 {
    xxh3_64_with_seed(header, u64::from(version))
}

/// Appends a record that will stand at `offset` of a file.
pub(crate) fn put_record(
    out: &mut Vec<u8>,
    salt: u64,
    offset: u64,
    kind: Kind,
    synced: u64,
    message: &[u8],
) -> io::Result<()> {
    let extra = if kind.tells_synced() { 8 } else { 0 };
    let length = message.len() + extra;
    if length > MAX_PAYLOAD {
        return Err(io::Error::other(format!("a record of {length} bytes: the most is {MAX_PAYLOAD}")));
    }
    let start = out.len();
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(&kind.tag());
    out.extend_from_slice(&[0; 8]);
    if kind.tells_synced() {
        out.extend_from_slice(&synced.to_be_bytes());
    }
    out.extend_from_slice(message);
    let checksum = checksum(salt, offset, &out[start..start + 6], &out[start + RECORD_HEAD..]);
    out[start + 6..start + RECORD_HEAD].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

fn checksum(salt: u64, offset: u64, head: &[u8], payload: &[u8]) -> u64 {
    let mut hash = Xxh3::with_seed(salt ^ offset);
    hash.update(head);
    hash.update(payload);
    hash.digest()
}

/// The head of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) length: usize,
    head: [u8; 6],
    checksum: u64,
}

impl Head {
    /// `None` for what cannot be one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RECORD_HEAD] = bytes.get(..RECORD_HEAD)?.try_into().ok()?;
        let [l1, l2, l3, l4, k1, k2, checksum @ ..] = *bytes;
        let kind = Kind::from_tag([k1, k2])?;
        let length = u32::from_be_bytes([l1, l2, l3, l4]) as usize;
        let least = if kind.tells_synced() { 8 } else { 0 };
        (least..=MAX_PAYLOAD).contains(&length).then(|| Self {
            kind,
            length,
            head: [l1, l2, l3, l4, k1, k2],
            checksum: u64::from_be_bytes(checksum),
        })
    }

    /// What the payload says, if it is the one that was written here: the synced place and the message.
    pub(crate) fn open<'a>(&self, salt: u64, offset: u64, payload: &'a [u8]) -> Option<(u64, &'a [u8])> {
        if checksum(salt, offset, &self.head, payload) != self.checksum {
            return None;
        }
        if !self.kind.tells_synced() {
            return Some((0, payload));
        }
        let (synced, message) = payload.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*synced), message))
    }
}
