//! What a read asks (an instant and a policy) and what it answers (a value and how good it is).
use coeval_time::{Context, Epoch, SimDuration, SimTime, Stamp, WallDuration, WallTime};

/// How a value goes on beyond its samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It stays as written.
    Hold,
    /// By its own model; a value without one holds.
    Model,
}

/// What a read gives once the span is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beyond {
    /// The value where its span ended (where that instant is not known, the value as written).
    Hold,
    /// [`ReadError::TooFarFuture`] or [`ReadError::TooFarPast`].
    Missing,
}

/// How far from its sample a value is trusted. A global model (an orbit) is valid everywhere and ignores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// Not at all: only samples and what lies between them.
    Samples,
    /// This much wall time since the write; see [`Moment::live`] for moved contexts.
    Wall(WallDuration),
    /// This much sim time from the sample, either way.
    Sim(SimDuration),
    /// Without end, within its epoch.
    Unlimited,
}

/// The policy on one side of the samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Up to the span.
    pub mode: Mode,
    /// How far.
    pub span: Span,
    /// After it.
    pub then: Beyond,
}

/// How one parameter reads beyond its samples: `forward` is the way its writer's sim time ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// At or beyond a sample.
    pub forward: Side,
    /// Before the oldest sample.
    pub backward: Side,
}

/// Wall time for which local models are trusted by default.
pub const DEFAULT_SPAN: WallDuration = WallDuration::from_secs(12);

impl Default for Policy {
    /// Forward by the model for 12 s of wall time, backward as far as the history goes; beyond, hold.
    fn default() -> Self {
        Self {
            forward: Side { mode: Mode::Model, span: Span::Wall(DEFAULT_SPAN), then: Beyond::Hold },
            backward: Side { mode: Mode::Model, span: Span::Samples, then: Beyond::Hold },
        }
    }
}

impl Policy {
    /// Every sample holds until the next one, without end.
    pub const HOLD: Self = {
        let side = Side { mode: Mode::Hold, span: Span::Unlimited, then: Beyond::Hold };
        Self { forward: side, backward: side }
    };
}

/// The instant that a read is for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Moment {
    /// The sim time to evaluate at.
    pub sim: SimTime,
    /// The session wall instant of the reader's context: what ages of samples are counted to.
    pub wall: WallTime,
    /// Ages are never counted from before this instant (the start of the session): a config's initial values carry
    /// no wall time of their own.
    pub started: WallTime,
    /// Sim time per wall time.
    pub rate: f64,
    /// Whether `sim` is the clock's own at `wall`. For a moved context the distance to the sample counts as age too,
    /// as the wall time that it takes at `rate` (at rate 1 while the clock stands): asking for the next hour now is
    /// as far as waiting for it.
    pub live: bool,
    /// The newest jump the reader knows.
    pub epoch: Epoch,
}

impl Moment {
    /// The instant of a context, in a session that started at wall instant `started`.
    pub const fn of(context: &Context, started: WallTime) -> Self {
        Self {
            sim: context.sim,
            wall: context.wall,
            started,
            rate: context.rate,
            live: context.live,
            epoch: context.epoch,
        }
    }
}

/// How good the answer of a read is. `by` is signed sim time from the instant the value is for to the instant asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quality {
    /// Written for this very instant.
    Exact,
    /// Between two samples of one writer.
    Interpolated,
    /// By the model, this far from its sample.
    Extrapolated {
        /// Sim time from the sample to the read.
        by: SimDuration,
    },
    /// As it was, this far from the instant asked.
    Held {
        /// Sim time from the instant the value is for to the read.
        by: SimDuration,
    },
}

/// The answer of a read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reading<T> {
    /// The value.
    pub value: T,
    /// How good it is.
    pub quality: Quality,
    /// Index of the sample it rests on (of the earlier written of a pair); 0 from the fast path.
    pub index: usize,
    /// Stamp of that sample: names its author.
    pub stamp: Stamp,
    /// Sim time of that sample.
    pub sim: SimTime,
    /// How many samples of abandoned epochs were written after the newest epoch began here, by authors that had not
    /// heard of the jump. They did not change this reading.
    pub stale: u32,
}

/// Why a read has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// No sample at all.
    #[error("no sample: nothing has been written")]
    Empty,
    /// Earlier, in the writer's direction of time, than the policy reaches.
    #[error("too far past: {} ns of sim time from the oldest sample, and the policy says missing", by.as_nanos())]
    TooFarPast {
        /// Sim time from the oldest sample to the read.
        by: SimDuration,
    },
    /// Later, in the writer's direction of time, than the policy reaches.
    #[error("too far future: {} ns of sim time from the newest sample, and the policy says missing", by.as_nanos())]
    TooFarFuture {
        /// Sim time from the sample to the read.
        by: SimDuration,
    },
}
