//! What the demo's processes tell one another: one JSON object a line, over standard input and output.
use coeval::SimTime;
use serde::{Deserialize, Serialize};

/// From the director to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Order {
    /// Set the timescale.
    Scale { to: f64 },
    /// Pause the session's clock.
    Pause,
    /// Resume it.
    Resume,
    /// Jump by this many seconds of sim time.
    Jump { seconds: i64 },
    /// End the systems that write.
    StopWriting,
    /// Tell the digest, and what one agreed instant looks like from here.
    Conclude { wall: Vec<u64>, sight_at: Moment },
    /// Leave the session and exit.
    Leave,
}

/// A sim instant: seconds and nanoseconds, TAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Moment(pub(crate) i64, pub(crate) u32);

impl Moment {
    /// The instant of a sim time.
    pub(crate) fn of(sim: SimTime) -> Self {
        let (seconds, nanos) = sim.secs_nanos();
        Self(seconds, nanos)
    }

    /// The sim time.
    pub(crate) fn sim(self) -> SimTime {
        SimTime::from_secs_nanos(self.0, self.1)
    }
}

/// The processes, by the order in which they come on.
pub(crate) const FLIGHTS: usize = 0;
pub(crate) const ORBITS: usize = 1;
pub(crate) const VIEWER: usize = 2;

/// From a process to the director.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Line {
    /// In the session and caught up; the first one brings the invite.
    Ready { invite: Option<String> },
    /// A motion was published.
    Sent(Sent),
    /// What every motion reads as, at one context.
    Seen(Seen),
    /// A motion's newer sample became readable here.
    Arrived { entity: String, stamp: u64, wall: u64 },
    /// A change of the clock was noticed here, at this session wall instant.
    Heard { wall: u64 },
    /// The clock was changed from here.
    Edited { what: String, at: u64 },
    /// For people: the lines of this process's pane.
    Pane { lines: Vec<String> },
    /// The answer to `Conclude`.
    Concluded(Concluded),
    /// Something went wrong; the process goes on if it can.
    Trouble { what: String },
}

/// One published motion.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) entity: String,
    /// The stamp's hybrid clock, which is session wall time.
    pub(crate) stamp: u64,
    /// When the author last found its previous sample good enough, session wall time.
    pub(crate) good_at: u64,
    pub(crate) sim: Moment,
    pub(crate) position: [f64; 3],
    pub(crate) velocity: [f64; 3],
}

/// All motions at one context.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) wall: u64,
    pub(crate) sim: Moment,
    pub(crate) rate: f64,
    /// How well this process knows session wall time, ns.
    pub(crate) unsure: u64,
    pub(crate) motions: Vec<Read>,
}

/// One motion as read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) entity: String,
    pub(crate) stamp: u64,
    pub(crate) position: [f64; 3],
    /// How the value came about.
    pub(crate) way: Way,
}

/// How a value came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// By the model of one sample, or at it.
    Predicted,
    /// Between two samples.
    Between,
    /// As it was.
    Held,
}

/// The last word of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Concluded {
    pub(crate) digest: String,
    pub(crate) entities: usize,
    /// Sim times computed for the wall instants asked.
    pub(crate) sims: Vec<Moment>,
    /// Session wall time here less the machine's own clock, µs.
    pub(crate) clock_offset_error_us: f64,
    /// Range (m) and elevation (degrees) of the satellite from the aircraft at the instant asked.
    pub(crate) sight: Option<(f64, f64)>,
    /// Updates received over the network.
    pub(crate) received: u64,
}
