//! The shared clock: the fold, published so that any thread reads it without waiting.
use crate::change::{ChangeCause, ChangeLog, Changes, ClockChange, ClockPoint};
use crate::fold::{self, EditError, Fold};
use crate::segment::{Segment, Timeline, WaitingStop};
use crate::{Context, Edit, EditId, Epoch, Genesis, SessionId, SimTime, WallTime};
use arc_swap::ArcSwap;
use coeval_faults::{Fault, active};
use parking_lot::Mutex;
use std::sync::Arc;

/// The clock of a session, shared by all threads of a peer.
///
/// Readers ([`context`](Self::context) and the other `_at` methods) take no lock and write nothing shared; each reading
/// comes from one published version, so sim time, rate, epoch and generation belong together. Edits are inserted under
/// a mutex and published whole. Two peers with the same genesis and edits show the same sim time at the same session
/// wall instant, to the nanosecond.
///
/// Threads pass `now`, the session wall time they last read. The clock keeps the greatest one it was given: what is due
/// by then has happened.
#[derive(Debug)]
pub struct Clock {
    session: SessionId,
    genesis: Genesis,
    inner: Mutex<Inner>,
    published: ArcSwap<Version>,
}

/// What readers see.
#[derive(Debug)]
struct Version {
    timeline: Timeline,
    /// The last segment, and the one that was in effect when this was published with where it ends: nearly every reading
    /// falls in one of the two, however many edits lie before. Only readings among *scheduled* edits search.
    last: Segment,
    current: Segment,
    current_ends: WallTime,
    generation_base: u64,
}

#[derive(Debug)]
struct Inner {
    fold: Fold,
    log: ChangeLog,
    /// The greatest `now` given.
    seen: WallTime,
    /// Generation less the jumps in effect; wrapping, because a late cancel can take jumps away.
    generation_base: u64,
}

/// What inserting an edit did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Inserted {
    /// The edit was known; nothing happened.
    Known,
    /// It takes effect at a later wall instant, with no step unless it is a jump.
    Scheduled {
        /// When.
        at: WallTime,
    },
    /// It is in effect. What it changed, seen now: for a late edit the step it causes.
    InEffect(ClockChange),
}

/// An edit as people ask for it: who, when, from what to what.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoggedEdit {
    /// The edit; its stamp says who made it.
    pub edit: Edit,
    /// Whether a cancel has withdrawn it.
    pub withdrawn: bool,
    /// What the clock shows just before it.
    pub before: ClockPoint,
    /// What the clock shows just after it.
    pub after: ClockPoint,
}

/// The state of the clock at an instant.
#[derive(Clone, PartialEq, Debug)]
pub struct ClockState {
    /// Sim time.
    pub sim: SimTime,
    /// Scale, pause, stop, rate in effect, direction and epoch.
    pub segment: Segment,
    /// Stops that have not fired, in the order they were set.
    pub waiting: Vec<WaitingStop>,
    /// Whether sim time stands at an end of its range and no longer follows the rate.
    pub saturated: bool,
}

impl Segment {
    fn point(&self, wall: WallTime) -> ClockPoint {
        ClockPoint { sim: self.sim_at(wall), rate: self.rate, epoch: self.epoch }
    }
}

impl Version {
    fn of(inner: &Inner) -> Self {
        let timeline = inner.fold.timeline().clone();
        let index = timeline.index_at(inner.seen);
        let current = timeline.get(index).unwrap_or_else(|| timeline.last()).segment;
        let current_ends = timeline.get(index + 1).map_or(WallTime::MAX, |next| next.segment.from);
        let last = timeline.last().segment;
        Self { timeline, last, current, current_ends, generation_base: inner.generation_base }
    }

    fn segment(&self, wall: WallTime) -> &Segment {
        if wall >= self.last.from {
            &self.last
        } else if wall >= self.current.from && wall < self.current_ends {
            &self.current
        } else {
            &self.timeline.at(wall).segment
        }
    }
}

impl Inner {
    fn generation(&self, wall: WallTime) -> u64 {
        self.generation_base.wrapping_add(self.fold.segment_at(wall).jumps)
    }

    /// Lets time pass to `now`: logs the segments that have begun since. Returns whether any did.
    fn advance(&mut self, now: WallTime) -> bool {
        if now <= self.seen {
            return false;
        }
        let timeline = self.fold.timeline();
        let first = timeline.index_at(self.seen) + 1;
        let due = timeline.index_at(now) + 1;
        for index in first..due {
            if let (Some(before), Some(node)) = (timeline.get(index - 1), timeline.get(index)) {
                let generation = self.generation_base.wrapping_add(node.segment.jumps);
                self.log.push(change_between(&before.segment, &node.segment, generation));
            }
        }
        self.seen = now;
        due > first
    }
}

/// The change at the boundary of two segments.
fn change_between(before: &Segment, after: &Segment, generation: u64) -> ClockChange {
    let wall = after.from;
    let mut shown = before.point(wall);
    if after.fired {
        // The line passes the stop between two nanoseconds; the clock never showed what lies beyond.
        shown.sim = after.sim_at(wall);
    }
    let cause = after.cause.map_or(ChangeCause::SessionStep, ChangeCause::Edit);
    ClockChange { cause, wall, before: shown, after: after.point(wall), generation }
}

impl Clock {
    /// The clock of `session`, with no edits.
    ///
    /// # Errors
    /// [`EditError::ScaleNotFinite`] for the genesis.
    pub fn new(session: SessionId, genesis: Genesis) -> Result<Self, EditError> {
        let fold = Fold::new(genesis)?;
        let inner = Inner { fold, log: ChangeLog::default(), seen: genesis.wall, generation_base: 0 };
        let published = ArcSwap::from_pointee(Version::of(&inner));
        Ok(Self { session, genesis, inner: Mutex::new(inner), published })
    }

    /// The session.
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// What the session's clock started from, in its first world.
    pub const fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// The reading at session wall time `wall`: what to read and write at. No lock, the same cost however many edits
    /// there are.
    pub fn context(&self, wall: WallTime) -> Context {
        let version = self.published.load();
        let segment = version.segment(wall);
        Context {
            session: self.session,
            sim: segment.sim_at(wall),
            wall,
            rate: segment.rate,
            direction: segment.direction,
            generation: version.generation_base.wrapping_add(segment.jumps),
            epoch: segment.epoch,
            live: true,
        }
    }

    /// Sim time at any session wall instant, by the edits known now. O(log n) in the number of edits.
    pub fn sim_at(&self, wall: WallTime) -> SimTime {
        self.published.load().segment(wall).sim_at(wall)
    }

    /// The state at any session wall instant, by the edits known now.
    pub fn state(&self, wall: WallTime) -> ClockState {
        let version = self.published.load();
        let node = version.timeline.at(wall);
        ClockState {
            sim: node.segment.sim_at(wall),
            segment: node.segment,
            waiting: node.waiting.to_vec(),
            saturated: node.segment.line.saturated(wall),
        }
    }

    /// The segments from the one in effect at `from` on, those of scheduled edits and foreseen stops included.
    pub fn segments(&self, from: WallTime) -> Vec<Segment> {
        let version = self.published.load();
        version.timeline.iter_from(version.timeline.index_at(from)).map(|node| node.segment).collect()
    }

    /// The next session wall instant, at or after `after`, at which sim time is at `sim` or has come to its other side
    /// (a jump over it counts). `None` if that does not happen by the edits known now: while paused, say.
    pub fn wall_at(&self, sim: SimTime, after: WallTime) -> Option<WallTime> {
        fold::wall_at(&self.published.load().timeline, sim, after)
    }

    /// The first session wall instant after `after` at which the clock turns round or jumps, by the edits known now.
    pub fn next_turn(&self, after: WallTime) -> Option<WallTime> {
        let version = self.published.load();
        let index = version.timeline.index_at(after);
        let mut later = version.timeline.iter_from(index).map(|node| &node.segment);
        let current = later.next()?;
        let turns = |next: &&Segment| next.direction != current.direction || next.epoch != current.epoch;
        later.find(turns).map(|next| next.from)
    }

    /// The `at` for an edit that is to take effect at once: `now`, or later when an edit made to take effect at once
    /// is known that lies later, because its author's session clock is ahead. An answer to what was seen is thereby
    /// ordered after it. Edits scheduled ahead do not count.
    pub fn immediate_at(&self, now: WallTime) -> WallTime {
        self.inner.lock().fold.newest_immediate_after(now).map_or(now, |at| at.max(now))
    }

    /// Adds an edit, in any order, any number of times. `now` is session wall time.
    ///
    /// # Errors
    /// See [`EditError`]; nothing changed.
    pub fn insert(&self, edit: &Edit, now: WallTime) -> Result<Inserted, EditError> {
        let mut inner = self.inner.lock();
        let moved = inner.advance(now);
        let now = inner.seen;
        let late = Edit { at: edit.at.max(now), ..*edit };
        let edit = if active(Fault::LateEditAtArrival) { &late } else { edit };
        let (before, generation) = (inner.fold.segment_at(now).point(now), inner.generation(now));
        let fresh = inner.fold.insert(edit);
        if !matches!(fresh, Ok(true)) {
            if moved {
                self.publish(&inner);
            }
            return fresh.map(|_| Inserted::Known);
        }
        if edit.at > now {
            self.publish(&inner);
            return Ok(Inserted::Scheduled { at: edit.at });
        }
        let cause = if edit.at < now { ChangeCause::LateEdit(edit.id) } else { ChangeCause::Edit(edit.id) };
        let after = inner.fold.segment_at(now).point(now);
        let mut change = ClockChange { cause, wall: now, before, after, generation };
        change.generation = generation.wrapping_add(u64::from(change.is_discontinuity()));
        let jumps = inner.fold.segment_at(now).jumps;
        inner.generation_base = change.generation.wrapping_sub(jumps);
        if after != before {
            inner.log.push(change);
        }
        self.publish(&inner);
        Ok(Inserted::InEffect(change))
    }

    /// Lets the clock know that session wall time is `now`, so that scheduled edits and stops that are due show in
    /// [`changes_since`](Self::changes_since) and readings stay O(1) among many scheduled edits. Call it now and then;
    /// no reading depends on it.
    pub fn advance(&self, now: WallTime) {
        let mut inner = self.inner.lock();
        if inner.advance(now) {
            self.publish(&inner);
        }
    }

    /// Notes that session wall time stepped from `before` to `after`: every mapping from local time to sim time is
    /// broken there. `after` may be earlier, when a joiner adopts the session's time.
    pub fn session_stepped(&self, before: WallTime, after: WallTime) -> ClockChange {
        let mut inner = self.inner.lock();
        inner.advance(before);
        let generation = inner.generation(inner.seen).wrapping_add(1);
        let left = inner.fold.segment_at(before).point(before);
        inner.seen = after;
        let segment = *inner.fold.segment_at(after);
        inner.generation_base = generation.wrapping_sub(segment.jumps);
        let cause = ChangeCause::SessionStep;
        let change =
            ClockChange { cause, wall: after, before: left, after: segment.point(after), generation };
        inner.log.push(change);
        self.publish(&inner);
        change
    }

    /// Starts over, as a world that was restored from a checkpoint does: sim time stands at `genesis.sim`, paused, in
    /// `epoch`; all edits so far are forgotten. Readers go from the old mapping to the new one at once. `now` is session
    /// wall time.
    ///
    /// # Errors
    /// [`EditError::ScaleNotFinite`] for the genesis; nothing changed.
    pub fn restart(&self, genesis: Genesis, epoch: Epoch, now: WallTime) -> Result<ClockChange, EditError> {
        let fold = Fold::restored(genesis, epoch)?;
        let mut inner = self.inner.lock();
        inner.advance(now);
        let wall = inner.seen;
        let before = inner.fold.segment_at(wall).point(wall);
        let generation = inner.generation(wall).wrapping_add(1);
        inner.fold = fold;
        let segment = *inner.fold.segment_at(wall);
        inner.generation_base = generation.wrapping_sub(segment.jumps);
        let cause = ChangeCause::Restored(epoch.jump.stamp);
        let change = ClockChange { cause, wall, before, after: segment.point(wall), generation };
        inner.log.push(change);
        self.publish(&inner);
        Ok(change)
    }

    /// The changes since `cursor` (0 for all that are remembered), up to session wall time `now`.
    pub fn changes_since(&self, cursor: u64, now: WallTime) -> Changes {
        let mut inner = self.inner.lock();
        if inner.advance(now) {
            self.publish(&inner);
        }
        inner.log.since(cursor, inner.generation(inner.seen))
    }

    /// All edits in the order they are folded, with what each changed.
    pub fn edits(&self) -> Vec<LoggedEdit> {
        // The fold is small beside what it describes, but not small: format outside the lock.
        let fold = self.inner.lock().fold.clone();
        let logged = |(edit, withdrawn): (Edit, bool)| {
            let (before, after) = fold.around(edit.at, edit.id);
            LoggedEdit { edit, withdrawn, before: before.point(edit.at), after: after.point(edit.at) }
        };
        fold.edits().map(logged).collect()
    }

    /// Whether an edit of this identity is known.
    pub fn knows(&self, id: EditId) -> bool {
        self.inner.lock().fold.knows(id)
    }

    fn publish(&self, inner: &Inner) {
        self.published.store(Arc::new(Version::of(inner)));
    }
}
