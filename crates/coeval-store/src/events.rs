//! What a store has to tell once: a bounded queue that the embedder polls.
use coeval_value::EntityId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Events kept until they are polled; the oldest go first.
const KEPT: usize = 1024;

/// Something that happened to the replica itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreEvent {
    /// Several living entities bear one name, made at the same time by different peers. Look-ups by that name fail until
    /// all but one are renamed or deleted. Told once per clash.
    NameClash {
        /// The name.
        name: Arc<str>,
        /// Who bears it, in id order.
        ids: Vec<EntityId>,
    },
}

#[derive(Default)]
pub(crate) struct Events(Mutex<VecDeque<StoreEvent>>);

impl Events {
    pub(crate) fn push(&self, event: StoreEvent) {
        let mut queue = self.0.lock();
        if queue.len() == KEPT {
            queue.pop_front();
        }
        queue.push_back(event);
    }

    pub(crate) fn take(&self) -> Vec<StoreEvent> {
        self.0.lock().drain(..).collect()
    }
}
