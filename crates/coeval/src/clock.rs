//! The shared sim clock, as any peer reads and edits it.
use crate::shared::Shared;
use crate::{Error, Result};
use coeval_time::{
    Changes, ClockChange, ClockState, Context, EditId, EditKind, LoggedEdit as Logged, SimDuration, SimTime,
    WallTime,
};
use std::sync::Arc;
use std::time::Duration;

/// The session's clock. Every peer computes the same sim time from the same set of edits; anyone may edit.
///
/// Edits take effect here at once (or at the wall instant of [`at`](Self::at)) and reach the others over the network;
/// the order of edits is the same everywhere.
#[derive(Clone)]
pub struct SimClock {
    shared: Arc<Shared>,
    at: Option<WallTime>,
}

/// One edit of the clock's log: who, when, from what to what.
#[derive(Clone, Debug)]
pub struct LoggedEdit {
    /// The edit with the clock before and after it.
    pub logged: Logged,
    /// The name of the peer that made it, if it is known.
    pub author: Option<String>,
}

impl SimClock {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, at: None }
    }

    /// Reads the clock.
    pub fn context(&self) -> Context {
        self.shared.context()
    }

    /// Scale, pause, stop, waiting stops, rate in effect, now.
    pub fn state(&self) -> ClockState {
        self.shared.clock.state(self.shared.now())
    }

    /// The sim time at a session wall instant.
    pub fn sim_at(&self, wall: WallTime) -> SimTime {
        self.shared.clock.sim_at(wall)
    }

    /// The next session wall instant, not before `after`, at which sim time is `sim`, by the edits known now.
    pub fn wall_at(&self, sim: SimTime, after: WallTime) -> Option<WallTime> {
        self.shared.clock.wall_at(sim, after)
    }

    /// The clock whose edits take effect at the session wall instant `wall` instead of now: peers that know of them by
    /// then switch at the same instant.
    #[must_use]
    pub fn at(&self, wall: WallTime) -> Self {
        Self { shared: Arc::clone(&self.shared), at: Some(wall) }
    }

    /// Sets the seconds of sim time per second of wall time: any finite number, zero and negative included.
    pub fn set_scale(&self, scale: f64) -> Result<EditId> {
        self.edit(EditKind::Scale(scale))
    }

    /// Holds sim time, independently of the scale.
    pub fn pause(&self) -> Result<EditId> {
        self.edit(EditKind::Pause)
    }

    /// Ends a pause or a stop.
    pub fn resume(&self) -> Result<EditId> {
        self.edit(EditKind::Resume)
    }

    /// Moves sim time to `sim`.
    pub fn jump_to(&self, sim: SimTime) -> Result<EditId> {
        self.edit(EditKind::JumpTo(sim))
    }

    /// Moves sim time by `by`.
    pub fn jump_by(&self, by: SimDuration) -> Result<EditId> {
        self.edit(EditKind::JumpBy(by))
    }

    /// Stops the clock when sim time reaches `sim` in the direction of the rate, at exactly `sim`, once.
    pub fn stop_at(&self, sim: SimTime) -> Result<EditId> {
        self.edit(EditKind::StopAt(sim))
    }

    /// Withdraws a stop that waits, or an edit that is to take effect later.
    pub fn cancel(&self, edit: EditId) -> Result<EditId> {
        self.edit(EditKind::Cancel(edit))
    }

    /// Runs, ending a pause or stop, until sim time is exactly `sim`; returns the stop's id at once.
    pub fn run_until(&self, sim: SimTime) -> Result<EditId> {
        let kinds = self.shared.clock.draft_run_until(sim, self.when()).map_err(Error::invalid)?;
        self.edit_all(&kinds)
    }

    /// Runs by exactly `by` of sim time and stops there; returns the stop's id at once.
    pub fn step(&self, by: SimDuration) -> Result<EditId> {
        let kinds = self.shared.clock.draft_step(by, self.when()).map_err(Error::invalid)?;
        self.edit_all(&kinds)
    }

    /// All edits in the order they take effect.
    pub fn log(&self) -> Vec<LoggedEdit> {
        let named = |logged: Logged| LoggedEdit {
            author: self.shared.gate.name_of(logged.edit.id.stamp.writer),
            logged,
        };
        self.shared.clock.edits().into_iter().map(named).collect()
    }

    /// A subscription to the clock's changes from now on.
    pub fn changes(&self) -> ClockChanges {
        let now = self.shared.now();
        ClockChanges {
            shared: Arc::clone(&self.shared),
            cursor: self.shared.clock.changes_since(u64::MAX, now).next,
        }
    }

    fn when(&self) -> WallTime {
        self.at.unwrap_or_else(|| self.shared.clock.immediate_at(self.shared.now()))
    }

    fn edit(&self, kind: EditKind) -> Result<EditId> {
        self.edit_all(&[kind])
    }

    /// Makes the edits in order; the last one's id.
    fn edit_all(&self, kinds: &[EditKind]) -> Result<EditId> {
        self.shared.check_writable()?;
        let edits = self.shared.store.edit_clock(kinds, self.at)?;
        edits.last().map(|edit| edit.id).ok_or_else(|| Error::invalid("no edit of the clock was asked for"))
    }
}

/// Changes of the clock, pulled or waited for.
pub struct ClockChanges {
    shared: Arc<Shared>,
    cursor: u64,
}

impl ClockChanges {
    /// The changes since the last call: each with what the clock showed before and after.
    ///
    /// At most the last 1,024 are remembered between calls.
    pub fn poll(&mut self) -> Vec<ClockChange> {
        let Changes { changes, next, .. } = self.shared.clock.changes_since(self.cursor, self.shared.now());
        self.cursor = next;
        changes
    }

    /// Waits up to `timeout` for the next changes; empty when there were none.
    pub fn wait(&mut self, timeout: Duration) -> Vec<ClockChange> {
        let deadline = crate::inbox::deadline(timeout);
        loop {
            let changes = self.poll();
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if !changes.is_empty() || left.is_zero() {
                return changes;
            }
            // A change may be an edit, or a scheduled instant that passes: look again at either.
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
    }
}
