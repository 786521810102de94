//! An append-only table: numbers are given out once, elements never move, readers take no lock.
//!
//! Chunks are small so that growing the table never stalls a writer for long; the directory is two levels deep.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const CHUNK: usize = 1024;
const MIDDLE: usize = 256;
const TOP: usize = 64;

/// Most elements a table can hold.
pub(crate) const CAPACITY: u32 = (CHUNK * MIDDLE * TOP) as u32;

type Chunk<T> = Box<[OnceLock<T>]>;
type Middle<T> = Box<[OnceLock<Chunk<T>>]>;

pub(crate) struct AppendTable<T> {
    top: Box<[OnceLock<Middle<T>>]>,
    next: AtomicU32,
}

fn cells<T>(count: usize) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl<T> AppendTable<T> {
    pub(crate) fn new() -> Self {
        Self { top: cells(TOP), next: AtomicU32::new(0) }
    }

    /// One more than the highest number given out. An element just below may not be readable yet.
    pub(crate) fn len(&self) -> u32 {
        self.next.load(Ordering::Acquire).min(CAPACITY)
    }

    /// Appends `element`; `None` when the table is full.
    pub(crate) fn push(&self, element: T) -> Option<u32> {
        let number = self
            .next
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < CAPACITY).then_some(n + 1))
            .ok()?;
        let (top, middle, low) = split(number);
        let chunk = self.top[top].get_or_init(|| cells(MIDDLE))[middle].get_or_init(|| cells(CHUNK));
        // The number was given to this call alone, so the place is empty.
        let placed = chunk[low].set(element).is_ok();
        debug_assert!(placed, "slot {number} was given out twice");
        Some(number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        if number >= CAPACITY {
            return None;
        }
        let (top, middle, low) = split(number);
        self.top[top].get()?[middle].get()?[low].get()
    }
}

fn split(number: u32) -> (usize, usize, usize) {
    let n = number as usize;
    (n / (CHUNK * MIDDLE), n / CHUNK % MIDDLE, n % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_elements_stay() {
        let table = AppendTable::new();
        for n in 0..5000u32 {
            assert_eq!(table.push(n * 3), Some(n));
        }
        assert_eq!(table.len(), 5000);
        assert!((0..5000).all(|n| table.get(n) == Some(&(n * 3))));
        assert_eq!(table.get(5000), None);
        assert_eq!(table.get(u32::MAX), None);
    }

    #[test]
    fn many_threads_never_share_a_number() {
        let table = AppendTable::new();
        std::thread::scope(|scope| {
            for t in 0..4u32 {
                let table = &table;
                scope.spawn(move || {
                    for i in 0..2000u32 {
                        let mine = t * 10_000 + i;
                        let n = table.push(mine).expect("room");
                        assert_eq!(table.get(n), Some(&mine));
                    }
                });
            }
        });
        let mut all: Vec<u32> = (0..8000).map(|n| *table.get(n).expect("set")).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8000);
    }
}
