//! Session wall time: what every peer of a session agrees on, computed from this process's monotonic clock.
//!
//! It is a chain of straight pieces over monotonic time. Corrections are new pieces, published [`PUBLISH_AHEAD`] before
//! they begin, so that a thread which has read the monotonic clock always finds the piece that holds there, and two
//! readings never go back. A small error is slewed away at [`MAX_SLEW_PPM`]. A large one that lies ahead is stepped
//! over, as an event; time never steps back: a clock that is ahead runs slow until it is right.
use crate::estimator::{Measured, PingSample, SampleError, Samples};
use crate::{MonoTime, WallDuration, WallTime};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::sync::Arc;

/// How fast errors are slewed away, parts per million: half a millisecond per second.
pub const MAX_SLEW_PPM: u64 = 500;
/// An error larger than this, ahead of us, is stepped over.
pub const STEP_THRESHOLD: WallDuration = WallDuration::from_millis(128);
/// How long before it begins a correction is published. The `now` given with a sample must not be older than this.
pub const PUBLISH_AHEAD: WallDuration = WallDuration::from_millis(50);
/// Errors smaller than this, nanoseconds, are left alone: reading a clock is not more exact.
const DEAD_BAND: u64 = 1_000;
/// Pieces that are over are kept this long for threads that read the monotonic clock just before.
const KEEP_PAST: WallDuration = WallDuration::from_secs(1);
const MAX_PIECES: usize = 32;

/// Who this peer's session wall time follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WallRole {
    /// Its own monotonic clock: it *is* the session's reference. Samples are kept for diagnosis and correct nothing.
    Reference,
    /// The samples it is given, from the reference and others. A host whose OS clock is disciplined by NTP or PTP may
    /// follow that instead: samples whose `t1 = t4` and `t2 = t3` are readings of both clocks at once.
    Follower,
}

/// What a sample led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observed {
    /// It changes nothing: a better sample is known, the error is negligible, or this peer is the reference.
    Kept,
    /// The error is being slewed away.
    Slewing {
        /// The error: positive when session time was behind.
        correction: WallDuration,
        /// When it will be gone.
        until: MonoTime,
    },
    /// Session wall time steps forward: the clock's readers must be told when it happens.
    Stepped {
        /// When, on the monotonic clock; a moment ahead.
        at: MonoTime,
        /// What session wall time would have been then.
        before: WallTime,
        /// What it is instead.
        after: WallTime,
    },
}

/// How well session wall time is known here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WallEstimate {
    /// Session wall time less this machine's OS clock, as it stood when the process began.
    pub offset_to_os: WallDuration,
    /// Bound on the error against the reference: half the best round trip, drift since, and what is still to be slewed.
    /// Zero at the reference, `None` before the first sample.
    pub uncertainty: Option<WallDuration>,
    /// Round trip of the sample in use.
    pub rtt: Option<WallDuration>,
    /// When the newest sample came in.
    pub last_sample: Option<MonoTime>,
}

/// Adoption came too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdoptError {
    /// Session wall time is in use here, so it may not go back.
    #[error(
        "session wall time is in use: adopt the session's time before the first read, then let samples correct it"
    )]
    InUse,
    /// The sample cannot be used.
    #[error(transparent)]
    Sample(#[from] SampleError),
}

/// One straight piece: from `mono` on, wall time runs at `1 + slew`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    mono: u64,
    wall: u64,
    slew_ppm: i64,
}

impl Piece {
    fn at(&self, mono: u64) -> u64 {
        let Some(elapsed) = mono.checked_sub(self.mono) else {
            return self.wall.saturating_sub(self.mono - mono);
        };
        // Rounded down: never decreasing, for the slew is far smaller than the rate it changes.
        let slewed = (i128::from(elapsed) * i128::from(self.slew_ppm)).div_euclid(1_000_000);
        u64::try_from(i128::from(self.wall) + i128::from(elapsed) + slewed).unwrap_or(u64::MAX)
    }
}

/// The pieces, in order of `mono`; never empty.
#[derive(Clone, Debug)]
struct Track {
    pieces: Vec<Piece>,
}

impl Track {
    fn at(&self, mono: u64) -> u64 {
        let holds = self.pieces.iter().rev().find(|piece| piece.mono <= mono).unwrap_or(&self.pieces[0]);
        holds.at(mono)
    }
}

#[derive(Debug)]
struct Inner {
    role: WallRole,
    samples: Samples,
    /// The sample corrections are made for, and the newest one.
    best: Option<Measured>,
    last_sample: Option<MonoTime>,
    /// The greatest `now` given.
    seen: MonoTime,
    /// OS wall time less monotonic time when the process began.
    os_base: i128,
    in_use: bool,
}

/// Session wall time of one peer, shared by its threads. Reading takes no lock and writes nothing shared.
#[derive(Debug)]
pub struct SessionWall {
    inner: Mutex<Inner>,
    track: ArcSwap<Track>,
}

impl SessionWall {
    /// Session wall time that reads the OS clock's `wall` at monotonic time `mono`, both read at once.
    pub fn new(mono: MonoTime, wall: WallTime, role: WallRole) -> Self {
        let os_base = i128::from(wall.as_nanos()) - i128::from(mono.as_nanos());
        let piece = Piece { mono: mono.as_nanos(), wall: wall.as_nanos(), slew_ppm: 0 };
        let (samples, best, last_sample) = (Samples::default(), None, None);
        let inner = Inner { role, samples, best, last_sample, seen: mono, os_base, in_use: false };
        Self { inner: Mutex::new(inner), track: ArcSwap::from_pointee(Track { pieces: vec![piece] }) }
    }

    /// Session wall time at `mono`, which was read before this call. A later `mono` never reads as an earlier time.
    pub fn at(&self, mono: MonoTime) -> WallTime {
        WallTime::from_nanos(self.track.load().at(mono.as_nanos()))
    }

    /// Whether this peer is the reference.
    pub fn role(&self) -> WallRole {
        self.inner.lock().role
    }

    /// Makes this peer the reference, or a follower. A successor goes on with its own estimate: nothing steps.
    pub fn set_role(&self, role: WallRole) {
        self.inner.lock().role = role;
    }

    /// Drops the samples of a peer that left, or that is found to be wrong.
    pub fn forget(&self, peer: u64) {
        self.inner.lock().samples.forget(peer);
    }

    /// A joiner takes the session's time outright, backward too, from the best sample so far. Only before
    /// [`settle`](Self::settle).
    ///
    /// # Errors
    /// [`AdoptError`]; nothing changed.
    pub fn adopt(&self, from: u64, sample: PingSample, now: MonoTime) -> Result<WallTime, AdoptError> {
        let mut inner = self.inner.lock();
        if inner.in_use {
            return Err(AdoptError::InUse);
        }
        let best = inner.record(from, sample.measure()?, now);
        let wall = u64::try_from(i128::from(now.as_nanos()) + best.base).unwrap_or(0);
        let piece = Piece { mono: now.as_nanos(), wall, slew_ppm: 0 };
        self.track.store(Arc::new(Track { pieces: vec![piece] }));
        Ok(WallTime::from_nanos(wall))
    }

    /// From here on session wall time is read and written with: it never goes back any more.
    pub fn settle(&self) {
        self.inner.lock().in_use = true;
    }

    /// Takes in an exchange with the peer `from` that ended just now, and corrects session wall time by what is best
    /// known. `now` is monotonic time, at most [`PUBLISH_AHEAD`] old. Implies [`settle`](Self::settle).
    ///
    /// # Errors
    /// [`SampleError`] for a sample that makes no sense; nothing changed.
    pub fn observe(&self, from: u64, sample: PingSample, now: MonoTime) -> Result<Observed, SampleError> {
        let measured = sample.measure()?;
        let mut inner = self.inner.lock();
        inner.in_use = true;
        let known = inner.best;
        let best = inner.record(from, measured, now);
        if inner.role == WallRole::Reference || known == Some(best) {
            return Ok(Observed::Kept);
        }
        let track = self.track.load();
        let (next, observed) = track.corrected(inner.seen, &best);
        if observed != Observed::Kept {
            self.track.store(Arc::new(next));
        }
        Ok(observed)
    }

    /// How well session wall time is known at `now`.
    pub fn estimate(&self, now: MonoTime) -> WallEstimate {
        let inner = self.inner.lock();
        let base = i128::from(self.at(now).as_nanos()) - i128::from(now.as_nanos());
        let bound = |best: &Measured| {
            let to_slew = u64::try_from((best.base - base).unsigned_abs()).unwrap_or(u64::MAX);
            length(i128::from(best.uncertainty(now).saturating_add(to_slew)))
        };
        WallEstimate {
            offset_to_os: length(base - inner.os_base),
            uncertainty: match inner.role {
                WallRole::Reference => Some(WallDuration::ZERO),
                WallRole::Follower => inner.best.as_ref().map(bound),
            },
            rtt: inner.best.map(|best| length(i128::from(best.rtt))),
            last_sample: inner.last_sample,
        }
    }
}

fn length(nanos: i128) -> WallDuration {
    WallDuration::from_nanos(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

impl Inner {
    /// Keeps a sample; returns the best one now.
    fn record(&mut self, from: u64, sample: Measured, now: MonoTime) -> Measured {
        self.seen = self.seen.max(now);
        self.samples.add(from, sample);
        self.last_sample = self.last_sample.max(Some(sample.at));
        let best = self.samples.best(self.seen).unwrap_or(sample);
        self.best = Some(best);
        best
    }
}

impl Track {
    /// This track with a correction toward `best`, which begins a moment after `now`.
    fn corrected(&self, now: MonoTime, best: &Measured) -> (Self, Observed) {
        let start = now.saturating_add(PUBLISH_AHEAD).as_nanos();
        let wall = self.at(start);
        let error = i128::from(start) + best.base - i128::from(wall);
        let size = u64::try_from(error.unsigned_abs()).unwrap_or(u64::MAX);
        let oldest = now.as_nanos().saturating_sub(KEEP_PAST.as_nanos().unsigned_abs());
        let mut pieces = self.kept(oldest, start);
        // An error smaller than the sample's own must not make time leap, because it could not leap back.
        let certain = size > best.uncertainty(now);
        let observed = if size < DEAD_BAND {
            // What is being slewed may overshoot by now: stop it here.
            pieces.push(Piece { mono: start, wall, slew_ppm: 0 });
            let slewing = self.pieces.last().is_some_and(|piece| piece.mono > start);
            let none = Observed::Kept;
            let correction = length(error);
            if slewing { Observed::Slewing { correction, until: MonoTime::from_nanos(start) } } else { none }
        } else if error > i128::from(STEP_THRESHOLD.as_nanos()) && certain {
            let after = wall.saturating_add(size);
            pieces.push(Piece { mono: start, wall: after, slew_ppm: 0 });
            let (before, after) = (WallTime::from_nanos(wall), WallTime::from_nanos(after));
            Observed::Stepped { at: MonoTime::from_nanos(start), before, after }
        } else {
            let slew_ppm = if error < 0 { -(MAX_SLEW_PPM as i64) } else { MAX_SLEW_PPM as i64 };
            let slew = Piece { mono: start, wall, slew_ppm };
            let end = start.saturating_add(size.saturating_mul(1_000_000 / MAX_SLEW_PPM));
            pieces.push(slew);
            pieces.push(Piece { mono: end, wall: slew.at(end), slew_ppm: 0 });
            Observed::Slewing { correction: length(error), until: MonoTime::from_nanos(end) }
        };
        (Self { pieces }, observed)
    }

    /// The pieces that hold somewhere in `[oldest, start)`.
    fn kept(&self, oldest: u64, start: u64) -> Vec<Piece> {
        let before = self.pieces.iter().filter(|piece| piece.mono < start).copied();
        let mut pieces: Vec<Piece> = before.collect();
        let first = pieces.iter().rposition(|piece| piece.mono <= oldest).unwrap_or(0);
        pieces.drain(..first.max(pieces.len().saturating_sub(MAX_PIECES)));
        pieces
    }
}
