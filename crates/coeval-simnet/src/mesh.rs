//! A mesh of programs: who is linked to whom, who falls and comes back, and what was done to it.
mod layout;
mod look;
mod rest;
mod writes;

pub use layout::{Layout, Plan, Topology};
pub use look::LARGE;
pub(crate) use rest::unacknowledged;

use crate::check::{Check, Violation};
use crate::ledger::Ledger;
use crate::net::{FaultKind, Net, Site};
use crate::program::{Admitted, Program, SentEvent, Setup, Story};
use crate::timepiece::VirtualTime;
use crate::witness::Twins;
use coeval_faults::{Fault, active};
use coeval_journal::SimDisk;
use coeval_merge::{Op, SlotKey, SlotState};
use coeval_sync::{Config, EventNotice, LinkPeer};
use coeval_time::{Incarnation, MonoTime, Stamp, WallDuration};
use coeval_value::{NodeId, Path, PeerId, SIM_ENTITY, Value};
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is left of a program that ended.
pub struct Fallen {
    /// Who it was.
    pub node: NodeId,
    /// Of each of its writes: who had acknowledged it.
    pub acked: BTreeMap<Stamp, BTreeSet<NodeId>>,
    /// Where it ran.
    pub site: Site,
    /// Those of its writes that its journal had safely.
    pub durable: BTreeSet<Stamp>,
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
    /// The links that are wanted at present.
    pub layout: Layout,
    /// Every batch that a store took.
    pub ledger: Ledger,
    /// Clock edits and records, by the stamp of their batch.
    pub entries: BTreeMap<Stamp, usize>,
    /// Programs that ended.
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
    issued: BTreeSet<Stamp>,
    incarnations: BTreeSet<Incarnation>,
    /// Parameters and entities ever written to, maps above and below included.
    pub touched: BTreeSet<SlotKey>,
    /// Writes whose stamps were too far ahead of right session time when they were made.
    pub parked: BTreeSet<Stamp>,
    /// By how much the OS clock of a site was set back in all, nanoseconds.
    set_back: BTreeMap<Site, i64>,
    /// The highest stamps that the machines of ended programs remember, and when they ended.
    floors: BTreeMap<Site, (u64, MonoTime)>,
    /// The disks of machines whose programs keep a journal.
    disks: BTreeMap<Site, SimDisk>,
    /// States as links send them, some of each run.
    pub flown: Vec<(SlotKey, SlotState)>,
}

impl Mesh {
    /// A mesh of nobody yet.
    pub fn new(seed: u64, plan: Plan, twins: Twins) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut net = Net::new(ChaCha8Rng::from_rng(&mut rng), plan.conditions, plan.skews.len());
        for &((from, to), conditions) in &plan.ways {
            net.set_way(from, to, conditions);
        }
        let peers = plan.skews.iter().map(|_| PeerId(rng.random())).collect();
        let time = VirtualTime::default();
        time.set(net.now().as_nanos());
        Self {
            net,
            layout: Layout { shape: plan.topology, turn: 0 },
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
            issued: BTreeSet::new(),
            incarnations: BTreeSet::new(),
            touched: BTreeSet::new(),
            set_back: BTreeMap::new(),
            parked: BTreeSet::new(),
            floors: BTreeMap::new(),
            disks: BTreeMap::new(),
            flown: Vec::new(),
        }
    }

    /// The randomness of what is done and of the network from here on: it depends on nothing that was done before.
    pub fn reseed(&mut self, seed: u64) {
        self.rng = ChaCha8Rng::seed_from_u64(seed);
        self.net.reseed(ChaCha8Rng::seed_from_u64(!seed));
    }

    /// Opens a program at `site`, for the first time or again: with an empty replica, as a new incarnation.
    pub fn open(&mut self, site: Site) {
        if self.plan.absent.contains(&site) || self.program(site).is_some() {
            return;
        }
        // Fresh each time it opens, unless a fault is in.
        let fresh = self.rng.next_u64() | 2;
        let incarnation =
            Incarnation(if active(Fault::DuplicateIncarnation) { 2 + site as u64 } else { fresh });
        if !self.incarnations.insert(incarnation) {
            self.violate(Check::StampsAreUnique, format!("{incarnation:?} is used again"));
        }
        let me = LinkPeer {
            node: NodeId { peer: self.peers[site], incarnation },
            name: format!("site {site}"),
            addresses: vec![site.to_string()],
            observer: self.plan.observers.contains(&site),
        };
        // Where no one is left whose session time could be taken, a host with a right clock opens the session again.
        let hosts = !self.live().into_iter().any(|site| self.program(site).is_some_and(Program::is_open));
        let mut skew = self.plan.skews[site];
        if hosts && skew.follows {
            skew.offset = WallDuration::ZERO;
        }
        let late = !self.ledger.0.is_empty();
        let program = Program::new(Setup {
            me: me.clone(),
            skew,
            time: self.time.clone(),
            config: Config { mesh: self.plan.topology == Topology::Full, ..self.plan.config.clone() },
            hosts,
            admitted: Arc::clone(&self.admitted),
            twins: self.twins.clone(),
            limits: self.plan.limits,
            late,
            stamp_floor: self.floors.get(&site).map(|(stamp, _)| *stamp).unwrap_or_default(),
            disk: self.disk(site),
            story: self.story.clone(),
        });
        self.tell(|| format!("site {site} opens as {}", me.node.short()));
        for (kind, is) in [
            (FaultKind::ClockOffset, skew.offset != WallDuration::ZERO),
            (FaultKind::ClockDrift, skew.drift_ppm != 0),
            (FaultKind::Observed, me.observer),
            (FaultKind::Restarted, self.net.was_open(site)),
            (FaultKind::JoinedLate, late && !self.net.was_open(site)),
        ] {
            if is {
                self.net.count(kind);
            }
        }
        self.net.open(site, program, me);
    }

    fn disk(&mut self, site: Site) -> Option<SimDisk> {
        let capacity = *self.plan.journals.get(&site)?;
        let disk = self.disks.entry(site).or_insert_with(|| {
            let disk = SimDisk::new();
            disk.set_capacity(capacity);
            disk
        });
        Some(disk.clone())
    }

    /// Makes room on all disks.
    pub fn widen_disks(&mut self) {
        self.disks.values().for_each(|disk| disk.set_capacity(None));
        self.plan.journals.values_mut().for_each(|capacity| *capacity = None);
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
        let Some(acked) = self.program(site).map(acknowledged) else { return };
        self.net.count(FaultKind::Crashed);
        self.bury(site, acked);
    }

    /// A program says that it leaves, and ends. A process that stands still cannot.
    pub fn leave(&mut self, site: Site) {
        if self.net.is_paused(site) || self.program(site).is_none() {
            return;
        }
        self.net.prompt(site);
        let Some(acked) = self.program(site).map(acknowledged) else { return };
        if let Some(program) = self.net.machine_mut(site) {
            program.sync.leave();
        }
        self.net.prompt(site);
        self.net.count(FaultKind::Left);
        self.bury(site, acked);
    }

    fn bury(&mut self, site: Site, acked: BTreeMap<Stamp, BTreeSet<NodeId>>) {
        let Some(program) = self.net.end(site) else { return };
        self.violations.extend(program.violations.iter().cloned());
        // Some machines remember how far their stamps went, as a journal does; some lose everything.
        if self.rng.random_bool(0.5) {
            self.floors.insert(site, (program.store.latest_stamp(), self.net.now()));
        } else {
            self.floors.remove(&site);
        }
        let node = program.node();
        let log = program.sync.log_status();
        let safe = log.as_ref().and_then(|log| log.durable).unwrap_or(0);
        let durable =
            program.placed.iter().filter(|(_, position)| **position <= safe).map(|(stamp, _)| *stamp);
        let durable = durable.collect();
        if log.is_some_and(|log| log.failures > 0) {
            self.net.count(FaultKind::DiskFull);
        }
        if let Some(disk) = self.disks.get(&site) {
            // A process ends, or the machine with it.
            if self.rng.random_bool(0.5) {
                disk.crash(&mut self.rng);
                self.net.count(FaultKind::JournalTorn);
            }
        }
        let (sent, received) = (program.sent, program.received);
        self.fallen.push(Fallen { node, acked, site, durable, sent, received });
    }

    /// Opens a program again. Where the machine remembers how far its stamps went, its OS clock may show a time before it
    /// ended, and be set right only after its threads have written something.
    pub fn reopen(&mut self, site: Site) {
        if self.program(site).is_some() {
            return;
        }
        let mut back = 0;
        let early = self.rng.random_bool(0.2) && !self.plan.skews[site].follows;
        if let Some((_, ended)) = self.floors.get(&site).filter(|_| early) {
            back = self.net.now().since(*ended).as_nanos() + self.rng.random_range(0..500_000_000);
        }
        let skew = self.plan.skews[site];
        self.plan.skews[site].offset = WallDuration::from_nanos(skew.offset.as_nanos() - back);
        self.open(site);
        self.plan.skews[site] = skew;
        if back > 0 && self.writers().contains(&site) {
            let path = Path::parse(&format!("opened/{site}")).expect("a path");
            let op = Op::Set { entity: SIM_ENTITY, path, value: Value::UInt(self.operations) };
            _ = self.write(site, vec![(op, false)], None);
        }
        if back > 0
            && let Some(program) = self.program(site)
        {
            program.time.step(WallDuration::from_nanos(back));
            self.net.count(FaultKind::ClockStepped);
        }
    }

    /// Somebody sets the OS clock of a site. It stays set when its program opens again.
    pub fn step_clock(&mut self, site: Site, by: WallDuration) {
        let Some(program) = self.net.machine(site) else { return };
        program.time.step(by);
        *self.set_back.entry(site).or_default() += (-by.as_nanos()).max(0);
        let offset = &mut self.plan.skews[site].offset;
        *offset = WallDuration::from_nanos(offset.as_nanos().saturating_add(by.as_nanos()));
        self.net.count(FaultKind::ClockStepped);
    }

    /// The OS clock of a site stands still, or runs on as if it never had.
    pub fn freeze_clock(&mut self, site: Site, frozen: bool) {
        let Some(program) = self.net.machine(site) else { return };
        program.time.freeze(frozen);
        if frozen {
            self.net.count(FaultKind::ClockFroze);
        }
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

    /// Those of the open sites that may write.
    pub fn writers(&self) -> Vec<Site> {
        self.open_sites().into_iter().filter(|site| !self.plan.observers.contains(site)).collect()
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
        self.net.run_until(MonoTime::from_nanos(nanos));
        self.time.set(self.net.now().as_nanos());
    }

    /// Cuts or heals the ways from some sites to all others, and back.
    pub fn part(&mut self, inside: impl Fn(Site) -> bool, both: bool, cut: bool) {
        let count = self.net.len();
        let mut changed = false;
        for (a, b) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
            if inside(a) && !inside(b) {
                changed |= self.net.cut(a, b, cut);
                changed |= both && self.net.cut(b, a, cut);
            }
        }
        if cut && changed {
            self.net.count(if both { FaultKind::CutTwoWay } else { FaultKind::CutOneWay });
        }
    }

    /// Lays the mesh out anew: links that are not wanted any more are torn down, missing ones laid.
    pub fn lay(&mut self, layout: Layout) {
        let sites = self.plan.sites();
        let wanted = layout.edges(&sites);
        for edge in self.layout.edges(&sites).into_iter().filter(|edge| !wanted.contains(edge)) {
            self.net.tear_down(edge.0, edge.1);
        }
        if layout != self.layout {
            self.net.count(FaultKind::Relaid);
        }
        self.layout = layout;
        self.tend();
    }

    /// What whoever runs the programs does now and then: dials the links that the layout wants and that are missing.
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
        for (a, b) in self.layout.edges(&self.plan.sites()) {
            if up.contains(&a) && up.contains(&b) && !(self.is_linked(a, b) && self.is_linked(b, a)) {
                let (from, to) = if self.rng.random_bool(0.5) { (a, b) } else { (b, a) };
                self.net.dial(from, to);
            }
        }
    }

    /// The greatest group of writers that know each other, and one site of each other group.
    fn strangers(&self, up: &[Site]) -> (Vec<Site>, Vec<Site>) {
        let knows: BTreeMap<Site, BTreeSet<NodeId>> = up
            .iter()
            .filter_map(|site| {
                let rows = self.program(*site)?.sync.peers();
                Some((*site, rows.iter().map(|row| row.node).collect()))
            })
            .collect();
        let node = |site: &Site| self.program(*site).map(Program::node).unwrap_or_default();
        let acquainted = |a: &Site, b: &Site| knows[a].contains(&node(b)) || knows[b].contains(&node(a));
        let mut groups: Vec<Vec<Site>> = Vec::new();
        // Nobody gets to know anyone through who only reads.
        let (readers, writers): (Vec<_>, Vec<_>) =
            up.iter().copied().partition(|site| self.plan.observers.contains(site));
        for site in &writers {
            let (mine, others): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| group.iter().any(|other| acquainted(site, other)));
            groups = others;
            groups.push(mine.into_iter().flatten().chain([*site]).collect());
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let lonely = readers.into_iter().filter(|site| !writers.iter().any(|other| acquainted(site, other)));
        let lonely: Vec<Site> = lonely.collect();
        let mut groups = groups.into_iter();
        let first = groups.next().unwrap_or_default();
        (first, groups.filter_map(|group| group.first().copied()).chain(lonely).collect())
    }

    fn is_linked(&self, a: Site, b: Site) -> bool {
        let Some(other) = self.program(b).map(Program::node) else { return false };
        self.program(a).is_some_and(|program| program.sync.link_to(other).is_some())
    }

    /// Notes a violation of the mesh as a whole.
    pub fn violate(&mut self, check: Check, detail: String) {
        self.violations.push(Violation { check, node: None, detail });
    }
}

/// Who has acknowledged which of a program's writes.
fn acknowledged(program: &Program) -> BTreeMap<Stamp, BTreeSet<NodeId>> {
    let mut flushed: BTreeMap<u64, BTreeSet<NodeId>> = BTreeMap::new();
    let placed = program.placed.iter().map(|(stamp, position)| {
        let by = flushed.entry(*position).or_insert_with(|| {
            let by = program.sync.flushed(*position).into_iter();
            by.filter(|(_, done)| *done).map(|(node, _)| node).collect()
        });
        (*stamp, by.clone())
    });
    let placed: Vec<_> = placed.collect();
    placed.into_iter().chain(program.unplaced.iter().map(|stamp| (*stamp, BTreeSet::new()))).collect()
}
