//! Looking at entities as people do: names, and everything an entity holds.
use crate::entity::Phase;
use crate::store::Store;
use coeval_value::{EntityId, Leaf, Path, Value};
use std::sync::Arc;

impl Store {
    /// The name of a living entity: its parameter `name`, if that is a text.
    pub fn name(&self, entity: EntityId) -> Option<Arc<str>> {
        let node = self.core.index.get(entity).filter(|node| node.phase() == Phase::Alive)?;
        match node.cell(&self.core.name_path)?.tip().shown(&self.core.hub)?.value {
            Value::Text(name) => Some(name),
            _ => None,
        }
    }

    /// The values of a living entity as they were written, in path order; `None` if it does not exist.
    pub fn leaves(&self, entity: EntityId) -> Option<Vec<(Path, Leaf)>> {
        let node = self.core.index.get(entity).filter(|node| node.phase() == Phase::Alive)?;
        let inner = node.inner.lock();
        let leaf = |(path, leaf): (&Path, &crate::leaf::CellLeaf)| {
            Some((path.clone(), leaf.cell.tip().shown(&self.core.hub)?))
        };
        Some(inner.tree.nodes().filter_map(leaf).collect())
    }
}
