//! Values as text: the TOML that `set` reads back, and JSON for other programs.
use coeval::{EntityId, Key, Matrix, Motion, Quat, Value};
use coeval_systems::config::MODELS;
use data_encoding::BASE64;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Finds the name of an entity; ids are written where there is none.
pub(crate) type Names<'n> = &'n dyn Fn(EntityId) -> Option<String>;

/// The value as TOML, on one line; `coeval set` reads it back.
pub(crate) fn toml(value: &Value, names: Names<'_>) -> String {
    match value {
        Value::Nil => typed("nil", []),
        // These print as TOML already.
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => value.to_string(),
        Value::UInt(v) => typed("uint", [("value", v.to_string())]),
        Value::Float32(v) => typed("float32", [("value", float(f64::from(*v)))]),
        Value::Bytes(v) => typed("bytes", [("base64", quoted(&BASE64.encode(v)))]),
        Value::Uuid(v) => typed("uuid", [("value", quoted(&v.to_string()))]),
        Value::Entity(v) => typed("ref", [("entity", entity(*v, names))]),
        Value::Time(v) => typed("time", [("value", quoted(&v.to_string()))]),
        Value::Duration(v) => typed("duration", [("value", float(v.as_secs_f64()))]),
        Value::Vec2(v) => floats(v),
        Value::Vec3(v) => floats(v),
        Value::Vec4(v) => floats(v),
        Value::Quat(v) => typed("quat", quat_fields(v)),
        Value::Ramp(v) => typed("ramp", [("value", float(v.value)), ("rate", float(v.rate))]),
        Value::Matrix(v) => typed("matrix", [("rows", rows(v))]),
        Value::Ints(v) => typed("ints", [("values", list(v.iter().map(i64::to_string)))]),
        Value::UInts(v) => typed("uints", [("values", list(v.iter().map(u64::to_string)))]),
        Value::Floats(v) => typed("floats", [("values", floats(v))]),
        Value::Floats32(v) => typed("floats32", [("values", list(v.iter().map(|v| float(f64::from(*v)))))]),
        Value::List(items) => {
            let bare = list(items.iter().map(|item| toml(item, names)));
            // Two to four bare floats would be read as a vector.
            let vector =
                (2..=4).contains(&items.len()) && items.iter().all(|item| matches!(item, Value::Float(_)));
            if vector { typed("list", [("values", bare)]) } else { bare }
        }
        Value::Map(map) => {
            let bare = table(map, names);
            if map.contains_key("type") { typed("map", [("value", bare)]) } else { bare }
        }
        Value::Motion(motion) => motion_table(motion, names),
    }
}

/// A map as a TOML document: a line for each key.
pub(crate) fn toml_document(map: &BTreeMap<Key, Value>, names: Names<'_>) -> String {
    let mut text = String::new();
    for (name, value) in map {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} = {}", key(name.as_str()), toml(value, names));
    }
    text
}

fn typed<const N: usize>(name: &str, fields: [(&str, String); N]) -> String {
    let mut text = format!("{{ type = {}", quoted(name));
    for (name, value) in fields {
        let _ = write!(text, ", {name} = {value}");
    }
    text + " }"
}

fn table(map: &BTreeMap<Key, Value>, names: Names<'_>) -> String {
    if map.is_empty() {
        return "{}".to_owned();
    }
    let fields: Vec<_> =
        map.iter().map(|(name, value)| format!("{} = {}", key(name.as_str()), toml(value, names))).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn motion_table(motion: &Motion, names: Names<'_>) -> String {
    let model = MODELS.iter().find(|(_, model)| *model == motion.model).map_or("static", |(name, _)| name);
    let mut text = format!("{{ type = \"motion\", model = {}", quoted(model));
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, ", {name} = {value}");
        }
    };
    field("position", motion.position.map(|v| floats(&v)));
    field("velocity", motion.velocity.map(|v| floats(&v)));
    field("acceleration", motion.acceleration.map(|v| floats(&v)));
    field(
        "orientation",
        motion.orientation.map(|q| {
            let parts: Vec<_> =
                quat_fields(&q).iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("{{ {} }}", parts.join(", "))
        }),
    );
    field("angular_velocity", motion.angular_velocity.map(|v| floats(&v)));
    field("angular_acceleration", motion.angular_acceleration.map(|v| floats(&v)));
    field("mu", motion.mu.map(float));
    field("frame", motion.frame.map(|frame| entity(frame, names)));
    text + " }"
}

fn quat_fields(q: &Quat) -> [(&'static str, String); 4] {
    [("x", float(q.x)), ("y", float(q.y)), ("z", float(q.z)), ("w", float(q.w))]
}

fn rows(matrix: &Matrix) -> String {
    list(matrix.elements.chunks(usize::from(matrix.columns).max(1)).map(floats))
}

fn entity(id: EntityId, names: Names<'_>) -> String {
    quoted(&names(id).unwrap_or_else(|| id.to_string()))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn floats(numbers: &[f64]) -> String {
    list(numbers.iter().copied().map(float))
}

fn float(number: f64) -> String {
    Value::Float(number).to_string()
}

fn quoted(text: &str) -> String {
    Value::Text(text.into()).to_string()
}

fn key(name: &str) -> String {
    let bare = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if bare { name.to_owned() } else { quoted(name) }
}

/// The value as plain JSON: numbers as numbers (`nan` and the infinities as text), bytes as base64, ids and times as
/// text, a motion as its fields. Types that JSON has not are told by the type name beside it.
pub(crate) fn json(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(v) => json!(v),
        Value::Int(v) => json!(v),
        Value::UInt(v) => json!(v),
        Value::Float(v) => number(*v),
        Value::Float32(v) => number(f64::from(*v)),
        Value::Text(v) => json!(**v),
        Value::Bytes(v) => json!(BASE64.encode(v)),
        Value::Uuid(v) => json!(v.to_string()),
        Value::Entity(v) => json!(v.to_string()),
        Value::Time(v) => json!(v.to_string()),
        Value::Duration(v) => number(v.as_secs_f64()),
        Value::Vec2(v) => numbers(v),
        Value::Vec3(v) => numbers(v),
        Value::Vec4(v) => numbers(v),
        Value::Quat(q) => quat(q),
        Value::Ramp(v) => json!({ "value": number(v.value), "rate": number(v.rate) }),
        Value::Matrix(v) => v.elements.chunks(usize::from(v.columns).max(1)).map(numbers).collect(),
        Value::Ints(v) => v.iter().copied().collect(),
        Value::UInts(v) => v.iter().copied().collect(),
        Value::Floats(v) => numbers(v),
        Value::Floats32(v) => v.iter().map(|v| number(f64::from(*v))).collect(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(key, value)| (key.as_str().to_owned(), json(value))).collect())
        }
        Value::Motion(motion) => motion_json(motion),
    }
}

fn motion_json(motion: &Motion) -> Json {
    let model = MODELS.iter().find(|(_, model)| *model == motion.model).map_or("static", |(name, _)| name);
    let mut fields = Map::new();
    let mut field = |name: &str, value: Option<Json>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    field("model", Some(json!(model)));
    field("position", motion.position.map(|v| numbers(&v)));
    field("velocity", motion.velocity.map(|v| numbers(&v)));
    field("acceleration", motion.acceleration.map(|v| numbers(&v)));
    field("orientation", motion.orientation.map(|q| quat(&q)));
    field("angular_velocity", motion.angular_velocity.map(|v| numbers(&v)));
    field("angular_acceleration", motion.angular_acceleration.map(|v| numbers(&v)));
    field("mu", motion.mu.map(number));
    field("frame", motion.frame.map(|frame| json!(frame.to_string())));
    Json::Object(fields)
}

fn quat(q: &Quat) -> Json {
    json!({ "x": number(q.x), "y": number(q.y), "z": number(q.z), "w": number(q.w) })
}

fn numbers(values: &[f64]) -> Json {
    values.iter().copied().map(number).collect()
}

fn number(value: f64) -> Json {
    serde_json::Number::from_f64(value).map_or_else(|| json!(float(value)), Json::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval::{MotionModel, Ramp, SimDuration, SimTime};
    use coeval_systems::config::value_from_toml;
    use proptest::prelude::*;

    fn nameless(_: EntityId) -> Option<String> {
        None
    }

    fn back(text: &str) -> Result<Value, String> {
        value_from_toml(text, &|name| name.parse().map_err(|_| format!("no entity {name}")))
    }

    fn some_motion() -> Motion {
        let orbit = Motion::orbit([7e6, 0.0, 0.0], [0.0, 7.5e3, 0.0], 3.986004418e14);
        Motion { frame: Some(EntityId::v7(5, [1; 10])), ..orbit }
    }

    #[test]
    fn what_get_prints_set_reads() {
        let key = |text: &str| Key::new(text).expect("a key");
        let matrix = Matrix { rows: 2, columns: 3, elements: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.5] };
        let inner = Value::map([(key("type"), Value::from("probe")), (key("a b"), Value::Int(-4))]);
        let values = [
            Value::Nil,
            Value::Bool(true),
            Value::UInt(u64::MAX),
            Value::Float(-0.0),
            Value::Float(1e300),
            Value::Float(f64::NEG_INFINITY),
            Value::Float32(0.1),
            Value::from("line\nbreak \"quote\" \\ \u{1} ü"),
            Value::Bytes((*b"\0\xff").into()),
            Value::Entity(EntityId::v7(5, [2; 10])),
            Value::Time(SimTime::from_secs_nanos(-5, 7)),
            Value::Duration(SimDuration::from_millis(-2500)),
            Value::Vec3([1.0, 2.5, -3.0]),
            Value::Quat(Quat { x: 0.0, y: 0.0, z: 1.0, w: 0.0 }),
            Value::Ramp(Ramp { value: 1.0, rate: -2.0 }),
            Value::Matrix(matrix.into()),
            Value::Ints([1, -2].into()),
            Value::UInts([1, 2, 3].into()),
            Value::Floats([].into()),
            Value::Floats32([0.1, 0.2].into()),
            Value::list([1.0, 2.0]),
            Value::List([inner.clone(), Value::from("x")].into()),
            inner,
            Value::Map(BTreeMap::new().into()),
            Value::Motion(Box::new(some_motion())),
            Value::Motion(Box::new(Motion {
                model: MotionModel::Fpb,
                ..Motion::at([1.0; 3]).velocity([2.0; 3])
            })),
        ];
        for value in values {
            let text = toml(&value, &nameless);
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(back(&text), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_document_is_a_table_of_the_parameters() {
        let map = BTreeMap::from([
            (Key::new("mass").expect("a key"), Value::Float(5.0)),
            (Key::new("odd key").expect("a key"), Value::Int(1)),
        ]);
        assert_eq!(toml_document(&map, &nameless), "mass = 5.0\n\"odd key\" = 1\n");
    }

    #[test]
    fn json_is_plain_and_loses_no_number() {
        assert_eq!(json(&Value::UInt(u64::MAX)), json!(u64::MAX));
        assert_eq!(json(&Value::Float(f64::NAN)), json!("nan"));
        assert_eq!(json(&Value::Vec2([1.0, -0.5])), json!([1.0, -0.5]));
        assert_eq!(json(&Value::Motion(Box::new(some_motion())))["model"], json!("two-body"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn numbers_and_texts_read_back(float in any::<f64>(), single in any::<f32>(), text in "\\PC*", int in any::<i64>()) {
            let single = if single.is_nan() { f32::NAN } else { single };
            let float = if float.is_nan() { f64::NAN } else { float };
            let both = Value::List([
                Value::Float(float), Value::Float32(single), Value::from(text.as_str()), Value::Int(int),
            ].into());
            prop_assert_eq!(back(&toml(&both, &nameless)), Ok(both));
        }
    }
}
