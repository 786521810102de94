//! Values as TOML: how a sim config and the command line write what a parameter holds.
//!
//! | TOML | value |
//! |---|---|
//! | `true`, `5`, `5.0`, `"text"` | Bool, Int, Float, Text |
//! | an array of 2, 3 or 4 *floats* | Vec2, Vec3, Vec4 |
//! | any other array | List |
//! | a table without `type` | Map: sets the parameters beneath the path |
//! | `{ type = "TYPE", ... }` | the type named: `nil`, `uint`, `float32`, `uuid`, `ref`, `time`, `duration`, `quat`, `ramp`, `matrix`, `bytes`, `ints`, `uints`, `floats`, `floats32`, `list`, `map`, `motion` |
use super::error::Fault;
use super::units::Dimension;
use coeval_time::{SimDuration, SimTime};
use coeval_value::{EntityId, Key, Matrix, Motion, MotionModel, Quat, Ramp, Value};
use data_encoding::BASE64;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Node<'a, 'i> = &'a Spanned<DeValue<'i>>;

/// Deepest nesting of arrays and tables.
const MAX_DEPTH: usize = 16;

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
    ("quat", &["x", "y", "z", "w"], "a rotation, Hamilton unit quaternion, parent_from_body"),
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
pub fn value_from_toml(text: &str, resolve: &dyn Fn(&str) -> Result<EntityId, String>) -> Result<Value, String> {
    let parsed = DeValue::parse(text).map_err(|e| {
        format!("{text} is not a TOML value ({}): quote text as \"…\"", e.message().replace('\n', " "))
    })?;
    read(&parsed, "", resolve, 0).map_err(|fault| {
        if fault.key.is_empty() { fault.message } else { format!("{}: {}", fault.key, fault.message) }
    })
}

pub(crate) fn read(node: Node<'_, '_>, key: &str, resolve: Resolve<'_>, depth: usize) -> Result<Value, Fault> {
    let fault = |message: String| Fault::new(node.span().start, key, message);
    if depth > MAX_DEPTH {
        return Err(fault(format!("nested deeper than {MAX_DEPTH} levels")));
    }
    Ok(match node.get_ref() {
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::String(text) => Value::Text(text.as_ref().into()),
        DeValue::Integer(_) => Value::Int(integer(node).map_err(fault)?),
        DeValue::Float(_) => Value::Float(plain_number(node).map_err(fault)?),
        DeValue::Datetime(_) => {
            return Err(fault("a bare date has no time scale: write { type = \"time\", value = \"… TAI\" }".into()));
        }
        DeValue::Array(items) => match bare_vector(items) {
            Some(vector) => vector,
            None => list(items, key, resolve, depth)?,
        },
        DeValue::Table(table) => match table.get("type") {
            None => map(table, key, resolve, depth)?,
            Some(kind) => typed(table, kind, key, resolve, depth)?,
        },
    })
}

fn bare_vector(items: &[Spanned<DeValue<'_>>]) -> Option<Value> {
    if !(2..=4).contains(&items.len()) || !items.iter().all(|item| item.get_ref().is_float()) {
        return None;
    }
    let numbers: Vec<f64> = items.iter().map(plain_number).collect::<Result<_, _>>().ok()?;
    Some(match numbers[..] {
        [x, y] => Value::Vec2([x, y]),
        [x, y, z] => Value::Vec3([x, y, z]),
        [x, y, z, w] => Value::Vec4([x, y, z, w]),
        _ => return None,
    })
}

fn list(items: &[Spanned<DeValue<'_>>], key: &str, resolve: Resolve<'_>, depth: usize) -> Result<Value, Fault> {
    let values: Result<Vec<_>, _> =
        items.iter().enumerate().map(|(i, item)| read(item, &format!("{key}[{i}]"), resolve, depth + 1)).collect();
    Ok(Value::List(values?.into()))
}

fn map(table: &DeTable<'_>, key: &str, resolve: Resolve<'_>, depth: usize) -> Result<Value, Fault> {
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

pub(crate) fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
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
            "float32" => Value::Float32(self.need("value", |n| Ok(plain_number(n)? as f32))?),
            "uuid" => Value::Uuid(self.need("value", |n| {
                text(n)?.parse().map_err(|e| format!("not a UUID ({e}): write xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
            })?),
            "ref" => Value::Entity(self.need("entity", |n| (self.resolve)(text(n)?))?),
            "time" => Value::Time(self.need("value", instant)?),
            "duration" => Value::Duration(self.need("value", duration)?),
            "quat" => Value::Quat(self.quat()?),
            "ramp" => Value::Ramp(Ramp {
                value: self.need("value", plain_number)?,
                rate: self.need("rate", plain_number)?,
            }),
            "matrix" => Value::Matrix(self.need("rows", matrix)?.into()),
            "bytes" => Value::Bytes(self.need("base64", |n| {
                BASE64.decode(text(n)?.as_bytes()).map(Into::into).map_err(|e| format!("not base64: {e}"))
            })?),
            "ints" => Value::Ints(self.need("values", |n| each(n, integer))?.into()),
            "uints" => Value::UInts(self.need("values", |n| each(n, unsigned))?.into()),
            "floats" => Value::Floats(self.need("values", |n| each(n, plain_number))?.into()),
            "floats32" => Value::Floats32(self.need("values", |n| each(n, |n| Ok(plain_number(n)? as f32)))?.into()),
            "list" => match self.field("values")?.get_ref() {
                DeValue::Array(items) => list(items, &join(self.key, "values"), self.resolve, self.depth)?,
                other => return Err(self.fault("values", format!("expected an array, found {}", other.type_str()))),
            },
            "map" => match self.field("value")?.get_ref() {
                DeValue::Table(table) => map(table, &join(self.key, "value"), self.resolve, self.depth)?,
                other => return Err(self.fault("value", format!("expected a table, found {}", other.type_str()))),
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

    fn need<T>(&self, name: &str, read: impl Fn(Node<'_, '_>) -> Result<T, String>) -> Result<T, Fault> {
        read(self.field(name)?).map_err(|message| self.fault(name, message))
    }

    fn have<T>(&self, name: &str, read: impl Fn(Node<'_, '_>) -> Result<T, String>) -> Result<Option<T>, Fault> {
        self.table.get(name).map(|node| read(node).map_err(|message| self.fault(name, message))).transpose()
    }

    fn quat(&self) -> Result<Quat, Fault> {
        let part = |name| self.need(name, plain_number);
        let quat = Quat { x: part("x")?, y: part("y")?, z: part("z")?, w: part("w")? };
        unit(quat).map_err(|message| self.fault("w", message))
    }

    fn motion(&self) -> Result<Motion, Fault> {
        let vector = |name, dimension| self.have(name, move |n| vector3(n, dimension));
        let mut motion = Motion {
            position: vector("position", Dimension::Length)?,
            velocity: vector("velocity", Dimension::Velocity)?,
            acceleration: vector("acceleration", Dimension::Acceleration)?,
            orientation: self.have("orientation", orientation)?,
            angular_velocity: vector("angular_velocity", Dimension::AngularVelocity)?,
            angular_acceleration: vector("angular_acceleration", Dimension::AngularAcceleration)?,
            mu: self.have("mu", |n| quantity(n, Dimension::GravitationalParameter))?,
            frame: self.have("frame", |n| (self.resolve)(text(n)?))?,
            model: MotionModel::Static,
        };
        motion.model = self.have("model", model)?.unwrap_or_else(|| natural_model(&motion));
        if motion.model == MotionModel::TwoBody
            && (motion.mu.is_none() || motion.position.is_none() || motion.velocity.is_none())
        {
            return Err(self.fault("model", "a two-body motion needs position, velocity and mu".into()));
        }
        Ok(motion)
    }
}

/// The model that the components present suggest.
fn natural_model(motion: &Motion) -> MotionModel {
    let rotates = motion.angular_velocity.is_some();
    match (motion.velocity.is_some(), motion.acceleration.is_some()) {
        _ if motion.mu.is_some() => MotionModel::TwoBody,
        (_, true) if rotates => MotionModel::Rvw,
        (_, true) => MotionModel::Fvw,
        _ if rotates => MotionModel::Rpw,
        (true, false) => MotionModel::Fpw,
        (false, false) => MotionModel::Static,
    }
}

fn model(node: Node<'_, '_>) -> Result<MotionModel, String> {
    let name = text(node)?;
    MODELS.iter().find(|(known, _)| *known == name).map(|(_, model)| *model).ok_or_else(|| {
        let known: Vec<_> = MODELS.iter().map(|(known, _)| *known).collect();
        format!("{name:?} is not a motion model; the models are {}", known.join(", "))
    })
}

fn orientation(node: Node<'_, '_>) -> Result<Quat, String> {
    let table = node.get_ref().as_table().ok_or("expected a table { x, y, z, w }")?;
    let part = |name| table.get(name).ok_or_else(|| format!("{name} is missing")).and_then(plain_number);
    unit(Quat { x: part("x")?, y: part("y")?, z: part("z")?, w: part("w")? })
}

fn unit(quat: Quat) -> Result<Quat, String> {
    let norm = (quat.x * quat.x + quat.y * quat.y + quat.z * quat.z + quat.w * quat.w).sqrt();
    if (norm - 1.0).abs() < 1e-3 {
        Ok(Quat { x: quat.x / norm, y: quat.y / norm, z: quat.z / norm, w: quat.w / norm })
    } else {
        Err(format!("a rotation has norm 1, this one {norm}"))
    }
}

fn matrix(node: Node<'_, '_>) -> Result<Matrix, String> {
    let rows = each(node, |row| each(row, plain_number))?;
    let columns = rows.first().map_or(0, Vec::len);
    if columns == 0 || rows.iter().any(|row| row.len() != columns) {
        return Err("a matrix needs rows of one length".into());
    }
    let size = |n: usize| u16::try_from(n).map_err(|_| "a matrix has at most 65,535 rows and columns".to_owned());
    Ok(Matrix { rows: size(rows.len())?, columns: size(columns)?, elements: rows.concat() })
}

fn each<T>(node: Node<'_, '_>, read: impl Fn(Node<'_, '_>) -> Result<T, String>) -> Result<Vec<T>, String> {
    let items =
        node.get_ref().as_array().ok_or_else(|| format!("expected an array, found {}", node.get_ref().type_str()))?;
    items.iter().map(read).collect()
}

fn vector3(node: Node<'_, '_>, dimension: Dimension) -> Result<[f64; 3], String> {
    let parts = each(node, |part| quantity(part, dimension))?;
    <[f64; 3]>::try_from(parts).map_err(|parts| format!("expected 3 components, found {}", parts.len()))
}

pub(crate) fn text<'a>(node: &'a Spanned<DeValue<'_>>) -> Result<&'a str, String> {
    node.get_ref().as_str().ok_or_else(|| format!("expected text in quotes, found {}", node.get_ref().type_str()))
}

fn digits(node: Node<'_, '_>) -> Result<(String, u32), String> {
    let number = node
        .get_ref()
        .as_integer()
        .ok_or_else(|| format!("expected an integer, found {}", node.get_ref().type_str()))?;
    Ok((number.as_str().to_owned(), number.radix()))
}

fn integer(node: Node<'_, '_>) -> Result<i64, String> {
    let (text, radix) = digits(node)?;
    i64::from_str_radix(&text, radix).map_err(|_| format!("{text} does not fit 64 bits: use {{ type = \"uint\" }}"))
}

fn unsigned(node: Node<'_, '_>) -> Result<u64, String> {
    let (text, radix) = digits(node)?;
    u64::from_str_radix(text.trim_start_matches('+'), radix).map_err(|_| format!("{text} is not an unsigned 64-bit number"))
}

/// A number without a unit: a float, or an integer that a float holds exactly.
pub(crate) fn plain_number(node: Node<'_, '_>) -> Result<f64, String> {
    match node.get_ref() {
        DeValue::Float(number) => number.as_str().parse().map_err(|_| format!("{} is not a number", number.as_str())),
        DeValue::Integer(_) => {
            let whole = integer(node)?;
            let float = whole as f64;
            if float as i128 == i128::from(whole) { Ok(float) } else { Err(format!("{whole} is not exact as a float")) }
        }
        other => Err(format!("expected a number, found {}", other.type_str())),
    }
}

/// A finite number in SI, or a text with a unit of `dimension`.
pub(crate) fn quantity(node: Node<'_, '_>, dimension: Dimension) -> Result<f64, String> {
    let number = match node.get_ref().as_str() {
        Some(text) => dimension.parse(text)?,
        None => plain_number(node)?,
    };
    if number.is_finite() { Ok(number) } else { Err(format!("{number} is not a finite number")) }
}

pub(crate) fn instant(node: Node<'_, '_>) -> Result<SimTime, String> {
    text(node)?.parse::<SimTime>().map_err(|e| e.to_string())
}

fn duration(node: Node<'_, '_>) -> Result<SimDuration, String> {
    let seconds = quantity(node, Dimension::Time)?;
    SimDuration::from_secs_f64(seconds).ok_or_else(|| format!("{seconds} s is out of range"))
}
