//! The ledger of a run: every batch that a store took, and what replaying them in stamp order shows.
use coeval_merge::digest::of_life;
use coeval_merge::{Batch, Digest, Life, Op, PlainReplica, Replica, SlotSummary};
use coeval_store::{EntityView, Shown};
use coeval_time::{Incarnation, Stamp};
use coeval_value::{EntityId, Key, SIM_ENTITY, SampleMeta, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What an entity shows.
pub type Map = BTreeMap<Key, Value>;

/// An operation, and whether its values are teleports.
pub type Act = (Op, bool);

/// One batch.
#[derive(Clone, Debug)]
pub struct Record {
    /// Operations in program order.
    pub acts: Vec<Act>,
    /// The writer's time.
    pub meta: SampleMeta,
}

/// Batches by stamp.
#[derive(Clone, Debug, Default)]
pub struct Ledger(pub BTreeMap<Stamp, Record>);

impl Ledger {
    /// Notes a batch; `false` if its stamp was issued before.
    pub fn note(&mut self, stamp: Stamp, record: Record) -> bool {
        self.0.insert(stamp, record).is_none()
    }

    /// The entities that were ever created.
    pub fn created(&self) -> BTreeSet<EntityId> {
        let acts = self.0.values().flat_map(|record| &record.acts);
        let created = acts.filter(|(op, _)| matches!(op, Op::Create { .. }));
        created.map(|(op, _)| op.entity()).collect()
    }

    /// Whether an entity is deleted.
    pub fn deletes(&self, entity: EntityId) -> bool {
        let mut acts = self.0.values().flat_map(|record| &record.acts);
        acts.any(|(op, _)| matches!(op, Op::Delete { entity: gone } if *gone == entity))
    }

    /// Those that `keep` says.
    #[must_use]
    pub fn only(&self, keep: impl Fn(Stamp) -> bool) -> Self {
        Self(self.0.iter().filter(|(stamp, _)| keep(**stamp)).map(|(s, r)| (*s, r.clone())).collect())
    }

    /// The rule, literally: replay in stamp order on an empty tree, entity deletions first.
    pub fn replay(&self) -> BTreeMap<EntityId, Map> {
        let mut worlds: BTreeMap<EntityId, Map> = BTreeMap::new();
        let (mut created, mut deleted) = (BTreeSet::from([SIM_ENTITY]), BTreeSet::new());
        worlds.insert(SIM_ENTITY, Map::new());
        for (op, _) in self.0.values().flat_map(|record| &record.acts) {
            let map = worlds.entry(op.entity()).or_default();
            match op {
                Op::Create { entity } => _ = created.insert(*entity),
                Op::Delete { entity } => _ = deleted.insert(*entity),
                Op::Set { path, value, .. } => put(map, path.keys(), value.clone()),
                Op::Replace { path, map: new, .. } => put(map, path.keys(), Value::Map(Arc::clone(new))),
                Op::Remove { path, .. } => remove(map, path.keys()),
            }
        }
        worlds.retain(|id, _| created.contains(id) && !deleted.contains(id));
        worlds
    }

    /// A plain replica after these batches, without entries.
    pub fn plain(&self) -> PlainReplica {
        let replica = PlainReplica::new(Incarnation(2));
        for (stamp, record) in &self.0 {
            let mut batch = Batch::new();
            for (op, teleport) in &record.acts {
                let op = op.clone();
                // A store took this batch, so it was in order.
                _ = if *teleport { batch.push_discontinuous(op) } else { batch.push(op) };
            }
            replica.replay(&batch, *stamp, record.meta);
        }
        replica.drain();
        replica
    }
}

/// The digest of a plain replica, as a store counts it: with the life of the `SimEntity`, which is the same in every
/// world.
pub fn digest_of(plain: &PlainReplica) -> Digest {
    let life = Life { created: Stamp::GENESIS, deleted: Stamp::NONE };
    plain.digest().plus(of_life(SIM_ENTITY, &life))
}

/// The first slot in which two replicas differ, in words.
pub fn difference(a: &impl Replica, b: &impl Replica, entities: &BTreeSet<EntityId>) -> Option<String> {
    let slots = |replica: &dyn Fn(EntityId) -> Vec<SlotSummary>, entity| {
        let stamps = |slot: SlotSummary| (slot.key, [slot.first, slot.floor, slot.kind]);
        replica(entity).into_iter().map(stamps).collect::<BTreeMap<_, _>>()
    };
    entities.iter().find_map(|&entity| {
        let (a, b) = (slots(&|id| a.summary(id), entity), slots(&|id| b.summary(id), entity));
        let keys: BTreeSet<_> = a.keys().chain(b.keys()).collect();
        let key = keys.into_iter().find(|key| a.get(key) != b.get(key))?;
        Some(format!("{key:?}: {:?} against {:?}", a.get(key), b.get(key)))
    })
}

fn put(map: &mut Map, keys: &[Key], value: Value) {
    let Some((first, rest)) = keys.split_first() else { return };
    if rest.is_empty() {
        map.insert(first.clone(), value);
        return;
    }
    let inner = map.entry(first.clone()).or_default();
    if !matches!(inner, Value::Map(_)) {
        *inner = Value::Map(Arc::default());
    }
    if let Value::Map(inner) = inner {
        put(Arc::make_mut(inner), rest, value);
    }
}

fn remove(map: &mut Map, keys: &[Key]) {
    let Some((first, rest)) = keys.split_first() else { return };
    if rest.is_empty() {
        map.remove(first);
    } else if let Some(Value::Map(inner)) = map.get_mut(first) {
        remove(Arc::make_mut(inner), rest);
    }
}

/// What a snapshot shows of an entity, as one map.
pub fn shown(view: &EntityView) -> Map {
    let mut map = Map::new();
    for (path, shown) in &view.parameters {
        match shown {
            Shown::Leaf(leaf) => put(&mut map, path.keys(), leaf.value.clone()),
            Shown::Map => put(&mut map, path.keys(), Value::Map(Arc::default())),
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval_value::Path;

    #[test]
    fn a_replay_is_in_stamp_order_and_deletions_come_first() {
        let ids = [1, 2].map(|n| EntityId(uuid::Uuid::from_u128(n)));
        let path = |text| Path::parse(text).expect("a path");
        let mut ledger = Ledger::default();
        let mut note = |n, op| {
            let record = Record { acts: vec![(op, false)], meta: SampleMeta::default() };
            assert!(ledger.note(Stamp::new(n, Incarnation(5)), record));
        };
        note(9, Op::Set { entity: ids[0], path: path("a/b"), value: Value::Int(2) });
        note(8, Op::Set { entity: ids[0], path: path("a"), value: Value::Int(1) });
        note(7, Op::Create { entity: ids[0] });
        note(6, Op::Create { entity: ids[1] });
        note(1, Op::Delete { entity: ids[1] });
        let worlds = ledger.replay();
        let key = |text| Key::new(text).expect("a key");
        let inner = Value::map([(key("b"), Value::Int(2))]);
        assert_eq!(worlds[&ids[0]], Map::from([(key("a"), inner)]));
        assert!(!worlds.contains_key(&ids[1]));
        assert_eq!(ledger.created().len(), 2);
        let both = ledger.plain();
        assert_eq!(difference(&both, &ledger.plain(), &ledger.created()), None);
        let fewer = ledger.only(|stamp| stamp.hlc != 9).plain();
        assert!(difference(&both, &fewer, &ledger.created()).is_some());
        assert_ne!(digest_of(&both), digest_of(&fewer));
    }
}
