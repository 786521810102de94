//! Watches: what was created, changed or removed, conflated, pulled or waited for.
use crate::peer::Shared;
use crate::{Error, Result};
use coeval_store::{ChangeKind, PathFilter, WatchFilter};
use coeval_value::{EntityId, Path};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Changes of what matches a pattern, since the last time they were taken. Several changes of one parameter between
/// two takes are one.
pub struct Watch {
    shared: Arc<Shared>,
    inner: coeval_store::Watch,
    entity: String,
    /// Names of the entities told of: one that is deleted has none any more, and is still told of by it.
    names: Mutex<BTreeMap<EntityId, String>>,
}

/// One change.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// Of which entity.
    pub entity: EntityId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Of which parameter; `None` for the entity itself.
    pub path: Option<Path>,
    /// What happened.
    pub kind: ChangeKind,
}

impl Watch {
    pub(crate) fn new(shared: Arc<Shared>, pattern: &str) -> Result<Self> {
        let (entity, keys) = match pattern.split_once('/') {
            Some((entity, keys)) => (entity, Some(keys)),
            None => (pattern, None),
        };
        let paths = match keys {
            None => PathFilter::All,
            Some(keys) => PathFilter::pattern(keys).map_err(Error::invalid)?,
        };
        let filter = WatchFilter { entity: None, paths };
        let inner = shared.store.watch(filter);
        Ok(Self { shared, inner, entity: entity.to_owned(), names: Mutex::default() })
    }

    /// The changes since the last call.
    pub fn poll(&self) -> Vec<WatchEvent> {
        self.named(self.inner.poll())
    }

    /// Waits up to `timeout` for changes; empty when there were none.
    pub fn wait(&self, timeout: Duration) -> Vec<WatchEvent> {
        let deadline = crate::inbox::deadline(timeout);
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let events = self.named(self.inner.wait(left));
            if !events.is_empty() || left.is_zero() {
                return events;
            }
        }
    }

    fn named(&self, changes: coeval_store::WatchChanges) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        let mut names = self.names.lock();
        for (key, kind) in changes.changes {
            let now = self.shared.name_of(key.entity);
            let name = now.clone().or_else(|| names.get(&key.entity).cloned());
            let named = name.as_ref().is_some_and(|name| crate::glob::matches(&self.entity, name));
            if let Some(name) = now.filter(|_| named) {
                names.insert(key.entity, name);
            }
            if named || crate::glob::matches(&self.entity, &key.entity.to_string()) {
                events.push(WatchEvent { entity: key.entity, name, path: key.path, kind });
            }
        }
        // What is gone is told of no more.
        for gone in events.iter().filter(|event| event.path.is_none() && event.kind == ChangeKind::Removed) {
            names.remove(&gone.entity);
        }
        events
    }
}
