//! The hybrid clock: hands out stamps that follow session wall time and never go back.
//!
//! After Kulkarni, Demirbas, Madappa, Avva and Leone, *Logical Physical Clocks* (2014), with the logical part folded
//! into the nanoseconds: a stamp that ties with what is known is simply one nanosecond later.
use crate::{Incarnation, Stamp, WallDuration, WallTime};
use coeval_cell::Ratchet;
use coeval_faults::{Fault, active};
use std::sync::atomic::{AtomicU64, Ordering};

/// How far ahead of session time a stamp may be and still count at once. An operation further ahead is *parked* until
/// it is due, so that one wrong clock cannot hold a key against everyone. The same at every peer of every session.
pub const ADMITTED_LEAD: WallDuration = WallDuration::from_secs(2);

/// Stamps at or above this are refused: the room above it is never used up, so a tick cannot overflow.
pub const STAMP_LIMIT: u64 = u64::MAX - (1 << 32);

/// Why no stamp could be issued or taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StampError {
    /// The hybrid clock would reach the end of its range.
    #[error("stamp {hlc} is at the end of the hybrid clock's range (the year 2554): refuse what carries it")]
    Overflow {
        /// The hybrid-clock reading that is too high.
        hlc: u64,
    },
}

/// Issues the stamps of one peer; shared by all its threads, lock-free.
#[derive(Debug)]
pub struct HybridClock {
    writer: AtomicU64,
    /// Who the stamps were of before; 0: nobody.
    previous: AtomicU64,
    last: Ratchet,
}

impl HybridClock {
    /// A clock for `writer` that starts above `floor`: the highest hybrid-clock reading found in snapshot and journal,
    /// or 0. Starting there keeps a restart with the OS clock set back from losing to its own past.
    ///
    /// # Errors
    /// [`StampError::Overflow`] if `floor` is at the end of the range.
    pub fn new(writer: Incarnation, floor: u64) -> Result<Self, StampError> {
        let floor = if active(Fault::ClockResetOnRestart) { 0 } else { floor };
        let last = Ratchet::new(admit(floor)?);
        Ok(Self { writer: AtomicU64::new(writer.0), previous: AtomicU64::new(0), last })
    }

    /// Who the stamps are of.
    pub fn writer(&self) -> Incarnation {
        // Relaxed: it says nothing of other memory, and a stamp that a thread is just making may be of either.
        Incarnation(self.writer.load(Ordering::Relaxed))
    }

    /// Issues stamps of another incarnation from now on: another program was found to issue stamps of this one.
    pub fn renew(&self, writer: Incarnation) {
        self.previous.store(self.writer.swap(writer.0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether stamps of `writer` may be of this clock: those made a moment before a renewal are of the one before.
    pub fn issues(&self, writer: Incarnation) -> bool {
        writer == self.writer() || (writer.0 != 0 && writer.0 == self.previous.load(Ordering::Relaxed))
    }

    /// The highest reading issued or observed.
    pub fn latest(&self) -> u64 {
        self.last.get()
    }

    /// A new stamp: above the context's wall instant, the present one, the stamp that is overwritten
    /// ([`Stamp::NONE`] for none), and everything issued or observed before.
    ///
    /// # Errors
    /// [`StampError::Overflow`] at the end of the range; nothing changed.
    pub fn next(&self, context_wall: WallTime, now: WallTime, over: Stamp) -> Result<Stamp, StampError> {
        let highest = context_wall.as_nanos().max(now.as_nanos()).max(over.hlc).max(self.last.get());
        admit(highest)?;
        Ok(Stamp::new(self.last.tick(highest + 1), self.writer()))
    }

    /// Takes in a received stamp. Call this *before* its value becomes readable: what a thread writes after reading a
    /// value must win over it. Do not call it for a parked operation ([`is_ahead`]).
    ///
    /// # Errors
    /// [`StampError::Overflow`] for a stamp at the end of the range; nothing changed.
    pub fn observe(&self, stamp: Stamp) -> Result<(), StampError> {
        self.last.raise(admit(stamp.hlc)?);
        Ok(())
    }
}

fn admit(hlc: u64) -> Result<u64, StampError> {
    if hlc >= STAMP_LIMIT { Err(StampError::Overflow { hlc }) } else { Ok(hlc) }
}

/// By how much `stamp` is ahead of what may count at session wall time `now`; `None` when it counts now. What is ahead
/// is parked, and due when this becomes `None`.
pub fn is_ahead(stamp: Stamp, now: WallTime) -> Option<WallDuration> {
    let excess = stamp.hlc.saturating_sub(now.saturating_add(ADMITTED_LEAD).as_nanos());
    (excess > 0).then(|| WallDuration::from_nanos(i64::try_from(excess).unwrap_or(i64::MAX)))
}
