//! The fold: clock edits in any order of arrival to the one mapping from session wall time to sim time. Pure data.
//!
//! The rules, which every peer applies to the same set of edits:
//!
//! - Edits are folded in `(at, id)` order from the session's genesis.
//! - Within a segment `sim = start + round(rate * elapsed)`; the rate's exact value times integer nanoseconds, formed
//!   exactly and rounded once, half to even. There is no floating-point arithmetic and nothing accumulates.
//! - An edit that changes nothing opens no segment, so it leaves no trace of rounding either; likewise an edit that
//!   changes the state but not the mapping (a stop set, a scale set while paused) leaves the line as it was.
//! - A stop at `t` waits until sim time reaches `t` in the direction of the rate, or is there already; then sim time is
//!   exactly `t` and the clock is stopped, once, until a resume. A jump over `t` does not fire it. Of several stops the
//!   first on the way fires, of equal ones that with the least id (the greatest, when running backward).
//! - A cancel withdraws a waiting stop, or an edit whose `at` is later than its own. A withdrawn cancel withdraws nothing.
//! - Sim time saturates at the ends of its range.
use crate::segment::{FoldKey, Node, Segment, Timeline, WaitingStop, positive_zero};
use crate::{Edit, EditId, EditKind, Epoch, Genesis, SimTime, WallDuration, WallTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far ahead of its own stamp an edit may be scheduled.
pub const MAX_EDIT_LEAD: WallDuration = WallDuration::from_secs(24 * 3_600);
/// How far behind its own stamp an edit may take effect. An immediate edit is behind it by no more than hybrid clocks
/// lead session time (2 s); the rest is for a thread that is held up between choosing `at` and stamping the edit.
pub const MAX_EDIT_REACH: WallDuration = WallDuration::from_secs(60);

/// Why an edit, or a genesis, is refused.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum EditError {
    /// The scale is NaN or infinite.
    #[error(
        "clock scale {scale} is not a finite number: give sim seconds per wall second, such as 1, 0 or -2.5"
    )]
    ScaleNotFinite {
        /// The scale given.
        scale: f64,
    },
    /// The edit is scheduled too far ahead of the moment it was made.
    #[error("clock edit at {at} is {lead} ahead of the moment it was made: schedule at most 24 h ahead")]
    TooFarAhead {
        /// When it would take effect.
        at: WallTime,
        /// How far ahead of its stamp that is.
        lead: WallDuration,
    },
    /// The edit is dated too far back from the moment it was made.
    #[error("clock edit at {at} is {reach} before the moment it was made: date it at most 60 s back")]
    TooFarBack {
        /// When it would have taken effect.
        at: WallTime,
        /// How far behind its stamp that is.
        reach: WallDuration,
    },
    /// Another edit has the same identity.
    #[error(
        "clock edit {id:?} differs from the edit known by that identity: its author issued one stamp twice"
    )]
    Conflict {
        /// The identity they share.
        id: EditId,
    },
}

/// Whether an edit may count at all. Depends on the edit alone, never on when it is looked at: replicas must agree.
///
/// # Errors
/// A scale that is not finite, or an `at` too far from the edit's own stamp ([`MAX_EDIT_LEAD`], [`MAX_EDIT_REACH`]).
pub fn validate(edit: &Edit) -> Result<(), EditError> {
    if let EditKind::Scale(scale) = edit.kind
        && !scale.is_finite()
    {
        return Err(EditError::ScaleNotFinite { scale });
    }
    let lead = edit.at.since(edit.id.stamp.wall());
    if lead > MAX_EDIT_LEAD {
        return Err(EditError::TooFarAhead { at: edit.at, lead });
    }
    let reach = edit.id.stamp.wall().since(edit.at);
    if reach > MAX_EDIT_REACH {
        return Err(EditError::TooFarBack { at: edit.at, reach });
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Record {
    kind: EditKind,
    withdrawn: bool,
}

/// A set of edits and the mapping they fold to.
#[derive(Clone, Debug)]
pub struct Fold {
    genesis: Genesis,
    timeline: Timeline,
    records: BTreeMap<(WallTime, EditId), Record>,
    ids: BTreeMap<EditId, WallTime>,
    /// Cancels by the edit they are aimed at, which may not be known yet.
    cancels: BTreeMap<EditId, Vec<(WallTime, EditId)>>,
}

impl Fold {
    /// A clock with no edits.
    ///
    /// # Errors
    /// [`EditError::ScaleNotFinite`].
    pub fn new(genesis: Genesis) -> Result<Self, EditError> {
        Self::from_first(genesis, Segment::genesis(&genesis))
    }

    /// The clock of a world that was restored from a checkpoint, with no edits: at `genesis.sim`, paused, in `epoch`.
    ///
    /// It stands at every instant before the genesis too: peers whose session time is a little behind that of the one who
    /// restored show the same.
    ///
    /// # Errors
    /// [`EditError::ScaleNotFinite`].
    pub fn restored(genesis: Genesis, epoch: Epoch) -> Result<Self, EditError> {
        Self::from_first(genesis, Segment::restored(&genesis, epoch))
    }

    fn from_first(genesis: Genesis, first: Option<Segment>) -> Result<Self, EditError> {
        let segment = first.ok_or(EditError::ScaleNotFinite { scale: genesis.scale })?;
        let first = Node { key: (WallTime::MIN, None), segment, waiting: Arc::new([]) };
        Ok(Self {
            genesis,
            timeline: Timeline::new(first),
            records: BTreeMap::new(),
            ids: BTreeMap::new(),
            cancels: BTreeMap::new(),
        })
    }

    /// What the clock starts from.
    pub const fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// Adds an edit and folds anew from its place on. `false` if it was known already.
    ///
    /// # Errors
    /// See [`EditError`]; nothing changed.
    pub fn insert(&mut self, edit: &Edit) -> Result<bool, EditError> {
        validate(edit)?;
        if let Some(at) = self.ids.get(&edit.id) {
            let same =
                *at == edit.at && self.records.get(&(*at, edit.id)).is_some_and(|r| r.kind == edit.kind);
            return if same { Ok(false) } else { Err(EditError::Conflict { id: edit.id }) };
        }
        self.ids.insert(edit.id, edit.at);
        self.records.insert((edit.at, edit.id), Record { kind: edit.kind, withdrawn: false });
        if let EditKind::Cancel(target) = edit.kind {
            self.cancels.entry(target).or_default().push((edit.at, edit.id));
        }
        self.refold((edit.at, edit.id));
        Ok(true)
    }

    /// Whether an edit of this identity is known.
    pub fn knows(&self, id: EditId) -> bool {
        self.ids.contains_key(&id)
    }

    /// Sim time at `wall`.
    pub fn sim_at(&self, wall: WallTime) -> SimTime {
        self.segment_at(wall).sim_at(wall)
    }

    /// The segment in effect at `wall`.
    pub fn segment_at(&self, wall: WallTime) -> &Segment {
        &self.timeline.at(wall).segment
    }

    /// The stops that wait at `wall`, in the order they were set.
    pub fn waiting_at(&self, wall: WallTime) -> &[WaitingStop] {
        &self.timeline.at(wall).waiting
    }

    /// All segments in order of time.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.timeline.iter_from(0).map(|node| &node.segment)
    }

    /// All edits in the order they are folded, and whether each is withdrawn.
    pub fn edits(&self) -> impl Iterator<Item = (Edit, bool)> {
        self.records
            .iter()
            .map(|((at, id), record)| (Edit { id: *id, at: *at, kind: record.kind }, record.withdrawn))
    }

    /// The latest `at`, beyond `now`, of the edits in effect that were made to take effect at once (their `at` is not
    /// above their stamp, as that of a scheduled edit is). Such edits exist when their author's session clock is ahead.
    pub fn newest_immediate_after(&self, now: WallTime) -> Option<WallTime> {
        let beyond = self.records.range((now, EditId::default())..).rev();
        let immediate = |(at, id): &(WallTime, EditId)| *at <= id.stamp.wall();
        beyond
            .filter(|(_, record)| !record.withdrawn)
            .map(|(key, _)| key)
            .find(|key| immediate(key))
            .map(|key| key.0)
    }

    /// The segments before and after the edit at that place: what it changed. Equal when it changed nothing.
    pub fn around(&self, at: WallTime, id: EditId) -> (&Segment, &Segment) {
        let key: FoldKey = (at, Some(id));
        let index = self.timeline.partition_point(|node| node.key < key);
        let before = self.timeline.get(index.saturating_sub(1)).unwrap_or_else(|| self.timeline.last());
        let after = self.timeline.get(index).filter(|node| node.key == key).unwrap_or(before);
        (&before.segment, &after.segment)
    }

    pub(crate) const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Folds again from `from` on; what lies before does not depend on it.
    fn refold(&mut self, from: (WallTime, EditId)) {
        let key: FoldKey = (from.0, Some(from.1));
        let keep = self.timeline.partition_point(|node| node.key < key);
        self.timeline.truncate(keep);
        let places: Vec<(WallTime, EditId)> = self.records.range(from..).map(|(place, _)| *place).collect();
        for place in places {
            // Cancels come before what they withdraw, so each is decided on before it is asked about.
            let withdrawn = self.is_withdrawn(place);
            let Some(record) = self.records.get_mut(&place) else { continue };
            record.withdrawn = withdrawn;
            let kind = record.kind;
            reach(&mut self.timeline, place.0);
            if !withdrawn {
                apply(&mut self.timeline, place, kind);
            }
        }
        reach(&mut self.timeline, WallTime::MAX);
    }

    fn is_withdrawn(&self, (at, id): (WallTime, EditId)) -> bool {
        let counts =
            |place: &&(WallTime, EditId)| self.records.get(place).is_some_and(|cancel| !cancel.withdrawn);
        let cancels = self.cancels.get(&id).map_or(&[][..], Vec::as_slice);
        cancels.iter().filter(|cancel| cancel.0 < at).any(|cancel| counts(&cancel))
    }
}

/// Opens a segment for the stop that fires up to `wall`, if one does. At most one can: then time stands still.
fn reach(timeline: &mut Timeline, wall: WallTime) {
    let node = timeline.last();
    let segment = &node.segment;
    if segment.rate == 0.0 || node.waiting.is_empty() {
        return;
    }
    let up = segment.rate > 0.0;
    let (begin, end) = (segment.sim_at(segment.from), segment.sim_at(wall));
    let passed = |stop: &&WaitingStop| {
        if up { (begin..=end).contains(&stop.at) } else { (end..=begin).contains(&stop.at) }
    };
    let passed = node.waiting.iter().filter(passed);
    let order = |stop: &&WaitingStop| (stop.at, stop.id);
    let Some(stop) = (if up { passed.min_by_key(order) } else { passed.max_by_key(order) }).copied() else {
        return;
    };
    let Some(fires) = segment.line.reaches(stop.at, up, segment.from, wall) else { return };
    let mut next = *segment;
    next.from = fires;
    next.cause = Some(stop.id);
    next.stopped = true;
    next.fired = true;
    // Not only the rate: at a high rate the line passes the stop between two nanoseconds, and is put back on it.
    next.settle(fires, stop.at);
    let edit = node.key.1.filter(|_| node.key.0 == fires);
    let waiting = node.waiting.iter().copied().filter(|other| other.id != stop.id).collect();
    timeline.push(Node { key: (fires, edit), segment: next, waiting });
}

/// Applies one edit that counts to the state reached.
fn apply(timeline: &mut Timeline, (at, id): (WallTime, EditId), kind: EditKind) {
    let node = timeline.last();
    let (mut next, mut waiting) = (node.segment, node.waiting.clone());
    let now = next.sim_at(at);
    let mut sim = now;
    match kind {
        EditKind::Scale(scale) => next.scale = positive_zero(scale),
        EditKind::Pause => next.paused = true,
        EditKind::Resume => (next.paused, next.stopped) = (false, false),
        EditKind::JumpTo(to) => sim = to,
        EditKind::JumpBy(by) => sim = now.saturating_add(by),
        EditKind::StopAt(stop) if stop == now => next.stopped = true,
        EditKind::StopAt(stop) => {
            waiting = waiting.iter().copied().chain([WaitingStop { id, at: stop }]).collect()
        }
        EditKind::Cancel(target) if waiting.iter().any(|stop| stop.id == target) => {
            waiting = waiting.iter().copied().filter(|stop| stop.id != target).collect();
        }
        EditKind::Cancel(_) => {}
    }
    if matches!(kind, EditKind::JumpTo(_) | EditKind::JumpBy(_)) {
        next.epoch = Epoch { at, jump: id };
        next.jumps += 1;
    }
    next.settle(at, sim);
    let changed = next != node.segment || waiting.len() != node.waiting.len();
    if changed {
        next.from = at;
        next.cause = Some(id);
        next.fired = false;
        timeline.push(Node { key: (at, Some(id)), segment: next, waiting });
    }
}

/// The next wall instant at or after `after` at which sim time is at `sim`, or has come to its other side.
pub(crate) fn wall_at(timeline: &Timeline, sim: SimTime, after: WallTime) -> Option<WallTime> {
    let first = timeline.index_at(after);
    let mut side = timeline.at(after).segment.sim_at(after).cmp(&sim);
    for (index, node) in (first..).zip(timeline.iter_from(first)) {
        let from = node.segment.from.max(after);
        let to = timeline.get(index + 1).map(|next| next.segment.from.as_nanos());
        let to = to.map_or(WallTime::MAX, |next| WallTime::from_nanos(next.saturating_sub(1)));
        // Another edit at the same instant follows: the segment holds at no instant of its own.
        if to < from {
            continue;
        }
        let begin = node.segment.sim_at(from).cmp(&sim);
        if begin.is_eq() || begin != side {
            return Some(from);
        }
        let crossed = node.segment.line.reaches(sim, begin.is_lt(), from, to);
        if crossed.is_some() {
            return crossed;
        }
        side = begin;
    }
    None
}
