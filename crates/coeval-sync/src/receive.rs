//! The way in: hellos, deltas kept aside until their mark, acknowledgements.
use crate::Sync;
use crate::codec;
use crate::link::{Greeting, Link, Mode, NOWHERE};
use crate::notice::Notice;
use crate::parking::Split;
use crate::pump::Unit;
use coeval_faults::{Fault, active};
use coeval_merge::{Entry, Fate, LinkTag, Origin, Replica, SlotId, SlotState};
use coeval_time::{Incarnation, Stamp};
use coeval_value::NodeId;
use coeval_wire::frame::{Ack, Delta, Hello, Mark, Want};
use std::collections::BTreeMap;

/// Units of changes, by their root.
pub(crate) type Units = BTreeMap<Option<Incarnation>, Vec<(SlotId, SlotState)>>;

/// A unit whose states are applied together with those of others.
struct Part {
    root: Option<Incarnation>,
    /// How many of the states are of it.
    length: usize,
    /// What of it was parked, newly.
    parked: Vec<(SlotId, SlotState)>,
}

/// What keeping a unit aside takes besides its states, bytes.
const UNIT_BYTES: usize = 64;
/// Most numbers of a peer that are kept.
const MAX_NUMBERS: usize = 1 << 24;
/// Most numbers asked for at once.
const MAX_ASKED: usize = 4096;

impl<R: Replica> Sync<R> {
    /// Takes the peer's hello and works out what it needs.
    ///
    /// An empty receiver gets everything, whatever cursor it names. A known cursor gets what was drained after it.
    /// Else the digests are narrowed down to what differs.
    pub(crate) fn on_hello(&mut self, tag: LinkTag, hello: &Hello) -> Result<(), String> {
        self.pump();
        let position = self.replica.position();
        let me = self.me.node.incarnation;
        let known = hello.cursor.filter(|(of, at)| *of == me && *at <= position).map(|(_, at)| at);
        let Some(link) = self.links.get_mut(&tag) else { return Ok(()) };
        let node = link.peer.node;
        let Some(Greeting { hello: mine, position: then }) = &link.greeting else { return Ok(()) };
        // Both ends compare the same two hellos, so both come to the same conclusion.
        let presented = mine.empty || mine.cursor.is_some();
        let equal = (mine.empty || hello.digest == mine.digest).then_some(*then);
        if !std::mem::replace(&mut link.announced, true) {
            self.notices.push_back(Notice::LinkUp { link: tag, node });
        }
        if let Some(since) = self.remembered(node).filter(|_| active(Fault::CursorKeptBySender)) {
            let slots = self.slots_since(since);
            self.start(tag, Mode::CatchUp, since, true);
            if let Some(link) = self.links.get_mut(&tag) {
                link.out.dirty = slots.into_iter().collect();
            }
        } else if hello.empty {
            self.start(tag, Mode::Snapshot(SlotId(0)), 0, true);
        } else if let Some(since) = known.max(equal) {
            let slots = self.slots_since(since);
            self.start(tag, Mode::CatchUp, since, true);
            if let Some(link) = self.links.get_mut(&tag) {
                link.out.dirty = slots.into_iter().collect();
            }
        } else {
            self.start(tag, Mode::Live, position, false);
            if self.me.node < node || presented {
                self.narrow(tag, true);
            }
        }
        self.applied = true;
        Ok(())
    }

    /// What the machine of `node` acknowledged in its life before, whose link was not missed yet. Nobody may rely on it: only
    /// a fault does.
    fn remembered(&self, node: NodeId) -> Option<u64> {
        let before = |link: &&Link| link.peer.node.peer == node.peer && link.peer.node != node;
        self.links.values().filter(before).map(|link| link.out.acked).max()
    }

    pub(crate) fn start(&mut self, tag: LinkTag, mode: Mode, entries_since: u64, caught_up: bool) {
        let Some(Link { out, .. }) = self.links.get_mut(&tag) else { return };
        out.mode = mode;
        out.caught_up = caught_up;
        out.entries = self.replica.entries_since(entries_since).into_iter().map(|entry| entry.id).collect();
    }

    pub(crate) fn slots_since(&self, since: u64) -> Vec<SlotId> {
        let mut slots = Vec::new();
        let mut from = Some(SlotId(0));
        while let Some(next) = from {
            let page = self.replica.scan(next, since, self.config.page);
            slots.extend(page.states.iter().map(|(slot, _)| *slot));
            from = page.next;
        }
        slots
    }

    /// Learns the peer's numbers; returns them with the keys.
    pub(crate) fn on_define(&mut self, tag: LinkTag, keys: &[u8]) -> Result<codec::Keys, String> {
        let keys = codec::decode_keys(keys)?;
        let Some(link) = self.links.get_mut(&tag) else { return Ok(keys) };
        for (number, key) in &keys {
            let slot = self.replica.resolve(key).unwrap_or(NOWHERE);
            link.inc.numbers.insert(number.0, slot);
            link.inc.asked.remove(&number.0);
        }
        if link.inc.numbers.len() > MAX_NUMBERS {
            return Err(format!("more than {MAX_NUMBERS} slots defined"));
        }
        Ok(keys)
    }

    /// Keeps a part of a delta aside, or a page of a snapshot.
    ///
    /// Pages wait for their mark too. Applied one by one they would leave half a batch for good if the link fell before the
    /// mark and nobody else was left who held the other half.
    pub(crate) fn on_delta(&mut self, tag: LinkTag, delta: &Delta) -> Result<(), String> {
        let states = codec::decode_states(&delta.states)?;
        self.stats(tag).received_updates += states.len() as u64;
        let fetched = self.fetches_from(tag);
        let Some(link) = self.links.get_mut(&tag) else { return Ok(()) };
        let mut missing = Vec::new();
        let unit = link.inc.states.entry(delta.root).or_default();
        for (number, state) in states {
            match link.inc.numbers.get(&number.0) {
                Some(slot) => unit.push((*slot, state)),
                None => missing.push(number.0),
            }
        }
        link.inc.staged_bytes += delta.states.len() + UNIT_BYTES;
        let eager = active(Fault::TornAtReceiver) || (active(Fault::PagesBeforeMark) && !link.inc.complete);
        // Of a world that is entered all at once, no part is applied.
        let apply = !fetched && (eager || link.inc.staged_bytes > self.config.staged_bytes);
        if link.inc.staged_bytes > self.config.world_bytes {
            return Err(format!("a world of more than {} bytes", self.config.world_bytes));
        }
        let mut ask = Vec::new();
        for number in &missing {
            if link.inc.asked.len() < MAX_ASKED && link.inc.asked.insert(*number) {
                ask.push(*number);
            }
        }
        self.stats(tag).undefined += missing.len() as u64;
        if !ask.is_empty() {
            self.send(tag, &Want { slots: ask, entries: Vec::new(), ends: None }.into());
        }
        if apply {
            self.apply_staged(tag);
        }
        Ok(())
    }

    /// Keeps entries of a delta aside.
    pub(crate) fn on_entries(&mut self, tag: LinkTag, entries: &[u8]) -> Result<(), String> {
        let decoded = codec::decode_entries(entries)?;
        self.stats(tag).received_updates += decoded.len() as u64;
        if let Some(link) = self.links.get_mut(&tag) {
            link.inc.staged_bytes += entries.len();
            link.inc.entries.extend(decoded);
        }
        Ok(())
    }

    /// Applies what was kept aside, moves the cursor, acknowledges.
    pub(crate) fn on_mark(&mut self, tag: LinkTag, mark: &Mark) {
        let ack = self.apply_staged(tag);
        self.reached(tag, mark.position);
        let fresh = mark.caught_up && self.is_given_all(tag);
        if mark.caught_up {
            self.complete(tag);
        }
        self.send(tag, &Ack { position: mark.position, ..ack }.into());
        if fresh {
            self.compare_others(tag);
        }
    }

    /// Whether what comes over a link is what an empty node is given when it joins.
    fn is_given_all(&self, tag: LinkTag) -> bool {
        let link = self.links.get(&tag).filter(|link| !link.inc.complete);
        link.and_then(|link| link.greeting.as_ref()).is_some_and(|greeting| greeting.hello.empty)
    }

    /// A node that was empty holds a world now. It is not passed on, for who has no link to where it came from holds it
    /// all the same, unless only this node links the two: that is found out at once.
    fn compare_others(&mut self, source: LinkTag) {
        self.pump();
        let Some(from) = self.links.get(&source).map(|link| link.peer.node) else { return };
        for tag in self.tags() {
            let graph = self.members.graph();
            let idle = |link: &Link| link.out.mode == Mode::Live && !link.repair.is_urgent();
            let apart = |link: &Link| tag != source && !graph.linked(link.peer.node, from);
            if self.links.get(&tag).is_some_and(|link| idle(link) && apart(link)) {
                self.narrow(tag, true);
            }
        }
    }

    /// All that the peer drained up to `position` has come, if what it held before has.
    pub(crate) fn reached(&mut self, tag: LinkTag, position: u64) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        link.inc.reached = link.inc.reached.max(position);
        if link.inc.complete || active(Fault::CursorBeforeApply) {
            let cursor = self.cursors.entry(link.peer.node.incarnation).or_default();
            *cursor = (*cursor).max(position);
        }
    }

    /// All that the peer held when the link came up is here.
    pub(crate) fn complete(&mut self, tag: LinkTag) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        if !std::mem::replace(&mut link.inc.complete, true) {
            let (node, reached) = (link.peer.node, link.inc.reached);
            self.reached(tag, reached);
            self.settled(node);
        }
    }

    /// Applies what was kept aside, all at one batch boundary.
    fn apply_staged(&mut self, tag: LinkTag) -> Ack {
        let Some(link) = self.links.get_mut(&tag) else { return empty_ack() };
        link.inc.staged_bytes = 0;
        let units = std::mem::take(&mut link.inc.states);
        let entries = std::mem::take(&mut link.inc.entries);
        self.apply(tag, units, entries)
    }

    /// Parks what is too far ahead, to be passed on; returns the rest.
    pub(crate) fn park(
        &mut self,
        tag: LinkTag,
        states: Vec<(SlotId, SlotState)>,
        entries: Vec<Entry>,
    ) -> Split {
        let limit = self.session_wall().saturating_add(self.config.lead);
        let mut split =
            self.parking.split(tag, states, entries, limit, self.config.parked_per_author, self.now);
        let remote = |stamp: Stamp| Origin::Remote { link: tag, author: stamp.writer };
        self.parked_entries.extend(split.parked_entries.drain(..).map(|e| (remote(e.id.stamp), e)));
        split
    }

    /// Parks what is too far ahead and applies the rest, all units at once. The hybrid clock is raised first. A unit that
    /// was news is kept to be passed on.
    pub(crate) fn apply(&mut self, tag: LinkTag, units: Units, entries: Vec<Entry>) -> Ack {
        if units.is_empty() && entries.is_empty() {
            return empty_ack();
        }
        let mut ack = empty_ack();
        let (mut states, mut parts, mut newest, mut due) = (Vec::new(), Vec::new(), Stamp::NONE, Vec::new());
        let units = units.into_iter().map(|(root, states)| (root, states, Vec::new()));
        for (root, unit, entries) in units.chain([(None, Vec::new(), entries)]) {
            let mut split = self.park(tag, unit, entries);
            newest = newest.max(split.newest);
            ack.refused = ack.refused.saturating_add(split.refused);
            ack.parked = ack.parked.saturating_add(split.outside);
            ack.ahead = ack.ahead.max(split.ahead);
            parts.push(Part { root, length: split.states.len(), parked: split.parked });
            states.append(&mut split.states);
            due.append(&mut split.entries);
        }
        if !newest.is_none() {
            self.replica.register(newest);
        }
        let applied = self.replica.apply(tag, &states, due);
        self.applied = true;
        for (slot, refusal) in &applied.refused {
            tracing::debug!(?slot, %refusal, "fragment refused");
        }
        self.keep_to_pass_on(tag, parts, states, &applied.fates);
        ack.refused = ack.refused.saturating_add(count(applied.refused.len() as u64));
        ack.superseded = count(applied.superseded);
        if ack.parked > 0 {
            ack.ahead = ack.ahead.saturating_add(self.config.lead.as_nanos().unsigned_abs());
        }
        let stats = self.stats(tag);
        stats.parked += u64::from(ack.parked);
        stats.refused += u64::from(ack.refused);
        stats.superseded += applied.superseded;
        ack
    }

    /// Keeps the units that changed anything here. What this replica refused is not its to pass on.
    fn keep_to_pass_on(
        &mut self,
        link: LinkTag,
        parts: Vec<Part>,
        states: Vec<(SlotId, SlotState)>,
        fates: &[Fate],
    ) {
        let fresh = self.is_given_all(link);
        let (mut states, mut fates) = (states.into_iter(), fates.iter());
        for Part { root, length, parked } in parts {
            let fates: Vec<Fate> = fates.by_ref().take(length).copied().collect();
            let mut unit: Vec<(SlotId, SlotState)> = states.by_ref().take(length).collect();
            let overtook = fates.contains(&Fate::Overtook);
            let news = overtook || fates.contains(&Fate::Changed) || !parked.is_empty();
            if !news || (root.is_none() && fresh) {
                continue;
            }
            let mut kept = fates.iter().map(|fate| !matches!(fate, Fate::Refused(_)));
            unit.retain(|_| kept.next().unwrap_or(true));
            unit.extend(parked);
            self.passing.push(Unit { link, root, states: unit, overtook });
        }
    }

    /// Applies parked fragments that have become due.
    pub(crate) fn apply_due(&mut self) {
        let limit = self.session_wall().saturating_add(self.config.lead);
        let due = self.parking.due(limit);
        let mut units = Units::new();
        for (slot, state) in due.states {
            let author = state.newest().writer;
            units.entry(Some(author)).or_default().push((slot, state));
        }
        let passing = self.passing.len();
        self.apply(due.link, units, due.entries);
        // It was passed on when it was parked, to all links that were there.
        if self.links.values().all(|link| due.since.is_some_and(|since| link.up_at < since)) {
            self.passing.truncate(passing);
        }
    }

    /// The peer has applied everything up to a mark.
    pub(crate) fn on_ack(&mut self, tag: LinkTag, ack: &Ack) {
        let stats = self.stats(tag);
        stats.parked_there += u64::from(ack.parked);
        stats.refused_there += u64::from(ack.refused);
        stats.inert_there += u64::from(ack.inert);
        let Some(link) = self.links.get_mut(&tag) else { return };
        link.out.refused |= ack.refused > 0;
        if !link.out.refused {
            link.out.acked = link.out.acked.max(ack.position.min(link.out.marked));
        }
        link.out.marks_acked = link.out.marks.min(link.out.marks_acked + 1);
        if ack.parked > 0 {
            let node = link.peer.node;
            self.notices.push_back(Notice::ParkedThere { node, count: ack.parked, ahead: ack.ahead });
        }
    }
}

fn count(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

pub(crate) const fn empty_ack() -> Ack {
    Ack { position: 0, parked: 0, ahead: 0, refused: 0, superseded: 0, inert: 0 }
}
