//! Values as people read them: the notation of TOML where TOML has one, units where it has none.
use crate::{EntityId, Matrix, Motion, Quat, Ramp, Value};
use std::fmt::{self, Display, Formatter, Result, Write};

/// Bytes of a byte string that are printed before the rest is only counted.
const BYTES_SHOWN: usize = 32;

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Nil => f.write_str("nil"),
            Self::Bool(v) => write!(f, "{v}"),
            Self::Int(v) => write!(f, "{v}"),
            Self::UInt(v) => write!(f, "{v}"),
            Self::Float(v) => float(f, v),
            Self::Float32(v) => float(f, v),
            Self::Text(v) => text(f, v),
            Self::Bytes(v) => bytes(f, v),
            Self::Uuid(v) => write!(f, "{v}"),
            Self::Entity(EntityId(v)) => write!(f, "entity {v}"),
            Self::Time(v) => write!(f, "{v}"),
            Self::Duration(v) => write!(f, "{v}"),
            Self::Vec2(v) => list(f, v, float),
            Self::Vec3(v) => list(f, v, float),
            Self::Vec4(v) => list(f, v, float),
            Self::Quat(v) => write!(f, "{v}"),
            Self::Ramp(v) => write!(f, "{v}"),
            Self::Matrix(v) => write!(f, "{v}"),
            Self::Ints(v) => list(f, v.iter(), |f, v| write!(f, "{v}")),
            Self::UInts(v) => list(f, v.iter(), |f, v| write!(f, "{v}")),
            Self::Floats(v) => list(f, v.iter(), float),
            Self::Floats32(v) => list(f, v.iter(), float),
            Self::List(v) => list(f, v.iter(), |f, v| write!(f, "{v}")),
            Self::Map(v) => map(f, v),
            Self::Motion(v) => write!(f, "{v}"),
        }
    }
}

impl Display for Quat {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{{ x = {:?}, y = {:?}, z = {:?}, w = {:?} }}", self.x, self.y, self.z, self.w)
    }
}

impl Display for Ramp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:?} + {:?}/s", self.value, self.rate)
    }
}

impl Display for Matrix {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let width = usize::from(self.columns).max(1);
        list(f, self.elements.chunks(width), |f, row| list(f, row, float))
    }
}

/// The present components with their units, then the model.
impl Display for Motion {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut vector = |name, value: Option<[f64; 3]>, unit| match value {
            Some([x, y, z]) => write!(f, "{name} [{x:?}, {y:?}, {z:?}] {unit}, "),
            None => Ok(()),
        };
        vector("position", self.position, "m")?;
        vector("velocity", self.velocity, "m/s")?;
        vector("acceleration", self.acceleration, "m/s²")?;
        if let Some(q) = self.orientation {
            write!(f, "orientation {q}, ")?;
        }
        let mut vector = |name, value: Option<[f64; 3]>, unit| match value {
            Some([x, y, z]) => write!(f, "{name} [{x:?}, {y:?}, {z:?}] {unit}, "),
            None => Ok(()),
        };
        vector("angular velocity", self.angular_velocity, "rad/s")?;
        vector("angular acceleration", self.angular_acceleration, "rad/s²")?;
        if let Some(mu) = self.mu {
            write!(f, "mu {mu:?} m³/s², ")?;
        }
        if let Some(frame) = self.frame {
            write!(f, "relative to {frame}, ")?;
        }
        write!(f, "model {:?}", self.model)
    }
}

/// TOML's spelling: always a point or an exponent; `nan`, `inf` and `-inf` in lower case.
fn float<T: fmt::Debug>(f: &mut Formatter<'_>, v: &T) -> Result {
    write!(Lower(f), "{v:?}")
}

/// Writes in lower case: Rust spells `NaN`.
struct Lower<'a, 'b>(&'a mut Formatter<'b>);

impl Write for Lower<'_, '_> {
    fn write_str(&mut self, text: &str) -> Result {
        text.chars().try_for_each(|c| self.0.write_char(c.to_ascii_lowercase()))
    }
}

fn text(f: &mut Formatter<'_>, text: &str) -> Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

fn bytes(f: &mut Formatter<'_>, bytes: &[u8]) -> Result {
    f.write_str("0x")?;
    bytes.iter().take(BYTES_SHOWN).try_for_each(|b| write!(f, "{b:02x}"))?;
    if bytes.len() > BYTES_SHOWN { write!(f, "… ({} bytes)", bytes.len()) } else { Ok(()) }
}

fn list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Formatter<'_>, T) -> Result,
) -> Result {
    f.write_char('[')?;
    for (i, value) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        item(f, value)?;
    }
    f.write_char(']')
}

fn map(f: &mut Formatter<'_>, map: &std::collections::BTreeMap<crate::Key, Value>) -> Result {
    if map.is_empty() {
        return f.write_str("{}");
    }
    f.write_str("{ ")?;
    for (i, (key, value)) in map.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        let bare = key.as_str().bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if bare {
            f.write_str(key.as_str())?
        } else {
            text(f, key.as_str())?
        }
        write!(f, " = {value}")?;
    }
    f.write_str(" }")
}
