//! Many threads at once: no torn value, no stamp that goes back, no half batch, and replicas that end equal.
mod common;

use coeval_merge::{LinkTag, Replica};
use coeval_store::{ChangeKind, Param, PathFilter, ReadError, Snapshot, Store, Watch, WatchFilter};
use coeval_time::{Stamp, WallTime};
use coeval_value::{EntityId, Path, Value};
use common::{config, deliver, entity, path};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn store(incarnation: u64) -> Store {
    let ticks = AtomicU64::new(common::START);
    Store::new(config(incarnation, move || WallTime::from_nanos(ticks.fetch_add(7, Ordering::Relaxed))))
        .expect("store")
}

/// Runs `work` on each of the threads until the time is over.
fn hammer(millis: u64, threads: &[&(dyn Fn(&AtomicBool) + Sync)]) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for work in threads {
            let stop = &stop;
            scope.spawn(move || work(stop));
        }
        thread::sleep(Duration::from_millis(millis));
        stop.store(true, Ordering::Relaxed);
    });
}

fn until(stop: &AtomicBool, mut step: impl FnMut()) {
    while !stop.load(Ordering::Relaxed) {
        step();
    }
}

fn exchange(a: &Store, b: &Store) {
    for (from, to) in [(a, b), (b, a)] {
        deliver(from, &from.drain(), to);
    }
}

fn settle(a: &Store, b: &Store) {
    (0..20).for_each(|_| exchange(a, b));
    assert_eq!(a.snapshot(), b.snapshot());
    assert_eq!(a.digest(), b.digest());
    assert_eq!(a.snapshot().digest(), a.digest());
}

#[test]
fn readers_see_whole_values_and_stamps_never_go_back() {
    let (a, b) = (store(2), store(3));
    let ctx = a.context();
    a.create_entity(ctx, entity(1), None).expect("create");
    a.set(ctx, entity(1), &path("v"), [0.0; 4]).expect("write");
    exchange(&a, &b);
    let write = |store: &Store, stop: &AtomicBool, heap: bool| {
        let v: Param<Value> = store.param(entity(1), &path("v")).expect("param");
        let mut n = 0.0;
        // Later than all that is written here, so that the newest is read.
        let late = store.clock().context(WallTime::from_nanos(common::START + 1_000_000_000_000));
        until(stop, || {
            n += 1.0;
            let value: Value = match heap && (n as u64).is_multiple_of(3) {
                true => Value::Floats(vec![n; 100].into()),
                false => [n; 4].into(),
            };
            let at = v.set(store.context(), value).expect("write");
            assert!(v.read(late).expect("own").stamp >= at, "read your writes");
        });
    };
    let read = |store: &Store, stop: &AtomicBool| {
        let v: Param<Value> = store.param(entity(1), &path("v")).expect("param");
        let ctx = store.clock().context(WallTime::from_nanos(common::START + 1_000_000_000_000));
        let mut last = Stamp::NONE;
        until(stop, || {
            let read = v.read(ctx).expect("there");
            assert!(read.stamp >= last, "{:?} after {last:?}", read.stamp);
            last = read.stamp;
            match read.value {
                Value::Vec4(v) => assert!(v.iter().all(|&x| x == v[0]), "torn: {v:?}"),
                Value::Floats(v) => assert!(v.iter().all(|&x| x == v[0]), "torn"),
                other => panic!("{other:?}"),
            }
        });
    };
    hammer(
        700,
        &[
            &|stop| write(&a, stop, true),
            &|stop| write(&b, stop, false),
            &|stop| read(&a, stop),
            &|stop| read(&b, stop),
            &|stop| until(stop, || exchange(&a, &b)),
        ],
    );
    settle(&a, &b);
}

/// Both keys of the pair, wherever they are shown, come from one batch.
fn whole(snapshot: &Snapshot, n: u128) {
    let Some(view) = snapshot.entity(entity(n)) else { return };
    let stamps = ["p/one", "q/two"].map(|key| view.leaf(&path(key)).map(|leaf| leaf.stamp));
    assert_eq!(stamps[0], stamps[1], "half a batch");
}

#[test]
fn snapshots_and_receivers_see_whole_batches() {
    let (a, b) = (store(2), store(3));
    a.create_entity(a.context(), entity(1), None).expect("create");
    exchange(&a, &b);
    let batches = |store: &Store, stop: &AtomicBool, seed: u64| {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        until(stop, || {
            let mut batch = store.batch(store.context());
            if rng.random_bool(0.2) {
                batch
                    .remove(entity(1), &path("p"))
                    .and_then(|b| b.remove(entity(1), &path("q")))
                    .expect("batch");
            } else {
                let n: i64 = rng.random();
                batch
                    .set(entity(1), &path("p/one"), n)
                    .and_then(|b| b.set(entity(1), &path("q/two"), n))
                    .expect("batch");
            }
            batch.commit().expect("commit");
        });
    };
    hammer(
        700,
        &[
            &|stop| batches(&a, stop, 1),
            &|stop| batches(&a, stop, 2),
            &|stop| batches(&b, stop, 3),
            &|stop| until(stop, || whole(&a.snapshot(), 1)),
            &|stop| until(stop, || whole(&b.snapshot(), 1)),
            &|stop| until(stop, || exchange(&a, &b)),
        ],
    );
    settle(&a, &b);
    whole(&a.snapshot(), 1);
}

#[test]
fn a_drain_takes_whole_batches() {
    let (a, b) = (store(2), store(3));
    (1..=2).for_each(|n| _ = a.create_entity(a.context(), entity(n), None).expect("create"));
    exchange(&a, &b);
    let keys: Vec<(EntityId, Path)> = (0..16).map(|n| (entity(1 + n % 2), path(&format!("k{n}")))).collect();
    let batches = |stop: &AtomicBool| {
        until(stop, || {
            let mut batch = a.batch(a.context());
            keys.iter().for_each(|(id, key)| _ = batch.set(*id, key, 1).expect("small"));
            batch.commit().expect("commit");
        });
    };
    let drains = |stop: &AtomicBool| {
        until(stop, || {
            let drained = a.drain();
            let stamps: BTreeSet<Stamp> =
                drained.changes.iter().map(|change| change.state.newest()).collect();
            assert!(stamps.len() <= 1, "two batches in one drain of a key each: {stamps:?}");
            assert!(drained.changes.is_empty() || drained.changes.len() == keys.len(), "half a batch");
            deliver(&a, &drained, &b);
        });
    };
    hammer(400, &[&batches, &drains]);
    assert!(a.position() > 1);
    whole_keys(&b.snapshot(), &keys);
}

/// All keys come from one batch.
fn whole_keys(snapshot: &Snapshot, keys: &[(EntityId, Path)]) {
    let stamps = keys.iter().map(|(id, key)| snapshot.leaf(*id, key).map(|leaf| leaf.stamp));
    let stamps: BTreeSet<Option<Stamp>> = stamps.collect();
    assert_eq!(stamps.len(), 1, "half a batch: {stamps:?}");
}

#[test]
fn structure_and_fast_writes_race_and_replicas_end_equal() {
    for seed in 0..3u64 {
        let (a, b) = (store(2), store(3));
        (1..=4).for_each(|n| _ = a.create_entity(a.context(), entity(n), None).expect("create"));
        exchange(&a, &b);
        let keys = ["a", "a/k", "a/k/z", "b", "name"].map(path);
        let some = |rng: &mut ChaCha8Rng| -> (EntityId, usize) {
            (entity(rng.random_range(1..=4)), rng.random_range(0..5))
        };
        let fast = |store: &Store, stop: &AtomicBool, salt: u64| {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed * 100 + salt);
            until(stop, || {
                let (id, key) = some(rng);
                let Ok(handle) = store.param::<f64>(id, &keys[key]) else { return };
                for _ in 0..rng.random_range(1..30) {
                    _ = handle.set(store.context(), rng.random());
                    _ = handle.get(store.context());
                }
            });
        };
        let slow = |store: &Store, stop: &AtomicBool, salt: u64| {
            let rng = &mut ChaCha8Rng::seed_from_u64(seed * 100 + salt);
            until(stop, || {
                let (id, key) = some(rng);
                match rng.random_range(0..200) {
                    0 => _ = store.delete_entity(store.context(), entity(rng.random_range(2..=4))),
                    1..100 => _ = store.remove(store.context(), id, &keys[key]),
                    100..150 => _ = store.set(store.context(), id, &keys[key], "a text"),
                    _ => _ = store.entity_map(store.context(), id),
                }
            });
        };
        hammer(
            250,
            &[
                &|stop| fast(&a, stop, 1),
                &|stop| fast(&b, stop, 2),
                &|stop| slow(&a, stop, 3),
                &|stop| slow(&b, stop, 4),
                &|stop| until(stop, || exchange(&a, &b)),
            ],
        );
        settle(&a, &b);
        assert!(a.exists(entity(1)), "seed {seed}");
    }
}

#[test]
fn many_threads_making_the_same_name_make_one() {
    let a = Arc::new(store(2));
    for round in 0..20u128 {
        let made: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let a = &a;
                    let name = format!("n{round}");
                    scope.spawn(move || {
                        a.create_entity(a.context(), entity(100 + round * 4 + n), Some(&name)).is_ok()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| usize::from(thread.join().expect("thread"))).sum()
        });
        assert_eq!(made, 1, "round {round}");
    }
    assert!(a.poll_events().is_empty());
    assert_eq!(a.apply(LinkTag(1), &[], Vec::new()).changed, 0);
}

/// How many entities are deleted under their handles.
const DELETIONS: u64 = 60;

/// Stops the others when its thread panics: nobody then waits for what never comes.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// How far a race of deletions is. No entity is deleted before all holders have a handle of it, so that each handle
/// meets its deletion, however the threads are scheduled.
#[derive(Default)]
struct Deletions {
    stop: AtomicBool,
    /// Newest entity that both stores have.
    made: AtomicU64,
    /// Handles that were resolved.
    held: AtomicU64,
    /// Newest entity whose deletion both stores have.
    gone: AtomicU64,
    /// Exchanges done.
    exchanges: AtomicU64,
}

impl Deletions {
    /// Waits until `what` is at least `number`; whether it came to that.
    fn wait(&self, what: &AtomicU64, number: u64) -> bool {
        while what.load(Ordering::Acquire) < number {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            thread::yield_now();
        }
        true
    }

    /// Waits for one whole exchange: the one under way may have begun before the last write.
    fn wait_for_exchange(&self) -> bool {
        self.wait(&self.exchanges, self.exchanges.load(Ordering::Acquire) + 2)
    }
}

/// Resolves a handle of each entity, uses it until it is deleted, and goes on using it after that.
fn hold(store: &Store, race: &Deletions, seed: u64) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut dead: Vec<(EntityId, Param<i64>)> = Vec::new();
    for n in 1..=DELETIONS {
        if !race.wait(&race.made, n) {
            return;
        }
        let id = entity(n.into());
        let handle = store.param::<i64>(id, &path("v")).expect("not deleted before it is held");
        race.held.fetch_add(1, Ordering::Release);
        loop {
            let gone = race.gone.load(Ordering::Acquire) >= n;
            _ = handle.set(store.context(), rng.random());
            if matches!(handle.get(store.context()), Err(ReadError::Deleted { .. })) {
                break;
            }
            assert!(!gone, "its entity is deleted, and a handle lives");
            if race.stop.load(Ordering::Relaxed) {
                return;
            }
        }
        dead.push((id, handle));
        stays_deleted(store, &dead[dead.len() - 1]);
        stays_deleted(store, &dead[rng.random_range(0..dead.len())]);
    }
    dead.iter().for_each(|held| stays_deleted(store, held));
}

fn stays_deleted(store: &Store, (id, handle): &(EntityId, Param<i64>)) {
    assert!(!store.exists(*id), "a handle says that it was deleted, the store that it exists");
    assert!(handle.set(store.context(), 7).is_err(), "a write to what is deleted");
    let again = handle.get(store.context());
    assert!(matches!(again, Err(ReadError::Deleted { .. })), "deleted, then {again:?}");
    assert!(store.param::<i64>(*id, &path("v")).is_err(), "a new handle to what is deleted");
}

/// Makes entities at `a`, one after another, and deletes each at `b` when `holders` hold it.
fn make_and_delete(
    a: &Store,
    b: &Store,
    race: &Deletions,
    holders: u64,
    deleted: &Mutex<BTreeSet<EntityId>>,
) {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    for n in 1..=DELETIONS {
        let id = entity(n.into());
        a.create_entity(a.context(), id, None).expect("create");
        a.set(a.context(), id, &path("v"), 1).expect("write");
        if !race.wait_for_exchange() {
            return;
        }
        race.made.store(n, Ordering::Release);
        if !race.wait(&race.held, n * holders) {
            return;
        }
        (0..rng.random_range(0..5_000)).for_each(|_| std::hint::spin_loop());
        b.delete_entity(b.context(), id).expect("delete");
        deleted.lock().expect("no panic").insert(id);
        if !race.wait_for_exchange() {
            return;
        }
        race.gone.store(n, Ordering::Release);
    }
}

/// Follows a watch: each entity comes once and goes once. Those that are there at the end.
fn follow(watch: &Watch, there: &mut BTreeSet<EntityId>, gone: &mut BTreeSet<EntityId>) {
    let polled = watch.poll();
    assert!(!polled.overflowed);
    for (key, kind) in polled.changes.into_iter().filter(|(key, _)| key.path.is_none()) {
        match kind {
            ChangeKind::Created => {
                assert!(!gone.contains(&key.entity), "told of again after it was gone");
                assert!(there.insert(key.entity), "told of twice");
            }
            ChangeKind::Removed => {
                assert!(there.remove(&key.entity), "went without having come");
                gone.insert(key.entity);
            }
            ChangeKind::Changed => {}
        }
    }
}

#[test]
fn handles_held_while_their_entities_are_deleted_never_come_back() {
    let (a, b) = (store(2), store(3));
    let race = Deletions::default();
    let deleted = Mutex::new(BTreeSet::new());
    let watch = b.watch(WatchFilter { entity: None, paths: PathFilter::All });
    let ends = Mutex::new((BTreeSet::new(), BTreeSet::new()));
    let look = || {
        let before = deleted.lock().expect("no panic").clone();
        let snapshot = b.snapshot();
        assert!(before.iter().all(|id| snapshot.entity(*id).is_none()), "deleted, and in a snapshot");
    };
    let watching = || {
        let (there, gone) = &mut *ends.lock().expect("no panic");
        follow(&watch, there, gone);
    };
    let exchanging = || {
        exchange(&a, &b);
        race.exchanges.fetch_add(1, Ordering::Release);
    };
    let director = || make_and_delete(&a, &b, &race, 2, &deleted);
    let actors: [&(dyn Fn() + Sync); 3] = [&director, &|| hold(&a, &race, 1), &|| hold(&b, &race, 2)];
    let background: [&(dyn Fn() + Sync); 3] = [&look, &watching, &exchanging];
    thread::scope(|scope| {
        let race = &race;
        for step in background {
            scope.spawn(move || {
                let _guard = StopOnPanic(&race.stop);
                until(&race.stop, step);
            });
        }
        let actors = actors.map(|act| {
            scope.spawn(move || {
                let _guard = StopOnPanic(&race.stop);
                act();
            })
        });
        let ended = actors.map(|actor| actor.join());
        race.stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
    assert_eq!(race.gone.into_inner(), DELETIONS);
    settle(&a, &b);
    let (mut there, mut gone) = ends.into_inner().expect("no panic");
    follow(&watch, &mut there, &mut gone);
    let living: BTreeSet<EntityId> = b.snapshot().entities().map(|(id, _)| id).collect();
    assert_eq!(there, living);
    assert!(deleted.into_inner().expect("no panic").is_disjoint(&living));
}
