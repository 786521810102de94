//! Sim configs: a TOML file that declares a session's entities, systems, genesis and rate.
//!
//! Programs that parse the same file independently get the same entity ids, so they need not be told them.
//!
//! # The format
#![doc = concat!("```toml\n", include_str!("example.toml"), "```")]
//!
//! ```
//! # use coeval_systems::SimConfig;
//! // The example above, parsed.
//! # let example = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/example.toml"));
//! let config = SimConfig::parse("example.toml", example)?;
//! assert_eq!(config.entities.len(), 3);
//! assert_eq!(config.systems[1].rate_hz, 50.0);
//! let probe = config.entity("probe").ok_or("no probe")?;
//! assert_eq!(probe.id, coeval::EntityId::declared(config.id, "probe"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | key | what it is |
//! |---|---|
//! | `config.id` | a UUID, made once: entity ids are the v5 UUIDs of (this id, entity's name) |
//! | `config.name` | a label for people, and the session's name |
//! | `genesis.start` | sim time at the start, with its scale: `… TAI` or `…Z` (UTC) |
//! | `genesis.rate` | sim seconds per wall second at the start, any finite number; 1 when left out |
//! | `entities.NAME.tags` | labels that apply systems |
//! | `entities.NAME.parameters` | initial values by key; a table without `type` sets the parameters beneath. `name` and `tags` are written by coeval |
//! | `systems.NAME.kind` | the implementation, by the name that programs register |
//! | `systems.NAME.rate` | updates per second of wall time, or a quantity: `"1 kHz"`, `"1/d"` |
//! | `systems.NAME.tags` | an instance for each entity with one of these; without `tags`, one instance and no entity |
//! | `systems.NAME.settings` | a table for the implementation |
//!
//! ## Values
//! | TOML | value |
//! |---|---|
//! | `true`, `5`, `5.0`, `"text"` | Bool, Int, Float, Text |
//! | an array of 2, 3 or 4 *floats* (`[1.0, 2.0]`, not `[1, 2.0]`) | Vec2, Vec3, Vec4 |
//! | any other array | List |
//! | a table without `type` | Map: sets the parameters beneath the path |
//! | `{ type = "TYPE", … }` | the type named: `nil`, `uint`, `float32`, `uuid`, `ref`, `time`, `duration`, `quat`, `ramp`, `matrix`, `bytes`, `ints`, `uints`, `floats`, `floats32`, `list`, `map`, `motion` |
//!
//! The typed tables, with the fields they take, are [`TYPES`]; the models of a motion, [`MODELS`]. Numbers are SI and
//! may be any float, `inf` and `nan` included, except in motions, rates and quantities, which are finite. Integers
//! become floats only where that is exact. A quantity may be a text with a unit: `"400 km"`, see [`Dimension::units`].
//!
//! A motion without `model` is two-body when it has `mu`, else of world axes with the rates it has (constant velocity,
//! with an acceleration, with a turn); models of body axes must be named. A `frame` names the entity it is relative to;
//! frames form no circle.
//!
//! # Errors
//! A [`ConfigError`] is one line: file, line, full key, what is wrong and what to do. Nothing of a config that has one
//! is applied.
//!
//! | file | what it holds |
//! |---|---|
//! | `parse.rs` | the file format, key by key |
//! | `toml_value.rs` | values written in TOML, also for the command line |
//! | `numbers.rs` | numbers, texts, quantities, instants |
//! | `units.rs` | quantities with units |
//! | `frames.rs` | which entity is relative to which |
//! | `schema.rs` | the JSON schema for editors, also in `sim-config.schema.json` |
//! | `error.rs` | [`ConfigError`]: file, line, key, what to do |
mod error;
mod frames;
mod numbers;
mod parse;
mod schema;
mod toml_value;
mod units;

pub use error::ConfigError;
pub use parse::{MAX_RATE_HZ, MIN_RATE_HZ};
pub use schema::json_schema;
pub use toml_value::{MODELS, TYPES, value_from_toml};
pub use units::Dimension;

use coeval::Op;
use coeval_time::SimTime;
use coeval_value::{EntityId, Path, Value};
use std::io::Read as _;
use std::path::PathBuf;
use uuid::Uuid;

/// A sim config, checked: every reference resolves, every value has its type.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The file it was read from, as the caller named it.
    pub file: PathBuf,
    /// Identity of the config; entity ids derive from it.
    pub id: Uuid,
    /// A label for people.
    pub name: String,
    /// Sim time at the session's start.
    pub start: SimTime,
    /// Seconds of sim time per second of wall time at the session's start.
    pub rate: f64,
    /// The entities, in order of their names.
    pub entities: Vec<EntityConfig>,
    /// The systems, in order of their names.
    pub systems: Vec<SystemConfig>,
}

/// One declared entity.
#[derive(Clone, Debug)]
pub struct EntityConfig {
    /// Its id: v5 of (config id, name).
    pub id: EntityId,
    /// Its name in the file, which is also its label.
    pub name: String,
    /// Its tags, in order; they apply systems to it.
    pub tags: Vec<String>,
    /// Its initial parameters, in path order. A value that is a map sets the parameters beneath the path.
    pub parameters: Vec<(Path, Value)>,
}

/// One declared system.
#[derive(Clone, Debug)]
pub struct SystemConfig {
    /// Its name in the file.
    pub name: String,
    /// Which implementation: a name that programs register.
    pub kind: String,
    /// It gets an instance for every entity with one of these tags; without tags, one instance and no entity.
    pub tags: Vec<String>,
    /// Updates per second of wall time, from [`MIN_RATE_HZ`] to [`MAX_RATE_HZ`].
    pub rate_hz: f64,
    /// Settings for the implementation; a [`Value::Map`].
    pub settings: Value,
}

impl SimConfig {
    /// Reads and checks the config in `file`.
    pub fn load(file: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let file = file.into();
        let mut source = Vec::new();
        // One byte more than is allowed tells that it is too large, without reading all of it.
        let most = parse::MAX_BYTES as u64 + 1;
        match std::fs::File::open(&file).and_then(|open| open.take(most).read_to_end(&mut source)) {
            Ok(_) => parse::parse(file, &source),
            Err(e) => Err(ConfigError {
                file,
                line: 1,
                key: String::new(),
                message: format!("cannot be read: {e}"),
            }),
        }
    }

    /// Checks a config already read; `file` is for messages.
    pub fn parse(file: impl Into<PathBuf>, source: &str) -> Result<Self, ConfigError> {
        parse::parse(file.into(), source.as_bytes())
    }

    /// The entity with this name in the file.
    pub fn entity(&self, name: &str) -> Option<&EntityConfig> {
        self.entities.iter().find(|entity| entity.name == name)
    }

    /// The entities that `system` gets an instance for, in order.
    pub fn entities_of<'a>(&'a self, system: &'a SystemConfig) -> impl Iterator<Item = &'a EntityConfig> {
        self.entities.iter().filter(|entity| entity.tags.iter().any(|tag| system.tags.contains(tag)))
    }

    /// What the world starts with: the operations that create the entities with their names, tags and parameters.
    pub fn initial(&self) -> Vec<Op> {
        let mut operations = Vec::new();
        for entity in &self.entities {
            let id = entity.id;
            operations.push(Op::Create { entity: id });
            let set = |path: Path, value: Value| Op::Set { entity: id, path, value };
            let tags = entity.tags.iter().map(|tag| Value::from(tag.as_str())).collect::<Vec<_>>();
            operations.push(set(label("name"), Value::from(entity.name.as_str())));
            operations.push(set(label("tags"), Value::List(tags.into())));
            operations.extend(entity.parameters.iter().map(|(path, value)| set(path.clone(), value.clone())));
        }
        operations
    }

    /// Digest of what a session starts with (id, genesis, entities): peers with equal digests need not exchange it.
    /// Systems, comments and the order of the file do not count.
    pub fn digest(&self) -> [u8; 16] {
        use sha2::{Digest as _, Sha256};
        // Serialized in the config's own fixed order; values by their bits.
        let entities: Vec<_> =
            self.entities.iter().map(|e| (e.id, &e.name, &e.tags, &e.parameters)).collect();
        let content = rmp_serde::to_vec(&(self.id, self.start, self.rate.to_bits(), entities));
        let content = content.expect("ids, times, texts and values are written to memory without a fault");
        let hash: [u8; 32] = Sha256::digest(content).into();
        std::array::from_fn(|i| hash[i])
    }
}

/// The path of one of coeval's own labels.
fn label(name: &str) -> Path {
    Path::parse(name).expect("a name of one plain key is a path")
}
