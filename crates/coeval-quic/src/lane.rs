//! Framing of the reliable lane: each message is preceded by its length, `u32` big-endian.
use bytes::{Buf, Bytes, BytesMut};

/// Bytes of the length.
const HEADER: usize = 4;
/// Many tiny writes collapse in QUIC's send buffer: while messages wait, writes are gathered to at least this.
pub(crate) const GATHER: usize = 64 << 10;
/// A message of this size and more is passed on without copying it.
const SHARE: usize = 4 << 10;
/// An announced message reserves at most this before its bytes arrive.
const RESERVE: usize = 64 << 10;

/// A message longer than allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message of {length} bytes was announced, at most {limit} are allowed")]
pub(crate) struct TooLong {
    length: usize,
    limit: usize,
}

/// Cuts arriving bytes into messages.
#[derive(Debug)]
pub(crate) struct Deframer {
    limit: usize,
    header: BytesMut,
    body: BytesMut,
    /// Length of the message under way.
    want: Option<usize>,
}

impl Deframer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, header: BytesMut::with_capacity(HEADER), body: BytesMut::new(), want: None }
    }

    /// The next message that `chunk` completes. Call until it gives `None`; `chunk` is then used up.
    pub(crate) fn next(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, TooLong> {
        let want = match self.want {
            Some(want) => want,
            None => match self.length(chunk)? {
                Some(want) => want,
                None => return Ok(None),
            },
        };
        if self.body.is_empty() && chunk.len() >= want {
            self.want = None;
            return Ok(Some(chunk.split_to(want)));
        }
        if self.body.is_empty() {
            self.body.reserve(want.min(RESERVE));
        }
        let take = (want - self.body.len()).min(chunk.len());
        self.body.extend_from_slice(&chunk.split_to(take));
        if self.body.len() < want {
            return Ok(None);
        }
        self.want = None;
        Ok(Some(std::mem::take(&mut self.body).freeze()))
    }

    /// Whether the bytes ended inside a message.
    pub(crate) fn is_cut(&self) -> bool {
        self.want.is_some() || !self.header.is_empty()
    }

    fn length(&mut self, chunk: &mut Bytes) -> Result<Option<usize>, TooLong> {
        let take = (HEADER - self.header.len()).min(chunk.len());
        self.header.extend_from_slice(&chunk.split_to(take));
        if self.header.len() < HEADER {
            return Ok(None);
        }
        let length = self.header.get_u32() as usize;
        self.header.clear();
        if length > self.limit {
            return Err(TooLong { length, limit: self.limit });
        }
        self.want = Some(length);
        Ok(Some(length))
    }
}

/// Gathers messages into few large chunks: small ones are copied together, large ones shared.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    chunks: Vec<Bytes>,
    open: BytesMut,
    framed: usize,
    payload: usize,
}

impl Framer {
    pub(crate) fn push(&mut self, message: Bytes) {
        self.framed += HEADER + message.len();
        self.payload += message.len();
        self.open.extend_from_slice(&(message.len() as u32).to_be_bytes());
        if message.len() < SHARE {
            self.open.extend_from_slice(&message);
        } else {
            self.chunks.push(self.open.split().freeze());
            self.chunks.push(message);
        }
    }

    /// Whether enough is gathered for one write.
    pub(crate) fn is_full(&self) -> bool {
        self.framed >= GATHER
    }

    /// What was gathered, and how many message bytes it carries.
    pub(crate) fn take(&mut self) -> (Vec<Bytes>, usize) {
        if !self.open.is_empty() {
            self.chunks.push(self.open.split().freeze());
        }
        self.framed = 0;
        (std::mem::take(&mut self.chunks), std::mem::take(&mut self.payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn deframe(deframer: &mut Deframer, mut chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), TooLong> {
        while let Some(message) = deframer.next(&mut chunk)? {
            out.push(message);
        }
        assert!(chunk.is_empty(), "a chunk is used up");
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn messages_survive_any_cutting(
            lengths in proptest::collection::vec(prop_oneof![0usize..20, 4_000usize..9_000], 0..20),
            cut in 1usize..3_000,
        ) {
            let messages: Vec<Bytes> =
                lengths.iter().enumerate().map(|(i, length)| Bytes::from(vec![i as u8; *length])).collect();
            let mut framer = Framer::default();
            for message in &messages {
                framer.push(message.clone());
            }
            let (chunks, payload) = framer.take();
            prop_assert_eq!(payload, lengths.iter().sum::<usize>());
            let wire: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.to_vec()).collect();
            let mut deframer = Deframer::new(9_000);
            let mut back = Vec::new();
            for piece in wire.chunks(cut) {
                deframe(&mut deframer, Bytes::copy_from_slice(piece), &mut back).unwrap();
            }
            prop_assert!(!deframer.is_cut());
            prop_assert_eq!(back, messages);
        }
    }

    #[test]
    fn announced_length_is_checked_before_it_is_reserved() {
        let mut deframer = Deframer::new(1_000);
        let error = deframer.next(&mut Bytes::from_static(&[0xff; 8])).unwrap_err();
        assert_eq!(error, TooLong { length: u32::MAX as usize, limit: 1_000 });
        let mut deframer = Deframer::new(usize::MAX);
        assert_eq!(deframer.next(&mut Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff, 1])), Ok(None));
        assert!(deframer.body.capacity() < 1 << 20, "memory follows the bytes that arrive");
        assert!(deframer.is_cut());
    }
}
