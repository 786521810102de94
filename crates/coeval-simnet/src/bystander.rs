//! A thread of a program that runs just when its store wakes its engine: in the middle of what rang the bell.
//!
//! A simulation has one thread, so nobody looks at a replica while it takes in what arrived. This one does: a store wakes
//! its engine at the first change that becomes readable, and the bystander then reads what it can and compares it with the
//! hybrid clock. Were the clock raised later than that, a write that answers what was just read would lose against it.
use coeval_store::{Param, Store};
use coeval_value::Value;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Inner {
    store: Option<Store>,
    handles: Vec<Param<Value>>,
    found: Option<String>,
}

/// The thread, as its store wakes it.
#[derive(Clone, Default)]
pub(crate) struct Bystander(Arc<Mutex<Inner>>);

/// Keeps it there; store and bystander hold each other until this is dropped.
pub(crate) struct Standing(Bystander);

impl Bystander {
    /// Runs: the store is in the middle of something.
    pub(crate) fn run(&self) {
        let Ok(mut inner) = self.0.try_lock() else { return };
        let Inner { store: Some(store), handles, found } = &mut *inner else { return };
        let (context, latest) = (store.context(), store.latest_stamp());
        let newest = handles
            .iter()
            .filter_map(|handle| handle.read_register(context).ok())
            .map(|read| read.stamp)
            .max();
        if let Some(stamp) = newest.filter(|stamp| stamp.hlc > latest) {
            found.get_or_insert_with(|| {
                format!("{stamp:?} can be read while the hybrid clock shows {latest}")
            });
        }
    }

    /// Begins to look at a store.
    pub(crate) fn stand(self, store: Store) -> Standing {
        if let Ok(mut inner) = self.0.lock() {
            inner.store = Some(store);
        }
        Standing(self)
    }
}

impl Standing {
    /// Another parameter to look at.
    pub(crate) fn hold(&self, handle: Param<Value>) {
        if let Ok(mut inner) = self.0.0.lock() {
            inner.handles.push(handle);
        }
    }

    /// What was wrong, once.
    pub(crate) fn found(&self) -> Option<String> {
        self.0.0.lock().ok()?.found.take()
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let inner = self.0.0.lock().map(|mut inner| std::mem::take(&mut *inner));
        // Dropped here, after the lock: the store's own end may wake the bystander once more.
        drop(inner);
    }
}
