//! What happens to a peer's session and replica as a whole: who comes and goes, and what needs a person's eye.
use crate::OfflineWrites;
use crate::inbox::Inbox;
use coeval_store::StoreEvent;
use coeval_time::{SimTime, Stamp, WallTime};
use coeval_value::{EntityId, NodeId, Path};
use std::sync::Arc;
use std::time::Duration;

/// Notices that are kept until they are taken; beyond, the oldest is dropped and counted.
pub const NOTICE_QUEUE: usize = 4_096;

/// Something that happened to the session or the replica.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeerEvent {
    /// A peer is in the session and can be reached, directly or through others.
    PeerJoined {
        /// Who.
        node: NodeId,
        /// The name it gave itself.
        name: String,
        /// Whether it only reads.
        observer: bool,
    },
    /// A peer is gone: what it wrote stays, and readings of it say since when its author is lost.
    PeerLeft {
        /// Who.
        node: NodeId,
        /// Whether it said that it leaves; else it was not reached for too long.
        said_so: bool,
    },
    /// Several living entities bear one name, made at the same time by different peers: looking it up is an error until
    /// all but one are renamed or deleted. Told once for each clash.
    NameClash {
        /// The name.
        name: Arc<str>,
        /// Who bears it, in id order.
        ids: Vec<EntityId>,
    },
    /// Another program runs under this very opening of the peer (a cloned machine): a stamp of it came that was not
    /// issued here. This peer goes on as another incarnation, its links come back, and the world stays as it is; what was
    /// under way of events, commands and replies is lost.
    Forked {
        /// The stamp.
        stamp: Stamp,
        /// Who this peer was.
        before: NodeId,
        /// Who it is.
        node: NodeId,
    },
    /// This peer was alone, or came back from its journal, and is caught up now: what became of its writes that nobody
    /// had acknowledged. [`Peer::offline_writes`](crate::Peer::offline_writes) keeps the newest.
    OfflineWrites(OfflineWrites),
    /// The journal cannot be written: the disk is full, say. The session goes on without it, and `flush` says so. A new
    /// file is tried again and again, with everything in it. Told once, until it works again.
    JournalFailed {
        /// Which journal, and why.
        reason: String,
    },
    /// The journal, after it had failed, holds everything again.
    JournalRestored,
    /// Somebody restored a checkpoint, and this peer went there with the session: what it shows now is the checkpoint's
    /// world, the clock stands at its time, and whatever else was written before counts no more.
    WorldRestored {
        /// How many restores led to this world.
        world: u64,
        /// Who restored; `None` if that is not known here (yet).
        by: Option<NodeId>,
        /// Sim time of the checkpoint.
        sim: SimTime,
        /// Whether this peer had restored a checkpoint at the same time, and this one won over it.
        instead_of_own: bool,
        /// What was written by this peer and is no part of this world: entity and parameter, or no parameter for the
        /// creation or deletion of the entity itself. At most 1,024.
        fallen: Vec<(EntityId, Option<Path>)>,
        /// How many more there were.
        more: u64,
    },
    /// Session wall time was stepped forward here, because this peer was far behind the session. Sim time moved along:
    /// [`ClockChanges`](crate::ClockChanges) tells how.
    ClockStepped {
        /// What the clock would have shown.
        before: WallTime,
        /// What it shows.
        after: WallTime,
    },
}

impl From<StoreEvent> for PeerEvent {
    fn from(event: StoreEvent) -> Self {
        match event {
            StoreEvent::NameClash { name, ids } => Self::NameClash { name, ids },
        }
    }
}

/// Notices in the order they came, from when [`Peer::notices`](crate::Peer::notices) was called.
#[derive(Debug)]
pub struct PeerNotices(pub(crate) Arc<Inbox<PeerEvent>>);

impl PeerNotices {
    /// The next notice that is there.
    pub fn poll(&self) -> Option<PeerEvent> {
        self.0.poll()
    }

    /// Waits up to `timeout` for the next notice; `None` at once when the peer has stopped and none is left.
    pub fn wait(&self, timeout: Duration) -> Option<PeerEvent> {
        self.0.wait(timeout)
    }

    /// How many notices were dropped because nobody took them.
    pub fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}
