//! The one place that chooses between the real atomics and loom's.

#[cfg(coeval_loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Mutex, MutexGuard},
};
#[cfg(not(coeval_loom))]
pub(crate) use {
    parking_lot::{Mutex, MutexGuard},
    std::hint::spin_loop,
    std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence},
};

/// Locks a writer lock. It guards no data of its own, so a writer that panicked leaves nothing to distrust:
/// the sample it was writing was never published.
pub(crate) fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    #[cfg(not(coeval_loom))]
    return mutex.lock();
    #[cfg(coeval_loom)]
    return mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
}

/// A point in the single order of all `SeqCst` operations.
///
/// The accesses on both sides of such a point are `SeqCst` themselves, which is enough for the language and,
/// on x86, leaves the locked instruction of the mark as the only one the writer pays for. loom treats `SeqCst`
/// accesses as `AcqRel`, and orders `SeqCst` fences alone; so under loom, and only there, the point is a fence.
#[inline(always)]
pub(crate) fn sequential_point() {
    #[cfg(coeval_loom)]
    fence(Ordering::SeqCst);
}

/// A value made once, at first use.
///
/// Nothing happens inside `make` that loom could interleave, so the standard cell serves there too. Only the order
/// that it establishes is unknown to loom, which has none of its own: a lock around it says the same.
pub(crate) struct Once<T> {
    value: std::sync::OnceLock<T>,
    #[cfg(coeval_loom)]
    order: Mutex<()>,
}

impl<T> Once<T> {
    pub(crate) fn new() -> Self {
        Once {
            value: std::sync::OnceLock::new(),
            #[cfg(coeval_loom)]
            order: Mutex::new(()),
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        #[cfg(coeval_loom)]
        let _order = lock(&self.order);
        self.value.get_or_init(make)
    }
}
