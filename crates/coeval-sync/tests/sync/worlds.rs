//! Worlds: whoever restores a checkpoint takes everyone along, and what belongs to an older world counts for nothing.
use crate::world::{MS, SEC, World, entity, fixed, path};
use coeval_merge::{Replica, SlotKey, World as SessionWorld};
use coeval_sync::{Config, Notice};
use rand::Rng;

/// Programs that all know each other, over a few entities.
fn mesh(seed: u64, count: usize) -> World {
    let mut world = World::new(seed, count, fixed());
    for b in 1..count {
        (0..b).for_each(|a| world.connect(a, b));
    }
    world.run(SEC);
    for n in 0..4 {
        world.create(0, entity(n));
        world.set(0, entity(n), "a", n);
    }
    world.run(SEC);
    world
}

/// The worlds that a program was told of, with what fell.
fn told(world: &World, n: usize) -> Vec<(SessionWorld, Vec<SlotKey>)> {
    let of = |notice: &Notice| match notice {
        Notice::World { world, entered } => Some((*world, entered.fallen.clone())),
        _ => None,
    };
    world.programs[n].notices.iter().filter_map(of).collect()
}

fn key(n: u64, at: &str) -> SlotKey {
    SlotKey { entity: entity(n), path: Some(path(at)) }
}

#[test]
fn everyone_follows_a_restore_and_goes_on_from_there() {
    let mut world = mesh(1, 3);
    world.scale(1, 2.0);
    world.record(2, 7);
    let saved = world.content(0);
    let clock_digest = world.programs[0].replica.digest();
    world.set(1, entity(0), "a", 100);
    world.set(2, entity(1), "b", 200);
    world.ops(1, [coeval_merge::Op::Delete { entity: entity(2) }]);
    world.create(2, entity(5));
    world.scale(1, 3.0);
    world.run(SEC);
    assert_ne!(world.programs[0].replica.digest(), clock_digest);
    let new = world.restore(2, &saved);
    world.record(1, 8);
    world.run(2 * SEC);
    world.converged().expect("the checkpoint everywhere");
    for n in 0..3 {
        assert_eq!(world.content(n).digest(), saved.digest(), "program {n}");
        assert_eq!(told(&world, n).len(), 1);
        assert_eq!(told(&world, n)[0].0, new);
        assert_eq!((world.get(n, entity(0), "a"), world.get(n, entity(1), "b")), (Some(0), None));
        assert_eq!(world.programs[n].replica.entry_ids().len(), 2, "the records, and no edit of the clock");
    }
    assert_eq!(told(&world, 0)[0].1, []);
    assert_eq!(told(&world, 1)[0].1, [key(0, "a"), SlotKey { entity: entity(2), path: None }]);
    assert_eq!(told(&world, 2)[0].1, [key(1, "b"), SlotKey { entity: entity(5), path: None }]);
    // Slots that once were, and entities that were deleted, are written to again.
    world.set(0, entity(2), "a", 5);
    world.set(1, entity(1), "b", 6);
    world.run(2 * SEC);
    world.converged().expect("writes of the new world");
    assert_eq!((world.get(2, entity(2), "a"), world.get(0, entity(1), "b")), (Some(5), Some(6)));
}

#[test]
fn who_was_cut_off_brings_nothing_back_and_learns_what_fell() {
    let mut world = mesh(2, 3);
    let saved = world.content(0);
    world.cut(0, 2);
    world.cut(1, 2);
    world.run(100 * MS);
    world.set(2, entity(0), "a", 100);
    world.set(2, entity(7), "a", 1);
    world.create(2, entity(5));
    world.record(2, 9);
    world.set(0, entity(1), "a", 50);
    world.run(SEC);
    let new = world.restore(1, &saved);
    world.run(SEC);
    assert_eq!(told(&world, 2), []);
    world.set(0, entity(3), "a", 60);
    world.set(2, entity(3), "a", 70);
    world.mend();
    world.connect(2, 0);
    world.connect(1, 2);
    world.run(3 * SEC);
    world.converged().expect("one world");
    assert_eq!(world.get(2, entity(3), "a"), Some(60));
    let lost = &told(&world, 2)[..];
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].0, new);
    let fell: Vec<SlotKey> = [key(0, "a"), key(3, "a"), SlotKey { entity: entity(5), path: None }].into();
    assert_eq!(lost[0].1, fell);
    // The fact that it recorded while away is one of the session, not of a world.
    assert!((0..3).all(|n| world.programs[n].replica.entry_ids().len() == 1));
}

#[test]
fn of_two_restores_at_once_the_greater_wins_and_the_other_is_told() {
    for seed in 0..20 {
        let mut world = mesh(seed, 4);
        let early = world.content(0);
        world.set(1, entity(0), "a", 11);
        world.run(SEC);
        let late = world.content(1);
        let one = world.restore(0, &early);
        let two = world.restore(3, &late);
        assert_eq!((one.number, two.number), (1, 1));
        world.run(3 * SEC);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let (loser, newest) = if one > two { (3, one) } else { (0, two) };
        let seen: Vec<SessionWorld> = told(&world, loser).into_iter().map(|(world, _)| world).collect();
        assert_eq!(seen, [one.min(two), newest], "seed {seed}");
    }
}

#[test]
fn a_restore_reaches_the_end_of_a_line() {
    let mut world = World::new(3, 5, fixed());
    (1..5).for_each(|b| world.connect(b - 1, b));
    world.run(SEC);
    world.create(0, entity(0));
    world.run(SEC);
    let saved = world.content(0);
    world.set(4, entity(0), "a", 1);
    world.run(SEC);
    world.restore(0, &saved);
    world.run(3 * SEC);
    world.converged().expect("one world");
    assert_eq!(told(&world, 4)[0].1, [key(0, "a")]);
}

#[test]
fn a_restore_while_a_joiner_takes_its_snapshot_leaves_it_whole() {
    for seed in 0..30 {
        let mut world = World::new(seed, 2, Config { page: 16, window: 4 << 10, chunk: 1 << 10, ..fixed() });
        world.connect(0, 1);
        world.run(SEC);
        for n in 0..200 {
            world.create(0, entity(n));
            world.set(0, entity(n), "a", n);
        }
        world.run(2 * SEC);
        let saved = world.content(0);
        (0..200).for_each(|n| world.set(1, entity(n), "b", n));
        world.run(SEC);
        world.open(2, 102, false);
        world.connect(2, 0);
        let wait = world.rng.random_range(40 * MS..600 * MS);
        world.run(wait);
        world.restore((seed % 2) as usize, &saved);
        world.run(6 * SEC);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}, after {wait} ns: {why}"));
        assert_eq!(world.content(2).digest(), saved.digest(), "seed {seed}");
    }
}

/// Nobody sees a part of a new world: until all of it is here it sees the old one.
#[test]
fn a_world_is_entered_all_at_once() {
    let mut world = World::new(5, 2, Config { page: 8, window: 2 << 10, chunk: 512, ..fixed() });
    world.connect(0, 1);
    world.run(SEC);
    for n in 0..6 {
        world.create(0, entity(n));
        (0..40).for_each(|k| world.set(0, entity(n), &format!("k{k}"), 1));
    }
    world.run(SEC);
    let saved = world.content(0);
    (0..6).for_each(|n| (0..40).for_each(|k| world.set(0, entity(n), &format!("k{k}"), 2)));
    world.run(2 * SEC);
    world.restore(0, &saved);
    world.check = Some(|program| {
        let shown = |n| program.replica.show(entity(n)).map(|map| format!("{map:?}")).unwrap_or_default();
        let new = (0..6).map(|n| shown(n).matches("UInt(1)").count()).sum::<usize>();
        let old = (0..6).map(|n| shown(n).matches("UInt(2)").count()).sum::<usize>();
        assert!((new, old) == (240, 0) || (new, old) == (0, 240), "{new} of the new world, {old} of the old");
    });
    world.run(4 * SEC);
    assert_eq!(told(&world, 1).len(), 1);
    assert_eq!(world.content(1).digest(), saved.digest());
}

/// Writes, restores and resets at random: at the end everyone is in the newest world, and holds its content with what
/// was written in it, and nothing else.
fn storm(seed: u64, count: usize, ring: bool) {
    let mut world = World::new(seed, count, fixed());
    let edges: Vec<(usize, usize)> = match ring {
        true => (0..count).map(|a| (a, (a + 1) % count)).collect(),
        false => (1..count).map(|b| (b - 1, b)).collect(),
    };
    edges.iter().for_each(|&(a, b)| world.connect(a, b));
    world.run(SEC);
    let mut saved = vec![world.content(0)];
    for round in 0..40 {
        (0..world.rng.random_range(0..6)).for_each(|_| world.random_write());
        let pause = world.rng.random_range(0..60 * MS);
        world.run(pause);
        let n = world.rng.random_range(0..count);
        match world.rng.random_range(0..12) {
            0 => saved.push(world.content(n)),
            1 => {
                let content = saved[world.rng.random_range(0..saved.len())].clone();
                world.restore(n, &content);
            }
            2 => world.record(n, round),
            3 | 4 => {
                let (a, b) = edges[world.rng.random_range(0..edges.len())];
                for wire in world.wires_between(a, b) {
                    world.reset(wire);
                }
                let away = world.rng.random_range(60 * MS..400 * MS);
                world.run(away);
                world.connect(a, b);
            }
            _ => {}
        }
    }
    world.run(8 * SEC);
    world.converged().unwrap_or_else(|why| panic!("seed {seed}, {count} programs, ring {ring}: {why}"));
}

#[test]
fn storms_with_restores_end_in_the_newest_world() {
    (0..60).for_each(|seed| storm(seed, 3, true));
    (100..140).for_each(|seed| storm(seed, 4, false));
}
