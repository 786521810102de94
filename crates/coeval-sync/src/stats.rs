//! Counters by peer, and the table of peers.
use coeval_time::WallDuration;
use coeval_value::NodeId;

/// What was exchanged with a node since it was first met, over all links to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerStats {
    /// Fragments and entries sent.
    pub sent_updates: u64,
    /// Fragments and entries received.
    pub received_updates: u64,
    /// Message bytes handed to the transport.
    pub sent_bytes: u64,
    /// Message bytes received.
    pub received_bytes: u64,
    /// Changes not sent because a newer change of the same slot replaced them while the link lagged.
    pub conflated: u64,
    /// Fragments received and kept outside until due.
    pub parked: u64,
    /// Fragments sent that the peer keeps outside until due.
    pub parked_there: u64,
    /// Fragments received and refused.
    pub refused: u64,
    /// Fragments sent that the peer refused.
    pub refused_there: u64,
    /// Fragments received that were already known or superseded.
    pub superseded: u64,
    /// Fragments received that are of another world of the session, and count for nothing.
    pub inert: u64,
    /// Fragments sent that counted for nothing at the peer, which is in a newer world.
    pub inert_there: u64,
    /// Fragments received for numbers never defined; asked for again.
    pub undefined: u64,
    /// Rounds of repair started.
    pub repairs: u64,
    /// Fragments and entries sent again by repair.
    pub repaired: u64,
}

/// How a node stands to this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerState {
    /// A link is up and its deltas flow.
    Linked,
    /// A link is up and is catching up.
    CatchingUp,
    /// A link is up and takes less than is written: it gets conflated deltas.
    Lagging,
    /// Reached through others.
    Reachable,
    /// Not reached, and not yet given up.
    Unreachable,
}

/// A row of the table of peers.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Who.
    pub node: NodeId,
    /// The name it gave itself.
    pub name: String,
    /// How it stands to this node.
    pub state: PeerState,
    /// Whether it only reads.
    pub observer: bool,
    /// Round-trip time of its link, smoothed.
    pub rtt: Option<WallDuration>,
    /// Slots that changed and are yet to be sent to it.
    pub waiting: usize,
    /// Message bytes handed to the transport and not yet taken.
    pub in_flight: usize,
    /// The drained position it has acknowledged.
    pub acked: u64,
    /// Whether it refused something that was sent to it, and was not found to hold it since.
    pub refusing: bool,
    /// Counters.
    pub stats: PeerStats,
}
