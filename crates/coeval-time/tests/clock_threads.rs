//! Threads that read the clock while others edit it: every reading belongs to one published state.
mod support;

use coeval_time::{Clock, Context, Edit, EditKind, SimTime, WallTime};
use std::collections::BTreeMap;
use std::thread;
use support::{S, clock, edit, sim, wall};

const JUMPS: i64 = 2_000;
const STEP: i64 = 1_000;

/// Reads `context` at `at` until the epoch is that of the last edit; checks each reading with `check`.
fn read_until(clock: &Clock, at: WallTime, last: &Edit, check: &(dyn Fn(&Context) + Sync)) -> usize {
    let mut readings = 0;
    loop {
        let context = clock.context(at);
        check(&context);
        readings += 1;
        if context.epoch.jump == last.id {
            return readings;
        }
    }
}

#[test]
fn sim_epoch_and_generation_of_a_reading_belong_together() {
    // The n-th jump, at instant n, goes to a time that tells n. So a reading tells in three ways which jumps it saw.
    let clock = clock(sim(0), 0.0);
    let end = wall(JUMPS * STEP);
    let edits: Vec<Edit> =
        (1..=JUMPS).map(|n| edit(n * STEP, 1, n as u32, EditKind::JumpTo(sim(n * 7 * S)))).collect();
    let last = edits[edits.len() - 1];
    let check = |context: &Context| {
        let seen = i64::from(context.epoch.jump.index);
        assert_eq!((context.sim, context.generation), (sim(seen * 7 * S), seen as u64));
        assert_eq!((context.wall, context.rate), (end, 0.0));
    };
    thread::scope(|threads| {
        let readers: Vec<_> =
            (0..3).map(|_| threads.spawn(|| read_until(&clock, end, &last, &check))).collect();
        for edit in &edits {
            clock.insert(edit, end).expect("valid");
        }
        assert!(readers.into_iter().all(|reader| reader.join().expect("no reading was torn") > 0));
    });
    let changes = clock.changes_since(0, end);
    assert_eq!((changes.next, changes.lost), (JUMPS as u64, JUMPS as u64 - changes.changes.len() as u64));
}

#[test]
fn readings_among_late_edits_each_show_some_prefix_of_them() {
    // Two writers insert alternately late rate changes and jumps; a third lets time pass. Each generation that is seen
    // must show one single sim time, to all readers, and generations never go back.
    let clock = clock(sim(0), 1.0);
    let at = wall(1_000 * S);
    let make = |n: i64, writer: u64| {
        let kind = if n % 3 == 0 {
            EditKind::JumpBy(support::span(S))
        } else {
            EditKind::Scale(1.0 + (n % 5) as f64)
        };
        edit(n * S / 2, writer, n as u32, kind)
    };
    let last = edit(999 * S, 9, 0, EditKind::JumpTo(SimTime::EPOCH));
    let observe = || {
        let mut seen: BTreeMap<u64, SimTime> = BTreeMap::new();
        loop {
            let context = clock.context(at);
            assert!(seen.keys().next_back().is_none_or(|newest| *newest <= context.generation));
            let shown = *seen.entry(context.generation).or_insert(context.sim);
            assert_eq!(shown, context.sim, "generation {}", context.generation);
            if context.epoch.jump == last.id {
                return seen;
            }
        }
    };
    let seen: Vec<BTreeMap<u64, SimTime>> = thread::scope(|threads| {
        let readers: Vec<_> = (0..2).map(|_| threads.spawn(observe)).collect();
        let writers = [1, 2].map(|writer| {
            let (clock, make) = (&clock, &make);
            threads.spawn(move || (0..600).for_each(|n| assert!(clock.insert(&make(n, writer), at).is_ok())))
        });
        writers.into_iter().for_each(|writer| writer.join().expect("edits are valid"));
        clock.insert(&last, at).expect("valid");
        readers.into_iter().map(|reader| reader.join().expect("no reading was torn")).collect()
    });
    for (generation, sim) in &seen[0] {
        assert!(seen[1].get(generation).is_none_or(|other| other == sim), "generation {generation}");
    }
}
