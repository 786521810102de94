//! A machine is cloned: two programs run under one name.
use crate::world::{MS, SEC, World, entity, fixed, node};
use coeval_sync::{Notice, Target};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Two programs of one name, each linked to a third, write on. All end equal, under three names, and no event is lost or
/// doubled once they have them.
#[test]
fn of_two_programs_under_one_name_one_takes_another_and_all_converge() {
    for seed in 0..20 {
        let mut world = World::new(seed, 2, fixed());
        world.create(0, entity(0));
        world.set(0, entity(0), "k", 1);
        world.connect(0, 1);
        world.run(SEC);
        let original = world.programs[0].id;
        world.open_with(2, node(0, 100), false, Arc::default(), fixed());
        // The copy holds what the original held.
        world.connect(2, 1);
        world.run(SEC);
        let mut value = 10;
        for _ in 0..20 {
            for n in [0, 2] {
                value += 1;
                world.create(n, entity(value));
                world.set(n, entity(value), "k", value);
                // Their links push each other out: whoever has none comes back.
                if world.wires_between(n, 1).is_empty() {
                    world.connect(n, 1);
                }
                world.run(150 * MS);
            }
        }
        world.run(20 * SEC);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let names: BTreeSet<_> = world.programs.iter().map(|program| program.id).collect();
        assert_eq!(names.len(), 3, "seed {seed}: {names:?}");
        let renamed = |n: usize| world.noticed(n, |notice| matches!(notice, Notice::Renamed { .. }));
        assert!(matches!((renamed(0), renamed(2)), (1, 0) | (0, 1) | (1, 1)), "seed {seed}");
        assert_eq!(renamed(1), 0, "seed {seed}");
        for n in [0, 2] {
            let writer = world.programs[n].engine.node().incarnation;
            assert_eq!(world.programs[n].id, world.programs[n].engine.node(), "seed {seed}");
            world.set(n, entity(0), "k", 90 + n as u64);
            world.run(SEC);
            assert_eq!(world.programs[n].replica.clock().writer, writer, "seed {seed}");
        }
        assert!(world.programs[0].id == original || world.programs[2].id == original || renamed_both(&world));
        for n in 0..3 {
            assert!(world.send(n, "after", Target::All, n as u64), "seed {seed}");
        }
        world.run(5 * SEC);
        for n in 0..3 {
            let got =
                world.noticed(n, |notice| matches!(notice, Notice::Event(event) if &*event.topic == "after"));
            assert_eq!(got, 3, "seed {seed}: at {n}");
        }
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

fn renamed_both(world: &World) -> bool {
    [0, 2].iter().all(|n| world.noticed(*n, |notice| matches!(notice, Notice::Renamed { .. })) == 1)
}
