//! The oracle (sequential replay) and random histories, shared by the property tests.
#![allow(dead_code, unreachable_pub)] // Each test binary uses a part.
use coeval_merge::{Batch, LinkTag, Op, PlainReplica, Replica, SlotKey, SlotState};
use coeval_time::{Incarnation, Stamp};
use coeval_value::{EntityId, Key, Path, SampleMeta, Value};
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const KEYS: [&str; 2] = ["a", "b"];

/// What a reader sees, comparable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shown {
    Leaf(i64),
    Map(BTreeMap<String, Shown>),
}

/// One batch of a history.
#[derive(Clone, Debug)]
pub struct Round {
    pub stamp: Stamp,
    pub ops: Vec<Op>,
}

pub fn entity(n: u128) -> EntityId {
    EntityId(uuid::Uuid::from_u128(n + 1))
}

pub fn stamp(n: u64) -> Stamp {
    Stamp::new(n, Incarnation(7))
}

pub fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

pub fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub fn set(text: &str, v: i64) -> Op {
    Op::Set { entity: entity(0), path: path(text), value: Value::Int(v) }
}

pub fn remove(text: &str) -> Op {
    Op::Remove { entity: entity(0), path: path(text) }
}

pub fn create() -> Op {
    Op::Create { entity: entity(0) }
}

pub fn delete() -> Op {
    Op::Delete { entity: entity(0) }
}

pub fn shown(value: &Value) -> Shown {
    match value {
        Value::Int(v) => Shown::Leaf(*v),
        Value::Map(m) => Shown::Map(m.iter().map(|(k, v)| (k.as_str().to_owned(), shown(v))).collect()),
        other => panic!("the tests write no {other:?}"),
    }
}

/// `{a: {b: 2}}` from `[("a/b", 2)]`; a path that ends in `/` is an empty map.
pub fn tree(leaves: &[(&str, i64)]) -> Option<Shown> {
    let mut root = BTreeMap::new();
    for (text, v) in leaves {
        match text.strip_suffix('/') {
            Some(text) => oracle_set(&mut root, path(text).keys(), Shown::Map(BTreeMap::new())),
            None => oracle_set(&mut root, path(text).keys(), Shown::Leaf(*v)),
        }
    }
    Some(Shown::Map(root))
}

fn oracle_set(mut at: &mut BTreeMap<String, Shown>, keys: &[Key], value: Shown) {
    let (last, above) = keys.split_last().unwrap();
    for k in above {
        let next = at.entry(k.as_str().to_owned()).or_insert_with(|| Shown::Map(BTreeMap::new()));
        if matches!(next, Shown::Leaf(_)) {
            *next = Shown::Map(BTreeMap::new());
        }
        let Shown::Map(map) = next else { unreachable!() };
        at = map;
    }
    at.insert(last.as_str().to_owned(), value);
}

fn oracle_remove(mut at: &mut BTreeMap<String, Shown>, keys: &[Key]) {
    let (last, above) = keys.split_last().unwrap();
    for k in above {
        match at.get_mut(k.as_str()) {
            Some(Shown::Map(map)) => at = map,
            _ => return,
        }
    }
    at.remove(last.as_str());
}

/// Replays all rounds in stamp order, their operations in program order, on an empty world, deletions hoisted first.
pub fn oracle(rounds: &[Round], which: EntityId) -> Option<Shown> {
    let mut rounds: Vec<&Round> = rounds.iter().collect();
    rounds.sort_by_key(|r| r.stamp);
    let ops = || rounds.iter().flat_map(|r| &r.ops).filter(|op| op.entity() == which);
    let deleted = ops().any(|op| matches!(op, Op::Delete { .. }));
    let created = ops().any(|op| matches!(op, Op::Create { .. }));
    if deleted || !created {
        return None;
    }
    let mut root = BTreeMap::new();
    for op in ops() {
        match op {
            Op::Set { path, value, .. } => oracle_set(&mut root, path.keys(), shown(value)),
            Op::Remove { path, .. } => oracle_remove(&mut root, path.keys()),
            Op::Replace { path, map, .. } => {
                oracle_set(&mut root, path.keys(), shown(&Value::Map(map.clone())));
            }
            Op::Create { .. } | Op::Delete { .. } => {}
        }
    }
    Some(Shown::Map(root))
}

pub fn batch(ops: &[Op]) -> Batch {
    let mut batch = Batch::new();
    for op in ops {
        batch.push(op.clone()).unwrap();
    }
    batch
}

pub fn apply_round(replica: &PlainReplica, round: &Round) {
    replica.replay(&batch(&round.ops), round.stamp, SampleMeta::default());
}

pub fn random_path(rng: &mut ChaCha8Rng) -> Path {
    let n = rng.random_range(1..=3);
    Path::new((0..n).map(|_| key(KEYS.choose(rng).unwrap()))).unwrap()
}

fn random_map(rng: &mut ChaCha8Rng, depth: usize) -> BTreeMap<Key, Value> {
    let mut map = BTreeMap::new();
    for k in KEYS {
        if rng.random_bool(0.6) {
            let leaf = depth >= 1 || rng.random_bool(0.7);
            let value = match leaf {
                true => Value::Int(rng.random_range(0..10)),
                false => Value::Map(Arc::new(random_map(rng, depth + 1))),
            };
            map.insert(key(k), value);
        }
    }
    map
}

pub fn random_op(rng: &mut ChaCha8Rng, entity: EntityId) -> Op {
    let path = random_path(rng);
    match rng.random_range(0..100) {
        0..50 => Op::Set { entity, path, value: Value::Int(rng.random_range(0..100)) },
        50..75 => Op::Remove { entity, path },
        _ => Op::Replace { entity, path, map: Arc::new(random_map(rng, 0)) },
    }
}

/// Up to seven batches of one to four operations at distinct, even stamps, after the creation of entity 0.
pub fn random_history(rng: &mut ChaCha8Rng, entities: u128) -> Vec<Round> {
    let mut stamps: Vec<u64> = (1..20).map(|n| 2 * n).collect();
    stamps.shuffle(rng);
    let mut rounds: Vec<Round> = stamps[..rng.random_range(1..=7)]
        .iter()
        .map(|&n| {
            let ops = (0..rng.random_range(1..=4))
                .map(|_| {
                    let which = entity(rng.random_range(0..entities));
                    match rng.random_range(0..40) {
                        0 if entities > 1 => Op::Delete { entity: which },
                        1..4 if entities > 1 => Op::Create { entity: which },
                        _ => random_op(rng, which),
                    }
                })
                .collect();
            Round { stamp: stamp(n), ops }
        })
        .collect();
    rounds.push(Round { stamp: stamp(stamps[8]), ops: vec![create()] });
    rounds
}

/// Keyed fragments as one replica hands them to another.
pub type Parcel = Vec<(SlotKey, SlotState)>;

pub fn drain(replica: &PlainReplica) -> Parcel {
    let changes = replica.drain().changes;
    changes.into_iter().map(|c| (replica.key(c.slot).unwrap(), c.state)).collect()
}

pub fn deliver(to: &PlainReplica, link: u64, parcel: &[(SlotKey, SlotState)]) {
    let states: Vec<_> = parcel.iter().map(|(k, s)| (to.resolve(k).unwrap(), s.clone())).collect();
    let applied = to.apply(LinkTag(link), &states, Vec::new());
    assert_eq!(applied.refused, Vec::new(), "a drained fragment is in normal form");
}

pub fn show(replica: &PlainReplica, which: EntityId) -> Option<Shown> {
    replica.show(which).as_ref().map(shown)
}

/// Everything canonical, one line a node, for comparison and for messages.
pub fn canonical(replica: &PlainReplica) -> String {
    let mut out = String::new();
    for (id, path, s) in replica.canonical() {
        let leaf = s.leaf.as_ref().map(|l| (l.stamp.hlc, shown(&l.value)));
        let (id, floor, kind) = (id.0.as_u128(), s.floor.hlc, s.kind.hlc);
        out += &format!("{id}:{path} leaf {leaf:?} floor {floor} kind {kind}\n");
    }
    out
}

/// A history in stamp order, one line a batch, for messages.
pub fn story(rounds: &[Round]) -> String {
    let mut rounds: Vec<&Round> = rounds.iter().collect();
    rounds.sort_by_key(|r| r.stamp);
    let mut out = String::new();
    for round in rounds {
        out += &format!("\n{}:", round.stamp.hlc);
        for op in &round.ops {
            let id = op.entity().0.as_u128();
            out += &match op {
                Op::Create { .. } => format!(" create {id};"),
                Op::Delete { .. } => format!(" delete {id};"),
                Op::Set { path, value, .. } => format!(" set {id}:{path}={:?};", shown(value)),
                Op::Remove { path, .. } => format!(" remove {id}:{path};"),
                Op::Replace { path, map, .. } => {
                    format!(" replace {id}:{path}={:?};", shown(&Value::Map(map.clone())))
                }
            };
        }
    }
    out
}
