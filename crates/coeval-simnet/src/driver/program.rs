//! What a process runs in the driver: a real store under a real engine, wired as the façade wires them.
use crate::driver::network::Network;
use crate::program::{GENESIS, SESSION};
use crate::timepiece::START;
use bytes::Bytes;
use coeval_merge::Replica;
use coeval_quic::{Admission, Bell, InviteId, Refusal, RefusalCode, Secret, SessionInfo};
use coeval_store::{Limits, Store, StoreConfig};
use coeval_sync::{Config, Effect, Event, EventNotice, Input, LinkPeer, Machine, Notice, Now, Sync, Target};
use coeval_time::{Clock, Incarnation, MonoTime, SessionId, Stamp, WallDuration, WallTime};
use coeval_value::{NodeId, Value};
use rand::RngCore;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::time::Instant;

/// An event as its sender remembers it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// Its value.
    pub value: Value,
    /// Who was here when it was sent.
    pub to: BTreeSet<NodeId>,
    /// Those of them who were not lost since.
    pub due: BTreeSet<NodeId>,
}

/// A store, its engine, and what they told.
pub struct Program {
    /// The replica.
    pub store: Arc<Store>,
    /// The engine.
    pub sync: Sync<Store>,
    /// Its own writes, by the drained position that covers them; `None`: not drained.
    pub written: BTreeMap<Stamp, Option<u64>>,
    /// Nodes that its engine said are here.
    pub present: BTreeSet<NodeId>,
    /// Events that it sent.
    pub sent: Vec<Sent>,
    /// Events that it got.
    pub received: Vec<EventNotice>,
    /// Errors that its engine told.
    pub errors: Vec<String>,
    network: Network,
}

impl Program {
    /// A program with an empty replica, whose writes ring `bell`. Clocks are right, and count from `origin`.
    ///
    /// # Panics
    /// Never: the genesis is valid.
    pub fn new(me: LinkPeer, config: Config, bell: Bell, network: Network, origin: Instant) -> Self {
        let wall = move || wall(MonoTime::from_nanos(origin.elapsed().as_nanos() as u64));
        let store = Store::new(StoreConfig {
            incarnation: me.node.incarnation,
            session: SESSION,
            clock: Arc::new(Clock::new(SESSION, GENESIS).expect("a finite scale")),
            now: Arc::new(wall),
            stamp_floor: 0,
            limits: Limits::default(),
            wake: Box::new(move || bell.ring()),
        });
        let store = Arc::new(store.expect("a floor of zero"));
        let sync = Sync::new(Arc::clone(&store), me, Box::new(self::wall), config);
        Self {
            store,
            sync,
            written: BTreeMap::new(),
            present: BTreeSet::new(),
            sent: Vec::new(),
            received: Vec::new(),
            errors: Vec::new(),
            network,
        }
    }

    /// Sends an event to everyone.
    pub fn send(&mut self, value: Value) {
        let sim = self.store.context().sim;
        let event =
            Event { topic: "signal".into(), target: Target::All, value: value.clone(), sim, command: false };
        // A full queue refuses, as it should.
        if let Ok(number) = self.sync.send_event(event) {
            let to = self.present.clone();
            self.sent.push(Sent { number, value, due: to.clone(), to });
        }
    }

    /// Of each of its writes: who has acknowledged it.
    pub fn acknowledged(&self) -> BTreeMap<Stamp, BTreeSet<NodeId>> {
        let mut by_position: BTreeMap<u64, BTreeSet<NodeId>> = BTreeMap::new();
        let by = |(stamp, position): (&Stamp, &Option<u64>)| {
            let Some(position) = *position else { return (*stamp, BTreeSet::new()) };
            let by = by_position.entry(position).or_insert_with(|| {
                let flushed = self.sync.flushed(position).into_iter();
                flushed.filter(|(_, done)| *done).map(|(node, _)| node).collect()
            });
            (*stamp, by.clone())
        };
        self.written.iter().map(by).collect()
    }

    fn after(&mut self, drained: bool) {
        if drained {
            let position = self.store.position();
            self.written.values_mut().for_each(|placed| _ = placed.get_or_insert(position));
        }
        while let Some(notice) = self.sync.poll_notice() {
            match notice {
                Notice::PeerUp { node, .. } => _ = self.present.insert(node),
                Notice::PeerLost { node, .. } => {
                    self.present.remove(&node);
                    self.sent.iter_mut().for_each(|event| _ = event.due.remove(&node));
                }
                Notice::Event(event) => self.received.push(event),
                Notice::Error { node, message } => self.errors.push(format!("{}: {message}", node.short())),
                _ => {}
            }
        }
    }
}

fn wall(mono: MonoTime) -> WallTime {
    START.saturating_add(WallDuration::from_nanos(mono.as_nanos().cast_signed()))
}

/// A program, as the driver's machine and as the simulation sees it.
#[derive(Clone)]
pub struct Seat(Arc<Mutex<Program>>);

impl Seat {
    /// A seat for a program.
    pub fn new(program: Program) -> Self {
        Self(Arc::new(Mutex::new(program)))
    }

    /// The program.
    ///
    /// # Panics
    /// When the program panicked.
    pub fn program(&self) -> MutexGuard<'_, Program> {
        self.0.lock().expect("one thread")
    }

    /// The program, unless someone has it at hand.
    pub fn try_program(&self) -> Option<MutexGuard<'_, Program>> {
        self.0.try_lock().ok()
    }
}

impl Machine for Seat {
    fn handle(&mut self, input: Input, now: Now, rng: &mut dyn RngCore) -> Vec<Effect> {
        let mut program = self.program();
        let (kind, size) = match &input {
            Input::LinkUp { link, .. } => (1, link.0),
            Input::LinkDown { link, .. } => (2, link.0),
            Input::Message { bytes, .. } => (3, bytes.len() as u64),
            Input::Datagram { bytes, .. } => (4, bytes.len() as u64),
            Input::Sent { bytes, .. } => (5, *bytes as u64),
            Input::DialFailed { .. } => (6, 0),
            Input::Wake => (7, 0),
            Input::Timer => (8, 0),
            // These programs keep no log.
            _ => (9, 0),
        };
        program.network.note(&[program.sync.node().incarnation.0, kind, size]);
        let drains = matches!(input, Input::Wake);
        let effects = program.sync.handle(input, now, rng);
        program.after(drains);
        effects
    }

    fn next_timer(&self) -> Option<MonoTime> {
        self.program().sync.next_timer()
    }
}

/// The invites of the session: what its replicated state holds, here at hand for all.
pub type Invites = Arc<Mutex<BTreeMap<InviteId, Secret>>>;

/// Who may link with a program.
pub struct Desk {
    key: Mutex<Option<Secret>>,
    invites: Invites,
}

impl Desk {
    /// The desk of a member, who has the session's key, or of one who has yet to join.
    pub fn new(key: Option<Secret>, invites: Invites) -> Self {
        Self { key: Mutex::new(key), invites }
    }
}

impl Admission for Desk {
    fn session(&self) -> SessionId {
        SESSION
    }

    fn session_key(&self) -> Option<Secret> {
        *self.key.lock().expect("one thread")
    }

    fn info(&self) -> Option<SessionInfo> {
        self.session_key()?;
        Some(SessionInfo { session: SESSION, genesis: GENESIS, config_digest: None, data: Bytes::new() })
    }

    fn verify_invite(&self, invite: InviteId, _: Now) -> Result<Secret, Refusal> {
        let invites = self.invites.lock().expect("one thread");
        invites.get(&invite).copied().ok_or_else(|| Refusal::standard(RefusalCode::InviteUnknown))
    }

    fn admit(&self, _: &LinkPeer, _: Option<InviteId>, _: Now) -> Result<(), Refusal> {
        Ok(())
    }

    fn welcomed(&self, _: &SessionInfo, key: Secret) -> Result<(), Refusal> {
        *self.key.lock().expect("one thread") = Some(key);
        Ok(())
    }
}

/// Incarnations zero and one are reserved.
pub(crate) fn incarnation(rng: &mut dyn RngCore) -> Incarnation {
    Incarnation(rng.next_u64() | 2)
}
