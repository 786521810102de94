//! Reading and writing the smallest parts: bytes, varints, floats. Every read is checked against what is there.
use super::{BODY_VERSION, BodyError, MAX_BODY};
use coeval_faults::{Fault, active};
use coeval_value::LimitError;

/// A place in a body.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes of memory that the elements of the value being read may still take: one byte of input can be an element
    /// of forty.
    room: usize,
}

/// Starts a body: version, content, number of items.
pub(super) fn open(out: &mut Vec<u8>, content: u8, count: usize) {
    out.extend([BODY_VERSION, content]);
    put_varint(out, count as u64);
}

/// The varints of unsigned integers: seven bits to a byte, lowest first, the highest bit of all bytes but the last set.
macro_rules! varints {
    ($put:ident, $get:ident, $put_signed:ident, $get_signed:ident, $unsigned:ty, $signed:ty) => {
        pub(super) fn $put(out: &mut Vec<u8>, mut v: $unsigned) {
            while v >= 0x80 {
                out.push(v as u8 | 0x80);
                v >>= 7;
            }
            out.push(v as u8);
        }

        /// Zigzag: small numbers of either sign are small.
        pub(super) fn $put_signed(out: &mut Vec<u8>, v: $signed) {
            $put(out, ((v << 1) ^ (v >> (<$signed>::BITS - 1))).cast_unsigned());
        }

        impl Reader<'_> {
            pub(super) fn $get(&mut self) -> Result<$unsigned, BodyError> {
                let mut v: $unsigned = 0;
                let mut shift = 0;
                loop {
                    let byte = self.byte()?;
                    let part = <$unsigned>::from(byte & 0x7f);
                    if shift >= <$unsigned>::BITS || part << shift >> shift != part {
                        return Err(self.range("varint"));
                    }
                    v |= part << shift;
                    if byte < 0x80 {
                        let padded = byte == 0 && shift > 0;
                        return if padded { Err(self.not_canonical("varint")) } else { Ok(v) };
                    }
                    shift += 7;
                }
            }

            pub(super) fn $get_signed(&mut self) -> Result<$signed, BodyError> {
                let v = self.$get()?;
                Ok((v >> 1).cast_signed() ^ -(v & 1).cast_signed())
            }
        }
    };
}

varints!(put_varint, varint, put_signed, signed, u64, i64);
varints!(put_varint128, varint128, put_signed128, signed128, u128, i128);

pub(super) fn put_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn put_f64s(out: &mut Vec<u8>, floats: &[f64]) {
    let whole = |v: f64| if active(Fault::NanCanonicalized) && v.is_nan() { f64::NAN } else { v };
    floats.iter().for_each(|v| out.extend_from_slice(&whole(*v).to_bits().to_le_bytes()));
}

impl<'a> Reader<'a> {
    /// Checks length, version and content.
    pub(super) fn open(bytes: &'a [u8], content: u8) -> Result<Self, BodyError> {
        if bytes.len() > MAX_BODY {
            return Err(BodyError::TooLong(bytes.len()));
        }
        let mut reader = Self { bytes, at: 0, room: 0 };
        match reader.byte()? {
            BODY_VERSION => {}
            other => return Err(BodyError::Version(other)),
        }
        match reader.byte()? {
            found if found == content => Ok(reader),
            found => Err(BodyError::Content { found, asked: content }),
        }
    }

    /// Checks that nothing follows.
    pub(super) fn finish(self) -> Result<(), BodyError> {
        match self.left() {
            0 => Ok(()),
            left => Err(BodyError::Trailing { at: self.at, left }),
        }
    }

    /// Starts a value that may take `room` bytes of memory.
    pub(super) fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Takes room for `count` elements of `size` bytes, before they are allocated.
    pub(super) fn take_room(&mut self, count: usize, size: usize) -> Result<(), BodyError> {
        let found = count.saturating_mul(size);
        let error = LimitError::Size { what: "bytes of elements", found, limit: self.room };
        self.room = self.room.checked_sub(found).ok_or(BodyError::Value { at: self.at, error })?;
        Ok(())
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], BodyError> {
        if count > self.left() {
            return Err(BodyError::Truncated { at: self.bytes.len() });
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BodyError> {
        let truncated = BodyError::Truncated { at: self.bytes.len() };
        let found = self.bytes[self.at..].first_chunk().ok_or(truncated)?;
        self.at += N;
        Ok(*found)
    }

    pub(super) fn byte(&mut self) -> Result<u8, BodyError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u64(&mut self) -> Result<u64, BodyError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn f64s<const N: usize>(&mut self) -> Result<[f64; N], BodyError> {
        let mut floats = [0.0; N];
        for float in &mut floats {
            *float = f64::from_bits(self.u64()?);
        }
        Ok(floats)
    }

    /// A varint that must fit a `u32`.
    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, BodyError> {
        let v = self.varint()?;
        u32::try_from(v).map_err(|_| self.range(what))
    }

    /// A count of at most `limit` items of at least `size` bytes each, which must be able to follow.
    pub(super) fn count(
        &mut self,
        what: &'static str,
        limit: usize,
        size: usize,
    ) -> Result<usize, BodyError> {
        let found = self.varint()?;
        if found > limit as u64 {
            return Err(BodyError::Count { what, found, limit });
        }
        // Fits: `limit` is a usize.
        let count = found as usize;
        if count > self.left() / size {
            return Err(BodyError::Truncated { at: self.bytes.len() });
        }
        Ok(count)
    }

    /// A length of at most `limit` and as many bytes.
    pub(super) fn blob(&mut self, what: &'static str, limit: usize) -> Result<&'a [u8], BodyError> {
        let count = self.count(what, limit, 1)?;
        self.take(count)
    }

    pub(super) fn text(&mut self, what: &'static str, limit: usize) -> Result<&'a str, BodyError> {
        let blob = self.blob(what, limit)?;
        std::str::from_utf8(blob).map_err(|_| self.malformed(what))
    }

    pub(super) fn range(&self, what: &'static str) -> BodyError {
        BodyError::Range { what, at: self.at }
    }

    pub(super) fn not_canonical(&self, what: &'static str) -> BodyError {
        BodyError::NotCanonical { what, at: self.at }
    }

    pub(super) fn malformed(&self, what: &'static str) -> BodyError {
        BodyError::Malformed { what, at: self.at }
    }

    /// The byte just read is not a code this version knows.
    pub(super) fn unknown(&self, what: &'static str, code: u8) -> BodyError {
        BodyError::Unknown { what, code, at: self.at - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader { bytes, at: 0, room: 0 }
    }

    #[test]
    fn varints_come_back_at_every_length() {
        for shift in 0..128 {
            for v in [1u128 << shift, (1u128 << shift) - 1, u128::MAX >> shift] {
                let mut out = Vec::new();
                put_varint128(&mut out, v);
                put_signed128(&mut out, v.cast_signed());
                put_varint(&mut out, v as u64);
                put_signed(&mut out, v as i64);
                let mut r = reader(&out);
                assert_eq!((r.varint128(), r.signed128()), (Ok(v), Ok(v.cast_signed())));
                assert_eq!((r.varint(), r.signed()), (Ok(v as u64), Ok(v as i64)));
                assert_eq!(r.finish(), Ok(()));
            }
        }
    }

    #[test]
    fn a_varint_has_one_spelling() {
        assert_eq!(reader(&[0x80, 0x00]).varint(), Err(BodyError::NotCanonical { what: "varint", at: 2 }));
        assert_eq!(reader(&[0xff; 10]).varint(), Err(BodyError::Range { what: "varint", at: 10 }));
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(reader(&most).varint(), Ok(u64::MAX));
        assert_eq!(reader(&[0x80]).varint(), Err(BodyError::Truncated { at: 1 }));
    }

    #[test]
    fn a_count_is_checked_against_the_bytes_that_are_there() {
        assert_eq!(reader(&[3, 0, 0, 0]).count("items", 9, 1), Ok(3));
        assert_eq!(reader(&[3, 0, 0, 0]).count("items", 9, 2), Err(BodyError::Truncated { at: 4 }));
        let refused = BodyError::Count { what: "items", found: 3, limit: 2 };
        assert_eq!(reader(&[3, 0, 0, 0]).count("items", 2, 1), Err(refused));
    }
}
