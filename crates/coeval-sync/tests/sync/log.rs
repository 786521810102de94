//! The log: what is kept of it gives the replica back, and a slow or broken one harms nobody.
use crate::world::{MS, SEC, World, entity, fixed, path};
use bytes::Bytes;
use coeval_merge::{Op, PlainReplica, Replica};
use coeval_sync::{Config, Input, Notice, Replay};
use coeval_time::Incarnation;
use coeval_value::Value;
use proptest::prelude::*;
use rand::Rng;

type Logged = (u64, Option<u64>, Bytes);

/// A world of `count` programs in a row, the first of which logs.
fn logging(seed: u64, count: usize, config: Config) -> World {
    let mut world = World::new(seed, count, config);
    (1..count).for_each(|b| world.connect(b - 1, b));
    world.programs[0].engine.open_log();
    world.wake(0);
    world.run(SEC);
    world
}

/// What was handed to the log of program 0 from message `from` on is written and safe.
fn answer(world: &mut World, from: usize) -> usize {
    let logged: Vec<Logged> = world.programs[0].logged[from..].to_vec();
    for (file, durable, bytes) in &logged {
        world.step(0, Input::Logged { file: *file, bytes: bytes.len(), durable: *durable });
    }
    from + logged.len()
}

/// Answers until nothing more comes.
fn settle(world: &mut World, mut from: usize) -> usize {
    while from < world.programs[0].logged.len() {
        from = answer(world, from);
    }
    from
}

/// The replica that the newest whole file gives back, and the position of its last mark. A file is whole when it has a mark.
fn read_back(logged: &[Logged]) -> (PlainReplica, u64) {
    let replica = PlainReplica::new(Incarnation(9));
    let Some(file) = logged.iter().filter(|(_, mark, _)| mark.is_some()).map(|(file, ..)| *file).max() else {
        return (replica, 0);
    };
    let mut replay = Replay::new();
    let mut position = 0;
    for (_, mark, bytes) in logged.iter().filter(|(of, ..)| *of == file) {
        replay.message(&replica, bytes).expect("a message");
        position = mark.unwrap_or(position);
    }
    assert_eq!(replay.refused(), 0);
    replica.drain();
    (replica, position)
}

/// Small files and small windows, so that everything happens often.
fn tight() -> Config {
    Config { log_window: 600, log_floor: 3_000, log_factor: 2, page: 3, chunk: 100, ..fixed() }
}

#[test]
fn what_was_logged_gives_the_replica_back() {
    let mut files = 0;
    for seed in 0..60 {
        let mut world = logging(seed, 3, if seed.is_multiple_of(2) { tight() } else { fixed() });
        let mut answered = 0;
        for _ in 0..60 {
            (0..world.rng.random_range(0..4)).for_each(|_| world.random_write());
            let pause = world.rng.random_range(0..40 * MS);
            world.run(pause);
            if world.rng.random_range(0..3) > 0 {
                answered = answer(&mut world, answered);
            }
        }
        world.run(2 * SEC);
        settle(&mut world, answered);
        let (replica, position) = read_back(&world.programs[0].logged);
        let status = world.programs[0].engine.log_status().expect("a log");
        assert_eq!(status.durable, Some(position), "seed {seed}");
        assert_eq!(position, world.programs[0].replica.position(), "seed {seed}");
        files += status.files;
        world.programs[0].replica.drain();
        assert_eq!(replica.digest(), world.programs[0].replica.digest(), "seed {seed}");
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    assert!(files > 90, "{files} files of 60 logs: hardly one was followed by another");
}

/// Wherever the log ends, it gives back all of a batch or nothing, and never less than was told to be safe.
#[test]
fn wherever_the_log_ends_no_batch_is_torn() {
    for seed in 0..40 {
        let mut world = logging(seed, 2, tight());
        let e = entity(0);
        world.create(0, e);
        let mut answered = 0;
        for n in 0..40 {
            let who = world.rng.random_range(0..2);
            world.run(100 * MS);
            let set = |p: &str| Op::Set { entity: e, path: path(p), value: Value::UInt(n) };
            world.ops(who, [set("left"), set("mid/deep"), set("right")]);
            if world.rng.random_range(0..2) == 0 {
                answered = answer(&mut world, answered);
            }
        }
        let logged = world.programs[0].logged.clone();
        for end in 0..=logged.len() {
            let (replica, _) = read_back(&logged[..end]);
            let Some(Value::Map(shown)) = replica.show(e) else { continue };
            let at =
                |p: &str| shown.iter().find(|(key, _)| key.as_str() == p).map(|(_, value)| value.clone());
            assert_eq!(at("left"), at("right"), "seed {seed}, {end} messages");
            let deep = at("mid").map(|mid| format!("{mid:?}"));
            let flat = at("left").map(|left| format!("{left:?}"));
            assert!(deep.zip(flat).is_none_or(|(deep, flat)| deep.contains(&flat)), "seed {seed}, {end}");
        }
    }
}

/// A disk that takes nothing for a while costs one entry per changed slot, and neither writers nor links wait for it.
#[test]
fn a_log_that_lags_slows_nobody_and_takes_one_delta_later() {
    let mut world = logging(1, 2, Config { log_window: 2_000, ..fixed() });
    let answered = settle(&mut world, 0);
    (0..20).for_each(|n| world.create(0, entity(n)));
    for round in 0..300 {
        (0..20).for_each(|n| world.set(0, entity(n), "x", round));
        world.run(5 * MS);
    }
    world.run(SEC);
    assert_eq!(world.get(1, entity(19), "x"), Some(299), "the link goes on");
    let status = world.programs[0].engine.log_status().expect("a log");
    assert!(status.waiting <= 2 * 20 && status.waiting > 0, "{status:?}");
    let handed: usize = world.programs[0].logged[answered..].iter().map(|(.., bytes)| bytes.len()).sum();
    assert!(handed < 10_000, "{handed} bytes wait for the disk");
    settle(&mut world, answered);
    let (replica, _) = read_back(&world.programs[0].logged);
    world.programs[0].replica.drain();
    assert_eq!(replica.digest(), world.programs[0].replica.digest());
}

#[test]
fn a_log_that_failed_is_told_once_and_begins_a_new_file_until_it_works() {
    let mut world = logging(1, 2, fixed());
    let answered = settle(&mut world, 0);
    let safe = world.programs[0].engine.log_status().and_then(|status| status.durable);
    world.create(0, entity(1));
    world.run(100 * MS);
    for file in 1..4 {
        world.step(0, Input::LogFailed { file, reason: "full".into() });
        let status = world.programs[0].engine.log_status().expect("a log");
        assert_eq!((status.failing.as_deref(), status.failures, status.durable), (Some("full"), file, safe));
        world.set(0, entity(1), "x", file);
        world.run(2 * SEC);
        assert_eq!(world.get(1, entity(1), "x"), Some(file), "the link goes on");
    }
    assert_eq!(world.noticed(0, |notice| matches!(notice, Notice::LogFailed { .. })), 1);
    assert_eq!(world.noticed(0, |notice| matches!(notice, Notice::LogRestored)), 0);
    settle(&mut world, answered);
    let status = world.programs[0].engine.log_status().expect("a log");
    assert_eq!((status.failing, status.files), (None, 4));
    assert_eq!(world.noticed(0, |notice| matches!(notice, Notice::LogRestored)), 1);
    let (replica, position) = read_back(&world.programs[0].logged);
    assert_eq!(position, world.programs[0].replica.position());
    assert!(matches!(replica.show(entity(1)), Some(Value::Map(map)) if map.len() == 1));
}

/// What is parked is no part of the state: it is logged when it is due, and drags no one who reads the log back.
#[test]
fn what_is_parked_is_logged_when_it_is_due() {
    let mut world = logging(1, 2, fixed());
    world.create(1, entity(1));
    world.run(SEC);
    world.set_ahead(1, entity(1), "x", 5, 20 * SEC);
    world.run(5 * SEC);
    assert_eq!(world.programs[0].engine.parked(), 1);
    let newest = |world: &World| {
        let logged = &world.programs[0].logged;
        logged.iter().map(|(.., bytes)| Replay::newest_in(bytes).expect("a message").hlc).max()
    };
    assert!(newest(&world) < Some(world.wall_at(world.now)), "not before it is due");
    world.run(20 * SEC);
    let (replica, _) = read_back(&world.programs[0].logged);
    assert_eq!(
        format!("{:?}", replica.show(entity(1))),
        format!("{:?}", world.programs[0].replica.show(entity(1)))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Messages that are cut, changed, lost or doubled give an error or a replica, never a panic.
    #[test]
    fn a_garbled_log_is_refused_or_read(at in 0.0..1.0_f64, byte in 0.0..1.0_f64, flip in 1..=255_u8, what in 0..4) {
        let mut world = logging(3, 2, tight());
        for _ in 0..20 {
            world.random_write();
            world.run(30 * MS);
        }
        let mut messages: Vec<Vec<u8>> =
            world.programs[0].logged.iter().filter(|(file, ..)| *file == 1).map(|(.., b)| b.to_vec()).collect();
        let at = (messages.len() as f64 * at) as usize;
        let place = (messages[at].len() as f64 * byte) as usize;
        match what {
            0 => messages[at][place] ^= flip,
            1 => messages[at].truncate(place),
            2 => drop(messages.remove(at)),
            _ => messages.insert(at, messages[at].clone()),
        }
        let replica = PlainReplica::new(Incarnation(9));
        let mut replay = Replay::new();
        let read = messages.iter().try_for_each(|message| {
            Replay::newest_in(message).and_then(|_| replay.message(&replica, message))
        });
        prop_assert!(what < 3 || read.is_ok(), "a doubled message: {read:?}");
    }
}

#[test]
fn a_log_follows_to_another_world() {
    let mut world = logging(7, 2, fixed());
    world.create(0, entity(0));
    world.set(1, entity(0), "a", 1);
    world.run(SEC);
    let saved = world.content(0);
    world.set(0, entity(0), "a", 2);
    world.record(1, 5);
    world.run(SEC);
    let new = world.restore(1, &saved);
    world.run(2 * SEC);
    world.set(1, entity(0), "b", 3);
    world.run(SEC);
    world.converged().expect("one world");
    settle(&mut world, 0);
    let (replica, _) = read_back(&world.programs[0].logged);
    assert_eq!(replica.world(), new);
    assert_eq!(replica.digest(), world.programs[0].replica.digest());
}
