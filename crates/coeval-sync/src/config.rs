//! What may be set of an engine, with defaults.
use coeval_time::{MonoTime, WallDuration, WallTime};

/// Session wall time, as the engine asks for it.
pub trait SessionTime: Send {
    /// Session wall time at the instant `now` of this process's monotonic clock.
    fn session_wall(&self, now: MonoTime) -> WallTime;
}

impl<F: Fn(MonoTime) -> WallTime + Send> SessionTime for F {
    fn session_wall(&self, now: MonoTime) -> WallTime {
        self(now)
    }
}

/// Limits and periods of an engine. All lengths of time are wall time.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes handed to the transport and not yet taken by it, above which a link lags (256 KiB).
    pub window: usize,
    /// Bytes of states gathered in one message (32 KiB).
    pub chunk: usize,
    /// Slots in one page of a snapshot (512).
    pub page: usize,
    /// How often root digests are exchanged (1 s).
    pub digest_period: WallDuration,
    /// How far ahead of session time a stamp may be before its fragment is parked (2 s; part of the genesis).
    pub lead: WallDuration,
    /// Most fragments parked for one author (1,024).
    pub parked_per_author: usize,
    /// How long a node may be unreachable before it is lost (12 s).
    pub lost_after: WallDuration,
    /// How long a lost node is dialed, and replies to its commands are kept (10 min).
    pub forget_after: WallDuration,
    /// Most events waiting for one node (1,024).
    pub event_queue: usize,
    /// Most bytes in the topic and the value of an event (64 KiB).
    pub event_bytes: usize,
    /// Time between the first eight pings of a link (25 ms).
    pub ping_fast: WallDuration,
    /// How many pings must be answered before this node greets anyone (0). A joiner that does not know session time
    /// yet sets a few: it has adopted the time by the [`PingSample`](crate::Notice::PingSample)s when the first states
    /// come, and parks none of them for being ahead of its own wrong clock. It waits 5 s at most.
    pub first_samples: u64,
    /// Time between later pings (2 s).
    pub ping_slow: WallDuration,
    /// Most message bytes kept aside for one delta (256 MiB); beyond, it is applied in parts.
    pub staged_bytes: usize,
    /// Bytes handed to the log's owner and not yet written, above which the log lags (1 MiB).
    pub log_window: usize,
    /// A file of the log that is longer than this many times its snapshot, and than `log_floor`, is followed by a new
    /// one (4).
    pub log_factor: u64,
    /// No file of the log shorter than this many bytes is followed by a new one (16 MiB).
    pub log_floor: u64,
    /// How long after a failure the log begins a new file (1 s).
    pub log_retry: WallDuration,
    /// Whether nodes that are learned of are dialed, so that the session becomes a full mesh (true).
    pub mesh: bool,
    /// Most message bytes kept aside for a newer world of the session (4 GiB); beyond, the link it comes by is closed.
    pub world_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 256 << 10,
            chunk: 32 << 10,
            page: 512,
            digest_period: WallDuration::from_secs(1),
            lead: WallDuration::from_secs(2),
            parked_per_author: 1024,
            lost_after: WallDuration::from_secs(12),
            forget_after: WallDuration::from_secs(600),
            event_queue: 1024,
            event_bytes: 64 << 10,
            ping_fast: WallDuration::from_millis(25),
            first_samples: 0,
            ping_slow: WallDuration::from_secs(2),
            staged_bytes: 256 << 20,
            log_window: 1 << 20,
            log_factor: 4,
            log_floor: 16 << 20,
            log_retry: WallDuration::from_secs(1),
            mesh: true,
            world_bytes: 4 << 30,
        }
    }
}
