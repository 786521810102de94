//! Values as TOML: how a sim config and the command line write what a parameter holds.
//!
//! | TOML | value |
//! |---|---|
//! | `true`, `5`, `5.0`, `"text"` | Bool, Int, Float, Text |
//! | an array of 2, 3 or 4 *floats* | Vec2, Vec3, Vec4 |
//! | any other array | List |
//! | a table without `type` | Map: sets the parameters beneath the path |
//! | `{ type = "TYPE", ... }` | the type named: `nil`, `uint`, `float32`, `uuid`, `ref`, `time`, `duration`, `quat`, `ramp`, `matrix`, `bytes`, `ints`, `uints`, `floats`, `floats32`, `list`, `map`, `motion` |
use super::error::{Fault, Wrong, join, one_line};
use super::numbers::{
    Node, duration, each, instant, integer, plain_number, quantity, single, text, unsigned, vector3,
};
use super::units::Dimension;
use coeval_value::{EntityId, Key, Limits, Matrix, Motion, MotionModel, Quat, Ramp, Value};
use data_encoding::BASE64;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Deepest nesting of arrays and tables: what any value may have.
const MAX_DEPTH: usize = Limits::MAX.depth;
const QUAT_KEYS: &[&str] = &["x", "y", "z", "w"];
/// A rotation's norm is off by this much when its components were rounded to doubles.
const ROUNDED: f64 = 1e-15;
/// A rotation written with a few digits is off by less than this, and is normalized.
const SLOPPY: f64 = 1e-3;
/// How much of a faulty value an error repeats.
const SHOWN: usize = 64;

/// Finds the entity that a name in the text means.
pub(crate) type Resolve<'r> = &'r dyn Fn(&str) -> Result<EntityId, String>;

/// The typed tables: name, the keys it takes, what it is.
pub const TYPES: &[(&str, &[&str], &str)] = &[
    ("nil", &[], "nothing, as a value"),
    ("uint", &["value"], "unsigned 64-bit integer"),
    ("float32", &["value"], "single-precision number"),
    ("uuid", &["value"], "a UUID"),
    ("ref", &["entity"], "a reference to an entity, by its name in this file or its id"),
    ("time", &["value"], "a sim instant with its scale: \"2028-04-25T05:30:00 TAI\""),
    ("duration", &["value"], "a length of sim time, seconds or \"5 min\""),
    ("quat", QUAT_KEYS, "a rotation, Hamilton unit quaternion, parent_from_body"),
    ("ramp", &["value", "rate"], "a number that changes by `rate` per second of sim time"),
    ("matrix", &["rows"], "an array of rows, each an array of numbers"),
    ("bytes", &["base64"], "raw bytes in base64"),
    ("ints", &["values"], "array of signed integers"),
    ("uints", &["values"], "array of unsigned integers"),
    ("floats", &["values"], "array of double-precision numbers"),
    ("floats32", &["values"], "array of single-precision numbers"),
    ("list", &["values"], "a list, where a bare array would be read as a vector"),
    ("map", &["value"], "a map, where a bare table has a key called `type`"),
    (
        "motion",
        &[
            "model",
            "position",
            "velocity",
            "acceleration",
            "orientation",
            "angular_velocity",
            "angular_acceleration",
            "mu",
            "frame",
        ],
        "kinematic state in SI units, relative to the entity `frame`",
    ),
];

/// The names of the motion models.
pub const MODELS: &[(&str, MotionModel)] = &[
    ("static", MotionModel::Static),
    ("fpw", MotionModel::Fpw),
    ("rpw", MotionModel::Rpw),
    ("rvw", MotionModel::Rvw),
    ("fvw", MotionModel::Fvw),
    ("fpb", MotionModel::Fpb),
    ("rpb", MotionModel::Rpb),
    ("rvb", MotionModel::Rvb),
    ("fvb", MotionModel::Fvb),
    ("two-body", MotionModel::TwoBody),
];

/// Reads a value written in TOML.
///
/// `text` is the right-hand side of an assignment (`5.0`, `[1.0, 2.0]`, `{ type = "time", value = "…" }`); `resolve`
/// finds the entities that references name. The error is one line.
pub fn value_from_toml(
    text: &str,
    resolve: &dyn Fn(&str) -> Result<EntityId, String>,
) -> Result<Value, String> {
    let parsed = DeValue::parse(text).map_err(|e| {
        let shown: String = text.chars().take(SHOWN).collect();
        one_line(&format!("{shown} is not a TOML value ({}): quote text as \"…\"", e.message().trim()))
    })?;
    read(&parsed, "", resolve, 1).map_err(|fault| {
        let at = if fault.key.is_empty() { String::new() } else { format!("{}: ", fault.key) };
        one_line(&format!("{at}{}", fault.message))
    })
}

/// Reads a value; `depth` is the nesting it has reached, from 1.
pub(crate) fn read(
    node: Node<'_, '_>,
    key: &str,
    resolve: Resolve<'_>,
    depth: usize,
) -> Result<Value, Fault> {
    let fault = |message: Wrong| message.under(node.span().start, key);
    if depth > MAX_DEPTH {
        return Err(fault(format!("nested deeper than {MAX_DEPTH} levels").into()));
    }
    Ok(match node.get_ref() {
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::String(text) => Value::Text(text.as_ref().into()),
        DeValue::Integer(_) => Value::Int(integer(node).map_err(fault)?),
        DeValue::Float(_) => Value::Float(plain_number(node).map_err(fault)?),
        DeValue::Datetime(_) => {
            return Err(fault(
                "a bare date has no time scale: write { type = \"time\", value = \"… TAI\" }".into(),
            ));
        }
        DeValue::Array(items) if is_vector(items) => vector(node).map_err(fault)?,
        DeValue::Array(items) => list(items, key, resolve, depth)?,
        DeValue::Table(table) => match table.get("type") {
            None => map(table, key, resolve, depth)?,
            Some(kind) => typed(table, kind, key, resolve, depth)?,
        },
    })
}

fn is_vector(items: &[Spanned<DeValue<'_>>]) -> bool {
    (2..=4).contains(&items.len()) && items.iter().all(|item| item.get_ref().is_float())
}

fn vector(node: Node<'_, '_>) -> Result<Value, Wrong> {
    Ok(match each(node, plain_number)?[..] {
        [x, y] => Value::Vec2([x, y]),
        [x, y, z] => Value::Vec3([x, y, z]),
        [x, y, z, w] => Value::Vec4([x, y, z, w]),
        _ => return Err("a vector has 2, 3 or 4 components".into()),
    })
}

fn list(
    items: &[Spanned<DeValue<'_>>],
    key: &str,
    resolve: Resolve<'_>,
    depth: usize,
) -> Result<Value, Fault> {
    let values: Result<Vec<_>, _> = items
        .iter()
        .enumerate()
        .map(|(i, item)| read(item, &format!("{key}[{i}]"), resolve, depth + 1))
        .collect();
    Ok(Value::List(values?.into()))
}

/// A table read as a map, whatever its keys.
pub(crate) fn map(
    table: &DeTable<'_>,
    key: &str,
    resolve: Resolve<'_>,
    depth: usize,
) -> Result<Value, Fault> {
    let mut entries = BTreeMap::new();
    for (name, item) in table.iter() {
        let child = join(key, name.get_ref());
        let parsed =
            Key::new(name.get_ref()).map_err(|e| Fault::new(name.span().start, &*child, e.to_string()))?;
        entries.insert(parsed, read(item, &child, resolve, depth + 1)?);
    }
    Ok(Value::Map(entries.into()))
}

fn typed(
    table: &DeTable<'_>,
    kind: Node<'_, '_>,
    key: &str,
    resolve: Resolve<'_>,
    depth: usize,
) -> Result<Value, Fault> {
    let at_kind = |message: String| Fault::new(kind.span().start, join(key, "type"), message);
    let name = kind.get_ref().as_str().ok_or_else(|| {
        at_kind("must be the name of a type, as text (a map with a key `type` is { type = \"map\", value = {…} })".into())
    })?;
    let (name, keys, _) = TYPES.iter().find(|(known, ..)| *known == name).ok_or_else(|| {
        let known: Vec<_> = TYPES.iter().map(|(known, ..)| *known).collect();
        at_kind(format!("{name:?} is not a type; the types are {}", known.join(", ")))
    })?;
    check_keys(table, key, keys, &["type"])?;
    let fields = Fields { table, key, at: kind.span().start, resolve, depth };
    fields.typed(name)
}

/// Refuses keys that are not expected, naming those that are.
pub(crate) fn check_keys(table: &DeTable<'_>, key: &str, known: &[&str], also: &[&str]) -> Result<(), Fault> {
    for (name, _) in table.iter() {
        let text: &str = name.get_ref();
        if !known.contains(&text) && !also.contains(&text) {
            let expected = if known.is_empty() { "no key".to_owned() } else { known.join(", ") };
            return Err(Fault::new(
                name.span().start,
                join(key, text),
                format!("no such key here; expected {expected}"),
            ));
        }
    }
    Ok(())
}

/// The fields of one typed table.
struct Fields<'a, 'i, 'r> {
    table: &'a DeTable<'i>,
    key: &'a str,
    at: usize,
    resolve: Resolve<'r>,
    depth: usize,
}

impl Fields<'_, '_, '_> {
    fn typed(&self, name: &str) -> Result<Value, Fault> {
        Ok(match name {
            "nil" => Value::Nil,
            "uint" => Value::UInt(self.need("value", unsigned)?),
            "float32" => Value::Float32(self.need("value", single)?),
            "uuid" => Value::Uuid(self.need("value", |n| {
                let wrong =
                    |e| format!("not a UUID ({e}): write xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx").into();
                text(n)?.parse().map_err(wrong)
            })?),
            "ref" => Value::Entity(self.need("entity", |n| Ok((self.resolve)(text(n)?)?))?),
            "time" => Value::Time(self.need("value", instant)?),
            "duration" => Value::Duration(self.need("value", duration)?),
            "quat" => Value::Quat(quat(self.table, self.key, self.at)?),
            "ramp" => Value::Ramp(Ramp {
                value: self.need("value", plain_number)?,
                rate: self.need("rate", plain_number)?,
            }),
            "matrix" => Value::Matrix(self.need("rows", matrix)?.into()),
            "bytes" => Value::Bytes(self.need("base64", |n| {
                BASE64
                    .decode(text(n)?.as_bytes())
                    .map(Into::into)
                    .map_err(|e| format!("not base64: {e}").into())
            })?),
            "ints" => Value::Ints(self.need("values", |n| each(n, integer))?.into()),
            "uints" => Value::UInts(self.need("values", |n| each(n, unsigned))?.into()),
            "floats" => Value::Floats(self.need("values", |n| each(n, plain_number))?.into()),
            "floats32" => Value::Floats32(self.need("values", |n| each(n, single))?.into()),
            "list" => match self.field("values")?.get_ref() {
                DeValue::Array(items) => list(items, &join(self.key, "values"), self.resolve, self.depth)?,
                other => {
                    return Err(
                        self.fault("values", format!("expected an array, found {}", other.type_str()))
                    );
                }
            },
            "map" => match self.field("value")?.get_ref() {
                DeValue::Table(table) => map(table, &join(self.key, "value"), self.resolve, self.depth)?,
                other => {
                    return Err(self.fault("value", format!("expected a table, found {}", other.type_str())));
                }
            },
            _ => Value::Motion(Box::new(self.motion()?)),
        })
    }

    fn fault(&self, name: &str, message: String) -> Fault {
        let at = self.table.get(name).map_or(self.at, |node| node.span().start);
        Fault::new(at, join(self.key, name), message)
    }

    fn field(&self, name: &str) -> Result<Node<'_, '_>, Fault> {
        self.table.get(name).ok_or_else(|| self.fault(name, "missing: this type needs it".into()))
    }

    fn need<T>(&self, name: &str, read: impl Fn(Node<'_, '_>) -> Result<T, Wrong>) -> Result<T, Fault> {
        let node = self.field(name)?;
        read(node).map_err(|wrong| wrong.under(node.span().start, &join(self.key, name)))
    }

    fn have<T>(
        &self,
        name: &str,
        read: impl Fn(Node<'_, '_>) -> Result<T, Wrong>,
    ) -> Result<Option<T>, Fault> {
        if self.table.contains_key(name) { self.need(name, read).map(Some) } else { Ok(None) }
    }

    fn motion(&self) -> Result<Motion, Fault> {
        let vector = |name, dimension| self.have(name, move |n| vector3(n, dimension));
        let mut motion = Motion {
            position: vector("position", Dimension::Length)?,
            velocity: vector("velocity", Dimension::Velocity)?,
            acceleration: vector("acceleration", Dimension::Acceleration)?,
            orientation: self.orientation()?,
            angular_velocity: vector("angular_velocity", Dimension::AngularVelocity)?,
            angular_acceleration: vector("angular_acceleration", Dimension::AngularAcceleration)?,
            mu: self.have("mu", |n| quantity(n, Dimension::GravitationalParameter))?,
            frame: self.have("frame", |n| Ok((self.resolve)(text(n)?)?))?,
            model: MotionModel::Static,
        };
        motion.model = self.have("model", model)?.unwrap_or_else(|| natural_model(&motion));
        self.check_orbit(&motion)?;
        Ok(motion)
    }

    fn orientation(&self) -> Result<Option<Quat>, Fault> {
        let Some(node) = self.table.get("orientation") else { return Ok(None) };
        let key = join(self.key, "orientation");
        let at = node.span().start;
        let found = || {
            Fault::new(
                at,
                &*key,
                format!("expected a table {{ x, y, z, w }}, found {}", node.get_ref().type_str()),
            )
        };
        let table = node.get_ref().as_table().ok_or_else(found)?;
        check_keys(table, &key, QUAT_KEYS, &[])?;
        quat(table, &key, at).map(Some)
    }

    /// What a two-body motion needs to be an orbit.
    fn check_orbit(&self, motion: &Motion) -> Result<(), Fault> {
        if motion.model != MotionModel::TwoBody {
            return Ok(());
        }
        let need = |name: &str, ok: bool, what: &str| {
            if ok { Ok(()) } else { Err(self.fault(name, what.to_owned())) }
        };
        need("mu", motion.mu.is_some(), "missing: a two-body motion needs it, m3/s2")?;
        need("mu", motion.mu.is_some_and(|mu| mu > 0.0), "a two-body motion has a mu above 0")?;
        need(
            "position",
            motion.position.is_some(),
            "missing: a two-body motion needs it (mu makes a motion two-body)",
        )?;
        need(
            "velocity",
            motion.velocity.is_some(),
            "missing: a two-body motion needs it (mu makes a motion two-body)",
        )?;
        let away = motion.position.is_some_and(|p| p.iter().any(|x| *x != 0.0));
        need("position", away, "at the center of the attracting body, where no orbit is")
    }
}

/// The model that the components present suggest: that of the builders of [`Motion`], and two-body with a `mu`.
///
/// Body axes are never guessed: they are written as a model.
fn natural_model(motion: &Motion) -> MotionModel {
    if motion.mu.is_some() {
        return MotionModel::TwoBody;
    }
    let mut same = Motion::default();
    if let Some(velocity) = motion.velocity {
        same = same.velocity(velocity);
    }
    if let Some(acceleration) = motion.acceleration {
        same = same.acceleration(acceleration);
    }
    if let Some(turn) = motion.angular_velocity.or(motion.angular_acceleration) {
        same = same.angular_velocity(turn);
    }
    same.model
}

fn model(node: Node<'_, '_>) -> Result<MotionModel, Wrong> {
    let name = text(node)?;
    MODELS.iter().find(|(known, _)| *known == name).map(|(_, model)| *model).ok_or_else(|| {
        let known: Vec<_> = MODELS.iter().map(|(known, _)| *known).collect();
        format!("{name:?} is not a motion model; the models are {}", known.join(", ")).into()
    })
}

/// The rotation in the fields of `table`, which begins at `at`.
fn quat(table: &DeTable<'_>, key: &str, at: usize) -> Result<Quat, Fault> {
    let part = |name: &str| {
        let child = join(key, name);
        let node = table
            .get(name)
            .ok_or_else(|| Fault::new(at, &*child, "missing: a rotation has x, y, z and w"))?;
        plain_number(node).map_err(|wrong| wrong.under(node.span().start, &child))
    };
    let q = Quat { x: part("x")?, y: part("y")?, z: part("z")?, w: part("w")? };
    let norm = (q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w).sqrt();
    if (norm - 1.0).abs() <= ROUNDED {
        // As good as can be written; its bits stay.
        Ok(q)
    } else if (norm - 1.0).abs() < SLOPPY {
        Ok(Quat { x: q.x / norm, y: q.y / norm, z: q.z / norm, w: q.w / norm })
    } else {
        Err(Fault::new(at, key, format!("a rotation has norm 1, this one {norm}")))
    }
}

fn matrix(node: Node<'_, '_>) -> Result<Matrix, Wrong> {
    let rows = each(node, |row| each(row, plain_number))?;
    let columns = rows.first().map_or(0, Vec::len);
    if columns == 0 || rows.iter().any(|row| row.len() != columns) {
        return Err("a matrix needs rows of one length".into());
    }
    let size = |n: usize| u16::try_from(n).map_err(|_| "a matrix has at most 65,535 rows and columns");
    Ok(Matrix { rows: size(rows.len())?, columns: size(columns)?, elements: rows.concat() })
}
