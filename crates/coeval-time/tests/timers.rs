//! Timers in sim time: exact multiples, no replay over jumps, no spinning while time stands still.
mod support;

use coeval_time::EditKind::{JumpTo, Pause, Resume, Scale};
use coeval_time::{Clock, Deadline, Due, Interval, SimDuration, SimTime, WallTime};
use proptest::prelude::*;
use support::{S, clock, edit, insert_all, sim, span, wall};

fn every(clock: &Clock, period: SimDuration, now: WallTime) -> Interval {
    Interval::new(SimTime::EPOCH, period, &clock.context(now)).expect("a period above zero")
}

/// Sleeps from firing to firing until `end`, as a thread would; returns the sim times fired at and the wake-ups.
fn run(clock: &Clock, timer: &mut Interval, start: WallTime, end: WallTime) -> (Vec<SimTime>, usize) {
    let (mut fired, mut now, mut wakes) = (Vec::new(), start, 0);
    while let Some(next) = timer.next_wall(clock, now).filter(|next| *next <= end) {
        now = next;
        wakes += 1;
        let due = timer.poll(&clock.context(now));
        fired.extend(due.last.filter(|_| due.firings == 1));
        assert!(due.firings <= 1 && wakes < 10_000, "spinning at {now}");
    }
    (fired, wakes)
}

#[test]
fn accumulated_step_does_not_lose_a_firing() {
    let clock = clock(sim(0), 1.0);
    let mut timer = every(&clock, SimDuration::from_millis(100), wall(0));
    let (fired, wakes) = run(&clock, &mut timer, wall(0), wall(5 * S));
    assert_eq!((fired.len(), wakes, fired.last().copied()), (50, 50, Some(sim(5 * S))));
    assert!((1..).zip(&fired).all(|(n, at)| *at == sim(n * S / 10)));
}

#[test]
fn polled_seldom_it_counts_every_multiple() {
    let clock = clock(sim(0), 1e6);
    let mut timer = every(&clock, span(3 * S), wall(0));
    let due = timer.poll(&clock.context(wall(S)));
    assert_eq!(due, Due { firings: 333_333, missed: 0, last: Some(sim(999_999 * S)) });
    assert_eq!(timer.poll(&clock.context(wall(S))), Due::default());
}

#[test]
fn backward_it_counts_down() {
    let clock = clock(sim(S), -1.0);
    let mut timer = every(&clock, SimDuration::from_millis(500), wall(0));
    let (fired, _) = run(&clock, &mut timer, wall(0), wall(2 * S));
    assert_eq!(fired, [S / 2, 0, -S / 2, -S].map(sim));
}

#[test]
fn turning_point_fires_once() {
    let clock = clock(sim(0), 1.0);
    insert_all(&clock, &[edit(2 * S, 1, 0, Scale(-1.0))]);
    let mut timer = every(&clock, span(S), wall(0));
    assert_eq!(run(&clock, &mut timer, wall(0), wall(3 * S)).0, [S, 2 * S, S].map(sim));
}

#[test]
fn multiple_passed_twice_around_a_turn_fires_twice() {
    let clock = clock(sim(0), 1.0);
    insert_all(&clock, &[edit(2 * S + S / 3, 1, 0, Scale(-1.0))]);
    let mut timer = every(&clock, span(S), wall(0));
    assert_eq!(run(&clock, &mut timer, wall(0), wall(3 * S)).0, [S, 2 * S, 2 * S].map(sim));
}

#[test]
fn forward_jump_fires_once_with_the_count_missed() {
    let clock = clock(sim(0), 1.0);
    let mut timer = every(&clock, span(S), wall(0));
    insert_all(&clock, &[edit(S / 2, 1, 0, JumpTo(sim(100 * S)))]);
    let due = timer.poll(&clock.context(wall(S / 2)));
    assert_eq!(due, Due { firings: 1, missed: 99, last: Some(sim(100 * S)) });
}

#[test]
fn backward_jump_reschedules() {
    let clock = clock(sim(100 * S), 1.0);
    let mut timer = every(&clock, span(S), wall(0));
    insert_all(&clock, &[edit(S / 2, 1, 0, JumpTo(sim(0)))]);
    assert_eq!(timer.poll(&clock.context(wall(S / 2))), Due::default());
    assert_eq!(timer.next_wall(&clock, wall(S / 2)), Some(wall(S / 2 + S)));
}

#[test]
fn standing_still_never_spins() {
    let clock = clock(sim(0), 1.0);
    insert_all(&clock, &[edit(S + 1, 1, 0, Pause)]);
    let mut timer = every(&clock, span(S), wall(0));
    assert_eq!(run(&clock, &mut timer, wall(0), wall(60 * S)).0, [sim(S)]);
    assert_eq!(timer.next_wall(&clock, wall(60 * S)), None);
    insert_all(&clock, &[edit(60 * S, 2, 0, Resume)]);
    assert_eq!(timer.next_wall(&clock, wall(60 * S)), Some(wall(61 * S - 1)));
}

#[test]
fn moved_context_fires_nothing() {
    let clock = clock(sim(0), 1.0);
    let mut timer = every(&clock, span(S), wall(0));
    let moved = clock.context(wall(S / 2)).at(sim(50 * S));
    assert_eq!(timer.poll(&moved), Due::default());
    assert!(!Deadline::new(sim(S), &clock.context(wall(0))).poll(&moved));
}

#[test]
fn period_of_nothing_is_refused() {
    let now = clock(sim(0), 1.0).context(wall(0));
    assert!(Interval::new(SimTime::EPOCH, SimDuration::ZERO, &now).is_err());
    assert!(Interval::new(SimTime::EPOCH, span(-1), &now).is_err());
}

#[test]
fn deadline_fires_once_and_is_armed_again_by_a_jump_back() {
    let clock = clock(sim(0), 1.0);
    let mut deadline = Deadline::new(sim(10 * S), &clock.context(wall(0)));
    assert_eq!(deadline.next_wall(&clock, wall(0)), Some(wall(10 * S)));
    let mut poll = |at| deadline.poll(&clock.context(wall(at)));
    assert_eq!([poll(10 * S - 1), poll(10 * S), poll(11 * S)], [false, true, false]);
    insert_all(&clock, &[edit(12 * S, 1, 0, JumpTo(sim(0)))]);
    assert_eq!([poll(12 * S), poll(22 * S), poll(23 * S)], [false, true, false]);
    assert_eq!(deadline.next_wall(&clock, wall(23 * S)), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Over random rates: polled at any instants, each crossing of a multiple is counted once, and a thread that sleeps
    /// from firing to firing fires at the same.
    #[test]
    fn firings_are_the_crossings(
        rates in prop::collection::vec(prop::sample::select(vec![1.0, -1.0, 0.0, 0.3, -2.7, 40.0]), 1..6),
        period in 1..5_000_i64,
        polls in prop::collection::btree_set(1..6_000_i64, 1..30),
    ) {
        let clock = clock(sim(17), 1.0);
        for (n, rate) in (0..).zip(&rates) {
            insert_all(&clock, &[edit(n * 1_000, 1, n as u32, Scale(*rate))]);
        }
        let at = |n: i64| clock.context(wall(n)).sim.as_nanos() as i64;
        // Every nanosecond: how many multiples are newly come to, counted one by one.
        let newly = |a: i64, b: i64| (a.min(b)..=a.max(b)).filter(|x| *x != a && x.rem_euclid(period) == 0).count();
        let mut timer = every(&clock, span(period), wall(0));
        let mut last = 0;
        for poll in polls {
            let due = timer.poll(&clock.context(wall(poll)));
            let net = newly(at(last), at(poll));
            prop_assert_eq!((due.firings, due.missed), (net as u64, 0));
            prop_assert!(due.last.is_none_or(|sim| sim.as_nanos() % i128::from(period) == 0));
            last = poll;
        }
        let crossings: usize = (0..6_000).map(|n| newly(at(n), at(n + 1))).sum();
        let mut timer = every(&clock, span(period), wall(0));
        let (mut now, mut fired) = (wall(0), 0);
        while let Some(next) = timer.next_wall(&clock, now).filter(|next| *next <= wall(6_000)) {
            let due = timer.poll(&clock.context(next));
            prop_assert!(due.firings > 0 || next > now, "spinning");
            (now, fired) = (next, fired + due.firings);
        }
        prop_assert_eq!(fired, crossings as u64);
    }

    /// Over random jumps: never more than one firing per poll, firings and missed together are the multiples passed
    /// forward, and nothing is due after a jump back.
    #[test]
    fn jumps_never_replay(targets in prop::collection::vec(-100_000..100_000_i64, 1..10), period in 1..3_000_i64) {
        let clock = clock(sim(0), 1.0);
        let mut timer = every(&clock, span(period), wall(0));
        for (n, target) in (1..).zip(&targets) {
            let before = clock.context(wall(n)).sim.as_nanos() as i64 - 1;
            timer.poll(&clock.context(wall(n - 1)));
            insert_all(&clock, &[edit(n, 1, n as u32, JumpTo(sim(*target)))]);
            let due = timer.poll(&clock.context(wall(n)));
            let passed = (target.div_euclid(period) - before.div_euclid(period)).max(0) as u64;
            let passed = if *target >= before { passed } else { 0 };
            prop_assert_eq!((due.firings, due.firings + due.missed), (passed.min(1), passed));
        }
    }
}
