//! What the clock tells about its changes: plain data, pulled by whoever wants it.
use crate::{EditId, Epoch, SimDuration, SimTime, Stamp, WallTime};
use std::collections::VecDeque;

/// What the clock showed at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockPoint {
    /// Sim time.
    pub sim: SimTime,
    /// Sim time per wall time in effect.
    pub rate: f64,
    /// The newest jump in effect.
    pub epoch: Epoch,
}

/// What changed the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeCause {
    /// An edit that took effect, or a stop that fired.
    Edit(EditId),
    /// An edit that became known after it took effect: its place is in the past, what it changes shows now.
    LateEdit(EditId),
    /// Session wall time itself stepped.
    SessionStep,
    /// The session went to a world that was restored from a checkpoint, under this stamp.
    Restored(Stamp),
}

/// One change of the clock, seen at one wall instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockChange {
    /// What caused it.
    pub cause: ChangeCause,
    /// The session wall instant at which it shows.
    pub wall: WallTime,
    /// What the clock showed there without it.
    pub before: ClockPoint,
    /// What it shows with it.
    pub after: ClockPoint,
    /// The generation after the change.
    pub generation: u64,
}

impl ClockChange {
    /// The sim time stepped over, `after - before`. Never a `dt`.
    pub const fn step(&self) -> SimDuration {
        self.after.sim.since(self.before.sim)
    }

    /// Whether the mapping is broken here: a step, or a jump (even one that lands where it started).
    pub fn is_discontinuity(&self) -> bool {
        self.after.sim != self.before.sim
            || self.after.epoch != self.before.epoch
            || self.cause == ChangeCause::SessionStep
    }
}

/// Changes since a cursor.
#[derive(Clone, PartialEq, Debug)]
pub struct Changes {
    /// The changes, oldest first.
    pub changes: Vec<ClockChange>,
    /// The cursor to ask with next time.
    pub next: u64,
    /// How many between the cursor and the first of `changes` have been forgotten.
    pub lost: u64,
    /// The generation now.
    pub generation: u64,
}

/// How many changes a clock remembers for subscribers.
pub const CHANGE_LOG: usize = 1_024;

/// The newest changes, numbered from 0.
#[derive(Default, Debug)]
pub(crate) struct ChangeLog {
    kept: VecDeque<ClockChange>,
    /// The number of the oldest one kept.
    first: u64,
}

impl ChangeLog {
    pub(crate) fn push(&mut self, change: ClockChange) {
        if self.kept.len() == CHANGE_LOG {
            self.kept.pop_front();
            self.first += 1;
        }
        self.kept.push_back(change);
    }

    pub(crate) fn since(&self, cursor: u64, generation: u64) -> Changes {
        let next = self.first + self.kept.len() as u64;
        let start = cursor.clamp(self.first, next);
        let changes = self.kept.iter().skip((start - self.first) as usize).copied().collect();
        Changes { changes, next, lost: self.first.saturating_sub(cursor), generation }
    }
}
