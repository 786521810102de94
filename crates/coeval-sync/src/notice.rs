//! What the engine has to tell: a queue of notices, polled by the owner.
use crate::events::{EventId, Target};
use coeval_merge::{Entered, LinkTag, World};
use coeval_time::{PingSample, SimTime, Stamp};
use coeval_value::{NodeId, Value};
use coeval_wire::Reply;
use std::sync::Arc;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A link is up and greeted.
    LinkUp {
        /// Which.
        link: LinkTag,
        /// To whom.
        node: NodeId,
    },
    /// A link is gone.
    LinkDown {
        /// Which.
        link: LinkTag,
        /// To whom.
        node: NodeId,
        /// Why, in words.
        reason: String,
    },
    /// A node is in the session, over a link or through others.
    PeerUp {
        /// Who.
        node: NodeId,
        /// The name it gave itself.
        name: String,
        /// Whether it only reads.
        observer: bool,
    },
    /// A node left, or could not be reached for too long.
    PeerLost {
        /// Who.
        node: NodeId,
        /// Whether it said that it leaves.
        left: bool,
    },
    /// All that a node held when its link came up is held here.
    CaughtUp {
        /// The node.
        node: NodeId,
    },
    /// An event or a command arrived.
    Event(EventNotice),
    /// A command was answered.
    Reply {
        /// By whom.
        from: NodeId,
        /// Which command, as [`send_event`](crate::Sync::send_event) named it.
        number: u64,
        /// What became of it.
        reply: Reply,
    },
    /// Events that a node will not get, because it was lost first; also replies, once it was forgotten or left.
    EventsDropped {
        /// The node.
        to: NodeId,
        /// How many.
        count: usize,
    },
    /// Fragments sent from here are kept outside at a peer: their stamps are too far ahead of session time.
    ParkedThere {
        /// The peer that parked them.
        node: NodeId,
        /// How many.
        count: u32,
        /// How far ahead the farthest is, nanoseconds.
        ahead: u64,
    },
    /// The log cannot be written; told once, until it can again.
    LogFailed {
        /// Why, in words.
        reason: String,
    },
    /// The log, after a failure, holds everything again.
    LogRestored,
    /// A stamp came that this node never issued, though it bears its name: another program runs under the same
    /// incarnation (a cloned machine). This node has a new name now, and its links come back under it.
    Renamed {
        /// The stamp.
        stamp: Stamp,
        /// Who it was.
        before: NodeId,
        /// Who it is.
        node: NodeId,
    },
    /// This replica went to another world of the session: one that was restored here, or that somebody restored.
    World {
        /// Where it is.
        world: World,
        /// What it left behind.
        entered: Entered,
    },
    /// The four timestamps of an answered ping.
    PingSample {
        /// Who answered.
        node: NodeId,
        /// The timestamps.
        sample: PingSample,
    },
    /// Something went wrong on a link; what it was for is not applied.
    Error {
        /// With whom.
        node: NodeId,
        /// What, in words.
        message: String,
    },
}

/// An event or a command, as it arrived.
#[derive(Clone, Debug)]
pub struct EventNotice {
    /// Which; what a reply names.
    pub id: EventId,
    /// What it is about.
    pub topic: Arc<str>,
    /// Whom it is for.
    pub target: Target,
    /// Its value.
    pub value: Value,
    /// The sim time it is for.
    pub sim: SimTime,
    /// Whether the sender expects a reply.
    pub command: bool,
}
