//! Digests: what was lost is found and mended; what is equal costs nothing.
use crate::world::{MS, Program, SEC, World, entity, fixed, path};
use coeval_merge::{Batch, Op, Replica};
use coeval_time::{Incarnation, Stamp};
use coeval_value::{Key, Value};
use rand::Rng;

const DEFINE: u8 = 2;
const DELTA: u8 = 3;
const ENTRIES: u8 = 4;
const MARK: u8 = 5;

#[test]
fn one_lost_message_heals_within_two_periods() {
    for seed in 0..60 {
        for (kind, who) in [(DEFINE, 0), (DELTA, 0), (DELTA, 1), (MARK, 1), (ENTRIES, 0), (ENTRIES, 1)] {
            let mut world = World::new(seed, 2, fixed());
            world.create(0, entity(0));
            world.connect(0, 1);
            let settle = world.rng.random_range(2 * SEC..4 * SEC);
            world.run(settle);
            world.drops.push((who, 1 - who, kind));
            world.set(who, entity(0), "new", 7);
            let id = world.scale(who, 2.0);
            world.run(2 * SEC + 400 * MS);
            assert!(world.drops.is_empty(), "seed {seed}: nothing of kind {kind} was sent");
            assert_eq!(world.get(1 - who, entity(0), "new"), Some(7), "seed {seed}, kind {kind}");
            assert!(world.programs[1 - who].replica.entry(id).is_some(), "seed {seed}, kind {kind}");
            world.converged().unwrap_or_else(|why| panic!("seed {seed}, kind {kind}: {why}"));
        }
    }
}

#[test]
fn lost_message_heals_while_other_writes_go_on() {
    for seed in 0..20 {
        let mut world = World::new(seed, 2, fixed());
        (0..4).for_each(|e| world.create(0, entity(e)));
        world.connect(0, 1);
        world.run(2 * SEC);
        world.drops.push((0, 1, DELTA));
        world.set(0, entity(0), "lost", 7);
        for value in 0..180 {
            world.set(0, entity(1), "busy", value);
            world.set(1, entity(2), "busy", value);
            world.run(16 * MS);
        }
        assert_eq!(world.get(1, entity(0), "lost"), Some(7), "seed {seed}");
    }
}

/// A leaf hidden under a newer clear at one program, never received by the other.
#[test]
fn hidden_is_equal_and_no_repair_flows() {
    let mut world = World::new(1, 2, fixed());
    let stamp = |n: u64| Stamp::new(1_600_000_000_000_000_000 + n, Incarnation(55));
    let batch = |op| {
        let mut batch = Batch::new();
        batch.push(op).expect("an op");
        batch
    };
    let e = entity(3);
    let create = batch(Op::Create { entity: e });
    let set = batch(Op::Set { entity: e, path: path("a/k"), value: Value::UInt(1) });
    let remove = batch(Op::Remove { entity: e, path: path("a") });
    let replace = batch(Op::Replace { entity: e, path: path("a"), map: Default::default() });
    for n in [0, 1] {
        world.programs[n].replica.replay(&create, stamp(1), Default::default());
        world.programs[n].replica.replay(&remove, stamp(3), Default::default());
        world.programs[n].replica.replay(&replace, stamp(4), Default::default());
    }
    world.programs[1].replica.replay(&set, stamp(2), Default::default());
    world.wake(0);
    world.wake(1);
    world.run(100 * MS);
    world.connect(0, 1);
    world.run(10 * SEC);
    assert_eq!(world.programs[0].replica.digest(), world.programs[1].replica.digest());
    for kind in 8..=13 {
        assert_eq!(world.kind(kind), 0, "frames of kind {kind}");
    }
}

#[test]
fn equal_digests_cost_the_root_and_nothing_more() {
    for count in [2, 4] {
        let mut world = World::new(2, count, fixed());
        (1..count).for_each(|b| world.connect(b - 1, b));
        for _ in 0..200 {
            world.random_write();
            world.run(5 * MS);
        }
        world.run(6 * SEC);
        world.traffic = Default::default();
        world.run(10 * SEC);
        let kinds: Vec<u8> = world.traffic.kinds.keys().copied().collect();
        assert_eq!(kinds, [7], "only root digests");
        let links = count as u64 - 1;
        assert!((19 * links..=28 * links).contains(&world.traffic.messages), "{}", world.traffic.messages);
        assert!(world.traffic.bytes < 64 * world.traffic.messages, "{} bytes", world.traffic.bytes);
    }
}

#[test]
fn large_differences_in_one_entity_and_in_many_are_mended() {
    for (entities, keys) in [(1, 2500), (1500, 1)] {
        let mut world = World::new(3, 2, fixed());
        for n in [0, 1] {
            for e in 0..entities {
                // Every second entity is known to both, with other parameters.
                let e = entity(e * 2 + n * (e % 2));
                let mut batch = Batch::new();
                batch.push(Op::Create { entity: e }).expect("an op");
                for k in 0..keys {
                    let p = path(&format!("k{}", k * 2 + n));
                    batch.push(Op::Set { entity: e, path: p, value: Value::UInt(k) }).expect("an op");
                }
                let stamp =
                    Stamp::new(1_600_000_000_000_000_000 + world.log.len() as u64, Incarnation(55 + n));
                world.programs[n as usize].replica.replay(&batch, stamp, Default::default());
                world.log.push((stamp, batch, Default::default()));
            }
            world.wake(n as usize);
        }
        world.run(100 * MS);
        world.connect(0, 1);
        world.run(2 * SEC);
        world.converged().unwrap_or_else(|why| panic!("{entities} entities of {keys} keys: {why}"));
        assert!((0..2).all(|n| world.programs[n].engine.caught_up()));
    }
}

#[test]
fn random_losses_heal_in_any_topology() {
    for seed in 0..40 {
        let count = 2 + seed as usize % 4;
        let mut world = World::new(seed, count, fixed());
        (1..count).for_each(|b| world.connect(b - 1, b));
        if count > 2 {
            world.connect(count - 1, 0);
        }
        world.run(SEC);
        for _ in 0..60 {
            world.random_write();
            let pause = world.rng.random_range(0..40 * MS);
            world.run(pause);
            if world.rng.random_range(0..8) == 0 {
                let a = world.rng.random_range(0..count);
                let b = (a + 1) % count;
                let kind = world.rng.random_range(2..=13);
                world.drops.push((a, b, kind));
            }
        }
        world.drops.clear();
        world.run(8 * SEC);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}, {count} programs: {why}"));
    }
}

/// What is written together at two entities is shown together.
fn twins(program: &Program) {
    let [one, two] = [0, 1].map(|e| match program.replica.show(entity(e)) {
        Some(Value::Map(map)) => map.get(&Key::new("twin").expect("a key")).cloned(),
        _ => None,
    });
    assert_eq!(one, two, "a part of a batch in {:?}", program.id);
}

/// On a slow link, rounds begin before earlier ones end. A batch that came between the beginnings of two was compared
/// as a whole by neither.
#[test]
fn rounds_of_repair_that_overlap_tear_no_batch() {
    for seed in 0..60 {
        let mut world = World::new(seed, 2, fixed());
        let both = |value| {
            [0, 1].map(|e| Op::Set { entity: entity(e), path: path("twin"), value: Value::UInt(value) })
        };
        world.create(0, entity(0));
        world.create(0, entity(1));
        world.ops(0, both(0));
        world.connect(0, 1);
        world.run(3 * SEC);
        world.check = Some(twins);
        // There and back takes longer than the time between two digests.
        world.delay = 700 * MS;
        // Nothing arrives but by repair, which always has something to do at one of the entities.
        let write = |world: &mut World, writer, ops: Vec<Op>| {
            world.drops.push((writer, 1 - writer, DELTA));
            world.ops(writer, ops);
            world.run(MS);
            assert!(world.drops.is_empty(), "seed {seed}: the delta went somewhere else");
        };
        let (writer, when) = (world.rng.random_range(0..2), world.rng.random_range(10..40));
        for value in 1..50 {
            if value == when {
                write(&mut world, writer, both(value).to_vec());
            }
            let noise =
                Op::Set { entity: entity(0), path: path(&format!("n{value}")), value: Value::UInt(value) };
            write(&mut world, writer, vec![noise]);
            let pause = world.rng.random_range(0..400 * MS);
            world.run(pause);
        }
        world.run(40 * SEC);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}
