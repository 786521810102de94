//! Which authors are lost, as the membership layer sees it.
use arc_swap::ArcSwap;
use coeval_time::{Incarnation, WallTime};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Replaced whole on every change: authors are lost rarely and asked about at every read.
#[derive(Default)]
pub(crate) struct Authors {
    any: AtomicBool,
    lost: ArcSwap<BTreeMap<Incarnation, WallTime>>,
}

impl Authors {
    pub(crate) fn note(&self, author: Incarnation, lost_since: Option<WallTime>) {
        self.lost.rcu(|lost| {
            let mut lost = BTreeMap::clone(lost);
            match lost_since {
                Some(since) => lost.insert(author, since),
                None => lost.remove(&author),
            };
            Arc::new(lost)
        });
        self.any.store(!self.lost.load().is_empty(), Ordering::Release);
    }

    pub(crate) fn lost_since(&self, author: Incarnation) -> Option<WallTime> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.lost.load().get(&author).copied()
    }
}
