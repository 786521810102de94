//! How this node stands to the others, for whoever asks: who is linked, caught up, and has acknowledged what.
use crate::Sync;
use crate::link::Mode;
use crate::stats::{PeerState, PeerStatus};
use coeval_merge::{LinkTag, Replica};
use coeval_value::NodeId;
use std::collections::BTreeMap;

impl<R: Replica> Sync<R> {
    /// Whether no link is up.
    pub fn is_alone(&self) -> bool {
        self.links.is_empty()
    }

    /// The newest position that a linked peer has acknowledged; 0 if none has.
    pub fn acked_by_any(&self) -> u64 {
        self.links.values().map(|link| link.out.acked).max().unwrap_or(0)
    }

    /// Whether this replica holds all that the peers held when their links came up. False without a greeted link.
    pub fn caught_up(&self) -> bool {
        let mut greeted = self.links.values().filter(|link| link.inc.greeted).peekable();
        greeted.peek().is_some() && greeted.all(|link| link.inc.complete)
    }

    /// The position that peers must acknowledge for everything written before the last drain to have arrived.
    pub fn flush_target(&self) -> u64 {
        self.replica.position()
    }

    /// Of each linked node: whether it has applied or parked everything up to `target`. One that refused something has not,
    /// until it holds it all the same.
    pub fn flushed(&self, target: u64) -> BTreeMap<NodeId, bool> {
        let now = self.replica.position();
        self.links.values().map(|link| (link.peer.node, link.out.has_acked(target, now))).collect()
    }

    /// The position that a link's peer has acknowledged.
    pub fn acked(&self, link: LinkTag) -> Option<u64> {
        self.links.get(&link).map(|link| link.out.acked)
    }

    /// The link to a node.
    pub fn link_to(&self, node: NodeId) -> Option<LinkTag> {
        self.links.iter().find(|(_, link)| link.peer.node == node).map(|(tag, _)| *tag)
    }

    /// How many fragments are kept outside until due.
    pub fn parked(&self) -> usize {
        self.parking.len()
    }

    /// The nodes of the session without this one, with how they stand and what was exchanged.
    pub fn peers(&self) -> Vec<PeerStatus> {
        let rows =
            self.members.others().map(|row| (row.state.node, (row.state.name.clone(), row.state.observer)));
        let linked = self.links.values().map(|l| (l.peer.node, (l.peer.name.clone(), l.peer.observer)));
        let all: BTreeMap<_, _> = linked.chain(rows).collect();
        all.into_iter().map(|(node, (name, observer))| self.peer(node, name, observer)).collect()
    }

    fn peer(&self, node: NodeId, name: String, observer: bool) -> PeerStatus {
        let link = self.link_to(node).and_then(|tag| self.links.get(&tag));
        let unreachable = self.members.get(node).is_some_and(|row| row.unreachable_since.is_some());
        let state = match link.map(|link| (link.out.mode, link.out.caught_up)) {
            Some((Mode::Live, _)) => PeerState::Linked,
            Some((Mode::Behind, false)) => PeerState::Lagging,
            Some(_) => PeerState::CatchingUp,
            None if unreachable => PeerState::Unreachable,
            None => PeerState::Reachable,
        };
        PeerStatus {
            node,
            name,
            state,
            observer,
            rtt: link.and_then(|link| link.ping.rtt()),
            waiting: link.map_or(0, |link| link.out.waiting()),
            in_flight: link.map_or(0, |link| link.out.in_flight),
            acked: link.map_or(0, |link| link.out.acked),
            refusing: link.is_some_and(|link| link.out.refused),
            stats: self.stats.get(&node).copied().unwrap_or_default(),
        }
    }
}
