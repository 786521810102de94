//! The file format of sim configs, key by key.
use super::error::{ConfigError, Fault};
use super::toml_value::{check_keys, instant, join, quantity, read, text};
use super::units::Dimension;
use super::{EntityConfig, SimConfig, SystemConfig};
use coeval_time::SimTime;
use coeval_value::{EntityId, Key, Path, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use uuid::Uuid;

type Node<'a, 'i> = &'a Spanned<DeValue<'i>>;

pub(super) const TOP_KEYS: &[&str] = &["config", "genesis", "entities", "systems"];
pub(super) const CONFIG_KEYS: &[&str] = &["id", "name"];
pub(super) const GENESIS_KEYS: &[&str] = &["start", "rate"];
pub(super) const ENTITY_KEYS: &[&str] = &["tags", "parameters"];
pub(super) const SYSTEM_KEYS: &[&str] = &["kind", "tags", "rate", "settings"];

/// Largest config file, in bytes.
const MAX_BYTES: usize = 64 << 20;

pub(super) fn parse(file: PathBuf, source: &str) -> Result<SimConfig, ConfigError> {
    parse_source(&file, source).map_err(|fault| fault.locate(&file, source))
}

fn parse_source(file: &std::path::Path, source: &str) -> Result<SimConfig, Fault> {
    if source.len() > MAX_BYTES {
        return Err(Fault::new(0, "", format!("larger than {MAX_BYTES} bytes")));
    }
    let root = DeTable::parse(source).map_err(|e| {
        Fault::new(e.span().map_or(0, |span| span.start), "", e.message().trim().replace('\n', "; "))
    })?;
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
    fn need<T>(&self, name: &str, read: impl Fn(Node<'_, '_>) -> Result<T, String>) -> Result<T, Fault> {
        self.have(name, read)?.ok_or_else(|| Fault::new(self.at, join(self.key, name), "missing: every config has it"))
    }

    fn have<T>(&self, name: &str, read: impl Fn(Node<'_, '_>) -> Result<T, String>) -> Result<Option<T>, Fault> {
        have(self.table, self.key, name, read)
    }
}

fn have<T>(
    table: &DeTable<'_>,
    key: &str,
    name: &str,
    read: impl Fn(Node<'_, '_>) -> Result<T, String>,
) -> Result<Option<T>, Fault> {
    let Some(node) = table.get(name) else { return Ok(None) };
    read(node).map(Some).map_err(|message| Fault::new(node.span().start, join(key, name), message))
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
        text(node)?.parse::<Uuid>().map_err(|e| format!("not a UUID ({e}): make one once and keep it"))
    })?;
    Ok((id, section.need("name", |node| text(node).map(str::to_owned))?))
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
        Key::new(name.get_ref()).map_err(|e| Fault::new(name.span().start, &*key, e.to_string()))?;
        let body = table(node, &key)?;
        check_keys(body, &key, ENTITY_KEYS, &[])?;
        let id = ids[name.get_ref().as_ref()];
        let parameters = parameters(body, &key, &resolve)?;
        frames.note(id, name.span().start, &key, &parameters);
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
    name.parse::<Uuid>().map(EntityId).map_err(|_| format!("no entity {name:?} in this file, and it is not an id"))
}

fn parameters(
    body: &DeTable<'_>,
    key: &str,
    resolve: &dyn Fn(&str) -> Result<EntityId, String>,
) -> Result<Vec<(Path, Value)>, Fault> {
    let key = join(key, "parameters");
    let Some(declared) = body.get("parameters") else { return Ok(Vec::new()) };
    let mut parameters = Vec::new();
    for (name, node) in table(declared, &key)?.iter() {
        let child = join(&key, name.get_ref());
        let fault = |message: String| Fault::new(name.span().start, &*child, message);
        if matches!(name.get_ref().as_ref(), "name" | "tags") {
            return Err(fault("is set by coeval from the entity's own name and tags".into()));
        }
        let path = Key::new(name.get_ref()).and_then(|k| Path::new([k])).map_err(|e| fault(e.to_string()))?;
        parameters.push((path, read(node, &child, resolve, 0)?));
    }
    parameters.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(parameters)
}

fn tags(node: Node<'_, '_>) -> Result<Vec<String>, String> {
    let items = node.get_ref().as_array().ok_or("expected an array of texts")?;
    let tags: BTreeSet<String> =
        items.iter().map(|item| text(item).map(str::to_owned)).collect::<Result<_, String>>()?;
    if tags.len() < items.len() {
        return Err("a tag is there twice".into());
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
        let body = table(node, &key)?;
        check_keys(body, &key, SYSTEM_KEYS, &[])?;
        let at = name.span().start;
        let missing = |field: &str| Fault::new(at, join(&key, field), "missing: every system has it");
        let kind = have(body, &key, "kind", |n| text(n).map(str::to_owned))?.ok_or_else(|| missing("kind"))?;
        let rate_hz = have(body, &key, "rate", rate)?.ok_or_else(|| missing("rate"))?;
        let tags = have(body, &key, "tags", tags)?.unwrap_or_default();
        if let Some(tag) = tags.iter().find(|tag| !known.contains(tag)) {
            return Err(Fault::new(at, join(&key, "tags"), format!("no entity has the tag {tag:?}")));
        }
        let settings = match body.get("settings") {
            Some(node) => read(node, &join(&key, "settings"), &|name| resolve(ids, name), 0)?,
            None => Value::Map(BTreeMap::new().into()),
        };
        systems.push(SystemConfig { name: name.get_ref().to_string(), kind, tags, rate_hz, settings });
    }
    systems.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(systems)
}

fn rate(node: Node<'_, '_>) -> Result<f64, String> {
    let hertz = quantity(node, Dimension::Frequency)?;
    if hertz > 0.0 { Ok(hertz) } else { Err(format!("{hertz} Hz: a system's rate is above 0")) }
}

/// Which entity's motion is relative to which, to refuse cycles.
#[derive(Default)]
struct Frames {
    parent: BTreeMap<EntityId, (EntityId, usize, String)>,
}

impl Frames {
    fn note(&mut self, id: EntityId, at: usize, key: &str, parameters: &[(Path, Value)]) {
        for (path, value) in parameters {
            if let Value::Motion(motion) = value
                && let Some(frame) = motion.frame
            {
                self.parent.insert(id, (frame, at, format!("{key}.parameters.{path}.frame")));
            }
        }
    }

    fn check(&self) -> Result<(), Fault> {
        for (start, (_, at, key)) in &self.parent {
            let mut here = *start;
            for _ in 0..=self.parent.len() {
                match self.parent.get(&here) {
                    Some((next, ..)) if next == start => {
                        return Err(Fault::new(*at, &**key, "cyclic: this frame is, through others, relative to itself"));
                    }
                    Some((next, ..)) => here = *next,
                    None => break,
                }
            }
        }
        Ok(())
    }
}
