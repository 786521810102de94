//! Membership: a joiner needs one address, the session outlives its host, parts that meet again become one.
use crate::world::{MS, SEC, World, entity, fixed};
use coeval_sync::{Config, Notice};

fn lost(world: &World, n: usize, whom: usize) -> Vec<bool> {
    let whom = world.programs[whom].id;
    let lost = world.programs[n].notices.iter().filter_map(|notice| match notice {
        Notice::PeerLost { node, left } if *node == whom => Some(*left),
        _ => None,
    });
    lost.collect()
}

#[test]
fn joiners_need_one_address_and_the_session_outlives_its_host() {
    for seed in 0..20 {
        let mut world = World::new(seed, 5, Config::default());
        world.create(0, entity(0));
        (1..5).for_each(|n| {
            world.connect(n, 0);
            world.run(300 * MS);
        });
        world.run(8 * SEC);
        assert!(world.is_mesh(), "seed {seed}");
        for n in 0..5 {
            assert_eq!(world.noticed(n, |notice| matches!(notice, Notice::PeerUp { .. })), 4, "seed {seed}");
        }
        world.kill(0);
        world.run(100 * MS);
        world.set(1, entity(0), "a", 1);
        world.set(4, entity(0), "b", 2);
        world.run(500 * MS);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        // A restarted host joins like anyone else, by any address.
        world.open(0, 900, false);
        world.connect(0, 3);
        world.run(8 * SEC);
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(world.is_mesh(), "seed {seed}");
    }
}

#[test]
fn unreachable_node_is_lost_after_twelve_seconds_and_one_that_leaves_at_once() {
    let mut world = World::new(1, 4, fixed());
    (1..4).for_each(|n| world.connect(n, n - 1));
    world.run(2 * SEC);
    world.kill(3);
    world.run(11 * SEC);
    assert_eq!(lost(&world, 0, 3), []);
    world.run(2 * SEC);
    for n in 0..3 {
        assert_eq!(lost(&world, n, 3), [false], "program {n}");
    }
    world.programs[2].engine.leave();
    world.wake(2);
    world.run(SEC);
    for n in 0..2 {
        assert_eq!(lost(&world, n, 2), [true], "program {n}");
    }
    assert!(world.wires_between(1, 2).is_empty());
}

#[test]
fn short_break_loses_no_one() {
    let mut world = World::new(2, 3, Config::default());
    world.connect(1, 0);
    world.connect(2, 0);
    world.run(5 * SEC);
    world.cut(0, 1);
    world.cut(1, 2);
    world.run(6 * SEC);
    world.mend();
    world.run(20 * SEC);
    assert!(world.is_mesh());
    for (n, whom) in [(0, 1), (2, 1), (1, 0), (1, 2)] {
        assert_eq!(lost(&world, n, whom), [], "{n} lost {whom}");
    }
}

#[test]
fn parts_that_meet_again_become_one() {
    for seed in 0..10 {
        let mut world = World::new(seed, 4, Config::default());
        (1..4).for_each(|n| world.connect(n, 0));
        world.run(8 * SEC);
        assert!(world.is_mesh(), "seed {seed}");
        for a in [0, 1] {
            for b in [2, 3] {
                world.cut(a, b);
            }
        }
        for _ in 0..100 {
            world.random_write();
            world.run(200 * MS);
        }
        assert_eq!(lost(&world, 0, 2), [false], "seed {seed}");
        world.mend();
        world.run(60 * SEC);
        assert!(world.is_mesh(), "seed {seed}");
        world.converged().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn observers_read_and_never_relay() {
    let mut world = World::new(3, 3, fixed());
    world.open(1, 101, true);
    world.create(0, entity(0));
    world.set(0, entity(0), "a", 1);
    world.connect(0, 1);
    world.run(SEC);
    assert_eq!(world.get(1, entity(0), "a"), Some(1));
    world.connect(2, 1);
    world.run(SEC);
    let before = world.get(2, entity(0), "a");
    world.set(0, entity(0), "a", 2);
    world.run(500 * MS);
    assert_eq!(world.get(1, entity(0), "a"), Some(2));
    assert_eq!(world.get(2, entity(0), "a"), before, "not passed on");
    assert_eq!(
        world.noticed(2, |notice| matches!(notice, Notice::PeerUp { .. })),
        1,
        "only the observer is seen"
    );
}

#[test]
fn pings_measure_the_way_there_and_back() {
    let mut world = World::new(4, 2, fixed());
    world.connect(0, 1);
    world.run(10 * SEC);
    let rtt = world.programs[0].engine.peers()[0].rtt.expect("measured").as_nanos() as u64;
    assert!((20 * MS..120 * MS).contains(&rtt), "{rtt}");
    let samples = world.programs[0].notices.iter().filter_map(|notice| match notice {
        Notice::PingSample { sample, .. } => Some(sample),
        _ => None,
    });
    // Both clocks run the same here, so each sample must bracket the truth.
    let samples: Vec<_> = samples.collect();
    assert!(samples.len() >= 8, "{} samples", samples.len());
    for sample in samples {
        let there = sample.t2.as_nanos() - world.wall_at(sample.t1.as_nanos());
        let back = world.wall_at(sample.t4.as_nanos()) - sample.t3.as_nanos();
        assert!(there > 0 && back > 0 && sample.t3 >= sample.t2);
    }
}
