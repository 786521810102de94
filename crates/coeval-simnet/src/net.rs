//! The simulated network: any number of sans-IO machines, one virtual clock, one source of randomness.
//!
//! Each link has a reliable, ordered lane (a lost packet delays what follows it, as QUIC's retransmission does) and
//! datagrams (lost, repeated, reordered). A receiver that does not read holds its sender up. A link
//! whose packets find no way for [`IDLE_TIMEOUT`], or whose other end stands still for as long, goes down at both ends.
mod conditions;
mod faults;
mod happening;
mod lane;
mod link;

pub use conditions::{Conditions, IDLE_TIMEOUT, Site};
pub use faults::{FaultKind, Faults};

use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_sync::{Effect, Input, LinkPeer, Machine, Now};
use coeval_time::{MonoTime, WallDuration};
use happening::{Happening, Scheduled, What};
use lane::End;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// Events at one virtual instant that no honest mesh needs: a machine asks to be called again for ever.
const LIVELOCK: u64 = 1_000_000;

struct Place<M> {
    machine: Option<M>,
    peer: Option<LinkPeer>,
    life: u32,
    timer: Option<MonoTime>,
    /// Stands still since then; what happened meanwhile.
    paused: Option<(u64, Vec<Scheduled>)>,
    /// Does not read its links: what lies there unread.
    unread: Option<Vec<Scheduled>>,
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
    /// Ways on which the next lane message is lost for good.
    losing: BTreeSet<(Site, Site)>,
    conditions: Conditions,
    /// Ways that are unlike the others.
    ways: BTreeMap<(Site, Site), Conditions>,
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
    /// A mesh of `sites` places at virtual time 1 s, all vacant.
    pub fn new(rng: ChaCha8Rng, conditions: Conditions, sites: usize) -> Self {
        let vacant =
            |_| Place { machine: None, peer: None, life: 0, timer: None, paused: None, unread: None };
        Self {
            places: (0..sites).map(vacant).collect(),
            ends: BTreeMap::new(),
            held: BTreeMap::new(),
            blocked: BTreeMap::new(),
            cut: BTreeSet::new(),
            losing: BTreeSet::new(),
            conditions,
            ways: BTreeMap::new(),
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

    /// Replaces the mesh's randomness from here on.
    pub fn reseed(&mut self, rng: ChaCha8Rng) {
        self.rng = rng;
    }

    /// What was done to the mesh so far.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Counts what was done to the mesh from outside.
    pub fn count(&mut self, kind: FaultKind) {
        self.faults.count(kind);
    }

    /// Message and datagram bytes handed to the network so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A hash over all that happened so far: equal for two runs exactly when they are the same.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no place.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether a machine is stopped.
    pub fn is_paused(&self, site: Site) -> bool {
        self.places[site].paused.is_some()
    }

    /// Whether there ever was a machine at a site.
    pub fn was_open(&self, site: Site) -> bool {
        self.places[site].peer.is_some()
    }

    /// Changes the network from now on, on all ways.
    pub fn set_conditions(&mut self, conditions: Conditions) {
        self.conditions = conditions;
        self.ways.clear();
    }

    /// Makes one way unlike the others from now on.
    pub fn set_way(&mut self, from: Site, to: Site, conditions: Conditions) {
        self.ways.insert((from, to), conditions);
    }

    fn conditions(&self, from: Site, to: Site) -> Conditions {
        self.ways.get(&(from, to)).copied().unwrap_or(self.conditions)
    }

    /// Puts a machine where there is none; its address is its site's number as text.
    pub fn open(&mut self, site: Site, machine: M, mut peer: LinkPeer) {
        peer.addresses = vec![site.to_string()];
        let place = &mut self.places[site];
        place.machine = Some(machine);
        place.peer = Some(peer);
        self.rearm(site);
    }

    /// The machine at a site; `None` while there is none.
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

    /// The machine at `site` is called at once, as by its timer.
    pub fn prompt(&mut self, site: Site) {
        self.input(site, Input::Wake);
        self.input(site, Input::Timer);
    }

    /// Cuts or heals the way from `from` to `to` (one direction); whether that changed anything.
    pub fn cut(&mut self, from: Site, to: Site, cut: bool) -> bool {
        if cut {
            return self.cut.insert((from, to));
        }
        let healed = self.cut.remove(&(from, to));
        self.release();
        healed
    }

    /// Heals every cut.
    pub fn heal(&mut self) {
        self.cut.clear();
        self.release();
    }

    fn is_cut(&self, from: Site, to: Site) -> bool {
        self.cut.contains(&(from, to))
    }

    /// The next lane message from `from` to `to` is lost for good, as no honest transport does.
    pub fn lose_next(&mut self, from: Site, to: Site) {
        self.losing.insert((from, to));
    }

    /// Ends the machine at `site`; links it has not closed go down at the other ends after the idle time-out.
    pub fn end(&mut self, site: Site) -> Option<M> {
        let place = &mut self.places[site];
        place.life += 1;
        place.timer = None;
        place.paused = None;
        place.unread = None;
        let machine = place.machine.take();
        self.abandon(site);
        machine
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
        self.faults.count(FaultKind::Paused);
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
        if !reads && place.machine.is_some() && place.unread.is_none() {
            place.unread = Some(Vec::new());
            self.faults.count(FaultKind::Stalled);
        } else if let Some(waiting) = place.unread.take_if(|_| reads) {
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
        if let Some(unread) = place.unread.as_mut().filter(|_| event.what.arrives()) {
            unread.push(event);
            return;
        }
        let site = event.site;
        self.trace = event.what.note(self.trace, self.now, site);
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

    /// Something for one end of a link; what the machine is to hear of it.
    fn link(&mut self, tag: LinkTag, what: Happening) -> Option<Input> {
        let end = self.ends.get(&tag).copied()?;
        Some(match what {
            Happening::Up { peer, dialed } => Input::LinkUp { link: tag, peer, dialed },
            Happening::Message { bytes } => {
                let at = self.now + self.one_way(end.site, end.other_site);
                let credit = Happening::Credit { bytes: bytes.len() };
                self.schedule(at, end.other_site, What::Link { tag: end.other, what: credit });
                Input::Message { link: tag, bytes }
            }
            Happening::Datagram { bytes } => Input::Datagram { link: tag, bytes },
            Happening::Sent { bytes } => Input::Sent { link: tag, bytes },
            Happening::Down { reason } => {
                self.remove(tag);
                self.faults.count(FaultKind::LinkDown);
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
                let to = addresses.iter().find_map(|address| address.parse().ok()).unwrap_or(site);
                let at = self.now + self.one_way(site, to) + self.one_way(to, site);
                self.schedule(at, site, What::Dialed { to: node, addresses });
            }
            Effect::Rename { node } => {
                if let Some(peer) = &mut self.places[site].peer {
                    peer.node = node;
                }
            }
        }
    }

    fn one_way(&mut self, from: Site, to: Site) -> u64 {
        let Conditions { delay, jitter, .. } = self.conditions(from, to);
        delay + if jitter > 0 { self.rng.random_range(0..=jitter) } else { 0 }
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
