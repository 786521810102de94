//! The offset estimator: what four-timestamp exchanges with other peers say about session wall time.
//!
//! The exchange is that of NTP (RFC 5905, section 8); of each peer's samples in a window the one with the least bound
//! on its error counts, which under equal age is the one with the least round trip: the queues that make a round trip
//! long are also what makes its two ways differ.
use crate::{MonoTime, WallDuration, WallTime};
use std::collections::{BTreeMap, VecDeque};

/// How fast two monotonic clocks may drift apart, parts per million: a poor quartz, warm against cold.
pub const DRIFT_ALLOWANCE_PPM: u64 = 100;
/// Samples kept per peer.
const WINDOW: usize = 16;
/// Peers kept. More than a peer has links that it would ask.
const MAX_PEERS: usize = 64;
/// A round trip longer than this says nothing worth keeping.
pub const MAX_ROUND_TRIP: WallDuration = WallDuration::from_secs(10);

/// One exchange: request and answer, each with its sending and its receiving instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PingSample {
    /// Local monotonic time at which the request was sent.
    pub t1: MonoTime,
    /// The remote's session wall time at which the request arrived.
    pub t2: WallTime,
    /// The remote's session wall time at which the answer was sent.
    pub t3: WallTime,
    /// Local monotonic time at which the answer arrived.
    pub t4: MonoTime,
}

/// Why a sample is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SampleError {
    /// The instants are not in order: the answer before the request, or more time at the remote than in all.
    #[error("the four instants of a ping are out of order: drop it")]
    Disordered,
    /// The round trip is too long to tell anything.
    #[error("a round trip of {rtt} is longer than {MAX_ROUND_TRIP}: drop it")]
    TooSlow {
        /// The round trip, without the remote's time.
        rtt: WallDuration,
    },
}

/// What one sample says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Measured {
    /// Session wall time less local monotonic time, nanoseconds.
    pub(crate) base: i128,
    /// Round trip without the remote's time, nanoseconds.
    pub(crate) rtt: u64,
    /// When the answer arrived.
    pub(crate) at: MonoTime,
}

impl Measured {
    /// Bound on the error of `base` at `now`, nanoseconds: half the round trip (all the delay on one way), and drift.
    pub(crate) fn uncertainty(&self, now: MonoTime) -> u64 {
        let age = now.as_nanos().saturating_sub(self.at.as_nanos());
        self.rtt.div_ceil(2).saturating_add(age / 1_000_000 * DRIFT_ALLOWANCE_PPM)
    }
}

impl PingSample {
    pub(crate) fn measure(&self) -> Result<Measured, SampleError> {
        let away = self.t4.as_nanos().checked_sub(self.t1.as_nanos());
        let there = self.t3.as_nanos().checked_sub(self.t2.as_nanos());
        let (Some(away), Some(there)) = (away, there) else { return Err(SampleError::Disordered) };
        let rtt = away.checked_sub(there).ok_or(SampleError::Disordered)?;
        if rtt > MAX_ROUND_TRIP.as_nanos().unsigned_abs() {
            let rtt = WallDuration::from_nanos(i64::try_from(rtt).unwrap_or(i64::MAX));
            return Err(SampleError::TooSlow { rtt });
        }
        let remote = i128::from(self.t2.as_nanos()) + i128::from(self.t3.as_nanos());
        let local = i128::from(self.t1.as_nanos()) + i128::from(self.t4.as_nanos());
        Ok(Measured { base: (remote - local).div_euclid(2), rtt, at: self.t4 })
    }
}

/// The windows of all peers that were asked.
#[derive(Default, Debug)]
pub(crate) struct Samples {
    by_peer: BTreeMap<u64, VecDeque<Measured>>,
}

impl Samples {
    pub(crate) fn add(&mut self, peer: u64, sample: Measured) {
        if !self.by_peer.contains_key(&peer) && self.by_peer.len() == MAX_PEERS {
            let newest = |window: &VecDeque<Measured>| window.back().map(|sample| sample.at);
            let stalest = self.by_peer.iter().min_by_key(|(_, window)| newest(window)).map(|(peer, _)| *peer);
            stalest.map(|peer| self.by_peer.remove(&peer));
        }
        let window = self.by_peer.entry(peer).or_default();
        if window.len() == WINDOW {
            window.pop_front();
        }
        window.push_back(sample);
    }

    pub(crate) fn forget(&mut self, peer: u64) {
        self.by_peer.remove(&peer);
    }

    /// The sample with the least bound on its error at `now`; the newest of equals.
    pub(crate) fn best(&self, now: MonoTime) -> Option<Measured> {
        let all = self.by_peer.values().flatten().copied();
        all.min_by_key(|sample| (sample.uncertainty(now), u64::MAX - sample.at.as_nanos()))
    }
}
