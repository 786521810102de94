//! Epochs as small numbers, so that a sample's header names one in four bytes.
//!
//! Numbers are local and in order of first sight; order between epochs is that of the epochs themselves.
use crate::append::AppendTable;
use coeval_time::Epoch;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Most epochs a store will number. Every one is a jump of the session clock, or was claimed by a received sample.
pub(crate) const MAX_EPOCHS: u32 = 1 << 20;

pub(crate) struct Epochs {
    table: AppendTable<Epoch>,
    numbers: Mutex<BTreeMap<Epoch, u32>>,
    /// The last number looked up: nearly every sample of a time belongs to one epoch.
    last: AtomicU32,
}

impl Epochs {
    pub(crate) fn new() -> Self {
        let epochs = Self { table: AppendTable::new(), numbers: Mutex::default(), last: AtomicU32::new(0) };
        epochs.number(Epoch::GENESIS);
        epochs
    }

    /// The number of `epoch`. When the table is full, that of the newest known epoch not above it: a sample of an
    /// unknown branch then counts as one of its predecessor.
    pub(crate) fn number(&self, epoch: Epoch) -> u32 {
        let last = self.last.load(Ordering::Relaxed);
        if self.table.get(last) == Some(&epoch) {
            return last;
        }
        let mut numbers = self.numbers.lock();
        let number = match numbers.get(&epoch) {
            Some(&number) => number,
            None => match self.table.len() < MAX_EPOCHS {
                true => {
                    let number = self.table.push(epoch).unwrap_or(0);
                    numbers.insert(epoch, number);
                    number
                }
                false => numbers.range(..=epoch).next_back().map_or(0, |(_, &n)| n),
            },
        };
        self.last.store(number, Ordering::Relaxed);
        number
    }

    /// The epoch of a number given out by [`number`](Self::number).
    #[inline]
    pub(crate) fn epoch(&self, number: u32) -> Epoch {
        // Most sessions never jump.
        if number == 0 {
            return Epoch::GENESIS;
        }
        self.table.get(number).copied().unwrap_or(Epoch::GENESIS)
    }

    /// Whether epoch number `a` is older than `b`.
    pub(crate) fn older(&self, a: u32, b: u32) -> bool {
        a != b && self.epoch(a) < self.epoch(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval_time::{EditId, WallTime};

    fn epoch(at: u64) -> Epoch {
        Epoch { at: WallTime::from_nanos(at), jump: EditId::default() }
    }

    #[test]
    fn order_is_of_the_epochs_not_of_their_numbers() {
        let epochs = Epochs::new();
        let late = epochs.number(epoch(20));
        let early = epochs.number(epoch(10));
        assert!(
            early > late
                && epochs.older(early, late)
                && !epochs.older(late, early)
                && !epochs.older(late, late)
        );
        assert_eq!(epochs.number(epoch(20)), late);
        assert_eq!(epochs.epoch(early), epoch(10));
        assert_eq!(epochs.number(Epoch::GENESIS), 0);
    }
}
