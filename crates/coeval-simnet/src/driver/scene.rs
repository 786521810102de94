//! One seed from its first dial to its verdict: a phase of faults, a phase without in which all must come to rest, a
//! write from each that must reach all at once, and the end of all processes.
use crate::driver::network::{Fate, Network, Weather};
use crate::driver::tasks::Halt;
use crate::driver::world::{Process, World};
use crate::ledger::{difference, shown};
use crate::net::Site;
use crate::workload::random_value;
use coeval_merge::{Op, Replica};
use coeval_quic::Conditioner;
use coeval_time::Stamp;
use coeval_value::{EntityId, NodeId, Path, SIM_ENTITY, Value};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All must be at rest this long after the last fault. A silent link is given up after 10 s, a dial after as long, and
/// between two dials that failed lie up to 30 s.
const BOUND: Duration = Duration::from_secs(120);
/// A write in fair weather has reached all by then: twice the way through a relay, and the driver's timers.
const AT_ONCE: Duration = Duration::from_millis(100);
/// QUIC has forgotten a closed connection by then: three times the longest answer that a stopped process gave, and more.
const LINGER: Duration = Duration::from_secs(600);
/// How often whoever runs the programs looks after them.
const TEND: Duration = Duration::from_millis(250);

/// How large a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Most sites; at least two.
    pub sites: usize,
    /// Longest phase of faults, seconds of virtual time.
    pub seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { sites: 5, seconds: 30 }
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was broken; empty: all held.
    pub violations: Vec<String>,
    /// Operations done.
    pub operations: u64,
    /// What was done, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What became of the datagrams.
    pub fates: BTreeMap<Fate, u64>,
    /// Virtual time at the end, s.
    pub virtual_seconds: f64,
    /// How long all took to come to rest, s.
    pub settled_after: f64,
    /// Hash of the times, sizes and fates of all datagrams and of all inputs of the machines.
    pub trace: u64,
    /// What happened, line by line.
    pub story: Vec<String>,
}

/// Runs a seed in a runtime of its own, on this thread.
///
/// # Panics
/// When tokio cannot build a runtime.
pub fn run(seed: u64, options: Options) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O").block_on(async {
        let mut scene = Scene::new(seed, options);
        tokio::spawn(scene.world.network.clone().deliver());
        scene.faults().await;
        let settled_after = scene.calm().await;
        scene.verdict();
        scene.world.end().await;
        let Scene { world, .. } = scene;
        Outcome {
            seed,
            operations: world.operations,
            fates: world.network.fates(),
            virtual_seconds: world.now().as_secs_f64(),
            settled_after,
            trace: world.network.trace(),
            violations: world.violations,
            faults: world.faults,
            story: world.story,
        }
    })
}

struct Scene {
    world: World,
    entities: Vec<EntityId>,
    length: Duration,
}

impl Scene {
    fn new(seed: u64, options: Options) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let sites = rng.random_range(2..=options.sites.max(2));
        // The first can be dialed by all; whoever cannot be dialed is reached by dialing.
        let translated: BTreeSet<Site> = (1..sites).filter(|_| rng.random_bool(0.25)).collect();
        let network = Network::new(rng.random(), sites, &translated);
        let window = *[16 << 10, 64 << 10, 256 << 10].choose(&mut rng).unwrap_or(&(64 << 10));
        let config = coeval_sync::Config {
            window,
            lost_after: coeval_time::WallDuration::from_secs(2),
            ..coeval_sync::Config::default()
        };
        let entities = (0..3).map(|_| EntityId::v7(1_700_000_000_000, rng.random())).collect();
        let length = Duration::from_secs(rng.random_range(3..=options.seconds.max(3)));
        let mut world = World::new(rng.random(), sites, network, config);
        world.story.push(format!("{sites} sites, translated: {translated:?}, window {window}"));
        Self { world, entities, length }
    }

    async fn faults(&mut self) {
        let created: Vec<Op> = self.entities.iter().map(|&entity| Op::Create { entity }).collect();
        let founders = self.world.rng.random_range(2..=self.world.processes.len());
        for site in 0..founders {
            self.world.open(site);
        }
        _ = self.world.write(0, &created);
        let (start, mut tended) = (tokio::time::Instant::now(), tokio::time::Instant::now());
        while start.elapsed() < self.length {
            let pause = Duration::from_millis(self.world.rng.random_range(1..60));
            self.world.pass(pause).await;
            if tended.elapsed() >= TEND {
                tended = tokio::time::Instant::now();
                self.world.tend();
            }
            self.step();
        }
    }

    fn step(&mut self) {
        let Some(&site) = self.world.awake().choose(&mut self.world.rng) else { return };
        match self.world.rng.random_range(0..1_000) {
            0..80 => self.world.send_event(site),
            80..90 => self.flood(site),
            90..110 => self.create(site),
            110..125 => self.delete(site),
            125..250 => self.batch(site),
            250..800 => self.set(site),
            _ => self.fault(site),
        }
    }

    fn fault(&mut self, site: Site) {
        let sites = self.world.processes.len();
        let other = self.world.rng.random_range(0..sites);
        match self.world.rng.random_range(0..100) {
            0..20 => self.weather(),
            20..34 if site != other => {
                self.world.fault("cut", (site, other));
                self.world.network.cut(site, other, true);
                if self.world.rng.random_bool(0.5) {
                    self.world.network.cut(other, site, true);
                }
            }
            34..50 => self.world.network.mend(),
            50..55 if self.world.live().len() > 1 => {
                self.world.fault("killed", site);
                self.world.kill(site);
            }
            55..58 if self.world.live().len() > 1 => {
                self.world.fault("left", site);
                self.world.leave(site);
            }
            58..72 if self.world.process(other).is_none() => {
                self.world.fault("opened", other);
                self.world.open(other);
            }
            72..82 => self.halt(site),
            82..90 => self.go_on(),
            90..95 if self.world.network.is_translated(other) => {
                self.world.fault("translated anew", other);
                self.world.network.translate_anew(other);
            }
            95.. => self.condition(site),
            _ => {}
        }
    }

    fn weather(&mut self) {
        let rng = &mut self.world.rng;
        let mut share = |most: f64| if rng.random_bool(0.5) { rng.random_range(0.0..most) } else { 0.0 };
        let (loss, duplicate) = (share(0.3), share(0.2));
        let rates = [None, None, Some(200_000), Some(2_000_000), Some(20_000_000)];
        let weather = Weather {
            delay: Duration::from_micros(rng.random_range(0..150_000)),
            jitter: Duration::from_micros(rng.random_range(0..80_000)),
            loss,
            duplicate,
            bandwidth: *rates.choose(rng).unwrap_or(&None),
            mtu: *[1_280, 1_500, 9_000, 65_535].choose(rng).unwrap_or(&1_500),
        };
        self.world.fault("weather", weather);
        self.world.network.set_weather(weather);
    }

    fn halt(&mut self, site: Site) {
        let (what, halt) = match self.world.rng.random_bool(0.5) {
            true => ("process stopped", Halt::Process),
            false => ("loop stalled", Halt::Loop),
        };
        self.world.fault(what, site);
        if let Some(process) = self.world.process(site) {
            process.tasks.halt(halt);
        }
    }

    fn go_on(&mut self) {
        for site in self.world.live() {
            if let Some(process) = self.world.process(site) {
                process.tasks.halt(Halt::No);
            }
        }
    }

    fn condition(&mut self, site: Site) {
        let rng = &mut self.world.rng;
        let conditioner = Conditioner {
            delay: Duration::from_millis(rng.random_range(0..50)),
            jitter: Duration::from_millis(rng.random_range(0..20)),
            loss: rng.random_range(0.0..0.1),
            duplicate: rng.random_range(0.0..0.1),
            bandwidth: None,
        };
        self.world.fault("conditioned", site);
        if let Some(process) = self.world.process(site) {
            process.io.conditioner().set(conditioner);
        }
    }

    fn entity(&mut self) -> EntityId {
        *self.entities.choose(&mut self.world.rng).unwrap_or(&SIM_ENTITY)
    }

    fn set_op(&mut self, keys: u32, value: Option<Value>) -> Op {
        let entity = self.entity();
        let rng = &mut self.world.rng;
        let path = Path::parse(&format!("k{}", rng.random_range(0..keys))).expect("a path");
        let value = value.unwrap_or_else(|| random_value(rng, 1));
        Op::Set { entity, path, value }
    }

    fn set(&mut self, site: Site) {
        let op = self.set_op(20, None);
        _ = self.world.write(site, &[op]);
    }

    fn batch(&mut self, site: Site) {
        let mut ops: Vec<Op> = (0..3).map(|_| self.set_op(20, None)).collect();
        let (entity, path) = (self.entity(), Path::parse("k1").expect("a path"));
        ops.push(Op::Remove { entity, path });
        _ = self.world.write(site, &ops);
    }

    /// More than links and windows hold.
    fn flood(&mut self, site: Site) {
        self.world.fault("flood", site);
        for n in 0..150_u32 {
            let value = Value::Bytes(vec![n as u8; 4_000].into_iter().collect());
            let op = self.set_op(200, Some(value));
            _ = self.world.write(site, &[op]);
        }
    }

    fn create(&mut self, site: Site) {
        let entity = EntityId::v7(1_700_000_000_000, self.world.rng.random());
        if self.world.write(site, &[Op::Create { entity }]).is_ok() {
            self.entities.push(entity);
        }
    }

    fn delete(&mut self, site: Site) {
        let Some(&entity) = self.entities[1..].choose(&mut self.world.rng) else { return };
        _ = self.world.write(site, &[Op::Delete { entity }]);
    }

    /// Faults end; how long it takes until all is at rest, s.
    async fn calm(&mut self) -> f64 {
        let world = &mut self.world;
        world.story.push(format!("{:.3} faults end", world.now().as_secs_f64()));
        world.network.mend();
        world.network.set_weather(Weather::FAIR);
        for process in world.processes.iter().flatten() {
            process.tasks.halt(Halt::No);
            process.io.conditioner().set(Conditioner::default());
        }
        let start = tokio::time::Instant::now();
        while let Some(reason) = self.astir() {
            if start.elapsed() > BOUND {
                self.world.violations.push(format!("not at rest after {BOUND:?}: {reason}"));
                return start.elapsed().as_secs_f64();
            }
            for site in 0..self.world.processes.len() {
                if self.world.process(site).is_none() {
                    self.world.open(site);
                }
            }
            self.world.tend();
            self.world.pass(TEND).await;
        }
        let settled = start.elapsed().as_secs_f64();
        self.speak_once().await;
        self.forget_closed().await;
        settled
    }

    fn astir(&self) -> Option<String> {
        let missing = self.world.processes.iter().position(Option::is_none);
        missing.map(|site| format!("site {site} is not open")).or_else(|| self.world.unrest())
    }

    /// How much longer it takes until all have heard of what a site wrote.
    async fn until_heard(&mut self, site: usize) -> String {
        let start = self.world.now();
        for _ in 0..100 {
            self.world.pass(AT_ONCE).await;
            if self.world.unheard(site).is_none() {
                return format!("it took {:.3} s more", self.world.now().as_secs_f64() - start.as_secs_f64());
            }
        }
        "it never did".to_owned()
    }

    /// Each in turn writes once, out of silence: nothing but the bell tells the driver.
    async fn speak_once(&mut self) {
        for site in self.world.live() {
            self.world.pass(Duration::from_millis(1_370)).await;
            let entity = SIM_ENTITY;
            let op =
                Op::Set { entity, path: Path::parse("said").expect("a path"), value: Value::from("once") };
            if let Err(error) = self.world.write(site, &[op]) {
                self.world.violations.push(format!("site {site} cannot write: {error}"));
            }
            self.world.send_event(site);
            self.world.pass(AT_ONCE).await;
            if let Some(reason) = self.world.unheard(site) {
                let late = self.until_heard(site).await;
                let detail =
                    format!("what site {site} wrote had not arrived after {AT_ONCE:?}: {reason}; {late}");
                self.world.violations.push(detail);
            }
        }
    }

    /// At rest no connection stays that is no link.
    async fn forget_closed(&mut self) {
        let start = tokio::time::Instant::now();
        while let Some(lingers) = self.world.processes.iter().flatten().find(|p| p.lingering() > 0) {
            if start.elapsed() > LINGER {
                let (count, of) = (lingers.lingering(), lingers.seat.program().sync.node().short());
                self.world.violations.push(format!("{count} connections of {of} linger on"));
                return;
            }
            self.world.pass(TEND).await;
        }
    }

    fn verdict(&mut self) {
        let world = &self.world;
        let processes: Vec<&Process> = world.processes.iter().flatten().collect();
        let living: BTreeSet<NodeId> = processes.iter().map(|p| p.seat.program().sync.node()).collect();
        let mut found = replicas(world, &processes, &living);
        found.extend(events(world, &processes));
        for process in processes {
            let program = process.seat.program();
            let me = program.sync.node().short();
            found.extend(program.errors.iter().map(|error| format!("{me} heard an error: {error}")));
            let refused: u64 = program.sync.peers().iter().map(|row| row.stats.refused).sum();
            if refused > 0 {
                found.push(format!("{me} refused {refused} fragments"));
            }
        }
        self.world.violations.extend(found);
    }
}

/// Every replica shows what replaying the surviving batches shows: those of the living, those that the living had
/// acknowledged, and those that are there.
fn replicas(world: &World, processes: &[&Process], living: &BTreeSet<NodeId>) -> Vec<String> {
    let Some(first) = processes.first() else { return Vec::new() };
    let entities: BTreeSet<EntityId> = world.ledger.created().into_iter().chain([SIM_ENTITY]).collect();
    let there: BTreeSet<Stamp> = {
        let program = first.seat.program();
        let slots = entities.iter().flat_map(|entity| program.store.summary(*entity));
        slots.flat_map(|slot| [slot.first, slot.floor, slot.kind]).collect()
    };
    let fallen = world.fallen.iter().flat_map(|fallen| &fallen.acknowledged);
    let acknowledged: BTreeSet<Stamp> =
        fallen.filter(|(_, by)| !by.is_disjoint(living)).map(|(stamp, _)| *stamp).collect();
    let authors: BTreeSet<_> = living.iter().map(|node| node.incarnation).collect();
    let surviving = world.ledger.only(|stamp| {
        authors.contains(&stamp.writer) || acknowledged.contains(&stamp) || there.contains(&stamp)
    });
    let (want, plain) = (surviving.replay(), surviving.plain());
    let mut found = Vec::new();
    for process in processes {
        let program = process.seat.program();
        let snapshot = program.store.snapshot();
        let got: BTreeMap<_, _> = snapshot.entities().map(|(id, view)| (id, shown(view))).collect();
        if got != want {
            let differs = difference(&*program.store, &plain, &entities);
            let me = program.sync.node().short();
            found.push(format!("{me} shows something else than the replay: {differs:?}"));
        }
    }
    found
}

/// Events arrived once, in order, and only at those who were here.
fn events(world: &World, processes: &[&Process]) -> Vec<String> {
    let mut all: Vec<_> = world.fallen.iter().map(|f| (f.node, f.sent.clone(), f.received.clone())).collect();
    all.extend(processes.iter().map(|process| {
        let program = process.seat.program();
        (program.sync.node(), program.sent.clone(), program.received.clone())
    }));
    let sent: BTreeMap<_, _> =
        all.iter().flat_map(|(node, sent, _)| sent.iter().map(move |e| ((*node, e.number), e))).collect();
    let mut found = Vec::new();
    for (node, _, received) in &all {
        let mut last: BTreeMap<NodeId, u64> = BTreeMap::new();
        for event in received {
            let before = last.insert(event.id.from, event.id.number).unwrap_or_default();
            let known = sent.get(&(event.id.from, event.id.number));
            let meant = event.id.from == *node || known.is_some_and(|sent| sent.to.contains(node));
            if event.id.number <= before || !meant || known.is_none_or(|sent| sent.value != event.value) {
                let (from, number) = (event.id.from.short(), event.id.number);
                found.push(format!("event {number} of {from} at {} is not as it was sent", node.short()));
            }
        }
    }
    found
}
