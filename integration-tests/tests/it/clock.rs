//! One sim time everywhere.
use crate::common::{host, join, mesh};
use coeval::{ErrorKind, Peer, SimDuration, SimTime, WallDuration, WallTime};
use coeval_integration_tests::{converge, eventually};
use std::time::Duration;

const fn at(seconds: i64) -> SimTime {
    SimTime::from_secs_nanos(seconds, 0)
}

/// A hundred joiners bring no default of theirs.
#[test]
fn joining_makes_no_edit_and_leaves_the_rate() {
    let a = Peer::host("a").rate(2.0).open().unwrap();
    let mapping = (a.clock().sim_at(WallTime::from_nanos(0)), a.context().generation);
    for n in 0..100 {
        let b = join(&a, &format!("joiner{n}"));
        assert_eq!(b.context().rate, 2.0);
        assert!(b.clock().log().is_empty(), "a joiner made an edit");
    }
    assert!(a.clock().log().is_empty());
    assert_eq!(a.context().rate, 2.0);
    assert_eq!((a.clock().sim_at(WallTime::from_nanos(0)), a.context().generation), mapping);
}

/// Sim time is a line, not stairs: two readings differ unless the system gave them the same nanosecond.
#[test]
fn a_clock_read_often_climbs_without_stairs() {
    let a = host("a");
    let b = join(&a, "b");
    for peer in [&a, &b] {
        let readings: Vec<_> = (0..100_000).map(|_| peer.context().sim).collect();
        assert!(readings.windows(2).all(|pair| pair[0] <= pair[1]));
        let mut distinct = readings;
        distinct.dedup();
        assert!(distinct.len() > 50_000, "{} steps in 100,000 readings", distinct.len());
    }
}

/// Also where the answerer's session clock is behind that of who asked.
#[test]
fn an_answer_to_what_was_seen_counts_after_it() {
    let peers = mesh(["a", "b", "c"]);
    let [a, b, c] = &peers;
    for round in 0..20 {
        let (asker, answerer) = if round % 2 == 0 { (a, b) } else { (b, c) };
        asker.clock().set_scale(4.0).unwrap();
        eventually("the edit is seen", || answerer.context().rate == 4.0);
        answerer.clock().set_scale(1.0).unwrap();
        asker.clock().pause().unwrap();
        eventually("the pause is seen", || answerer.clock().state().segment.paused);
        answerer.clock().resume().unwrap();
        converge(&[a, b, c]);
        for peer in [a, b, c] {
            assert_eq!(peer.context().rate, 1.0, "round {round}");
        }
    }
}

/// A seek while paused moves sim time and starts nothing.
#[test]
fn a_jump_while_paused_stays_paused() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    a.clock().pause().unwrap();
    a.clock().jump_to(at(4)).unwrap();
    converge(&[a, b]);
    std::thread::sleep(Duration::from_millis(300));
    for peer in [a, b] {
        assert_eq!(peer.context().sim, at(4));
        assert!(peer.clock().state().segment.paused);
    }
}

/// Stop means stop, whatever the rate becomes on the way.
#[test]
fn run_until_stops_everybody_exactly_there() {
    let peers = mesh(["a", "b", "c"]);
    let [a, b, c] = &peers;
    let stop = a.context().sim.saturating_add(SimDuration::from_secs(5));
    a.clock().run_until(stop).unwrap();
    eventually("the stop is known", || c.clock().log().len() == a.clock().log().len());
    b.clock().set_scale(7.0).unwrap();
    for peer in [a, b, c] {
        eventually("it stops", || peer.clock().state().segment.stopped);
        assert_eq!(peer.context().sim, stop);
    }
    c.clock().step(SimDuration::from_nanos(100_000_001)).unwrap();
    let next = stop.saturating_add(SimDuration::from_nanos(100_000_001));
    for peer in [a, b, c] {
        eventually("it steps", || peer.context().sim == next);
    }
    std::thread::sleep(Duration::from_millis(100));
    converge(&[a, b, c]);
    for peer in [a, b, c] {
        assert_eq!(peer.context().sim, next);
    }
}

/// Edits for later switch everywhere at once; there and back is the identical instant.
#[test]
fn scheduled_edits_switch_without_a_step() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let mut changes = b.clock().changes();
    let turn = a.wall_in(WallDuration::from_millis(1_000));
    let back = turn.saturating_add(WallDuration::from_millis(700));
    let end = back.saturating_add(WallDuration::from_millis(700));
    a.clock().at(turn).set_scale(-1.0).unwrap();
    b.clock().at(back).set_scale(1.0).unwrap();
    converge(&[a, b]);
    assert!(a.wall().now < turn && b.wall().now < turn, "this machine is too slow to tell");
    eventually("both turns are past", || b.wall().now > end);
    for peer in [a, b] {
        assert_eq!(peer.clock().sim_at(turn), peer.clock().sim_at(end));
    }
    let told = changes.poll();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|change| change.step() == SimDuration::from_nanos(0)), "{told:?}");
    assert_eq!((told[0].wall, told[1].wall), (turn, back));
}

#[test]
fn sim_time_is_equal_to_the_nanosecond_at_every_instant() {
    let peers = mesh(["a", "b", "c"]);
    let start = peers[0].wall().now;
    std::thread::scope(|scope| {
        for (n, peer) in peers.iter().enumerate() {
            scope.spawn(move || {
                let clock = peer.clock();
                for round in 0..5 {
                    clock.set_scale(f64::from(round) * 1.7 - 2.0 + n as f64 / 3.0).unwrap();
                    clock.pause().unwrap();
                    std::thread::sleep(Duration::from_millis(3));
                    clock.resume().unwrap();
                    clock.jump_by(SimDuration::from_nanos(-1_000_000_007 * (n as i128 + 1))).unwrap();
                    clock.set_scale(-1.0).unwrap();
                    let later = clock.at(peer.wall_in(WallDuration::from_secs(600))).set_scale(9.0).unwrap();
                    clock.cancel(later).unwrap();
                    clock.set_scale(1e6).unwrap();
                    clock.jump_to(at(1_000_000 * i64::from(round))).unwrap();
                    clock.stop_at(at(1_000_100 * i64::from(round))).unwrap();
                }
                clock.resume().unwrap();
            });
        }
    });
    let [a, b, c] = &peers;
    converge(&[a, b, c]);
    let span = a.wall().now.since(start).as_nanos() + 1_000_000_000;
    for n in 0..1_000 {
        let wall = start.saturating_add(WallDuration::from_nanos(span / 1_000 * n));
        let sim = a.clock().sim_at(wall);
        assert_eq!(b.clock().sim_at(wall), sim);
        assert_eq!(c.clock().sim_at(wall), sim);
    }
    let log =
        |peer: &Peer| -> Vec<_> { peer.clock().log().iter().map(|l| (l.logged, l.author.clone())).collect() };
    assert_eq!(log(a), log(b));
    assert!(log(c).iter().all(|(_, author)| author.is_some()), "every edit has an author with a name");
}

#[test]
fn a_clock_edit_that_makes_no_sense_changes_nothing() {
    let a = host("a");
    let before = a.clock().log().len();
    for scale in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(a.clock().set_scale(scale).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(Peer::host("b").rate(scale).open().unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(a.clock().log().len(), before);
}
