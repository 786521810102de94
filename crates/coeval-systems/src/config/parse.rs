//! The file format of sim configs, key by key.
use super::error::{ConfigError, Fault, Wrong, join};
use super::frames::Frames;
use super::numbers::{Node, check_label, each, instant, label, quantity, text};
use super::toml_value::{check_keys, map, read};
use super::units::Dimension;
use super::{EntityConfig, SimConfig, SystemConfig};
use coeval_time::SimTime;
use coeval_value::{EntityId, Key, Limits, Path, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use uuid::Uuid;

pub(super) const TOP_KEYS: &[&str] = &["config", "genesis", "entities", "systems"];
pub(super) const CONFIG_KEYS: &[&str] = &["id", "name"];
pub(super) const GENESIS_KEYS: &[&str] = &["start", "rate"];
pub(super) const ENTITY_KEYS: &[&str] = &["tags", "parameters"];
pub(super) const SYSTEM_KEYS: &[&str] = &["kind", "tags", "rate", "settings"];

/// Parameters that coeval writes from what else the config says.
pub(super) const RESERVED_PARAMETERS: &[&str] = &["name", "tags"];
/// Largest config file, in bytes.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// The rates a system may have, Hz: from once in three years.
pub const MIN_RATE_HZ: f64 = 1e-8;
/// The highest rate a system may have, Hz. A thread that sleeps between updates reaches some kHz; what it misses is
/// counted.
pub const MAX_RATE_HZ: f64 = 1e6;

pub(super) fn parse(file: PathBuf, source: &[u8]) -> Result<SimConfig, ConfigError> {
    let parsed = if source.len() > MAX_BYTES {
        Err(Fault::new(
            0,
            "",
            format!("larger than {MAX_BYTES} bytes: split the world over several sessions"),
        ))
    } else {
        std::str::from_utf8(source)
            .map_err(|e| Fault::new(e.valid_up_to(), "", "not UTF-8 text: save the file as UTF-8"))
            .and_then(|source| parse_source(&file, source))
    };
    parsed.map_err(|fault| fault.locate(&file, source))
}

fn parse_source(file: &std::path::Path, source: &str) -> Result<SimConfig, Fault> {
    let root = DeTable::parse(source).map_err(|e| Fault::syntax(source, &e))?;
    let root = root.get_ref();
    check_keys(root, "", TOP_KEYS, &[])?;
    let (id, name) = header(section(root, "config")?)?;
    let (start, rate) = genesis(section(root, "genesis")?)?;
    let ids: BTreeMap<String, EntityId> = optional_table(root, "entities")?
        .into_iter()
        .flat_map(|table| table.iter())
        .map(|(name, _)| (name.get_ref().to_string(), EntityId::declared(id, name.get_ref())))
        .collect();
    let entities = entities(root, &ids)?;
    let systems = systems(root, &ids, &entities)?;
    Ok(SimConfig { file: file.to_owned(), id, name, start, rate, entities, systems })
}

/// A required table at the top level.
struct Section<'a, 'i> {
    key: &'static str,
    at: usize,
    table: &'a DeTable<'i>,
}

impl Section<'_, '_> {
    fn need<T>(&self, name: &str, read: impl Fn(Node<'_, '_>) -> Result<T, Wrong>) -> Result<T, Fault> {
        self.have(name, read)?
            .ok_or_else(|| Fault::new(self.at, join(self.key, name), "missing: every config has it"))
    }

    fn have<T>(
        &self,
        name: &str,
        read: impl Fn(Node<'_, '_>) -> Result<T, Wrong>,
    ) -> Result<Option<T>, Fault> {
        have(self.table, self.key, name, read)
    }
}

fn have<T>(
    table: &DeTable<'_>,
    key: &str,
    name: &str,
    read: impl Fn(Node<'_, '_>) -> Result<T, Wrong>,
) -> Result<Option<T>, Fault> {
    let Some(node) = table.get(name) else { return Ok(None) };
    read(node).map(Some).map_err(|wrong| wrong.under(node.span().start, &join(key, name)))
}

fn section<'a, 'i>(root: &'a DeTable<'i>, key: &'static str) -> Result<Section<'a, 'i>, Fault> {
    let node = root.get(key).ok_or_else(|| Fault::new(0, key, format!("missing: add a table [{key}]")))?;
    Ok(Section { key, at: node.span().start, table: table(node, key)? })
}

fn table<'a, 'i>(node: &'a Spanned<DeValue<'i>>, key: &str) -> Result<&'a DeTable<'i>, Fault> {
    node.get_ref().as_table().ok_or_else(|| {
        Fault::new(node.span().start, key, format!("expected a table, found {}", node.get_ref().type_str()))
    })
}

fn optional_table<'a, 'i>(parent: &'a DeTable<'i>, key: &str) -> Result<Option<&'a DeTable<'i>>, Fault> {
    parent.get(key).map(|node| table(node, key)).transpose()
}

fn header(section: Section<'_, '_>) -> Result<(Uuid, String), Fault> {
    check_keys(section.table, section.key, CONFIG_KEYS, &[])?;
    let id = section.need("id", |node| {
        let id = text(node)?
            .parse::<Uuid>()
            .map_err(|e| format!("not a UUID ({e}): make one once and keep it"))?;
        if id.is_nil() {
            Err("all zeros identify nothing: make a UUID once and keep it".into())
        } else {
            Ok(id)
        }
    })?;
    Ok((id, section.need("name", label)?))
}

fn genesis(section: Section<'_, '_>) -> Result<(SimTime, f64), Fault> {
    check_keys(section.table, section.key, GENESIS_KEYS, &[])?;
    let start = section.need("start", instant)?;
    let rate = section.have("rate", |node| quantity(node, Dimension::Number))?;
    Ok((start, rate.unwrap_or(1.0)))
}

fn entities(root: &DeTable<'_>, ids: &BTreeMap<String, EntityId>) -> Result<Vec<EntityConfig>, Fault> {
    let Some(declared) = optional_table(root, "entities")? else { return Ok(Vec::new()) };
    let resolve = |name: &str| resolve(ids, name);
    let mut entities = Vec::new();
    let mut frames = Frames::default();
    for (name, node) in declared.iter() {
        let key = join("entities", name.get_ref());
        check_label(name.get_ref()).map_err(|e| Fault::new(name.span().start, &*key, e))?;
        let body = table(node, &key)?;
        check_keys(body, &key, ENTITY_KEYS, &[])?;
        let id = ids[name.get_ref().as_ref()];
        let parameters = match body.get("parameters") {
            None => Vec::new(),
            Some(node) => {
                let key = join(&key, "parameters");
                let declared = table(node, &key)?;
                let parameters = parameters(declared, &key, &resolve)?;
                frames.note(id, declared, &key, &resolve);
                parameters
            }
        };
        let tags = have(body, &key, "tags", tags)?.unwrap_or_default();
        entities.push(EntityConfig { id, name: name.get_ref().to_string(), tags, parameters });
    }
    frames.check()?;
    entities.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entities)
}

fn resolve(ids: &BTreeMap<String, EntityId>, name: &str) -> Result<EntityId, String> {
    if let Some(id) = ids.get(name) {
        return Ok(*id);
    }
    // An id refers to an entity outside this file.
    name.parse::<Uuid>()
        .map(EntityId)
        .map_err(|_| format!("no entity {name:?} in this file, and it is not an id"))
}

fn parameters(
    declared: &DeTable<'_>,
    key: &str,
    resolve: &dyn Fn(&str) -> Result<EntityId, String>,
) -> Result<Vec<(Path, Value)>, Fault> {
    let mut parameters = Vec::new();
    for (name, node) in declared.iter() {
        let child = join(key, name.get_ref());
        let fault = |message: String| Fault::new(name.span().start, &*child, message);
        if RESERVED_PARAMETERS.contains(&name.get_ref().as_ref()) {
            return Err(fault(
                "is set by coeval from the entity's own name and tags: choose another key".into(),
            ));
        }
        let path = Key::new(name.get_ref()).and_then(|k| Path::new([k])).map_err(|e| fault(e.to_string()))?;
        // A map spreads over the paths beneath, so its nesting counts with the parameter's own key.
        let value = read(node, &child, resolve, 1)?;
        value.check(&Limits::MAX).map_err(|e| fault(e.to_string()))?;
        parameters.push((path, value));
    }
    parameters.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(parameters)
}

fn tags(node: Node<'_, '_>) -> Result<Vec<String>, Wrong> {
    let items = each(node, label)?;
    let mut tags = BTreeSet::new();
    for tag in &items {
        if !tags.insert(tag.clone()) {
            return Err(format!("the tag {tag:?} is there twice").into());
        }
    }
    Ok(tags.into_iter().collect())
}

fn systems(
    root: &DeTable<'_>,
    ids: &BTreeMap<String, EntityId>,
    entities: &[EntityConfig],
) -> Result<Vec<SystemConfig>, Fault> {
    let Some(declared) = optional_table(root, "systems")? else { return Ok(Vec::new()) };
    let known: BTreeSet<&String> = entities.iter().flat_map(|entity| &entity.tags).collect();
    let mut systems = Vec::new();
    for (name, node) in declared.iter() {
        let key = join("systems", name.get_ref());
        let at = name.span().start;
        check_label(name.get_ref()).map_err(|e| Fault::new(at, &*key, e))?;
        let body = table(node, &key)?;
        check_keys(body, &key, SYSTEM_KEYS, &[])?;
        let missing = |field: &str| Fault::new(at, join(&key, field), "missing: every system has it");
        let kind = have(body, &key, "kind", label)?.ok_or_else(|| missing("kind"))?;
        let rate_hz = have(body, &key, "rate", rate)?.ok_or_else(|| missing("rate"))?;
        let tags = have(body, &key, "tags", |node| tags_of(node, &known))?.unwrap_or_default();
        let settings = settings(body, &key, ids)?;
        systems.push(SystemConfig { name: name.get_ref().to_string(), kind, tags, rate_hz, settings });
    }
    systems.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(systems)
}

/// A system's tags: some, each on an entity, so that a slip of the pen does not leave a system without work.
fn tags_of(node: Node<'_, '_>, known: &BTreeSet<&String>) -> Result<Vec<String>, Wrong> {
    each(node, |item| {
        let tag = label(item)?;
        if known.contains(&tag) { Ok(()) } else { Err(format!("no entity has the tag {tag:?}").into()) }
    })?;
    let tags = tags(node)?;
    if tags.is_empty() {
        return Err("no tag: name some, or leave `tags` out for one instance without an entity".into());
    }
    Ok(tags)
}

/// A system's settings: always a map, also with a key called `type`.
fn settings(body: &DeTable<'_>, key: &str, ids: &BTreeMap<String, EntityId>) -> Result<Value, Fault> {
    let key = join(key, "settings");
    let Some(node) = body.get("settings") else { return Ok(Value::Map(BTreeMap::new().into())) };
    let settings = map(table(node, &key)?, &key, &|name| resolve(ids, name), 1)?;
    settings.check(&Limits::MAX).map_err(|e| Fault::new(node.span().start, &*key, e.to_string()))?;
    Ok(settings)
}

/// A system's rate, Hz.
fn rate(node: Node<'_, '_>) -> Result<f64, Wrong> {
    let hertz = quantity(node, Dimension::Frequency)?;
    if (MIN_RATE_HZ..=MAX_RATE_HZ).contains(&hertz) {
        return Ok(hertz);
    }
    Err(format!("{hertz:?} Hz: a system's rate is above 0, from {MIN_RATE_HZ:e} to {MAX_RATE_HZ:e} Hz")
        .into())
}
