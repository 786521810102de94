//! One link: what is on its way out, what came in and is not applied yet.
use crate::io::LinkPeer;
use crate::ping::Pinging;
use crate::repair::Repair;
use coeval_faults::{Fault, active};
use coeval_merge::{self as merge, SlotId, SlotState, World};
use coeval_time::{EditId, Incarnation, MonoTime};
use coeval_wire::Frame;
use coeval_wire::frame::Hello;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A slot that no replica has.
pub(crate) const NOWHERE: SlotId = SlotId(u32::MAX);

/// How changes reach the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Its hello has not come: nothing is sent, what it needs is worked out then.
    Greeting,
    /// It was empty: pages of everything, from this slot on.
    Snapshot(SlotId),
    /// It takes less than is written: units are joined until it has room.
    Behind,
    /// It is to hold all that is held here: what changes is noted until it has room.
    CatchUp,
    /// Every unit, as it is drained or received.
    Live,
}

/// A set of slots of this replica, one bit each.
#[derive(Default)]
pub(crate) struct SlotSet(Vec<u64>);

impl SlotSet {
    pub(crate) fn contains(&self, slot: SlotId) -> bool {
        self.0.get(slot.0 as usize / 64).is_some_and(|word| word >> (slot.0 % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, slot: SlotId) {
        let word = slot.0 as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (slot.0 % 64);
    }

    pub(crate) fn remove(&mut self, slot: SlotId) {
        if let Some(word) = self.0.get_mut(slot.0 as usize / 64) {
            *word &= !(1 << (slot.0 % 64));
        }
    }
}

/// This side's hello, and the drained position it speaks of.
pub(crate) struct Greeting {
    pub(crate) hello: Hello,
    pub(crate) position: u64,
}

/// The way out.
pub(crate) struct Outgoing {
    pub(crate) mode: Mode,
    /// Slots whose numbers the peer knows.
    pub(crate) defined: SlotSet,
    /// In catch-up and during a snapshot: slots that changed and were not sent.
    pub(crate) dirty: BTreeSet<SlotId>,
    /// Behind: the join of the units that were not sent.
    pub(crate) held: Held,
    /// Write-once entries that were not sent.
    pub(crate) entries: BTreeSet<EditId>,
    /// Message bytes handed to the transport that it has not taken yet.
    pub(crate) in_flight: usize,
    /// Frames to follow the next delta.
    pub(crate) after: Vec<Frame>,
    /// The position of the last mark sent, and of the last one acknowledged.
    pub(crate) marked: u64,
    pub(crate) acked: u64,
    /// The next mark says that the peer is caught up.
    pub(crate) caught_up: bool,
    /// Marks sent, and marks acknowledged. Two marks may name one position: what repair sends again has no newer one.
    pub(crate) marks: u64,
    pub(crate) marks_acked: u64,
    /// The peer refused something, and was not found equal since: what it acknowledges it may not hold.
    pub(crate) refused: bool,
    /// The next conflated delta completes what was held here when the link came up.
    pub(crate) completes: bool,
    /// The number of the mark up to which all that was held here when the link came up was sent; `None`: not yet.
    pub(crate) past: Option<u64>,
}

/// A join of units: at most one state per slot, however often it changes.
#[derive(Default)]
pub(crate) struct Held {
    /// Whose tree it travels; `None` where the units are of several.
    pub(crate) root: Option<Incarnation>,
    pub(crate) states: BTreeMap<SlotId, SlotState>,
}

/// The way in.
#[derive(Default)]
pub(crate) struct Incoming {
    /// Whether the peer's hello has come.
    pub(crate) greeted: bool,
    /// The world that its last hello told.
    pub(crate) world: Option<World>,
    /// Fragments of another world since the last mark.
    pub(crate) inert: u32,
    /// The peer's numbers; [`NOWHERE`]: this replica refused the slot. Looked up, never iterated.
    pub(crate) numbers: HashMap<u32, SlotId, foldhash::fast::FixedState>,
    /// Numbers asked for because they were not defined.
    pub(crate) asked: BTreeSet<u32>,
    /// The delta so far: its units, by their root.
    pub(crate) states: BTreeMap<Option<Incarnation>, Vec<(SlotId, SlotState)>>,
    pub(crate) entries: Vec<merge::Entry>,
    pub(crate) staged_bytes: usize,
    /// Whether all that the peer held when the link came up is here.
    pub(crate) complete: bool,
    /// The position reached by marks while that was not so.
    pub(crate) reached: u64,
}

/// One link.
pub(crate) struct Link {
    pub(crate) peer: LinkPeer,
    pub(crate) dialed: bool,
    /// What this side said first; `None` while it waits for session time.
    pub(crate) greeting: Option<Greeting>,
    /// The peer's hello, kept until this side has greeted and is in the world that it is of.
    pub(crate) held: Option<Hello>,
    pub(crate) up_at: MonoTime,
    /// Whether the owner was told that it is up.
    pub(crate) announced: bool,
    pub(crate) out: Outgoing,
    pub(crate) inc: Incoming,
    pub(crate) repair: Repair,
    pub(crate) ping: Pinging,
    /// When the next root digest is sent.
    pub(crate) digest_due: MonoTime,
}

impl Link {
    pub(crate) fn new(peer: LinkPeer, dialed: bool, now: MonoTime, digest_due: MonoTime) -> Self {
        Self {
            peer,
            dialed,
            greeting: None,
            held: None,
            up_at: now,
            announced: false,
            out: Outgoing {
                mode: Mode::Greeting,
                defined: SlotSet::default(),
                dirty: BTreeSet::new(),
                held: Held::default(),
                entries: BTreeSet::new(),
                in_flight: 0,
                after: Vec::new(),
                marked: 0,
                acked: 0,
                caught_up: false,
                marks: 0,
                marks_acked: 0,
                refused: false,
                completes: false,
                past: None,
            },
            inc: Incoming::default(),
            repair: Repair::default(),
            ping: Pinging::new(now),
            digest_due,
        }
    }
}

impl Outgoing {
    /// Notes slots to be sent, so that the peer holds all that is held here.
    pub(crate) fn note(&mut self, slots: impl IntoIterator<Item = SlotId>) {
        let before = self.dirty.len();
        self.dirty.extend(slots);
        if self.dirty.len() > before && matches!(self.mode, Mode::Live | Mode::Behind) {
            self.mode = Mode::CatchUp;
        }
        self.fall_behind();
    }

    /// Joins a unit with what is held for the peer; returns how many states took the place of another.
    pub(crate) fn hold(&mut self, root: Option<Incarnation>, states: &[(SlotId, SlotState)]) -> u64 {
        if active(Fault::SlowLinkDrops) {
            return 0;
        }
        let before = self.held.states.len();
        if before == 0 || self.held.root != root {
            self.held.root = root.filter(|_| before == 0);
        }
        for (slot, state) in states {
            match self.held.states.entry(*slot) {
                Entry::Vacant(new) => _ = new.insert(state.clone()),
                Entry::Occupied(known) => known.into_mut().join(state),
            }
        }
        (before + states.len() - self.held.states.len()) as u64
    }

    /// How many slots wait until the peer has room.
    pub(crate) fn waiting(&self) -> usize {
        let held = self.held.states.keys().filter(|slot| !self.dirty.contains(slot));
        self.dirty.len() + held.count()
    }

    /// Leaves the fast path until the next conflated delta.
    pub(crate) fn fall_behind(&mut self) {
        if self.mode == Mode::Live {
            self.mode = Mode::Behind;
        }
    }

    /// Whether all up to `position` was acknowledged, `now` being the last drained position.
    pub(crate) fn has_acked(&self, position: u64, now: u64) -> bool {
        let idle = self.mode == Mode::Live && self.marks_acked >= self.marks && position <= now;
        let past = self.past.is_some_and(|mark| self.marks_acked >= mark) && !self.refused;
        (past || active(Fault::FlushBeforeRepair)) && (self.acked >= position || idle)
    }
}
