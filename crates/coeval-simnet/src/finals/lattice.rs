//! The states that links carried, merged in many orders and groupings.
use crate::check::{Check, Violation};
use coeval_merge::{Digest, LinkTag, PlainReplica, Replica, SlotId, SlotKey, SlotState};
use coeval_time::{Incarnation, Stamp};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

/// Orders that are tried.
const ORDERS: u64 = 3;

/// Whether the merge of `flown` depends on order, repetition or grouping.
pub(super) fn check(flown: &[(SlotKey, SlotState)], seed: u64) -> Option<Violation> {
    // Every entity exists, so that what is merged counts.
    let alive = coeval_merge::Life { created: Stamp::new(1, Incarnation(3)), deleted: Stamp::NONE };
    let entities: BTreeSet<_> = flown.iter().map(|(key, _)| key.entity).collect();
    let lives = entities.into_iter().map(|entity| (SlotKey { entity, path: None }, alive.into()));
    let mut all: Vec<(SlotKey, SlotState)> = lives.chain(flown.iter().cloned()).collect();
    let want = merged(&all);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..ORDERS {
        all.shuffle(&mut rng);
        let (first, second) = all.split_at(all.len() / 2);
        let twice = [&all[..], first].concat();
        // Each half merged by itself, then the two results: the other way to set the brackets.
        let halves = [second, first].map(|half| states(&replica(half)));
        for (how, got) in [
            ("in another order", merged(&all)),
            ("with repetitions", merged(&twice)),
            ("in other groups", merged(&halves.concat())),
        ] {
            if got != want {
                let detail = format!("{} states merged {how} give {got:?} instead of {want:?}", all.len());
                return Some(Violation { check: Check::MergeIsALattice, node: None, detail });
            }
        }
    }
    None
}

fn replica(states: &[(SlotKey, SlotState)]) -> PlainReplica {
    let replica = PlainReplica::new(Incarnation(2));
    for (key, state) in states {
        if let Ok(slot) = replica.resolve(key) {
            replica.apply(LinkTag(1), &[(slot, state.clone())], Vec::new());
        }
    }
    replica.drain();
    replica
}

fn merged(states: &[(SlotKey, SlotState)]) -> Digest {
    replica(states).digest()
}

/// All that a replica holds, as states.
fn states(replica: &PlainReplica) -> Vec<(SlotKey, SlotState)> {
    let slots = replica.scan(SlotId(0), 0, usize::MAX).states.into_iter();
    slots.filter_map(|(slot, state)| Some((replica.key(slot)?, state))).collect()
}
