//! The JSON schema of sim configs, for editors: made from the same tables that the parser checks.
use super::parse::{
    CONFIG_KEYS, ENTITY_KEYS, GENESIS_KEYS, MAX_RATE_HZ, RESERVED_PARAMETERS, SYSTEM_KEYS, TOP_KEYS,
};
use super::toml_value::{MODELS, TYPES};
use serde_json::{Map, Value as Json, json};

/// The JSON schema (draft 2020-12) of a sim config.
///
/// In `taplo.toml` or at the top of a config (`#:schema FILE`) it gives editors completion and checks. The file
/// `sim-config.schema.json` beside this crate's manifest holds it; `coeval schema` prints it.
pub fn json_schema() -> Json {
    let top = TOP_KEYS.iter().map(|key| {
        let schema = match *key {
            "config" => closed("config", CONFIG_KEYS, &["id", "name"]),
            "genesis" => closed("genesis", GENESIS_KEYS, &["start"]),
            "entities" => named(closed("entities", ENTITY_KEYS, &[])),
            _ => named(closed("systems", SYSTEM_KEYS, &["kind", "rate"])),
        };
        ((*key).to_owned(), schema)
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "coeval sim config",
        "type": "object",
        "additionalProperties": false,
        "required": ["config", "genesis"],
        "properties": Map::from_iter(top),
        "$defs": { "value": value_schema() },
    })
}

/// A table of tables by name.
fn named(body: Json) -> Json {
    json!({ "type": "object", "propertyNames": { "minLength": 1 }, "additionalProperties": body })
}

fn closed(table: &str, keys: &[&str], required: &[&str]) -> Json {
    let properties = keys.iter().map(|key| ((*key).to_owned(), property(table, key)));
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": Map::from_iter(properties),
    })
}

fn property(table: &str, key: &str) -> Json {
    let value = json!({ "$ref": "#/$defs/value" });
    match (table, key) {
        (_, "id") => {
            json!({ "type": "string", "format": "uuid", "description": "identity of the config; entity ids derive from it" })
        }
        (_, "name") => json!({ "type": "string", "minLength": 1, "description": "a label for people" }),
        (_, "start") => {
            json!({ "type": "string", "description": "sim time at the start, with its scale: 2028-04-25T05:30:00 TAI" })
        }
        ("genesis", "rate") => {
            json!({ "type": "number", "description": "seconds of sim time per second of wall time" })
        }
        (_, "rate") => json!({
            "anyOf": [{ "type": "number", "exclusiveMinimum": 0, "maximum": MAX_RATE_HZ }, { "type": "string" }],
            "description": "updates per second of wall time, or a quantity: 50 Hz, 1 kHz, 1/d",
        }),
        (_, "kind") => {
            json!({ "type": "string", "minLength": 1, "description": "the implementation, by the name a program registers" })
        }
        (_, "tags") => json!({
            "type": "array",
            "items": { "type": "string", "minLength": 1 },
            "uniqueItems": true,
            "description": if table == "systems" { "an instance for each entity with one of these" } else { "labels that apply systems" },
        }),
        (_, "parameters") => json!({
            "type": "object",
            "description": "initial values; a table without `type` sets the parameters beneath",
            "propertyNames": { "minLength": 1, "not": { "enum": RESERVED_PARAMETERS } },
            "additionalProperties": value,
        }),
        _ => {
            json!({ "type": "object", "description": "for the implementation", "additionalProperties": value })
        }
    }
}

fn value_schema() -> Json {
    let typed = TYPES.iter().map(|(name, keys, what)| {
        let mut properties = Map::from_iter([("type".to_owned(), json!({ "const": name }))]);
        properties.extend(keys.iter().map(|key| ((*key).to_owned(), field(name, key))));
        let mut required = vec!["type"];
        if *name != "motion" {
            required.extend(*keys);
        }
        json!({
            "type": "object",
            "description": what,
            "additionalProperties": false,
            "required": required,
            "properties": properties,
        })
    });
    let mut any: Vec<Json> = ["boolean", "number", "string"].iter().map(|t| json!({ "type": t })).collect();
    any.push(json!({ "type": "array", "items": { "$ref": "#/$defs/value" } }));
    any.push(json!({
        "type": "object",
        "description": "a map: sets the parameters beneath",
        "not": { "required": ["type"] },
        "additionalProperties": { "$ref": "#/$defs/value" },
    }));
    any.extend(typed);
    json!({ "anyOf": any })
}

/// One field of a typed table.
fn field(kind: &str, key: &str) -> Json {
    let array = |items: Json| json!({ "type": "array", "items": items });
    let number = json!({ "type": "number" });
    let quantity = json!({ "type": ["number", "string"] });
    let value = json!({ "$ref": "#/$defs/value" });
    match (kind, key) {
        (_, "model") => json!({ "enum": MODELS.iter().map(|(name, _)| *name).collect::<Vec<_>>() }),
        (_, "entity" | "frame" | "base64") | ("uuid" | "time", _) => json!({ "type": "string" }),
        ("uint", _) => json!({ "type": "integer", "minimum": 0 }),
        ("ints", _) => array(json!({ "type": "integer" })),
        ("uints", _) => array(json!({ "type": "integer", "minimum": 0 })),
        ("floats" | "floats32", _) => array(number),
        ("matrix", _) => array(array(number)),
        ("list", _) => array(value),
        ("map", _) => json!({ "type": "object", "additionalProperties": value }),
        ("duration", _) | (_, "mu") => quantity,
        (_, "orientation") => json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["x", "y", "z", "w"],
            "properties": { "x": number, "y": number, "z": number, "w": number },
        }),
        ("motion", _) => json!({ "type": "array", "items": quantity, "minItems": 3, "maxItems": 3 }),
        _ => number,
    }
}
