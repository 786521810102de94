//! Which entity's motion is relative to which, to refuse cycles: nobody could say where such entities are.
use super::error::{Fault, join};
use super::numbers::Node;
use coeval_value::EntityId;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::{DeTable, DeValue};

/// One motion's `frame`: whose, and where it is written.
struct Frame {
    parent: EntityId,
    at: usize,
    key: String,
}

/// The frames of a config, by the entity that is relative to them.
#[derive(Default)]
pub(crate) struct Frames {
    of: BTreeMap<EntityId, Vec<Frame>>,
}

impl Frames {
    /// Takes note of every frame in the parameters of `entity`, which were read without a fault.
    pub(crate) fn note(
        &mut self,
        entity: EntityId,
        parameters: &DeTable<'_>,
        key: &str,
        resolve: &dyn Fn(&str) -> Result<EntityId, String>,
    ) {
        for (name, node) in parameters.iter() {
            self.look(entity, node, &join(key, name.get_ref()), resolve);
        }
    }

    fn look(
        &mut self,
        entity: EntityId,
        node: Node<'_, '_>,
        key: &str,
        resolve: &dyn Fn(&str) -> Result<EntityId, String>,
    ) {
        let table = match node.get_ref() {
            DeValue::Table(table) => table,
            DeValue::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.look(entity, item, &format!("{key}[{i}]"), resolve);
                }
                return;
            }
            _ => return,
        };
        match table.get("type").and_then(|kind| kind.get_ref().as_str()) {
            Some("motion") => {
                if let Some(frame) = table.get("frame")
                    && let Some(Ok(parent)) = frame.get_ref().as_str().map(resolve)
                {
                    let found = Frame { parent, at: frame.span().start, key: join(key, "frame") };
                    self.of.entry(entity).or_default().push(found);
                }
            }
            // Inside a typed map `type` is a key like any other, one level down.
            Some("map") => {
                if let Some(DeValue::Table(inner)) = table.get("value").map(|node| node.get_ref()) {
                    self.note(entity, inner, &join(key, "value"), resolve);
                }
            }
            _ => self.note(entity, table, key, resolve),
        }
    }

    /// Refuses the first frame, in the order of the file, that leads back to its own entity.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let all =
            self.of.iter().flat_map(|(entity, frames)| frames.iter().map(move |frame| (*entity, frame)));
        let circular =
            all.filter(|(entity, frame)| self.leads_to(frame.parent, *entity)).min_by_key(|(_, f)| f.at);
        match circular {
            None => Ok(()),
            Some((entity, frame)) => {
                let how = if frame.parent == entity { "" } else { ", through others," };
                let message = format!(
                    "cyclic: this entity is{how} relative to itself; take one frame out of the circle"
                );
                Err(Fault::new(frame.at, &*frame.key, message))
            }
        }
    }

    fn leads_to(&self, from: EntityId, to: EntityId) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(here) = open.pop() {
            if here == to {
                return true;
            }
            let parents = self.of.get(&here).into_iter().flatten().map(|frame| frame.parent);
            open.extend(parents.filter(|parent| seen.insert(*parent)));
        }
        false
    }
}
