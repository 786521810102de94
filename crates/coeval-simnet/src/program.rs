//! One program of the session: a real store, a real engine, and what its threads and its observer have seen so far.
use crate::bystander::{Bystander, Standing};
use crate::check::{Check, Violation};
use crate::keeping::{Journal, recover};
use crate::timepiece::{EngineTime, START, Skew, Timepiece, VirtualTime};
use crate::witness::{Twins, Witness};
use coeval_journal::SimDisk;
use coeval_merge::Replica;
use coeval_store::{Limits, Param, Store, StoreConfig};
use coeval_sync::{Config, Effect, EventNotice, Input, LinkPeer, Machine, Notice, Now, Reply, Sync};
use coeval_time::{
    Clock, Genesis, MonoTime, Observed, PingSample, SessionId, SimTime, Stamp, WallDuration, WallRole,
};
use coeval_value::{EntityId, NodeId, Value};
use rand::RngCore;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// Samples of session wall time that a joiner takes outright before it settles.
const JOIN_SAMPLES: u32 = 4;
/// How well it must know session time by then. A peer that stands still answers pings late: who settles on such answers
/// is seconds ahead, slews back for hours, and all it writes meanwhile is parked.
const JOIN_UNCERTAINTY: WallDuration = WallDuration::from_millis(500);

/// The session of every simulation.
pub const SESSION: SessionId = SessionId(Uuid::from_u128(0xc0e_7a1));

/// What the session's clock starts from.
pub const GENESIS: Genesis = Genesis { wall: START, sim: SimTime::EPOCH, scale: 1.0 };

/// The nodes whose session time others may follow, in the order of their admission, with virtual time then.
pub type Admitted = Arc<Mutex<Vec<(NodeId, MonoTime)>>>;

/// What a program is made from.
pub struct Setup {
    /// Who it is, and where others dial it.
    pub me: LinkPeer,
    /// How wrong its clocks are.
    pub skew: Skew,
    /// Virtual time.
    pub time: VirtualTime,
    /// Its engine's settings.
    pub config: Config,
    /// Whether it opens the session.
    pub hosts: bool,
    /// Whose session time may be followed.
    pub admitted: Admitted,
    /// Paths whose batches its observer looks at.
    pub twins: Twins,
    /// What its replica refuses to outgrow.
    pub limits: Limits,
    /// Whether others have written already.
    pub late: bool,
    /// The highest stamp of its life before, if its machine remembers it; else 0.
    pub stamp_floor: u64,
    /// The disk of its machine, if it keeps a journal.
    pub disk: Option<SimDisk>,
    /// Where it tells what happens to it; `None`: nowhere.
    pub story: Option<Story>,
}

/// What happened in a run, line by line.
pub type Story = Arc<Mutex<Vec<String>>>;

/// An event as its sender remembers it.
#[derive(Clone, Debug)]
pub struct SentEvent {
    /// Its number.
    pub number: u64,
    /// Its value.
    pub value: Value,
    /// Whether it is a command: whoever gets it replies.
    pub command: bool,
    /// Who was here when it was sent.
    pub to: BTreeSet<NodeId>,
    /// Those of them who were not lost since.
    pub due: BTreeSet<NodeId>,
}

impl SentEvent {
    /// Who of those here has not got it, or not replied to it, in words.
    pub fn waits(&self, sender: &Program, here: &[&Program]) -> Option<String> {
        let due = here.iter().filter(|program| self.due.contains(&program.node()));
        let got = |program: &Program| program.received.iter().any(|got| got.value == self.value);
        let replied = |node| !self.command || sender.replies.contains(&(node, self.number));
        let mut waits = due.filter(|program| !got(program) || !replied(program.node()));
        waits.next().map(|program| format!("its event {} waits for {}", self.number, program.node().short()))
    }
}

/// One program.
pub struct Program {
    /// Its replica.
    pub store: Arc<Store>,
    /// Its engine.
    pub sync: Sync<Store>,
    /// Its clocks.
    pub time: Arc<Timepiece>,
    /// Handles its threads hold.
    pub handles: Vec<Param<Value>>,
    /// Its own writes, with the drained position that covers them.
    pub placed: BTreeMap<Stamp, u64>,
    /// Its own writes that were not drained yet.
    pub unplaced: Vec<Stamp>,
    /// Nodes that its engine said are here.
    pub present: BTreeSet<NodeId>,
    /// Events that it sent.
    pub sent: Vec<SentEvent>,
    /// Events and commands that reached it, its own included.
    pub received: Vec<EventNotice>,
    /// Replies to its commands: by whom, to which.
    pub replies: Vec<(NodeId, u64)>,
    /// What went wrong so far.
    pub violations: Vec<Violation>,
    /// How many of its links caught up since they came up.
    pub caught_up: u64,
    /// Nodes that it once gave up, or that left.
    pub gave_up: BTreeSet<NodeId>,
    /// Whether it opened while others wrote.
    pub late: bool,
    /// The highest stamp of its life before, if its machine remembers it; else 0.
    pub stamp_floor: u64,
    bystander: Standing,
    virtual_time: VirtualTime,
    rung: Arc<AtomicBool>,
    admitted: Admitted,
    /// Samples of session time adopted so far; `None` once it is in use.
    joining: Option<u32>,
    witness: Witness,
    journal: Option<Journal>,
    story: Option<Story>,
}

impl Program {
    /// Opens a program with an empty replica.
    ///
    /// # Panics
    /// Never: the genesis is valid.
    pub fn new(setup: Setup) -> Self {
        let Setup { me, skew, time, config, hosts, admitted, twins, limits, late, stamp_floor, disk, story } =
            setup;
        let mut violations = Vec::new();
        let mut wrong = |detail| {
            violations.push(Violation { check: Check::JournalsKeep, node: Some(me.node), detail });
        };
        let kept = disk.as_ref().and_then(|disk| recover(disk).map_err(&mut wrong).ok());
        let stamp_floor = stamp_floor.max(kept.as_ref().map_or(0, |kept| kept.newest));
        let role = if hosts { WallRole::Reference } else { WallRole::Follower };
        let timepiece = Arc::new(Timepiece::new(time.clone(), skew, role));
        let rung = Arc::new(AtomicBool::new(false));
        let (now, wake) = (Arc::clone(&timepiece), Arc::clone(&rung));
        let bystander = Bystander::default();
        let passing = bystander.clone();
        let store = Store::new(StoreConfig {
            incarnation: me.node.incarnation,
            session: SESSION,
            clock: Arc::new(Clock::new(SESSION, GENESIS).expect("a finite scale")),
            now: Arc::new(move || now.session_now()),
            stamp_floor,
            limits,
            wake: Box::new(move || {
                wake.store(true, Ordering::Relaxed);
                passing.run();
            }),
        });
        let store = Arc::new(store.expect("a floor of zero"));
        let journal = disk.zip(kept).and_then(|(disk, kept)| {
            match kept.replay(&disk, &store) {
                Ok(0) => {}
                Ok(refused) => wrong(format!("{refused} fragments of the journal were refused")),
                Err(why) => wrong(why),
            }
            kept.go_on(disk, me.node.incarnation).map_err(&mut wrong).ok()
        });
        let witness = Witness::new(twins, &store);
        let bystander = bystander.stand(Store::clone(&store));
        let node = me.node;
        let joining = skew.follows && !hosts;
        let first_samples = if joining { u64::from(JOIN_SAMPLES) } else { 0 };
        let config = Config { first_samples, ..config };
        let mut sync =
            Sync::new(Arc::clone(&store), me, Box::new(EngineTime(Arc::clone(&timepiece))), config);
        if journal.is_some() {
            sync.open_log();
        }
        if hosts || !skew.follows {
            admitted.lock().expect("one thread").push((node, MonoTime::from_nanos(time.nanos())));
        }
        Self {
            store,
            sync,
            time: timepiece,
            bystander,
            handles: Vec::new(),
            placed: BTreeMap::new(),
            unplaced: Vec::new(),
            present: BTreeSet::new(),
            sent: Vec::new(),
            received: Vec::new(),
            replies: Vec::new(),
            violations,
            caught_up: 0,
            gave_up: BTreeSet::new(),
            late,
            stamp_floor,
            virtual_time: time,
            rung,
            admitted,
            joining: joining.then_some(0),
            witness,
            journal,
            story,
        }
    }

    /// Who it is.
    pub fn node(&self) -> NodeId {
        self.sync.node()
    }

    /// Whether its threads may read and write: a joiner first takes the session's time.
    pub fn is_open(&self) -> bool {
        self.joining.is_none()
    }

    /// Whether its store asked for the engine to be woken.
    pub fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Relaxed)
    }

    /// Looks at the replica as a reader would, and compares with what was seen before.
    pub fn look(&mut self) {
        let (node, now) = (Some(self.node()), self.virtual_time.nanos() as f64 * 1e-9);
        for Violation { check, detail, .. } in self.witness.look(&self.store) {
            self.violations.push(Violation { check, node, detail: format!("at {now:.6} s: {detail}") });
        }
    }

    /// At rest: whether the watch told all that is there.
    pub fn watched_all(&mut self) {
        let node = Some(self.node());
        let found = self.witness.watched_all(&self.store);
        self.violations.extend(found.into_iter().map(|violation| Violation { node, ..violation }));
    }

    /// Another handle that its threads hold.
    pub fn hold(&mut self, handle: Param<Value>) {
        self.bystander.hold(handle.clone());
        self.handles.push(handle);
    }

    /// One of its threads deleted an entity.
    pub fn deleted(&mut self, entity: EntityId) {
        self.witness.deleted(entity);
    }

    /// Whether somebody here saw that an entity is deleted.
    pub fn knows_deleted(&self, entity: EntityId) -> bool {
        self.witness.knows_deleted(entity)
    }

    /// The newest stamp that somebody here has read.
    pub fn newest_seen(&self) -> Stamp {
        self.witness.newest()
    }

    /// Notes a violation.
    pub fn violate(&mut self, check: Check, detail: String) {
        self.violations.push(Violation { check, node: Some(self.node()), detail });
    }

    /// Sums of what the engine counted, over all peers that are here: repair rounds, fragments repaired, sent, received,
    /// superseded. (Rows of those that left go after a while.)
    pub fn totals(&self) -> [u64; 5] {
        let mut rows = self.sync.peers();
        rows.retain(|row| self.present.contains(&row.node));
        let sum = |count: fn(&coeval_sync::PeerStats) -> u64| rows.iter().map(|row| count(&row.stats)).sum();
        [
            sum(|s| s.repairs),
            sum(|s| s.repaired),
            sum(|s| s.sent_updates),
            sum(|s| s.received_updates),
            sum(|s| s.superseded),
        ]
    }

    fn after(&mut self) {
        let position = self.store.position();
        if let Some(torn) = self.witness.received(&self.store, position) {
            self.violate(Check::BatchesAreWhole, torn);
        }
        if let Some(early) = self.bystander.found() {
            self.violate(Check::WritesAfterReadsWin, early);
        }
        self.placed.extend(self.unplaced.drain(..).map(|stamp| (stamp, position)));
        while let Some(notice) = self.sync.poll_notice() {
            self.notice(notice);
        }
        if self.is_open() {
            let now = self.time.session_now();
            if let Some(violation) = self.witness.session_time(now).filter(|_| !self.time.is_raw()) {
                self.violate(Check::SessionTimeGoesOn, violation);
            }
            self.store.clock().advance(now);
        }
    }

    fn notice(&mut self, notice: Notice) {
        if let (Some(story), false) = (&self.story, matches!(notice, Notice::PingSample { .. })) {
            let at = self.virtual_time.nanos() as f64 * 1e-9;
            let line =
                format!("{at:.6} {} position {}: {notice:?}", self.node().short(), self.store.position());
            story.lock().expect("one thread").push(line);
        }
        match notice {
            Notice::PeerUp { node, .. } => {
                self.present.insert(node);
            }
            Notice::PeerLost { node, .. } => {
                self.gave_up.insert(node);
                self.present.remove(&node);
                self.sent.iter_mut().for_each(|event| _ = event.due.remove(&node));
            }
            Notice::CaughtUp { .. } => self.caught_up += 1,
            Notice::Event(event) => {
                if event.command && event.id.from != self.node() {
                    // A sender that is gone meanwhile needs no reply.
                    _ = self.sync.reply(event.id, Reply::Done);
                }
                self.received.push(event);
            }
            Notice::Reply { from, number, .. } => self.replies.push((from, number)),
            Notice::PingSample { node, sample } => self.sample(node, sample),
            Notice::Error { node, message } => {
                self.violate(Check::PeersUnderstandEachOther, format!("with {}: {message}", node.short()));
            }
            _ => {}
        }
    }

    /// Follows the reference: the first admitted node that is this one or linked.
    fn sample(&mut self, node: NodeId, sample: PingSample) {
        if !self.time.follows() {
            return;
        }
        let me = self.node();
        let admitted = self.admitted.lock().expect("one thread").clone();
        let linked = |node: NodeId| node == me || self.sync.link_to(node).is_some();
        let reference = admitted.iter().find(|(other, _)| linked(*other)).map(|(other, _)| *other);
        let from = node.incarnation.0;
        match &mut self.joining {
            Some(taken) => {
                // An answer from before its sender's own admission tells a time that nobody follows.
                let asked = self.time.virtual_of(sample.t1);
                let counts = admitted.iter().any(|(other, since)| *other == node && *since <= asked);
                if counts && self.time.adopt(from, sample) {
                    *taken += 1;
                    if *taken >= JOIN_SAMPLES
                        && self.time.uncertainty().is_some_and(|bound| bound <= JOIN_UNCERTAINTY)
                    {
                        self.joining = None;
                        self.time.settle();
                        let since = MonoTime::from_nanos(self.virtual_time.nanos());
                        self.admitted.lock().expect("one thread").push((me, since));
                    }
                }
            }
            None if reference == Some(me) => self.time.set_role(WallRole::Reference),
            None if reference == Some(node) => {
                self.time.set_role(WallRole::Follower);
                if let Some(Observed::Stepped { before, after, .. }) = self.time.observe(from, sample) {
                    self.store.clock().session_stepped(before, after);
                }
            }
            None => {}
        }
    }
}

impl Machine for Program {
    fn handle(&mut self, input: Input, now: Now, rng: &mut dyn RngCore) -> Vec<Effect> {
        self.virtual_time.set(now.mono.as_nanos());
        let local = Now { mono: self.time.mono() };
        let mut effects = Vec::new();
        if self.rung.swap(false, Ordering::Relaxed) || matches!(input, Input::Wake) {
            effects = self.sync.handle(Input::Wake, local, rng);
        }
        if !matches!(input, Input::Wake) {
            effects.extend(self.sync.handle(input, local, rng));
        }
        while let Some(answers) = self.journal.as_mut().map(|journal| journal.take(&mut effects)) {
            if answers.is_empty() {
                break;
            }
            for answer in answers {
                effects.extend(self.sync.handle(answer, local, rng));
            }
        }
        self.after();
        effects
    }

    fn next_timer(&self) -> Option<MonoTime> {
        if self.is_rung() {
            return Some(MonoTime::from_nanos(self.virtual_time.nanos()));
        }
        self.sync.next_timer().map(|due| self.time.virtual_of(due))
    }
}
