//! What every part of a store shares: clocks, dirty bits, epochs, counters.
use crate::epochs::Epochs;
use crate::limits::Limits;
use coeval_cell::{DirtyBits, Doorbell};
use coeval_time::{HybridClock, SessionId, Stamp, StampError, WallTime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cheap reading of session wall time, from any thread.
pub type NowFn = Arc<dyn Fn() -> WallTime + Send + Sync>;
/// Wakes whoever drains the store.
pub type WakeFn = Box<dyn Fn() + Send + Sync>;

pub(crate) struct Hub {
    pub(crate) session: SessionId,
    pub(crate) limits: Limits,
    pub(crate) epochs: Epochs,
    pub(crate) dirty: DirtyBits,
    pub(crate) bell: Doorbell,
    pub(crate) counters: Counting,
    pub(crate) hybrid: HybridClock,
    pub(crate) now: NowFn,
    pub(crate) wake: WakeFn,
}

impl Hub {
    /// A new stamp, above all that this peer knows.
    #[inline]
    pub(crate) fn stamp(&self, context: WallTime, over: Stamp) -> Result<Stamp, StampError> {
        self.hybrid.next(context, (self.now)(), over)
    }

    /// Marks a slot as changed, after its change was published, and wakes the pump if it sleeps.
    #[inline]
    pub(crate) fn mark(&self, slot: u32) {
        self.dirty.mark(slot);
        if self.bell.ring() {
            (self.wake)();
        }
    }

    /// Wakes the pump for something that is not a slot.
    pub(crate) fn ring(&self) {
        if self.bell.ring_for_any() {
            (self.wake)();
        }
    }
}

/// What happened that is not an error to anyone, since the store was made.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Writes that belong to an abandoned branch of sim time: their author had not heard of a jump.
    pub abandoned_branch: u64,
    /// Paths that now hold values of entities whose creation has not arrived.
    pub orphans: u64,
    /// Fragments refused because too many such values were held.
    pub orphans_refused: u64,
    /// Fragments that arrived for entities already deleted, and were dropped.
    pub after_deletion: u64,
}

#[derive(Default)]
pub(crate) struct Counting {
    abandoned_branch: AtomicU64,
    pub(crate) orphans: AtomicU64,
    pub(crate) orphans_refused: AtomicU64,
    pub(crate) after_deletion: AtomicU64,
}

impl Counting {
    pub(crate) fn abandoned_branch(&self) {
        self.abandoned_branch.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Counters {
        Counters {
            abandoned_branch: self.abandoned_branch.load(Ordering::Relaxed),
            orphans: self.orphans.load(Ordering::Relaxed),
            orphans_refused: self.orphans_refused.load(Ordering::Relaxed),
            after_deletion: self.after_deletion.load(Ordering::Relaxed),
        }
    }
}
