//! What remote readers see of things that move.
use crate::common::{bad_net, cut, host, join, join_program, mesh};
use coeval::{
    Beyond, Conditioner, ErrorKind, Mode, Motion, Path, Peer, Policy, PublishOptions, Published, Quality,
    Reason, Side, SimDuration, SimTime, Span, Value, WallDuration,
};
use coeval_integration_tests::{converge, eventually};
use serde_json::json;
use std::time::Duration;

fn at(seconds: f64) -> SimTime {
    SimTime::from_nanos((seconds * 1e9) as i128)
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
}

/// A host whose sim time starts at zero, and a joiner.
fn from_zero() -> [Peer; 2] {
    let a = Peer::host("a").peer_name("a").start(at(0.0)).open().unwrap();
    let b = join(&a, "b");
    [a, b]
}

/// A remote reads from where the writer was when it wrote, however long that took to arrive.
#[test]
fn the_origin_is_the_writers_over_a_slow_link() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    a.set_conditioner(bad_net(100, 0.0));
    let ship = a.create_entity("ship").unwrap();
    let written = a.context();
    ship.set(written, "motion", Motion::at([0.0; 3]).velocity([100.0, 0.0, 0.0])).unwrap();
    converge(&[a, b]);
    let param = b.entity("ship").unwrap().param::<Motion>("motion").unwrap();
    let later = b.context().at(written.sim.saturating_add(SimDuration::from_millis(200)));
    near(param.get(later).unwrap().position.unwrap()[0], 20.0);
    let live = b.context();
    let reading = param.read(live).unwrap();
    near(reading.value.position.unwrap()[0], 100.0 * live.sim.seconds_since(written.sim));
    assert_eq!(reading.quality, Quality::Extrapolated { by: live.sim.since(written.sim) });
}

/// After silence the last value is read, bit for bit.
#[test]
fn what_came_to_rest_stays() {
    let [a, b] = from_zero();
    let valve = a.create_entity("valve").unwrap();
    for (seconds, x) in [(0.0, 0.0), (1.0, 1.0)] {
        valve.set(a.context().at(at(seconds)), "x", x).unwrap();
        converge(&[&a, &b]);
    }
    let param = b.entity("valve").unwrap().param::<f64>("x").unwrap().with_policy(Policy::HOLD);
    let reading = param.read(b.context().at(at(6.0))).unwrap();
    assert_eq!(reading.value.to_bits(), 1.0_f64.to_bits());
}

/// What flies by dead reckoning is held where it was; what orbits is where the orbit is at that date.
#[test]
fn a_jump_moves_time_not_state() {
    let [a, b] = from_zero();
    let (radius, mu) = (6_778_137.0_f64, 3.986_004_418e14_f64);
    let speed = (mu / radius).sqrt();
    let plane = a.create_entity("plane").unwrap();
    let moon = a.create_entity("moon").unwrap();
    let written = a.context();
    plane.set(written, "motion", Motion::at([5.0, 0.0, 0.0]).velocity([250.0, 0.0, 0.0])).unwrap();
    moon.set(written, "motion", Motion::orbit([radius, 0.0, 0.0], [0.0, speed, 0.0], mu)).unwrap();
    a.clock().jump_by(SimDuration::from_secs(-100 * 31_557_600)).unwrap();
    converge(&[&a, &b]);
    let now = b.context();
    let read = |name| b.entity(name).unwrap().param::<Motion>("motion").unwrap().read(now).unwrap();
    let held = read("plane");
    assert!(matches!(held.quality, Quality::Held { .. }), "{held}");
    let x = held.value.position.unwrap()[0];
    assert!((5.0..250.0 * 60.0).contains(&x), "the aircraft is at {x} m");
    let [x, y, _] = read("moon").value.position.unwrap();
    let angle = speed / radius * now.sim.seconds_since(written.sim);
    let (want_x, want_y) = (radius * angle.cos(), radius * angle.sin());
    // A hundred years are 568,000 revolutions: what an f64 angle of that many keeps is about a meter.
    assert!((x - want_x).hypot(y - want_y) < 10.0, "{x} {y}, not {want_x} {want_y}");
}

/// One write holds for a month of sim time.
#[test]
fn an_orbit_at_a_million_times_real_time_is_the_closed_form() {
    let a = Peer::host("a").peer_name("a").start(at(0.0)).conditioner(bad_net(50, 0.0)).open().unwrap();
    let b = join(&a, "b");
    let (radius, mu) = (6_778_137.0_f64, 3.986_004_418e14_f64);
    let speed = (mu / radius).sqrt();
    let station = a.create_entity("station").unwrap();
    let written = a.context();
    station.set(written, "motion", Motion::orbit([radius, 0.0, 0.0], [0.0, speed, 0.0], mu)).unwrap();
    a.clock().set_scale(1e6).unwrap();
    converge(&[&a, &b]);
    let param = b.entity("station").unwrap().param::<Motion>("motion").unwrap();
    for n in 0..200 {
        let day = SimDuration::from_secs_f64(86_400.0 * f64::from(n) * 0.15).unwrap();
        let context = if n % 20 == 0 { b.context() } else { b.context().at(written.sim.saturating_add(day)) };
        let seconds = context.sim.seconds_since(written.sim);
        if seconds > 30.0 * 86_400.0 {
            continue;
        }
        let [x, y, z] = param.get(context).unwrap().position.unwrap();
        let angle = speed / radius * seconds;
        let off = (x - radius * angle.cos()).hypot(y - radius * angle.sin()).hypot(z);
        assert!(off < 0.01, "{off} m off after {seconds} s");
    }
}

/// Two samples lie at each sim time: the one written after the turn counts.
#[test]
fn a_read_follows_the_newest_branch_after_turning_round() {
    let [a, b] = from_zero();
    let train = a.create_entity("train").unwrap();
    let write = |seconds: f64, x: f64, v: f64| {
        let motion = Motion::at([x, 0.0, 0.0]).velocity([v, 0.0, 0.0]);
        train.set(a.context().at(at(seconds)), "motion", motion).unwrap();
        converge(&[&a, &b]);
    };
    write(0.0, 0.0, 1.0);
    write(10.0, 10.0, 1.0);
    a.clock().set_scale(-1.0).unwrap();
    write(10.0, 20.0, 2.0);
    write(5.0, 10.0, 2.0);
    for peer in [&a, &b] {
        let param = peer.entity("train").unwrap().param::<Motion>("motion").unwrap();
        let x = |seconds| param.get(peer.context().at(at(seconds))).unwrap().position.unwrap()[0];
        near(x(4.9), 9.8);
        near(x(5.0), 10.0);
    }
}

/// Samples of a branch that was left by a jump serve nobody, from whomever they come.
#[test]
fn an_author_that_missed_the_jump_changes_no_read() {
    let a = Peer::host("a").peer_name("a").start(at(100.0)).open().unwrap();
    let (b, c) = (join(&a, "b"), join(&a, "c"));
    let train = a.create_entity("train").unwrap();
    let motion = |x: f64, v: f64| Motion::at([x, 0.0, 0.0]).velocity([v, 0.0, 0.0]);
    for (seconds, x) in [(100.0, 100.0), (101.0, 101.0)] {
        train.set(a.context().at(at(seconds)), "motion", motion(x, 1.0)).unwrap();
        converge(&[&a, &b, &c]);
    }
    b.set_conditioner(cut());
    for peer in [&a, &c] {
        // The others' words to b are lost as well: their acknowledgements are not heard.
        assert!(peer.stopped().is_none());
    }
    let unaware = b.context();
    a.clock().jump_to(at(50.0)).unwrap();
    train.set(a.context().at(at(50.0)), "motion", motion(0.0, 0.0)).unwrap();
    let reads = |peer: &Peer| -> Vec<f64> {
        let param = peer.entity("train").unwrap().param::<Motion>("motion").unwrap();
        [60.0, 80.0, 100.5]
            .map(|t| param.get(peer.context().at(at(t))).unwrap().position.unwrap()[0])
            .to_vec()
    };
    converge(&[&a, &c]);
    assert_eq!(reads(&c), [0.0; 3]);
    // Later, by a context from before the jump.
    b.entity("train").unwrap().set(unaware.at(at(101.2)), "motion", motion(500.0, 1.0)).unwrap();
    b.set_conditioner(Conditioner::default());
    converge(&[&a, &b, &c]);
    for peer in [&a, &c] {
        assert_eq!(reads(peer), [0.0; 3], "{}", peer.name());
        let param = peer.entity("train").unwrap().param::<Motion>("motion").unwrap();
        assert!(param.read(peer.context().at(at(60.0))).unwrap().stale >= 1, "the stale write is counted");
        assert!(peer.counters().abandoned_branch >= 1, "{:?}", peer.counters());
    }
}

/// The threshold is a sphere about the prediction, and what stays inside is not sent.
#[test]
fn a_publisher_sends_when_readers_are_off_and_not_before() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let ship = a.create_entity("ship").unwrap();
    let options = PublishOptions { heartbeat: WallDuration::from_secs(600), ..PublishOptions::default() };
    let mut publisher = ship.publisher("motion", options).unwrap();
    let first = publisher.update(a.context(), Motion::at([0.0; 3])).unwrap();
    assert!(matches!(first, Published::Sent { reason: Reason::First, .. }), "{first:?}");
    converge(&[a, b]);
    let x = |peer: &Peer| {
        let param = peer.entity("ship").unwrap().param::<Motion>("motion").unwrap();
        param.get(peer.context()).unwrap().position.unwrap()[0]
    };
    // Off by 0.5 m: the truth is seen here, and nothing is sent.
    let before = a.digest();
    assert_eq!(publisher.update(a.context(), Motion::at([0.5, 0.0, 0.0])).unwrap(), Published::Held);
    assert_eq!((x(a), x(b)), (0.5, 0.0));
    assert_eq!(a.digest(), before, "the truth is no state");
    // Each component within 1 m, the norm is not.
    let sphere = publisher.update(a.context(), Motion::at([0.9; 3])).unwrap();
    assert!(matches!(sphere, Published::Sent { reason: Reason::Position(e), .. } if e > 1.5), "{sphere:?}");
    converge(&[a, b]);
    assert_eq!((x(a), x(b)), (0.9, 0.9));
    let error = publisher.update(a.context(), Motion::at([f64::NAN; 3])).unwrap_err();
    assert_eq!(error.kind(), coeval::ErrorKind::Invalid);
    assert_eq!(x(a), 0.9);
}

#[test]
fn a_publisher_at_rest_gives_its_heartbeat() {
    let a = host("a");
    let ship = a.create_entity("ship").unwrap();
    let options = PublishOptions { heartbeat: WallDuration::from_millis(200), ..PublishOptions::default() };
    let mut publisher = ship.publisher("motion", options).unwrap();
    publisher.update(a.context(), Motion::at([1.0; 3])).unwrap();
    let mut sent = None;
    eventually("a heartbeat", || {
        sent = Some(publisher.update(a.context(), Motion::at([1.0; 3])).unwrap());
        sent != Some(Published::Held)
    });
    assert!(matches!(sent, Some(Published::Sent { reason: Reason::Heartbeat, .. })), "{sent:?}");
}

#[test]
fn a_publisher_hears_of_another_hand_and_yields_or_takes_it_back() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    for reclaim in [true, false] {
        let name = format!("ship{reclaim}");
        let ship = a.create_entity(&name).unwrap();
        let mut publisher =
            ship.publisher("motion", PublishOptions { reclaim, ..PublishOptions::default() }).unwrap();
        publisher.update(a.context(), Motion::at([0.0; 3])).unwrap();
        publisher.update(a.context(), Motion::at([0.5; 3])).unwrap();
        converge(&[a, b]);
        b.entity(&name).unwrap().set(b.context(), "motion", Motion::at([70.0, 0.0, 0.0])).unwrap();
        converge(&[a, b]);
        let x = || ship.get_as::<Motion>(a.context(), "motion").unwrap().position.unwrap()[0];
        assert_eq!(x(), 70.0, "a newer write drops the truth");
        let told = publisher.update(a.context(), Motion::at([0.5; 3])).unwrap();
        assert!(
            matches!(told, Published::Overwritten { by } if by.writer == b.node().incarnation),
            "{told:?}"
        );
        assert_eq!(x(), 70.0);
        let next = publisher.update(a.context(), Motion::at([0.5; 3])).unwrap();
        if reclaim {
            assert!(matches!(next, Published::Sent { .. }), "{next:?}");
            assert_eq!(x(), 0.5);
        } else {
            assert_eq!(next, told, "a publisher that yields goes on yielding");
            assert_eq!(x(), 70.0);
        }
    }
}

/// A reader that trusts a model for two seconds of sim time is told on which side it ended.
#[test]
fn too_far_past_and_too_far_future_are_told_apart() {
    let [a, b] = from_zero();
    let train = a.create_entity("train").unwrap();
    let written = a.context();
    train.set(written, "motion", Motion::at([0.0; 3]).velocity([10.0, 0.0, 0.0])).unwrap();
    converge(&[&a, &b]);
    let side = Side { mode: Mode::Model, span: Span::Sim(SimDuration::from_secs(2)), then: Beyond::Missing };
    let param = b.entity("train").unwrap().param::<Motion>("motion").unwrap();
    let param = param.with_policy(Policy { forward: side, backward: side });
    let read = |ms: i64| {
        let sim = written.sim.saturating_add(SimDuration::from_millis(ms));
        param.get(b.context().at(sim)).map(|motion| motion.position.unwrap()[0])
    };
    near(read(1_900).unwrap(), 19.0);
    near(read(-1_900).unwrap(), -19.0);
    assert_eq!(read(2_100).unwrap_err().kind(), ErrorKind::TooFarFuture);
    assert_eq!(read(-2_100).unwrap_err().kind(), ErrorKind::TooFarPast);
}

/// Between two samples a reader interpolates, but never across a teleport, whether written by handle or by name.
#[test]
fn a_teleport_is_no_way_there() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let (walker, jumper) = (a.create_entity("walker").unwrap(), a.create_entity("jumper").unwrap());
    let start = a.context();
    let end = start.at(start.sim.saturating_add(SimDuration::from_secs(1)));
    let middle = start.at(start.sim.saturating_add(SimDuration::from_millis(500)));
    for entity in [&walker, &jumper] {
        entity.set(start, "x", 0.0).unwrap();
        converge(&[a, b]);
    }
    walker.set(end, "x", 10.0).unwrap();
    jumper.param::<f64>("x").unwrap().teleport(end, 10.0).unwrap();
    converge(&[a, b]);
    let x = Path::parse("x").unwrap();
    let absent = Path::parse("y").unwrap();
    for peer in [a, b] {
        let asked = [(walker.id(), &x), (jumper.id(), &x), (walker.id(), &absent)];
        let middle = coeval::Context { wall: peer.context().wall, ..middle };
        let [walking, jumping, missing] = peer.read_many(middle, asked).try_into().unwrap();
        assert_eq!(walking.unwrap().value, Value::Float(5.0));
        assert_eq!(jumping.unwrap().value, Value::Float(0.0));
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::Missing);
    }
}

/// 12 s of wall time after it was last heard.
#[test]
fn a_killed_author_is_reported_lost() {
    let a = host("a");
    let mut b = join_program(&a.invite().unwrap().to_string(), "b");
    b.ask(json!({ "do": "create", "name": "plane" }));
    b.ask(json!({ "do": "set", "entity": "plane", "path": "x", "value": 1.5 }));
    b.ask(json!({ "do": "flush" }));
    let plane = a.entity("plane").unwrap();
    let param = plane.param::<f64>("x").unwrap();
    assert_eq!(param.read(a.context()).unwrap().lost_since, None);
    let killed = a.wall().now;
    b.kill();
    let mut lost = None;
    eventually("the author is lost", || {
        lost = param.read(a.context()).unwrap().lost_since;
        lost.is_some()
    });
    let after = lost.unwrap().since(killed).as_secs_f64();
    // It spoke last at most one keep-alive (2 s) before; the machine may be slow.
    assert!((9.5..17.0).contains(&after), "lost {after} s after it was killed");
    assert_eq!(param.get(a.context()).unwrap(), 1.5, "what it wrote stays");
    let info = plane.parameters().unwrap();
    assert!(info.iter().all(|parameter| !parameter.alive), "{info:?}");
    assert_eq!(info[0].author.as_deref(), Some("b"));
    let mut back = join_program(&a.invite().unwrap().to_string(), "b");
    assert_eq!(back.get("plane", "x"), json!(1.5));
    back.set("plane", "x", 2);
    std::thread::sleep(Duration::from_millis(1));
    eventually("its new self lives", || {
        a.entity("plane")
            .unwrap()
            .param::<i64>("x")
            .unwrap()
            .read(a.context())
            .is_ok_and(|r| r.lost_since.is_none())
    });
}
