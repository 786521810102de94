//! The way out: drains the replica, encodes each unit of changes once, and hands it to every link that it is for.
//!
//! What travels is a *unit*: what one node wrote between two drains, or what a node had missed. A unit holds of every
//! batch in it all that the batch wrote, or something newer in its place, so a replica that holds no part of a batch
//! holds none after it has joined the unit. Joins of units are units, parts of them are not. Hence the two rules here:
//! a unit is passed on as it came, even those fragments of it that were no news here; and only what was written here
//! goes out as a unit of this node. Where a received unit overtook what was written here before it was drained, the two
//! go out as one.
//!
//! A link has one of four ways. *Live*: each unit as it is drained or received. *Behind*, for a link that takes less than
//! is written: units are joined, slot by slot, and go when it has room. *Catch-up*: it is to hold all that is held here; the
//! numbers of changed slots are noted, whoever changed them, and their states go when it has room. *Snapshot*: pages of
//! everything for an empty receiver, as fast as the link takes them, then as in catch-up what changed meanwhile.
//!
//! The states of a catch-up are read first and the replica is drained after; whatever a batch changed in between is in
//! the drain, whose states replace those that were read.
use crate::Sync;
use crate::codec;
use crate::link::Mode;
use crate::route::{Targets, Way};
use bytes::Bytes;
use coeval_faults::{Fault, active};
use coeval_merge::{Change, Drained, Entry, LinkTag, Own, Replica, SlotId, SlotState};
use coeval_time::Incarnation;
use coeval_wire::Frame;
use coeval_wire::frame::{Define, Mark};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Changes that are passed on together or not at all.
pub(crate) struct Unit {
    /// The link it came by.
    pub(crate) link: LinkTag,
    /// Whose tree it travels; `None`: it is what this node had missed.
    pub(crate) root: Option<Incarnation>,
    pub(crate) states: Vec<(SlotId, SlotState)>,
    /// Whether it overtook what was written here and not drained yet.
    pub(crate) overtook: bool,
}

/// What goes to one set of links.
#[derive(Default)]
struct Parcel {
    states: Vec<(SlotId, SlotState)>,
    entries: Vec<Entry>,
}

/// Parcels by the links that they are for, their root, and whether the log takes them, too.
type Parcels = BTreeMap<(Rc<[LinkTag]>, Option<Incarnation>, bool), Parcel>;
/// What links that are not live take with this drain.
type Reads = BTreeMap<LinkTag, BTreeMap<SlotId, SlotState>>;

impl<R: Replica> Sync<R> {
    /// Whether a link that is not live has room for more.
    pub(crate) fn has_room(&self) -> bool {
        let low = self.config.window / 2;
        let waits = |mode| !matches!(mode, Mode::Live | Mode::Greeting);
        self.log_has_room() || self.links.values().any(|l| waits(l.out.mode) && l.out.in_flight <= low)
    }

    /// Drains the replica and sends what there is to send.
    pub(crate) fn pump(&mut self) {
        self.applied = false;
        let mut reads = self.read_missed();
        for link in self.links.values_mut().filter(|link| link.out.in_flight > self.config.window) {
            link.out.fall_behind();
        }
        let mut log = self.read_log();
        let drained = self.replica.drain();
        self.note_log(&drained, &mut log);
        self.note_changes(&drained.changes, &mut reads);
        let parcels = self.pack(drained);
        self.fan_out(parcels);
        if let Some(states) = log {
            self.log_delta(states);
        }
        self.log_pages();
        for (link, states) in reads {
            self.conflated(link, states.into_iter().collect());
        }
        for link in self.tags() {
            self.pages(link);
        }
    }

    /// Reads the slots that links with room have missed.
    fn read_missed(&mut self) -> Reads {
        let low = self.config.window / 2;
        let mut reads = Reads::new();
        for (tag, link) in &mut self.links {
            if matches!(link.out.mode, Mode::Behind | Mode::CatchUp) && link.out.in_flight <= low {
                let dirty = std::mem::take(&mut link.out.dirty);
                let states = dirty.into_iter().filter_map(|slot| Some((slot, self.replica.read(slot)?)));
                reads.insert(*tag, states.collect());
            }
        }
        reads
    }

    /// Notes all changes at links that are to hold all that is held here.
    fn note_changes(&mut self, changes: &[Change], reads: &mut Reads) {
        for tag in self.tags() {
            let Some(link) = self.links.get_mut(&tag) else { continue };
            let upto = match link.out.mode {
                Mode::CatchUp => SlotId(u32::MAX),
                Mode::Snapshot(_) if active(Fault::SnapshotMissesWrites) => continue,
                Mode::Snapshot(next) => next,
                Mode::Behind | Mode::Live | Mode::Greeting => continue,
            };
            if let Some(read) = reads.get_mut(&tag) {
                read.extend(changes.iter().map(|change| (change.slot, change.state.clone())));
                continue;
            }
            let noted = changes.iter().map(|change| change.slot).filter(|slot| *slot < upto);
            let known = noted.filter(|slot| !link.out.dirty.insert(*slot)).count();
            self.stats(tag).conflated += known as u64;
        }
    }

    /// Sorts what there is to tell by the live links that it is for; holds it for those that are behind.
    fn pack(&mut self, drained: Drained) -> Parcels {
        let (mut parcels, mut targets) = (Parcels::new(), Targets::new());
        let logs = self.log_is_live();
        let units = std::mem::take(&mut self.passing);
        let shared = logs && units.is_empty() && drained.changes.iter().all(|c| matches!(c.own, Own::All));
        if logs && !shared {
            let states = drained.changes.iter().map(|change| (change.slot, change.state.clone())).collect();
            parcels.insert((Rc::default(), None, true), Parcel { states, entries: Vec::new() });
        }
        let own = own_unit(drained.changes, &units);
        if !own.is_empty() {
            let here = self.me.node.incarnation;
            let links = self.address(Way::Here, Some(here), &own, &mut targets);
            parcels.entry((links, Some(here), shared)).or_default().states = own;
        }
        for Unit { link, root, states, .. } in units {
            let links = self.address(Way::From(link, root), root, &states, &mut targets);
            parcels.entry((links, root, false)).or_default().states.extend(states);
        }
        for (origin, entry) in drained.entries {
            self.address_entry(origin.into(), entry, logs, &mut parcels, &mut targets);
        }
        // What is parked is for the links only: it is no part of the state yet.
        for (origin, entry) in std::mem::take(&mut self.parked_entries) {
            self.address_entry(origin.into(), entry, false, &mut parcels, &mut targets);
        }
        parcels
    }

    /// The live links that states are for. For those that are behind they are held.
    fn address(
        &mut self,
        way: Way,
        root: Option<Incarnation>,
        states: &[(SlotId, SlotState)],
        targets: &mut Targets,
    ) -> Rc<[LinkTag]> {
        let all = self.targets(way, targets);
        for &tag in all.iter() {
            if let Some(link) = self.links.get_mut(&tag).filter(|link| link.out.mode == Mode::Behind) {
                let conflated = link.out.hold(root, states);
                self.stats(tag).conflated += conflated;
            }
        }
        self.live(&all)
    }

    fn address_entry(
        &mut self,
        way: Way,
        entry: Entry,
        logs: bool,
        parcels: &mut Parcels,
        targets: &mut Targets,
    ) {
        let all = self.targets(way, targets);
        for tag in all.iter() {
            if let Some(link) = self.links.get_mut(tag).filter(|link| link.out.mode != Mode::Live) {
                link.out.entries.insert(entry.id);
            }
        }
        parcels.entry((self.live(&all), None, logs)).or_default().entries.push(entry);
    }

    fn live(&self, all: &[LinkTag]) -> Rc<[LinkTag]> {
        let live = |tag: &LinkTag| self.links.get(tag).is_some_and(|link| link.out.mode == Mode::Live);
        all.iter().copied().filter(live).collect()
    }

    /// Encodes each parcel once and sends it to all its links, then the mark.
    fn fan_out(&mut self, parcels: Parcels) {
        let mut marked = BTreeSet::new();
        for ((links, root, logs), mut parcel) in parcels {
            if links.is_empty() && !logs {
                continue;
            }
            join_equal(&mut parcel.states);
            for &link in links.iter() {
                self.define(link, parcel.states.iter().map(|(slot, _)| *slot));
            }
            if logs {
                self.log_define(parcel.states.iter().map(|(slot, _)| *slot));
            }
            if active(Fault::TornByForwarding) && root != Some(self.me.node.incarnation) {
                let rest = parcel.states.split_off(parcel.states.len() / 2);
                let part = self.encode_states(root, &std::mem::replace(&mut parcel.states, rest));
                self.distribute(&links, logs, part);
                self.mark(links.iter().copied());
            }
            let messages = self.encode_states(root, &parcel.states);
            self.distribute(&links, logs, messages);
            let messages = self.encode_entries(&parcel.entries);
            self.distribute(&links, logs, messages);
            marked.extend(links.iter().copied());
        }
        self.log_drained();
        self.mark(marked);
    }

    /// Ends what links were sent with a mark.
    fn mark(&mut self, links: impl IntoIterator<Item = LinkTag>) {
        let position = self.replica.position();
        if let Ok(bytes) = Frame::from(Mark { position, caught_up: false }).encode() {
            for link in links {
                self.send_bytes(link, bytes.clone());
                if let Some(link) = self.links.get_mut(&link) {
                    link.out.marked = position;
                    link.out.marks += 1;
                }
            }
        }
    }

    /// Sends messages, with how many updates each holds, to links and the log.
    fn distribute(&mut self, links: &[LinkTag], logs: bool, messages: Vec<(Bytes, u64)>) {
        for (bytes, count) in messages {
            if logs {
                self.log_message(&bytes);
            }
            for &link in links {
                self.stats(link).sent_updates += count;
                self.send_bytes(link, bytes.clone());
            }
        }
    }

    /// Sends what a link has missed, and makes it live.
    fn conflated(&mut self, tag: LinkTag, states: Vec<(SlotId, SlotState)>) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        link.out.mode = Mode::Live;
        let ids = std::mem::take(&mut link.out.entries);
        let after = std::mem::take(&mut link.out.after);
        let caught_up = std::mem::take(&mut link.out.caught_up);
        let completes = caught_up | std::mem::take(&mut link.out.completes);
        let held = std::mem::take(&mut link.out.held);
        let mut parcels = vec![(None, states), (held.root, held.states.into_iter().collect())];
        parcels.retain(|(_, states)| !states.is_empty());
        let entries: Vec<Entry> = ids.into_iter().filter_map(|id| self.replica.entry(id)).collect();
        if caught_up || !parcels.is_empty() || !entries.is_empty() {
            let position = self.replica.position();
            link.out.marked = position;
            link.out.marks += 1;
            let mut messages = Vec::new();
            for (root, states) in parcels {
                self.define(tag, states.iter().map(|(slot, _)| *slot));
                messages.extend(self.encode_states(root, &states));
            }
            messages.extend(self.encode_entries(&entries));
            self.distribute(&[tag], false, messages);
            self.send(tag, &Mark { position, caught_up }.into());
        }
        if let Some(link) = self.links.get_mut(&tag).filter(|_| completes) {
            link.out.past.get_or_insert(link.out.marks);
        }
        for frame in after {
            self.send(tag, &frame);
        }
    }

    /// Sends pages of a snapshot while the link has room.
    fn pages(&mut self, tag: LinkTag) {
        while let Some(link) = self.links.get_mut(&tag) {
            let Mode::Snapshot(from) = link.out.mode else { return };
            if link.out.in_flight > self.config.window / 2 {
                return;
            }
            let page = self.replica.scan(from, 0, self.config.page);
            link.out.mode = page.next.map_or(Mode::CatchUp, Mode::Snapshot);
            self.define(tag, page.states.iter().map(|(slot, _)| *slot));
            for (bytes, count) in self.encode_states(None, &page.states) {
                self.stats(tag).sent_updates += count;
                self.send_bytes(tag, bytes);
            }
            // The rest, and the mark, need a drain of their own.
            self.applied |= page.next.is_none();
        }
    }

    /// Tells a link the keys of slots whose numbers it does not know.
    fn define(&mut self, tag: LinkTag, slots: impl Iterator<Item = SlotId>) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        let mut keys = Vec::new();
        for slot in slots.filter(|slot| !link.out.defined.contains(*slot)) {
            if let Some(key) = self.replica.key(slot) {
                keys.push((slot, key));
            }
        }
        keys.sort_unstable_by_key(|(slot, _)| *slot);
        keys.dedup_by_key(|(slot, _)| *slot);
        for (slot, _) in &keys {
            link.out.defined.insert(*slot);
        }
        for keys in keys.chunks(self.config.page.max(1)) {
            match codec::encode_keys(keys) {
                Ok(keys) => self.send(tag, &Define { keys }.into()),
                Err(error) => self.complain(tag, error),
            }
        }
    }
}

/// What was written here, with the units that overtook some of it: those that say so, and those that changed a slot of
/// which only a part is of here.
fn own_unit(changes: Vec<Change>, units: &[Unit]) -> Vec<(SlotId, SlotState)> {
    let mut parts = BTreeSet::new();
    let mut own = Vec::new();
    for Change { slot, state, own: part } in changes {
        match part {
            Own::Nothing => continue,
            Own::All => own.push((slot, state)),
            Own::Part(part) => {
                parts.insert(slot);
                if !part.is_empty() {
                    own.push((slot, part));
                }
            }
        }
    }
    let meets = |unit: &&Unit| unit.overtook || unit.states.iter().any(|(slot, _)| parts.contains(slot));
    if !own.is_empty() {
        // What was missed goes to all but the source's neighbors anyway.
        let overtaking = units.iter().filter(|unit| unit.root.is_some()).filter(meets);
        own.extend(overtaking.flat_map(|unit| unit.states.iter().cloned()));
    }
    own
}

/// Sorts states by slot and joins those of one slot.
fn join_equal(states: &mut Vec<(SlotId, SlotState)>) {
    states.sort_by_key(|(slot, _)| *slot);
    states.dedup_by(|(slot, state), (kept, into)| {
        let same = slot == kept;
        if same {
            into.join(state);
        }
        same
    });
}
