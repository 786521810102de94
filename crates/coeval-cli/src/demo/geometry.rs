//! Where an aircraft is among the satellites: geodetic frames, the turning Earth, range and elevation.

const EQUATOR_M: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// Rotation rate of the Earth, rad/s (WGS 84).
const EARTH_RATE: f64 = 7.292_115e-5;

/// An east-north-up frame fixed to the Earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Site {
    /// Geodetic latitude, rad.
    pub(crate) latitude: f64,
    /// Longitude, rad.
    pub(crate) longitude: f64,
    /// Height over the ellipsoid, m.
    pub(crate) height: f64,
}

/// Range (m) and elevation above the site's horizontal (rad).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sight {
    pub(crate) range_m: f64,
    pub(crate) elevation_rad: f64,
}

impl Site {
    fn earth_fixed(self) -> [f64; 3] {
        let e2 = FLATTENING * (2.0 - FLATTENING);
        let (sin, cos) = self.latitude.sin_cos();
        let n = EQUATOR_M / (1.0 - e2 * sin * sin).sqrt();
        let (sin_lon, cos_lon) = self.longitude.sin_cos();
        [
            (n + self.height) * cos * cos_lon,
            (n + self.height) * cos * sin_lon,
            (n * (1.0 - e2) + self.height) * sin,
        ]
    }

    /// East, north and up as Earth-fixed unit vectors.
    fn axes(self) -> [[f64; 3]; 3] {
        let (sin, cos) = self.latitude.sin_cos();
        let (sin_lon, cos_lon) = self.longitude.sin_cos();
        [[-sin_lon, cos_lon, 0.0], [-sin * cos_lon, -sin * sin_lon, cos], [cos * cos_lon, cos * sin_lon, sin]]
    }

    /// Range and elevation of `target` (m, inertial) from `local` (m, in this site's frame), `t` seconds after the
    /// Earth-fixed axes met the inertial ones.
    pub(crate) fn sight(self, local: [f64; 3], target: [f64; 3], t: f64) -> Sight {
        let axes = self.axes();
        let origin = self.earth_fixed();
        let here: [f64; 3] = std::array::from_fn(|k| {
            origin[k] + axes[0][k] * local[0] + axes[1][k] * local[1] + axes[2][k] * local[2]
        });
        // The target in Earth-fixed axes: turn it back by the Earth's rotation.
        let (sin, cos) = (EARTH_RATE * t).rem_euclid(std::f64::consts::TAU).sin_cos();
        let target = [cos * target[0] + sin * target[1], -sin * target[0] + cos * target[1], target[2]];
        let line: [f64; 3] = std::array::from_fn(|k| target[k] - here[k]);
        let range_m = line.iter().map(|x| x * x).sum::<f64>().sqrt();
        let up: f64 = (0..3).map(|k| line[k] * axes[2][k]).sum();
        Sight { range_m, elevation_rad: (up / range_m).clamp(-1.0, 1.0).asin() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_up_is_ninety_degrees() {
        let site = Site { latitude: 0.0, longitude: 0.0, height: 0.0 };
        let sight = site.sight([0.0; 3], [EQUATOR_M + 400e3, 0.0, 0.0], 0.0);
        assert!((sight.range_m - 400e3).abs() < 1e-6);
        assert!((sight.elevation_rad - std::f64::consts::FRAC_PI_2).abs() < 1e-9);
    }

    #[test]
    fn the_earth_turns_east() {
        let site = Site { latitude: 0.0, longitude: 0.0, height: 0.0 };
        let quarter = std::f64::consts::FRAC_PI_2 / EARTH_RATE;
        let sight = site.sight([0.0; 3], [0.0, EQUATOR_M + 400e3, 0.0], quarter);
        assert!((sight.range_m - 400e3).abs() < 1e-3, "{sight:?}");
    }
}
