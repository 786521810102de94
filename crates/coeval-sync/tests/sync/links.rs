//! Links: what a receiver gets when it comes, comes back, or does not read.
use crate::world::{MS, Program, SEC, World, entity, fixed, node, path};
use coeval_merge::{Op, Replica};
use coeval_sync::{CloseReason, Config, Notice, PeerState};
use coeval_value::{EntityId, Value};
use rand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// `count` entities with `keys` values each, written at program 0.
fn fill(world: &mut World, count: u64, keys: u64) {
    for e in 0..count {
        world.create(0, entity(e));
        for k in 0..keys {
            world.set(0, entity(e), &format!("k{k}"), k);
        }
    }
}

fn caught_up(world: &World, n: usize) -> usize {
    world.noticed(n, |notice| matches!(notice, Notice::CaughtUp { .. }))
}

#[test]
fn empty_receiver_gets_everything_whatever_the_cursor() {
    for incarnation in [101, 777] {
        let mut world = World::new(1, 2, fixed());
        fill(&mut world, 40, 3);
        world.connect(0, 1);
        world.run(2 * SEC);
        world.kill(1);
        world.run(SEC);
        world.set(0, entity(1), "k1", 99);
        // The same node or another: in any case it holds nothing, while the sender remembers the link.
        world.open(1, incarnation, false);
        world.connect(0, 1);
        world.run(800 * MS);
        world.converged().expect("all of it");
        assert_eq!(world.get(1, entity(1), "k1"), Some(99));
        assert_eq!(world.get(1, entity(39), "k2"), Some(2));
        assert_eq!(caught_up(&world, 1), 1);
    }
}

#[test]
fn joiner_misses_nothing_while_writes_go_on() {
    for seed in 0..20 {
        let config = Config { window: 4 << 10, chunk: 1 << 10, page: 16, ..fixed() };
        let mut world = World::new(seed, 2, config);
        fill(&mut world, 60, 10);
        world.connect(0, 1);
        let mut value = 1000;
        while caught_up(&world, 1) == 0 {
            value += 1;
            let (e, k) = (world.rng.random_range(0..60), world.rng.random_range(0..10));
            world.set(0, entity(e), &format!("k{k}"), value);
            world.run(2 * MS);
            assert!(value < 20_000, "seed {seed}: never caught up");
        }
        world.run(900 * MS);
        assert_eq!(world.programs[0].replica.digest(), world.programs[1].replica.digest(), "seed {seed}");
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(world.kind(10), 0, "seed {seed}: nothing was left to repair");
    }
}

#[test]
fn known_cursor_resumes_with_what_follows() {
    let mut world = World::new(3, 2, fixed());
    fill(&mut world, 50, 10);
    world.connect(0, 1);
    world.run(2 * SEC);
    let received = |world: &World| world.programs[1].engine.peers()[0].stats.received_updates;
    let before = received(&world);
    assert!(before >= 550);
    for wire in world.wires_between(0, 1) {
        world.reset(wire);
    }
    (0..3).for_each(|k| world.set(0, entity(k), "k0", 77));
    world.run(SEC);
    world.connect(1, 0);
    world.run(SEC);
    world.converged().expect("resumed");
    assert!(received(&world) - before <= 6, "{} sent again", received(&world) - before);
    assert_eq!(world.kind(8), 0, "no digest narrowing");
    assert_eq!(caught_up(&world, 1), 2);
}

#[test]
fn unknown_cursor_and_much_in_common_sends_the_difference_only() {
    let mut world = World::new(4, 2, fixed());
    fill(&mut world, 50, 10);
    // The other program parsed the same config: it holds the same, with the same stamps, and something of its own.
    for (stamp, batch, meta) in world.log.clone() {
        world.programs[1].replica.replay(&batch, stamp, meta);
    }
    world.create(1, entity(70));
    world.set(1, entity(70), "own", 5);
    world.set(0, entity(7), "k3", 5);
    world.run(SEC);
    world.connect(0, 1);
    world.run(SEC);
    world.converged().expect("both hold both");
    assert_eq!(world.get(0, entity(70), "own"), Some(5));
    assert_eq!(world.get(1, entity(7), "k3"), Some(5));
    for n in 0..2 {
        assert_eq!(caught_up(&world, n), 1, "program {n}");
        let stats = world.programs[n].engine.peers()[0].stats;
        assert!(stats.received_updates <= 12, "program {n} was sent {} fragments", stats.received_updates);
    }
}

#[test]
fn slow_consumer_costs_one_entry_per_key_and_slows_no_one() {
    const KEYS: u64 = 300;
    let config = Config { window: 16 << 10, ..fixed() };
    let mut world = World::new(5, 3, config.clone());
    fill(&mut world, 1, KEYS);
    world.connect(0, 1);
    world.connect(0, 2);
    world.run(3 * SEC);
    world.programs[2].reading = false;
    for round in 0..100 {
        for k in 0..KEYS {
            world.set(0, entity(0), &format!("k{k}"), 1_000_000 + round * KEYS + k);
        }
        world.run(60 * MS);
        // The other one has it within its delay, and the slow one costs no more than its window and a set of numbers.
        assert_eq!(world.get(1, entity(0), "k5"), Some(1_000_000 + round * KEYS + 5), "round {round}");
        let peers = world.programs[0].engine.peers();
        let slow = peers.iter().find(|p| p.node == world.programs[2].id).expect("still linked");
        assert!(slow.waiting as u64 <= KEYS + 2, "{} waiting", slow.waiting);
        assert!(slow.in_flight < config.window * 3, "{} bytes in flight", slow.in_flight);
        assert!(round < 10 || slow.state == PeerState::Lagging, "round {round}: {:?}", slow.state);
    }
    let peers = world.programs[0].engine.peers();
    let slow = peers.iter().find(|p| p.node == world.programs[2].id).expect("still linked");
    assert!(slow.stats.conflated > 80 * KEYS, "{} conflated", slow.stats.conflated);
    world.resume(2);
    world.run(SEC);
    assert_eq!(world.get(2, entity(0), "k299"), Some(1_000_000 + 99 * KEYS + 299));
    world.converged().expect("caught up");
}

/// In every program both halves of what a batch wrote are there, or neither is.
fn halves(program: &Program) {
    for e in [0, 1] {
        let Some(Value::Map(map)) = program.replica.show(entity(e)) else { continue };
        let mut values = map.values();
        let first = values.next();
        assert!(values.all(|v| Some(v) == first), "a part of a batch in {:?}: {map:?}", program.id);
        assert!(matches!(map.len(), 0 | 3), "a part of a batch in {:?}: {map:?}", program.id);
    }
}

fn three(e: EntityId, value: u64) -> [Op; 3] {
    ["x", "y", "z"].map(|p| Op::Set { entity: e, path: path(p), value: Value::UInt(value) })
}

#[test]
fn batches_arrive_whole_or_not_at_all() {
    for seed in 0..30 {
        let config = Config { window: 700, chunk: 100, ..fixed() };
        let mut world = World::new(seed, 3, config);
        for n in [0, 1] {
            world.create(n, entity(n as u64));
        }
        world.connect(0, 1);
        world.connect(1, 2);
        world.run(SEC);
        world.check = Some(halves);
        for value in 0..300 {
            for n in [0, 1] {
                world.ops(n, three(entity(n as u64), value));
            }
            let pause = world.rng.random_range(0..10 * MS);
            world.run(pause);
            if world.rng.random_range(0..60) == 0 {
                let wire = world.wires_between(1, 2)[0];
                world.reset(wire);
                world.run(60 * MS);
                world.connect(2, 1);
                world.run(100 * MS);
            }
        }
        world.run(4 * SEC);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// The author dies while it sends its snapshot: nobody is left who could bring the other half of its batch.
#[test]
fn a_snapshot_that_breaks_off_leaves_no_half_of_a_batch() {
    let config = Config { window: 2 << 10, chunk: 512, page: 4, ..fixed() };
    let mut world = World::new(11, 2, config);
    world.create(0, entity(0));
    world.set(0, entity(0), "first", 1);
    for e in 1..60 {
        world.create(0, entity(e));
        world.set(0, entity(e), "k", e);
    }
    world.set(0, entity(59), "last", 1);
    let halves = [(entity(0), "first"), (entity(59), "last")];
    world.ops(0, halves.map(|(e, p)| Op::Set { entity: e, path: path(p), value: Value::UInt(2) }));
    world.connect(0, 1);
    let received = |world: &World| {
        world.programs[1].engine.peers().iter().map(|peer| peer.stats.received_updates).sum::<u64>()
    };
    while received(&world) < 20 {
        world.run(MS);
    }
    assert_eq!(caught_up(&world, 1), 0, "the snapshot is under way");
    world.kill(0);
    world.run(SEC);
    assert_eq!(halves.map(|(e, p)| world.get(1, e, p)), [None, None]);
}

#[test]
fn updates_reach_each_program_once() {
    let mesh: Vec<(usize, usize)> = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).collect();
    let line = (1..5).map(|b| (b - 1, b)).collect::<Vec<_>>();
    let ring = (0..5).map(|a| (a, (a + 1) % 5)).collect::<Vec<_>>();
    for edges in [mesh, line, ring] {
        let mut world = World::new(6, 5, fixed());
        (0..5).for_each(|n| world.create(n, entity(n as u64)));
        for &(a, b) in &edges {
            world.connect(a, b);
        }
        world.run(5 * SEC);
        let received = |world: &World| {
            let peers = world.programs.iter().flat_map(|p| p.engine.peers());
            peers.map(|peer| peer.stats.received_updates).sum::<u64>()
        };
        let before = received(&world);
        for value in 0..200 {
            let n = world.rng.random_range(0..5);
            world.set(n, entity(n as u64), "a", value);
            // Longer than the longest way, so that nothing is conflated.
            world.run(250 * MS);
        }
        world.run(3 * SEC);
        world.converged().unwrap_or_else(|why| panic!("{edges:?}: {why}"));
        let copies = received(&world) - before;
        // A write of a leaf is the fragment of its path; nothing else of the entity changes.
        assert!(
            (800..=880).contains(&copies),
            "{edges:?}: {copies} copies of 200 updates to 4 programs each"
        );
    }
}

#[test]
fn stamp_too_far_ahead_waits_outside_until_due() {
    let mut world = World::new(7, 3, fixed());
    world.create(0, entity(0));
    world.connect(0, 1);
    world.connect(1, 2);
    world.run(3 * SEC);
    world.set_ahead(0, entity(0), "a", 5, 6 * SEC);
    world.run(SEC);
    for n in [1, 2] {
        assert_eq!(world.get(n, entity(0), "a"), None);
        assert_eq!(world.programs[n].engine.parked(), 1, "passed on to program {n}");
    }
    let told = world.programs[0].notices.iter().find_map(|notice| match notice {
        Notice::ParkedThere { count, ahead, .. } => Some((*count, *ahead)),
        _ => None,
    });
    let (count, ahead) = told.expect("the author learns of it");
    assert!(count == 1 && (5 * SEC + SEC / 2..7 * SEC).contains(&ahead), "{count}, {ahead}");
    // A write by a program that has the time right is above nothing that is parked.
    world.run(2500 * MS);
    assert_eq!(world.get(2, entity(0), "a"), None);
    world.run(SEC);
    for n in [1, 2] {
        assert_eq!(world.get(n, entity(0), "a"), Some(5), "due at program {n}");
        assert_eq!(world.programs[n].engine.parked(), 0);
    }
    assert_eq!(world.programs[0].replica.digest(), world.programs[2].replica.digest());
}

#[test]
fn parking_is_bounded_for_each_author_and_what_was_refused_comes_later() {
    let mut world = World::new(8, 2, Config { parked_per_author: 4, ..fixed() });
    world.create(0, entity(0));
    world.connect(0, 1);
    world.run(3 * SEC);
    (0..10).for_each(|k| world.set_ahead(0, entity(0), &format!("k{k}"), k, 5 * SEC));
    world.run(SEC);
    assert_eq!(world.programs[1].engine.parked(), 4);
    assert!(world.programs[0].engine.peers()[0].stats.refused_there >= 6);
    world.run(20 * SEC);
    (0..10).for_each(|k| assert_eq!(world.get(1, entity(0), &format!("k{k}")), Some(k)));
}

#[test]
fn flush_target_is_acknowledged_once_applied() {
    let mut world = World::new(9, 3, fixed());
    world.create(0, entity(0));
    world.connect(0, 1);
    world.connect(0, 2);
    world.run(2 * SEC);
    world.programs[2].reading = false;
    world.set(0, entity(0), "a", 1);
    world.run(MS);
    let target = world.programs[0].engine.flush_target();
    let state = |world: &World, n: usize| world.programs[0].engine.flushed(target)[&world.programs[n].id];
    assert!(!state(&world, 1) && !state(&world, 2), "not there yet");
    world.run(200 * MS);
    assert!(state(&world, 1) && !state(&world, 2), "one of them does not read");
    world.resume(2);
    world.run(200 * MS);
    assert!(state(&world, 1) && state(&world, 2));
    assert_eq!(world.get(2, entity(0), "a"), Some(1));
}

#[test]
fn two_that_dial_each_other_keep_the_same_one_link() {
    for seed in 0..50 {
        let mut world = World::new(seed, 2, fixed());
        fill(&mut world, 20, 5);
        world.create(1, entity(50));
        world.connect(0, 1);
        let wait = world.rng.random_range(0..100 * MS);
        world.run(wait);
        world.connect(1, 0);
        for value in 0..20 {
            world.set(0, entity(1), "k1", value);
            world.set(1, entity(50), "own", value);
            world.run(10 * MS);
        }
        world.run(2 * SEC);
        assert_eq!(world.wires_between(0, 1).len(), 1, "seed {seed}");
        let dialed = world.ends(world.wires_between(0, 1)[0])[0];
        assert_eq!(dialed, 0, "seed {seed}: the link that the lesser node dialed");
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn garbage_closes_the_link_with_a_reason_and_datagrams_do_not() {
    let mut world = World::new(10, 2, fixed());
    world.connect(0, 1);
    world.run(SEC);
    assert_eq!(world.inject(0, b"GET / HTTP/1.1\r\n\r\n", true), None);
    assert_eq!(world.inject(0, &[], true), None);
    let closed = world.inject(0, &[0, 9, 1, 0x80], false);
    assert_eq!(closed, Some(CloseReason::Version { ours: coeval_wire::PROTOCOL_VERSION, theirs: 9 }));
    world.run(SEC);
    world.connect(0, 1);
    world.run(SEC);
    let closed = world.inject(1, &[0, coeval_wire::PROTOCOL_VERSION as u8, 77], false);
    assert!(matches!(closed, Some(CloseReason::Protocol(why)) if why.contains("77")));
    world.run(SEC);
    assert_eq!(world.wires_between(0, 1).len(), 0);
}

#[test]
fn garbled_frames_never_panic_and_change_nothing_silently() {
    use coeval_wire::Frame;
    use coeval_wire::frame::{Delta, Entities, Entries, Mark, Summary, Want};
    let blob = |rng: &mut rand_chacha::ChaCha8Rng| {
        let len = rng.random_range(0..60);
        bytes::Bytes::from((0..len).map(|_| rng.random::<u8>()).collect::<Vec<_>>())
    };
    for seed in 0..300 {
        let mut world = World::new(seed, 2, fixed());
        world.connect(0, 1);
        world.run(300 * MS);
        let digest = world.programs[0].replica.digest();
        let bytes = blob(&mut world.rng);
        let frame: Frame = match seed % 6 {
            0 => Delta { root: None, states: bytes }.into(),
            1 => Entries { entries: bytes }.into(),
            2 => Summary { round: 1, entities: vec![entity(1)], keys: bytes, stamps: Vec::new(), last: true }
                .into(),
            3 => {
                Want { slots: vec![0, 9, u32::MAX], entries: vec![Default::default()], ends: Some(3) }.into()
            }
            4 => Mark { position: u64::MAX, caught_up: true }.into(),
            _ => {
                let digests = vec![(entity(1), Default::default())];
                Entities { round: 9, bucket: Some(3), after: None, until: None, digests, last: true }.into()
            }
        };
        world.inject(0, &frame.encode().expect("a frame"), false);
        world.run(SEC);
        assert_eq!(world.programs[0].replica.digest(), digest, "seed {seed}");
        assert_eq!(node(0, 100), world.programs[0].id);
    }
}

/// A joiner whose clock is nine minutes slow adopts session time before anything can be parked as too far ahead.
#[test]
fn joiner_with_a_wrong_clock_gets_the_time_before_the_world() {
    for first_samples in [0, 4] {
        let mut world = World::new(11, 2, fixed());
        world.delay = 10 * MS;
        let slow = Arc::new(AtomicU64::new(540 * SEC));
        let config = Config { first_samples, ..fixed() };
        world.open_with(1, node(1, 300), false, Arc::clone(&slow), config);
        fill(&mut world, 40, 3);
        world.connect(1, 0);
        for _ in 0..400 {
            world.run(5 * MS);
            // What its owner does: adopts the time when it has four samples.
            if world.noticed(1, |notice| matches!(notice, Notice::PingSample { .. })) >= 4 {
                slow.store(0, Relaxed);
            }
        }
        let parked = world.programs[1].engine.peers()[0].stats.parked;
        assert_eq!(parked == 0, first_samples == 4, "{parked} parked with {first_samples} samples first");
        world.converged().expect("in any case all of it is there in the end");
        assert_eq!(caught_up(&world, 1), 1);
    }
}

/// A link that breaks while the digests are still being narrowed leaves no cursor: what it did not bring is not skipped.
#[test]
fn cursor_of_an_unfinished_repair_skips_nothing() {
    for seed in 0..60 {
        let mut world = World::new(seed, 2, fixed());
        fill(&mut world, 300, 1);
        world.create(1, entity(900));
        world.run(100 * MS);
        world.connect(0, 1);
        let broken = 50 * MS + world.rng.random_range(0..250 * MS);
        let start = world.now;
        while world.now < start + broken {
            world.set(0, entity(7), "busy", world.now);
            world.run(5 * MS);
        }
        let before = caught_up(&world, 1);
        for wire in world.wires_between(0, 1) {
            world.reset(wire);
        }
        world.run(60 * MS);
        world.connect(1, 0);
        while caught_up(&world, 1) == before {
            world.set(0, entity(7), "busy", world.now);
            world.run(MS);
        }
        for e in 0..300 {
            assert_eq!(world.get(1, entity(e), "k0"), Some(0), "seed {seed}: said to be caught up");
        }
    }
}
