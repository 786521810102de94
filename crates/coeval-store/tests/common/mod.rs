//! What the store's tests share: stores under a wall clock that the test moves, and a wire between them.
#![allow(dead_code, reason = "each test file uses its own part")]

use coeval_merge::{Drained, LinkTag, Replica, SlotState};
use coeval_store::{Limits, Store, StoreConfig};
use coeval_time::{Clock, Context, Epoch, Genesis, Incarnation, SessionId, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Session wall time at which every test's session starts, and sim time 0.
pub(crate) const START: u64 = 1_700_000_000_000_000_000;
/// A second.
pub(crate) const SEC: u64 = 1_000_000_000;

/// A peer: its store, and its clock as an offset from `START`.
pub(crate) struct Peer {
    pub(crate) store: Store,
    wall: Arc<AtomicU64>,
}

pub(crate) fn config(incarnation: u64, now: impl Fn() -> WallTime + Send + Sync + 'static) -> StoreConfig {
    let session = SessionId(Uuid::from_u128(77));
    let genesis = Genesis { wall: WallTime::from_nanos(START), sim: SimTime::EPOCH, scale: 1.0 };
    StoreConfig {
        incarnation: Incarnation(incarnation),
        session,
        clock: Arc::new(Clock::new(session, genesis).expect("genesis")),
        now: Arc::new(now),
        stamp_floor: 0,
        limits: Limits::default(),
        wake: Box::new(|| {}),
    }
}

impl Peer {
    pub(crate) fn new(incarnation: u64) -> Self {
        Self::with(incarnation, |_| {})
    }

    pub(crate) fn with(incarnation: u64, change: impl FnOnce(&mut StoreConfig)) -> Self {
        let wall = Arc::new(AtomicU64::new(START));
        let clock = Arc::clone(&wall);
        let mut config = config(incarnation, move || WallTime::from_nanos(clock.load(Ordering::Relaxed)));
        change(&mut config);
        Self { store: Store::new(config).expect("store"), wall }
    }

    /// Sets the peer's wall clock to `nanos` after the start.
    pub(crate) fn at(&self, nanos: u64) -> &Self {
        self.wall.store(START + nanos, Ordering::Relaxed);
        self
    }

    /// Lets the peer's wall clock run by `nanos`.
    pub(crate) fn pass(&self, nanos: u64) -> &Self {
        self.wall.fetch_add(nanos, Ordering::Relaxed);
        self
    }

    pub(crate) fn ctx(&self) -> Context {
        self.store.context()
    }

    /// A live context whose sim time is `secs`.
    pub(crate) fn sim(&self, secs: f64) -> Context {
        Context { sim: sim(secs), ..self.store.context() }
    }

    pub(crate) fn create(&self, entity: EntityId) -> Stamp {
        self.store.create_entity(self.ctx(), entity, None).expect("create")
    }

    /// Drains this peer and applies what came out to `to`.
    pub(crate) fn send(&self, to: &Peer) -> u64 {
        deliver(&self.store, &self.store.drain(), &to.store)
    }
}

/// Applies a drain of `from` to `to`; returns how many fragments changed something.
pub(crate) fn deliver(from: &Store, drained: &Drained, to: &Store) -> u64 {
    let states = drained.changes.iter().map(|change| (change.slot, change.state.clone()));
    let states: Vec<_> = states.map(|(slot, state)| (from.key(slot).expect("own slot"), state)).collect();
    let states: Vec<_> =
        states.into_iter().map(|(key, state)| (to.resolve(&key).expect("room"), state)).collect();
    let entries = drained.entries.iter().map(|(_, entry)| entry.clone()).collect();
    let applied = to.apply(LinkTag(from.incarnation().0), &states, entries);
    assert!(applied.refused.is_empty(), "{:?}", applied.refused);
    applied.changed
}

/// Drains and delivers between all until nothing is left.
pub(crate) fn settle(peers: &[&Peer]) {
    for _ in 0..20 {
        let mut any = false;
        for from in peers {
            let drained = from.store.drain();
            any |= !drained.changes.is_empty() || !drained.entries.is_empty();
            for to in peers.iter().filter(|to| to.store.incarnation() != from.store.incarnation()) {
                deliver(&from.store, &drained, &to.store);
            }
        }
        if !any {
            return;
        }
    }
    panic!("peers go on telling each other what they know");
}

pub(crate) fn path(text: &str) -> Path {
    Path::parse(text).expect("path")
}

pub(crate) fn entity(n: u128) -> EntityId {
    EntityId(Uuid::from_u128(n << 64 | n))
}

pub(crate) fn sim(secs: f64) -> SimTime {
    SimTime::from_nanos((secs * 1e9).round() as i128)
}

/// A state's fragment as text, for messages.
pub(crate) fn show(state: &SlotState) -> String {
    format!("{state:?}")
}

/// The epoch of a jump that took effect `secs` after the start.
pub(crate) fn epoch(secs: u64) -> Epoch {
    let at = WallTime::from_nanos(START + secs * SEC);
    let stamp = Stamp::new(at.as_nanos(), Incarnation(3));
    Epoch { at, jump: coeval_time::EditId { stamp, index: 0 } }
}
