//! The newest-sample cell: a ring of slots, and a head that says which of them holds the newest sample.

use std::fmt;

use coeval_faults::{Fault, active};

use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, fence, lock, spin_loop};

/// A cell that holds the newest samples of one parameter, each a fixed number of `u64` words.
///
/// Writers take turns behind a one-byte lock; readers take none. A writer fills a slot that no reader was sent to
/// and then moves the head, so a writer that the operating system stops in the middle delays no reader:
/// they go on with the sample before. Only a reader that is itself stopped while the writers go round the whole
/// ring finds its slot overwritten, notices, and reads again.
///
/// Samples are numbered from 1 in the order in which they were published.
///
/// # Size
/// 32 bytes beside `slots * width * 8` bytes of words. Header and counters share a cache line when the cell
/// is placed at a multiple of 32 bytes; a read touches that line and those of one slot.
///
/// # Memory orders
/// The head packs `published * 2 + writing`, so that one word says which sample is the newest and which
/// number has been *begun* (`published + writing`). Sample `n` lives in slot `n % slots` and is whole as long as
/// no number from `n + slots` on has been begun.
///
/// * Writer: store "begun" — release fence — words — release store of "published".
/// * Reader: acquire load of the head — words — acquire fence — load of the head again.
///
/// A reader that saw any word of sample `m` saw it behind the writer's release fence, so its second look at the head
/// finds `m` begun or more. The store of "begun" is itself a release: a reader may take the number of the sample
/// before from it, and then has to see that sample's words.
pub struct RingCell {
    words: Box<[AtomicU64]>,
    /// `published * 2 + (1 while a writer is at work)`.
    head: AtomicU64,
    status: AtomicU32,
    width: u16,
    slots: u8,
    writers: Mutex<()>,
}

impl RingCell {
    /// The most words one sample may have.
    pub const MAX_WIDTH: usize = u16::MAX as usize;
    /// The most slots a ring may have.
    pub const MAX_SLOTS: usize = u8::MAX as usize;

    /// A cell whose samples have `width_words` words, and that keeps the newest `slots - 1` of them whole at any time
    /// (`slots` between writes). Nothing is published yet, and the status is 0.
    ///
    /// # Panics
    /// If `slots` is not in `2..=MAX_SLOTS`, or `width_words` is above `MAX_WIDTH`.
    pub fn new(width_words: usize, slots: usize) -> Self {
        assert!(
            (2..=Self::MAX_SLOTS).contains(&slots),
            "a ring has 2 to {} slots, not {slots}",
            Self::MAX_SLOTS
        );
        assert!(
            width_words <= Self::MAX_WIDTH,
            "a sample has at most {} words, not {width_words}",
            Self::MAX_WIDTH
        );
        RingCell {
            words: (0..width_words * slots).map(|_| AtomicU64::new(0)).collect(),
            head: AtomicU64::new(0),
            status: AtomicU32::new(0),
            width: width_words as u16,
            slots: slots as u8,
            writers: Mutex::new(()),
        }
    }

    /// Words per sample.
    #[inline]
    pub fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// Slots in the ring.
    #[inline]
    pub fn slots(&self) -> usize {
        usize::from(self.slots)
    }

    /// How many samples were ever published: the number of the newest one, 0 if there is none.
    #[inline]
    pub fn published(&self) -> u64 {
        self.head.load(Ordering::Acquire) >> 1
    }

    /// Copies the newest sample into `out` and returns its number; `None` if nothing was ever published.
    ///
    /// A shorter `out` takes the first words of the sample; what exceeds [`width`](Self::width) is left as it was.
    /// Never waits for a writer, and reads again only when writers went round the ring meanwhile.
    #[inline]
    pub fn read(&self, out: &mut [u64]) -> Option<u64> {
        loop {
            let number = self.published();
            if number == 0 {
                return None;
            }
            if self.copy_whole(number, out) {
                return Some(number);
            }
            spin_loop();
        }
    }

    /// Copies sample `number` into `out`, as [`read`](Self::read) does, if it is still whole in the ring.
    ///
    /// On `false` (not published yet, or overwritten since) `out` holds nothing of meaning.
    #[inline]
    pub fn read_number(&self, number: u64, out: &mut [u64]) -> bool {
        let head = self.head.load(Ordering::Acquire);
        number != 0 && number <= head >> 1 && self.keeps(number, head) && self.copy_whole(number, out)
    }

    /// The status word: whatever the owner of the cell keeps beside the samples.
    ///
    /// Who sees a status sees all that its writer published before it set it, and who read a sample sees at least
    /// the status set before that sample.
    #[inline]
    pub fn status(&self) -> u32 {
        self.status.load(Ordering::Acquire)
    }

    /// Waits for its turn among the writers of this cell; readers do not notice.
    #[inline]
    pub fn lock(&self) -> CellWriter<'_> {
        CellWriter { cell: self, _turn: lock(&self.writers) }
    }

    /// Whether sample `number` is whole in a ring whose head reads `head`.
    #[inline]
    fn keeps(&self, number: u64, head: u64) -> bool {
        let begun = (head >> 1) + (head & 1);
        begun - number < u64::from(self.slots)
    }

    /// The words of the slot in which sample `number` lives.
    #[inline]
    fn slot(&self, number: u64) -> &[AtomicU64] {
        let slots = u64::from(self.slots);
        // Rings are mostly powers of two, and a 64-bit division would cost as much as the rest of a read.
        let slot = if slots.is_power_of_two() { number & (slots - 1) } else { number % slots };
        let start = slot as usize * self.width();
        &self.words[start..start + self.width()]
    }

    /// Copies a sample known to be published; `false` if a writer may have touched its slot meanwhile.
    #[inline]
    fn copy_whole(&self, number: u64, out: &mut [u64]) -> bool {
        for (to, from) in out.iter_mut().zip(self.slot(number)) {
            *to = from.load(Ordering::Relaxed);
        }
        // No word above may have been read later than the head below.
        fence(Ordering::Acquire);
        self.keeps(number, self.head.load(Ordering::Relaxed))
    }

    /// Announces the next sample. From here to [`finish`](Self::finish), its slot belongs to the writer.
    #[inline]
    fn begin(&self) -> u64 {
        // Only the holder of the lock moves the head; the lock brought the last value.
        let published = self.head.load(Ordering::Relaxed) >> 1;
        self.head.store(published << 1 | 1, Ordering::Release);
        // No word may be seen before the announcement.
        if !active(Fault::RingFenceMissing) {
            fence(Ordering::Release);
        }
        published + 1
    }

    /// Writes words of the sample begun, from its first on.
    #[inline]
    fn fill(&self, number: u64, words: &[u64]) {
        for (to, &from) in self.slot(number).iter().zip(words) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// Makes the sample begun the newest one.
    #[inline]
    fn finish(&self, number: u64) {
        self.head.store(number << 1, Ordering::Release);
    }
}

impl fmt::Debug for RingCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingCell")
            .field("width", &self.width)
            .field("slots", &self.slots)
            .field("published", &self.published())
            .field("status", &self.status())
            .finish()
    }
}

/// The turn of one writer; the next one comes when it is dropped.
pub struct CellWriter<'a> {
    cell: &'a RingCell,
    _turn: MutexGuard<'a, ()>,
}

impl CellWriter<'_> {
    /// What [`RingCell::read`] does; here nothing can change meanwhile.
    #[inline]
    pub fn read(&self, out: &mut [u64]) -> Option<u64> {
        self.cell.read(out)
    }

    /// Publishes the next sample. If `words` is shorter than the width, the remaining words are those of some earlier
    /// sample or zero.
    ///
    /// # Panics
    /// If `words` is longer than the width; nothing is published then.
    #[inline]
    pub fn publish(&mut self, words: &[u64]) {
        assert!(
            words.len() <= self.cell.width(),
            "{} words do not fit a cell of {}",
            words.len(),
            self.cell.width
        );
        let number = self.cell.begin();
        if active(Fault::RingPublishedEarly) {
            self.cell.finish(number);
        }
        self.cell.fill(number, words);
        self.cell.finish(number);
    }

    /// The status word.
    #[inline]
    pub fn status(&self) -> u32 {
        self.cell.status()
    }

    /// Sets the status word.
    #[inline]
    pub fn set_status(&mut self, status: u32) {
        self.cell.status.store(status, Ordering::Release);
    }
}

impl fmt::Debug for CellWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CellWriter").field(self.cell).finish()
    }
}

#[cfg(all(test, not(coeval_loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn the_header_is_half_a_cache_line() {
        assert!(size_of::<RingCell>() <= 32, "{} bytes", size_of::<RingCell>());
    }

    #[test]
    fn a_cell_never_written_reads_as_nothing() {
        let cell = RingCell::new(3, 2);
        let mut out = [7; 3];
        assert_eq!(cell.read(&mut out), None);
        assert!(!cell.read_number(0, &mut out) && !cell.read_number(1, &mut out));
        assert_eq!((cell.published(), cell.status(), cell.width(), cell.slots()), (0, 0, 3, 2));
        assert_eq!(out, [7; 3]);
    }

    #[test]
    fn older_samples_stay_until_their_slot_is_taken() {
        for slots in [2, 3, 4, 7, 255] {
            let cell = RingCell::new(2, slots);
            for n in 1..=3 * slots as u64 {
                cell.lock().publish(&[n, !n]);
                let mut out = [0; 2];
                for old in 0..=n + 1 {
                    let kept = old >= 1 && old <= n && n - old < slots as u64;
                    assert_eq!(cell.read_number(old, &mut out), kept, "sample {old} of {n}, {slots} slots");
                    assert!(!kept || out == [old, !old]);
                }
            }
            assert!(!cell.read_number(u64::MAX, &mut [0; 2]));
        }
    }

    #[test]
    fn short_and_long_buffers_take_what_fits() {
        let cell = RingCell::new(3, 2);
        let mut writer = cell.lock();
        writer.publish(&[1, 2, 3]);
        writer.publish(&[4]);
        writer.set_status(9);
        let (mut short, mut long) = ([0; 1], [0; 5]);
        assert_eq!(writer.read(&mut short), Some(2));
        drop(writer);
        assert_eq!((short, cell.read(&mut long), cell.status()), ([4], Some(2), 9));
        assert_eq!((long[0], &long[3..]), (4, &[0, 0][..]));
        assert_eq!(RingCell::new(0, 2).read(&mut long), None);
    }

    #[test]
    #[should_panic(expected = "2 words do not fit a cell of 1")]
    fn a_sample_wider_than_the_cell_is_refused() {
        RingCell::new(1, 2).lock().publish(&[1, 2]);
    }

    #[test]
    #[should_panic(expected = "2 to 255 slots, not 1")]
    fn one_slot_is_no_ring() {
        RingCell::new(1, 1);
    }

    /// A writer stopped at any point of a write, for as long as it likes.
    #[test]
    fn writer_stopped_in_the_middle_delays_no_reader() {
        for slots in [2, 5] {
            for words_written in 0..=4 {
                let cell = RingCell::new(4, slots);
                let turn = cell.lock();
                for n in 1..=6u64 {
                    let number = cell.begin();
                    cell.fill(number, &[n; 4][..words_written]);
                    // Stopped here, the lock held. A reader that had to wait would now wait for ever.
                    thread::scope(|scope| {
                        let reader = scope.spawn(|| {
                            let mut out = [0; 4];
                            (cell.read(&mut out), out, cell.read_number(n, &mut [0; 4]))
                        });
                        let expected = (n > 1).then_some(n - 1);
                        assert_eq!(reader.join().unwrap(), (expected, [n - 1; 4], false));
                    });
                    cell.fill(number, &[n; 4]);
                    cell.finish(number);
                }
                drop(turn);
            }
        }
    }

    #[test]
    fn readers_under_two_busy_writers_see_whole_samples_in_order() {
        const ROUNDS: u64 = 100_000;
        for slots in [2, 3, 8] {
            let cell = RingCell::new(12, slots);
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                let writers: Vec<_> = (0..2u64)
                    .map(|who| {
                        let cell = &cell;
                        scope.spawn(move || {
                            for i in 0..ROUNDS {
                                let mut writer = cell.lock();
                                let number = writer.read(&mut []).unwrap_or(0) + 1;
                                writer.publish(&std::array::from_fn::<_, 12, _>(|w| {
                                    if w == 0 { number } else { number ^ (w as u64) << 40 }
                                }));
                                drop(writer);
                                if i % 1_024 == who {
                                    thread::yield_now();
                                }
                            }
                        })
                    })
                    .collect();
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut last = 0;
                        while !over.load(Ordering::Relaxed) {
                            let mut out = [0; 12];
                            let Some(number) = cell.read(&mut out) else { continue };
                            assert!(number >= last, "sample {number} after {last}");
                            last = number;
                            check(number, &out);
                            let older = number.saturating_sub(slots as u64 / 2);
                            if cell.read_number(older, &mut out) {
                                check(older, &out);
                            }
                        }
                    });
                }
                writers.into_iter().for_each(|w| w.join().unwrap());
                over.store(true, Ordering::Relaxed);
            });
            assert_eq!(cell.published(), 2 * ROUNDS);
        }

        fn check(number: u64, words: &[u64; 12]) {
            assert_eq!(words[0], number, "a word of another sample");
            for (w, &word) in words.iter().enumerate().skip(1) {
                assert_eq!(word, number ^ (w as u64) << 40, "sample {number} is torn at word {w}");
            }
        }
    }
}
