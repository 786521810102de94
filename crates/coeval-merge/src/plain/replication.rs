//! The [`Replica`] face of [`PlainReplica`]: thin, each call under its one lock.
use super::PlainReplica;
use crate::{
    Applied, Digest, Drained, Entered, Entry, LinkTag, Refusal, Replica, Scan, SlotId, SlotKey, SlotState,
    SlotSummary, World, bucket_of,
};

use coeval_time::hybrid::STAMP_LIMIT;
use coeval_time::{EditId, Incarnation, Stamp, StampError, WallTime};
use coeval_value::{EntityId, Path};

impl Replica for PlainReplica {
    fn drain(&self) -> Drained {
        self.inner().drain()
    }

    fn position(&self) -> u64 {
        self.inner().position
    }

    fn register(&self, newest: Stamp) {
        let mut inner = self.inner();
        inner.clock = inner.clock.max(newest);
    }

    fn take_fork(&self) -> Option<Stamp> {
        self.inner().fork.take()
    }

    fn renew(&self, writer: Incarnation) {
        self.inner().writer = writer;
    }

    fn resolve(&self, key: &SlotKey) -> Result<SlotId, Refusal> {
        self.inner().resolve(key)
    }

    fn key(&self, slot: SlotId) -> Option<SlotKey> {
        self.inner().slots.get(slot.0 as usize).map(|s| s.key.clone())
    }

    fn read(&self, slot: SlotId) -> Option<SlotState> {
        self.inner().state(slot)
    }

    /// An entry that is known, inconsistent, or beyond the limit counts as superseded.
    fn apply(&self, link: LinkTag, states: &[(SlotId, SlotState)], entries: Vec<Entry>) -> Applied {
        self.inner().apply(link, states, entries)
    }

    fn scan(&self, from: SlotId, since: u64, limit: usize) -> Scan {
        let inner = self.inner();
        let mut scan = Scan::default();
        for (number, slot) in inner.slots.iter().enumerate().skip(from.0 as usize) {
            let id = SlotId(number as u32);
            if slot.drained_at <= since {
                continue;
            }
            if let Some(state) = inner.state(id).filter(|s| !s.is_empty()) {
                if scan.states.len() == limit {
                    scan.next = Some(id);
                    break;
                }
                scan.states.push((id, state));
            }
        }
        scan
    }

    fn entries_since(&self, since: u64) -> Vec<Entry> {
        let inner = self.inner();
        let from = inner.drained_entries.partition_point(|(position, _)| *position <= since);
        inner.drained_entries[from..].iter().map(|(_, id)| inner.entries[id].clone()).collect()
    }

    fn entry(&self, id: EditId) -> Option<Entry> {
        self.inner().entries.get(&id).cloned()
    }

    fn digest(&self) -> Digest {
        self.inner().digests().fold(Digest::ZERO, |sum, (_, d)| sum.plus(d))
    }

    fn bucket_digests(&self) -> Vec<Digest> {
        let mut buckets = vec![Digest::ZERO; 256];
        for (id, digest) in self.inner().digests() {
            let bucket = &mut buckets[usize::from(bucket_of(id))];
            *bucket = bucket.plus(digest);
        }
        buckets
    }

    /// Entities that count nothing are left out.
    fn entity_digests(&self, bucket: u8) -> Vec<(EntityId, Digest)> {
        let inner = self.inner();
        inner.digests().filter(|(id, d)| bucket_of(*id) == bucket && *d != Digest::ZERO).collect()
    }

    fn summary(&self, entity: EntityId) -> Vec<SlotSummary> {
        let inner = self.inner();
        let Some(body) = inner.entities.get(&entity) else { return Vec::new() };
        let slot = |path: Option<Path>| {
            let key = SlotKey { entity, path };
            inner.index.get(&key).map(|&slot| (slot, key))
        };
        // Of a deleted entity only the tombstone counts.
        let created = if body.life.deleted.is_none() { body.life.created } else { Stamp::NONE };
        let life = (slot(None), created, body.life.deleted, Stamp::NONE);
        let nodes = body.tree.canonical().map(|(path, state)| {
            let leaf = state.leaf.as_ref().map_or(Stamp::NONE, |l| l.stamp);
            (slot(Some(path)), leaf, state.floor, state.kind)
        });
        let live = body.life.is_live();
        let all = std::iter::once(life).filter(|l| !l.1.max(l.2).is_none()).chain(nodes.filter(|_| live));
        all.filter_map(|(slot, first, floor, kind)| {
            slot.map(|(slot, key)| SlotSummary { slot, key, first, floor, kind })
        })
        .collect()
    }

    fn entry_ids(&self) -> Vec<EditId> {
        self.inner().entries.keys().copied().collect()
    }

    fn world(&self) -> World {
        self.inner().world
    }

    fn issue(&self, wall: WallTime) -> Result<Stamp, StampError> {
        let stamp = self.inner().issue(wall);
        if stamp.hlc >= STAMP_LIMIT { Err(StampError::Overflow { hlc: stamp.hlc }) } else { Ok(stamp) }
    }

    fn enter(&self, world: World, states: Vec<(SlotId, SlotState)>, entries: Vec<Entry>) -> Option<Entered> {
        self.inner().enter(world, states, entries)
    }
}
