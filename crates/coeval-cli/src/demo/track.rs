//! The truth of a flight: a smooth curve through recorded fixes, flown there and back for ever.
//!
//! Positions only: a local linear fit with a Gaussian weight (sigma 2 s) takes out the quantization, then a cubic
//! Hermite curve with Catmull-Rom tangents runs through the fitted points. The recorded velocity is not used.

/// Width of the Gaussian weight, s.
const SIGMA_S: f64 = 2.0;

/// Position (m) and velocity (m/s) in the track's east-north-up frame.
pub(crate) type Kinematics = ([f64; 3], [f64; 3]);

/// A flight as a function of time.
#[derive(Debug)]
pub(crate) struct Track {
    times: Vec<f64>,
    points: Vec<[f64; 3]>,
    tangents: Vec<[f64; 3]>,
}

impl Track {
    /// Fits the curve to a CSV with the columns `t_s, east_m, north_m, up_m, …`.
    pub(crate) fn from_csv(csv: &str) -> Result<Self, String> {
        let mut times = Vec::new();
        let mut fixes = Vec::new();
        for (number, line) in csv.lines().enumerate().skip(1) {
            let row: Vec<f64> = line
                .split(',')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .map_err(|e| format!("line {}: {e}", number + 1))?;
            let [t, east, north, up, ..] = row[..] else {
                return Err(format!("line {}: fewer than four columns", number + 1));
            };
            times.push(t);
            fixes.push([east, north, up]);
        }
        if times.len() < 4 || times.windows(2).any(|pair| pair[1] <= pair[0]) {
            return Err("a track needs four fixes or more, in order of time".into());
        }
        let points: Vec<_> = times.iter().map(|t| fit(&times, &fixes, *t)).collect();
        let tangents = catmull_rom(&times, &points);
        Ok(Self { times, points, tangents })
    }

    /// Position and velocity `t` seconds after the start; the track is flown forward, then backward, and so on.
    pub(crate) fn at(&self, t: f64) -> Kinematics {
        let (first, last) = (self.times[0], self.times[self.times.len() - 1]);
        let span = last - first;
        let phase = t.rem_euclid(2.0 * span);
        if phase <= span {
            self.curve(first + phase)
        } else {
            let (position, velocity) = self.curve(first + 2.0 * span - phase);
            (position, velocity.map(|v| -v))
        }
    }

    fn curve(&self, t: f64) -> Kinematics {
        let i = self.times.partition_point(|time| *time <= t).clamp(1, self.times.len() - 1) - 1;
        let h = self.times[i + 1] - self.times[i];
        let s = ((t - self.times[i]) / h).clamp(0.0, 1.0);
        let (a, b) = (self.points[i], self.points[i + 1]);
        let (ta, tb) = (self.tangents[i], self.tangents[i + 1]);
        let (s2, s3) = (s * s, s * s * s);
        let position = std::array::from_fn(|k| {
            (2.0 * s3 - 3.0 * s2 + 1.0) * a[k]
                + (s3 - 2.0 * s2 + s) * h * ta[k]
                + (3.0 * s2 - 2.0 * s3) * b[k]
                + (s3 - s2) * h * tb[k]
        });
        let velocity = std::array::from_fn(|k| {
            (6.0 * s2 - 6.0 * s) * (a[k] - b[k]) / h
                + (3.0 * s2 - 4.0 * s + 1.0) * ta[k]
                + (3.0 * s2 - 2.0 * s) * tb[k]
        });
        (position, velocity)
    }
}

/// Weighted least squares of a straight line about `t`, evaluated at `t`.
fn fit(times: &[f64], fixes: &[[f64; 3]], t: f64) -> [f64; 3] {
    let from = times.partition_point(|time| *time < t - 4.0 * SIGMA_S);
    let to = times.partition_point(|time| *time <= t + 4.0 * SIGMA_S);
    let (mut w0, mut w1, mut w2) = (0.0, 0.0, 0.0);
    let (mut y0, mut y1) = ([0.0; 3], [0.0; 3]);
    for i in from..to {
        let x = times[i] - t;
        let w = (-0.5 * (x / SIGMA_S).powi(2)).exp();
        w0 += w;
        w1 += w * x;
        w2 += w * x * x;
        for k in 0..3 {
            y0[k] += w * fixes[i][k];
            y1[k] += w * x * fixes[i][k];
        }
    }
    let determinant = w0 * w2 - w1 * w1;
    if determinant <= 1e-9 * w0 * w2 {
        return y0.map(|y| y / w0);
    }
    std::array::from_fn(|k| (w2 * y0[k] - w1 * y1[k]) / determinant)
}

fn catmull_rom(times: &[f64], points: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let last = points.len() - 1;
    (0..points.len())
        .map(|i| {
            let (a, b) = (i.saturating_sub(1), (i + 1).min(last));
            std::array::from_fn(|k| (points[b][k] - points[a][k]) / (times[b] - times[a]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn straight() -> Track {
        let rows: String = (0..60).map(|t| format!("{t},{},{},100,0,0,0\n", 50 * t, -20 * t)).collect();
        Track::from_csv(&format!("t_s,east_m,north_m,up_m,ve_mps,vn_mps,vu_mps\n{rows}"))
            .expect("a good track")
    }

    #[test]
    fn a_straight_line_stays_straight() {
        let (position, velocity) = straight().at(30.25);
        for (got, want) in position.iter().zip([1512.5, -605.0, 100.0]) {
            assert!((got - want).abs() < 1e-6, "{position:?}");
        }
        assert!((velocity[0] - 50.0).abs() < 1e-6 && (velocity[1] + 20.0).abs() < 1e-6);
    }

    #[test]
    fn it_flies_back_where_it_came_from() {
        let track = straight();
        let (there, out) = track.at(20.0);
        let (back, home) = track.at(2.0 * 59.0 - 20.0);
        assert_eq!(there, back);
        assert_eq!(out.map(|v| -v), home);
        assert_eq!(track.at(-7.0).0, track.at(7.0).0);
    }
}
