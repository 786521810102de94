//! The clocks of one simulated machine: its monotonic clock, its OS clock, and the session wall time it makes of them.
use coeval_sync::SessionTime;
use coeval_time::{MonoTime, Observed, PingSample, SessionWall, WallDuration, WallRole, WallTime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What a right OS clock shows at virtual time zero.
pub const START: WallTime = WallTime::from_nanos(1_700_000_000_000_000_000);

/// Virtual time, readable from inside stores and engines.
#[derive(Clone, Debug, Default)]
pub struct VirtualTime(Arc<AtomicU64>);

impl VirtualTime {
    /// Virtual time now, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Moves it to `nanos`.
    pub fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }
}

/// How wrong a machine's clocks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skew {
    /// How far the OS clock is ahead.
    pub offset: WallDuration,
    /// How much too fast the machine counts, parts per million.
    pub drift_ppm: i64,
    /// Whether session wall time follows a reference; else it is the OS clock, as wrong as that is.
    pub follows: bool,
}

/// The clocks of one machine.
#[derive(Debug)]
pub struct Timepiece {
    virtual_time: VirtualTime,
    skew: Skew,
    /// By how much the OS clock was set since the program opened, nanoseconds.
    stepped: AtomicI64,
    /// What the OS clock shows while it stands still, nanoseconds; 0 while it runs.
    frozen: AtomicU64,
    session: Option<SessionWall>,
}

impl Timepiece {
    /// Clocks as wrong as `skew` says; those that follow start as `role`.
    pub fn new(virtual_time: VirtualTime, skew: Skew, role: WallRole) -> Self {
        let (stepped, frozen) = (AtomicI64::new(0), AtomicU64::new(0));
        let new = Self { virtual_time, skew, stepped, frozen, session: None };
        let mono = new.mono();
        let session = skew.follows.then(|| SessionWall::new(mono, new.os(mono), role));
        Self { session, ..new }
    }

    /// This machine's monotonic clock now.
    pub fn mono(&self) -> MonoTime {
        MonoTime::from_nanos(drifted(self.virtual_time.nanos(), self.skew.drift_ppm))
    }

    /// The virtual time at which this machine's monotonic clock has reached `mono`.
    pub fn virtual_of(&self, mono: MonoTime) -> MonoTime {
        let (ppm, mono) = (i128::from(self.skew.drift_ppm), i128::from(mono.as_nanos()));
        let mut at = (mono * 1_000_000 / (1_000_000 + ppm)) as u64;
        while i128::from(drifted(at, self.skew.drift_ppm)) < mono {
            at += 1;
        }
        MonoTime::from_nanos(at)
    }

    fn os(&self, mono: MonoTime) -> WallTime {
        match self.frozen.load(Ordering::Relaxed) {
            0 => {
                let offset = self.skew.offset.as_nanos() + self.stepped.load(Ordering::Relaxed);
                let since = offset.saturating_add_unsigned(mono.as_nanos());
                START.saturating_add(WallDuration::from_nanos(since))
            }
            frozen => WallTime::from_nanos(frozen),
        }
    }

    /// Somebody sets the OS clock.
    pub fn step(&self, by: WallDuration) {
        self.stepped.fetch_add(by.as_nanos(), Ordering::Relaxed);
    }

    /// The OS clock stands still, or runs on as if it never had.
    pub fn freeze(&self, frozen: bool) {
        let shows = if frozen { self.os(self.mono()).as_nanos() } else { 0 };
        self.frozen.store(shows, Ordering::Relaxed);
    }

    /// Whether session wall time may go back: it is the OS clock, without anything between.
    pub const fn is_raw(&self) -> bool {
        self.session.is_none()
    }

    /// Session wall time at an instant of the monotonic clock.
    pub fn session_at(&self, mono: MonoTime) -> WallTime {
        self.session.as_ref().map_or_else(|| self.os(mono), |session| session.at(mono))
    }

    /// Session wall time now.
    pub fn session_now(&self) -> WallTime {
        self.session_at(self.mono())
    }

    /// Whether session wall time follows a reference.
    pub const fn follows(&self) -> bool {
        self.session.is_some()
    }

    /// Makes this machine the reference, or a follower.
    pub fn set_role(&self, role: WallRole) {
        if let Some(session) = &self.session {
            session.set_role(role);
        }
    }

    /// A joiner takes the session's time outright; whether it could.
    pub fn adopt(&self, from: u64, sample: PingSample) -> bool {
        self.session.as_ref().is_some_and(|session| session.adopt(from, sample, self.mono()).is_ok())
    }

    /// Bound on the error of session wall time; `None` if nothing is known, or nothing followed.
    pub fn uncertainty(&self) -> Option<WallDuration> {
        self.session.as_ref()?.estimate(self.mono()).uncertainty
    }

    /// From here on session wall time does not go back.
    pub fn settle(&self) {
        if let Some(session) = &self.session {
            session.settle();
        }
    }

    /// Takes in a sample of the reference.
    pub fn observe(&self, from: u64, sample: PingSample) -> Option<Observed> {
        self.session.as_ref()?.observe(from, sample, self.mono()).ok()
    }
}

fn drifted(nanos: u64, ppm: i64) -> u64 {
    let nanos = i128::from(nanos);
    (nanos + (nanos * i128::from(ppm)).div_euclid(1_000_000)) as u64
}

/// The engine's view of a timepiece.
pub(crate) struct EngineTime(pub(crate) Arc<Timepiece>);

impl SessionTime for EngineTime {
    fn session_wall(&self, now: MonoTime) -> WallTime {
        self.0.session_at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_set_by_a_drifting_clock_is_due_when_that_clock_gets_there() {
        for drift_ppm in [-200, -1, 0, 1, 200] {
            let time = VirtualTime::default();
            let skew = Skew { drift_ppm, ..Skew::default() };
            let piece = Timepiece::new(time.clone(), skew, WallRole::Reference);
            for mono in [0, 1, 999, 123_456_789_012, 3_600_000_000_007] {
                let due = piece.virtual_of(MonoTime::from_nanos(mono)).as_nanos();
                time.set(due);
                assert!(piece.mono().as_nanos() >= mono, "{drift_ppm} ppm: due too early");
                time.set(due.saturating_sub(2));
                assert!(due < 2 || piece.mono().as_nanos() < mono, "{drift_ppm} ppm: due too late");
            }
        }
    }
}
