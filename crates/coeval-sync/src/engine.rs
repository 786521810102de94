//! The engine: takes inputs apart, keeps the links, and runs what is due.
use crate::config::{Config, SessionTime};
use crate::dial::Dialer;
use crate::events::Events;
use crate::gossip::first_word;
use crate::io::{CloseReason, Effect, Input, LinkPeer, Machine, Now};
use crate::link::{Greeting, Link};
use crate::log::Log;
use crate::members::Members;
use crate::notice::Notice;
use crate::parking::Parking;
use crate::pump::Unit;
use crate::stats::PeerStats;
use crate::worlds::Following;
use coeval_merge::{Entry, LinkTag, Origin, Replica};
use coeval_time::{Incarnation, MonoTime, WallDuration, WallTime};
use coeval_value::NodeId;
use coeval_wire::frame::{Bye, Hello};
use coeval_wire::{Frame, FrameError, Interest, PROTOCOL_VERSION};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A node that does not know session time greets after this long even if no ping was answered.
const NO_ANSWER: WallDuration = WallDuration::from_secs(5);

/// The replication engine over one replica.
///
/// Getters take `&self`. [`handle`](Machine::handle) is the way in for everything that happens outside, including
/// the passing of time. [`send_event`](Sync::send_event), [`reply`](Sync::reply) and [`leave`](Sync::leave) queue
/// effects that the next call of `handle` returns: after them [`next_timer`](Machine::next_timer) is due at once.
/// [`poll_notice`](Sync::poll_notice) is the way out for the owner.
pub struct Sync<R> {
    pub(crate) replica: Arc<R>,
    pub(crate) config: Config,
    pub(crate) me: LinkPeer,
    wall: Box<dyn SessionTime>,
    pub(crate) links: BTreeMap<LinkTag, Link>,
    pub(crate) members: Members,
    /// Of each node's incarnation: the position up to which this replica holds what it drained.
    pub(crate) cursors: BTreeMap<Incarnation, u64>,
    pub(crate) parking: Parking,
    /// Received since the last drain, to be passed on with the next.
    pub(crate) passing: Vec<Unit>,
    /// Newly parked, to be passed on with the next drain though the replica does not hold them.
    pub(crate) parked_entries: Vec<(Origin, Entry)>,
    pub(crate) events: Events,
    pub(crate) log: Option<Log>,
    pub(crate) dialer: Dialer,
    pub(crate) following: Following,
    pub(crate) stats: BTreeMap<NodeId, PeerStats>,
    pub(crate) notices: VecDeque<Notice>,
    pub(crate) out: Vec<Effect>,
    pub(crate) now: MonoTime,
    /// Whether something was applied since the last pump.
    pub(crate) applied: bool,
    /// Whether links or nodes changed since dials were planned.
    pub(crate) replan: bool,
    /// Pings answered so far.
    pub(crate) samples: u64,
    pub(crate) entropy: u64,
    pub(crate) left: bool,
}

impl<R: Replica> Sync<R> {
    /// An engine for `replica`, at the node `me`, told session wall time by `wall`.
    pub fn new(replica: Arc<R>, me: LinkPeer, wall: Box<dyn SessionTime>, config: Config) -> Self {
        let members = Members::new(first_word(&me));
        Self {
            replica,
            config,
            me,
            wall,
            links: BTreeMap::new(),
            members,
            cursors: BTreeMap::new(),
            parking: Parking::default(),
            passing: Vec::new(),
            parked_entries: Vec::new(),
            events: Events::default(),
            log: None,
            dialer: Dialer::default(),
            following: Following::default(),
            stats: BTreeMap::new(),
            notices: VecDeque::new(),
            out: Vec::new(),
            now: MonoTime::default(),
            applied: false,
            replan: false,
            samples: 0,
            entropy: 0,
            left: false,
        }
    }

    /// The replica.
    pub fn replica(&self) -> &Arc<R> {
        &self.replica
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.me.node
    }

    /// The oldest notice not yet taken. The owner polls after every input: notices wait without bound.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Leaves the session: says so to everyone and closes all links.
    pub fn leave(&mut self) {
        self.left = true;
        if let Some(state) = self.members.revise(|state| {
            state.left = true;
            state.links.clear();
        }) {
            self.flood(&state, None);
        }
        for tag in self.tags() {
            self.send(tag, &Bye { reason: "the peer left".to_owned() }.into());
            self.close(tag, CloseReason::Left);
        }
    }

    pub(crate) fn session_wall(&self) -> WallTime {
        self.wall.session_wall(self.now)
    }

    pub(crate) fn tags(&self) -> Vec<LinkTag> {
        self.links.keys().copied().collect()
    }

    pub(crate) fn stats(&mut self, link: LinkTag) -> &mut PeerStats {
        let node = self.links.get(&link).map(|link| link.peer.node).unwrap_or_default();
        self.stats.entry(node).or_default()
    }

    /// A length between three quarters of `base` and `base`, so that the nodes of a session do not act in step.
    pub(crate) fn jitter(&mut self, base: WallDuration) -> WallDuration {
        // xorshift64 (Marsaglia 2003), seeded by the caller's generator at each input.
        self.entropy ^= self.entropy << 13;
        self.entropy ^= self.entropy >> 7;
        self.entropy ^= self.entropy << 17;
        let quarter = base.as_nanos() / 4;
        let off = (self.entropy % (quarter.unsigned_abs() + 1)) as i64;
        WallDuration::from_nanos(base.as_nanos() - off)
    }

    /// Queues a frame on a link.
    pub(crate) fn send(&mut self, link: LinkTag, frame: &Frame) {
        match frame.encode() {
            Ok(bytes) => self.send_bytes(link, bytes),
            Err(error) => self.complain(link, error.to_string()),
        }
    }

    /// Queues a message on a link.
    pub(crate) fn send_bytes(&mut self, link: LinkTag, bytes: bytes::Bytes) {
        if let Some(to) = self.links.get_mut(&link) {
            to.out.in_flight += bytes.len();
            self.stats(link).sent_bytes += bytes.len() as u64;
            self.out.push(Effect::Send { link, bytes });
        }
    }

    pub(crate) fn complain(&mut self, link: LinkTag, message: String) {
        let node = self.links.get(&link).map(|link| link.peer.node).unwrap_or_default();
        tracing::warn!(?node, message, "replication");
        self.notices.push_back(Notice::Error { node, message });
    }

    /// Closes a link from this side and forgets it. What it staged is not applied and its cursor not moved, so the
    /// next link brings it again.
    pub(crate) fn close(&mut self, link: LinkTag, reason: CloseReason) {
        let words = reason.to_string();
        self.out.push(Effect::Close { link, reason });
        self.forget(link, words);
    }

    fn forget(&mut self, link: LinkTag, reason: String) {
        if self.unlink(link, reason) {
            self.relink();
        }
    }

    /// Forgets a link without telling the others yet; whether it was there.
    fn unlink(&mut self, link: LinkTag, reason: String) -> bool {
        let Some(gone) = self.links.remove(&link) else { return false };
        let node = gone.peer.node;
        self.notices.push_back(Notice::LinkDown { link, node, reason });
        // What the lost link would have brought may already lie at the others: compare soon.
        for link in self.links.values_mut() {
            link.digest_due = link.digest_due.min(self.now.saturating_add(WallDuration::from_millis(100)));
        }
        true
    }

    fn link_up(&mut self, tag: LinkTag, peer: LinkPeer, dialed: bool) {
        if self.left {
            self.out.push(Effect::Close { link: tag, reason: CloseReason::Left });
            return;
        }
        if peer.node == self.me.node {
            let reason = CloseReason::Protocol("a link from a node to itself".to_owned());
            self.out.push(Effect::Close { link: tag, reason });
            return;
        }
        self.dialer.linked(peer.node);
        self.members.supersede(peer.node, &peer.addresses);
        if let Some(old) = self.link_to(peer.node) {
            // Both ends keep the link that the lesser node dialed; of two links dialed by one end, the newer.
            let by_lesser = |dialed: bool| dialed == (self.me.node < peer.node);
            if by_lesser(self.links[&old].dialed) && !by_lesser(dialed) {
                self.out.push(Effect::Close { link: tag, reason: CloseReason::Duplicate });
                return;
            }
            self.out.push(Effect::Close { link: old, reason: CloseReason::Duplicate });
            self.unlink(old, CloseReason::Duplicate.to_string());
        }
        let due = self.now.saturating_add(self.config.digest_period);
        self.links.insert(tag, Link::new(peer, dialed, self.now, due));
        if self.knows_time() {
            self.greet(tag);
        }
        // Before events go over the link: who gets one knows its sender, and can reply.
        self.send_members(tag);
        self.relink();
    }

    /// Whether enough pings were answered for session time to be known.
    fn knows_time(&self) -> bool {
        self.samples >= self.config.first_samples
    }

    /// Says hello on a link, and takes the peer's if it came first.
    pub(crate) fn greet(&mut self, tag: LinkTag) {
        self.pump();
        let empty = self.is_empty();
        let (digest, position) = (self.replica.digest(), self.replica.position());
        let Some(link) = self.links.get_mut(&tag) else { return };
        let of = link.peer.node.incarnation;
        let cursor = self.cursors.get(&of).map(|at| (of, *at));
        let world = self.replica.world().into();
        let hello = Hello { cursor, empty, digest, world, interest: Interest::Full };
        link.greeting = Some(Greeting { hello: hello.clone(), position });
        let held = link.held.take();
        self.send(tag, &hello.into());
        if let Some(theirs) = held {
            self.hello(tag, &theirs);
        }
    }

    /// Greets where that had to wait for session time.
    fn greet_waiting(&mut self) {
        for tag in self.tags() {
            let waits = |link: &Link| link.greeting.is_none() && self.now.since(link.up_at) >= NO_ANSWER;
            if self
                .links
                .get(&tag)
                .is_some_and(|link| link.greeting.is_none() && (self.knows_time() || waits(link)))
            {
                self.greet(tag);
                self.reroute_events();
            }
        }
    }

    fn hello(&mut self, tag: LinkTag, theirs: &Hello) {
        if let Err(message) = self.take_hello(tag, theirs) {
            self.complain(tag, message.clone());
            self.close(tag, CloseReason::Protocol(message));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.replica.scan(Default::default(), 0, 1).states.is_empty() && self.replica.entry_ids().is_empty()
    }

    fn message(&mut self, link: LinkTag, bytes: &[u8]) {
        if !self.links.contains_key(&link) {
            return;
        }
        self.stats(link).received_bytes += bytes.len() as u64;
        match Frame::decode(bytes) {
            Ok(frame) => self.frame(link, frame),
            Err(FrameError::UnknownVersion(theirs)) => {
                self.close(link, CloseReason::Version { ours: PROTOCOL_VERSION, theirs });
            }
            Err(error) => self.close(link, CloseReason::Protocol(error.to_string())),
        }
    }

    fn frame(&mut self, link: LinkTag, frame: Frame) {
        let greeted = self.links.get(&link).is_some_and(|link| link.inc.greeted);
        let result = match frame {
            Frame::Hello(hello) => self.hear_world(link, &hello).and_then(|()| {
                if let Some(waiting) = self.links.get_mut(&link).filter(|link| link.greeting.is_none()) {
                    waiting.held = Some(hello);
                    return Ok(());
                }
                self.take_hello(link, &hello)
            }),
            Frame::LinkState(state) => {
                self.on_link_state(link, state);
                Ok(())
            }
            Frame::Bye(bye) => {
                self.out.push(Effect::Close { link, reason: CloseReason::Left });
                self.forget(link, bye.reason);
                Ok(())
            }
            Frame::Ping(_) | Frame::Pong(_) => Err("a ping on the message lane".to_owned()),
            _ if !greeted => Err("the first frame is not a hello".to_owned()),
            frame => self.greeted_frame(link, frame),
        };
        if let Err(message) = result {
            self.complain(link, message.clone());
            self.close(link, CloseReason::Protocol(message));
        }
    }

    fn greeted_frame(&mut self, link: LinkTag, frame: Frame) -> Result<(), String> {
        match frame {
            Frame::Define(define) => self.on_define(link, &define.keys).map(|_| ()),
            Frame::Ack(ack) => {
                self.on_ack(link, &ack);
                Ok(())
            }
            Frame::Event(event) => {
                self.on_event(event);
                Ok(())
            }
            Frame::EventAck(ack) => {
                self.on_event_ack(ack);
                Ok(())
            }
            Frame::Fetch(fetch) => {
                self.on_fetch(link, &fetch);
                Ok(())
            }
            content if !self.shares_world(link) => self.other_world(link, &content),
            Frame::Delta(delta) => self.on_delta(link, &delta),
            Frame::Entries(entries) => self.on_entries(link, &entries.entries),
            Frame::Mark(mark) => {
                self.on_mark(link, &mark);
                Ok(())
            }
            Frame::Root(root) => {
                self.on_root(link, &root);
                Ok(())
            }
            Frame::Buckets(buckets) => self.on_buckets(link, &buckets),
            Frame::Entities(entities) => self.on_entities(link, &entities),
            Frame::Summary(summary) => self.on_summary(link, &summary),
            Frame::EntryIds(ids) => {
                self.on_entry_ids(link, &ids);
                Ok(())
            }
            Frame::Want(want) => {
                self.on_want(link, &want);
                Ok(())
            }
            Frame::Repaired(repaired) => {
                self.on_repaired(link, repaired.round);
                Ok(())
            }
            other => Err(format!("a {} frame out of place", other.name())),
        }
    }

    fn on_datagram(&mut self, link: LinkTag, bytes: &[u8]) {
        if !self.links.contains_key(&link) {
            return;
        }
        match Frame::decode(bytes) {
            Ok(Frame::Ping(ping)) => self.on_ping(link, ping),
            Ok(Frame::Pong(pong)) => self.on_pong(link, pong),
            // A datagram is never worth a link.
            Ok(other) => self.complain(link, format!("a {} frame in a datagram", other.name())),
            Err(error) => self.complain(link, error.to_string()),
        }
    }

    fn timer(&mut self) {
        self.greet_waiting();
        self.refresh_members();
        self.apply_due();
        for tag in self.tags() {
            self.digest_if_due(tag);
            self.ping_if_due(tag);
        }
        self.retry_events();
        self.retry_log();
        self.dial_if_due();
    }

    fn due(&self) -> Option<MonoTime> {
        let links = self.links.values().flat_map(|link| [link.digest_due, link.ping.due]);
        let ungreeted = self.links.values().filter(|link| link.greeting.is_none());
        let links = links.chain(ungreeted.map(|link| link.up_at.saturating_add(NO_ANSWER)));
        let dues = [
            self.members.next(self.config.lost_after),
            self.parked_due(),
            self.events.next(),
            self.dialer.next(),
            self.log_due(),
        ];
        links.chain(dues.into_iter().flatten()).min()
    }

    /// When the next parked fragment is due, by session time as it runs now.
    fn parked_due(&self) -> Option<MonoTime> {
        let stamp = self.parking.next()?;
        let limit = self.session_wall().saturating_add(self.config.lead);
        let wait = stamp.wall().since(limit).as_nanos().max(0);
        Some(self.now.saturating_add(WallDuration::from_nanos(wait.saturating_add(1_000_000))))
    }
}

impl<R: Replica + Send + std::marker::Sync> Machine for Sync<R> {
    fn handle(&mut self, input: Input, now: Now, rng: &mut dyn rand::RngCore) -> Vec<Effect> {
        self.now = now.mono;
        self.entropy = rng.next_u64() | 1;
        match input {
            Input::LinkUp { link, peer, dialed } => self.link_up(link, peer, dialed),
            Input::LinkDown { link, reason } => self.forget(link, reason),
            Input::Message { link, bytes } => self.message(link, &bytes),
            Input::Datagram { link, bytes } => {
                self.on_datagram(link, &bytes);
                self.greet_waiting();
            }
            Input::Sent { link, bytes } => {
                if let Some(link) = self.links.get_mut(&link) {
                    link.out.in_flight = link.out.in_flight.saturating_sub(bytes);
                }
            }
            Input::DialFailed { node, reason } => {
                tracing::debug!(?node, reason, "dial failed");
                self.dial_failed(node);
            }
            Input::Logged { file, bytes, durable } => self.on_logged(file, bytes, durable),
            Input::LogFailed { file, reason } => self.on_log_failed(file, reason),
            Input::Wake => self.applied = true,
            Input::Timer => self.timer(),
        }
        if self.applied {
            self.rename_if_forked();
        }
        self.follow();
        while self.applied || self.has_room() {
            self.pump();
        }
        if std::mem::take(&mut self.replan) {
            self.plan_dials();
        }
        std::mem::take(&mut self.out)
    }

    fn next_timer(&self) -> Option<MonoTime> {
        if self.out.is_empty() { self.due() } else { Some(self.now) }
    }
}
