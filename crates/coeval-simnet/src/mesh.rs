//! A mesh of programs: who is linked to whom, who falls and comes back, and what was done to it.
use crate::check::{Check, Twins, Violation};
use crate::ledger::{Act, Ledger, Record};
use crate::net::{Conditions, Net, Site};
use crate::program::{Admitted, Program, SentEvent, Setup, Story};
use crate::timepiece::{Skew, VirtualTime};
use coeval_merge::{Op, Replica, SlotKey, SlotState};
use coeval_store::WriteError;
use coeval_sync::{Config, Event, EventNotice, LinkPeer, Target};
use coeval_time::{EditKind, Incarnation, Stamp, WallDuration, WallTime};
use coeval_value::{EntityId, NodeId, Path, PeerId, SampleMeta, Value};
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who keeps links to whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Topology {
    /// Everyone to everyone, by the engines' own dialing.
    Full,
    /// Everyone to the first, who relays.
    Star,
    /// Each to the next.
    Line,
    /// Each to the next, the last to the first.
    Ring,
    /// Two cliques, joined by one link.
    Cliques,
}

impl Topology {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Full, Self::Star, Self::Line, Self::Ring, Self::Cliques];

    /// The links among `count` sites.
    pub fn edges(self, count: usize) -> Vec<(Site, Site)> {
        let half = count.div_ceil(2);
        let all = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let linked = |&(a, b): &(Site, Site)| match self {
            Self::Full => true,
            Self::Star => a == 0,
            Self::Line => b == a + 1,
            Self::Ring => b == a + 1 || (a == 0 && b == count - 1),
            Self::Cliques => (a < half) == (b < half) || (a == half - 1 && b == half),
        };
        all.filter(linked).collect()
    }
}

/// How a mesh is laid out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who keeps links to whom.
    pub topology: Topology,
    /// How wrong each site's clocks are; as many as there are sites.
    pub skews: Vec<Skew>,
    /// The network to begin with.
    pub conditions: Conditions,
    /// The engines' settings.
    pub config: Config,
}

/// What is left of a program that fell.
pub struct Fallen {
    /// Who it was.
    pub node: NodeId,
    /// Of each of its writes: who had acknowledged it.
    pub acked: BTreeMap<Stamp, BTreeSet<NodeId>>,
    /// Events that it sent.
    pub sent: Vec<SentEvent>,
    /// Events that it got.
    pub received: Vec<EventNotice>,
}

/// A mesh of programs.
pub struct Mesh {
    /// The network and the programs on it.
    pub net: Net<Program>,
    /// How it is laid out.
    pub plan: Plan,
    /// Every batch that a store took.
    pub ledger: Ledger,
    /// Clock edits and records, by the stamp of their batch.
    pub entries: BTreeMap<Stamp, usize>,
    /// Programs that fell.
    pub fallen: Vec<Fallen>,
    /// What was found wrong with the mesh as a whole.
    pub violations: Vec<Violation>,
    /// Operations done.
    pub operations: u64,
    /// Operations that a store refused, as it should.
    pub refusals: u64,
    /// The randomness of what is done, apart from that of the network.
    pub rng: ChaCha8Rng,
    /// What happened, if anyone wants to read it.
    pub story: Option<Story>,
    twins: Twins,
    time: VirtualTime,
    admitted: Admitted,
    peers: Vec<PeerId>,
    last: BTreeMap<Incarnation, Stamp>,
}

impl Mesh {
    /// A mesh of nobody yet.
    pub fn new(seed: u64, plan: Plan, twins: Twins) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let net = Net::new(ChaCha8Rng::from_rng(&mut rng), plan.conditions);
        let mut peers: Vec<PeerId> = plan.skews.iter().map(|_| PeerId(rng.random())).collect();
        peers.dedup();
        let time = VirtualTime::default();
        time.set(net.now().as_nanos());
        Self {
            net,
            plan,
            ledger: Ledger::default(),
            entries: BTreeMap::new(),
            fallen: Vec::new(),
            violations: Vec::new(),
            operations: 0,
            refusals: 0,
            rng,
            story: None,
            twins,
            time,
            admitted: Admitted::default(),
            peers,
            last: BTreeMap::new(),
        }
    }

    /// Opens a program at `site`, for the first time or again: with an empty replica, as a new incarnation.
    pub fn open(&mut self, site: Site) {
        let incarnation = Incarnation(self.rng.next_u64() | 2);
        let me = LinkPeer {
            node: NodeId { peer: self.peers[site], incarnation },
            name: format!("site {site}"),
            addresses: vec![site.to_string()],
            observer: false,
        };
        let config = Config { mesh: self.plan.topology == Topology::Full, ..self.plan.config.clone() };
        // Where no one is left whose session time could be taken, a host with a right clock opens the session again.
        let hosts = !self.live().into_iter().any(|site| self.program(site).is_some_and(Program::is_open));
        let admitted = Arc::clone(&self.admitted);
        let mut skew = self.plan.skews[site];
        if hosts && skew.follows {
            skew.offset = WallDuration::ZERO;
        }
        let time = self.time.clone();
        let program = Program::new(Setup {
            me: me.clone(),
            skew,
            time,
            config,
            hosts,
            admitted,
            twins: self.twins.clone(),
            story: self.story.clone(),
        });
        self.tell(|| format!("site {site} opens as {}", me.node.short()));
        if site == self.net.len() {
            self.net.add(program, me);
        } else {
            self.net.restart(site, program, me);
        }
    }

    /// Adds a line to the story.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        if let Some(story) = &self.story {
            let at = self.net.now().as_nanos() as f64 * 1e-9;
            story.lock().expect("one thread").push(format!("{at:.6} {}", line()));
        }
    }

    /// Ends a program without a word.
    pub fn crash(&mut self, site: Site) {
        let Some(program) = self.net.crash(site) else { return };
        let placed = program.placed.iter().map(|(stamp, position)| (*stamp, Some(*position)));
        let unplaced = program.unplaced.iter().map(|stamp| (*stamp, None));
        let mut flushed: BTreeMap<u64, BTreeSet<NodeId>> = BTreeMap::new();
        let acked = placed.chain(unplaced).map(|(stamp, position)| {
            let Some(position) = position else { return (stamp, BTreeSet::new()) };
            let by = flushed.entry(position).or_insert_with(|| {
                let by = program.sync.flushed(position).into_iter();
                by.filter(|(_, done)| *done).map(|(node, _)| node).collect()
            });
            (stamp, by.clone())
        });
        let acked = acked.collect();
        self.violations.extend(program.violations.iter().cloned());
        self.fallen.push(Fallen {
            node: program.node(),
            acked,
            sent: program.sent,
            received: program.received,
        });
    }

    /// Sites whose program runs.
    pub fn live(&self) -> Vec<Site> {
        (0..self.net.len()).filter(|site| self.net.machine(*site).is_some()).collect()
    }

    /// Sites whose program runs, is not stopped, and has opened its session.
    pub fn open_sites(&self) -> Vec<Site> {
        let open =
            |site: &Site| !self.net.is_paused(*site) && self.program(*site).is_some_and(Program::is_open);
        (0..self.net.len()).filter(open).collect()
    }

    /// The program at a site, if it runs.
    pub fn program(&self, site: Site) -> Option<&Program> {
        self.net.machine(site)
    }

    /// Runs the mesh for `by`.
    pub fn run_for(&mut self, by: WallDuration) {
        self.net.run_for(by);
        self.time.set(self.net.now().as_nanos());
    }

    /// Runs the mesh until virtual time `nanos`.
    pub fn run_until(&mut self, nanos: u64) {
        self.net.run_until(coeval_time::MonoTime::from_nanos(nanos));
        self.time.set(self.net.now().as_nanos());
    }

    /// What whoever runs the programs does now and then: dials the links that the topology wants and that are missing.
    pub fn tend(&mut self) {
        let up: Vec<Site> = self.live().into_iter().filter(|site| !self.net.is_paused(*site)).collect();
        if self.plan.topology == Topology::Full {
            // As by an invite. Those who know each other find together by themselves; groups that never heard of each
            // other, because who knew both fell, do not.
            let (first, rest) = self.strangers(&up);
            for site in rest {
                if let Some(other) = first.choose(&mut self.rng).copied() {
                    self.net.dial(site, other);
                }
            }
            return;
        }
        for (a, b) in self.plan.topology.edges(self.plan.skews.len()) {
            if up.contains(&a) && up.contains(&b) && !(self.is_linked(a, b) && self.is_linked(b, a)) {
                let (from, to) = if self.rng.random_bool(0.5) { (a, b) } else { (b, a) };
                self.net.dial(from, to);
            }
        }
    }

    /// The greatest group of sites that know each other, and one site of each other group.
    fn strangers(&self, up: &[Site]) -> (Vec<Site>, Vec<Site>) {
        let mut groups: Vec<Vec<Site>> = Vec::new();
        for &site in up {
            let (mine, others): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| group.iter().any(|other| self.acquainted(site, *other)));
            groups = others;
            groups.push(mine.into_iter().flatten().chain([site]).collect());
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let mut groups = groups.into_iter();
        let first = groups.next().unwrap_or_default();
        (first, groups.filter_map(|group| group.first().copied()).collect())
    }

    /// Whether one of two knows the other.
    fn acquainted(&self, a: Site, b: Site) -> bool {
        let (Some(one), Some(two)) = (self.program(a), self.program(b)) else { return false };
        let knows = |who: &Program, whom: NodeId| who.sync.peers().iter().any(|row| row.node == whom);
        knows(one, two.node()) || knows(two, one.node())
    }

    fn is_linked(&self, a: Site, b: Site) -> bool {
        let Some(other) = self.program(b).map(Program::node) else { return false };
        self.program(a).is_some_and(|program| program.sync.link_to(other).is_some())
    }

    /// Notes that something was written at `site`: its engine is woken if the store asks for it.
    fn touch(&mut self, site: Site) {
        if self.program(site).is_some_and(Program::is_rung) {
            self.net.wake(site);
        }
    }

    /// Writes a batch at a site, or by a handle one value, and compares what the store then holds.
    ///
    /// # Errors
    /// What the store says; nothing was written.
    pub fn write(&mut self, site: Site, acts: Vec<Act>, handle: Option<usize>) -> Result<Stamp, WriteError> {
        let Some(program) = self.net.machine_mut(site) else { return Err(WriteError::ForeignContext) };
        let (context, store) = (program.store.context(), Arc::clone(&program.store));
        let written = match (handle, &acts[..]) {
            (Some(handle), [(Op::Set { value, .. }, teleport)]) => {
                let handle = &program.handles[handle];
                if *teleport {
                    handle.teleport(context, value.clone())
                } else {
                    handle.set(context, value.clone())
                }
            }
            (_, [(op, teleport)]) => match op.clone() {
                Op::Create { entity } => store.create_entity(context, entity, None),
                Op::Delete { entity } => store.delete_entity(context, entity),
                Op::Set { entity, path, value } if *teleport => store.teleport(context, entity, &path, value),
                Op::Set { entity, path, value } => store.set(context, entity, &path, value),
                Op::Remove { entity, path } => store.remove(context, entity, &path),
                Op::Replace { entity, path, map } => store.set(context, entity, &path, Value::Map(map)),
            },
            _ => batch(&store, context, &acts),
        };
        self.operations += 1;
        let stamp = written.inspect_err(|_| self.refusals += 1)?;
        let meta = SampleMeta {
            sim: context.sim,
            epoch: context.epoch,
            direction: context.direction,
            discontinuous: false,
        };
        self.issued(site, stamp);
        self.read_back(site, stamp, &acts);
        self.tell(|| format!("site {site} writes {stamp:?}: {acts:?}"));
        self.ledger.note(stamp, Record { acts, meta });
        self.touch(site);
        Ok(stamp)
    }

    /// A stamp was issued at a site.
    fn issued(&mut self, site: Site, stamp: Stamp) {
        let last = self.last.insert(stamp.writer, stamp).unwrap_or_default();
        let Some(program) = self.net.machine_mut(site) else { return };
        program.unplaced.push(stamp);
        if stamp <= last || stamp.writer != program.node().incarnation {
            program.violate(Check::HybridClockGoesOn, format!("{stamp:?} after {last:?}"));
        }
    }

    /// What was just written is what the store holds.
    fn read_back(&mut self, site: Site, stamp: Stamp, acts: &[Act]) {
        let Some(program) = self.net.machine_mut(site) else { return };
        for (op, _) in acts {
            if let Op::Delete { entity } = op {
                program.deleted(*entity);
            }
        }
        let [(Op::Set { entity, path, value }, _)] = acts else { return };
        if matches!(value, Value::Map(_)) {
            return;
        }
        let key = SlotKey { entity: *entity, path: Some(path.clone()) };
        let state = program.store.resolve(&key).ok().and_then(|slot| program.store.read(slot));
        let leaf = match state {
            Some(SlotState::Node(node)) => node.leaf,
            _ => None,
        };
        if leaf.as_ref().is_none_or(|leaf| leaf.stamp != stamp || leaf.value != *value) {
            let detail = format!("{entity} {path} was set to {value:?} at {stamp:?} and holds {leaf:?}");
            program.violate(Check::WritersReadTheirWrites, detail);
        }
    }

    /// Edits the clock at a site.
    pub fn edit_clock(&mut self, site: Site, kinds: &[EditKind], at: Option<WallTime>) {
        let Some(store) = self.program(site).map(|program| Arc::clone(&program.store)) else { return };
        self.operations += 1;
        match store.edit_clock(kinds, at) {
            Ok(edits) => {
                let Some(first) = edits.first() else { return };
                self.issued(site, first.id.stamp);
                self.entries.insert(first.id.stamp, edits.len());
                self.touch(site);
            }
            Err(_) => self.refusals += 1,
        }
    }

    /// Adds a session record at a site.
    pub fn add_record(&mut self, site: Site, topic: &str, value: Value) {
        let Some(store) = self.program(site).map(|program| Arc::clone(&program.store)) else { return };
        self.operations += 1;
        if let Ok(entry) = store.add_record(topic, value) {
            self.issued(site, entry.id.stamp);
            self.entries.insert(entry.id.stamp, 1);
            self.touch(site);
        }
    }

    /// Sends an event from a site.
    pub fn send_event(&mut self, site: Site, target: Target, value: Value, command: bool) {
        let Some(program) = self.net.machine_mut(site) else { return };
        self.operations += 1;
        let sim = program.store.context().sim;
        let event = Event { topic: "signal".into(), target, value: value.clone(), sim, command };
        match program.sync.send_event(event) {
            Ok(number) => {
                let to = match target {
                    Target::Peer(node) => BTreeSet::from([node]),
                    _ => program.present.clone(),
                };
                program.sent.push(SentEvent { number, value, due: to.clone(), to, command });
            }
            Err(_) => self.refusals += 1,
        }
        self.net.perform(site, Vec::new());
    }

    /// A handle on a parameter, kept at the site.
    pub fn hold(&mut self, site: Site, entity: EntityId, path: &Path) {
        let Some(program) = self.net.machine_mut(site) else { return };
        if let Ok(handle) = program.store.param(entity, path) {
            program.handles.push(handle);
        }
    }

    /// Every running program's observer looks at its replica.
    pub fn look(&mut self) {
        for site in self.live() {
            if let Some(program) = self.net.machine_mut(site) {
                program.look();
            }
        }
    }

    /// Why the mesh is not at rest; `None` when all digests are equal, nothing waits, and all are present to all.
    pub fn unrest(&self) -> Option<String> {
        let sites = self.live();
        let programs: Vec<&Program> = sites.iter().filter_map(|site| self.program(*site)).collect();
        let digest = programs.first()?.store.digest();
        let nodes: BTreeSet<NodeId> = programs.iter().map(|program| program.node()).collect();
        for (site, program) in sites.iter().zip(&programs) {
            let others: BTreeSet<NodeId> = nodes.iter().copied().filter(|n| *n != program.node()).collect();
            let waiting = program.sent.iter().find_map(|event| event.waits(program, &programs));
            let reason = if !program.is_open() {
                "it has not found the session's time".to_owned()
            } else if program.store.digest() != digest {
                "its digest differs from the first".to_owned()
            } else if program.is_rung() || !program.unplaced.is_empty() {
                "its store has changes that were not drained".to_owned()
            } else if program.sync.peers().iter().any(|row| row.in_flight > 0) {
                "its transport has not taken everything".to_owned()
            } else if program.sync.parked() > 0 {
                format!("{} fragments are parked", program.sync.parked())
            } else if program.present != others {
                let names =
                    |set: &BTreeSet<NodeId>| set.iter().map(|n| n.short()).collect::<Vec<_>>().join(", ");
                format!("present to it: [{}], here: [{}]", names(&program.present), names(&others))
            } else if let Some(waiting) = waiting {
                waiting
            } else {
                continue;
            };
            return Some(format!("site {site} ({}): {reason}", program.node().short()));
        }
        None
    }

    /// Runs until the mesh is at rest, for at most `bound`; what is still astir then.
    pub fn settle(&mut self, bound: WallDuration) -> Option<String> {
        let end = self.net.now().saturating_add(bound);
        loop {
            self.tend();
            self.run_for(WallDuration::from_millis(250));
            let unrest = self.unrest();
            if unrest.is_none() || self.net.now() >= end {
                return unrest;
            }
        }
    }
}

fn batch(
    store: &coeval_store::Store,
    context: coeval_time::Context,
    acts: &[Act],
) -> Result<Stamp, WriteError> {
    let mut batch = store.batch(context);
    for (op, teleport) in acts {
        match op.clone() {
            Op::Create { entity } => batch.create(entity)?,
            Op::Delete { entity } => batch.delete(entity)?,
            Op::Set { entity, path, value } if *teleport => batch.teleport(entity, &path, value)?,
            Op::Set { entity, path, value } => batch.set(entity, &path, value)?,
            Op::Remove { entity, path } => batch.remove(entity, &path)?,
            Op::Replace { entity, path, map } => batch.replace(entity, &path, BTreeMap::clone(&map))?,
        };
    }
    batch.commit()
}
