//! What goes into the replication engine and what comes out of it.
use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_time::MonoTime;
use coeval_value::NodeId;

/// The time, as the driver reads it once per call.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// This process's monotonic clock.
    pub mono: MonoTime,
}

/// A sans-IO engine: what a driver (quinn, the simulator) runs.
pub trait Machine: Send {
    /// Digests one input and says what to do, in order.
    fn handle(&mut self, input: Input, now: Now, rng: &mut dyn rand::RngCore) -> Vec<Effect>;

    /// When [`Input::Timer`] is due next; asked after every call.
    fn next_timer(&self) -> Option<MonoTime>;
}

/// The authenticated peer at the other end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPeer {
    /// Who.
    pub node: NodeId,
    /// The name it gave itself (a label).
    pub name: String,
    /// Addresses it can be dialed at, as text (`IP:PORT`); may be empty.
    pub addresses: Vec<String>,
    /// Whether it only reads: never writes, never relays.
    pub observer: bool,
}

/// What happened outside.
#[derive(Debug)]
pub enum Input {
    /// An authenticated link of this session is up.
    LinkUp {
        /// The driver's name for it; never reused.
        link: LinkTag,
        /// Who is there.
        peer: LinkPeer,
        /// Whether this side dialed.
        dialed: bool,
    },
    /// A link is gone.
    LinkDown {
        /// Which.
        link: LinkTag,
        /// Why, in words.
        reason: String,
    },
    /// One whole message from the link's reliable, ordered lane.
    Message {
        /// Which link.
        link: LinkTag,
        /// The message.
        bytes: Bytes,
    },
    /// One datagram: may be lost, repeated or out of order.
    Datagram {
        /// Which link.
        link: LinkTag,
        /// The message.
        bytes: Bytes,
    },
    /// The transport took messages from its queue for this link.
    Sent {
        /// Which link.
        link: LinkTag,
        /// How many message bytes.
        bytes: usize,
    },
    /// Dialing a node failed.
    DialFailed {
        /// Whom.
        node: NodeId,
        /// Why, in words.
        reason: String,
    },
    /// The log's owner has written, or relies on, what [`Effect::Log`] handed to it.
    Logged {
        /// Which file.
        file: u64,
        /// How many message bytes were written.
        bytes: usize,
        /// The position of the last mark up to which everything is safe, if that has moved.
        durable: Option<u64>,
    },
    /// The log's owner has given up a file: the engine begins a new one after a while.
    LogFailed {
        /// Which file.
        file: u64,
        /// Why, in words.
        reason: String,
    },
    /// The replica has changes.
    Wake,
    /// The engine's timer is due.
    Timer,
}

/// What the driver must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Queue a message on the link's reliable, ordered lane. The driver answers with [`Input::Sent`].
    Send {
        /// Which link.
        link: LinkTag,
        /// The message. One allocation may be shared by many links.
        bytes: Bytes,
    },
    /// Send a datagram now or drop it.
    Datagram {
        /// Which link.
        link: LinkTag,
        /// The message.
        bytes: Bytes,
    },
    /// Close a link.
    Close {
        /// Which.
        link: LinkTag,
        /// Why.
        reason: CloseReason,
    },
    /// Append a message to the log; only after [`Sync::open_log`](crate::Sync::open_log). The owner answers with
    /// [`Input::Logged`] or [`Input::LogFailed`].
    Log {
        /// The number of the file, which only rises. A new file begins with a snapshot, and takes the place of the one
        /// before when its first mark is safe.
        file: u64,
        /// The position, if the message is a mark.
        mark: Option<u64>,
        /// The message. One allocation is shared with the links it is for.
        bytes: Bytes,
    },
    /// Try to make a link to a node.
    Dial {
        /// Whom.
        node: NodeId,
        /// Addresses to try, as text (`IP:PORT`).
        addresses: Vec<String>,
    },
    /// From now on this node is another: links are made and answered under this name.
    Rename {
        /// The new name.
        node: NodeId,
    },
}

/// Why a link is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The peer leaves the session.
    #[error("the peer left")]
    Left,
    /// Another program runs under the same incarnation: this one comes back under a new one.
    #[error("another program runs under the same incarnation; this one comes back under a new one")]
    Renamed,
    /// Both dialed at once; the other link is kept.
    #[error("a second link between the same two peers")]
    Duplicate,
    /// The other side broke the protocol.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The other side speaks another protocol version.
    #[error("protocol version {theirs} is not spoken here (this side speaks {ours})")]
    Version {
        /// This side's.
        ours: u16,
        /// The other side's.
        theirs: u16,
    },
}
