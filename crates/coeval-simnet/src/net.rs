//! The simulated network: any number of sans-IO machines, one virtual clock, one source of randomness.
//!
//! Each link has a reliable, ordered lane (a lost packet delays what follows it, as QUIC's retransmission does) and
//! datagrams (lost, repeated, reordered). A receiver that does not read holds its sender up. A link
//! whose packets find no way for [`IDLE_TIMEOUT`], or whose other end stands still for as long, goes down at both ends.
use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_sync::{CloseReason, Effect, Input, LinkPeer, Machine, Now};
use coeval_time::{MonoTime, WallDuration};
use coeval_value::NodeId;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A link that delivers nothing for this long goes down, s.
pub const IDLE_TIMEOUT: WallDuration = WallDuration::from_secs(10);

/// Events at one virtual instant that no honest mesh needs: a machine asks to be called again for ever.
const LIVELOCK: u64 = 1_000_000;

/// One peer's place in the mesh: an index, kept over restarts.
pub type Site = usize;

/// What a network does to packets. Times in nanoseconds of virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Least one-way delay.
    pub delay: u64,
    /// Most that is added to the delay, at random.
    pub jitter: u64,
    /// Chance that a packet is lost, 0 to 0.9: a lane sends again until it gets through.
    pub loss: f64,
    /// Chance that a datagram arrives twice, 0 to 1.
    pub duplicate: f64,
    /// Bytes per second of one direction of a link.
    pub bandwidth: u64,
    /// Bytes on a lane that its receiver has not read, at which the sender's transport takes no more.
    pub receive_window: usize,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            delay: 1_000_000,
            jitter: 0,
            loss: 0.0,
            duplicate: 0.0,
            bandwidth: 100_000_000,
            receive_window: 256 << 10,
        }
    }
}

#[derive(Debug)]
enum Happening {
    Message {
        bytes: Bytes,
    },
    Datagram {
        bytes: Bytes,
    },
    Sent {
        bytes: usize,
    },
    Up {
        peer: LinkPeer,
        dialed: bool,
    },
    Down {
        reason: String,
    },
    /// The receiver has read that many bytes of the lane.
    Credit {
        bytes: usize,
    },
    /// The idle time-out of a lane that is held up since then.
    Idle {
        since: u64,
    },
    /// The idle time-out of a link whose other end stands still since then.
    Silent {
        since: u64,
    },
}

#[derive(Debug)]
enum What {
    /// Something for one end of a link.
    Link { tag: LinkTag, what: Happening },
    /// A dial reaches the other side, or fails.
    Dialed { to: NodeId, addresses: Vec<String> },
    /// A machine's timer may be due.
    Timer,
    /// A machine's replica has changes.
    Wake,
}

/// Ordered by time, then by the order in which things were scheduled.
#[derive(Debug)]
struct Scheduled {
    at: u64,
    order: u64,
    site: Site,
    life: u32,
    what: What,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// One end of a link.
#[derive(Clone, Copy, Debug)]
struct End {
    site: Site,
    other: LinkTag,
    other_site: Site,
    /// When the lane's last queued byte has left, and when its last message arrives.
    busy_until: u64,
    arrives: u64,
    /// When the last datagram arrives.
    datagram_arrives: u64,
    /// Bytes of the lane that left and were not read yet.
    unread: usize,
}

struct Place<M> {
    machine: Option<M>,
    peer: LinkPeer,
    life: u32,
    timer: Option<MonoTime>,
    /// Stands still since then; what happened meanwhile.
    paused: Option<(u64, Vec<Scheduled>)>,
    /// Does not read its links: what lies there unread.
    unread: Option<Vec<Scheduled>>,
}

/// Counters of what was done to packets, to know that a run tried what it meant to try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Packets of a lane lost and sent again.
    pub lost: u64,
    /// Datagrams lost.
    pub datagrams_lost: u64,
    /// Datagrams delivered twice.
    pub duplicated: u64,
    /// Datagrams that overtook an earlier one of their link.
    pub reordered: u64,
    /// Packets held up by a partition.
    pub partitioned: u64,
    /// Messages held up because their receiver does not read.
    pub blocked: u64,
    /// Ways cut.
    pub cuts: u64,
    /// Links that went down.
    pub links_down: u64,
    /// Dials that were not answered.
    pub dials_failed: u64,
    /// Machines crashed.
    pub crashes: u64,
    /// Machines stopped for a while.
    pub pauses: u64,
}

impl Faults {
    /// All counters by name.
    pub fn by_name(&self) -> [(&'static str, u64); 11] {
        [
            ("lost", self.lost),
            ("datagrams_lost", self.datagrams_lost),
            ("duplicated", self.duplicated),
            ("reordered", self.reordered),
            ("partitioned", self.partitioned),
            ("blocked", self.blocked),
            ("cuts", self.cuts),
            ("links_down", self.links_down),
            ("dials_failed", self.dials_failed),
            ("crashes", self.crashes),
            ("pauses", self.pauses),
        ]
    }
}

/// A mesh of machines.
pub struct Net<M> {
    places: Vec<Place<M>>,
    ends: BTreeMap<LinkTag, End>,
    /// What a cut holds up, by sending end, with the time since when.
    held: BTreeMap<LinkTag, (u64, Vec<Bytes>)>,
    /// What waits at the sending end until the receiver reads.
    blocked: BTreeMap<LinkTag, VecDeque<Bytes>>,
    cut: BTreeSet<(Site, Site)>,
    conditions: Conditions,
    queue: BinaryHeap<Reverse<Scheduled>>,
    now: u64,
    order: u64,
    next_tag: u64,
    rng: ChaCha8Rng,
    faults: Faults,
    bytes: u64,
    trace: u64,
    /// Events at this instant.
    instant: u64,
}

impl<M: Machine> Net<M> {
    /// An empty mesh at virtual time 1 s.
    pub fn new(rng: ChaCha8Rng, conditions: Conditions) -> Self {
        Self {
            places: Vec::new(),
            ends: BTreeMap::new(),
            held: BTreeMap::new(),
            blocked: BTreeMap::new(),
            cut: BTreeSet::new(),
            conditions,
            queue: BinaryHeap::new(),
            now: 1_000_000_000,
            order: 0,
            next_tag: 1,
            rng,
            faults: Faults::default(),
            bytes: 0,
            trace: 0,
            instant: 0,
        }
    }

    /// Virtual time.
    pub fn now(&self) -> MonoTime {
        MonoTime::from_nanos(self.now)
    }

    /// The mesh's randomness.
    pub fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// What was done to packets so far.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Message and datagram bytes handed to the network so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A hash over all that happened so far: equal for two runs exactly when they are the same.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// How many machines there are, crashed ones included.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no machine.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether a machine is stopped.
    pub fn is_paused(&self, site: Site) -> bool {
        self.places[site].paused.is_some()
    }

    /// Changes the network from now on.
    pub fn set_conditions(&mut self, conditions: Conditions) {
        self.conditions = conditions;
    }

    /// Adds a machine; its address is its site's number as text.
    pub fn add(&mut self, machine: M, mut peer: LinkPeer) -> Site {
        let site = self.places.len();
        peer.addresses = vec![site.to_string()];
        self.places.push(Place {
            machine: Some(machine),
            peer,
            life: 0,
            timer: None,
            paused: None,
            unread: None,
        });
        self.rearm(site);
        site
    }

    /// The machine at a site; `None` while it is crashed.
    pub fn machine(&self, site: Site) -> Option<&M> {
        self.places[site].machine.as_ref()
    }

    /// The machine at a site, to be changed between events; call [`wake`](Self::wake) after changing its replica.
    pub fn machine_mut(&mut self, site: Site) -> Option<&mut M> {
        self.places[site].machine.as_mut()
    }

    /// Performs the effects a machine asked for outside of [`run_until`](Self::run_until).
    pub fn perform(&mut self, site: Site, effects: Vec<Effect>) {
        for effect in effects {
            self.effect(site, effect);
        }
        self.rearm(site);
    }

    /// The replica at `site` has changes: its machine hears of it at once.
    pub fn wake(&mut self, site: Site) {
        self.schedule(self.now, site, What::Wake);
    }

    /// Asks `from` to dial `to`.
    pub fn dial(&mut self, from: Site, to: Site) {
        let node = self.places[to].peer.node;
        self.effect(from, Effect::Dial { node, addresses: vec![to.to_string()] });
    }

    /// Cuts or heals the way from `from` to `to` (one direction).
    pub fn cut(&mut self, from: Site, to: Site, cut: bool) {
        if cut {
            self.faults.cuts += u64::from(self.cut.insert((from, to)));
        } else {
            self.cut.remove(&(from, to));
            self.release();
        }
    }

    /// Heals every cut.
    pub fn heal(&mut self) {
        self.cut.clear();
        self.release();
    }

    /// Sends on what no cut holds up any more.
    fn release(&mut self) {
        for (link, (since, messages)) in std::mem::take(&mut self.held) {
            let Some(end) = self.ends.get(&link).copied() else { continue };
            if self.cut.contains(&(end.site, end.other_site)) {
                self.held.insert(link, (since, messages));
            } else {
                messages.into_iter().for_each(|bytes| self.transmit(link, bytes));
            }
        }
    }

    /// Kills the machine at `site` without a word; its links go down at the other ends after the idle time-out.
    pub fn crash(&mut self, site: Site) -> Option<M> {
        self.faults.crashes += 1;
        let place = &mut self.places[site];
        place.life += 1;
        place.timer = None;
        place.paused = None;
        place.unread = None;
        let machine = place.machine.take();
        let tags: Vec<_> =
            self.ends.iter().filter(|(_, end)| end.site == site).map(|(tag, _)| *tag).collect();
        for tag in tags {
            if let Some(end) = self.remove(tag) {
                self.fail(end.other, end.other_site, "the peer stopped answering");
            }
        }
        machine
    }

    /// Puts a new machine where one crashed.
    pub fn restart(&mut self, site: Site, machine: M, mut peer: LinkPeer) {
        peer.addresses = vec![site.to_string()];
        let place = &mut self.places[site];
        place.machine = Some(machine);
        place.peer = peer;
        self.rearm(site);
    }

    /// Stops or resumes a process: while stopped, what happens to it waits. Its links go down after the idle time-out.
    pub fn pause(&mut self, site: Site, paused: bool) {
        if self.places[site].paused.is_some() == paused || self.places[site].machine.is_none() {
            return;
        }
        let since = self.now;
        if !paused {
            let (_, waiting) = self.places[site].paused.take().unwrap_or_default();
            waiting.into_iter().for_each(|event| self.requeue(event));
            return;
        }
        self.faults.pauses += 1;
        self.places[site].paused = Some((since, Vec::new()));
        let others: Vec<_> = self.ends.values().filter(|end| end.other_site == site).copied().collect();
        for end in others {
            let Some(tag) = self.ends.get(&end.other).map(|back| back.other) else { continue };
            let at = since + IDLE_TIMEOUT.as_nanos().unsigned_abs();
            self.schedule(at, end.site, What::Link { tag, what: Happening::Silent { since } });
        }
    }

    /// Lets a machine read its links or not: what arrives meanwhile waits, and holds its sender up.
    pub fn read(&mut self, site: Site, reads: bool) {
        let place = &mut self.places[site];
        if !reads {
            place.unread.get_or_insert_with(Vec::new);
        } else if let Some(waiting) = place.unread.take() {
            waiting.into_iter().for_each(|event| self.requeue(event));
        }
    }

    /// Runs until virtual time `until`.
    pub fn run_until(&mut self, until: MonoTime) {
        while self.queue.peek().is_some_and(|Reverse(next)| next.at <= until.as_nanos()) {
            let Some(Reverse(event)) = self.queue.pop() else { break };
            self.instant = if event.at > self.now { 0 } else { self.instant + 1 };
            assert!(self.instant < LIVELOCK, "the mesh does not get beyond virtual time {} ns", self.now);
            self.now = event.at.max(self.now);
            self.happen(event);
        }
        self.now = self.now.max(until.as_nanos());
    }

    /// Runs for `by`.
    pub fn run_for(&mut self, by: WallDuration) {
        self.run_until(self.now().saturating_add(by));
    }

    fn happen(&mut self, event: Scheduled) {
        let place = &mut self.places[event.site];
        if place.life != event.life || place.machine.is_none() {
            return;
        }
        if let Some((_, waiting)) = &mut place.paused {
            // Others notice a silent end; it does not notice itself.
            if !matches!(event.what, What::Timer) || waiting.iter().all(|e| !matches!(e.what, What::Timer)) {
                waiting.push(event);
            }
            return;
        }
        let arrival = |what: &What| {
            matches!(what, What::Link { what: Happening::Message { .. } | Happening::Datagram { .. }, .. })
        };
        if let Some(unread) = place.unread.as_mut().filter(|_| arrival(&event.what)) {
            unread.push(event);
            return;
        }
        let site = event.site;
        self.note(site, &event.what);
        match event.what {
            What::Timer => {
                if self.places[site].timer.is_some_and(|due| due.as_nanos() <= self.now) {
                    self.places[site].timer = None;
                    self.input(site, Input::Timer);
                }
            }
            What::Wake => self.input(site, Input::Wake),
            What::Dialed { to, addresses } => self.dialed(site, to, &addresses),
            What::Link { tag, what } => {
                if let Some(input) = self.link(tag, what) {
                    self.input(site, input);
                }
            }
        }
    }

    /// Adds what happens to the hash of the run.
    fn note(&mut self, site: Site, what: &What) {
        let mut head = [0; 25];
        head[..8].copy_from_slice(&self.now.to_le_bytes());
        head[8..16].copy_from_slice(&(site as u64).to_le_bytes());
        let (kind, tag, bytes): (u8, u64, &[u8]) = match what {
            What::Timer => (0, 0, &[]),
            What::Wake => (1, 0, &[]),
            What::Dialed { .. } => (2, 0, &[]),
            What::Link { tag, what } => match what {
                Happening::Message { bytes } => (3, tag.0, bytes),
                Happening::Datagram { bytes } => (4, tag.0, bytes),
                Happening::Down { reason } => (5, tag.0, reason.as_bytes()),
                Happening::Up { .. } => (6, tag.0, &[]),
                _ => (7, tag.0, &[]),
            },
        };
        head[16] = kind;
        head[17..].copy_from_slice(&tag.to_le_bytes());
        self.trace = xxh3_64_with_seed(bytes, xxh3_64_with_seed(&head, self.trace));
    }

    /// Something for one end of a link; what the machine is to hear of it.
    fn link(&mut self, tag: LinkTag, what: Happening) -> Option<Input> {
        let end = self.ends.get(&tag).copied()?;
        Some(match what {
            Happening::Up { peer, dialed } => Input::LinkUp { link: tag, peer, dialed },
            Happening::Message { bytes } => {
                let at = self.now + self.one_way();
                let credit = Happening::Credit { bytes: bytes.len() };
                self.schedule(at, end.other_site, What::Link { tag: end.other, what: credit });
                Input::Message { link: tag, bytes }
            }
            Happening::Datagram { bytes } => Input::Datagram { link: tag, bytes },
            Happening::Sent { bytes } => Input::Sent { link: tag, bytes },
            Happening::Down { reason } => {
                self.remove(tag);
                self.faults.links_down += 1;
                Input::LinkDown { link: tag, reason }
            }
            Happening::Credit { bytes } => {
                self.credit(tag, bytes);
                return None;
            }
            Happening::Idle { since } => {
                if self.held.get(&tag).is_some_and(|(held_since, _)| *held_since == since) {
                    self.time_out(tag, end);
                }
                return None;
            }
            Happening::Silent { since } => {
                if self.places[end.other_site].paused.as_ref().is_some_and(|(then, _)| *then == since) {
                    self.time_out(tag, end);
                }
                return None;
            }
        })
    }

    /// Both ends of a link notice that it is dead.
    fn time_out(&mut self, tag: LinkTag, end: End) {
        for (tag, site) in [(end.other, end.other_site), (tag, end.site)] {
            let reason = "nothing heard within the idle time-out".to_owned();
            self.schedule(self.now, site, What::Link { tag, what: Happening::Down { reason } });
        }
    }

    /// The receiver has read: what was blocked goes on.
    fn credit(&mut self, tag: LinkTag, bytes: usize) {
        if let Some(end) = self.ends.get_mut(&tag) {
            end.unread = end.unread.saturating_sub(bytes);
        }
        while let Some(next) = self.blocked.get(&tag).and_then(|queue| queue.front()).map(Bytes::len) {
            if !self.takes(tag, next) {
                return;
            }
            let bytes = self.blocked.get_mut(&tag).and_then(VecDeque::pop_front);
            bytes.into_iter().for_each(|bytes| self.leave(tag, bytes));
        }
        self.blocked.remove(&tag);
    }

    /// Whether the receiver's window has room.
    fn takes(&self, tag: LinkTag, bytes: usize) -> bool {
        self.ends
            .get(&tag)
            .is_some_and(|end| end.unread == 0 || end.unread + bytes <= self.conditions.receive_window)
    }

    fn remove(&mut self, tag: LinkTag) -> Option<End> {
        self.held.remove(&tag);
        self.blocked.remove(&tag);
        self.ends.remove(&tag)
    }

    fn input(&mut self, site: Site, input: Input) {
        let now = Now { mono: MonoTime::from_nanos(self.now) };
        let Some(machine) = self.places[site].machine.as_mut() else { return };
        let effects = machine.handle(input, now, &mut self.rng);
        self.perform(site, effects);
    }

    fn rearm(&mut self, site: Site) {
        let place = &mut self.places[site];
        let due = place.machine.as_ref().and_then(Machine::next_timer);
        if due != place.timer {
            place.timer = due;
            if let Some(due) = due {
                self.schedule(due.as_nanos().max(self.now), site, What::Timer);
            }
        }
    }

    fn effect(&mut self, site: Site, effect: Effect) {
        match effect {
            Effect::Send { link, bytes } => self.send(link, bytes),
            Effect::Datagram { link, bytes } => self.datagram(link, bytes),
            Effect::Close { link, reason } => self.close(link, &reason),
            Effect::Log { .. } => {}
            Effect::Dial { node, addresses } => {
                let at = self.now + 2 * self.one_way();
                self.schedule(at, site, What::Dialed { to: node, addresses });
            }
        }
    }

    fn one_way(&mut self) -> u64 {
        let Conditions { delay, jitter, .. } = self.conditions;
        delay + if jitter > 0 { self.rng.random_range(0..=jitter) } else { 0 }
    }

    /// A lane message. A cut holds it and all that follow; both ends notice after the idle time-out.
    fn send(&mut self, link: LinkTag, bytes: Bytes) {
        let Some(end) = self.ends.get(&link).copied() else { return };
        self.bytes += bytes.len() as u64;
        if self.cut.contains(&(end.site, end.other_site)) || self.held.contains_key(&link) {
            self.faults.partitioned += 1;
            let since = self.now;
            let (since, held) = self.held.entry(link).or_insert_with(|| (since, Vec::new()));
            held.push(bytes);
            if held.len() == 1 {
                let (at, since) = (*since + IDLE_TIMEOUT.as_nanos().unsigned_abs(), *since);
                self.schedule(at, end.site, What::Link { tag: link, what: Happening::Idle { since } });
            }
            return;
        }
        self.transmit(link, bytes);
    }

    /// Onto the lane, or behind what waits for the receiver to read.
    fn transmit(&mut self, link: LinkTag, bytes: Bytes) {
        if self.blocked.contains_key(&link) || !self.takes(link, bytes.len()) {
            self.faults.blocked += 1;
            self.blocked.entry(link).or_default().push_back(bytes);
        } else {
            self.leave(link, bytes);
        }
    }

    /// Bandwidth first, then delay; each loss costs a retransmission, and what follows waits.
    fn leave(&mut self, link: LinkTag, bytes: Bytes) {
        let Some(end) = self.ends.get(&link).copied() else { return };
        let size = bytes.len();
        let leaves =
            self.now.max(end.busy_until) + (size as u64 + 40) * 1_000_000_000 / self.conditions.bandwidth;
        let mut arrives = leaves + self.one_way();
        while self.rng.random_bool(self.conditions.loss) {
            self.faults.lost += 1;
            arrives += 2 * self.conditions.delay + self.conditions.jitter + 5_000_000;
        }
        let arrives = arrives.max(end.arrives + 1);
        if let Some(end) = self.ends.get_mut(&link) {
            (end.busy_until, end.arrives) = (leaves, arrives);
            end.unread += size;
        }
        self.schedule(leaves, end.site, What::Link { tag: link, what: Happening::Sent { bytes: size } });
        self.schedule(
            arrives,
            end.other_site,
            What::Link { tag: end.other, what: Happening::Message { bytes } },
        );
    }

    fn datagram(&mut self, link: LinkTag, bytes: Bytes) {
        let Some(end) = self.ends.get(&link).copied() else { return };
        self.bytes += bytes.len() as u64;
        let lost = self.rng.random_bool(self.conditions.loss);
        if lost || self.cut.contains(&(end.site, end.other_site)) {
            self.faults.datagrams_lost += 1;
            return;
        }
        let copies = 1 + usize::from(self.rng.random_bool(self.conditions.duplicate));
        self.faults.duplicated += copies as u64 - 1;
        for _ in 0..copies {
            let arrives = self.now + self.one_way();
            if let Some(end) = self.ends.get_mut(&link) {
                self.faults.reordered += u64::from(arrives < end.datagram_arrives);
                end.datagram_arrives = end.datagram_arrives.max(arrives);
            }
            let what = Happening::Datagram { bytes: bytes.clone() };
            self.schedule(arrives, end.other_site, What::Link { tag: end.other, what });
        }
    }

    /// Closes a link from one end. A peer that leaves lets its last messages through; any other close overtakes what is
    /// under way, or not. Through a cut nothing is heard of it.
    fn close(&mut self, link: LinkTag, reason: &CloseReason) {
        let Some(end) = self.remove(link) else { return };
        let mut arrives = self.now + self.one_way();
        if *reason == CloseReason::Left || self.rng.random_bool(0.5) {
            arrives = arrives.max(end.arrives + 1);
        }
        if self.cut.contains(&(end.site, end.other_site)) {
            arrives += IDLE_TIMEOUT.as_nanos().unsigned_abs();
        }
        let what = Happening::Down { reason: reason.to_string() };
        self.schedule(arrives, end.other_site, What::Link { tag: end.other, what });
    }

    fn fail(&mut self, tag: LinkTag, site: Site, reason: &str) {
        let at = self.now + IDLE_TIMEOUT.as_nanos().unsigned_abs();
        self.schedule(at, site, What::Link { tag, what: Happening::Down { reason: reason.to_owned() } });
    }

    fn dialed(&mut self, from: Site, node: NodeId, addresses: &[String]) {
        let to = addresses.iter().find_map(|a| a.parse::<Site>().ok()).filter(|to| {
            *to < self.places.len()
                && *to != from
                && self.places[*to].machine.is_some()
                && self.places[*to].paused.is_none()
                && self.places[*to].peer.node == node
                && !self.cut.contains(&(from, *to))
                && !self.cut.contains(&(*to, from))
        });
        let Some(to) = to else {
            self.faults.dials_failed += 1;
            self.input(from, Input::DialFailed { node, reason: "no answer".into() });
            return;
        };
        let (ours, theirs) = (LinkTag(self.next_tag), LinkTag(self.next_tag + 1));
        self.next_tag += 2;
        // The two ends learn of the link one after the other, in either order; nothing arrives before.
        let up = [self.now + self.one_way() / 2, self.now + self.one_way() / 2];
        let end = |site, other, other_site, arrives| End {
            site,
            other,
            other_site,
            busy_until: 0,
            arrives,
            datagram_arrives: 0,
            unread: 0,
        };
        self.ends.insert(ours, end(from, theirs, to, up[1]));
        self.ends.insert(theirs, end(to, ours, from, up[0]));
        for (at, tag, site, other, dialed) in
            [(up[0], ours, from, to, true), (up[1], theirs, to, from, false)]
        {
            let peer = self.places[other].peer.clone();
            self.schedule(at, site, What::Link { tag, what: Happening::Up { peer, dialed } });
        }
    }

    /// What waited happens now, in the order in which it would have: a lane stays in order whatever held it up.
    fn requeue(&mut self, event: Scheduled) {
        self.queue.push(Reverse(Scheduled { at: self.now, ..event }));
    }

    fn schedule(&mut self, at: u64, site: Site, what: What) {
        self.order += 1;
        let life = self.places[site].life;
        self.queue.push(Reverse(Scheduled { at, order: self.order, site, life, what }));
    }
}
