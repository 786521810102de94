//! The way in: hellos, deltas kept aside until their mark, acknowledgements.
use crate::Sync;
use crate::codec;
use crate::link::{Greeting, Link, Mode};
use crate::notice::Notice;
use crate::parking::Split;
use coeval_faults::{Fault, active};
use coeval_merge::{Entry, LinkTag, Origin, Replica, SlotId, SlotState};
use coeval_time::Stamp;
use coeval_value::NodeId;
use coeval_wire::frame::{Ack, Delta, Hello, Mark, Want};

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
            self.start(tag, Mode::Behind, since, true);
            if let Some(link) = self.links.get_mut(&tag) {
                link.out.dirty = slots.into_iter().collect();
            }
        } else if hello.empty {
            self.start(tag, Mode::Snapshot(SlotId(0)), 0, true);
        } else if let Some(since) = known.max(equal) {
            let slots = self.slots_since(since);
            self.start(tag, Mode::Behind, since, true);
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

    fn slots_since(&self, since: u64) -> Vec<SlotId> {
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
            let slot = self.replica.resolve(key).ok();
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
        for (number, state) in states {
            match link.inc.numbers.get(&number.0) {
                Some(Some(slot)) => link.inc.states.push((*slot, state)),
                Some(None) => link.inc.refused += 1,
                None => missing.push(number.0),
            }
        }
        link.inc.staged_bytes += delta.states.len();
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
        if mark.caught_up {
            self.complete(tag);
        }
        self.send(tag, &Ack { position: mark.position, ..ack }.into());
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
        let states = std::mem::take(&mut link.inc.states);
        let entries = std::mem::take(&mut link.inc.entries);
        let refused = std::mem::take(&mut link.inc.refused);
        let ack = self.apply(tag, states, entries);
        self.stats(tag).refused += u64::from(refused);
        Ack { refused: ack.refused.saturating_add(refused), ..ack }
    }

    /// Parks what is too far ahead, to be passed on; returns the rest.
    pub(crate) fn park(
        &mut self,
        tag: LinkTag,
        states: Vec<(SlotId, SlotState)>,
        entries: Vec<Entry>,
    ) -> Split {
        let limit = self.session_wall().saturating_add(self.config.lead);
        let mut split = self.parking.split(tag, states, entries, limit, self.config.parked_per_author);
        let remote = |stamp: Stamp| Origin::Remote { link: tag, author: stamp.writer };
        for (slot, state) in split.parked.drain(..) {
            self.extra.states.push((remote(crate::parking::newest(&state)), slot, state));
        }
        self.extra.entries.extend(split.parked_entries.drain(..).map(|e| (remote(e.id.stamp), e)));
        split
    }

    /// Parks what is too far ahead and applies the rest. The hybrid clock is raised first.
    pub(crate) fn apply(
        &mut self,
        tag: LinkTag,
        states: Vec<(SlotId, SlotState)>,
        entries: Vec<Entry>,
    ) -> Ack {
        if states.is_empty() && entries.is_empty() {
            return empty_ack();
        }
        let split = self.park(tag, states, entries);
        if !split.newest.is_none() {
            self.replica.register(split.newest);
        }
        let applied = self.replica.apply(tag, split.states, split.entries);
        self.applied = true;
        for (slot, refusal) in &applied.refused {
            tracing::debug!(?slot, %refusal, "fragment refused");
        }
        let refused = split.refused.saturating_add(count(applied.refused.len() as u64));
        let stats = self.stats(tag);
        stats.parked += u64::from(split.outside);
        stats.refused += u64::from(refused);
        stats.superseded += applied.superseded;
        let lead = self.config.lead.as_nanos().unsigned_abs();
        Ack {
            position: 0,
            parked: split.outside,
            ahead: if split.outside > 0 { split.ahead.saturating_add(lead) } else { 0 },
            refused,
            superseded: count(applied.superseded),
            inert: 0,
        }
    }

    /// Applies parked fragments that have become due.
    pub(crate) fn apply_due(&mut self) {
        let limit = self.session_wall().saturating_add(self.config.lead);
        for (tag, (states, entries)) in self.parking.due(limit) {
            self.apply(tag, states, entries);
        }
    }

    /// The peer has applied everything up to a mark.
    pub(crate) fn on_ack(&mut self, tag: LinkTag, ack: &Ack) {
        let stats = self.stats(tag);
        stats.parked_there += u64::from(ack.parked);
        stats.refused_there += u64::from(ack.refused);
        stats.inert_there += u64::from(ack.inert);
        let Some(link) = self.links.get_mut(&tag) else { return };
        link.out.acked = link.out.acked.max(ack.position.min(link.out.marked));
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
