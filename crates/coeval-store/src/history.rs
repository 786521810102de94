//! Older samples of one cell, spaced by wall time, for reads at past sim times. A local cache: never replicated.
use crate::layout::{ABANDONED, Buffer, HEADER, Header};
use coeval_cell::RingCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of the ring.
const SLOTS: usize = 8;
/// Samples that are whole in the ring also while one is being added.
pub(crate) const KEPT: usize = SLOTS - 1;

/// Written under the lock of the cell's writers only; read by anyone.
pub(crate) struct History {
    ring: RingCell,
    /// Samples before this number belong to a value that was removed since.
    first: AtomicU64,
}

impl History {
    pub(crate) fn new(width: usize) -> Self {
        Self { ring: RingCell::new(width, SLOTS), first: AtomicU64::new(1) }
    }

    /// Forgets everything: the value was removed.
    pub(crate) fn forget(&self) {
        self.first.store(self.ring.published() + 1, Ordering::Release);
    }

    /// Whether `previous`, which is about to be followed by `next`, is worth keeping: nothing else would bear witness
    /// to it, or it is `spacing` nanoseconds of wall time after the last one kept.
    pub(crate) fn wants(&self, previous: &Header, next: &Header, spacing: u64) -> bool {
        // What was left behind on an abandoned branch is no witness of anything while a newer branch has samples.
        if previous.flags & ABANDONED != 0 {
            return false;
        }
        let mut last = [0; HEADER];
        match self.ring.read(&mut last) {
            Some(number) if number >= self.first.load(Ordering::Relaxed) => {
                let last = Header::get(&last);
                !previous.alike(&last)
                    || !previous.alike(next)
                    || previous.stamp.hlc.saturating_sub(last.stamp.hlc) >= spacing
            }
            _ => true,
        }
    }

    /// Adds a sample.
    pub(crate) fn keep(&self, sample: &[u64]) {
        self.ring.lock().publish(sample);
    }

    /// Calls `f` with the kept samples older than `than`, oldest first.
    pub(crate) fn for_each_before(&self, than: &Header, mut f: impl FnMut(Header, &[u64])) {
        let newest = self.ring.published();
        let oldest = newest.saturating_sub(KEPT as u64 - 1).max(self.first.load(Ordering::Acquire));
        let mut sample: Buffer = [0; _];
        let width = self.ring.width();
        for number in oldest..=newest {
            if self.ring.read_number(number, &mut sample[..width]) {
                let header = Header::get(&sample);
                if header.stamp < than.stamp {
                    f(header, &sample[..width]);
                }
            }
        }
    }
}
