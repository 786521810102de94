//! The merge rule against the oracle, on random histories.
//!
//! Deliberate breaks and what catches them (each was tried):
//!
//! | break | caught by |
//! |---|---|
//! | kind from surviving leaves only (stamps of dropped leaves are not folded) | `replicas_show_what_replay_shows`, cases |
//! | a child-hidden leaf leaves no floor | `replicas_show_what_replay_shows` |
//! | a leaf must be newer than the clear above it (`>` for `>=`) | `replicas_show_what_replay_shows`, cases |
//! | a dominated kind is dropped without folding it up | `replicas_show_what_replay_shows` |
//! | the canonical state keeps implied kinds | `canonical_state_is_what_tells_futures_apart` |
//! | a dominated floor is kept | `replicas_show_what_replay_shows`, `canonical_state_is_what_tells_futures_apart` |
//! | the digest leaves out floors | `canonical_state_is_what_tells_futures_apart` |
//! | program order in a batch is not resolved | cases |
mod common;
use coeval_merge::{PlainReplica, Replica};
use coeval_time::Incarnation;
use common::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ENTITIES: u128 = 2;

/// Applies a history at three replicas in random parts and order, and lets them gossip drained fragments in random
/// order, groups and repetition until all have all.
fn gossip(rng: &mut ChaCha8Rng, rounds: &[Round]) -> Vec<PlainReplica> {
    let replicas: Vec<_> = (0..3).map(|n| PlainReplica::new(Incarnation(100 + n))).collect();
    let mut inbox: Vec<Vec<(u64, Parcel)>> = vec![Vec::new(); 3];
    let mut todo: Vec<(usize, &Round)> = Vec::new();
    for round in rounds {
        let first = rng.random_range(0..3);
        for i in 0..3 {
            if i == first || rng.random_bool(0.3) {
                todo.push((i, round));
            }
        }
    }
    todo.shuffle(rng);
    while !todo.is_empty() || inbox.iter().any(|b| !b.is_empty()) {
        let i = rng.random_range(0..3);
        match rng.random_range(0..3) {
            0 => {
                if let Some(at) = todo.iter().position(|(n, _)| *n == i) {
                    apply_round(&replicas[i], todo.swap_remove(at).1);
                }
            }
            1 if !inbox[i].is_empty() => {
                let at = rng.random_range(0..inbox[i].len());
                let (from, mut parcel) = inbox[i].swap_remove(at);
                parcel.shuffle(rng);
                let some = rng.random_range(0..=parcel.len());
                deliver(&replicas[i], from, &parcel[..some]);
                deliver(&replicas[i], from, &parcel[some / 2..]);
            }
            _ => {}
        }
        if rng.random_bool(0.6) || todo.is_empty() {
            let parcel = drain(&replicas[i]);
            if !parcel.is_empty() {
                for (to, inbox) in inbox.iter_mut().enumerate() {
                    if to != i {
                        inbox.push((i as u64, parcel.clone()));
                    }
                }
            }
        }
        if todo.is_empty() && inbox.iter().all(Vec::is_empty) {
            for (i, replica) in replicas.iter().enumerate() {
                let parcel = drain(replica);
                for to in (0..3).filter(|to| *to != i && !parcel.is_empty()) {
                    inbox[to].push((i as u64, parcel.clone()));
                }
            }
        }
    }
    replicas
}

#[test]
fn replicas_show_what_replay_shows() {
    for seed in 0..20_000 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let entities = if seed % 3 == 0 { ENTITIES } else { 1 };
        let rounds = random_history(&mut rng, entities);
        let replicas = gossip(&mut rng, &rounds);
        for which in (0..entities).map(entity) {
            let want = oracle(&rounds, which);
            for (i, replica) in replicas.iter().enumerate() {
                assert_eq!(show(replica, which), want, "seed {seed}, replica {i}: {}", story(&rounds));
            }
        }
        let digest = replicas[0].digest();
        let state = canonical(&replicas[0]);
        for replica in &replicas[1..] {
            assert_eq!(canonical(replica), state, "seed {seed}: {}", story(&rounds));
            assert_eq!(replica.digest(), digest, "digests, seed {seed}: {}", story(&rounds));
        }
    }
}

#[test]
fn a_scan_brings_an_empty_replica_to_the_same_state() {
    for seed in 0..2_000 {
        let mut rng = ChaCha8Rng::seed_from_u64(1 << 40 | seed);
        let rounds = random_history(&mut rng, ENTITIES);
        let full = PlainReplica::new(Incarnation(100));
        for round in &rounds {
            apply_round(&full, round);
            full.drain();
        }
        let empty = PlainReplica::new(Incarnation(101));
        let mut from = Some(coeval_merge::SlotId(0));
        while let Some(at) = from {
            let page = full.scan(at, 0, 2);
            let parcel: Vec<_> =
                page.states.into_iter().map(|(slot, s)| (full.key(slot).unwrap(), s)).collect();
            deliver(&empty, 1, &parcel);
            from = page.next;
        }
        empty.drain();
        assert_eq!(canonical(&empty), canonical(&full), "seed {seed}: {}", story(&rounds));
        assert_eq!(empty.digest(), full.digest(), "seed {seed}: {}", story(&rounds));
        for which in (0..ENTITIES).map(entity) {
            assert_eq!(show(&empty, which), oracle(&rounds, which), "seed {seed}: {}", story(&rounds));
        }
    }
}

/// Every single operation that could tell two states apart: a set or a removal at any path, at any stamp.
fn probes() -> Vec<Round> {
    let mut paths = Vec::new();
    let keys = ["a", "b", "z"];
    for a in keys {
        paths.push(a.to_owned());
        for b in keys.iter().filter(|_| a != "z") {
            paths.push(format!("{a}/{b}"));
            for c in keys.iter().filter(|_| *b != "z") {
                paths.push(format!("{a}/{b}/{c}"));
                if *c != "z" {
                    paths.push(format!("{a}/{b}/{c}/z"));
                }
            }
        }
    }
    let mut rounds = Vec::new();
    for text in &paths {
        for n in 1..=41 {
            rounds.push(Round { stamp: stamp(n), ops: vec![set(text, -1)] });
        }
    }
    rounds
}

fn replica_of(rounds: &[Round], probe: Option<&Round>) -> PlainReplica {
    let replica = PlainReplica::new(Incarnation(100));
    for round in rounds.iter().chain(probe) {
        apply_round(&replica, round);
    }
    replica.drain();
    replica
}

#[test]
fn canonical_state_is_what_tells_futures_apart() {
    let probes = probes();
    let mut equal = 0;
    let mut differing = 0;
    for seed in 0..150 {
        let mut rng = ChaCha8Rng::seed_from_u64(2 << 40 | seed);
        let rounds = random_history(&mut rng, 1);
        // The same history without one of its batches: often the same for ever, often not.
        let mut fewer = rounds.clone();
        let gone = rng.random_range(0..rounds.len() - 1);
        fewer.remove(gone);
        let (x, y) = (replica_of(&rounds, None), replica_of(&fewer, None));
        let same = x.digest() == y.digest();
        assert_eq!(same, (canonical(&x) == canonical(&y)), "seed {seed}");
        let differs = |probe: &Round| {
            show(&replica_of(&rounds, Some(probe)), entity(0))
                != show(&replica_of(&fewer, Some(probe)), entity(0))
        };
        if same {
            equal += 1;
            let witness = probes.iter().step_by(5).find(|p| differs(p));
            assert!(
                witness.is_none(),
                "seed {seed}: equal digests, but {witness:?} differs: {}",
                story(&rounds)
            );
        } else {
            differing += 1;
            // Values of leaves count as shown; a stamp alone shows through a probe.
            let witness = show(&x, entity(0)) != show(&y, entity(0)) || probes.iter().any(differs);
            assert!(
                witness,
                "seed {seed}: digests differ, no future does, without {gone}: {}\n{}\n{}",
                story(&rounds),
                canonical(&x),
                canonical(&y)
            );
        }
    }
    assert!(equal > 10 && differing > 10, "the histories cover both sides: {equal}, {differing}");
}
