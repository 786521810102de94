//! Quantities of a sim config: plain numbers are SI, and a text `"400 km"` carries its own unit.

/// What a quantity measures; its plain numbers are in the unit named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dimension {
    /// No unit.
    Number,
    /// Meters.
    Length,
    /// Meters per second.
    Velocity,
    /// Meters per second squared.
    Acceleration,
    /// Radians per second.
    AngularVelocity,
    /// Radians per second squared.
    AngularAcceleration,
    /// Cubic meters per second squared.
    GravitationalParameter,
    /// Seconds.
    Time,
    /// Hertz.
    Frequency,
}

const DEGREE: f64 = std::f64::consts::PI / 180.0;

impl Dimension {
    /// The units known for this dimension, each with its size in SI.
    pub const fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Number => &[],
            Self::Length => {
                &[("m", 1.0), ("km", 1e3), ("cm", 1e-2), ("mm", 1e-3), ("ft", 0.3048), ("nmi", 1852.0)]
            }
            Self::Velocity => &[("m/s", 1.0), ("km/s", 1e3), ("km/h", 1.0 / 3.6), ("kn", 1852.0 / 3600.0)],
            Self::Acceleration => &[("m/s2", 1.0), ("km/s2", 1e3)],
            Self::AngularVelocity => {
                &[("rad/s", 1.0), ("deg/s", DEGREE), ("rpm", std::f64::consts::PI / 30.0)]
            }
            Self::AngularAcceleration => &[("rad/s2", 1.0), ("deg/s2", DEGREE)],
            Self::GravitationalParameter => &[("m3/s2", 1.0), ("km3/s2", 1e9)],
            Self::Time => &[
                ("s", 1.0),
                ("ms", 1e-3),
                ("us", 1e-6),
                ("ns", 1e-9),
                ("min", 60.0),
                ("h", 3600.0),
                ("d", 86_400.0),
            ],
            Self::Frequency => &[("Hz", 1.0), ("kHz", 1e3), ("1/h", 1.0 / 3600.0), ("1/d", 1.0 / 86_400.0)],
        }
    }

    /// Parses `"NUMBER UNIT"` into SI.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        let (number, unit) = text.trim().split_once(char::is_whitespace).ok_or_else(|| {
            format!("{text:?} is not a quantity: write a number, a space and a unit{}", self.hint())
        })?;
        let number: f64 =
            number.parse().map_err(|_| format!("{number:?} is not a number in the quantity {text:?}"))?;
        let unit = unit.trim();
        let (_, size) = self
            .units()
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| format!("{unit:?} is not a unit of this quantity{}", self.hint()))?;
        Ok(number * size)
    }

    fn hint(self) -> String {
        let names: Vec<_> = self.units().iter().map(|(name, _)| *name).collect();
        if names.is_empty() {
            ": it has none, write a plain number".to_owned()
        } else {
            format!(" ({})", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dimension;

    #[test]
    fn quantities_convert_to_si() {
        assert_eq!(Dimension::Length.parse("400 km"), Ok(400_000.0));
        assert_eq!(Dimension::Velocity.parse("7.5 km/s"), Ok(7_500.0));
        assert_eq!(Dimension::Time.parse("2 min"), Ok(120.0));
    }

    #[test]
    fn a_mass_is_not_a_length() {
        let error = Dimension::Length.parse("400 kg").unwrap_err();
        assert!(error.contains("\"kg\"") && error.contains("km"), "{error}");
        assert!(Dimension::Length.parse("400").is_err());
        assert!(Dimension::Number.parse("4 m").is_err());
    }
}
