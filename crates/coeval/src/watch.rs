//! Watches: what was created, changed or removed, conflated; pulled, waited for or awaited.
use crate::shared::Shared;
use crate::{Error, Result};
use coeval_store::{ChangeKind, PathFilter, WatchFilter};
use coeval_value::{EntityId, Path};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Changes of what matches a pattern, since the last time they were taken. Several changes of one parameter between
/// two takes are one.
pub struct Watch {
    shared: Arc<Shared>,
    inner: coeval_store::Watch,
    entity: String,
    /// Names of the entities told of: one that is deleted has none any more, and is still told of by it.
    names: Mutex<BTreeMap<EntityId, String>>,
    overflowed: AtomicBool,
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
        let (entity, keys) = split_entity(pattern);
        // One key, since no slash in it is bare: read as keys are, so that names may hold slashes.
        let entity = Path::parse(entity).map_err(Error::invalid)?.last().as_str().to_owned();
        let paths = match keys {
            None => PathFilter::All,
            Some(keys) => PathFilter::pattern(keys).map_err(Error::invalid)?,
        };
        let filter = WatchFilter { entity: None, paths };
        let inner = shared.store.watch(filter);
        Ok(Self { shared, inner, entity, names: Mutex::default(), overflowed: AtomicBool::new(false) })
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

    /// The next changes, awaited: on any runtime, or on none.
    ///
    /// One task awaits a watch at a time: of several, the last is woken.
    pub fn changed(&self) -> impl Future<Output = Vec<WatchEvent>> + Send + '_ {
        std::future::poll_fn(|task| {
            while let Some(changes) = self.inner.poll_or_wake(task.waker()) {
                let events = self.named(changes);
                if !events.is_empty() {
                    return Poll::Ready(events);
                }
            }
            Poll::Pending
        })
    }

    /// Whether more changed than the watch may hold ([`Limits::watch_changes`](crate::Limits::watch_changes)) since the last
    /// call: what [`poll`](Self::poll) and [`wait`](Self::wait) gave lacks changes, so read everything that matters anew.
    pub fn overflowed(&self) -> bool {
        self.overflowed.swap(false, Ordering::Relaxed)
    }

    fn named(&self, changes: coeval_store::WatchChanges) -> Vec<WatchEvent> {
        if changes.overflowed {
            self.overflowed.store(true, Ordering::Relaxed);
        }
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

/// The pattern before its first slash that is not escaped, and the pattern after it.
fn split_entity(pattern: &str) -> (&str, Option<&str>) {
    let mut escaped = false;
    let bare = |c: char| {
        let found = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        found
    };
    match pattern.find(bare) {
        Some(at) => (&pattern[..at], Some(&pattern[at + 1..])),
        None => (pattern, None),
    }
}

#[cfg(test)]
mod tests {
    use super::split_entity;
    use crate::{ErrorKind, Limits, Peer};

    #[test]
    fn names_of_entities_may_hold_slashes() {
        assert_eq!(split_entity(r"a\/b/c/d"), (r"a\/b", Some("c/d")));
        assert_eq!(split_entity(r"a\\/b"), (r"a\\", Some("b")));
        assert_eq!(split_entity("*"), ("*", None));
        let peer = Peer::host("a").open().unwrap();
        let watch = peer.watch(r"a\/b*/x").unwrap();
        let entity = peer.create_entity("a/b7").unwrap();
        for path in ["x", "y"] {
            entity.set(peer.context(), path, 1_i64).unwrap();
        }
        peer.digest();
        let told: Vec<_> = watch.poll().into_iter().filter_map(|event| event.path).collect();
        assert_eq!(told.iter().map(ToString::to_string).collect::<Vec<_>>(), ["x"]);
        assert_eq!(peer.watch("/x").err().map(|error| error.kind()), Some(ErrorKind::Invalid));
    }

    #[test]
    fn a_watch_that_lacks_changes_says_so_once() {
        let limits = Limits { watch_changes: 4, ..Limits::default() };
        let peer = Peer::host("a").limits(limits).open().unwrap();
        let watch = peer.watch("*").unwrap();
        watch.poll();
        watch.overflowed();
        for n in 0..10 {
            peer.create_entity(&format!("e{n}")).unwrap();
        }
        peer.digest();
        watch.poll();
        assert!(watch.overflowed());
        assert!(!watch.overflowed());
    }
}
