//! A deterministic world of engines: one clock, one generator, wires with delay.
//!
//! Messages of a link arrive in order and are lost only when the link is reset (or when a test drops one on purpose);
//! datagrams are lost, repeated and reordered. A failing test prints its seed.
use bytes::Bytes;
use coeval_merge::{
    Batch, Content, Digest, Entry, EntryBody, LinkTag, Op, PlainReplica, Replica, World as SessionWorld,
};
use coeval_sync::{CloseReason, Config, Effect, Event, Input, LinkPeer, Machine, Notice, Now, Sync, Target};
use coeval_time::{Edit, EditId, EditKind, Incarnation, MonoTime, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, NodeId, Path, PeerId, SampleMeta, Value};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use uuid::Uuid;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SEC: u64 = 1_000 * MS;
const WALL: u64 = 1_700_000_000 * SEC;

/// One program of the session.
pub(crate) struct Program {
    pub(crate) engine: Sync<PlainReplica>,
    pub(crate) replica: Arc<PlainReplica>,
    pub(crate) id: NodeId,
    pub(crate) notices: Vec<Notice>,
    /// What was handed to the log: file, position of a mark, message.
    pub(crate) logged: Vec<(u64, Option<u64>, Bytes)>,
    pub(crate) up: bool,
    pub(crate) observer: bool,
    /// Whether it takes messages from its links.
    pub(crate) reading: bool,
    stalled: VecDeque<(u64, usize, Arrival)>,
}

#[derive(Clone, Debug)]
enum Arrival {
    Message(Bytes),
    Datagram(Bytes),
    Sent(usize),
}

#[derive(Clone, Debug)]
enum Happening {
    Arrive { wire: u64, end: usize, what: Arrival },
    Up { wire: u64, end: usize },
    Down { wire: u64, end: usize },
    DialFailed { who: usize, whom: NodeId },
    Wake { who: usize },
}

struct Wire {
    ends: [usize; 2],
    open: bool,
    up: [bool; 2],
    /// When the last message towards each end arrives.
    last: [u64; 2],
}

/// What is measured.
#[derive(Default, Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Messages by kind (the third byte of a message).
    pub(crate) kinds: BTreeMap<u8, u64>,
}

/// The world.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) programs: Vec<Program>,
    pub(crate) traffic: Traffic,
    pub(crate) config: Config,
    pub(crate) delay: u64,
    /// All that was written, to be replayed.
    pub(crate) log: Vec<(Stamp, Batch, SampleMeta)>,
    /// The world of the session that each of those was written in.
    written_in: Vec<SessionWorld>,
    entries: Vec<(SessionWorld, Entry)>,
    /// What was restored.
    restored: BTreeMap<SessionWorld, Content>,
    wires: BTreeMap<u64, Wire>,
    next_wire: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    next: u64,
    cut: BTreeSet<(usize, usize)>,
    /// Kinds of messages to drop once: (from, to, kind).
    pub(crate) drops: Vec<(usize, usize, u8)>,
    /// Called after every step of a program.
    pub(crate) check: Option<fn(&Program)>,
}

pub(crate) fn node(n: usize, incarnation: u64) -> NodeId {
    NodeId { peer: PeerId([n as u8 + 1; 32]), incarnation: Incarnation(incarnation) }
}

pub(crate) fn entity(n: u64) -> EntityId {
    EntityId(Uuid::from_u128(0xc0e5_0000_0000_7000_8000_0000_0000_0000 + u128::from(n) * 0x0101))
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).expect("a path")
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl World {
    pub(crate) fn new(seed: u64, count: usize, config: Config) -> Self {
        let mut world = Self {
            now: SEC,
            rng: ChaCha8Rng::seed_from_u64(seed),
            programs: Vec::new(),
            traffic: Traffic::default(),
            config,
            delay: 20 * MS,
            log: Vec::new(),
            written_in: Vec::new(),
            entries: Vec::new(),
            restored: BTreeMap::new(),
            wires: BTreeMap::new(),
            next_wire: 1,
            queue: BTreeMap::new(),
            next: 0,
            cut: BTreeSet::new(),
            drops: Vec::new(),
            check: None,
        };
        for n in 0..count {
            world.open(n, 100 + n as u64, false);
        }
        world
    }

    /// Opens a program (again) with an empty replica.
    pub(crate) fn open(&mut self, n: usize, incarnation: u64, observer: bool) {
        self.open_with(n, node(n, incarnation), observer, Arc::default(), self.config.clone());
    }

    /// The same, with its session clock `slow` nanoseconds behind.
    pub(crate) fn open_with(
        &mut self,
        n: usize,
        id: NodeId,
        observer: bool,
        slow: Arc<AtomicU64>,
        config: Config,
    ) {
        let replica = Arc::new(PlainReplica::new(id.incarnation));
        let me =
            LinkPeer { node: id, name: format!("p{n}"), addresses: vec![format!("10.0.0.{n}:1")], observer };
        let wall = move |now: MonoTime| WallTime::from_nanos(WALL + now.as_nanos() - slow.load(Relaxed));
        let engine = Sync::new(Arc::clone(&replica), me, Box::new(wall), config);
        let program = Program {
            engine,
            replica,
            id,
            notices: Vec::new(),
            logged: Vec::new(),
            up: true,
            observer,
            reading: true,
            stalled: VecDeque::new(),
        };
        if n == self.programs.len() {
            self.programs.push(program);
        } else {
            self.programs[n] = program;
        }
    }

    /// Ends a program without a word.
    pub(crate) fn kill(&mut self, n: usize) {
        self.programs[n].up = false;
        for wire in self.wires_of(n) {
            self.reset(wire);
        }
    }

    fn wires_of(&self, n: usize) -> Vec<u64> {
        self.wires.iter().filter(|(_, w)| w.open && w.ends.contains(&n)).map(|(id, _)| *id).collect()
    }

    pub(crate) fn wires_between(&self, a: usize, b: usize) -> Vec<u64> {
        self.wires_of(a).into_iter().filter(|id| self.wires[id].ends.contains(&b)).collect()
    }

    fn schedule(&mut self, at: u64, what: Happening) {
        self.next += 1;
        self.queue.insert((at, self.next), what);
    }

    /// Program `a` dials program `b`.
    pub(crate) fn connect(&mut self, a: usize, b: usize) {
        let id = self.next_wire;
        self.next_wire += 1;
        self.wires.insert(id, Wire { ends: [a, b], open: true, up: [false; 2], last: [0; 2] });
        let jitter = self.rng.random_range(0..5 * MS);
        self.schedule(self.now + self.delay + jitter, Happening::Up { wire: id, end: 1 });
        self.schedule(self.now + 2 * self.delay, Happening::Up { wire: id, end: 0 });
    }

    /// Breaks a wire: what is on it is lost.
    pub(crate) fn reset(&mut self, id: u64) {
        let Some(wire) = self.wires.get_mut(&id).filter(|w| w.open) else { return };
        wire.open = false;
        let ends = wire.ends;
        self.queue.retain(|_, what| !matches!(what, Happening::Arrive { wire, .. } if *wire == id));
        for (end, who) in ends.into_iter().enumerate() {
            self.programs[who].stalled.retain(|(wire, ..)| *wire != id);
            let wait = self.rng.random_range(0..50 * MS);
            self.schedule(self.now + wait, Happening::Down { wire: id, end });
        }
    }

    /// Breaks all wires between two programs; none can be made until [`mend`](Self::mend).
    pub(crate) fn cut(&mut self, a: usize, b: usize) {
        self.cut.insert(pair(a, b));
        for wire in self.wires_between(a, b) {
            self.reset(wire);
        }
    }

    pub(crate) fn mend(&mut self) {
        self.cut.clear();
    }

    pub(crate) fn wall(&self) -> WallTime {
        WallTime::from_nanos(WALL + self.now)
    }

    /// Writes a batch at a program, as one of its threads would.
    pub(crate) fn write(&mut self, n: usize, batch: &Batch) -> bool {
        let meta = SampleMeta { sim: SimTime::from_nanos(i128::from(self.now)), ..SampleMeta::default() };
        match self.programs[n].replica.write(batch, self.wall(), meta) {
            Ok(stamp) => {
                self.log.push((stamp, batch.clone(), meta));
                self.written_in.push(self.programs[n].replica.world());
                self.schedule(self.now, Happening::Wake { who: n });
                true
            }
            Err(_) => false,
        }
    }

    /// Sets the rate of the clock at a program.
    pub(crate) fn scale(&mut self, n: usize, rate: f64) -> EditId {
        let at = self.wall();
        let body = |id| EntryBody::Clock(Edit { id, at, kind: EditKind::Scale(rate) });
        let id = self.programs[n].replica.add_entry(at, body).expect("an entry");
        self.entries.push((self.programs[n].replica.world(), Entry { id, body: body(id) }));
        self.wake(n);
        id
    }

    /// Adds a fact of the session at a program.
    pub(crate) fn record(&mut self, n: usize, value: u64) {
        let body = |_| EntryBody::Record { topic: "fact".into(), value: Value::UInt(value) };
        let id = self.programs[n].replica.add_entry(self.wall(), body).expect("an entry");
        self.entries.push((self.programs[n].replica.world(), Entry { id, body: body(id) }));
        self.wake(n);
    }

    /// What a program holds, as a checkpoint.
    pub(crate) fn content(&self, n: usize) -> Content {
        let replica = &self.programs[n].replica;
        let sim = SimTime::from_nanos(i128::from(self.now));
        replica.content(sim, 1.0, replica.world().epoch())
    }

    /// Restores a checkpoint at a program.
    pub(crate) fn restore(&mut self, n: usize, content: &Content) -> SessionWorld {
        let world = self.programs[n].engine.restore(content.clone()).expect("a new world");
        self.restored.insert(world, content.clone());
        self.wake(n);
        world
    }

    /// Writes one value as a program whose clock is `ahead` nanoseconds fast.
    pub(crate) fn set_ahead(&mut self, n: usize, e: EntityId, p: &str, value: u64, ahead: u64) {
        let mut batch = Batch::new();
        batch.push(Op::Set { entity: e, path: path(p), value: Value::UInt(value) }).expect("an op");
        let wall = WallTime::from_nanos(WALL + self.now + ahead);
        self.programs[n].replica.write(&batch, wall, SampleMeta::default()).expect("a write");
        self.schedule(self.now, Happening::Wake { who: n });
    }

    /// Who dialed a wire, and whom.
    pub(crate) fn ends(&self, wire: u64) -> [usize; 2] {
        self.wires[&wire].ends
    }

    /// Session wall time at an instant of this world, nanoseconds.
    pub(crate) fn wall_at(&self, now: u64) -> u64 {
        WALL + now
    }

    pub(crate) fn wake(&mut self, n: usize) {
        self.schedule(self.now, Happening::Wake { who: n });
    }

    /// Hands a message or a datagram from nowhere to a program; returns why it closed the link, if it did.
    pub(crate) fn inject(&mut self, n: usize, bytes: &[u8], datagram: bool) -> Option<CloseReason> {
        let id = *self.wires_of(n).first().expect("a wire");
        let end = usize::from(self.wires[&id].ends[1] == n);
        let (link, bytes) = (LinkTag(id * 2 + end as u64), Bytes::copy_from_slice(bytes));
        let input = if datagram { Input::Datagram { link, bytes } } else { Input::Message { link, bytes } };
        let now = Now { mono: MonoTime::from_nanos(self.now) };
        let effects = self.programs[n].engine.handle(input, now, &mut self.rng);
        let closed = effects.iter().find_map(|e| match e {
            Effect::Close { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        effects.into_iter().for_each(|effect| self.carry_out(n, effect));
        closed
    }

    pub(crate) fn noticed(&self, n: usize, test: impl Fn(&Notice) -> bool) -> usize {
        self.programs[n].notices.iter().filter(|notice| test(notice)).count()
    }

    pub(crate) fn ops(&mut self, n: usize, ops: impl IntoIterator<Item = Op>) -> bool {
        let mut batch = Batch::new();
        for op in ops {
            batch.push(op).expect("an op");
        }
        self.write(n, &batch)
    }

    pub(crate) fn create(&mut self, n: usize, e: EntityId) {
        self.ops(n, [Op::Create { entity: e }]);
    }

    pub(crate) fn set(&mut self, n: usize, e: EntityId, p: &str, value: u64) {
        self.ops(n, [Op::Set { entity: e, path: path(p), value: Value::UInt(value) }]);
    }

    /// What a program shows at a path of one or two keys.
    pub(crate) fn get(&self, n: usize, e: EntityId, p: &str) -> Option<u64> {
        let mut at = self.programs[n].replica.show(e)?;
        for key in path(p).keys() {
            let Value::Map(map) = &at else { return None };
            let next = map.get(key)?.clone();
            at = next;
        }
        if let Value::UInt(v) = at { Some(v) } else { None }
    }

    pub(crate) fn send(&mut self, n: usize, topic: &str, target: Target, value: u64) -> bool {
        let event = Event {
            topic: topic.into(),
            target,
            value: Value::UInt(value),
            sim: SimTime::from_nanos(i128::from(self.now)),
            command: false,
        };
        let sent = self.programs[n].engine.send_event(event).is_ok();
        self.schedule(self.now, Happening::Wake { who: n });
        sent
    }

    /// Hands an input to a program and carries out what it says.
    pub(crate) fn step(&mut self, n: usize, input: Input) {
        if !self.programs[n].up {
            return;
        }
        let now = Now { mono: MonoTime::from_nanos(self.now) };
        let program = &mut self.programs[n];
        let effects = program.engine.handle(input, now, &mut self.rng);
        while let Some(notice) = program.engine.poll_notice() {
            program.notices.push(notice);
        }
        if let Some(check) = self.check {
            check(program);
        }
        for effect in effects {
            self.carry_out(n, effect);
        }
    }

    fn carry_out(&mut self, n: usize, effect: Effect) {
        match effect {
            Effect::Send { link, bytes } => self.transmit(n, link, bytes),
            Effect::Rename { node } => self.programs[n].id = node,
            Effect::Log { file, mark, bytes } => self.programs[n].logged.push((file, mark, bytes)),
            Effect::Datagram { link, bytes } => {
                let (wire, end) = (link.0 / 2, link.0 as usize % 2);
                for _ in 0..[0, 1, 1, 1, 1, 1, 1, 1, 2][self.rng.random_range(0..9)] {
                    let at = self.now + self.rng.random_range(self.delay / 2..3 * self.delay);
                    let what = Arrival::Datagram(bytes.clone());
                    self.schedule(at, Happening::Arrive { wire, end: 1 - end, what });
                }
            }
            Effect::Close { link, .. } => {
                // The other side first gets what was sent before.
                let (id, end) = (link.0 / 2, link.0 as usize % 2);
                if let Some(wire) = self.wires.get_mut(&id) {
                    wire.up[end] = false;
                    let at = (wire.last[1 - end]).max(self.now) + 1;
                    self.schedule(at, Happening::Down { wire: id, end: 1 - end });
                }
            }
            Effect::Dial { node, addresses } => {
                // Whoever listens there now, be it a later opening of the node.
                let listens =
                    |m: &usize| addresses.contains(&format!("10.0.0.{m}:1")) && self.programs[*m].up;
                let whom = (0..self.programs.len()).find(listens);
                match whom.filter(|m| !self.cut.contains(&pair(n, *m))) {
                    Some(whom) => self.connect(n, whom),
                    None => {
                        self.schedule(self.now + self.delay, Happening::DialFailed { who: n, whom: node })
                    }
                }
            }
        }
    }

    fn transmit(&mut self, n: usize, link: LinkTag, bytes: Bytes) {
        let (id, end) = (link.0 / 2, link.0 as usize % 2);
        let Some(wire) = self.wires.get_mut(&id).filter(|w| w.open && w.ends[end] == n) else { return };
        let to = wire.ends[1 - end];
        let kind = bytes[2];
        self.traffic.messages += 1;
        self.traffic.bytes += bytes.len() as u64;
        *self.traffic.kinds.entry(kind).or_default() += 1;
        let jitter = self.rng.random_range(0..self.delay);
        let at = wire.last[1 - end].max(self.now + self.delay + jitter) + 1;
        wire.last[1 - end] = at;
        if let Some(drop) = self.drops.iter().position(|d| *d == (n, to, kind)) {
            self.drops.swap_remove(drop);
            let what = Arrival::Sent(bytes.len());
            return self.schedule(at, Happening::Arrive { wire: id, end, what });
        }
        self.schedule(at, Happening::Arrive { wire: id, end: 1 - end, what: Arrival::Message(bytes) });
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Wake { who } => self.step(who, Input::Wake),
            Happening::DialFailed { who, whom } => {
                self.step(who, Input::DialFailed { node: whom, reason: "no answer".into() });
            }
            Happening::Up { wire: id, end } => {
                let Some(wire) = self.wires.get_mut(&id).filter(|w| w.open) else { return };
                wire.up[end] = true;
                let (who, other) = (wire.ends[end], wire.ends[1 - end]);
                let peer = &self.programs[other];
                let row = LinkPeer {
                    node: peer.id,
                    name: format!("p{other}"),
                    addresses: vec![format!("10.0.0.{other}:1")],
                    observer: peer.observer,
                };
                self.step(
                    who,
                    Input::LinkUp { link: LinkTag(id * 2 + end as u64), peer: row, dialed: end == 0 },
                );
            }
            Happening::Down { wire: id, end } => {
                let Some(wire) = self.wires.get_mut(&id) else { return };
                wire.open = false;
                if std::mem::take(&mut wire.up[end]) {
                    let who = wire.ends[end];
                    self.step(
                        who,
                        Input::LinkDown { link: LinkTag(id * 2 + end as u64), reason: "reset".into() },
                    );
                }
            }
            Happening::Arrive { wire, end, what } => self.arrive(wire, end, what),
        }
    }

    fn arrive(&mut self, id: u64, end: usize, what: Arrival) {
        let Some(wire) = self.wires.get(&id) else { return };
        let (who, other) = (wire.ends[end], wire.ends[1 - end]);
        // A link that only this side has up yet holds its messages back, as a handshake does.
        if wire.open && !wire.up[end] && matches!(what, Arrival::Message(_)) {
            return self.schedule(self.now + MS, Happening::Arrive { wire: id, end, what });
        }
        if !self.programs[who].reading && !matches!(what, Arrival::Sent(_)) {
            self.programs[who].stalled.push_back((id, end, what));
            return;
        }
        let link = LinkTag(id * 2 + end as u64);
        let back = LinkTag(id * 2 + 1 - end as u64);
        match what {
            Arrival::Message(bytes) => {
                let len = bytes.len();
                self.step(who, Input::Message { link, bytes });
                self.step(other, Input::Sent { link: back, bytes: len });
            }
            Arrival::Datagram(bytes) => self.step(who, Input::Datagram { link, bytes }),
            Arrival::Sent(bytes) => self.step(who, Input::Sent { link, bytes }),
        }
    }

    /// A program that stopped reading reads on.
    pub(crate) fn resume(&mut self, n: usize) {
        self.programs[n].reading = true;
        while let Some((wire, end, what)) = self.programs[n].stalled.pop_front() {
            self.arrive(wire, end, what);
        }
    }

    /// Runs the world for a length of time.
    pub(crate) fn run(&mut self, nanos: u64) {
        let until = self.now + nanos;
        loop {
            let timer = self.programs.iter().enumerate().filter(|(_, p)| p.up);
            let timer = timer
                .filter_map(|(n, p)| p.engine.next_timer().map(|t| (t.as_nanos().max(self.now), n)))
                .min();
            let event = self.queue.keys().next().copied();
            match (event, timer) {
                (Some(key), timer) if timer.is_none_or(|(at, _)| key.0 <= at) && key.0 <= until => {
                    self.now = self.now.max(key.0);
                    if let Some(what) = self.queue.remove(&key) {
                        self.happen(what);
                    }
                }
                (_, Some((at, n))) if at <= until => {
                    self.now = at;
                    self.step(n, Input::Timer);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// A random batch at a random program that is up, over few entities and paths, so that writes collide.
    pub(crate) fn random_write(&mut self) {
        let n = self.rng.random_range(0..self.programs.len());
        if !self.programs[n].up {
            return;
        }
        let mut batch = Batch::new();
        for _ in 0..self.rng.random_range(1..4) {
            let e = entity(self.rng.random_range(0..6));
            let p = path(["a", "b", "a/x", "a/y", "b/x"][self.rng.random_range(0..5)]);
            let value = Value::UInt(self.rng.random_range(0..1000));
            let op = match self.rng.random_range(0..100) {
                0..20 => Op::Create { entity: e },
                20..22 => Op::Delete { entity: e },
                22..80 => Op::Set { entity: e, path: p, value },
                80..92 => Op::Remove { entity: e, path: p },
                _ => Op::Replace { entity: e, path: p, map: Arc::default() },
            };
            batch.push(op).expect("an op");
        }
        self.write(n, &batch);
        if self.rng.random_range(0..20) == 0 {
            self.scale(n, 1.5);
        }
    }

    /// Whether all programs that are up hold the same, and it is what replaying everything written would give.
    pub(crate) fn converged(&self) -> Result<(), String> {
        let oracle = PlainReplica::new(Incarnation(7));
        let newest = self.restored.last_key_value();
        if let Some((world, content)) = newest {
            let content = content.clone().moved(Content::CURRENT, world.epoch());
            let slot = |(key, state)| (oracle.resolve(&key).expect("a slot"), state);
            let states = content.states.into_iter().map(slot).collect();
            oracle.enter(*world, states, Vec::new()).expect("a newer world");
        }
        let newest = newest.map_or(SessionWorld::FIRST, |(world, _)| *world);
        // What a test adds to the log by itself is of the first world.
        let written_in = self.written_in.iter().chain(std::iter::repeat(&SessionWorld::FIRST));
        for ((stamp, batch, meta), _) in self.log.iter().zip(written_in).filter(|(_, w)| **w == newest) {
            oracle.replay(batch, *stamp, *meta);
        }
        let counts = |world: &SessionWorld, entry: &Entry| {
            *world == newest || matches!(entry.body, EntryBody::Record { .. })
        };
        let entries = self.entries.iter().filter(|(world, entry)| counts(world, entry));
        oracle.apply(LinkTag(0), &[], entries.map(|(_, entry)| entry.clone()).collect());
        oracle.drain();
        for (n, program) in self.programs.iter().enumerate().filter(|(_, p)| p.up) {
            program.replica.drain();
            if program.replica.world() != newest {
                return Err(format!("program {n} is in {:?}, not in {newest:?}", program.replica.world()));
            }
            for e in (0..6).map(entity) {
                let (is, should) = (program.replica.show(e), oracle.show(e));
                if is != should {
                    return Err(format!("program {n} shows {is:?} in {e:?}, not {should:?}"));
                }
            }
            if program.replica.digest() != oracle.digest() {
                return Err(format!("program {n} has another digest"));
            }
        }
        Ok(())
    }

    /// Whether all programs that are up hold the same.
    pub(crate) fn agree(&self) -> Result<(), String> {
        let digests: Vec<(usize, Digest)> = (0..self.programs.len())
            .filter(|n| self.programs[*n].up)
            .map(|n| {
                self.programs[n].replica.drain();
                (n, self.programs[n].replica.digest())
            })
            .collect();
        match digests.windows(2).find(|pair| pair[0].1 != pair[1].1) {
            Some(pair) => Err(format!("programs {} and {} differ", pair[0].0, pair[1].0)),
            None => Ok(()),
        }
    }

    /// Links are as they should be in a full mesh: one between each two programs that are up.
    pub(crate) fn is_mesh(&self) -> bool {
        let up: Vec<usize> = (0..self.programs.len()).filter(|n| self.programs[*n].up).collect();
        up.iter().all(|a| up.iter().filter(|b| a < b).all(|b| self.wires_between(*a, *b).len() == 1))
    }

    pub(crate) fn kind(&self, kind: u8) -> u64 {
        self.traffic.kinds.get(&kind).copied().unwrap_or(0)
    }
}

/// A config for tests without dialing: links are what the test makes of them.
pub(crate) fn fixed() -> Config {
    Config { mesh: false, ..Config::default() }
}
