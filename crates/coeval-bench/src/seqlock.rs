//! The floor: a bare sequence lock over the words of a motion, with nothing around it.
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of the motion that is measured: position, velocity, attitude.
pub(crate) const WORDS: usize = 10;

#[derive(Default)]
pub(crate) struct Seqlock {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Seqlock {
    /// Reads all words; retries while a writer is at work.
    pub(crate) fn read(&self) -> [f64; WORDS] {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let words = std::array::from_fn(|i| f64::from_bits(self.words[i].load(Ordering::Relaxed)));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return words;
            }
        }
    }

    /// Writes all words. One writer at a time.
    pub(crate) fn write(&self, values: &[f64; WORDS]) {
        let before = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(before + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(values) {
            word.store(value.to_bits(), Ordering::Relaxed);
        }
        self.sequence.store(before + 2, Ordering::Release);
    }
}
