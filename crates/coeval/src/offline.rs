//! What became of what this peer wrote while nobody heard: told once it is back and caught up.
use coeval_merge::{Replica, SlotId, SlotState};
use coeval_store::Store;
use coeval_time::{Incarnation, Stamp};
use coeval_value::{EntityId, Path};
use std::collections::{BTreeMap, BTreeSet};

/// Most writes that are remembered, and most that a report names; beyond, they are only counted.
pub const MAX_NAMED: usize = 1_024;
const MAX_REMEMBERED: usize = 1 << 20;
/// Slots looked at in one go.
const PAGE: usize = 512;

/// What became of writes that nobody had acknowledged when this peer was alone.
///
/// Of a peer that came back from its journal it is not known which of its earlier writes were acknowledged: all count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct OfflineWrites {
    /// How many stand: everyone shows them.
    pub stood: u64,
    /// How many lost to a newer write.
    pub superseded: u64,
    /// How many fell with an entity that someone deleted.
    pub fell: u64,
    /// How many were not followed, because there were too many.
    pub unknown: u64,
    /// Those that did not stand, the first 1,024 of them.
    pub lost: Vec<OfflineWrite>,
}

/// A write that did not stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfflineWrite {
    /// The entity.
    pub entity: EntityId,
    /// The path; `None` for the entity itself.
    pub path: Option<Path>,
    /// The stamp it was written with.
    pub stamp: Stamp,
    /// Whether its entity was deleted; else a newer write took its place.
    pub fell: bool,
    /// Who wrote what took its place, if that is known: a peer's name.
    pub by: Option<String>,
}

/// Looks after the writes of a peer that is alone, or that comes back.
#[derive(Default)]
pub(crate) struct Offline {
    /// Whether the next peer that is linked is the first after this one was alone.
    alone: bool,
    /// The openings whose writes are this peer's own.
    mine: BTreeSet<Incarnation>,
    /// The position up to which someone has acknowledged.
    acked: u64,
    /// Own writes that nobody had acknowledged when the first link came up again.
    waiting: BTreeMap<SlotId, Stamp>,
    unknown: u64,
}

impl Offline {
    /// Of a peer that wrote as `me`; `earlier` are those of its openings that its journal gave back.
    pub(crate) fn new(me: Incarnation, earlier: &[Incarnation]) -> Self {
        let mine = earlier.iter().copied().chain([me]).collect();
        Self { alone: !earlier.is_empty(), mine, ..Self::default() }
    }

    /// Someone has acknowledged what was drained up to a position.
    pub(crate) fn acked(&mut self, position: u64) {
        self.acked = self.acked.max(position);
    }

    /// The last link is gone.
    pub(crate) fn is_alone(&mut self) {
        self.alone = true;
    }

    /// The session is in another world: nothing is followed there.
    pub(crate) fn forget(&mut self) {
        (self.waiting, self.unknown) = (BTreeMap::new(), 0);
    }

    /// A link is up, and nothing that its peer held is here yet: notes what is to be followed. `me` is who writes here now.
    pub(crate) fn linked(&mut self, store: &Store, me: Incarnation) {
        self.mine.insert(me);
        if !std::mem::take(&mut self.alone) {
            return;
        }
        let mut from = Some(SlotId(0));
        while let Some(next) = from {
            let page = store.scan(next, self.acked, PAGE);
            for (slot, state) in page.states {
                let stamp = state.newest();
                if !self.mine.contains(&stamp.writer) {
                    continue;
                }
                if self.waiting.len() < MAX_REMEMBERED {
                    self.waiting.insert(slot, stamp);
                } else {
                    self.unknown += 1;
                }
            }
            from = page.next;
        }
    }

    /// All that a peer held is here: what became of the writes; `None` if there were none.
    pub(crate) fn caught_up(
        &mut self,
        store: &Store,
        name_of: impl Fn(Incarnation) -> Option<String>,
    ) -> Option<OfflineWrites> {
        if self.waiting.is_empty() && self.unknown == 0 {
            return None;
        }
        let mut report =
            OfflineWrites { unknown: std::mem::take(&mut self.unknown), ..OfflineWrites::default() };
        for (slot, stamp) in std::mem::take(&mut self.waiting) {
            let Some(key) = store.key(slot) else { continue };
            let now = store.read(slot);
            let newest = now.as_ref().map_or(Stamp::NONE, SlotState::newest);
            let fell = store.is_deleted(key.entity) && !(key.path.is_none() && newest == stamp);
            // What this peer itself wrote over since it is back stands as well.
            if !fell && (newest == stamp || self.mine.contains(&newest.writer)) {
                report.stood += 1;
                continue;
            }
            *(if fell { &mut report.fell } else { &mut report.superseded }) += 1;
            if report.lost.len() < MAX_NAMED {
                let by =
                    deleter(store, key.entity).filter(|_| fell).or((newest > stamp).then_some(newest.writer));
                let by = by.and_then(&name_of);
                report.lost.push(OfflineWrite { entity: key.entity, path: key.path, stamp, fell, by });
            }
        }
        Some(report)
    }
}

/// Who deleted an entity.
fn deleter(store: &Store, entity: EntityId) -> Option<Incarnation> {
    let life =
        store.resolve(&coeval_merge::SlotKey { entity, path: None }).ok().and_then(|slot| store.read(slot));
    match life {
        Some(SlotState::Life(life)) if !life.deleted.is_none() => Some(life.deleted.writer),
        _ => None,
    }
}
