//! Sim configs: a TOML file that declares a session's entities, systems, genesis and rate.
//!
//! Programs that parse the same file independently get the same entity ids, so they need not be told them.
//!
//! | file | what it holds |
//! |---|---|
//! | `parse.rs` | the file format, key by key |
//! | `toml_value.rs` | values written in TOML, also for the command line |
//! | `units.rs` | quantities with units |
//! | `schema.rs` | the JSON schema for editors |
//! | `error.rs` | [`ConfigError`]: file, line, key, what to do |
mod error;
mod parse;
mod schema;
mod toml_value;
mod units;

pub use error::ConfigError;
pub use schema::json_schema;
pub use toml_value::{MODELS, TYPES, value_from_toml};
pub use units::Dimension;

use coeval::Op;
use coeval_time::SimTime;
use coeval_value::{EntityId, Path, Value};
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
    /// Updates per second of wall time, above 0.
    pub rate_hz: f64,
    /// Settings for the implementation; a [`Value::Map`].
    pub settings: Value,
}

impl SimConfig {
    /// Reads and checks the config in `file`.
    pub fn load(file: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let file = file.into();
        match std::fs::read_to_string(&file) {
            Ok(source) => Self::parse(file, &source),
            Err(e) => {
                Err(ConfigError { file, line: 1, key: String::new(), message: format!("cannot be read: {e}") })
            }
        }
    }

    /// Checks a config already read; `file` is for messages.
    pub fn parse(file: impl Into<PathBuf>, source: &str) -> Result<Self, ConfigError> {
        parse::parse(file.into(), source)
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
    pub fn digest(&self) -> [u8; 16] {
        use sha2::{Digest as _, Sha256};
        // Serialized in the config's own fixed order; values by their bits.
        let content = rmp_serde::to_vec(&(
            self.id,
            self.start,
            self.rate.to_bits(),
            self.entities.iter().map(|e| (e.id, &e.name, &e.tags, &e.parameters)).collect::<Vec<_>>(),
        ))
        .unwrap_or_default();
        let hash: [u8; 32] = Sha256::digest(content).into();
        std::array::from_fn(|i| hash[i])
    }
}

/// The path of one of coeval's own labels.
fn label(name: &str) -> Path {
    Path::parse(name).expect("a name of one plain key is a path")
}
