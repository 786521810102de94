//! The way out: drains the replica, encodes each group of changes once, and hands it to every link that it is for.
//!
//! A link has one of three ways. *Live*: each delta as it is drained. *Behind*: only the numbers of changed slots are
//! noted, and when the link has room it takes one conflated delta. *Snapshot*: pages of everything for an empty
//! receiver, as fast as the link takes them, then one conflated delta of what changed meanwhile.
//!
//! A conflated delta lies at a batch boundary: its slots are read first and the replica is drained after; whatever a
//! batch changed in between is in the drain, whose states replace those that were read.
use crate::Sync;
use crate::codec;
use crate::link::Mode;
use crate::notice::Notice;
use bytes::Bytes;
use coeval_faults::{Fault, active};
use coeval_merge::{Change, Drained, Entry, LinkTag, Origin, Replica, SlotId, SlotState};
use coeval_time::{Incarnation, Stamp};
use coeval_value::{NodeId, Value};
use coeval_wire::Frame;
use coeval_wire::frame::{Define, Delta, Entries, Mark};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Parked fragments to be passed on though the replica does not hold them.
#[derive(Default)]
pub(crate) struct Extra {
    pub(crate) states: Vec<(Origin, SlotId, SlotState)>,
    pub(crate) entries: Vec<(Origin, Entry)>,
}

/// States and entries for one set of links.
#[derive(Default)]
struct Group {
    states: Vec<(SlotId, SlotState)>,
    extra: Vec<(SlotId, SlotState)>,
    entries: Vec<Entry>,
    extra_entries: Vec<Entry>,
}

/// Links by how a change reaches them.
type Targets = BTreeMap<Option<(LinkTag, Incarnation)>, Rc<[LinkTag]>>;
/// What goes to which live links.
type Groups = BTreeMap<Rc<[LinkTag]>, Group>;
/// What links that are behind take with this drain.
type Reads = BTreeMap<LinkTag, BTreeMap<SlotId, SlotState>>;

impl<R: Replica> Sync<R> {
    /// Whether a link that is not live has room for more.
    pub(crate) fn has_room(&self) -> bool {
        let low = self.config.window / 2;
        self.log_has_room()
            || self
                .links
                .values()
                .any(|l| matches!(l.out.mode, Mode::Behind | Mode::Snapshot(_)) && l.out.in_flight <= low)
    }

    /// Drains the replica and sends what there is to send.
    pub(crate) fn pump(&mut self) {
        self.applied = false;
        let mut reads = self.read_behind();
        for link in self.links.values_mut().filter(|link| link.out.in_flight > self.config.window) {
            link.out.fall_behind();
        }
        let mut log = self.read_log();
        let drained = self.replica.drain();
        self.note_log(&drained, &mut log);
        let groups = self.group(drained, &mut reads);
        self.fan_out(groups);
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
    fn read_behind(&mut self) -> Reads {
        let low = self.config.window / 2;
        let mut reads = Reads::new();
        for (tag, link) in &mut self.links {
            if link.out.mode == Mode::Behind && link.out.in_flight <= low {
                let dirty = std::mem::take(&mut link.out.dirty);
                let states = dirty.into_iter().filter_map(|slot| Some((slot, self.replica.read(slot)?)));
                reads.insert(*tag, states.collect());
            }
        }
        reads
    }

    /// Sorts changes by the live links that they are for; notes them at the others.
    fn group(&mut self, drained: Drained, reads: &mut Reads) -> Groups {
        let mut groups = Groups::new();
        let mut targets = Targets::new();
        self.mend(&drained, reads, &mut targets);
        let all_live = self.links.values().all(|link| link.out.mode == Mode::Live);
        let mut planned: Vec<Rc<[LinkTag]>> =
            drained.changes.iter().map(|change| self.targets(change.origin, &mut targets)).collect();
        keep_whole(&drained.changes, &mut planned);
        // What is for no link is for the log.
        let logs = self.log_is_live();
        for (change, all) in drained.changes.into_iter().zip(planned) {
            let live = if all_live { all } else { self.place(&all, change.slot, &change.state, reads) };
            if logs || !live.is_empty() {
                groups.entry(live).or_default().states.push((change.slot, change.state));
            }
        }
        for (origin, entry) in drained.entries {
            let all = self.targets(origin, &mut targets);
            for tag in all.iter() {
                if let Some(link) = self.links.get_mut(tag).filter(|link| link.out.mode != Mode::Live) {
                    link.out.entries.insert(entry.id);
                }
            }
            groups.entry(self.live(&all)).or_default().entries.push(entry);
        }
        let extra = std::mem::take(&mut self.extra);
        for (origin, slot, state) in extra.states {
            let all = self.targets(origin, &mut targets);
            groups.entry(self.live(&all)).or_default().extra.push((slot, state));
        }
        for (origin, entry) in extra.entries {
            let all = self.targets(origin, &mut targets);
            groups.entry(self.live(&all)).or_default().extra_entries.push(entry);
        }
        groups.retain(|links, _| logs || !links.is_empty());
        groups
    }

    fn live(&self, all: &[LinkTag]) -> Rc<[LinkTag]> {
        all.iter().copied().filter(|tag| self.is_live(*tag)).collect()
    }

    fn is_live(&self, tag: LinkTag) -> bool {
        self.links.get(&tag).is_some_and(|link| link.out.mode == Mode::Live)
    }

    /// Gives a change to links that are not live; returns those that are.
    fn place(
        &mut self,
        all: &[LinkTag],
        slot: SlotId,
        state: &SlotState,
        reads: &mut Reads,
    ) -> Rc<[LinkTag]> {
        let mut live = Vec::with_capacity(all.len());
        for &tag in all {
            let Some(link) = self.links.get_mut(&tag) else { continue };
            match (link.out.mode, reads.get_mut(&tag)) {
                (Mode::Live, _) => live.push(tag),
                (_, Some(read)) => {
                    read.insert(slot, state.clone());
                }
                (Mode::Behind, None) if active(Fault::SlowLinkDrops) => {}
                (Mode::Behind, None) => {
                    if !link.out.dirty.insert(slot) {
                        self.stats(tag).conflated += 1;
                    }
                }
                (Mode::Snapshot(next), None) => {
                    if slot < next && !active(Fault::SnapshotMissesWrites) {
                        link.out.dirty.insert(slot);
                    }
                }
                (Mode::Greeting, None) => {}
            }
        }
        live.into()
    }

    /// If a conflated delta holds a slot that this drain changed without being for that link, it takes the whole
    /// drain: else it would hold a part of a batch. The same for the delta that a lagging link will take: it reads the
    /// slots as they are then.
    fn mend(&mut self, drained: &Drained, reads: &mut Reads, targets: &mut Targets) {
        for tag in self.tags() {
            if let Some(read) = reads.get_mut(&tag) {
                if self.tears(tag, drained, targets, |slot| read.contains_key(&slot)) {
                    read.extend(drained.changes.iter().map(|change| (change.slot, change.state.clone())));
                }
                continue;
            }
            let Some(link) = self.links.get_mut(&tag).filter(|link| !link.out.dirty.is_empty()) else {
                continue;
            };
            let mut dirty = std::mem::take(&mut link.out.dirty);
            if self.tears(tag, drained, targets, |slot| dirty.contains(&slot)) {
                dirty.extend(drained.changes.iter().map(|change| change.slot));
            }
            if let Some(link) = self.links.get_mut(&tag) {
                link.out.dirty = dirty;
            }
        }
    }

    /// Whether a drain changed a slot that a link is to get anyway, in a change that is not for that link.
    fn tears(
        &mut self,
        tag: LinkTag,
        drained: &Drained,
        targets: &mut Targets,
        gets: impl Fn(SlotId) -> bool,
    ) -> bool {
        let mut changes = drained.changes.iter().filter(|change| gets(change.slot));
        changes.any(|change| !self.targets(change.origin, targets).contains(&tag))
    }

    /// The links that a change is for.
    fn targets(&mut self, origin: Origin, known: &mut Targets) -> Rc<[LinkTag]> {
        let key = match origin {
            Origin::Local => None,
            Origin::Remote { link, author } => Some((link, author)),
        };
        if let Some(targets) = known.get(&key) {
            return targets.clone();
        }
        let source = key.and_then(|(link, _)| self.links.get(&link)).map(|link| link.peer.node);
        let links: Vec<(LinkTag, NodeId)> =
            self.links.iter().map(|(tag, link)| (*tag, link.peer.node)).collect();
        let forwards = |this: &mut Self, node| match key {
            None => true,
            Some((_, author)) => this.forwards(author, source, node),
        };
        let targets: Rc<[LinkTag]> =
            links.into_iter().filter(|(_, node)| forwards(self, *node)).map(|(tag, _)| tag).collect();
        known.insert(key, targets.clone());
        targets
    }

    /// Whether a change by `author` that came from `source` goes on to `node`.
    ///
    /// Each change travels the shortest-path tree of its author: to a neighbor that has no link to the author and
    /// whose parent in that tree is this node. Of an author who is gone there is no tree: then to every neighbor
    /// that has no link to the source, which is where it would have got it.
    fn forwards(&mut self, author: Incarnation, source: Option<NodeId>, node: NodeId) -> bool {
        let me = self.me.node;
        if source == Some(node) || self.me.observer {
            return false;
        }
        if active(Fault::ForwardedToAll) {
            return true;
        }
        let graph = self.members.graph();
        let root = graph.node_of(author).filter(|root| *root != me && graph.distances(me).contains_key(root));
        match root {
            Some(root) if root == node || graph.linked(node, root) => false,
            Some(root) => graph.parent(node, root).is_none_or(|parent| parent == me),
            None => source.is_none_or(|source| !graph.linked(node, source)),
        }
    }

    /// Encodes each group once and sends it to all its links, then the mark.
    fn fan_out(&mut self, groups: Groups) {
        let mut marked = BTreeSet::new();
        let logs = self.log_is_live();
        for (links, group) in groups {
            // What is parked is for the links only: it is no part of the state yet.
            for (states, logs) in [(&group.states, logs), (&group.extra, false)] {
                for &link in links.iter() {
                    self.define(link, states.iter().map(|(slot, _)| *slot));
                }
                if logs {
                    self.log_define(states.iter().map(|(slot, _)| *slot));
                }
                let messages = self.encode_states(states);
                self.distribute(&links, logs, messages);
            }
            for (entries, logs) in [(&group.entries, logs), (&group.extra_entries, false)] {
                let messages = self.encode_entries(entries);
                self.distribute(&links, logs, messages);
            }
            marked.extend(links.iter().copied());
        }
        self.log_drained();
        let position = self.replica.position();
        if let Ok(bytes) = Frame::from(Mark { position, caught_up: false }).encode() {
            for link in marked {
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

    /// Sends one conflated delta and makes the link live.
    fn conflated(&mut self, tag: LinkTag, states: Vec<(SlotId, SlotState)>) {
        let Some(link) = self.links.get_mut(&tag) else { return };
        link.out.mode = Mode::Live;
        let ids = std::mem::take(&mut link.out.entries);
        let after = std::mem::take(&mut link.out.after);
        let caught_up = std::mem::take(&mut link.out.caught_up);
        let completes = caught_up | std::mem::take(&mut link.out.completes);
        let entries: Vec<Entry> = ids.into_iter().filter_map(|id| self.replica.entry(id)).collect();
        if caught_up || !states.is_empty() || !entries.is_empty() {
            let position = self.replica.position();
            link.out.marked = position;
            link.out.marks += 1;
            self.define(tag, states.iter().map(|(slot, _)| *slot));
            let messages = self.encode_states(&states).into_iter().chain(self.encode_entries(&entries));
            for (bytes, count) in messages.collect::<Vec<_>>() {
                self.stats(tag).sent_updates += count;
                self.send_bytes(tag, bytes);
            }
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
            link.out.mode = page.next.map_or(Mode::Behind, Mode::Snapshot);
            self.define(tag, page.states.iter().map(|(slot, _)| *slot));
            for (bytes, count) in self.encode_states(&page.states) {
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

    /// Delta messages of states, each about a chunk long, with how many states each holds.
    pub(crate) fn encode_states(&mut self, states: &[(SlotId, SlotState)]) -> Vec<(Bytes, u64)> {
        let mut out = Vec::new();
        let mut rest = states;
        while !rest.is_empty() {
            let count = fit(rest, self.config.chunk, |(_, state)| state_size(state));
            let (now, later) = rest.split_at(count);
            rest = later;
            match delta(now) {
                Ok(bytes) => out.push((bytes, count as u64)),
                // One state that cannot be sent must not hold back the others.
                Err(_) if count > 1 => {
                    for state in now.chunks(1) {
                        match delta(state) {
                            Ok(bytes) => out.push((bytes, 1)),
                            Err(message) => self.unsent(message),
                        }
                    }
                }
                Err(message) => self.unsent(message),
            }
        }
        out
    }

    /// Messages of entries, each about a chunk long, with how many entries each holds.
    pub(crate) fn encode_entries(&mut self, entries: &[Entry]) -> Vec<(Bytes, u64)> {
        let mut out = Vec::new();
        let mut rest = entries;
        while !rest.is_empty() {
            let count = fit(rest, self.config.chunk, entry_size);
            let (now, later) = rest.split_at(count);
            rest = later;
            let message = codec::encode_entries(now).and_then(|entries| {
                Frame::from(Entries { entries }).encode().map_err(|error| error.to_string())
            });
            match message {
                Ok(bytes) => out.push((bytes, count as u64)),
                Err(message) => self.unsent(message),
            }
        }
        out
    }

    pub(crate) fn unsent(&mut self, message: String) {
        tracing::warn!(message, "not sent");
        self.notices.push_back(Notice::Error { node: self.me.node, message });
    }
}

/// One message of a delta.
fn delta(states: &[(SlotId, SlotState)]) -> Result<Bytes, String> {
    let states = codec::encode_states(states)?;
    Frame::from(Delta { states }).encode().map_err(|error| error.to_string())
}

/// Lets what one batch wrote go to the same links. Parts of it differ in origin when one of them was also changed by
/// someone else; the links of either then get all.
fn keep_whole(changes: &[Change], planned: &mut [Rc<[LinkTag]>]) {
    let mut differ = planned.windows(2).any(|pair| pair[0] != pair[1]) && !active(Fault::TornByForwarding);
    while std::mem::take(&mut differ) {
        let mut of: BTreeMap<Stamp, BTreeSet<LinkTag>> = BTreeMap::new();
        for (change, links) in changes.iter().zip(&*planned) {
            for stamp in stamps_in(&change.state) {
                of.entry(stamp).or_default().extend(links.iter());
            }
        }
        for (change, links) in changes.iter().zip(&mut *planned) {
            let all: BTreeSet<LinkTag> =
                stamps_in(&change.state).filter_map(|stamp| of.get(&stamp)).flatten().copied().collect();
            if all.len() > links.len() {
                *links = all.into_iter().collect();
                differ = true;
            }
        }
    }
}

/// The stamps in a state.
pub(crate) fn stamps_in(state: &SlotState) -> impl Iterator<Item = Stamp> + use<> {
    let all = match state {
        SlotState::Life(life) => [life.created, life.deleted, Stamp::NONE],
        SlotState::Node(node) => {
            [node.leaf.as_ref().map_or(Stamp::NONE, |leaf| leaf.stamp), node.floor, node.kind]
        }
    };
    all.into_iter().filter(|stamp| !stamp.is_none())
}

/// How many items from the front take about `bytes`; at least one.
fn fit<T>(items: &[T], bytes: usize, size: impl Fn(&T) -> usize) -> usize {
    let mut total = 0;
    let fits = items.iter().take_while(|item| {
        total += size(item);
        total <= bytes
    });
    fits.count().max(1)
}

/// About how many bytes a state takes on the wire.
fn state_size(state: &SlotState) -> usize {
    match state {
        SlotState::Life(_) => 24,
        SlotState::Node(node) => 48 + node.leaf.as_ref().map_or(0, |leaf| value_size(&leaf.value)),
    }
}

fn entry_size(entry: &Entry) -> usize {
    match &entry.body {
        coeval_merge::EntryBody::Clock(_) => 64,
        coeval_merge::EntryBody::Record { topic, value } => 32 + topic.len() + value_size(value),
    }
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len() + 4,
        Value::Bytes(bytes) => bytes.len() + 4,
        Value::Ints(items) => items.len() * 8,
        Value::UInts(items) => items.len() * 8,
        Value::Floats(items) => items.len() * 8,
        Value::Floats32(items) => items.len() * 4,
        Value::Matrix(matrix) => matrix.elements.len() * 8 + 8,
        Value::List(items) => items.iter().map(value_size).sum::<usize>() + 4,
        Value::Map(map) => {
            map.iter().map(|(key, value)| key.as_str().len() + value_size(value)).sum::<usize>() + 4
        }
        Value::Motion(_) => 180,
        _ => 40,
    }
}
