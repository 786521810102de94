//! Plain data about peers, parameters and the wall clock.
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};
use coeval_sync::{PeerState, PeerStatus};
use coeval_time::{Stamp, WallDuration, WallTime};
use coeval_value::{EntityId, NodeId, Path, Value};

/// Session wall time, and how well it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WallReading {
    /// Session wall time.
    pub now: WallTime,
    /// Session wall time less this machine's OS clock (as it stood when the process began).
    pub offset_to_os: WallDuration,
    /// Bound on the error against the session's reference; `None` before the first measurement.
    pub uncertainty: Option<WallDuration>,
}

/// Another peer of the session.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// Who.
    pub node: NodeId,
    /// Its name, a label.
    pub name: String,
    /// How it is connected.
    pub state: PeerState,
    /// Whether it only reads.
    pub observer: bool,
    /// Round-trip time of its link, smoothed.
    pub rtt: Option<WallDuration>,
    /// Its session wall time less this peer's, by the last exchange of timestamps; `None` before the first.
    pub clock_offset: Option<WallDuration>,
    /// Bound on the error of `clock_offset`: half the round trip.
    pub clock_uncertainty: Option<WallDuration>,
    /// Updates sent to it.
    pub updates_sent: u64,
    /// Updates received from it.
    pub updates_received: u64,
    /// Message bytes sent to it.
    pub bytes_sent: u64,
    /// Message bytes received from it.
    pub bytes_received: u64,
    /// Updates not sent because a newer one of the same parameter replaced them while the link lagged.
    pub conflated: u64,
    /// Parameters that wait to be sent to it.
    pub waiting: usize,
    /// Its updates that are kept outside the world until due: their stamps are ahead of session time.
    pub parked: u64,
    /// Updates sent to it that it keeps outside until due: this peer's clock is ahead, or its author's.
    pub parked_there: u64,
    /// Its updates that were refused here: a limit is reached, or they make no sense.
    pub refused: u64,
    /// Updates sent to it that it refused.
    pub refused_there: u64,
    /// Its updates that were known already, or older than what is here.
    pub superseded: u64,
    /// Its updates that are of an older world of the session, and count for nothing.
    pub inert: u64,
    /// Updates sent to it again because digests differed.
    pub repaired: u64,
}

impl From<PeerStatus> for PeerInfo {
    fn from(status: PeerStatus) -> Self {
        Self {
            node: status.node,
            name: status.name,
            state: status.state,
            observer: status.observer,
            rtt: status.rtt,
            clock_offset: None,
            clock_uncertainty: None,
            updates_sent: status.stats.sent_updates,
            updates_received: status.stats.received_updates,
            bytes_sent: status.stats.sent_bytes,
            bytes_received: status.stats.received_bytes,
            conflated: status.stats.conflated,
            waiting: status.waiting,
            parked: status.stats.parked,
            parked_there: status.stats.parked_there,
            refused: status.stats.refused,
            refused_there: status.stats.refused_there,
            superseded: status.stats.superseded,
            inert: status.stats.inert,
            repaired: status.stats.repaired,
        }
    }
}

/// One parameter of an entity.
#[derive(Clone, Debug)]
pub struct ParamInfo {
    /// Where.
    pub path: Path,
    /// Its value as written.
    pub value: Value,
    /// Its stamp.
    pub stamp: Stamp,
    /// The name of the peer that wrote it; `None` if that is not known.
    pub author: Option<String>,
    /// Session wall time since it was written.
    pub age: WallDuration,
    /// Whether its author is in the session.
    pub alive: bool,
}

impl ParamInfo {
    pub(crate) fn all(shared: &Shared, entity: EntityId) -> Result<Vec<Self>> {
        let now = shared.now();
        let leaves = shared.store.leaves(entity).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("entity {entity} does not exist (any more)"))
        })?;
        let describe = |(path, leaf): (Path, coeval_value::Leaf)| {
            let writer = leaf.stamp.writer;
            let me = writer == shared.node().incarnation;
            // Initial values of the config have no author to lose.
            let alive = me
                || leaf.stamp == Stamp::GENESIS
                || shared.hub.look(|state| state.present.iter().any(|node| node.incarnation == writer));
            let written =
                if leaf.stamp == Stamp::GENESIS { shared.clock.genesis().wall } else { leaf.stamp.wall() };
            Self {
                path,
                value: leaf.value,
                stamp: leaf.stamp,
                author: if me { Some(shared.name.clone()) } else { shared.gate.name_of(writer) },
                age: now.since(written),
                alive,
            }
        };
        Ok(leaves.into_iter().map(describe).collect())
    }
}
