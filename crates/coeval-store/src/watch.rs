//! Watches: what changed since one last looked, conflated.
//!
//! Fed at drains, so a watch sees all or none of a batch. Each slot is in a watch's list at most once.
use coeval_merge::SlotKey;
use coeval_value::{EntityId, Key, Path};
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

/// What happened to a slot, all told, since the watch was last polled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeKind {
    /// It was not there and is now. Told once for an entity.
    Created,
    /// It was there and has another value now, or had in between.
    Changed,
    /// It was there and is not any more.
    Removed,
}

/// One key of a [`PathFilter::Pattern`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyPattern {
    /// This key.
    Is(Key),
    /// Any one key.
    Any,
    /// Any number of keys, none included.
    Rest,
}

/// Which paths a watch is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathFilter {
    /// The coming and going of entities, not their parameters.
    Entities,
    /// Everything: entities and all their parameters.
    All,
    /// This parameter and all below it.
    Below(Path),
    /// Parameters whose path matches, key by key.
    Pattern(Vec<KeyPattern>),
}

/// What a watch is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchFilter {
    /// One entity, or all.
    pub entity: Option<EntityId>,
    /// Which of its slots.
    pub paths: PathFilter,
}

impl PathFilter {
    /// A pattern from text: keys joined with `/`, `*` for any one key, `**` for any number.
    pub fn pattern(text: &str) -> Result<Self, coeval_value::PathError> {
        let key = |part: &str| {
            Ok(match part {
                "*" => KeyPattern::Any,
                "**" => KeyPattern::Rest,
                other => KeyPattern::Is(Path::parse(other)?.last().clone()),
            })
        };
        split(text).map(key).collect::<Result<_, _>>().map(Self::Pattern)
    }

    fn matches(&self, path: Option<&Path>) -> bool {
        match (self, path) {
            (Self::All, _) => true,
            (Self::Entities, path) => path.is_none(),
            (_, None) => false,
            (Self::Below(root), Some(path)) => root.contains(path),
            (Self::Pattern(pattern), Some(path)) => matches(pattern, path.keys()),
        }
    }
}

/// Splits at slashes that are not escaped.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let at = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        at
    })
}

fn matches(pattern: &[KeyPattern], keys: &[Key]) -> bool {
    match (pattern.split_first(), keys.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((KeyPattern::Rest, more)), rest) => {
            matches(more, keys) || rest.is_some_and(|(_, keys)| matches(pattern, keys))
        }
        (Some(_), None) => false,
        (Some((KeyPattern::Any, more)), Some((_, keys))) => matches(more, keys),
        (Some((KeyPattern::Is(key), more)), Some((first, keys))) => key == first && matches(more, keys),
    }
}

/// What a poll found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WatchChanges {
    /// Changed slots in key order (an entity before its paths).
    pub changes: Vec<(SlotKey, ChangeKind)>,
    /// More changed than the watch may hold: changes are missing. Read everything that matters anew.
    pub overflowed: bool,
}

#[derive(Default)]
struct Found {
    changes: BTreeMap<SlotKey, ChangeKind>,
    overflowed: bool,
    waker: Option<Waker>,
}

struct Inner {
    filter: WatchFilter,
    found: Mutex<Found>,
    more: Condvar,
    limit: usize,
}

/// A subscription to changes; dropping it ends it.
pub struct Watch(Arc<Inner>);

impl Watch {
    /// Takes what changed since the last call, without waiting.
    pub fn poll(&self) -> WatchChanges {
        self.0.found.lock().take()
    }

    /// As [`poll`](Self::poll), but waits up to `timeout` for something to change. Empty when nothing did.
    pub fn wait(&self, timeout: Duration) -> WatchChanges {
        let mut found = self.0.found.lock();
        if found.is_empty() {
            self.0.more.wait_while_for(&mut found, |found| found.is_empty(), timeout);
        }
        found.take()
    }

    /// As [`poll`](Self::poll); when nothing changed, `waker` is woken once as soon as something does.
    pub fn poll_or_wake(&self, waker: &Waker) -> Option<WatchChanges> {
        let mut found = self.0.found.lock();
        if found.is_empty() {
            found.waker = Some(waker.clone());
            return None;
        }
        Some(found.take())
    }
}

impl Found {
    fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.overflowed
    }

    fn take(&mut self) -> WatchChanges {
        let changes = std::mem::take(&mut self.changes).into_iter().collect();
        WatchChanges { changes, overflowed: std::mem::take(&mut self.overflowed) }
    }

    fn add(&mut self, key: &SlotKey, kind: ChangeKind, limit: usize) {
        let Some(before) = self.changes.get(key).copied() else {
            if self.changes.len() < limit {
                self.changes.insert(key.clone(), kind);
            } else {
                self.overflowed = true;
            }
            return;
        };
        use ChangeKind::{Changed, Created, Removed};
        match (before, kind) {
            // It came and went unseen.
            (Created, Removed) => _ = self.changes.remove(key),
            (Created, _) => {}
            (Removed, Created) => _ = self.changes.insert(key.clone(), Changed),
            (_, kind) => _ = self.changes.insert(key.clone(), kind),
        }
    }
}

pub(crate) struct Watches {
    list: RwLock<Vec<Weak<Inner>>>,
    count: AtomicUsize,
    limit: usize,
}

impl Watches {
    pub(crate) fn new(limit: usize) -> Self {
        Self { list: RwLock::default(), count: AtomicUsize::new(0), limit }
    }

    /// Whether anyone may be watching.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// A new watch that starts with `existing` as created.
    pub(crate) fn add<'a>(&self, filter: WatchFilter, existing: impl Iterator<Item = &'a SlotKey>) -> Watch {
        let inner =
            Arc::new(Inner { filter, found: Mutex::default(), more: Condvar::new(), limit: self.limit });
        for key in existing {
            inner.feed(&[(key, ChangeKind::Created)]);
        }
        let mut list = self.list.write();
        list.retain(|watch| watch.strong_count() > 0);
        list.push(Arc::downgrade(&inner));
        self.count.store(list.len(), Ordering::Relaxed);
        Watch(inner)
    }

    /// Tells all watches what changed.
    pub(crate) fn feed(&self, changes: &[(&SlotKey, ChangeKind)]) {
        if changes.is_empty() {
            return;
        }
        let watches: Vec<_> = self.list.read().iter().filter_map(Weak::upgrade).collect();
        watches.iter().for_each(|watch| watch.feed(changes));
    }
}

impl Inner {
    fn feed(&self, changes: &[(&SlotKey, ChangeKind)]) {
        let mut found = self.found.lock();
        let ours = |key: &SlotKey| {
            self.filter.entity.is_none_or(|entity| entity == key.entity)
                && self.filter.paths.matches(key.path.as_ref())
        };
        for (key, kind) in changes.iter().filter(|(key, _)| ours(key)) {
            found.add(key, *kind, self.limit);
        }
        if !found.is_empty() {
            self.more.notify_all();
            if let Some(waker) = found.waker.take() {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::parse(text).expect("path")
    }

    #[test]
    fn patterns_match_key_by_key() {
        let fits = |pattern: &str, text: &str| {
            PathFilter::pattern(pattern).expect("pattern").matches(Some(&path(text)))
        };
        assert!(fits("a/*", "a/b") && !fits("a/*", "a") && !fits("a/*", "a/b/c"));
        assert!(
            fits("**", "a/b") && fits("a/**", "a") && fits("a/**/c", "a/b/b/c") && !fits("a/**/c", "a/b")
        );
        assert!(fits(r"x\/y/*", r"x\/y/z") && !fits(r"x\/y/*", "x/y"));
        assert!(!PathFilter::pattern("**").expect("pattern").matches(None));
    }

    #[test]
    fn changes_of_a_slot_become_one() {
        let key = SlotKey { entity: EntityId::default(), path: Some(path("a")) };
        use ChangeKind::{Changed, Created, Removed};
        for (told, want) in [
            (vec![Created, Changed], Some(Created)),
            (vec![Created, Removed], None),
            (vec![Removed, Created], Some(Changed)),
            (vec![Changed, Removed], Some(Removed)),
            (vec![Created, Removed, Created], Some(Created)),
        ] {
            let watches = Watches::new(8);
            let watch = watches.add(WatchFilter { entity: None, paths: PathFilter::All }, [].iter());
            told.iter().for_each(|&kind| watches.feed(&[(&key, kind)]));
            let found: Vec<_> = watch.poll().changes.into_iter().map(|(_, kind)| kind).collect();
            assert_eq!(found, want.into_iter().collect::<Vec<_>>(), "{told:?}");
            assert!(watch.poll().changes.is_empty());
        }
    }

    #[test]
    fn a_full_watch_says_that_it_overflowed() {
        let watches = Watches::new(2);
        let watch = watches.add(WatchFilter { entity: None, paths: PathFilter::All }, [].iter());
        for name in ["a", "b", "c"] {
            let key = SlotKey { entity: EntityId::default(), path: Some(path(name)) };
            watches.feed(&[(&key, ChangeKind::Created)]);
        }
        let found = watch.poll();
        assert!(found.overflowed && found.changes.len() == 2);
        assert!(!watch.poll().overflowed);
    }
}
