//! Dirty bits: which of many cells changed since the consumer last looked.

use std::fmt;

use coeval_faults::{Fault, active};

use crate::sync::{AtomicU64, Once, Ordering};

/// Bits per word.
const BITS: usize = u64::BITS as usize;
/// Words in the first chunk, a power of two: 4,096 indices, whose summary is one word. (loom pays for every atomic.)
const FIRST: usize = if cfg!(coeval_loom) { 1 } else { 64 };
/// Each later chunk doubles what there is, so these cover all indices of 32 bits.
const CHUNKS: usize = (u32::BITS - BITS.ilog2() - FIRST.ilog2() + 1) as usize;

/// One bit for each index, set by any thread and swapped out by a consumer.
///
/// Two levels: a word of 64 bits, and a summary bit for each word, so that a drain over a million quiet cells looks
/// at 256 words. Room grows in chunks that never move; marking allocates only when it meets an index beyond all
/// earlier ones, and takes no lock otherwise. Indices should be dense: the cost is 1/8 byte for each up to the
/// largest, rounded up to a power of two.
///
/// # Memory orders
/// * A mark is an unconditional read-modify-write of the word, made after the cell was published: looking first and
///   skipping when the bit is set would lose the update, because the look may run ahead of the publication.
/// * A drain swaps the summary, then the words, and only then reads the cells. Each swap acquires what the marks
///   released, so it finds the cells at least as new as the marks it took.
/// * After its word, a mark looks at the summary bit and sets it only if it is clear. This look may skip: it stands
///   behind the read-modify-write, which acquires the swap of the last drain of this word, and that drain had cleared
///   the summary bit before. If the bit is set nevertheless, a drain is still to come for it. A mark does not leave
///   the summary to the thread that set the first bit of the word: stopped in between, that thread would hold up
///   everyone's updates.
/// * All of them are `SeqCst`, which costs nothing more on x86, so that a plain look at the
///   [`Doorbell`](crate::Doorbell) may follow.
pub struct DirtyBits {
    /// Which chunks exist. A bit is set after its chunk, and read before it.
    present: AtomicU64,
    chunks: [Once<Chunk>; CHUNKS],
}

struct Chunk {
    words: Box<[AtomicU64]>,
    summary: Box<[AtomicU64]>,
}

impl Chunk {
    fn new(words: usize) -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Chunk { words: zeros(words), summary: zeros(words.div_ceil(BITS)) }
    }
}

impl DirtyBits {
    /// No bit set, and no room taken yet.
    pub fn new() -> Self {
        DirtyBits { present: AtomicU64::new(0), chunks: std::array::from_fn(|_| Once::new()) }
    }

    /// Sets the bit of `index`. Publish first, mark after; ring the [`Doorbell`](crate::Doorbell) last.
    #[inline]
    pub fn mark(&self, index: u32) {
        let (number, word) = locate(index as usize / BITS);
        let chunk = self.chunk(number);
        let bit = 1 << (index as usize % BITS);
        if active(Fault::DirtyBitSkipped) && chunk.words[word].load(Ordering::Relaxed) & bit != 0 {
            return;
        }
        chunk.words[word].fetch_or(bit, Ordering::SeqCst);
        let (summary, bit) = (&chunk.summary[word / BITS], 1 << (word % BITS));
        if summary.load(Ordering::SeqCst) & bit == 0 {
            summary.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Swaps all bits out and calls `f` with their indices, ascending.
    ///
    /// A mark that races with the drain is taken by it or left for the next one. Several drains at once share the
    /// marks between them.
    pub fn drain(&self, mut f: impl FnMut(u32)) {
        each_bit(self.present.load(Ordering::SeqCst), |number| {
            let Some(chunk) = self.chunks[number].get() else { return };
            for (group, summary) in chunk.summary.iter().enumerate() {
                each_bit(take(summary), |bit| {
                    let word = group * BITS + bit;
                    let first_index = (first_word(number) + word) * BITS;
                    each_bit(take(&chunk.words[word]), |bit| f((first_index + bit) as u32));
                });
            }
        });
    }

    /// Whether no bit seems to be set. A hint: marks of other threads may not have come in yet, so it must not decide
    /// that the consumer may sleep (see [`Doorbell`](crate::Doorbell)).
    pub fn is_empty_hint(&self) -> bool {
        let mut empty = true;
        each_bit(self.present.load(Ordering::Relaxed), |number| {
            let summary = self.chunks[number].get().map_or(&[][..], |chunk| &chunk.summary);
            empty &= summary.iter().all(|word| word.load(Ordering::Relaxed) == 0);
        });
        empty
    }

    /// The chunk, made at first use.
    #[inline]
    fn chunk(&self, number: usize) -> &Chunk {
        // The bit is asked for, not the chunk alone: who marks in a chunk must know that a drain will look into it,
        // also when the thread that made the chunk was stopped before it could say so.
        if self.present.load(Ordering::SeqCst) & 1 << number != 0
            && let Some(chunk) = self.chunks[number].get()
        {
            return chunk;
        }
        self.make_chunk(number)
    }

    #[cold]
    fn make_chunk(&self, number: usize) -> &Chunk {
        let chunk = self.chunks[number].get_or_init(|| Chunk::new(FIRST << number.saturating_sub(1)));
        self.present.fetch_or(1 << number, Ordering::SeqCst);
        chunk
    }
}

impl Default for DirtyBits {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DirtyBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirtyBits").field("is_empty_hint", &self.is_empty_hint()).finish_non_exhaustive()
    }
}

/// Swaps the bits of a word out.
#[inline]
fn take(word: &AtomicU64) -> u64 {
    if active(Fault::DirtyBitsCleared) {
        let bits = word.load(Ordering::SeqCst);
        word.store(0, Ordering::SeqCst);
        return bits;
    }
    word.swap(0, Ordering::SeqCst)
}

/// The chunk of a word, and the word's place in it.
#[inline]
fn locate(word: usize) -> (usize, usize) {
    if word < FIRST {
        return (0, word);
    }
    let number = (word.ilog2() - FIRST.ilog2() + 1) as usize;
    (number, word - first_word(number))
}

/// The first word of a chunk: 0, FIRST, 2 FIRST, 4 FIRST...
#[inline]
fn first_word(number: usize) -> usize {
    if number == 0 { 0 } else { FIRST << (number - 1) }
}

/// Calls `f` with the place of each bit set, ascending.
#[inline]
fn each_bit(mut bits: u64, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(all(test, not(coeval_loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicU32;
    use std::thread;

    fn drained(bits: &DirtyBits) -> Vec<u32> {
        let mut out = Vec::new();
        bits.drain(|index| out.push(index));
        out
    }

    #[test]
    fn every_word_has_one_place() {
        let mut expected = (0, 0);
        for word in 0..1 << 16 {
            let (number, place) = locate(word);
            assert_eq!(first_word(number) + place, word);
            if (number, place) != expected {
                expected = (expected.0 + 1, 0);
            }
            assert_eq!((number, place), expected, "word {word}");
            expected.1 += 1;
        }
        assert_eq!(locate(u32::MAX as usize / BITS).0, CHUNKS - 1);
    }

    #[test]
    fn marks_come_out_once_and_in_ascending_order() {
        let bits = DirtyBits::new();
        assert!(bits.is_empty_hint() && drained(&bits).is_empty());
        let indices = [1_000_000, 0, 63, 64, 4_095, 4_096, 8_191, 8_192, 700_001, 1, 64];
        indices.iter().for_each(|&index| bits.mark(index));
        assert!(!bits.is_empty_hint());
        let expected: BTreeSet<u32> = indices.into_iter().collect();
        assert_eq!(drained(&bits), expected.into_iter().collect::<Vec<_>>());
        assert!(bits.is_empty_hint() && drained(&bits).is_empty());
    }

    #[test]
    fn a_mark_made_while_draining_is_not_lost() {
        let bits = DirtyBits::new();
        bits.mark(10);
        let mut seen = Vec::new();
        bits.drain(|index| {
            seen.push(index);
            if index == 10 {
                [5, 10, 11, 5_000].iter().for_each(|&again| bits.mark(again));
            }
        });
        // Those behind the drain wait for the next; none is taken twice.
        seen.extend(drained(&bits));
        seen.sort_unstable();
        assert_eq!(seen, [5, 10, 10, 11, 5_000]);
    }

    /// A thread stopped between its bit and the summary must not hold up the marks of others in the same word.
    #[test]
    fn marker_stopped_in_the_middle_hides_no_other_mark() {
        let bits = DirtyBits::new();
        bits.mark(0);
        assert_eq!(drained(&bits), [0]);
        bits.chunk(0).words[0].fetch_or(1 << 7, Ordering::SeqCst);
        assert!(drained(&bits).is_empty(), "the summary says nothing of it yet");
        bits.mark(8);
        assert_eq!(drained(&bits), [7, 8]);
    }

    #[test]
    fn the_last_update_of_every_cell_is_seen_under_contention() {
        const CELLS: usize = 20_000;
        const ROUNDS: u32 = 20;
        let bits = DirtyBits::new();
        let cells: Vec<AtomicU32> = (0..CELLS).map(|_| AtomicU32::new(0)).collect();
        let mut seen = vec![0; CELLS];
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|who| {
                    let (bits, cells) = (&bits, &cells);
                    scope.spawn(move || {
                        for _ in 0..ROUNDS {
                            for index in (who..CELLS).step_by(2) {
                                cells[index].fetch_add(1, Ordering::Relaxed);
                                bits.mark(index as u32);
                            }
                        }
                    })
                })
                .collect();
            while !writers.iter().all(|w| w.is_finished()) {
                bits.drain(|index| seen[index as usize] = cells[index as usize].load(Ordering::Relaxed));
            }
        });
        bits.drain(|index| seen[index as usize] = cells[index as usize].load(Ordering::Relaxed));
        assert!(seen.iter().all(|&value| value == ROUNDS));
    }
}
