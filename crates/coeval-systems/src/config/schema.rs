//! The JSON schema of sim configs, for editors: made from the same tables that the parser checks.
use super::parse::{CONFIG_KEYS, ENTITY_KEYS, GENESIS_KEYS, SYSTEM_KEYS, TOP_KEYS};
use super::toml_value::{MODELS, TYPES};
use serde_json::{Map, Value as Json, json};

/// The JSON schema (draft 2020-12) of a sim config.
///
/// In `taplo.toml` or at the top of a config (`#:schema FILE`) it gives editors completion and checks.
pub fn json_schema() -> Json {
    let top = TOP_KEYS.iter().map(|key| {
        let schema = match *key {
            "config" => closed(CONFIG_KEYS, &["id", "name"]),
            "genesis" => closed(GENESIS_KEYS, &["start"]),
            "entities" => json!({ "type": "object", "additionalProperties": closed(ENTITY_KEYS, &[]) }),
            _ => json!({ "type": "object", "additionalProperties": closed(SYSTEM_KEYS, &["kind", "rate"]) }),
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

fn closed(keys: &[&str], required: &[&str]) -> Json {
    let properties = keys.iter().map(|key| ((*key).to_owned(), property(key)));
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": Map::from_iter(properties),
    })
}

fn property(key: &str) -> Json {
    match key {
        "id" => json!({ "type": "string", "format": "uuid", "description": "identity of the config; entity ids derive from it" }),
        "name" => json!({ "type": "string", "description": "a label for people" }),
        "start" => json!({ "type": "string", "description": "sim time at the start, with its scale: 2028-04-25T05:30:00 TAI" }),
        "rate" => json!({
            "type": ["number", "string"],
            "description": "genesis: sim seconds per wall second; a system: updates per second of wall time, or \"50 Hz\"",
        }),
        "kind" => json!({ "type": "string", "description": "the implementation, by the name a program registers" }),
        "tags" => json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true }),
        _ => json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/value" } }),
    }
}

fn value_schema() -> Json {
    let models: Vec<_> = MODELS.iter().map(|(name, _)| *name).collect();
    let typed = TYPES.iter().map(|(name, keys, what)| {
        let mut properties = Map::from_iter(keys.iter().map(|key| ((*key).to_owned(), json!({}))));
        properties.insert("type".to_owned(), json!({ "const": name }));
        if *name == "motion" {
            properties.insert("model".to_owned(), json!({ "enum": models }));
        }
        json!({
            "type": "object",
            "description": what,
            "additionalProperties": false,
            "required": ["type"],
            "properties": properties,
        })
    });
    let mut any: Vec<Json> = ["boolean", "number", "string", "array"].iter().map(|t| json!({ "type": t })).collect();
    any.push(json!({
        "type": "object",
        "description": "a map: sets the parameters beneath",
        "not": { "required": ["type"] },
        "additionalProperties": { "$ref": "#/$defs/value" },
    }));
    any.extend(typed);
    json!({ "anyOf": any })
}
