//! Events and commands: reliable, in order per sender, exactly once at every node present when they were sent.
//!
//! Events are numbered from each sender to each destination, go hop by hop along the shortest path, and are
//! acknowledged end to end. What is not acknowledged in time, or lost its route, is sent again; the receiver takes
//! only the number it expects. A node that is lost for good, or joins later, gets nothing.
//!
//! Being lost is one side's view: a node that stood still finds on waking that only its links are gone, and waits on for
//! the answers to its commands, while those who could not reach it gave it up. So replies outlive the loss of a node.
//! They are kept, and may be given, until it is forgotten, says that it leaves, or opens again.
use crate::Sync;
use crate::codec;
use crate::notice::{EventNotice, Notice};
use bytes::Bytes;
use coeval_faults::{Fault, active};
use coeval_merge::{LinkTag, Replica};
use coeval_time::{MonoTime, SimTime, WallDuration};
use coeval_value::{EntityId, NodeId, Value};
use coeval_wire::frame::{Event as EventFrame, EventAck, Payload, WireTarget};
use coeval_wire::{Frame, Reply};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Events on their way to one node at a time.
const IN_FLIGHT: usize = 64;
/// Most hops of an event.
const MAX_HOPS: u8 = 32;
/// First wait for an acknowledgement, and the longest.
const FIRST_WAIT: WallDuration = WallDuration::from_millis(500);
const LONGEST_WAIT: WallDuration = WallDuration::from_secs(5);
const SHORTEST_WAIT: WallDuration = WallDuration::from_millis(100);
/// Most senders whose numbers are kept.
const MAX_SENDERS: usize = 65_536;

/// Whom an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Whoever minds an entity: delivered to every node, this one included.
    Entity(EntityId),
    /// One node.
    Peer(NodeId),
    /// Every node of the session, this one included.
    All,
}

/// An event or a command to be sent.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is about; not empty.
    pub topic: Arc<str>,
    /// Whom it is for.
    pub target: Target,
    /// Its value.
    pub value: Value,
    /// The sim time it is for.
    pub sim: SimTime,
    /// Whether a reply is expected: a command.
    pub command: bool,
}

/// Which event: its sender and the sender's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventId {
    /// Who sent it.
    pub from: NodeId,
    /// The sender's number for it, the same at every destination.
    pub number: u64,
}

/// Why an event was not sent. Nothing of it was sent to anyone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EventError {
    /// A destination has not taken enough of the earlier events.
    #[error("{waiting} events already wait for {to:?}: send again when it has taken some")]
    Busy {
        /// The destination.
        to: NodeId,
        /// How many wait for it.
        waiting: usize,
    },
    /// The destination is not in the session.
    #[error("{0:?} is not in the session")]
    Absent(NodeId),
    /// Topic and value are too large.
    #[error("an event of {bytes} bytes: topic and value have at most {limit}")]
    TooLarge {
        /// How large.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The topic is empty.
    #[error("an event needs a topic")]
    NoTopic,
    /// The value cannot be sent.
    #[error("the value cannot be sent: {0}")]
    Value(String),
}

/// Events to one node.
#[derive(Default)]
struct Lane {
    queue: VecDeque<(u64, Payload)>,
    last: u64,
    /// How many from the front were sent since the route or the patience was lost.
    sent: usize,
    hop: Option<LinkTag>,
    due: Option<MonoTime>,
    wait: Option<WallDuration>,
    /// A number being timed, and when it was first sent.
    timed: Option<(u64, MonoTime)>,
    round_trip: Option<i64>,
}

impl Lane {
    fn patience(&self) -> WallDuration {
        let trip =
            self.round_trip.map_or(FIRST_WAIT, |nanos| WallDuration::from_nanos(nanos.saturating_mul(3)));
        self.wait.unwrap_or(trip).clamp(SHORTEST_WAIT, LONGEST_WAIT)
    }

    /// How many from the front may be on their way. Numbers are missing where events were dropped between replies; the
    /// receiver skips them only when all before them is acknowledged.
    fn in_flight(&self) -> usize {
        let first = self.queue.front().map_or(0, |(seq, _)| *seq);
        let run = (first..).zip(self.queue.iter().take(IN_FLIGHT));
        run.take_while(|(expected, (seq, _))| expected == seq).count()
    }
}

/// All lanes, and what is expected from whom.
#[derive(Default)]
pub(crate) struct Events {
    last: u64,
    lanes: BTreeMap<NodeId, Lane>,
    expected: BTreeMap<NodeId, u64>,
}

impl Events {
    /// When something is to be sent again.
    pub(crate) fn next(&self) -> Option<MonoTime> {
        self.lanes.values().filter_map(|lane| lane.due).min()
    }
}

impl<R: Replica> Sync<R> {
    /// Sends an event to everyone it is for, or to no one. Returns the number that replies name.
    pub fn send_event(&mut self, event: Event) -> Result<u64, EventError> {
        let value = codec::encode_value(&event.value).map_err(EventError::Value)?;
        let (bytes, limit) = (value.len() + event.topic.len(), self.config.event_bytes);
        if event.topic.is_empty() {
            return Err(EventError::NoTopic);
        }
        if bytes > limit {
            return Err(EventError::TooLarge { bytes, limit });
        }
        let me = self.me.node;
        let (to, target): (Vec<NodeId>, _) = match event.target {
            Target::Peer(node) if node == me => (Vec::new(), WireTarget::Node),
            Target::Peer(node) => (vec![node], WireTarget::Node),
            Target::Entity(entity) => (self.members.present().collect(), WireTarget::Entity(entity)),
            Target::All => (self.members.present().collect(), WireTarget::All),
        };
        self.check_lanes(&to)?;
        self.events.last += 1;
        let number = self.events.last;
        if !matches!(event.target, Target::Peer(node) if node != me) {
            let Event { topic, target, value, sim, command } = event.clone();
            let id = EventId { from: me, number };
            self.notices.push_back(Notice::Event(EventNotice { id, topic, target, value, sim, command }));
        }
        let payload = Payload::Event {
            number,
            topic: event.topic.to_string(),
            target,
            sim: event.sim.secs_nanos(),
            command: event.command,
            value,
        };
        to.into_iter().for_each(|node| self.enqueue(node, payload.clone()));
        Ok(number)
    }

    /// Answers a command. Its sender may be out of reach: the answer waits for it until it is forgotten or leaves.
    pub fn reply(&mut self, to: EventId, reply: Reply) -> Result<(), EventError> {
        let EventId { from, number } = to;
        if from == self.me.node {
            self.notices.push_back(Notice::Reply { from, number, reply });
            return Ok(());
        }
        if let Reply::Refused { reason } = &reply
            && reason.len() > self.config.event_bytes
        {
            return Err(EventError::TooLarge { bytes: reason.len(), limit: self.config.event_bytes });
        }
        if !self.members.awaits_replies(from) {
            return Err(EventError::Absent(from));
        }
        self.check_room(from)?;
        self.enqueue(from, Payload::Reply { number, reply });
        Ok(())
    }

    /// How many events and replies sent from here are not acknowledged yet, over all nodes that are not lost.
    pub fn events_waiting(&self) -> usize {
        let lanes = self.events.lanes.iter().filter(|(to, _)| self.members.is_present(**to));
        lanes.map(|(_, lane)| lane.queue.len()).sum()
    }

    /// Whether every destination is here and takes one more.
    fn check_lanes(&self, to: &[NodeId]) -> Result<(), EventError> {
        for &node in to {
            if !self.members.is_present(node) {
                return Err(EventError::Absent(node));
            }
            self.check_room(node)?;
        }
        Ok(())
    }

    /// Whether the lane to a node takes one more.
    fn check_room(&self, to: NodeId) -> Result<(), EventError> {
        let waiting = self.events.lanes.get(&to).map_or(0, |lane| lane.queue.len());
        if waiting >= self.config.event_queue { Err(EventError::Busy { to, waiting }) } else { Ok(()) }
    }

    fn enqueue(&mut self, to: NodeId, payload: Payload) {
        let lane = self.events.lanes.entry(to).or_default();
        lane.last += 1;
        lane.queue.push_back((lane.last, payload));
        self.send_lane(to);
    }

    /// The link that leads to a node.
    fn hop_to(&mut self, to: NodeId) -> Option<LinkTag> {
        let greeted = |this: &Self, node| {
            // Nothing goes before the hello, which waits for session time.
            this.link_to(node).filter(|tag| this.links.get(tag).is_some_and(|link| link.greeting.is_some()))
        };
        if let Some(link) = greeted(self, to) {
            return Some(link);
        }
        let me = self.me.node;
        let hop = self.members.graph().parent(me, to)?;
        greeted(self, hop)
    }

    /// Sends what may be sent to a node now.
    fn send_lane(&mut self, to: NodeId) {
        let hop = self.hop_to(to);
        let Some(lane) = self.events.lanes.get_mut(&to) else { return };
        if lane.hop != hop {
            // The old way is gone, and what was on it with it.
            lane.hop = hop;
            lane.sent = 0;
            lane.timed = None;
        }
        let first = lane.queue.front().map_or(lane.last + 1, |(seq, _)| *seq);
        let end = lane.in_flight();
        let (Some(hop), true) = (hop, lane.sent < end) else { return };
        let now: Vec<(u64, Payload)> = lane.queue.range(lane.sent..end).cloned().collect();
        lane.sent = end;
        if lane.timed.is_none() {
            lane.timed = now.last().map(|(seq, _)| (*seq, self.now));
        }
        let due = self.now.saturating_add(lane.patience());
        lane.due = Some(lane.due.map_or(due, |old| old.max(due)));
        let from = self.me.node;
        for (seq, payload) in now {
            self.send(hop, &EventFrame { from, to, seq, first, hops: MAX_HOPS, payload }.into());
        }
    }

    /// Sends again what was not acknowledged in time.
    pub(crate) fn retry_events(&mut self) {
        let now = self.now;
        let due = self.events.lanes.iter().filter(|(_, lane)| lane.due.is_some_and(|due| due <= now));
        let due: Vec<NodeId> = due.map(|(to, _)| *to).collect();
        for to in due {
            let Some(lane) = self.events.lanes.get_mut(&to) else { continue };
            lane.due = None;
            if !lane.queue.is_empty() {
                lane.wait = Some(WallDuration::from_nanos(lane.patience().as_nanos() * 2));
                lane.sent = 0;
                lane.timed = None;
                self.send_lane(to);
            }
        }
    }

    /// Links or gossip changed: sends what lost its way on another.
    pub(crate) fn reroute_events(&mut self) {
        let waiting = self.events.lanes.iter().filter(|(_, lane)| !lane.queue.is_empty());
        let waiting: Vec<NodeId> = waiting.map(|(to, _)| *to).collect();
        waiting.into_iter().for_each(|to| self.send_lane(to));
    }

    /// A node is lost: the events that wait for it will not arrive. Replies stay, unless it awaits none any more.
    pub(crate) fn drop_events(&mut self, to: NodeId) {
        let Some(lane) = self.events.lanes.get_mut(&to) else { return };
        let before = lane.queue.len();
        let keeps = self.members.awaits_replies(to);
        lane.queue.retain(|(_, payload)| keeps && matches!(payload, Payload::Reply { .. }));
        let count = before - lane.queue.len();
        // The numbers go on: which of those already sent have arrived is not known.
        (lane.sent, lane.due, lane.timed, lane.hop) = (0, None, None, None);
        if count > 0 {
            self.notices.push_back(Notice::EventsDropped { to, count });
        }
    }

    /// Drops what was kept for nodes that were forgotten, left, or opened again.
    pub(crate) fn drop_unawaited(&mut self) {
        let kept = self.events.lanes.iter().filter(|(_, lane)| !lane.queue.is_empty());
        let gone: Vec<NodeId> =
            kept.map(|(to, _)| *to).filter(|to| !self.members.awaits_replies(*to)).collect();
        gone.into_iter().for_each(|to| self.drop_events(to));
    }

    /// Takes an event, or passes it on.
    pub(crate) fn on_event(&mut self, event: EventFrame) {
        if event.to != self.me.node {
            let (Some(hops), Some(hop)) = (event.hops.checked_sub(1), self.hop_to(event.to)) else { return };
            if !self.me.observer {
                self.send(hop, &EventFrame { hops, ..event }.into());
            }
            return;
        }
        let from = event.from;
        if !self.members.awaits_replies(from) {
            // It overtook what tells of its sender, to whom no reply could be given yet: it comes again.
            return;
        }
        if self.events.expected.len() >= MAX_SENDERS {
            let present: Vec<NodeId> = self.members.present().collect();
            self.events.expected.retain(|node, _| present.binary_search(node).is_ok());
        }
        // What the sender will not send again is acknowledged, or was dropped when this node was lost.
        let expected = self.events.expected.entry(from).or_insert(event.first);
        *expected = (*expected).max(event.first);
        if event.seq == *expected || active(Fault::EventsTwice) {
            *expected = (*expected).max(event.seq + 1);
            self.deliver(from, event.payload);
        }
        let seq = self.events.expected.get(&from).map_or(0, |expected| expected - 1);
        self.route_ack(EventAck { from: self.me.node, to: from, seq, hops: MAX_HOPS });
    }

    fn deliver(&mut self, from: NodeId, payload: Payload) {
        match payload {
            Payload::Reply { number, reply } => self.notices.push_back(Notice::Reply { from, number, reply }),
            Payload::Event { number, topic, target, sim, command, value } => match self.unpack(&value, sim) {
                Ok((value, sim)) => {
                    let target = match target {
                        WireTarget::Entity(entity) => Target::Entity(entity),
                        WireTarget::Node => Target::Peer(self.me.node),
                        WireTarget::All => Target::All,
                    };
                    let (id, topic) = (EventId { from, number }, topic.into());
                    self.notices.push_back(Notice::Event(EventNotice {
                        id,
                        topic,
                        target,
                        value,
                        sim,
                        command,
                    }));
                }
                Err(message) => self.notices.push_back(Notice::Error { node: from, message }),
            },
        }
    }

    fn unpack(&self, value: &Bytes, (secs, nanos): (i64, u32)) -> Result<(Value, SimTime), String> {
        if nanos >= 1_000_000_000 {
            return Err(format!("an event at {nanos} nanoseconds of a second"));
        }
        Ok((codec::decode_value(value)?, SimTime::from_secs_nanos(secs, nanos)))
    }

    fn route_ack(&mut self, ack: EventAck) {
        if let Some(hop) = self.hop_to(ack.to) {
            self.send(hop, &Frame::from(ack));
        }
    }

    /// Takes an acknowledgement, or passes it on.
    pub(crate) fn on_event_ack(&mut self, ack: EventAck) {
        if ack.to != self.me.node {
            if let Some(hops) = ack.hops.checked_sub(1) {
                self.route_ack(EventAck { hops, ..ack });
            }
            return;
        }
        let Some(lane) = self.events.lanes.get_mut(&ack.from) else { return };
        let before = lane.queue.len();
        while lane.queue.front().is_some_and(|(seq, _)| *seq <= ack.seq) {
            lane.queue.pop_front();
        }
        let taken = before - lane.queue.len();
        if taken == 0 {
            return;
        }
        lane.sent = lane.sent.saturating_sub(taken);
        lane.wait = None;
        if let Some((_, sent)) = lane.timed.take_if(|(seq, _)| *seq <= ack.seq) {
            lane.round_trip = Some(self.now.since(sent).as_nanos());
        }
        lane.due = (!lane.queue.is_empty()).then(|| self.now.saturating_add(lane.patience()));
        self.send_lane(ack.from);
    }
}
