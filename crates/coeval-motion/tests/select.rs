//! The rule for a read at an instant: turning round, branching, jumping, alternating, and running out.
use coeval_motion::{
    Beyond, Evolve, Mode, Moment, Policy, Quality, ReadError, Sample, Side, Span, read, read_newest,
    read_with,
};
use coeval_time::{
    Direction, EditId, Epoch, Incarnation, SimDuration, SimTime, Stamp, WallDuration, WallTime,
};
use coeval_value::{Motion, MotionModel, Ramp, SampleMeta};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
/// Wall instant of the first write.
const W0: u64 = 1_000 * SECOND;

fn sim(secs: f64) -> SimTime {
    SimTime::EPOCH.saturating_add(SimDuration::from_secs_f64(secs).unwrap())
}

fn by(secs: f64) -> SimDuration {
    SimDuration::from_secs_f64(secs).unwrap()
}

fn jump(n: u32) -> Epoch {
    if n == 0 {
        return Epoch::GENESIS;
    }
    let stamp = Stamp::new(W0, Incarnation(9));
    Epoch { at: WallTime::from_nanos(W0), jump: EditId { stamp, index: n } }
}

/// Written by author 7, `wall_ms` after the first write.
fn at<T>(wall_ms: u64, secs: f64, value: T) -> Sample<T> {
    let meta = SampleMeta { sim: sim(secs), ..SampleMeta::default() };
    Sample { stamp: Stamp::new(W0 + wall_ms * 1_000_000, Incarnation(7)), meta, value }
}

fn moment(wall_ms: u64, secs: f64) -> Moment {
    Moment {
        sim: sim(secs),
        wall: WallTime::from_nanos(W0 + wall_ms * 1_000_000),
        started: WallTime::from_nanos(0),
        rate: 1.0,
        live: true,
        epoch: Epoch::GENESIS,
    }
}

fn flying(x: f64, v: f64) -> Motion {
    Motion {
        model: MotionModel::Fpw,
        position: Some([x, 0.0, 0.0]),
        velocity: Some([v, 0.0, 0.0]),
        ..Motion::default()
    }
}

fn x(motion: &Motion) -> f64 {
    motion.position.unwrap()[0]
}

#[test]
fn comes_to_rest() {
    let samples = [at(0, 0.0, 0.0), at(1000, 1.0, 1.0)];
    let got = read(&samples, &moment(6000, 6.0), &Policy::HOLD).unwrap();
    assert_eq!((got.value, got.quality), (1.0, Quality::Held { by: by(5.0) }));
    let got = read(&samples, &moment(6000, 0.25), &Policy::HOLD).unwrap();
    assert_eq!((got.value, got.quality), (0.25, Quality::Interpolated));
}

#[test]
fn origin_is_the_writers() {
    let s = at(0, 10.0, flying(0.0, 100.0));
    let m = moment(200, 10.2);
    let got = read(&[s], &m, &Policy::default()).unwrap();
    assert!((x(&got.value) - 20.0).abs() < 1e-12);
    assert_eq!(got.quality, Quality::Extrapolated { by: by(0.2) });
    let fast = read_newest(&s.value, s.stamp, &s.meta, &m, &Policy::default()).unwrap();
    assert_eq!(fast, got);
}

#[test]
fn turning_round_follows_the_newest_branch() {
    let back = |wall, t, value| {
        let mut s = at(wall, t, value);
        s.meta.direction = Direction::Backward;
        s
    };
    // Sim time goes 0 to 10, then back: at 5 the value is 10, and it changes by 2 per second of sim time.
    let ramp = |value, rate| Ramp { value, rate };
    let samples = [
        at(0, 0.0, ramp(0.0, 1.0)),
        at(10_000, 10.0, ramp(10.0, 1.0)),
        back(10_001, 10.0, ramp(20.0, 2.0)),
        back(15_000, 5.0, ramp(10.0, 2.0)),
    ];
    let value = |t| read(&samples, &moment(15_100, t), &Policy::default()).unwrap();
    assert!((value(4.9).value.value - 9.8).abs() < 1e-12);
    assert_eq!(value(4.9).quality, Quality::Extrapolated { by: by(-0.1) });
    assert_eq!((value(5.0).value.value, value(5.0).quality), (10.0, Quality::Exact));
    assert!((value(7.5).value.value - 15.0).abs() < 1e-12);
    assert_eq!((value(10.0).value.value, value(10.0).quality), (20.0, Quality::Exact), "the newer stamp");
}

#[test]
fn branch_reads_only_the_newest_epoch_and_counts_the_unheard() {
    let mut samples = vec![at(0, 100.0, flying(100.0, 1.0)), at(1000, 101.0, flying(101.0, 1.0))];
    let mut branched = at(1200, 50.0, flying(0.0, 0.0));
    branched.meta.epoch = jump(1);
    samples.push(branched);
    let mut late = at(1300, 101.2, flying(101.2, 1.0));
    late.stamp.writer = Incarnation(3);
    for heard in [false, true] {
        if heard {
            samples.push(late);
        }
        for t in [60.0, 80.0, 100.5] {
            let got =
                read(&samples, &Moment { epoch: jump(1), ..moment(1500, t) }, &Policy::default()).unwrap();
            assert_eq!(x(&got.value), 0.0, "t {t}");
            assert_eq!(got.stale, u32::from(heard));
            assert_eq!(got.index, 2);
        }
    }
}

#[test]
fn an_abandoned_epoch_serves_while_no_newer_exists() {
    let samples = [at(0, 100.0, flying(100.0, 1.0)), at(1000, 101.0, flying(101.0, 1.0))];
    let got = read(&samples, &Moment { epoch: jump(1), ..moment(1500, 100.5) }, &Policy::default()).unwrap();
    assert!((x(&got.value) - 100.5).abs() < 1e-12);
    assert_eq!(got.quality, Quality::Interpolated);
}

#[test]
fn jump_moves_time_not_state() {
    let century = -100.0 * 365.25 * 86_400.0;
    let aircraft = [at(0, 0.0, flying(0.0, 250.0)), at(1000, 1.0, flying(250.0, 250.0))];
    for (offset, epoch) in [(century, jump(1)), (-century, jump(1))] {
        let got =
            read(&aircraft, &Moment { epoch, ..moment(1100, 1.0 + offset) }, &Policy::default()).unwrap();
        assert_eq!(x(&got.value), 250.0, "held at its last position");
        assert_eq!(got.quality, Quality::Held { by: by(offset) });
        assert_eq!(got.index, 1);
    }
    let mu = 3.986004418e14_f64;
    let a = 6_778_137.0_f64;
    let orbit = Motion {
        model: MotionModel::TwoBody,
        position: Some([a, 0.0, 0.0]),
        velocity: Some([0.0, (mu / a).sqrt(), 0.0]),
        mu: Some(mu),
        ..Motion::default()
    };
    let m = Moment { epoch: jump(1), ..moment(1100, century) };
    let got = read(&[at(0, 0.0, orbit)], &m, &Policy::default()).unwrap();
    assert_eq!(got.quality, Quality::Extrapolated { by: by(century) });
    let angle = (mu / (a * a * a)).sqrt() * century;
    let p = got.value.position.unwrap();
    // A century is 3.2e9 s: one unit in the last place of that is 4e-7 s, 4 mm of flight; the period's adds tens of m.
    let error = (p[0] - a * angle.cos()).hypot(p[1] - a * angle.sin());
    assert!(error < 100.0, "{error} m");
}

#[test]
fn a_teleport_is_never_interpolated_across() {
    let mut there = at(1000, 1.0, 100.0);
    there.meta.discontinuous = true;
    let samples = [at(0, 0.0, 0.0), there, at(2000, 2.0, 102.0)];
    let got = read(&samples, &moment(2100, 0.9), &Policy::default()).unwrap();
    assert_eq!((got.value, got.quality), (0.0, Quality::Held { by: by(0.9) }));
    let got = read(&samples, &moment(2100, 1.5), &Policy::default()).unwrap();
    assert_eq!(got.value, 101.0, "after the teleport the pair is an ordinary one");
}

#[test]
fn alternating_writers_read_the_newest_sample_before_the_instant() {
    let mut other = at(1000, 1.0, 10.0);
    other.stamp.writer = Incarnation(8);
    let samples = [at(0, 0.0, 0.0), other, at(2000, 2.0, 2.0)];
    let got = read(&samples, &moment(2100, 1.5), &Policy::default()).unwrap();
    assert_eq!((got.value, got.stamp.writer), (10.0, Incarnation(8)));
    assert_eq!(read(&samples, &moment(2100, 1.0), &Policy::default()).unwrap().quality, Quality::Exact);
}

#[test]
fn a_local_model_ends_with_its_span_and_stays_where_it_ended() {
    let samples = [at(0, 0.0, flying(0.0, 250.0))];
    let policy = Policy::default();
    let within = read(&samples, &moment(12_000, 12.0), &policy).unwrap();
    assert_eq!(x(&within.value), 3000.0);
    let sim_at = |wall: WallTime| Some(sim((wall.as_nanos() - W0) as f64 * 1e-9));
    let after = read_with(&samples, &moment(60_000, 60.0), &policy, sim_at).unwrap();
    assert_eq!((x(&after.value), after.quality), (3000.0, Quality::Held { by: by(48.0) }));
    let unknown = read(&samples, &moment(60_000, 60.0), &policy).unwrap();
    assert_eq!((x(&unknown.value), unknown.quality), (0.0, Quality::Held { by: by(60.0) }));
    assert!(
        read_newest(&samples[0].value, samples[0].stamp, &samples[0].meta, &moment(60_000, 60.0), &policy)
            .is_none()
    );
    // A thousand times faster, the same wall time is 12,000 s of sim time: still trusted while live.
    let warp = Moment { rate: 1000.0, ..moment(11_000, 11_000.0) };
    assert_eq!(read(&samples, &warp, &policy).unwrap().quality, Quality::Extrapolated { by: by(11_000.0) });
    // Asking now for the next hour is as far as waiting for it.
    let moved = Moment { live: false, ..moment(100, 3600.0) };
    assert!(matches!(read(&samples, &moved, &policy).unwrap().quality, Quality::Held { .. }));
}

#[test]
fn initial_values_age_from_the_start_of_the_session() {
    let mut initial = at(0, 0.0, flying(0.0, 10.0));
    initial.stamp = Stamp::GENESIS;
    let m = Moment { started: WallTime::from_nanos(W0), ..moment(2000, 2.0) };
    assert_eq!(x(&read(&[initial], &m, &Policy::default()).unwrap().value), 20.0);
}

#[test]
fn too_far_past_and_too_far_future_differ() {
    let side = Side { mode: Mode::Model, span: Span::Sim(by(2.0)), then: Beyond::Missing };
    let policy = Policy { forward: side, backward: side };
    for direction in [Direction::Forward, Direction::Backward] {
        let sign = if direction == Direction::Forward { 1.0 } else { -1.0 };
        let mut samples = [at(0, 0.0, flying(0.0, 1.0)), at(1000, sign, flying(sign, 1.0))];
        samples.iter_mut().for_each(|s| s.meta.direction = direction);
        let get = |t: f64| read(&samples, &moment(1100, sign * t), &policy);
        assert_eq!(get(3.5), Err(ReadError::TooFarFuture { by: by(sign * 2.5) }));
        assert_eq!(get(-2.5), Err(ReadError::TooFarPast { by: by(sign * -2.5) }));
        assert!((x(&get(2.5).unwrap().value) - sign * 2.5).abs() < 1e-12);
        assert!((x(&get(-1.5).unwrap().value) + sign * 1.5).abs() < 1e-12);
    }
    assert_eq!(read::<Sample<f64>>(&[], &moment(0, 0.0), &policy).unwrap_err(), ReadError::Empty);
}

#[test]
fn the_age_of_a_superseded_sample_ends_with_its_successor() {
    let mut teleport = at(1000, 1.0, flying(500.0, 1.0));
    teleport.meta.discontinuous = true;
    let samples = [at(0, 0.0, flying(0.0, 1.0)), teleport];
    // A minute later, the second before the teleport is still the second before the teleport.
    let got = read(&samples, &moment(60_000, 0.5), &Policy::default()).unwrap();
    assert_eq!((x(&got.value), got.quality), (0.5, Quality::Extrapolated { by: by(0.5) }));
}

#[derive(Clone, Debug, PartialEq)]
struct Label(&'static str);

impl Evolve for Label {}

#[test]
fn what_has_no_model_holds_the_earlier() {
    let samples = [at(0, 0.0, Label("up")), at(1000, 1.0, Label("down"))];
    let got = read(&samples, &moment(1100, 0.9), &Policy::default()).unwrap();
    assert_eq!((got.value, got.quality), (Label("up"), Quality::Held { by: by(0.9) }));
    assert_eq!(read(&samples, &moment(1100, 1.0), &Policy::default()).unwrap().value, Label("down"));
}

fn any_sample() -> impl Strategy<Value = (i8, u8, bool, bool, u8)> {
    (-6..6_i8, 0..3_u8, any::<bool>(), proptest::bool::weighted(0.1), 0..2_u8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever was written: a read gives a value, from the newest epoch only, and the value written there at an
    /// exact instant; the fast path agrees with the rule wherever it answers.
    #[test]
    fn reads_obey_the_rule(rows in proptest::collection::vec(any_sample(), 1..9), t in -8..8_i8, live: bool) {
        let samples: Vec<_> = rows.iter().enumerate().map(|(i, &(secs, epoch, forward, discontinuous, writer))| {
            let mut s = at(i as u64 * 10, f64::from(secs), flying(f64::from(secs), 1.0));
            s.meta.epoch = jump(u32::from(epoch));
            s.meta.direction = if forward { Direction::Forward } else { Direction::Backward };
            s.meta.discontinuous = discontinuous;
            s.stamp.writer = Incarnation(u64::from(writer) + 7);
            s
        }).collect();
        let newest = samples.iter().map(|s| s.meta.epoch).max().unwrap();
        let m = Moment { epoch: newest, live, ..moment(100, f64::from(t)) };
        let got = read(&samples, &m, &Policy::default()).unwrap();
        prop_assert_eq!(samples[got.index].meta.epoch, newest);
        prop_assert_eq!(samples[got.index].stamp, got.stamp);
        match got.quality {
            // Every sample lies on x = t, so whatever is not held must too.
            Quality::Exact | Quality::Interpolated | Quality::Extrapolated { .. } => {
                prop_assert!((x(&got.value) - f64::from(t)).abs() < 1e-12);
            }
            Quality::Held { by } => prop_assert_eq!(samples[got.index].meta.sim.saturating_add(by), m.sim),
        }
        let last = samples.last().unwrap();
        if let Some(fast) = read_newest(&last.value, last.stamp, &last.meta, &m, &Policy::default()) {
            prop_assert_eq!((fast.value, fast.quality, fast.stamp), (got.value, got.quality, got.stamp));
        }
    }

    /// One writer, sim time growing: a read between two samples lies between their values, and moves on with time.
    #[test]
    fn monotone_samples_read_monotone(steps in proptest::collection::vec((1..50_u16, 0..100_u16), 2..12)) {
        let (mut t, mut v) = (0.0, 0.0);
        let mut samples = vec![at(0, t, v)];
        for (i, (dt, dv)) in steps.iter().enumerate() {
            t += f64::from(*dt) * 0.01;
            v += f64::from(*dv) * 0.5;
            samples.push(at((i as u64 + 1) * 10, t, v));
        }
        let mut before = 0.0;
        for k in 0..=200 {
            let got = read(&samples, &moment(500, t * f64::from(k) / 200.0), &Policy::default()).unwrap();
            prop_assert!(got.value >= before - 1e-9 && got.value <= v + 1e-9);
            before = got.value;
        }
        prop_assert_eq!(before, v);
    }

    #[test]
    fn the_span_counts_wall_time(wall_ms in 0..30_000_u64, rate in -1000.0..1000.0_f64) {
        let direction = if rate < 0.0 { Direction::Backward } else { Direction::Forward };
        let mut s = at(0, 0.0, flying(0.0, 1.0));
        s.meta.direction = direction;
        let age = WallDuration::from_millis(wall_ms as i64);
        let m = Moment { rate, ..moment(wall_ms, rate * age.as_secs_f64()) };
        let held = matches!(read(&[s], &m, &Policy::default()).unwrap().quality, Quality::Held { .. });
        prop_assert_eq!(held, wall_ms > 12_000 && m.sim != s.meta.sim);
    }
}
