//! How a peer is opened: hosting a new session, or joining one.
use crate::engine::{Engine, JOIN_SAMPLES};
use crate::gate::{self, Build, Gate};
use crate::hub::Hub;
use crate::journal::{JournalOptions, Journaling, Recovered};
use crate::peer::Peer;
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};
use coeval_merge::Op;
use coeval_quic::{
    Conditioner, Config, Identity, Invite, Io, LinkConditioner, MonoClock, Secret, SessionInfo, Target,
};
use coeval_store::{Limits, Store, StoreConfig};
use coeval_sync::LinkPeer;
use coeval_time::{
    Clock, Genesis, Incarnation, SessionId, SessionWall, SimTime, WallDuration, WallRole, WallTime,
};
use coeval_value::{NodeId, SampleMeta};
use parking_lot::Mutex;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// How long opening waits for the journal to hold what there is.
const JOURNAL_BEGINS: Duration = Duration::from_secs(30);

/// What hosting and joining have in common.
#[derive(Clone, Debug)]
struct Common {
    listen: Option<SocketAddr>,
    advertise: Vec<SocketAddr>,
    identity: Option<Identity>,
    peer_name: Option<String>,
    conditioner: Option<Conditioner>,
    os_clock_offset: WallDuration,
    observer: bool,
    initial: Vec<Op>,
    digest: Option<[u8; 16]>,
    limits: Limits,
    journal: Option<JournalOptions>,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            listen: None,
            advertise: Vec::new(),
            identity: None,
            peer_name: None,
            conditioner: None,
            os_clock_offset: WallDuration::ZERO,
            observer: false,
            initial: Vec::new(),
            digest: None,
            limits: Limits::default(),
            journal: None,
        }
    }
}

macro_rules! common_options {
    () => {
        /// Where to listen. The default is a port of the loopback interface that the system chooses: programs on other
        /// machines can join only when this names an address they reach (`0.0.0.0:PORT` for all interfaces).
        #[must_use]
        pub fn listen(mut self, address: SocketAddr) -> Self {
            self.common.listen = Some(address);
            self
        }

        /// An address to tell others instead of those found; may be given several times.
        #[must_use]
        pub fn advertise(mut self, address: SocketAddr) -> Self {
            self.common.advertise.push(address);
            self
        }

        /// The key pair of this installation. The default is a fresh one for each opening.
        #[must_use]
        pub fn identity(mut self, identity: Identity) -> Self {
            self.common.identity = Some(identity);
            self
        }

        /// This peer's name, a label that others see.
        #[must_use]
        pub fn peer_name(mut self, name: impl Into<String>) -> Self {
            self.common.peer_name = Some(name.into());
            self
        }

        /// Makes what this peer sends suffer: delay, jitter, loss, bandwidth. For trying bad networks.
        #[must_use]
        pub fn conditioner(mut self, conditions: Conditioner) -> Self {
            self.common.conditioner = Some(conditions);
            self
        }

        /// Pretends that this machine's OS clock is off by this much. For trying wrong clocks.
        #[must_use]
        pub fn os_clock_offset(mut self, offset: WallDuration) -> Self {
            self.common.os_clock_offset = offset;
            self
        }

        /// The limits of the replica.
        #[must_use]
        pub fn limits(mut self, limits: Limits) -> Self {
            self.common.limits = limits;
            self
        }
    };
}

/// Options of a new session.
#[derive(Clone, Debug)]
pub struct HostOptions {
    name: String,
    start: Option<SimTime>,
    rate: f64,
    common: Common,
}

/// Options of joining a session.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    invite: Invite,
    timeout: Duration,
    common: Common,
}

/// The terms of an invite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InviteOptions {
    /// How long it is valid.
    pub expires_in: Duration,
    /// How many peers may join by it.
    pub uses: u64,
    /// Whether it admits observers only.
    pub observer: bool,
}

impl Default for InviteOptions {
    /// A day, any number of contributors.
    fn default() -> Self {
        Self { expires_in: Duration::from_secs(86_400), uses: u64::MAX, observer: false }
    }
}

impl HostOptions {
    pub(crate) fn new(name: String) -> Self {
        Self { name, start: None, rate: 1.0, common: Common::default() }
    }

    common_options!();

    /// Keeps a journal: a path, or [`JournalOptions`]. There must be none yet: [`Peer::rehost`] opens one that is there.
    #[must_use]
    pub fn journal(mut self, journal: impl Into<JournalOptions>) -> Self {
        self.common.journal = Some(journal.into());
        self
    }

    /// Sim time at the start. The default is the OS clock's time.
    #[must_use]
    pub fn start(mut self, sim: SimTime) -> Self {
        self.start = Some(sim);
        self
    }

    /// Seconds of sim time per second of wall time at the start; finite. The default is 1.
    #[must_use]
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// What the world starts with, and its digest: joiners with an equal digest know it already.
    #[must_use]
    pub fn initial(mut self, operations: Vec<Op>, digest: [u8; 16]) -> Self {
        (self.common.initial, self.common.digest) = (operations, Some(digest));
        self
    }

    /// Opens the session. The peer has its own I/O thread; no async runtime is needed.
    pub fn open(self) -> Result<Peer> {
        let journal = self.common.journal.clone().map(Journaling::fresh).transpose()?;
        let session = SessionId(Uuid::new_v4());
        let opening = Opening::new(self.common, &self.name, session, WallRole::Reference, journal)?;
        let wall = opening.wall.at(MonoClock::now());
        let start = self.start.unwrap_or_else(|| SimTime::from_wall_utc(wall).0);
        let info = SessionInfo {
            session: opening.gate_session,
            genesis: Genesis { wall, sim: start, scale: self.rate },
            config_digest: opening.digest,
            data: self.name.clone().into(),
        };
        opening.gate.found(&info, Secret::generate()).map_err(Error::invalid)?;
        opening.wall.settle();
        opening.finish(None)
    }
}

impl JoinOptions {
    pub(crate) fn new(invite: Invite) -> Self {
        Self { invite, timeout: Duration::from_secs(15), common: Common::default() }
    }

    common_options!();

    /// What the joiner would start with: used only when `digest` equals the session's, else everything comes from the
    /// session. Joining overwrites nothing.
    #[must_use]
    pub fn initial(mut self, operations: Vec<Op>, digest: [u8; 16]) -> Self {
        (self.common.initial, self.common.digest) = (operations, Some(digest));
        self
    }

    /// Keeps a journal: a path, or [`JournalOptions`]. If there is one of this session, what it holds is brought along:
    /// what was written while nobody heard spreads by the rule that the newest write wins, and nothing that was deleted
    /// meanwhile comes back. The journal of another session is refused.
    #[must_use]
    pub fn journal(mut self, journal: impl Into<JournalOptions>) -> Self {
        self.common.journal = Some(journal.into());
        self
    }

    /// Joins as an observer: reads, never writes or relays.
    #[must_use]
    pub fn observer(mut self) -> Self {
        self.common.observer = true;
        self
    }

    /// How long opening may take. The default is 15 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Joins, and returns caught up: with all that the session held, and with its time.
    pub fn open(self) -> Result<Peer> {
        let deadline = crate::inbox::deadline(self.timeout);
        let session = self.invite.session;
        let journal = self.common.journal.clone().map(|options| Journaling::of_session(options, session));
        let opening = Opening::new(self.common, "joiner", session, WallRole::Follower, journal.transpose()?)?;
        opening.recover()?;
        opening.finish(Some((&self.invite, deadline)))
    }
}

/// Options of opening a session again from its journal.
#[derive(Clone, Debug)]
pub struct RehostOptions {
    journal: JournalOptions,
    common: Common,
}

impl RehostOptions {
    pub(crate) fn new(journal: JournalOptions) -> Self {
        Self { journal, common: Common::default() }
    }

    common_options!();

    /// Opens the session. Unless told otherwise the peer is who it was, by key and name, and listens where it did, so
    /// that invites made before still work; it writes as a new opening, above everything the journal holds.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no journal; [`ErrorKind::Journal`] when it is in use or damaged.
    pub fn open(mut self) -> Result<Peer> {
        let journal = Journaling::existing(self.journal)?;
        let header = journal.recovered().map(Recovered::header);
        let session = header.map(|header| header.session).unwrap_or_default();
        if self.common.listen.is_none() {
            self.common.listen = header.and_then(|header| header.listen.parse().ok());
        }
        let opening = Opening::new(self.common, "host", session, WallRole::Reference, Some(journal))?;
        opening.recover()?;
        opening.wall.settle();
        opening.finish(None)
    }
}

/// A peer on its way to being opened.
struct Opening {
    gate: Arc<Gate>,
    gate_session: SessionId,
    digest: Option<[u8; 16]>,
    hub: Arc<Hub>,
    wall: Arc<SessionWall>,
    config: Config,
    me: LinkPeer,
    journal: Option<Journaling>,
}

impl Opening {
    fn new(
        common: Common,
        default_name: &str,
        session: SessionId,
        role: WallRole,
        journal: Option<Journaling>,
    ) -> Result<Self> {
        let recovered = journal.as_ref().and_then(Journaling::recovered);
        let identity = match common.identity.or_else(|| recovered.map(|old| old.identity.clone())) {
            Some(identity) => identity,
            None => Identity::generate().map_err(|e| Error::new(ErrorKind::Network, e.to_string()))?,
        };
        let old_name = || recovered.map(|old| old.header().name.clone());
        let name = common.peer_name.or_else(old_name).unwrap_or_else(|| default_name.to_owned());
        let mut config = Config::new(identity);
        config.name.clone_from(&name);
        config.observer = common.observer;
        config.listen = common.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        config.advertise = common.advertise;
        if let Some(conditions) = common.conditioner {
            config.conditioner = LinkConditioner::new(rand::random());
            config.conditioner.set(conditions);
        }
        let node = NodeId { peer: config.identity.peer(), incarnation: config.incarnation };
        let stamp_floor = recovered.map_or(0, |old| old.newest);
        let mut start = os_wall(common.os_clock_offset)?;
        if role == WallRole::Reference {
            // Session wall time never goes back: not when this machine's clock was set back before it was hosted again.
            start = start.max(WallTime::from_nanos(stamp_floor));
        }
        let wall = Arc::new(SessionWall::new(MonoClock::now(), start, role));
        let digest = common.digest;
        let bell = config.bell.clone();
        let store_wall = Arc::clone(&wall);
        let (initial, limits, incarnation) = (common.initial, common.limits, config.incarnation);
        let build: Build = Box::new(move |info| {
            let session_wall = Arc::clone(&store_wall);
            let store =
                build_store(info, (incarnation, stamp_floor), limits, session_wall, move || bell.ring())?;
            if !initial.is_empty() {
                if info.config_digest == digest {
                    let meta = SampleMeta { sim: info.genesis.sim, ..SampleMeta::default() };
                    store.apply_genesis(initial, meta).map_err(|e| e.to_string())?;
                } else {
                    tracing::warn!(
                        "this program's sim config is not the session's: everything is taken from the session"
                    );
                }
            }
            Ok(store)
        });
        let gate = Arc::new(Gate::new(session, Arc::clone(&wall), build));
        let me = LinkPeer { node, name, addresses: Vec::new(), observer: config.observer };
        let hub = Arc::new(Hub::default());
        Ok(Self { gate, gate_session: session, digest, hub, wall, config, me, journal })
    }

    /// Brings in what the journal holds, if there was one.
    fn recover(&self) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let Some(recovered) = journal.recovered() else { return Ok(()) };
        let (info, key) = recovered.session();
        self.gate.found(&info, key).map_err(Error::invalid)?;
        self.gate.store().map_or(Ok(()), |store| journal.replay(store))
    }

    /// Starts the I/O thread; a joiner links by its invite and catches up.
    fn finish(self, join: Option<(&Invite, Instant)>) -> Result<Peer> {
        let Self { gate, hub, wall, config, me, journal, .. } = self;
        let (name, observer) = (me.name.clone(), me.observer);
        let node = Arc::new(Mutex::new(me.node));
        let returning = journal.as_ref().is_some_and(|journal| journal.recovered().is_some());
        let identity = config.identity.clone();
        let desk = journal.map(|journal| journal.desk(identity, name.clone(), config.bell.clone()));
        let engine = Engine::new(
            me,
            Arc::clone(&node),
            Arc::clone(&gate),
            Arc::clone(&hub),
            Arc::clone(&wall),
            join.is_some(),
        )
        .with_journal(desk, returning);
        let io = coeval_quic::spawn(config, engine, Arc::clone(&gate) as _, Engine::notices)
            .map_err(|e| Error::new(ErrorKind::Network, e.to_string()))?;
        let addresses = io.listen_addresses().iter().map(ToString::to_string).collect();
        let bound = io.local_addr();
        io.ask(move |engine, now, rng| {
            engine.bound_at(bound);
            ((), engine.reachable_at(addresses, now, rng))
        })?;
        if let Some((invite, deadline)) = join {
            link(&io, &hub, invite, deadline)?;
        }
        let store = gate
            .store()
            .cloned()
            .ok_or_else(|| Error::new(ErrorKind::Network, "the session's facts did not arrive"))?;
        let clock = Arc::clone(store.clock());
        let shared = Shared { store, clock, wall, hub, gate, io, node, name, observer };
        // An observer adds nothing to the session, not even itself.
        if !observer {
            shared.add_record(gate::member_record(shared.node(), &shared.name))?;
        }
        let peer = Peer::new(shared);
        // A place that cannot be written to shows here, not later.
        peer.await_journal(JOURNAL_BEGINS)?;
        Ok(peer)
    }
}

/// Links to the session of `invite`, waits until its world and its time are here.
fn link(io: &Io<Engine>, hub: &Hub, invite: &Invite, deadline: Instant) -> Result<()> {
    let left = || deadline.saturating_duration_since(Instant::now());
    let dialed = io.dial(Target::Invite(invite.clone())).wait(left());
    let host = dialed?.peer.node;
    let ready = hub.wait_until(deadline, |state| {
        let there = state.caught_up.contains(&host) && state.clock_samples >= JOIN_SAMPLES;
        (there || hub.stopped().is_some()).then(|| hub.stopped().map(str::to_owned))
    });
    match ready {
        Some(None) => Ok(io.ask(|engine, _, _| (engine.settle(), Vec::new()))?),
        Some(Some(reason)) => Err(Error::new(ErrorKind::Stopped, reason)),
        None => Err(Error::new(
            ErrorKind::Timeout,
            "linked, but the session's world did not arrive in time: try a longer time-out, or look at the network",
        )),
    }
}

fn build_store(
    info: &SessionInfo,
    (incarnation, stamp_floor): (Incarnation, u64),
    limits: Limits,
    wall: Arc<SessionWall>,
    wake: impl Fn() + Send + Sync + 'static,
) -> Result<Arc<Store>, String> {
    let clock = Clock::new(info.session, info.genesis).map_err(|e| e.to_string())?;
    let config = StoreConfig {
        incarnation,
        session: info.session,
        clock: Arc::new(clock),
        now: Arc::new(move || wall.at(MonoClock::now())),
        stamp_floor,
        limits,
        wake: Box::new(wake),
    };
    Store::new(config).map(Arc::new).map_err(|e| e.to_string())
}

fn os_wall(offset: WallDuration) -> Result<WallTime> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| {
        Error::new(ErrorKind::Invalid, "this machine's clock reads before 1970: set it first")
    })?;
    let nanos = u64::try_from(since.as_nanos())
        .map_err(|_| Error::invalid("this machine's clock reads after 2554"))?;
    Ok(WallTime::from_nanos(nanos).saturating_add(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerEvent;
    use coeval_merge::{LinkTag, Replica};

    /// A cloned machine writes under this very opening of the peer: this one goes on under a new name, told once.
    #[test]
    fn who_finds_a_clone_of_itself_goes_on_under_a_new_name() {
        let peer = Peer::host("a").open().unwrap();
        let notices = peer.notices();
        let guest = Peer::join(peer.invite().unwrap()).open().unwrap();
        let shared = Arc::clone(peer.shared());
        let (info, incarnation) = (peer.session(), peer.node().incarnation);
        let clone =
            build_store(&info, (incarnation, 0), Limits::default(), Arc::clone(&shared.wall), || ()).unwrap();
        for second in [1, 2] {
            let later = shared.now().saturating_add(WallDuration::from_secs(second));
            let context = coeval_time::Context { wall: later, ..peer.context() };
            clone.create_entity(context, coeval_value::EntityId::v7(1, rand::random()), None).unwrap();
            let drained = clone.drain();
            let states = drained.changes.iter().map(|change| {
                let key = clone.key(change.slot).unwrap();
                (shared.store.resolve(&key).unwrap(), change.state.clone())
            });
            let applied = shared.store.apply(LinkTag(9), &states.collect::<Vec<_>>(), Vec::new());
            assert!(applied.refused.is_empty(), "{:?}", applied.refused);
        }
        peer.digest();
        let wait = || notices.wait(Duration::from_secs(10));
        let told = std::iter::from_fn(wait).find(|told| matches!(told, PeerEvent::Forked { .. }));
        let Some(PeerEvent::Forked { stamp, before, node }) = told else { panic!("not told") };
        assert_eq!((stamp.writer, before.incarnation, node), (incarnation, incarnation, peer.node()));
        assert_ne!(node, before);
        // What it writes now is of its new name, and reaches the others over new links.
        peer.create_entity("after").unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while guest.entity("after").is_err() || guest.digest() != peer.digest() {
            assert!(Instant::now() < deadline, "the links did not come back");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(guest.peers().iter().any(|row| row.node == node), "{:?}", guest.peers());
        let again =
            std::iter::from_fn(|| notices.poll()).any(|told| matches!(told, PeerEvent::Forked { .. }));
        assert!(!again, "told twice");
    }
}
