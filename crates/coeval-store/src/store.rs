//! [`Store`]: the handle on a replica, and what can be asked of it as a whole.
use crate::core::Core;
use crate::entity::Phase;
use crate::epochs::Epochs;
use crate::error::{EntryError, LookupError};
use crate::events::StoreEvent;
use crate::hub::{Counters, Counting, Hub, NowFn, WakeFn};
use crate::limits::Limits;
use crate::slot::Pending;
use crate::watch::{Watch, WatchFilter};
use coeval_cell::{DirtyBits, Doorbell};
use coeval_merge::{Entry, EntryBody, Life, Origin};
use coeval_time::{
    Clock, Context, Edit, EditId, EditKind, HybridClock, Incarnation, SessionId, Stamp, StampError, WallTime,
};
use coeval_value::{EntityId, SIM_ENTITY, Value};
use std::sync::Arc;

/// What a store is made from.
pub struct StoreConfig {
    /// Who writes here: fresh for each opened peer.
    pub incarnation: Incarnation,
    /// The session. Contexts of another are refused.
    pub session: SessionId,
    /// The session's clock. Received clock edits are inserted into it.
    pub clock: Arc<Clock>,
    /// Session wall time, cheap to read: every write reads it once.
    pub now: NowFn,
    /// Stamps start above this hybrid-clock reading: the highest one found in a snapshot or journal, else 0.
    pub stamp_floor: u64,
    /// Bounds.
    pub limits: Limits,
    /// Called, from the writing thread, at the first change after a drain began.
    pub wake: WakeFn,
}

/// The concurrent replica: a full copy of the world, read and written by any thread. Cloning gives another handle on
/// the same replica.
///
/// Reading never waits: not for a writer, not for replication. A write to a parameter that exists takes that
/// parameter's lock; creating, removing and deleting take the entity's. Replication drives it through
/// [`coeval_merge::Replica`], from one thread.
#[derive(Clone)]
pub struct Store {
    pub(crate) core: Arc<Core>,
}

impl Store {
    /// An empty world: nothing but the `SimEntity`.
    ///
    /// # Errors
    /// [`StampError`] for a `stamp_floor` at the end of the range.
    pub fn new(config: StoreConfig) -> Result<Self, StampError> {
        let hub = Hub {
            session: config.session,
            limits: config.limits,
            epochs: Epochs::new(),
            dirty: DirtyBits::new(),
            bell: Doorbell::new(),
            counters: Counting::default(),
            hybrid: HybridClock::new(config.incarnation, config.stamp_floor)?,
            now: config.now,
            wake: config.wake,
        };
        let core = Core::new(Arc::new(hub), config.clock);
        if let Ok(node) = core.node(SIM_ENTITY) {
            let life = Life { created: Stamp::GENESIS, deleted: Stamp::NONE };
            // Every replica has it from the start, so there is nothing to tell anyone.
            _ = core.join_life(&node, &mut node.inner.lock(), &life, Pending::Nobody);
        }
        // A store that was never drained has news: whoever drains it need not be awake yet.
        core.hub.bell.begin_idle();
        Ok(Self { core: Arc::new(core) })
    }

    /// Who writes here; another one after [`renew`](coeval_merge::Replica::renew).
    pub fn incarnation(&self) -> Incarnation {
        self.core.hub.hybrid.writer()
    }

    /// The session's clock.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.core.clock
    }

    /// Session wall time now.
    pub fn now(&self) -> WallTime {
        (self.core.hub.now)()
    }

    /// One reading of the clock: what to read and write at.
    pub fn context(&self) -> Context {
        self.core.clock.context(self.now())
    }

    /// The highest reading of the hybrid clock so far, issued or taken in: every later stamp of this store is above it. A
    /// program that opens again with this as its `stamp_floor` never loses to its own past.
    pub fn latest_stamp(&self) -> u64 {
        self.core.hub.hybrid.latest()
    }

    /// The bounds it was made with.
    pub fn limits(&self) -> &Limits {
        &self.core.hub.limits
    }

    /// What happened that is no error to anyone.
    pub fn counters(&self) -> Counters {
        self.core.hub.counters.get()
    }

    /// Takes what the replica has to tell once.
    pub fn poll_events(&self) -> Vec<StoreEvent> {
        self.core.events.take()
    }

    /// Whether an entity exists: its creation is known and no deletion is.
    pub fn exists(&self, entity: EntityId) -> bool {
        self.core.index.get(entity).is_some_and(|node| node.phase() == Phase::Alive)
    }

    /// Whether an entity is known to be deleted.
    pub fn is_deleted(&self, entity: EntityId) -> bool {
        self.core.index.get(entity).is_some_and(|node| node.phase() == Phase::Deleted)
    }

    /// The living entities, in id order, the `SimEntity` included. Walks all slots.
    pub fn entities(&self) -> Vec<EntityId> {
        let slots = (0..self.core.slots.len()).filter_map(|number| self.core.slots.get(number));
        let lives = slots.filter(|slot| slot.key.path.is_none() && slot.entity.phase() == Phase::Alive);
        let mut ids: Vec<_> = lives.map(|slot| slot.key.entity).collect();
        ids.sort_unstable();
        ids
    }

    /// The living entity that bears `name`: the text at its path `name`.
    ///
    /// # Errors
    /// [`LookupError`] when nobody or more than one does.
    pub fn entity_named(&self, name: &str) -> Result<EntityId, LookupError> {
        let bearers = self.core.names.lock().bearers(name);
        match bearers[..] {
            [] => Err(LookupError::NoSuchName(name.to_owned())),
            [only] => Ok(only),
            _ => Err(LookupError::Ambiguous { name: name.to_owned(), bearers }),
        }
    }

    /// Notes that an author was heard of (`None`) or is lost since a wall instant; readings of what it wrote say so.
    pub fn note_author(&self, author: Incarnation, lost_since: Option<WallTime>) {
        self.core.authors.note(author, lost_since);
    }

    /// A watch on everything that `filter` matches. Its first poll finds what exists already as created.
    pub fn watch(&self, filter: WatchFilter) -> Watch {
        // Between two drains: what exists is told now, what comes is told by later drains.
        let _boundary = self.core.batch.write();
        let _pump = self.core.pump.lock();
        let slots = (0..self.core.slots.len()).filter_map(|number| self.core.slots.get(number));
        let shown = slots.filter(|slot| slot.pump.lock().shown).map(|slot| &slot.key);
        self.core.watches.add(filter, shown)
    }

    /// Adds a fact of the session, for ever.
    ///
    /// # Errors
    /// [`EntryError`]; nothing changed.
    pub fn add_record(&self, topic: &str, value: Value) -> Result<Entry, EntryError> {
        let topic: Arc<str> = topic.into();
        if let Err(source) = self.core.hub.limits.value.check(&value) {
            return Err(EntryError::Value { topic, source });
        }
        let now = self.now();
        let _all_or_nothing = self.core.batch.read();
        let stamp = self.core.hub.stamp(now, Stamp::NONE)?;
        let entry = Entry { id: EditId { stamp, index: 0 }, body: EntryBody::Record { topic, value } };
        self.insert(vec![entry.clone()])?;
        Ok(entry)
    }

    /// Edits the session's clock, at wall instant `at`, or at once: then after the newest edit that is known to be in
    /// effect, so that an answer to what was seen comes after it. All kinds at the same instant, in order.
    ///
    /// # Errors
    /// [`EntryError`]; nothing changed.
    pub fn edit_clock(&self, kinds: &[EditKind], at: Option<WallTime>) -> Result<Vec<Edit>, EntryError> {
        // Of one world: an edit at the instant that an old one suggests has no business in a new one.
        let _all_or_nothing = self.core.batch.read();
        let now = self.now();
        let at = at.unwrap_or_else(|| self.core.clock.immediate_at(now));
        // Not above `at` of an immediate edit by more than the clock allows: the stamp follows session time.
        let stamp = self.core.hub.stamp(now, Stamp::NONE)?;
        let edits: Vec<_> = (0u32..)
            .zip(kinds)
            .map(|(index, &kind)| Edit { id: EditId { stamp, index }, at, kind })
            .collect();
        edits.iter().try_for_each(coeval_time::fold::validate)?;
        self.insert(edits.iter().map(|&edit| Entry { id: edit.id, body: EntryBody::Clock(edit) }).collect())?;
        Ok(edits)
    }

    /// All entries of the session, in id order.
    pub fn entries(&self) -> Vec<Entry> {
        self.core.entries.lock().iter().cloned().collect()
    }

    /// The caller holds `batch` shared.
    fn insert(&self, entries: Vec<Entry>) -> Result<(), EntryError> {
        let limit = self.core.hub.limits.entries;
        if self.core.entries.lock().len() + entries.len() > limit {
            return Err(EntryError::Limit(limit));
        }
        for entry in entries {
            // Valid and of a fresh id: only another thread that takes the last room can be in the way.
            self.core.add_entry(Origin::Local, entry).map_err(|_| EntryError::Limit(limit))?;
        }
        Ok(())
    }
}
