//! Fragments whose stamps are too far ahead of session time: kept outside the replica until due.
//!
//! Whether a fragment counts depends on its stamp and on session time alone, so all replicas agree on it once the time
//! has come. A node state is a join of writes; each of its parts is judged by its own stamp.
use coeval_faults::{Fault, active};
use coeval_merge::{Entry, EntryBody, LinkTag, SlotId, SlotState};
use coeval_time::{Incarnation, MonoTime, Stamp, WallTime};
use std::collections::BTreeMap;

/// Stamps from here on are refused: the hybrid clock could not go on above them.
pub(crate) const OVERFLOW_HLC: u64 = 1 << 63;

/// What a delta is split into.
#[derive(Default)]
pub(crate) struct Split {
    /// To be applied now.
    pub(crate) states: Vec<(SlotId, SlotState)>,
    /// To be applied now.
    pub(crate) entries: Vec<Entry>,
    /// Newly parked, to be passed on.
    pub(crate) parked: Vec<(SlotId, SlotState)>,
    /// Newly parked, to be passed on.
    pub(crate) parked_entries: Vec<Entry>,
    /// How many fragments are outside, newly or already.
    pub(crate) outside: u32,
    /// How many were refused.
    pub(crate) refused: u32,
    /// How far ahead the farthest is, nanoseconds.
    pub(crate) ahead: u64,
    /// The newest stamp to be applied now.
    pub(crate) newest: Stamp,
}

/// Fragments that are due.
#[derive(Default)]
pub(crate) struct Due {
    /// The link that the first of them came by.
    pub(crate) link: LinkTag,
    pub(crate) states: Vec<(SlotId, SlotState)>,
    pub(crate) entries: Vec<Entry>,
    /// When the first of them was parked.
    pub(crate) since: Option<MonoTime>,
}

#[derive(Clone)]
enum Parked {
    State(SlotId, SlotState),
    Entry(Entry),
}

/// The fragments kept outside.
#[derive(Default)]
pub(crate) struct Parking {
    waiting: BTreeMap<(Stamp, u64), (LinkTag, MonoTime, Parked)>,
    by_author: BTreeMap<Incarnation, usize>,
}

/// Splits a state by a test of stamps: what passes, and what does not.
fn split(state: &SlotState, near: impl Fn(Stamp) -> bool) -> [Option<SlotState>; 2] {
    [true, false].map(|keep| Some(state.part(|stamp| near(stamp) == keep)).filter(|half| !half.is_empty()))
}

impl Parking {
    /// Splits what arrived over `link` by `limit`, the latest stamp admitted now, and keeps what lies beyond.
    pub(crate) fn split(
        &mut self,
        link: LinkTag,
        states: Vec<(SlotId, SlotState)>,
        entries: Vec<Entry>,
        limit: WallTime,
        per_author: usize,
        now: MonoTime,
    ) -> Split {
        let from = (link, now);
        let mut out = Split::default();
        let near = |stamp: Stamp| active(Fault::FarFutureAdopted) || stamp.hlc <= limit.as_nanos();
        for (slot, state) in states {
            if near(state.newest()) {
                out.newest = out.newest.max(state.newest());
                out.states.push((slot, state));
                continue;
            }
            let [now, later] = split(&state, near);
            if let Some(state) = now {
                out.newest = out.newest.max(state.newest());
                out.states.push((slot, state));
            }
            if let Some(state) = later.filter(|_| !active(Fault::ParkedByArrival)) {
                let key = (state.newest(), u64::from(slot.0) << 1);
                if self.keep(key, from, Parked::State(slot, state.clone()), per_author, limit, &mut out) {
                    out.parked.push((slot, state));
                }
            }
        }
        for entry in entries {
            if near(entry.id.stamp) {
                out.newest = out.newest.max(entry.id.stamp);
                out.entries.push(entry);
            } else if !active(Fault::ParkedByArrival) {
                let key = (entry.id.stamp, u64::from(entry.id.index) << 1 | 1);
                if self.keep(key, from, Parked::Entry(entry.clone()), per_author, limit, &mut out) {
                    out.parked_entries.push(entry);
                }
            }
        }
        out
    }

    /// Keeps one; whether it is new.
    fn keep(
        &mut self,
        key: (Stamp, u64),
        (link, now): (LinkTag, MonoTime),
        what: Parked,
        per_author: usize,
        limit: WallTime,
        out: &mut Split,
    ) -> bool {
        let stamp = key.0;
        let known = self.waiting.contains_key(&key);
        let count = self.by_author.entry(stamp.writer).or_default();
        if stamp.hlc >= OVERFLOW_HLC || (!known && *count >= per_author) {
            out.refused += 1;
            return false;
        }
        out.outside += 1;
        out.ahead = out.ahead.max(stamp.hlc - limit.as_nanos());
        if !known {
            *count += 1;
            self.waiting.insert(key, (link, now, what));
        }
        !known
    }

    /// Takes what is due at `limit`: all at once, for what came by one link may need what came by another.
    pub(crate) fn due(&mut self, limit: WallTime) -> Due {
        let mut due = Due::default();
        while let Some(first) = self.waiting.first_entry() {
            let stamp = first.key().0;
            if stamp.hlc > limit.as_nanos() {
                break;
            }
            let (link, at, what) = first.remove();
            if let Some(count) = self.by_author.get_mut(&stamp.writer) {
                *count -= 1;
                if *count == 0 {
                    self.by_author.remove(&stamp.writer);
                }
            }
            if due.since.is_none() {
                due.link = link;
            }
            due.since = Some(due.since.map_or(at, |since| since.min(at)));
            match what {
                Parked::State(slot, state) => due.states.push((slot, state)),
                Parked::Entry(entry) => due.entries.push(entry),
            }
        }
        due
    }

    /// Forgets what belongs to a world: all but records.
    pub(crate) fn forget_world(&mut self) {
        let is_record = |parked: &Parked| matches!(parked, Parked::Entry(entry) if matches!(entry.body, EntryBody::Record { .. }));
        self.waiting.retain(|_, (_, _, parked)| is_record(parked));
        self.by_author.clear();
        for (stamp, _) in self.waiting.keys() {
            *self.by_author.entry(stamp.writer).or_default() += 1;
        }
    }

    /// The stamp that is due next.
    pub(crate) fn next(&self) -> Option<Stamp> {
        self.waiting.keys().next().map(|key| key.0)
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
