//! A small machine and session for the driver's tests: floods, echoes, counts.
#![allow(dead_code, missing_docs, unreachable_pub)]
use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_quic::*;
use coeval_sync::{CloseReason, Effect, Input, LinkPeer, Machine, Now};
use coeval_time::{Genesis, MonoTime, SessionId, SimTime, WallDuration, WallTime};
use coeval_value::NodeId;
use parking_lot::Mutex;
use rand::RngCore;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const WAIT: Duration = Duration::from_secs(10);
/// Bytes the machine keeps under way per link, told by [`Input::Sent`].
const WINDOW: usize = 128 << 10;

/// What a test sees of a machine.
#[derive(Default, Debug, Clone)]
pub struct Seen {
    pub up: Vec<(LinkTag, LinkPeer, bool)>,
    pub down: Vec<(LinkTag, String)>,
    pub messages: Vec<Bytes>,
    pub datagrams: Vec<Bytes>,
    pub dial_failed: Vec<(NodeId, String)>,
    pub wakes: u64,
    pub timers: u64,
    pub sent: usize,
}

/// Sends what it is told to, as fast as flow control lets it; may echo; keeps one link per pair of nodes.
pub struct Flood {
    pub me: NodeId,
    pub echo: bool,
    pub one_link_per_node: bool,
    pub panic_on_message: bool,
    pub ticks: u32,
    pub seen: Arc<Mutex<Seen>>,
    links: BTreeMap<LinkTag, Lane>,
    next_tick: Option<MonoTime>,
}

struct Lane {
    node: NodeId,
    dialed: bool,
    waiting: std::collections::VecDeque<Bytes>,
    in_flight: usize,
}

impl Flood {
    pub fn send_all(&mut self, messages: Vec<Bytes>) -> Vec<Effect> {
        let links: Vec<LinkTag> = self.links.keys().copied().collect();
        for lane in self.links.values_mut() {
            lane.waiting.extend(messages.iter().cloned());
        }
        links.into_iter().flat_map(|link| self.pour(link)).collect()
    }

    pub fn links(&self) -> Vec<LinkTag> {
        self.links.keys().copied().collect()
    }

    pub fn start_ticks(&mut self, now: Now) {
        self.next_tick = Some(now.mono);
    }

    fn pour(&mut self, link: LinkTag) -> Vec<Effect> {
        let mut effects = Vec::new();
        let Some(lane) = self.links.get_mut(&link) else { return effects };
        while lane.in_flight < WINDOW {
            let Some(bytes) = lane.waiting.pop_front() else { break };
            lane.in_flight += bytes.len();
            effects.push(Effect::Send { link, bytes });
        }
        effects
    }

    /// Of two links between a pair of nodes both sides keep the one dialed by the lesser node.
    fn duplicate(&self, link: LinkTag, node: NodeId, dialed: bool) -> Option<LinkTag> {
        let (other, lane) = self.links.iter().find(|(_, lane)| lane.node == node)?;
        let keep_dialed_here = self.me < node;
        if dialed == keep_dialed_here && lane.dialed != keep_dialed_here { Some(*other) } else { Some(link) }
    }

    fn link_up(&mut self, link: LinkTag, peer: LinkPeer, dialed: bool) -> Vec<Effect> {
        let node = peer.node;
        let duplicate = if self.one_link_per_node { self.duplicate(link, node, dialed) } else { None };
        self.seen.lock().up.push((link, peer, dialed));
        self.links.insert(link, Lane { node, dialed, waiting: Default::default(), in_flight: 0 });
        duplicate.map(|link| Effect::Close { link, reason: CloseReason::Duplicate }).into_iter().collect()
    }
}

impl Machine for Flood {
    fn handle(&mut self, input: Input, now: Now, _rng: &mut dyn RngCore) -> Vec<Effect> {
        match input {
            Input::LinkUp { link, peer, dialed } => return self.link_up(link, peer, dialed),
            Input::LinkDown { link, reason } => {
                assert!(self.links.remove(&link).is_some(), "one LinkDown for each LinkUp");
                self.seen.lock().down.push((link, reason));
            }
            Input::Message { link, bytes } => {
                assert!(!self.panic_on_message, "the machine hit a message");
                assert!(self.links.contains_key(&link), "no message outside of a link's life");
                self.seen.lock().messages.push(bytes.clone());
                if self.echo {
                    return vec![Effect::Send { link, bytes }];
                }
            }
            Input::Datagram { link, bytes } => {
                self.seen.lock().datagrams.push(bytes.clone());
                if self.echo {
                    return vec![Effect::Datagram { link, bytes }];
                }
            }
            Input::Sent { link, bytes } => {
                self.seen.lock().sent += bytes;
                if let Some(lane) = self.links.get_mut(&link) {
                    lane.in_flight = lane.in_flight.saturating_sub(bytes);
                }
                return self.pour(link);
            }
            Input::DialFailed { node, reason } => self.seen.lock().dial_failed.push((node, reason)),
            Input::Logged { .. } | Input::LogFailed { .. } => panic!("the driver keeps no log"),
            Input::Wake => self.seen.lock().wakes += 1,
            Input::Timer => {
                assert!(self.next_tick.is_some_and(|at| at <= now.mono), "a timer never fires early");
                self.ticks -= 1;
                self.seen.lock().timers += 1;
                let next = now.mono.saturating_add(WallDuration::from_millis(2));
                self.next_tick = (self.ticks > 0).then_some(next);
            }
        }
        Vec::new()
    }

    fn next_timer(&self) -> Option<MonoTime> {
        self.next_tick
    }
}

/// A session's state, as far as admission asks for it.
pub struct Session {
    pub id: SessionId,
    pub state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pub key: Option<Secret>,
    pub info: Option<SessionInfo>,
    pub invites: BTreeMap<InviteId, Result<Secret, Refusal>>,
    pub uses_left: Option<u32>,
    pub no_observers: bool,
    pub admitted: Vec<(LinkPeer, Option<InviteId>)>,
}

impl Session {
    pub fn joiner(id: SessionId) -> Arc<Self> {
        Arc::new(Self { id, state: Mutex::default() })
    }

    pub fn member(id: SessionId, key: Secret) -> Arc<Self> {
        let genesis =
            Genesis { wall: WallTime::from_nanos(1), sim: SimTime::from_secs_nanos(-5, 250), scale: -2.5 };
        let info = SessionInfo {
            session: id,
            genesis,
            config_digest: Some([3; 16]),
            data: Bytes::from_static(b"the session's name"),
        };
        let session = Self::joiner(id);
        *session.state.lock() = State { key: Some(key), info: Some(info), ..State::default() };
        session
    }
}

impl Admission for Session {
    fn session(&self) -> SessionId {
        self.id
    }

    fn session_key(&self) -> Option<Secret> {
        self.state.lock().key
    }

    fn info(&self) -> Option<SessionInfo> {
        self.state.lock().info.clone()
    }

    fn verify_invite(&self, invite: InviteId, _now: Now) -> Result<Secret, Refusal> {
        let state = self.state.lock();
        state
            .invites
            .get(&invite)
            .cloned()
            .unwrap_or_else(|| Err(Refusal::standard(RefusalCode::InviteUnknown)))
    }

    fn admit(&self, peer: &LinkPeer, via: Option<InviteId>, _now: Now) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if peer.observer && state.no_observers {
            return Err(Refusal::standard(RefusalCode::ObserverNotAllowed));
        }
        if let (Some(_), Some(left)) = (via, state.uses_left) {
            state.uses_left =
                Some(left.checked_sub(1).ok_or_else(|| Refusal::standard(RefusalCode::InviteUsedUp))?);
        }
        state.admitted.push((peer.clone(), via));
        Ok(())
    }

    fn welcomed(&self, info: &SessionInfo, key: Secret) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        state.key = Some(key);
        state.info = Some(info.clone());
        Ok(())
    }
}

pub fn session_id(n: u128) -> SessionId {
    SessionId(uuid::Uuid::from_u128(n))
}

/// A running peer of a test.
pub struct Peer {
    pub io: Io<Flood>,
    pub session: Arc<Session>,
    pub seen: Arc<Mutex<Seen>>,
    pub identity: Identity,
    pub node: NodeId,
}

pub fn config(name: &str) -> Config {
    let mut config = Config::new(Identity::generate().unwrap());
    config.name = name.into();
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.handshake_timeout = Duration::from_secs(2);
    config
}

impl Peer {
    pub fn start(config: Config, session: Arc<Session>) -> Self {
        Self::start_with(config, session, |_| {})
    }

    pub fn start_with(config: Config, session: Arc<Session>, adjust: impl FnOnce(&mut Flood)) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let identity = config.identity.clone();
        let node = NodeId { peer: identity.peer(), incarnation: config.incarnation };
        let mut machine = Flood {
            me: node,
            echo: false,
            one_link_per_node: false,
            panic_on_message: false,
            ticks: 0,
            seen: seen.clone(),
            links: BTreeMap::new(),
            next_tick: None,
        };
        adjust(&mut machine);
        let io = spawn(config, machine, session.clone(), |_| {}).unwrap();
        Self { io, session, seen, identity, node }
    }

    pub fn member(name: &str) -> Self {
        Self::start(config(name), Session::member(session_id(1), Secret([7; 32])))
    }

    /// An invite made by this peer.
    pub fn invite(&self, id: u64) -> Invite {
        let secret = Secret::generate();
        self.session.state.lock().invites.insert(InviteId(id), Ok(secret));
        Invite {
            version: invite::VERSION,
            session: self.session.id,
            addresses: self.io.listen_addresses(),
            host_key: self.identity.peer(),
            id: InviteId(id),
            secret,
            expires: u64::MAX,
            config_digest: None,
        }
    }

    pub fn target(&self) -> Target {
        Target::Member { addresses: vec![self.io.local_addr()], key: Some(self.identity.peer()) }
    }

    pub fn link_to(&self, other: &Self) -> Dialed {
        self.io.dial(other.target()).wait(WAIT).unwrap()
    }

    pub fn send(&self, messages: Vec<Bytes>) {
        self.io.call(move |machine, _, _| machine.send_all(messages)).unwrap();
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    pub fn links(&self) -> Vec<LinkTag> {
        self.io.ask(|machine, _, _| (machine.links(), Vec::new())).unwrap()
    }

    /// Waits until `condition` holds; fails the test otherwise.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&Seen) -> bool) {
        until(what, || condition(&self.seen.lock()));
    }
}

#[track_caller]
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < WAIT, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// `count` messages that carry their number, `bytes` long.
pub fn numbered(count: u32, bytes: usize) -> Vec<Bytes> {
    (0..count)
        .map(|i| {
            let mut message = i.to_be_bytes().to_vec();
            message.resize(bytes.max(4), 0x5a);
            Bytes::from(message)
        })
        .collect()
}
