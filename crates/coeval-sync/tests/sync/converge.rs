//! Any connected topology converges to what replaying everything in stamp order would show.
use crate::world::{MS, SEC, World, fixed};
use coeval_sync::Config;
use rand::Rng;

fn line(n: usize) -> Vec<(usize, usize)> {
    (1..n).map(|b| (b - 1, b)).collect()
}

fn ring(n: usize) -> Vec<(usize, usize)> {
    (0..n).map(|a| (a, (a + 1) % n)).collect()
}

/// Writes at random while links are reset and made again; then waits, and compares with the oracle.
fn storm(seed: u64, count: usize, edges: &[(usize, usize)], config: Config) {
    let mut world = World::new(seed, count, config);
    for &(a, b) in edges {
        world.connect(a, b);
    }
    world.run(SEC);
    for _ in 0..40 {
        for _ in 0..world.rng.random_range(0..6) {
            world.random_write();
        }
        let pause = world.rng.random_range(0..60 * MS);
        world.run(pause);
        if world.rng.random_range(0..6) == 0 {
            let (a, b) = edges[world.rng.random_range(0..edges.len())];
            for wire in world.wires_between(a, b) {
                world.reset(wire);
            }
            let away = world.rng.random_range(60 * MS..400 * MS);
            world.run(away);
            if world.wires_between(a, b).is_empty() {
                let (a, b) = if world.rng.random() { (a, b) } else { (b, a) };
                world.connect(a, b);
            }
        }
    }
    world.run(6 * SEC);
    if let Err(why) = world.converged() {
        panic!("seed {seed}, {count} programs, {edges:?}: {why}");
    }
}

#[test]
fn two_engines_converge() {
    (0..200).for_each(|seed| storm(seed, 2, &[(0, 1)], fixed()));
}

#[test]
fn three_engines_in_a_line_converge() {
    (0..100).for_each(|seed| storm(seed, 3, &line(3), fixed()));
}

#[test]
fn three_engines_in_a_ring_converge() {
    (0..100).for_each(|seed| storm(seed, 3, &ring(3), fixed()));
}

#[test]
fn five_engines_in_a_ring_converge() {
    (0..40).for_each(|seed| storm(seed, 5, &ring(5), fixed()));
}

#[test]
fn four_engines_that_dial_each_other_converge() {
    (0..40).for_each(|seed| storm(seed, 4, &line(4), Config::default()));
}

/// Programs are killed, come back empty, lose single messages and datagrams, and are cut off from one another.
#[test]
fn whatever_happens_those_who_are_left_agree() {
    for seed in 0..60 {
        let count = 3 + seed as usize % 3;
        let config = Config { window: 2 << 10, chunk: 512, page: 8, ..Config::default() };
        let mut world = World::new(seed, count, config);
        (1..count).for_each(|n| world.connect(n, n / 2));
        world.run(SEC);
        let mut incarnation = 1000;
        for _ in 0..60 {
            (0..5).for_each(|_| world.random_write());
            let pause = world.rng.random_range(0..300 * MS);
            world.run(pause);
            let (a, b) = (world.rng.random_range(0..count), world.rng.random_range(0..count));
            match world.rng.random_range(0..20) {
                0 if a != b && world.programs[b].up => {
                    world.kill(a);
                    let away = world.rng.random_range(0..3 * SEC);
                    world.run(away);
                    incarnation += 1;
                    world.open(a, incarnation, false);
                    world.connect(a, b);
                    world.run(200 * MS);
                }
                1 if a != b => world.cut(a, b),
                2 | 3 => world.mend(),
                4 => world.programs[a].reading = false,
                5 | 6 => (0..count).for_each(|n| world.resume(n)),
                7 if a != b => {
                    let kind = world.rng.random_range(2..=13);
                    world.drops.push((a, b, kind));
                }
                _ => {}
            }
        }
        world.drops.clear();
        world.mend();
        (0..count).for_each(|n| world.resume(n));
        world.run(90 * SEC);
        assert!(world.is_mesh(), "seed {seed}: not a mesh");
        world.agree().unwrap_or_else(|why| panic!("seed {seed}, {count} programs: {why}"));
    }
}
