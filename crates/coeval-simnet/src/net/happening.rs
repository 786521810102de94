//! What is yet to happen in the network, and in which order.
use super::Site;
use bytes::Bytes;
use coeval_merge::LinkTag;
use coeval_sync::LinkPeer;
use coeval_value::NodeId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Something for one end of a link.
#[derive(Debug)]
pub(super) enum Happening {
    Message {
        bytes: Bytes,
    },
    Datagram {
        bytes: Bytes,
    },
    Sent {
        bytes: usize,
    },
    Up {
        peer: LinkPeer,
        dialed: bool,
    },
    Down {
        reason: String,
    },
    /// The receiver has read that many bytes of the lane.
    Credit {
        bytes: usize,
    },
    /// The idle time-out of a lane that is held up since then.
    Idle {
        since: u64,
    },
    /// The idle time-out of a link whose other end stands still since then.
    Silent {
        since: u64,
    },
}

#[derive(Debug)]
pub(super) enum What {
    /// Something for one end of a link.
    Link { tag: LinkTag, what: Happening },
    /// A dial reaches the other side, or fails.
    Dialed { to: NodeId, addresses: Vec<String> },
    /// A machine's timer may be due.
    Timer,
    /// A machine's replica has changes.
    Wake,
}

impl What {
    /// Whether it comes in over a link: what a reader that stalls leaves lying.
    pub(super) const fn arrives(&self) -> bool {
        matches!(self, Self::Link { what: Happening::Message { .. } | Happening::Datagram { .. }, .. })
    }

    /// Adds it to the hash of a run.
    pub(super) fn note(&self, trace: u64, now: u64, site: Site) -> u64 {
        let mut head = [0; 25];
        head[..8].copy_from_slice(&now.to_le_bytes());
        head[8..16].copy_from_slice(&(site as u64).to_le_bytes());
        let (kind, tag, bytes): (u8, u64, &[u8]) = match self {
            Self::Timer => (0, 0, &[]),
            Self::Wake => (1, 0, &[]),
            Self::Dialed { .. } => (2, 0, &[]),
            Self::Link { tag, what } => match what {
                Happening::Message { bytes } => (3, tag.0, bytes),
                Happening::Datagram { bytes } => (4, tag.0, bytes),
                Happening::Down { reason } => (5, tag.0, reason.as_bytes()),
                Happening::Up { .. } => (6, tag.0, &[]),
                _ => (7, tag.0, &[]),
            },
        };
        head[16] = kind;
        head[17..].copy_from_slice(&tag.to_le_bytes());
        xxh3_64_with_seed(bytes, xxh3_64_with_seed(&head, trace))
    }
}

/// Ordered by time, then by the order in which things were scheduled.
#[derive(Debug)]
pub(super) struct Scheduled {
    pub(super) at: u64,
    pub(super) order: u64,
    pub(super) site: Site,
    /// Which life of the site it is for.
    pub(super) life: u32,
    pub(super) what: What,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
