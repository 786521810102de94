//! What the network does to packets, way by way.
use coeval_time::WallDuration;

/// A link that delivers nothing for this long goes down, s.
pub const IDLE_TIMEOUT: WallDuration = WallDuration::from_secs(10);

/// One peer's place in the mesh: an index, kept over restarts.
pub type Site = usize;

/// What one direction of a link does to packets. Times in nanoseconds of virtual time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Least one-way delay.
    pub delay: u64,
    /// Most that is added to the delay, at random.
    pub jitter: u64,
    /// Chance that a packet is lost, 0 to 0.9: a lane sends again until it gets through.
    pub loss: f64,
    /// Chance that a datagram arrives twice, 0 to 1.
    pub duplicate: f64,
    /// Bytes per second of one direction of a link.
    pub bandwidth: u64,
    /// Bytes on a lane that its receiver has not read, at which the sender's transport takes no more.
    pub receive_window: usize,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            delay: 1_000_000,
            jitter: 0,
            loss: 0.0,
            duplicate: 0.0,
            bandwidth: 100_000_000,
            receive_window: 256 << 10,
        }
    }
}
