//! Fixed-size records packed back to back in one MessagePack `bin`: ids, digests and stamps by the thousand.
//!
//! A list can never claim more records than the bytes that are there, so decoding allocates in proportion to the
//! message and no more.
use bytes::{Buf, BufMut};
use coeval_merge::Digest;
use coeval_time::{EditId, Incarnation, Stamp};
use coeval_value::{EntityId, NodeId, PeerId};
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt;
use std::marker::PhantomData;
use uuid::Uuid;

/// A value of a fixed size on the wire, little-endian.
pub(crate) trait Record: Sized {
    /// Bytes it takes.
    const BYTES: usize;
    /// Appends exactly [`BYTES`](Self::BYTES) bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads exactly [`BYTES`](Self::BYTES) bytes, which the caller has made sure of.
    fn get(from: &mut &[u8]) -> Self;
}

impl Record for u32 {
    const BYTES: usize = 4;
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u32_le(*self);
    }
    fn get(from: &mut &[u8]) -> Self {
        from.get_u32_le()
    }
}

impl Record for Digest {
    const BYTES: usize = 16;
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u128_le(self.0);
    }
    fn get(from: &mut &[u8]) -> Self {
        Self(from.get_u128_le())
    }
}

impl Record for EntityId {
    const BYTES: usize = 16;
    fn put(&self, out: &mut Vec<u8>) {
        out.put_slice(self.0.as_bytes());
    }
    fn get(from: &mut &[u8]) -> Self {
        Self(Uuid::from_u128(from.get_u128()))
    }
}

impl Record for Stamp {
    const BYTES: usize = 16;
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u64_le(self.hlc);
        out.put_u64_le(self.writer.0);
    }
    fn get(from: &mut &[u8]) -> Self {
        Self::new(from.get_u64_le(), Incarnation(from.get_u64_le()))
    }
}

impl Record for EditId {
    const BYTES: usize = 20;
    fn put(&self, out: &mut Vec<u8>) {
        self.stamp.put(out);
        self.index.put(out);
    }
    fn get(from: &mut &[u8]) -> Self {
        Self { stamp: Stamp::get(from), index: u32::get(from) }
    }
}

impl Record for NodeId {
    const BYTES: usize = 40;
    fn put(&self, out: &mut Vec<u8>) {
        out.put_slice(&self.peer.0);
        out.put_u64_le(self.incarnation.0);
    }
    fn get(from: &mut &[u8]) -> Self {
        let mut peer = [0; 32];
        from.copy_to_slice(&mut peer);
        Self { peer: PeerId(peer), incarnation: Incarnation(from.get_u64_le()) }
    }
}

impl<A: Record, B: Record> Record for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn get(from: &mut &[u8]) -> Self {
        (A::get(from), B::get(from))
    }
}

impl<A: Record> Record for [A; 3] {
    const BYTES: usize = 3 * A::BYTES;
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|a| a.put(out));
    }
    fn get(from: &mut &[u8]) -> Self {
        [A::get(from), A::get(from), A::get(from)]
    }
}

struct Records<T>(PhantomData<T>);

impl<T: Record> Visitor<'_> for Records<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes, a multiple of {}", T::BYTES)
    }

    fn visit_bytes<E: Error>(self, mut bytes: &[u8]) -> Result<Vec<T>, E> {
        if !bytes.len().is_multiple_of(T::BYTES) {
            return Err(E::invalid_length(bytes.len(), &self));
        }
        let mut out = Vec::with_capacity(bytes.len() / T::BYTES);
        while !bytes.is_empty() {
            out.push(T::get(&mut bytes));
        }
        Ok(out)
    }
}

/// `#[serde(with = "packed::many")]`: a list of records.
pub(crate) mod many {
    use super::*;

    pub(crate) fn serialize<T: Record, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
        let mut out = Vec::with_capacity(list.len() * T::BYTES);
        list.iter().for_each(|record| record.put(&mut out));
        to.serialize_bytes(&out)
    }

    pub(crate) fn deserialize<'de, T: Record, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
        from.deserialize_bytes(Records(PhantomData))
    }
}

/// `#[serde(with = "packed::one")]`: one record.
pub(crate) mod one {
    use super::*;

    pub(crate) fn serialize<T: Record, S: Serializer>(record: &T, to: S) -> Result<S::Ok, S::Error> {
        many::serialize(std::slice::from_ref(record), to)
    }

    pub(crate) fn deserialize<'de, T: Record, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let list = from.deserialize_bytes(Records(PhantomData))?;
        let count = list.len();
        match <[T; 1]>::try_from(list) {
            Ok([record]) => Ok(record),
            Err(_) => Err(D::Error::invalid_length(count * T::BYTES, &"the bytes of one record")),
        }
    }
}

/// `#[serde(with = "packed::maybe")]`: none or one record.
pub(crate) mod maybe {
    use super::*;

    pub(crate) fn serialize<T: Record, S: Serializer>(record: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        many::serialize(record.as_slice(), to)
    }

    pub(crate) fn deserialize<'de, T: Record, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        let mut list = from.deserialize_bytes(Records(PhantomData))?;
        let last = list.pop();
        if list.is_empty() {
            return Ok(last);
        }
        Err(D::Error::invalid_length((list.len() + 1) * T::BYTES, &"the bytes of at most one record"))
    }
}
