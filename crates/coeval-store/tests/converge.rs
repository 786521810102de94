//! Random histories over three stores, delivered in any order and more than once: all show what replaying the batches
//! in stamp order shows.
mod common;

use coeval_merge::{Batch, Drained, Op, Replica};
use coeval_store::Param;
use coeval_time::{Stamp, WallTime};
use coeval_value::{EntityId, Key, Motion, Path, Value};
use common::{Peer, SEC, START, deliver, entity, path, settle};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const SEEDS: u64 = 300;
const KEYS: [&str; 3] = ["a", "b", "name"];

type Map = BTreeMap<Key, Value>;
/// Batches by stamp: operations in program order.
type Log = BTreeMap<Stamp, Vec<Op>>;

/// The rule, literally: replay in stamp order on an empty tree, entity deletions first.
fn replay(log: &Log) -> BTreeMap<EntityId, Map> {
    let mut worlds: BTreeMap<EntityId, Map> = BTreeMap::new();
    let mut created = BTreeMap::new();
    let mut deleted = Vec::new();
    for op in log.values().flatten() {
        let map = worlds.entry(op.entity()).or_default();
        match op {
            Op::Create { entity } => _ = created.insert(*entity, ()),
            Op::Delete { entity } => deleted.push(*entity),
            Op::Set { path, value, .. } => put(map, path.keys(), value.clone()),
            Op::Replace { path, map: new, .. } => put(map, path.keys(), Value::Map(Arc::clone(new))),
            Op::Remove { path, .. } => remove(map, path.keys()),
        }
    }
    worlds.retain(|id, _| created.contains_key(id) && !deleted.contains(id));
    worlds
}

fn put(map: &mut Map, keys: &[Key], value: Value) {
    let (first, rest) = keys.split_first().expect("a key");
    if rest.is_empty() {
        map.insert(first.clone(), value);
        return;
    }
    let mut inner = match map.get(first) {
        Some(Value::Map(inner)) => Map::clone(inner),
        _ => Map::new(),
    };
    put(&mut inner, rest, value);
    map.insert(first.clone(), Value::Map(Arc::new(inner)));
}

fn remove(map: &mut Map, keys: &[Key]) {
    let (first, rest) = keys.split_first().expect("a key");
    if rest.is_empty() {
        map.remove(first);
    } else if let Some(Value::Map(inner)) = map.get(first) {
        let mut inner = Map::clone(inner);
        remove(&mut inner, rest);
        map.insert(first.clone(), Value::Map(Arc::new(inner)));
    }
}

fn random_path(rng: &mut ChaCha8Rng) -> Path {
    let depth = rng.random_range(1..=3);
    Path::new((0..depth).map(|_| Key::new(KEYS.choose(rng).expect("keys")).expect("key"))).expect("path")
}

/// Values of every width, on the heap and off it.
fn random_value(rng: &mut ChaCha8Rng, depth: u32) -> Value {
    let n = rng.random_range(0..1000);
    match rng.random_range(0..7) {
        0 => Value::Int(n),
        1 => Value::from(format!("text {n}").as_str()),
        2 => Value::Vec3([n as f64; 3]),
        3 => Value::Motion(Box::new(Motion { position: Some([n as f64; 3]), ..Motion::default() })),
        4 => Value::Bool(n % 2 == 0),
        5 => Value::Floats([n as f64, -0.0].into()),
        _ if depth == 0 => Value::Nil,
        _ => {
            let keys = KEYS.iter().filter(|_| rng.random_bool(0.5)).collect::<Vec<_>>();
            Value::map(
                keys.into_iter().map(|key| (Key::new(key).expect("key"), random_value(rng, depth - 1))),
            )
        }
    }
}

fn random_op(rng: &mut ChaCha8Rng, id: EntityId) -> Op {
    match rng.random_range(0..10) {
        0..7 => Op::Set { entity: id, path: random_path(rng), value: random_value(rng, 2) },
        _ => Op::Remove { entity: id, path: random_path(rng) },
    }
}

/// One local write by one of the many ways there are; logs it if it was taken.
fn write(rng: &mut ChaCha8Rng, peer: &Peer, handles: &mut Vec<Param<Value>>, log: &mut Log) {
    let (store, ctx) = (&peer.store, peer.ctx());
    let id = entity(rng.random_range(1..=3));
    let single = |op: &Op| match op.clone() {
        Op::Set { entity, path, value } => store.set(ctx, entity, &path, value),
        Op::Remove { entity, path } => store.remove(ctx, entity, &path),
        Op::Create { entity } => store.create_entity(ctx, entity, None),
        Op::Delete { entity } => store.delete_entity(ctx, entity),
        Op::Replace { .. } => unreachable!("written as a set"),
    };
    let (ops, stamp) = match rng.random_range(0..20) {
        0..4 => (vec![Op::Create { entity: id }], single(&Op::Create { entity: id })),
        4 if rng.random_bool(0.2) => (vec![Op::Delete { entity: id }], single(&Op::Delete { entity: id })),
        4..8 => {
            let ops: Vec<Op> = (0..rng.random_range(2..5)).map(|_| random_op(rng, id)).collect();
            let mut batch = store.batch(ctx);
            for op in &ops {
                match op {
                    Op::Set { entity, path, value } => {
                        _ = batch.set(*entity, path, value.clone()).expect("small")
                    }
                    Op::Remove { entity, path } => _ = batch.remove(*entity, path).expect("remove"),
                    other => unreachable!("{other:?}"),
                }
            }
            (ops, batch.commit())
        }
        8..12 if !handles.is_empty() => {
            let handle = handles.choose(rng).expect("some");
            let value = random_value(rng, 1);
            let op = Op::Set { entity: handle.entity(), path: handle.path().clone(), value: value.clone() };
            (vec![op], handle.set(ctx, value))
        }
        12 => {
            handles.extend(store.param(id, &random_path(rng)));
            return;
        }
        _ => {
            let op = random_op(rng, id);
            let stamp = single(&op);
            (vec![op], stamp)
        }
    };
    if let Ok(stamp) = stamp {
        assert!(log.insert(stamp, ops).is_none(), "a stamp was issued twice");
    }
}

fn history(seed: u64) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let peers = [2, 3, 4].map(Peer::new);
    let mut handles = [Vec::new(), Vec::new(), Vec::new()];
    let mut log = Log::new();
    let mut wire: Vec<(usize, usize, Arc<Drained>)> = Vec::new();
    for _ in 0..rng.random_range(5..120) {
        let who = rng.random_range(0..3);
        peers[who].pass(rng.random_range(0..3));
        if rng.random_bool(0.7) {
            write(rng, &peers[who], &mut handles[who], &mut log);
            continue;
        }
        let drained = Arc::new(peers[who].store.drain());
        wire.extend((0..3).filter(|&to| to != who).map(|to| (who, to, Arc::clone(&drained))));
        wire.shuffle(rng);
        for _ in 0..rng.random_range(0..4) {
            let again = rng.random_bool(0.2);
            if let Some((from, to, drained)) = if again { wire.last().cloned() } else { wire.pop() } {
                deliver(&peers[from].store, &drained, &peers[to].store);
            }
        }
    }
    for (from, to, drained) in wire {
        deliver(&peers[from].store, &drained, &peers[to].store);
    }
    let [a, b, c] = &peers;
    settle(&[a, b, c]);
    check(seed, &peers, &log);
}

fn check(seed: u64, peers: &[Peer; 3], log: &Log) {
    let want = replay(log);
    let digest = peers[0].store.digest();
    let snapshot = peers[0].store.snapshot();
    assert_eq!(snapshot.digest(), digest, "seed {seed}: the digest kept differs from the one summed up");
    for (n, peer) in peers.iter().enumerate() {
        // Far ahead of every sample, so that the newest counts.
        let ctx = peer.store.clock().context(WallTime::from_nanos(START + 1000 * SEC));
        for id in (1..=3).map(entity) {
            let want = want.get(&id).map(|map| Value::Map(Arc::new(map.clone())));
            assert_eq!(peer.store.entity_map(ctx, id), want, "seed {seed}, peer {n}, log {log:#?}");
        }
        assert_eq!(peer.store.digest(), digest, "seed {seed}, peer {n}: digest");
        assert_eq!(peer.store.snapshot(), snapshot, "seed {seed}, peer {n}: snapshot");
        assert_eq!(sum(&peer.store.bucket_digests()), digest, "seed {seed}: buckets");
        let entities = (0..=255).flat_map(|bucket| peer.store.entity_digests(bucket));
        assert_eq!(sum(&entities.map(|(_, d)| d).collect::<Vec<_>>()), digest, "seed {seed}: entities");
    }
}

fn sum(digests: &[coeval_merge::Digest]) -> coeval_merge::Digest {
    digests.iter().fold(Default::default(), |sum: coeval_merge::Digest, &d| sum.plus(d))
}

#[test]
fn all_replicas_show_what_replaying_in_stamp_order_shows() {
    (0..SEEDS).for_each(history);
}

#[test]
fn a_newcomer_that_scans_and_then_drains_misses_nothing() {
    for seed in 0..40 {
        let rng = &mut ChaCha8Rng::seed_from_u64(1_000 + seed);
        let (old, new) = (Peer::new(2), Peer::new(3));
        let (mut handles, mut log) = (Vec::new(), Log::new());
        let mut write_some = |count| {
            (0..count).for_each(|_| {
                old.pass(1);
                write(rng, &old, &mut handles, &mut log);
            })
        };
        write_some(40);
        old.store.drain();
        write_some(5);
        let position = old.store.position();
        let mut from = Some(coeval_merge::SlotId(0));
        while let Some(at) = from {
            let page = old.store.scan(at, 0, 3);
            let keyed =
                page.states.into_iter().map(|(slot, state)| (old.store.key(slot).expect("own"), state));
            let states: Vec<_> =
                keyed.map(|(key, state)| (new.store.resolve(&key).expect("room"), state)).collect();
            new.store.apply(coeval_merge::LinkTag(1), &states, Vec::new());
            write_some(2);
            from = page.next;
        }
        assert_eq!(old.store.position(), position);
        old.send(&new);
        new.store.drain();
        assert_eq!(old.store.snapshot(), new.store.snapshot(), "seed {seed}");
        assert_eq!(old.store.digest(), new.store.digest(), "seed {seed}");
    }
}

#[test]
fn a_peer_with_the_same_config_starts_with_the_same_digest() {
    let ops = |reverse: bool| {
        let id = entity(1);
        let mut ops = vec![
            Op::Create { entity: id },
            Op::Set { entity: id, path: path("name"), value: "probe".into() },
            Op::Set { entity: id, path: path("mass"), value: Value::Float(3.5) },
        ];
        if reverse {
            ops.reverse();
        }
        ops
    };
    let (a, b) = (Peer::new(2), Peer::new(3));
    a.store.apply_genesis(ops(false), Default::default()).expect("genesis");
    b.store.apply_genesis(ops(true), Default::default()).expect("genesis");
    a.store.set(a.ctx(), entity(1), &path("mass"), 4.0).expect("write");
    settle(&[&a, &b]);
    assert_eq!(a.store.digest(), b.store.digest());
    assert_ne!(a.store.digest(), coeval_merge::Digest::ZERO);
    // A parse that comes late overwrites nothing.
    b.store.apply_genesis(ops(false), Default::default()).expect("genesis");
    assert_eq!(b.store.get(b.ctx(), entity(1), &path("mass")), Ok(Value::Float(4.0)));
    assert_eq!(b.store.entity_named("probe"), Ok(entity(1)));
    assert!(Batch::new().is_empty());
}
