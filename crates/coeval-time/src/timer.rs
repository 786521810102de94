//! Timers in sim time, as pure data: shown one clock reading after another, they say what is due.
//!
//! While the clock runs without a break every firing is counted, upward and downward alike. Over a discontinuity
//! (another [generation](crate::Context::generation)) they do not replay: a jump in the direction the clock runs fires
//! once, with the count of what was missed; a jump against it only re-schedules. To sleep until the next firing, ask
//! for [`next_wall`](Interval::next_wall): while the clock stands still there is none, so nothing spins.
use crate::{Clock, Context, Direction, SimDuration, SimTime, WallTime};
use std::cmp::Ordering;

/// Why a timer cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TimerError {
    /// The period is zero or negative.
    #[error(
        "a timer period of {period} never ends: give a length above zero (a clock running backward counts down)"
    )]
    PeriodNotPositive {
        /// The period given.
        period: SimDuration,
    },
}

/// What is due at a reading.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Due {
    /// How often to fire.
    pub firings: u64,
    /// Firings left out because a jump passed over them.
    pub missed: u64,
    /// The sim time of the last one due: an exact multiple of the period.
    pub last: Option<SimTime>,
}

/// Fires at `start + k * period` for every whole `k`, negative ones included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    start: SimTime,
    period: SimDuration,
    seen: SimTime,
    generation: u64,
}

impl Interval {
    /// A timer that counts from the reading `now`: what lies at or before it is not due.
    ///
    /// # Errors
    /// [`TimerError::PeriodNotPositive`].
    pub fn new(start: SimTime, period: SimDuration, now: &Context) -> Result<Self, TimerError> {
        if period <= SimDuration::ZERO {
            return Err(TimerError::PeriodNotPositive { period });
        }
        Ok(Self { start, period, seen: now.sim, generation: now.generation })
    }

    /// What is due at `now`, a reading later than the last. A context moved with [`Context::at`] is not a reading of
    /// the clock, and nothing is due at it.
    pub fn poll(&mut self, now: &Context) -> Due {
        if !now.live {
            return Due::default();
        }
        let (from, to) = (self.seen, now.sim);
        let jumped = self.generation != now.generation;
        (self.seen, self.generation) = (to, now.generation);
        let up = to >= from;
        if jumped && up != (now.direction == Direction::Forward) {
            return Due::default();
        }
        let (first, last) =
            if up { (self.below(from), self.below(to)) } else { (self.above(from), self.above(to)) };
        let count = u64::try_from((last - first).unsigned_abs()).unwrap_or(u64::MAX);
        if count == 0 {
            return Due::default();
        }
        let last = Some(self.multiple(last));
        if jumped {
            Due { firings: 1, missed: count - 1, last }
        } else {
            Due { firings: count, missed: 0, last }
        }
    }

    /// The next sim time at which it fires if the clock runs in `direction`, after the last reading.
    pub fn next(&self, direction: Direction) -> SimTime {
        match direction {
            Direction::Forward => self.multiple(self.below(self.seen) + 1),
            Direction::Backward => self.multiple(self.above(self.seen) - 1),
        }
    }

    /// The wall instant at which to poll next: the first after `now` at which sim time comes to a multiple on either
    /// side, or turns round or jumps on the way, by the edits known. `None` while it never does. Poll and ask again
    /// whenever the clock changes: a timer that sleeps through a turn does not see that it passed a multiple twice.
    pub fn next_wall(&self, clock: &Clock, now: WallTime) -> Option<WallTime> {
        let sides = [Direction::Forward, Direction::Backward].map(|way| clock.wall_at(self.next(way), now));
        sides.into_iter().chain([clock.next_turn(now)]).flatten().min()
    }

    /// The number of the last multiple at or below `sim`.
    fn below(&self, sim: SimTime) -> i128 {
        (sim.as_nanos() - self.start.as_nanos()).div_euclid(self.period.as_nanos())
    }

    /// The number of the first multiple at or above `sim`.
    fn above(&self, sim: SimTime) -> i128 {
        -(self.start.as_nanos() - sim.as_nanos()).div_euclid(self.period.as_nanos())
    }

    fn multiple(&self, number: i128) -> SimTime {
        let offset = number.saturating_mul(self.period.as_nanos());
        SimTime::from_nanos(self.start.as_nanos().saturating_add(offset))
    }
}

/// Fires once, when sim time comes to an instant from the side it was on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Deadline {
    at: SimTime,
    /// Where sim time was, seen from the instant.
    side: Ordering,
    fired: bool,
    generation: u64,
}

impl Deadline {
    /// A deadline at `at`, armed at the reading `now`. Due at once if it is that time.
    pub fn new(at: SimTime, now: &Context) -> Self {
        Self { at, side: now.sim.cmp(&at), fired: false, generation: now.generation }
    }

    /// Whether it is due at `now`, a reading later than the last. A jump back to the side it was armed on arms it
    /// again. A context moved with [`Context::at`] fires nothing.
    pub fn poll(&mut self, now: &Context) -> bool {
        if !now.live {
            return false;
        }
        let jumped = self.generation != now.generation;
        self.generation = now.generation;
        let before = self.side != Ordering::Equal && now.sim.cmp(&self.at) == self.side;
        if before && jumped {
            self.fired = false;
        }
        let due = !before && !self.fired;
        self.fired |= due;
        due
    }

    /// The instant.
    pub const fn at(&self) -> SimTime {
        self.at
    }

    /// The wall instant at which to poll next; `None` when it has fired, or never comes by the edits known.
    pub fn next_wall(&self, clock: &Clock, now: WallTime) -> Option<WallTime> {
        if self.fired { None } else { clock.wall_at(self.at, now) }
    }
}
