//! Processes on the simulated network: they open, fall, stop, leave and come back; and when all of it is at rest.
use crate::driver::network::Network;
use crate::driver::program::{Desk, Invites, Program, Seat, Sent, incarnation};
use crate::driver::tasks::{Halt, Tasks};
use crate::ledger::{Act, Ledger, Record};
use crate::net::Site;
use crate::program::SESSION;
use coeval_merge::Op;
use coeval_quic::simulated::{Place, identity, start};
use coeval_quic::{
    Bell, Config, Dialing, Identity, Invite, InviteId, Io, LinkConditioner, Secret, Target, invite,
};
use coeval_store::WriteError;
use coeval_sync::{EventNotice, Input, LinkPeer, Machine};
use coeval_time::{Stamp, WallDuration};
use coeval_value::{NodeId, SampleMeta, Value};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What members prove to each other.
const KEY: Secret = Secret([7; 32]);
/// How long a process that leaves may take to say so.
pub const LEAVE: Duration = Duration::from_secs(5);
/// What a link may hold beyond the engine's window: what one call of the engine makes, a page or a delta.
const IN_FLIGHT_SLACK: usize = 1 << 20;
/// Tasks of each link: the lane's writer and reader, the reader of datagrams.
const TASKS_PER_LINK: usize = 3;
/// How long tasks of the driver may go on when its loop has ended and nobody drops their runtime: the last words of
/// links, and handshakes under way.
const AFTERMATH: Duration = Duration::from_secs(8);

/// A process.
pub struct Process {
    /// The handle to its driver.
    pub io: Io<Seat>,
    /// What runs in it.
    pub seat: Seat,
    /// Its tasks.
    pub tasks: Tasks,
    run: JoinHandle<()>,
    dialing: Option<Dialing>,
}

impl Process {
    /// Whether the driver has the tasks that its links need and the acceptor, and no more: nothing that is dialed, shaken
    /// hands with or seen off.
    pub fn leaks_nothing(&self) -> bool {
        self.dials_at_most(0)
    }

    /// The same, but for dials of so many nodes.
    pub fn dials_at_most(&self, nodes: usize) -> bool {
        let acceptor = 1;
        let beside = self.tasks.count("pump.rs");
        self.tasks.count("link.rs") == TASKS_PER_LINK * self.io.stats().links
            && (acceptor..=acceptor + nodes).contains(&beside)
    }

    /// Connections that are no link (any more). QUIC keeps a closed one for three probe time-outs, which are long when
    /// an answer was once late because a process stood still.
    pub fn lingering(&self) -> usize {
        self.tasks.count("connection.rs").saturating_sub(self.io.stats().links)
    }
}

/// A process on its way out.
pub(super) struct Leaving {
    pub(super) site: Site,
    tasks: Tasks,
    run: JoinHandle<()>,
    since: Instant,
    told: bool,
}

/// What is left of a program.
pub struct Fallen {
    /// Who it was.
    pub node: NodeId,
    /// Of each of its writes: who had acknowledged it.
    pub acknowledged: BTreeMap<Stamp, BTreeSet<NodeId>>,
    /// Events that it sent.
    pub sent: Vec<Sent>,
    /// Events that it got.
    pub received: Vec<EventNotice>,
}

/// All processes.
pub struct World {
    /// The network between them.
    pub network: Network,
    /// The randomness of what is done, apart from that of the network.
    pub rng: ChaCha8Rng,
    /// The process of each site, if one runs.
    pub processes: Vec<Option<Process>>,
    /// Every batch that a store took.
    pub ledger: Ledger,
    /// Programs that are gone.
    pub fallen: Vec<Fallen>,
    /// What was found wrong.
    pub violations: Vec<String>,
    /// What was done, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Operations done.
    pub operations: u64,
    /// What happened, line by line.
    pub story: Vec<String>,
    /// The engines' settings.
    pub config: coeval_sync::Config,
    identities: Vec<Identity>,
    members: BTreeSet<Site>,
    pub(super) leaving: Vec<Leaving>,
    ended: Vec<Tasks>,
    invites: Invites,
    origin: Instant,
}

impl World {
    /// A world of nobody yet.
    pub fn new(seed: u64, sites: usize, network: Network, config: coeval_sync::Config) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Self {
            network,
            processes: (0..sites).map(|_| None).collect(),
            identities: (0..sites).map(|_| identity(rng.random())).collect(),
            rng,
            ledger: Ledger::default(),
            fallen: Vec::new(),
            violations: Vec::new(),
            faults: BTreeMap::new(),
            operations: 0,
            story: Vec::new(),
            config,
            members: BTreeSet::from([0]),
            leaving: Vec::new(),
            ended: Vec::new(),
            invites: Invites::default(),
            origin: Instant::now(),
        }
    }

    /// Opens a process at a site, as a new incarnation with an empty replica; not while its port is in use.
    pub fn open(&mut self, site: Site) {
        self.see_off();
        if self.leaving.iter().any(|leaving| leaving.site == site) {
            return;
        }
        let Some(socket) = self.network.bind(site) else { return };
        let identity = self.identities[site].clone();
        let node = NodeId { peer: identity.peer(), incarnation: incarnation(&mut self.rng) };
        let bell = Bell::new();
        let config = Config {
            incarnation: node.incarnation,
            name: format!("site {site}"),
            listen: Network::address(site),
            bell: bell.clone(),
            conditioner: LinkConditioner::new(self.rng.next_u64()),
            seed: Some(self.rng.next_u64()),
            ..Config::new(identity)
        };
        let me = LinkPeer {
            node,
            name: config.name.clone(),
            addresses: vec![Network::address(site).to_string()],
            observer: false,
        };
        let seat = Seat::new(Program::new(me, self.config.clone(), bell, self.network.clone(), self.origin));
        let desk = Desk::new(self.members.contains(&site).then_some(KEY), Arc::clone(&self.invites));
        let tasks = Tasks::default();
        let place = Place { socket, runtime: Arc::new(tasks.clone()), origin: self.origin };
        match start(config, seat.clone(), Arc::new(desk), |_| {}, place) {
            Ok((io, run)) => {
                let run = tasks.run_loop(run);
                self.processes[site] = Some(Process { io, seat, tasks, run, dialing: None });
            }
            Err(error) => self.violations.push(format!("site {site} cannot start: {error}")),
        }
    }

    /// Counts a fault, and tells it.
    pub fn fault(&mut self, what: &'static str, detail: impl std::fmt::Debug) {
        *self.faults.entry(what).or_default() += 1;
        self.story.push(format!("{:.3} {what} {detail:?}", self.now().as_secs_f64()));
    }

    /// Sites whose process runs.
    pub fn live(&self) -> Vec<Site> {
        (0..self.processes.len()).filter(|site| self.processes[*site].is_some()).collect()
    }

    /// Sites whose process runs and does not stand still.
    pub fn awake(&self) -> Vec<Site> {
        let awake = |site: &Site| self.process(*site).is_some_and(|p| p.tasks.halted() == Halt::No);
        self.live().into_iter().filter(awake).collect()
    }

    /// The process at a site.
    pub fn process(&self, site: Site) -> Option<&Process> {
        self.processes.get(site)?.as_ref()
    }

    /// Ends a process without a word.
    pub fn kill(&mut self, site: Site) {
        let Some(process) = self.processes[site].take() else { return };
        self.network.close(site);
        process.tasks.kill();
        self.bury(&process);
        self.ended.push(process.tasks.clone());
    }

    /// A process leaves in order.
    pub fn leave(&mut self, site: Site) {
        let Some(process) = self.processes[site].take() else { return };
        self.bury(&process);
        let said = process.io.call(|seat, now, rng| {
            let mut effects = seat.handle(Input::Wake, now, rng);
            seat.program().sync.leave();
            effects.extend(seat.handle(Input::Wake, now, rng));
            effects.retain(|effect| !matches!(effect, coeval_sync::Effect::Close { .. }));
            effects
        });
        if let Err(error) = said {
            self.violations.push(format!("site {site} cannot leave: {error}"));
        }
        // It cannot wait on this thread, and says so.
        _ = process.io.shutdown(LEAVE);
        let Process { tasks, run, .. } = process;
        self.leaving.push(Leaving { site, tasks, run, since: Instant::now(), told: false });
    }

    fn bury(&mut self, process: &Process) {
        let program = process.seat.program();
        self.fallen.push(Fallen {
            node: program.sync.node(),
            acknowledged: program.acknowledged(),
            sent: program.sent.clone(),
            received: program.received.clone(),
        });
        let site = |error: &String| format!("{} heard an error: {error}", program.sync.node().short());
        self.violations.extend(program.errors.iter().map(site));
    }

    /// Whether some process is on its way out.
    pub fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// What whoever runs the programs does now and then: joins those that are in no session, introduces strangers, sees
    /// off those that leave. Also looks at what must hold at any time.
    pub fn tend(&mut self) {
        self.see_off();
        self.look();
        let dialable = |site: &Site| !self.network.is_translated(*site);
        let Some(anchor) = self.awake().into_iter().find(dialable) else { return };
        for site in self.awake() {
            self.poll_dial(site);
            if site != anchor && !self.knows(site, anchor) {
                self.dial(site, anchor);
            }
        }
    }

    fn see_off(&mut self) {
        for mut leaving in std::mem::take(&mut self.leaving) {
            let (site, took) = (leaving.site, leaving.since.elapsed());
            let ended = leaving.run.is_finished();
            let own = leaving.tasks.count("link.rs") + leaving.tasks.count("pump.rs");
            if ended && own == 0 {
                // The process ends: what QUIC still remembers of closed connections ends with its runtime.
                leaving.tasks.kill();
                self.network.close(site);
                self.ended.push(leaving.tasks);
                continue;
            }
            let late = !ended && took > LEAVE + Duration::from_millis(100);
            if (late || took > LEAVE + AFTERMATH) && !leaving.told {
                leaving.told = true;
                let tasks = leaving.tasks.origins();
                self.violations
                    .push(format!("site {site} left and is not gone: loop ended: {ended}, tasks: {tasks:?}"));
            }
            self.leaving.push(leaving);
        }
    }

    fn look(&mut self) {
        let limit = self.config.window + IN_FLIGHT_SLACK;
        let mut found = Vec::new();
        for site in self.live() {
            let Some(process) = self.process(site) else { continue };
            if process.run.is_finished() || process.tasks.panics() > 0 {
                found.push(format!("site {site}: the driver ended: {:?}", process.io.check()));
                continue;
            }
            for row in process.seat.program().sync.peers().iter().filter(|row| row.in_flight > limit) {
                found.push(format!("site {site}: {} bytes wait for {}", row.in_flight, row.node.short()));
            }
        }
        self.violations.extend(found);
    }

    fn poll_dial(&mut self, site: Site) {
        let Some(process) = &mut self.processes[site] else { return };
        let Some(outcome) = process.dialing.as_ref().and_then(Dialing::poll) else { return };
        process.dialing = None;
        if outcome.is_ok() {
            self.members.insert(site);
        }
    }

    /// Whether the engine of a site has heard of the program at another, and so dials it by itself.
    fn knows(&self, site: Site, other: Site) -> bool {
        let (Some(one), Some(two)) = (self.process(site), self.process(other)) else { return false };
        let node = two.seat.program().sync.node();
        one.seat.program().sync.peers().iter().any(|row| row.node == node)
    }

    fn dial(&mut self, from: Site, to: Site) {
        if self.process(from).is_none_or(|process| process.dialing.is_some()) {
            return;
        }
        let (addresses, key) = (vec![Network::address(to)], self.identities[to].peer());
        let target = if self.members.contains(&from) {
            Target::Member { addresses, key: Some(key) }
        } else {
            let (id, secret) = (InviteId(self.rng.next_u64()), Secret(self.rng.random()));
            self.invites.lock().expect("one thread").insert(id, secret);
            Target::Invite(Invite {
                version: invite::VERSION,
                session: SESSION,
                addresses,
                host_key: key,
                id,
                secret,
                expires: u64::MAX,
                config_digest: None,
            })
        };
        if let Some(process) = &mut self.processes[from] {
            process.dialing = Some(process.io.dial(target));
        }
    }

    /// Writes at a site: one operation alone, or several as a batch.
    ///
    /// # Errors
    /// What the store says; nothing was written.
    pub fn write(&mut self, site: Site, ops: &[Op]) -> Result<(), WriteError> {
        let Some(process) = &self.processes[site] else { return Ok(()) };
        let mut program = process.seat.program();
        let (context, store) = (program.store.context(), Arc::clone(&program.store));
        self.operations += 1;
        let stamp = match ops {
            [Op::Set { entity, path, value }] => store.set(context, *entity, path, value.clone())?,
            _ => {
                let mut batch = store.batch(context);
                for op in ops {
                    match op {
                        Op::Create { entity } => batch.create(*entity)?,
                        Op::Delete { entity } => batch.delete(*entity)?,
                        Op::Set { entity, path, value } => batch.set(*entity, path, value.clone())?,
                        Op::Remove { entity, path } => batch.remove(*entity, path)?,
                        Op::Replace { entity, path, map } => {
                            batch.replace(*entity, path, BTreeMap::clone(map))?
                        }
                    };
                }
                batch.commit()?
            }
        };
        program.written.insert(stamp, None);
        let meta = SampleMeta {
            sim: context.sim,
            epoch: context.epoch,
            direction: context.direction,
            discontinuous: false,
        };
        let acts: Vec<Act> = ops.iter().map(|op| (op.clone(), false)).collect();
        if !self.ledger.note(stamp, Record { acts, meta }) {
            self.violations.push(format!("{stamp:?} was issued twice"));
        }
        Ok(())
    }

    /// Sends an event to all from a site.
    pub fn send_event(&mut self, site: Site) {
        self.operations += 1;
        let value = Value::UInt(self.operations);
        let Some(process) = &self.processes[site] else { return };
        _ = process.io.call(move |seat, now, rng| {
            seat.program().send(value);
            seat.handle(Input::Wake, now, rng)
        });
    }

    /// Lets virtual time pass.
    pub async fn pass(&mut self, by: Duration) {
        tokio::time::sleep(by).await;
    }

    /// Ends all processes, the fallen for good; what is left of them.
    pub async fn end(&mut self) {
        for site in self.live() {
            self.leave(site);
        }
        for _ in 0..300 {
            self.pass(Duration::from_millis(100)).await;
            self.see_off();
        }
        let left: usize = self.ended.iter().map(Tasks::live).sum();
        let panics: usize = self.ended.iter().map(Tasks::panics).sum();
        if left > 0 || panics > 0 {
            self.violations.push(format!("{left} tasks outlive their process, {panics} panicked"));
        }
    }

    /// Virtual time since the beginning.
    pub fn now(&self) -> WallDuration {
        WallDuration::from_nanos(self.origin.elapsed().as_nanos() as i64)
    }
}
