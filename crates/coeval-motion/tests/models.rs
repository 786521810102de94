//! Dead-reckoning models against closed forms and a fine numerical integration; publishing thresholds.
use coeval_motion::{Decision, Evolve, Publisher, Reason, Thresholds, between, extrapolate, lost_since};
use coeval_time::{WallDuration, WallTime};
use coeval_value::{Motion, MotionModel, Quat, Ramp, Value};
use proptest::prelude::*;

const MODELS: [MotionModel; 10] = [
    MotionModel::Static,
    MotionModel::Fpw,
    MotionModel::Rpw,
    MotionModel::Rvw,
    MotionModel::Fvw,
    MotionModel::Fpb,
    MotionModel::Rpb,
    MotionModel::Rvb,
    MotionModel::Fvb,
    MotionModel::TwoBody,
];

fn far(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}

fn quat_far(a: Quat, b: Quat) -> f64 {
    let near = |s: f64| {
        ((a.x - s * b.x).powi(2)
            + (a.y - s * b.y).powi(2)
            + (a.z - s * b.z).powi(2)
            + (a.w - s * b.w).powi(2))
        .sqrt()
    };
    near(1.0).min(near(-1.0))
}

fn sample(model: MotionModel) -> Motion {
    Motion {
        model,
        position: Some([10.0, -20.0, 30.0]),
        velocity: Some([100.0, 5.0, -7.0]),
        acceleration: Some([1.0, -2.0, 3.0]),
        orientation: Some(Quat { x: 0.1, y: 0.5, z: -0.1, w: 0.854_400_374_531_753_1 }),
        angular_velocity: Some([0.2, -0.3, 0.5]),
        ..Motion::default()
    }
}

/// x' = R(q) (v + a t), q' = q w / 2: Runge-Kutta on the rotation matrix, sharing nothing with the closed forms.
fn integrated(m: &Motion, dt: f64, accelerated: bool, steps: u32) -> ([f64; 3], [[f64; 3]; 3]) {
    let q = m.orientation.unwrap();
    let (w0, v0) = (m.angular_velocity.unwrap(), m.velocity.unwrap());
    let alpha = m.angular_acceleration.unwrap_or_default();
    let a = if accelerated { m.acceleration.unwrap() } else { [0.0; 3] };
    let slope = |t: f64, r: &[[f64; 3]; 3]| {
        let w: [f64; 3] = std::array::from_fn(|i| w0[i] + alpha[i] * t);
        let v: [f64; 3] = std::array::from_fn(|i| v0[i] + a[i] * t);
        let hat = [[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]];
        let x: [f64; 3] = std::array::from_fn(|i| (0..3).map(|k| r[i][k] * v[k]).sum());
        let r: [[f64; 3]; 3] =
            std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| r[i][k] * hat[k][j]).sum()));
        (x, r)
    };
    let plus = |r: &[[f64; 3]; 3], k: f64, d: &[[f64; 3]; 3]| -> [[f64; 3]; 3] {
        std::array::from_fn(|i| std::array::from_fn(|j| r[i][j] + k * d[i][j]))
    };
    let (mut x, mut r) = (m.position.unwrap(), matrix(q));
    let h = dt / f64::from(steps);
    for k in 0..steps {
        let t = f64::from(k) * h;
        let (x1, r1) = slope(t, &r);
        let (x2, r2) = slope(t + h / 2.0, &plus(&r, h / 2.0, &r1));
        let (x3, r3) = slope(t + h / 2.0, &plus(&r, h / 2.0, &r2));
        let (x4, r4) = slope(t + h, &plus(&r, h, &r3));
        for i in 0..3 {
            x[i] += h / 6.0 * (x1[i] + 2.0 * x2[i] + 2.0 * x3[i] + x4[i]);
            for j in 0..3 {
                r[i][j] += h / 6.0 * (r1[i][j] + 2.0 * r2[i][j] + 2.0 * r3[i][j] + r4[i][j]);
            }
        }
    }
    (x, r)
}

fn matrix(q: Quat) -> [[f64; 3]; 3] {
    let Quat { x, y, z, w } = q;
    [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
}

fn matrix_far(a: [[f64; 3]; 3], b: [[f64; 3]; 3]) -> f64 {
    (0..3).map(|i| far(a[i], b[i])).fold(0.0, f64::max)
}

#[test]
fn body_models_agree_with_numerical_integration() {
    for (model, accelerated) in [(MotionModel::Rpb, false), (MotionModel::Rvb, true)] {
        for dt in [0.5, 3.0, 12.0, -7.0] {
            let m = sample(model);
            let got = extrapolate(&m, dt).unwrap();
            let (x, r) = integrated(&m, dt, accelerated, 4000);
            assert!(far(got.position.unwrap(), x) < 1e-7, "{model:?} {dt}");
            assert!(matrix_far(matrix(got.orientation.unwrap()), r) < 1e-10, "{model:?} {dt}");
        }
    }
}

#[test]
fn angular_acceleration_is_within_its_stated_tolerance() {
    for model in [MotionModel::Rvb, MotionModel::Rpb, MotionModel::Rvw] {
        for dt in [2.0, 8.0, -5.0] {
            let m = Motion { angular_acceleration: Some([0.1, 0.05, -0.2]), ..sample(model) };
            let got = extrapolate(&m, dt).unwrap();
            let (x, r) = integrated(&m, dt, model == MotionModel::Rvb, 8000);
            assert!(matrix_far(matrix(got.orientation.unwrap()), r) < 1e-8, "{model:?} {dt}");
            if model != MotionModel::Rvw {
                assert!(far(got.position.unwrap(), x) < 1e-8 * 110.0 * dt.abs(), "{model:?} {dt}");
            }
            let w = got.angular_velocity.unwrap();
            assert!(far(w, [0.2 + 0.1 * dt, -0.3 + 0.05 * dt, 0.5 - 0.2 * dt]) < 1e-12);
        }
    }
}

#[test]
fn world_models_are_polynomials() {
    let dt = 3.0;
    let (straight, bent) = ([310.0, -5.0, 9.0], [314.5, -14.0, 22.5]);
    for (model, want, turns) in [
        (MotionModel::Fpw, straight, false),
        (MotionModel::Rpw, straight, true),
        (MotionModel::Rvw, bent, true),
        (MotionModel::Fvw, bent, false),
    ] {
        let m = sample(model);
        let got = extrapolate(&m, dt).unwrap();
        assert!(far(got.position.unwrap(), want) < 1e-12, "{model:?}");
        assert_eq!(got.orientation != m.orientation, turns, "{model:?}");
        let velocity = if want == bent { [103.0, -1.0, 2.0] } else { [100.0, 5.0, -7.0] };
        assert_eq!(got.velocity, Some(velocity));
    }
    assert_eq!(extrapolate(&sample(MotionModel::Static), dt).unwrap(), sample(MotionModel::Static));
}

#[test]
fn attitude_turns_in_body_axes() {
    // Yawed 90 degrees about z, then a quarter roll about the body's own x, which is the parent's y.
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let m = Motion {
        model: MotionModel::Rpw,
        orientation: Some(Quat { x: 0.0, y: 0.0, z: half, w: half }),
        angular_velocity: Some([std::f64::consts::FRAC_PI_2, 0.0, 0.0]),
        ..Motion::default()
    };
    let got = matrix(extrapolate(&m, 1.0).unwrap().orientation.unwrap());
    // Body y pointed to parent -x; after a quarter roll about body x (parent y) it points to parent z.
    assert!(far([got[0][1], got[1][1], got[2][1]], [0.0, 0.0, 1.0]) < 1e-15);
}

#[test]
fn body_rates_through_zero() {
    let at_rate = |rate: f64| Motion {
        model: MotionModel::Rvb,
        velocity: Some([10.0, 0.0, 0.0]),
        acceleration: Some([0.0; 3]),
        orientation: Some(Quat { x: 0.0, y: 0.0, z: 0.0, w: 1.0 }),
        angular_velocity: Some([0.0, rate, rate]),
        ..Motion::default()
    };
    for (dt, x) in [(2.0, 20.0), (-2.0, -20.0)] {
        assert_eq!(extrapolate(&at_rate(0.0), dt).unwrap().position, Some([x, 0.0, 0.0]));
        for exponent in 1..320 {
            let rate = 10_f64.powi(-exponent);
            let p = extrapolate(&at_rate(rate), dt).unwrap().position.unwrap();
            // First order: sideways by v rate dt^2 / 2 on two axes, and the second order along the way.
            assert!(far(p, [x, 0.0, 0.0]) < 30.0 * rate + 1e-15 * 20.0, "rate {rate}: {p:?}");
        }
        let p = extrapolate(&at_rate(1e-12), dt).unwrap().position.unwrap();
        assert!(far(p, [x, 0.0, 0.0]) < 1e-9);
    }
}

#[test]
fn series_and_closed_forms_meet() {
    let path = |rate: f64| {
        let m = Motion { angular_velocity: Some([0.0, 0.0, rate]), ..sample(MotionModel::Rvb) };
        extrapolate(&m, 1.0).unwrap().position.unwrap()
    };
    let step = far(path(1.0 - 1e-12), path(1.0 + 1e-12));
    assert!(step < 1e-9, "a step of {step} m where the formulas change");
}

#[test]
fn threshold_is_a_sphere() {
    let mut publisher = Publisher::new(Thresholds::default());
    let start = WallTime::from_nanos(1_000_000_000_000);
    let at = |p: [f64; 3]| Motion { model: MotionModel::Fpw, position: Some(p), ..Motion::default() };
    let register = at([0.0; 3]);
    assert_eq!(publisher.decide(&register, None, start), Decision::Publish(Reason::First));
    publisher.sent(start);
    let soon = start.saturating_add(WallDuration::from_millis(10));
    let Decision::Publish(Reason::Position(error)) = publisher.decide(&at([0.9; 3]), Some(&register), soon)
    else {
        panic!("an error of 1.56 m must be published")
    };
    assert!((error - 1.5588).abs() < 1e-4);
    assert!(matches!(publisher.decide(&at([0.5; 3]), Some(&register), soon), Decision::Keep { .. }));
    let nan = at([f64::NAN, 0.0, 0.0]);
    assert_eq!(publisher.decide(&nan, Some(&register), soon), Decision::Refuse);
    assert!(matches!(publisher.decide(&register, Some(&nan), soon), Decision::Publish(_)));
    publisher.thresholds.min_interval = WallDuration::from_millis(20);
    assert!(matches!(publisher.decide(&at([0.9; 3]), Some(&register), soon), Decision::Wait(_)));
    let due = start.saturating_add(WallDuration::from_secs(5));
    assert_eq!(publisher.decide(&register, Some(&register), due), Decision::Publish(Reason::Heartbeat));
}

#[test]
fn rotation_without_speed_is_published_and_survives() {
    let start = WallTime::from_nanos(5);
    let mut publisher = Publisher::default();
    publisher.sent(start);
    let still = Motion {
        model: MotionModel::Rpw,
        position: Some([1.0, 2.0, 3.0]),
        velocity: Some([0.0; 3]),
        orientation: Some(Quat { x: 0.0, y: 0.0, z: 0.0, w: 1.0 }),
        ..Motion::default()
    };
    let truth = extrapolate(&Motion { angular_velocity: Some([0.0, 0.0, 0.1]), ..still }, 1.0).unwrap();
    let decision = publisher.decide(&truth, Some(&still), start);
    assert!(matches!(decision, Decision::Publish(Reason::Rotation(angle)) if (angle - 0.1).abs() < 1e-12));
    let later = extrapolate(&truth, 2.0).unwrap();
    let want = Quat { x: 0.0, y: 0.0, z: 0.15_f64.sin(), w: 0.15_f64.cos() };
    assert!(quat_far(later.orientation.unwrap(), want) < 1e-15);
    assert_eq!(later.position, still.position);
}

#[test]
fn an_author_is_lost_after_two_and_four_tenths_heartbeats() {
    let heard = WallTime::from_nanos(7_000_000_000);
    let after = |nanos: i64| {
        lost_since(heard, WallDuration::from_secs(5), heard.saturating_add(WallDuration::from_nanos(nanos)))
    };
    assert_eq!(after(11_999_999_999), None);
    assert_eq!(after(12_000_000_000), Some(WallTime::from_nanos(19_000_000_000)));
}

#[test]
fn a_parabola_between_its_ends_is_itself() {
    for model in [MotionModel::Fvw, MotionModel::Fvb] {
        for span in [4.0, -4.0] {
            let a = sample(model);
            let b = extrapolate(&a, span).unwrap();
            for k in 0..=8 {
                let since = span * f64::from(k) / 8.0;
                let (got, want) = (between(&a, &b, span, since).unwrap(), extrapolate(&a, since).unwrap());
                assert!(far(got.position.unwrap(), want.position.unwrap()) < 1e-12 * 1e3, "{model:?}");
                assert!(far(got.velocity.unwrap(), want.velocity.unwrap()) < 1e-12 * 1e3, "{model:?}");
            }
        }
    }
}

#[test]
fn a_turn_between_its_ends_goes_the_shorter_way() {
    let a = Motion { angular_acceleration: None, ..sample(MotionModel::Rpw) };
    let mut b = extrapolate(&a, 2.0).unwrap();
    let q = b.orientation.unwrap();
    // The opposite quaternion is the same attitude: the way there must not change.
    b.orientation = Some(Quat { x: -q.x, y: -q.y, z: -q.z, w: -q.w });
    let got = between(&a, &b, 2.0, 0.5).unwrap().orientation.unwrap();
    assert!(quat_far(got, extrapolate(&a, 0.5).unwrap().orientation.unwrap()) < 1e-14);
}

#[test]
fn scalars_follow_their_rate() {
    let ramp = Ramp { value: 5.0, rate: -2.0 };
    assert_eq!(ramp.evolve(3.0), Some(Ramp { value: -1.0, rate: -2.0 }));
    assert_eq!(
        ramp.between(&Ramp { value: 1.0, rate: -2.0 }, 2.0, 1.0),
        Some(Ramp { value: 3.0, rate: -2.0 })
    );
    let middle = Value::Vec2([0.0, 4.0]).between(&Value::Vec2([2.0, 0.0]), -1.0, -0.5);
    assert!(matches!(middle, Some(Value::Vec2([x, y])) if x == 1.0 && y == 2.0));
    assert!(Value::Int(1).between(&Value::Int(3), 1.0, 0.5).is_none(), "integers hold");
    assert!(
        Value::Float(1.0).between(&Value::Bool(true), 1.0, 0.5).is_none(),
        "two types have nothing between"
    );
}

fn arbitrary() -> impl Strategy<Value = Motion> {
    let bits = || any::<u64>().prop_map(f64::from_bits);
    let vector = move || proptest::option::of(proptest::array::uniform3(bits()));
    let quat = proptest::option::of(proptest::array::uniform4(bits()));
    (0..10_usize, [vector(), vector(), vector(), vector(), vector()], quat, proptest::option::of(bits()))
        .prop_map(
            |(model, [position, velocity, acceleration, angular_velocity, angular_acceleration], q, mu)| {
                Motion {
                    model: MODELS[model],
                    position,
                    velocity,
                    acceleration,
                    orientation: q.map(|[x, y, z, w]| Quat { x, y, z, w }),
                    angular_velocity,
                    angular_acceleration,
                    mu,
                    frame: None,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bits_never_panic_nor_give_nan(a in arbitrary(), b in arbitrary(), dt in any::<u64>()) {
        let dt = f64::from_bits(dt);
        for dt in [dt, 1.0, -1e9] {
            if let Ok(m) = extrapolate(&a, dt) {
                prop_assert!(dt == 0.0 || m.position.is_none_or(|p| p.iter().all(|x| x.is_finite())));
            }
        }
        if let Some(m) = between(&a, &b, dt, 0.5 * dt) {
            prop_assert!(m.position.is_none_or(|p| p.iter().all(|x| x.is_finite())));
        }
        let mut publisher = Publisher::default();
        publisher.sent(WallTime::from_nanos(0));
        let _ = publisher.decide(&a, Some(&b), WallTime::from_nanos(1));
    }

    #[test]
    fn constant_rate_models_compose(model in 0..9_usize, s in -5.0..5.0_f64, t in -5.0..5.0_f64) {
        let m = sample(MODELS[model]);
        let whole = extrapolate(&m, s + t).unwrap();
        let parts = extrapolate(&extrapolate(&m, s).unwrap(), t).unwrap();
        prop_assert!(far(whole.position.unwrap(), parts.position.unwrap()) < 1e-9);
        prop_assert!(quat_far(whole.orientation.unwrap(), parts.orientation.unwrap()) < 1e-13);
    }
}
