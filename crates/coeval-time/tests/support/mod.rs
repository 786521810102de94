//! Short ways to write clocks and edits down, shared by the tests.
#![allow(dead_code, reason = "each test binary uses its own part")]
use coeval_time::{
    Clock, Edit, EditId, EditKind, Genesis, Incarnation, SessionId, SimDuration, SimTime, Stamp, WallTime,
};

/// Nanoseconds in a second.
pub(crate) const S: i64 = 1_000_000_000;
/// Session wall time at which the test clocks start: 2026, so that stamps and bounds are as in real sessions.
pub(crate) const T0: u64 = 1_780_000_000 * S as u64;

/// `nanos` after the start.
pub(crate) fn wall(nanos: i64) -> WallTime {
    WallTime::from_nanos(T0.checked_add_signed(nanos).expect("a test within the range"))
}

/// Sim time `nanos`.
pub(crate) fn sim(nanos: i64) -> SimTime {
    SimTime::from_nanos(nanos.into())
}

/// The identity of the `n`-th batch of a test, stamped `at`.
pub(crate) fn id(at: WallTime, n: u64, index: u32) -> EditId {
    EditId { stamp: Stamp::new(at.as_nanos(), Incarnation(100 + n)), index }
}

/// An edit made and effective `at` nanoseconds after the start.
pub(crate) fn edit(at: i64, n: u64, index: u32, kind: EditKind) -> Edit {
    Edit { id: id(wall(at), n, index), at: wall(at), kind }
}

/// A clock that starts at `sim_start` with `scale`.
pub(crate) fn clock(sim_start: SimTime, scale: f64) -> Clock {
    let genesis = Genesis { wall: wall(0), sim: sim_start, scale };
    Clock::new(SessionId::default(), genesis).expect("the scale is finite")
}

/// A clock at 1,000 s and rate 1 with these edits, inserted at their own times.
pub(crate) fn clock_with(edits: &[Edit]) -> Clock {
    let clock = clock(sim(1_000 * S), 1.0);
    insert_all(&clock, edits);
    clock
}

/// Inserts edits, each at its own `at`.
pub(crate) fn insert_all(clock: &Clock, edits: &[Edit]) {
    for edit in edits {
        clock.insert(edit, edit.at).expect("the edit is valid");
    }
}

/// Sim times read at these seconds after the start.
pub(crate) fn read(clock: &Clock, seconds: &[i64]) -> Vec<SimTime> {
    seconds.iter().map(|s| clock.context(wall(s * S)).sim).collect()
}

/// A length in nanoseconds.
pub(crate) fn span(nanos: i64) -> SimDuration {
    SimDuration::from_nanos(nanos.into())
}
