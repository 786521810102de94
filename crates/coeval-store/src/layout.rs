//! How a sample lies in the words of a cell: a header of five words, then the value's.
//!
//! | word | content |
//! |---|---|
//! | 0, 1 | stamp: hybrid clock, writer |
//! | 2, 3 | sim time, nanoseconds, two's complement, low half first |
//! | 4 | from the low end: epoch number (32 bits), flags (8), kind of value (8), words of value (8) |
use crate::epochs::Epochs;
use coeval_time::{Direction, Incarnation, SimTime, Stamp};
use coeval_value::SampleMeta;
use coeval_value::words::MAX_INLINE_WORDS;

/// Words of a header.
pub(crate) const HEADER: usize = 5;
/// Words of the widest sample.
pub(crate) const MAX_WIDTH: usize = HEADER + MAX_INLINE_WORDS;
/// The kind of a value that lives on the heap, beside the cell's words.
pub(crate) const HEAP: u8 = u8::MAX;

/// Room for any sample.
pub(crate) type Buffer = [u64; MAX_WIDTH];

/// The writer's sim time ran backward.
const BACKWARD: u8 = 1;
/// A teleport: never interpolated across.
pub(crate) const DISCONTINUOUS: u8 = 2;
/// Of an older epoch than another sample of its cell.
pub(crate) const ABANDONED: u8 = 4;

/// The header of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) stamp: Stamp,
    pub(crate) sim: SimTime,
    /// A number of the store's [`Epochs`].
    pub(crate) epoch: u32,
    pub(crate) flags: u8,
    pub(crate) kind: u8,
    pub(crate) words: u8,
}

impl Header {
    /// The header of a value without kind yet.
    pub(crate) fn new(stamp: Stamp, meta: &SampleMeta, epochs: &Epochs) -> Self {
        let backward = if meta.direction == Direction::Backward { BACKWARD } else { 0 };
        let discontinuous = if meta.discontinuous { DISCONTINUOUS } else { 0 };
        let epoch = epochs.number(meta.epoch);
        Self { stamp, sim: meta.sim, epoch, flags: backward | discontinuous, kind: HEAP, words: 0 }
    }

    pub(crate) fn meta(&self, epochs: &Epochs) -> SampleMeta {
        SampleMeta {
            sim: self.sim,
            epoch: epochs.epoch(self.epoch),
            direction: if self.flags & BACKWARD == 0 { Direction::Forward } else { Direction::Backward },
            discontinuous: self.flags & DISCONTINUOUS != 0,
        }
    }

    pub(crate) fn put(&self, out: &mut [u64]) {
        let sim = self.sim.as_nanos().cast_unsigned();
        out[0] = self.stamp.hlc;
        out[1] = self.stamp.writer.0;
        out[2] = sim as u64;
        out[3] = (sim >> 64) as u64;
        out[4] = u64::from(self.epoch)
            | u64::from(self.flags) << 32
            | u64::from(self.kind) << 40
            | u64::from(self.words) << 48;
    }

    pub(crate) fn get(words: &[u64]) -> Self {
        Self {
            stamp: Stamp::new(words[0], Incarnation(words[1])),
            sim: SimTime::from_nanos((u128::from(words[2]) | u128::from(words[3]) << 64).cast_signed()),
            epoch: words[4] as u32,
            flags: (words[4] >> 32) as u8,
            kind: (words[4] >> 40) as u8,
            words: (words[4] >> 48) as u8,
        }
    }

    /// The value's words of a sample whose header this is.
    pub(crate) fn value<'a>(&self, sample: &'a [u64]) -> &'a [u64] {
        let end = HEADER + usize::from(self.words);
        &sample[HEADER..end.min(sample.len())]
    }

    /// Whether nothing but the sim time tells this sample's circumstances from `other`'s: same writer, epoch,
    /// direction, both steady.
    pub(crate) fn alike(&self, other: &Self) -> bool {
        (self.stamp.writer, self.epoch, self.flags) == (other.stamp.writer, other.epoch, other.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval_time::Epoch;

    #[test]
    fn every_field_of_a_header_comes_back() {
        let epochs = Epochs::new();
        for sim in [0, -1, i128::from(i64::MIN) * 1_000, 7_000_000_000_000_000_000_000] {
            for (direction, discontinuous) in [(Direction::Forward, true), (Direction::Backward, false)] {
                let sim = SimTime::from_nanos(sim);
                let meta = SampleMeta { sim, epoch: Epoch::GENESIS, direction, discontinuous };
                let stamp = Stamp::new(u64::MAX - 3, Incarnation(u64::MAX));
                let mut header = Header::new(stamp, &meta, &epochs);
                (header.kind, header.words) = (24, 23);
                let mut words = [0; MAX_WIDTH];
                header.put(&mut words);
                assert_eq!(Header::get(&words), header);
                assert_eq!(header.meta(&epochs), meta);
                assert_eq!(header.value(&words).len(), 23);
            }
        }
    }
}
