//! The truth of a satellite: numerical integration of two-body motion *with* the J2 oblateness term.
//!
//! What is published is pure two-body motion, so a reader never evaluates the author's own formula, and corrections
//! are real. Acceleration as in Vallado, *Fundamentals of Astrodynamics and Applications*, 4th ed., section 8.7.1.

/// Gravitational parameter of the Earth, m³/s².
pub(crate) const MU_M3_S2: f64 = 398_600.441_8e9;
const J2: f64 = 1.082_626_68e-3;
const EARTH_RADIUS_M: f64 = 6_378_137.0;
const STEP_S: f64 = 10.0;

type State = ([f64; 3], [f64; 3]);

/// An orbit about an oblate Earth as a function of time, tabulated every 10 s by fourth-order Runge-Kutta (four
/// substeps) and read by quintic Hermite interpolation.
#[derive(Debug)]
pub(crate) struct Orbit {
    first_s: f64,
    table: Vec<State>,
}

impl Orbit {
    /// Integrates from `state` (m, m/s, inertial) at 0 s over `from_s ..= to_s`, with `from_s <= 0 <= to_s`.
    pub(crate) fn integrate(state: State, from_s: f64, to_s: f64) -> Self {
        let steps = |span: f64| (span / STEP_S).ceil().max(1.0) as usize;
        let walk = |count: usize, step: f64| {
            let mut here = state;
            (0..count)
                .map(|_| {
                    here = (0..4).fold(here, |s, _| runge_kutta(s, step / 4.0));
                    here
                })
                .collect::<Vec<_>>()
        };
        let (before, after) = (steps(-from_s), steps(to_s));
        let mut table = walk(before, -STEP_S);
        table.reverse();
        table.push(state);
        table.extend(walk(after, STEP_S));
        Self { first_s: -(before as f64) * STEP_S, table }
    }

    /// Position and velocity `t` seconds after the start, or `None` outside the table.
    pub(crate) fn at(&self, t: f64) -> Option<State> {
        let place = (t - self.first_s) / STEP_S;
        let i = place.floor();
        if !(i >= 0.0 && (i as usize) + 1 < self.table.len()) {
            return None;
        }
        Some(hermite(self.table[i as usize], self.table[i as usize + 1], place - i))
    }
}

fn acceleration(r: [f64; 3]) -> [f64; 3] {
    let r2 = r.iter().map(|x| x * x).sum::<f64>();
    let norm = r2.sqrt();
    let central = -MU_M3_S2 / (r2 * norm);
    let oblate = 1.5 * J2 * (EARTH_RADIUS_M * EARTH_RADIUS_M) / r2;
    let z2 = 5.0 * r[2] * r[2] / r2;
    [
        central * r[0] * (1.0 + oblate * (1.0 - z2)),
        central * r[1] * (1.0 + oblate * (1.0 - z2)),
        central * r[2] * (1.0 + oblate * (3.0 - z2)),
    ]
}

fn runge_kutta((r, v): State, h: f64) -> State {
    let add = |a: [f64; 3], b: [f64; 3], s: f64| -> [f64; 3] { std::array::from_fn(|k| a[k] + s * b[k]) };
    let (k1r, k1v) = (v, acceleration(r));
    let (k2r, k2v) = (add(v, k1v, h / 2.0), acceleration(add(r, k1r, h / 2.0)));
    let (k3r, k3v) = (add(v, k2v, h / 2.0), acceleration(add(r, k2r, h / 2.0)));
    let (k4r, k4v) = (add(v, k3v, h), acceleration(add(r, k3r, h)));
    let sum = |a: [f64; 3], k1: [f64; 3], k2: [f64; 3], k3: [f64; 3], k4: [f64; 3]| -> [f64; 3] {
        std::array::from_fn(|k| a[k] + h / 6.0 * (k1[k] + 2.0 * k2[k] + 2.0 * k3[k] + k4[k]))
    };
    (sum(r, k1r, k2r, k3r, k4r), sum(v, k1v, k2v, k3v, k4v))
}

/// Quintic Hermite through position, velocity and acceleration at both ends; `s` in 0 ..= 1.
fn hermite((ra, va): State, (rb, vb): State, s: f64) -> State {
    let (aa, ab) = (acceleration(ra), acceleration(rb));
    let h = STEP_S;
    let mut out = ([0.0; 3], [0.0; 3]);
    for k in 0..3 {
        // Coefficients of the polynomial in s that meets both ends in value, first and second derivative.
        let (c0, c1, c2) = (ra[k], va[k] * h, 0.5 * aa[k] * h * h);
        let (d0, d1, d2) = (rb[k] - c0 - c1 - c2, vb[k] * h - c1 - 2.0 * c2, ab[k] * h * h - 2.0 * c2);
        let c3 = 10.0 * d0 - 4.0 * d1 + 0.5 * d2;
        let c4 = -15.0 * d0 + 7.0 * d1 - d2;
        let c5 = 6.0 * d0 - 3.0 * d1 + 0.5 * d2;
        out.0[k] = c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))));
        out.1[k] = (c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))) / h;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn low() -> State {
        ([6_778_137.0, 0.0, 0.0], [0.0, 4_700.0, 6_037.0])
    }

    /// The potential that `acceleration` derives from, so that energy must be kept.
    fn energy((r, v): State) -> f64 {
        let r2 = r.iter().map(|x| x * x).sum::<f64>();
        let norm = r2.sqrt();
        let legendre = 1.5 * r[2] * r[2] / r2 - 0.5;
        let potential = -MU_M3_S2 / norm * (1.0 - J2 * (EARTH_RADIUS_M * EARTH_RADIUS_M) / r2 * legendre);
        0.5 * v.iter().map(|x| x * x).sum::<f64>() + potential
    }

    #[test]
    fn energy_is_kept_over_four_hours() {
        let orbit = Orbit::integrate(low(), -3_600.0, 14_400.0);
        let start = energy(low());
        for t in [-3_500.0, 5.0, 1_234.5, 14_000.0] {
            let now = energy(orbit.at(t).expect("inside the table"));
            assert!(((now - start) / start).abs() < 1e-9, "at {t}: {now} against {start}");
        }
        assert!(orbit.at(20_000.0).is_none());
    }

    #[test]
    fn the_node_regresses_as_theory_says() {
        // Vallado eq. 9-37: secular drift of the ascending node by J2.
        let (r, v) = low();
        let node = |(r, v): State| {
            let h = [r[1] * v[2] - r[2] * v[1], r[2] * v[0] - r[0] * v[2], r[0] * v[1] - r[1] * v[0]];
            h[0].atan2(-h[1])
        };
        let a = 1.0 / (2.0 / 6_778_137.0 - v.iter().map(|x| x * x).sum::<f64>() / MU_M3_S2);
        let n = (MU_M3_S2 / a.powi(3)).sqrt();
        let inclination = (v[1] / (v[1] * v[1] + v[2] * v[2]).sqrt()).acos();
        let want = -1.5 * n * J2 * (EARTH_RADIUS_M / a).powi(2) * inclination.cos();
        let period = std::f64::consts::TAU / n;
        let orbit = Orbit::integrate((r, v), 0.0, 11.0 * period);
        let got = node(orbit.at(10.0 * period).expect("inside the table")) / (10.0 * period);
        assert!(((got - want) / want).abs() < 0.02, "{got} against {want}");
    }
}
