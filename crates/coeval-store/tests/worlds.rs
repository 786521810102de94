//! Going to another world: the store shows what the plain replica shows, handles go on, and nobody sees a mixture.
mod common;

use coeval_merge::{Content, LinkTag, PlainReplica, Replica, SlotId, SlotState, World};
use coeval_store::{ChangeKind, PathFilter, ReadError, Store, WatchFilter};
use coeval_time::{EditKind, Incarnation, Stamp, WallTime};
use coeval_value::{Path, Value};
use common::{Peer, SEC, START, entity, path};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicBool, Ordering};

fn next(replica: &dyn Replica, content: &Content) -> World {
    let number = replica.world().number + 1;
    let stamp = replica.issue(WallTime::from_nanos(START)).expect("a stamp");
    World { number, stamp, sim: content.sim, scale: content.scale }
}

fn slots(replica: &dyn Replica, world: &World, content: &Content) -> Vec<(SlotId, SlotState)> {
    let content = content.clone().moved(Content::CURRENT, world.epoch());
    let slot = |(key, state)| (replica.resolve(&key).expect("a slot"), state);
    content.states.into_iter().map(slot).collect()
}

fn restore(store: &Store, content: &Content) -> coeval_merge::Entered {
    let world = next(store, content);
    store.enter(world, slots(store, &world, content), Vec::new()).expect("a newer world")
}

#[test]
fn handles_go_on_and_those_of_what_is_gone_read_missing() {
    let peer = Peer::new(1);
    let store = &peer.store;
    let [ship, mine, late] = [1, 2, 3].map(entity);
    peer.create(ship);
    peer.create(mine);
    let x = store.param::<f64>(ship, &path("x")).expect("a handle");
    let text = store.param::<String>(ship, &path("text")).expect("a handle");
    let dead = store.param::<i64>(mine, &path("n")).expect("a handle");
    x.set(peer.sim(1.0), 1.0).expect("a write");
    text.set(peer.sim(1.0), "short".to_owned()).expect("a write");
    dead.set(peer.sim(1.0), 1).expect("a write");
    let saved = peer.at(2 * SEC).store.content();
    peer.at(5 * SEC);
    peer.create(late);
    x.set(peer.ctx(), 9.0).expect("a write");
    text.set(peer.ctx(), "long ".repeat(4_000)).expect("a write");
    let y = store.param::<i64>(ship, &path("y/z")).expect("a handle");
    y.set(peer.ctx(), 7).expect("a write");
    let gone = store.param::<i64>(late, &path("n")).expect("a handle");
    gone.set(peer.ctx(), 1).expect("a write");
    store.delete_entity(peer.ctx(), mine).expect("a deletion");
    let before = peer.ctx();
    let entered = restore(store, &saved);
    let now = peer.ctx();
    assert_eq!((now.sim, now.rate, now.generation), (saved.sim, 0.0, before.generation + 1));
    assert_eq!(x.read(now).expect("a value").value, 1.0);
    assert_eq!(text.read(now).expect("a value").value, "short");
    assert!(matches!(y.read(now), Err(ReadError::Missing { .. })));
    assert!(matches!(gone.read(now), Err(ReadError::Missing { .. })));
    assert!(!store.exists(late) && store.exists(mine));
    let again = store.param::<i64>(mine, &path("n")).expect("a handle");
    assert_eq!(again.read(now).expect("a value").value, 1);
    let fell: Vec<String> = entered.fallen.iter().map(|key| format!("{:?}", key.path)).collect();
    assert_eq!(fell.len(), 6, "x, text, y/z, n, and two entities: {fell:?}");
    // Writing goes on through the same handles, and is newer than anything before.
    let stamp = x.set(now, 2.0).expect("a write");
    assert!(stamp > store.world().stamp);
    y.set(now, 8).expect("a write");
    assert_eq!((x.read(now).expect("a value").value, y.read(now).expect("a value").value), (2.0, 8));
    assert_eq!(store.content().digest(), store.snapshot_content_digest());
}

trait Checked {
    fn snapshot_content_digest(&self) -> coeval_merge::Digest;
}

impl Checked for Store {
    /// The digest of a second replica that was given all this one holds.
    fn snapshot_content_digest(&self) -> coeval_merge::Digest {
        let content = self.content();
        let plain = PlainReplica::new(Incarnation(99));
        let epoch = self.world().epoch();
        let moved = content.clone().moved(Content::CURRENT, epoch);
        let states =
            moved.states.into_iter().map(|(key, state)| (plain.resolve(&key).expect("a slot"), state));
        plain.apply(LinkTag(1), &states.collect::<Vec<_>>(), Vec::new());
        plain.content(content.sim, content.scale, epoch).digest()
    }
}

#[test]
fn a_watch_tells_the_difference_between_two_worlds() {
    let peer = Peer::new(1);
    let store = &peer.store;
    let [stays, comes, goes] = [1, 2, 3].map(entity);
    let set = |e, p: &str, n: i64| store.set(peer.pass(SEC).ctx(), e, &path(p), n).expect("a write");
    for e in [stays, comes] {
        peer.create(e);
        set(e, "a", 1);
        set(e, "same", 1);
    }
    let saved = store.content();
    store.delete_entity(peer.ctx(), comes).expect("a deletion");
    peer.create(goes);
    set(goes, "a", 1);
    set(stays, "a", 2);
    set(stays, "new", 2);
    store.drain();
    let watch = store.watch(WatchFilter { entity: None, paths: PathFilter::All });
    watch.poll();
    restore(store, &saved);
    store.drain();
    let told: Vec<_> =
        watch.poll().changes.into_iter().map(|(key, kind)| (key.entity, key.path, kind)).collect();
    let at = |p: &str| Some::<Path>(path(p));
    let mut expected = vec![
        (stays, at("a"), ChangeKind::Changed),
        (stays, at("new"), ChangeKind::Removed),
        (comes, None, ChangeKind::Created),
        (comes, at("a"), ChangeKind::Created),
        (comes, at("same"), ChangeKind::Created),
        (goes, None, ChangeKind::Removed),
        (goes, at("a"), ChangeKind::Removed),
    ];
    expected.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let mut told = told;
    told.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    assert_eq!(told, expected);
}

/// Random histories and restores on a store and on the plain replica, with the same stamps: always the same digest.
#[test]
fn worlds_of_the_store_are_those_of_the_plain_replica() {
    for seed in 0..150 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let peer = Peer::new(1);
        let plain = PlainReplica::new(Incarnation(1));
        let mut saved: Vec<Content> = vec![peer.store.content()];
        for _ in 0..60 {
            peer.pass(SEC);
            match rng.random_range(0..12) {
                0 => saved.push(peer.store.content()),
                1 => {
                    let content = saved[rng.random_range(0..saved.len())].clone();
                    let world = next(&peer.store, &content);
                    let theirs = peer.store.enter(world, slots(&peer.store, &world, &content), Vec::new());
                    let ours = plain.enter(world, slots(&plain, &world, &content), Vec::new());
                    assert_eq!(
                        theirs.map(|e| sorted(e.fallen)),
                        ours.map(|e| sorted(e.fallen)),
                        "seed {seed}"
                    );
                }
                2 => {
                    _ = peer
                        .store
                        .edit_clock(&[EditKind::JumpBy(coeval_time::SimDuration::from_secs(9))], None)
                }
                _ => write(&mut rng, &peer),
            }
            let drained = peer.store.drain();
            let states = drained.changes.into_iter().map(|change| {
                let key = peer.store.key(change.slot).expect("own slot");
                (plain.resolve(&key).expect("a slot"), change.state)
            });
            let states: Vec<_> = states.collect();
            plain.apply(LinkTag(1), &states, drained.entries.into_iter().map(|(_, e)| e).collect());
            plain.drain();
            let now = peer.ctx();
            let (a, b) = (peer.store.content(), plain.content(now.sim, 1.0, now.epoch));
            assert_eq!(a.digest(), b.digest(), "seed {seed}");
            let sim = |replica: &dyn Replica| {
                replica.entity_digests(coeval_merge::bucket_of(coeval_value::SIM_ENTITY))
            };
            assert_eq!(sim(&plain).len().min(1), peer.store.entry_ids().len().min(1), "seed {seed}");
            let buckets = (peer.store.bucket_digests(), plain.bucket_digests());
            let others =
                (0..256).filter(|n| *n != usize::from(coeval_merge::bucket_of(coeval_value::SIM_ENTITY)));
            others.for_each(|n| assert_eq!(buckets.0[n], buckets.1[n], "seed {seed}, bucket {n}"));
        }
    }
}

fn sorted(mut keys: Vec<coeval_merge::SlotKey>) -> Vec<coeval_merge::SlotKey> {
    keys.sort();
    keys
}

fn write(rng: &mut ChaCha8Rng, peer: &Peer) {
    let e = entity(rng.random_range(1..5));
    let at = path(["a", "a/x", "b", "name"][rng.random_range(0..4)]);
    let context = peer.ctx();
    // Refusals are as good as any other outcome.
    match rng.random_range(0..10) {
        0..3 => _ = peer.store.create_entity(context, e, None),
        3 => _ = peer.store.delete_entity(context, e),
        4 => _ = peer.store.remove(context, e, &at),
        5 => _ = peer.store.set(context, e, &at, "text ".repeat(rng.random_range(1..300))),
        _ => _ = peer.store.set(context, e, &at, rng.random_range(0..100_i64)),
    }
}

/// While writers write and the world is changed again and again, a snapshot holds one world, a handle never misses what
/// both worlds hold, and no write of the new world is lost.
#[test]
fn readers_see_one_world_or_the_other_while_writers_race_with_the_switch() {
    let config = common::config(1, || WallTime::from_nanos(START));
    let store = Store::new(config).expect("a store");
    let names: Vec<Path> = (0..16).map(|n| path(&format!("k{n}"))).collect();
    let e = entity(1);
    store.create_entity(store.context(), e, None).expect("an entity");
    let world_of = |value: i64| {
        let mut batch = store.batch(store.context());
        names.iter().for_each(|name| _ = batch.set(e, name, value).expect("an op"));
        batch.commit().expect("a batch");
        store.content()
    };
    let worlds = [world_of(1), world_of(2)];
    let own = store.param::<i64>(e, &path("own")).expect("a handle");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let first = store.param::<i64>(e, &names[0]).expect("a handle");
            while !done.load(Ordering::Relaxed) {
                first.read(store.context()).expect("both worlds hold it");
                let shot = store.snapshot();
                let seen: Vec<Option<Value>> =
                    names.iter().map(|name| shot.leaf(e, name).map(|leaf| leaf.value.clone())).collect();
                assert!(
                    seen.windows(2).all(|pair| format!("{:?}", pair[0]) == format!("{:?}", pair[1])),
                    "{seen:?}"
                );
            }
        });
        let writer = scope.spawn(|| {
            let mut last = Stamp::NONE;
            for n in 0..20_000 {
                last = own.set(store.context(), n).expect("a write");
            }
            last
        });
        for n in 0..300 {
            restore(&store, &worlds[n % 2]);
            store.drain();
        }
        let last = writer.join().expect("the writer");
        if last > store.world().stamp {
            assert_eq!(own.read(store.context()).expect("a write of this world").stamp, last);
        }
        done.store(true, Ordering::Relaxed);
    });
    store.drain();
    assert_eq!(store.content().digest(), store.snapshot_content_digest());
}
