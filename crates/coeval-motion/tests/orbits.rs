//! Two-body motion against textbooks, closed forms and an independent numerical integration.
use coeval_motion::{Elements, Evolve, OrbitError, OrbitState, between, orbit::period, propagate};
use coeval_value::{Motion, MotionModel};
use proptest::prelude::*;
use std::f64::consts::TAU;

const MU: f64 = 3.986004418e14;

fn norm(a: [f64; 3]) -> f64 {
    a.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn far(a: [f64; 3], b: [f64; 3]) -> f64 {
    norm([a[0] - b[0], a[1] - b[1], a[2] - b[2]])
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// At true anomaly `anomaly` of an inclined orbit with periapsis 7,000 km.
fn start(eccentricity: f64, anomaly: f64) -> OrbitState {
    let elements = Elements {
        semi_latus_rectum: 7.0e6 * (1.0 + eccentricity),
        eccentricity,
        inclination: 0.9,
        ascending_node: 2.0,
        argument_of_periapsis: -1.1,
        true_anomaly: anomaly,
    };
    elements.state(MU).unwrap()
}

/// Runge-Kutta, fourth order, fixed steps: shares nothing with the solver.
fn integrated(state: OrbitState, dt: f64, steps: u32) -> OrbitState {
    let pull = |r: [f64; 3]| {
        let k = -MU / norm(r).powi(3);
        r.map(|x| k * x)
    };
    let plus = |a: [f64; 3], k: f64, b: [f64; 3]| std::array::from_fn(|i| a[i] + k * b[i]);
    let h = dt / f64::from(steps);
    let (mut r, mut v) = (state.position, state.velocity);
    for _ in 0..steps {
        let (r1, v1): ([f64; 3], [f64; 3]) = (v, pull(r));
        let (r2, v2): ([f64; 3], [f64; 3]) = (plus(v, h / 2.0, v1), pull(plus(r, h / 2.0, r1)));
        let (r3, v3): ([f64; 3], [f64; 3]) = (plus(v, h / 2.0, v2), pull(plus(r, h / 2.0, r2)));
        let (r4, v4): ([f64; 3], [f64; 3]) = (plus(v, h, v3), pull(plus(r, h, r3)));
        for i in 0..3 {
            r[i] += h / 6.0 * (r1[i] + 2.0 * r2[i] + 2.0 * r3[i] + r4[i]);
            v[i] += h / 6.0 * (v1[i] + 2.0 * v2[i] + 2.0 * v3[i] + v4[i]);
        }
    }
    OrbitState { position: r, velocity: v }
}

#[test]
fn vallado_example_2_4() {
    // Vallado, Fundamentals of Astrodynamics and Applications, example 2-4 (Kepler's problem), km and km/s.
    let r = [1_131_340.0, -2_282_343.0, 6_672_423.0];
    let v = [-5643.05, 4303.33, 2428.79];
    let end = propagate(r, v, 3.986004415e14, 2400.0).unwrap();
    assert!(far(end.position, [-4_219_752.7, 4_363_029.2, -3_958_766.6]) < 10.0, "{end:?}");
    assert!(far(end.velocity, [3689.866, -1916.735, -6112.511]) < 0.01, "{end:?}");
}

#[test]
fn curtis_example_3_7() {
    // Curtis, Orbital Mechanics for Engineering Students, example 3.7: five digits are printed.
    let end = propagate([7.0e6, -1.2124e7, 0.0], [2667.9, 4621.0, 0.0], 3.986e14, 3600.0).unwrap();
    assert!(far(end.position, [-3_297_800.0, 7_413_400.0, 0.0]) < 200.0, "{end:?}");
    assert!(far(end.velocity, [-8297.6, -964.04, 0.0]) < 0.1, "{end:?}");
}

#[test]
fn every_conic_agrees_with_numerical_integration_and_keeps_energy_and_momentum() {
    for e in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0, 3.0] {
        for anomaly in [0.0, -0.8, 1.2] {
            for dt in [4000.0, -4000.0] {
                let from = start(e, anomaly);
                let end = propagate(from.position, from.velocity, MU, dt).unwrap();
                let numeric = integrated(from, dt, 8000);
                let error = far(end.position, numeric.position);
                assert!(error < 1e-2, "e {e}, anomaly {anomaly}, dt {dt}: {error} m");
                assert!(far(end.velocity, numeric.velocity) < 1e-5, "e {e}");
                let energy = |s: OrbitState| 0.5 * norm(s.velocity).powi(2) - MU / norm(s.position);
                let drift = (energy(end) - energy(from)).abs() / (MU / norm(from.position));
                assert!(drift < 1e-13, "e {e}: energy drifts by {drift}");
                let momentum = |s: OrbitState| cross(s.position, s.velocity);
                let drift = far(momentum(end), momentum(from)) / norm(momentum(from));
                assert!(drift < 1e-13, "e {e}: momentum drifts by {drift}");
            }
        }
    }
}

#[test]
fn there_and_back_returns() {
    for e in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0, 3.0] {
        for dt in [1.0, 1e3, 1e5, -3e6] {
            let from = start(e, 0.7);
            let there = propagate(from.position, from.velocity, MU, dt).unwrap();
            let back = propagate(there.position, there.velocity, MU, -dt).unwrap();
            let error = far(back.position, from.position);
            // Conditioning: a relative rounding of 1e-15 in energy shifts the phase by that times the revolutions, and
            // far from the body the same rounding is of the far radius.
            let scale = norm(there.position).max(norm(from.velocity) * dt.abs());
            assert!(error < 1e-11 * scale.max(7e6), "e {e}, dt {dt}: {error} m");
        }
    }
}

#[test]
fn warp_a_circular_orbit_is_within_a_centimeter_over_thirty_days() {
    let a = 6_778_137.0;
    let n = (MU / (a * a * a)).sqrt();
    assert!((TAU / n - 5_553.624).abs() < 1e-3);
    let motion = Motion {
        model: MotionModel::TwoBody,
        position: Some([a, 0.0, 0.0]),
        velocity: Some([0.0, n * a, 0.0]),
        mu: Some(MU),
        ..Motion::default()
    };
    let mut worst = 0.0_f64;
    for k in 0..5000 {
        // 50 ms at a scale of 1,000,000 is 50,000 s; odd spacing so that every phase is met, both ways in time.
        let dt = f64::from(k) * 518.423_17 * if k % 2 == 0 { 1.0 } else { -1.0 };
        let (sin, cos) = (n * dt).sin_cos();
        let got = motion.evolve(dt).unwrap();
        worst = worst.max(far(got.position.unwrap(), [a * cos, a * sin, 0.0]));
    }
    assert!(worst < 1e-2, "{worst} m");
}

#[test]
fn degenerate_orbits_are_errors_not_nan() {
    let (r, v) = ([7e6, 0.0, 0.0], [0.0, 7e3, 0.0]);
    assert_eq!(propagate([0.0; 3], v, MU, 1.0), Err(OrbitError::ZeroRadius));
    assert_eq!(propagate(r, v, 0.0, 1.0), Err(OrbitError::NoCenter));
    assert_eq!(propagate(r, v, -MU, 1.0), Err(OrbitError::NoCenter));
    assert_eq!(propagate(r, [f64::NAN, 0.0, 0.0], MU, 1.0), Err(OrbitError::NotFinite));
    assert_eq!(propagate(r, v, MU, f64::INFINITY), Err(OrbitError::NotFinite));
    assert_eq!(propagate(r, v, MU, 0.0).unwrap().position, r);
    let no_mu =
        Motion { model: MotionModel::TwoBody, position: Some(r), velocity: Some(v), ..Motion::default() };
    assert_eq!(no_mu.evolve(1.0), None);
}

#[test]
fn a_straight_fall_matches_its_closed_form() {
    // From rest at r0, half the radius is reached after sqrt(r0^3 / 2 mu) (pi/4 + 1/2).
    let r0 = 1e8_f64;
    let dt = (r0.powi(3) / (2.0 * MU)).sqrt() * (std::f64::consts::FRAC_PI_4 + 0.5);
    let end = propagate([r0, 0.0, 0.0], [0.0; 3], MU, dt).unwrap();
    assert!((end.position[0] - 0.5 * r0).abs() < 1e-6 * 1e2, "{end:?}");
}

#[test]
fn a_long_arc_between_two_samples_is_still_an_orbit() {
    let from = start(0.1, 0.3);
    let motion = Motion {
        model: MotionModel::TwoBody,
        position: Some(from.position),
        velocity: Some(from.velocity),
        mu: Some(MU),
        ..Motion::default()
    };
    let span = 40_000.0;
    let later = motion.evolve(span).unwrap();
    for k in 1..40 {
        let since = span * f64::from(k) / 40.0;
        let got = between(&motion, &later, span, since).unwrap();
        let want = motion.evolve(since).unwrap();
        assert!(far(got.position.unwrap(), want.position.unwrap()) < 1e-4);
        assert!(far(got.velocity.unwrap(), want.velocity.unwrap()) < 1e-7);
    }
    let end = between(&motion, &later, span, span).unwrap();
    assert!(far(end.position.unwrap(), later.position.unwrap()) < 1e-9, "the end of the arc is the sample");
}

#[test]
fn mean_anomaly_satisfies_keplers_equation() {
    for e in [0.0_f64, 0.3, 0.9] {
        for mean in [-2.0, -0.1, 0.0, 1.0, 3.0] {
            let nu = Elements::from_mean(7e6, e, [0.0; 3], mean).unwrap().true_anomaly;
            let eccentric = 2.0 * (((1.0 - e) / (1.0 + e)).sqrt() * (nu / 2.0).tan()).atan();
            assert!((eccentric - e * eccentric.sin() - mean).abs() < 1e-12, "e {e}, mean {mean}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn elements_and_state_are_one(
        e in 0.0..3.0_f64, i in 0.0..3.1_f64, node in -3.0..3.0_f64, arg in -3.0..3.0_f64, nu in -1.5..1.5_f64,
    ) {
        let elements = Elements {
            semi_latus_rectum: 9e6,
            eccentricity: e,
            inclination: i,
            ascending_node: node,
            argument_of_periapsis: arg,
            true_anomaly: nu,
        };
        let state = elements.state(MU).unwrap();
        let again = Elements::from_state(&state, MU).unwrap().state(MU).unwrap();
        prop_assert!(far(again.position, state.position) < 1e-6 * 9.0);
        prop_assert!(far(again.velocity, state.velocity) < 1e-8);
    }

    #[test]
    fn a_whole_number_of_periods_returns(e in 0.0..0.95_f64, nu in -3.0..3.0_f64, turns in -1000_i32..1000) {
        let from = start(e, nu);
        let period = period(from.position, from.velocity, MU).unwrap();
        let end = propagate(from.position, from.velocity, MU, period * f64::from(turns)).unwrap();
        let traveled = norm(from.velocity) * period * f64::from(turns.abs().max(1));
        // The period, computed in other units, differs in its last bits, magnified near periapsis by 1/(1-e).
        prop_assert!(far(end.position, from.position) < 1e-13 * traveled / (1.0 - e) + 1e-6);
    }

    #[test]
    fn arbitrary_bits_never_panic_nor_loop(bits in proptest::array::uniform8(any::<u64>())) {
        let f = bits.map(f64::from_bits);
        if let Ok(state) = propagate([f[0], f[1], f[2]], [f[3], f[4], f[5]], f[6], f[7]) {
            prop_assert!(state.position.iter().chain(&state.velocity).all(|x| x.is_finite()));
        }
    }

    #[test]
    fn wide_magnitudes_end_finite_or_in_an_error(
        r in -12..12_i32, v in -9..9_i32, mu in -6..25_i32, dt in -12..18_i32, tilt in -1.0..1.0_f64,
    ) {
        let ten = |n: i32| 10_f64.powi(n);
        if let Ok(s) = propagate([ten(r), tilt * ten(r), 0.0], [tilt * ten(v), ten(v), ten(v)], ten(mu), ten(dt)) {
            prop_assert!(s.position.iter().chain(&s.velocity).all(|x| x.is_finite()));
        }
    }
}
