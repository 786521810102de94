//! The dice: layouts, networks, clocks, faults.
use super::{Action, MS, SECOND};
use crate::mesh::{Layout, Plan, Topology};
use crate::net::{Conditions, Site};
use crate::timepiece::Skew;
use coeval_sync::Config;
use coeval_time::WallDuration;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// How a mesh is laid out, and how long what its fastest clock wrote may have to wait, ns.
pub(super) fn plan(rng: &mut ChaCha8Rng, topology: Topology, count: usize) -> (Plan, i64) {
    let (skews, ahead) = skews(rng, count);
    let mut plan =
        Plan { skews, conditions: conditions(rng), config: config(rng), ..Plan::new(topology, count) };
    for _ in 0..rng.random_range(0..4) {
        let way = (rng.random_range(0..count), rng.random_range(0..count));
        plan.ways.push((way, conditions(rng)));
    }
    if rng.random_bool(0.2) {
        plan.observers.extend(topology.ends(count).choose(rng));
    }
    if rng.random_bool(0.5) {
        for site in 0..count {
            if rng.random_bool(0.5) {
                let full = rng.random_bool(0.3);
                plan.journals.insert(site, full.then(|| rng.random_range(500..8_000)));
            }
        }
    }
    if rng.random_bool(0.2) {
        plan.limits.orphans = rng.random_range(0..3);
    }
    (plan, ahead)
}

fn config(rng: &mut ChaCha8Rng) -> Config {
    let default = Config::default();
    match rng.random_range(0..3) {
        // Small windows and pages, so that links lag and snapshots have many pages.
        0 => Config { window: 2 << 10, chunk: 512, page: 3, ..default },
        1 => Config { window: 16 << 10, chunk: 4 << 10, page: 16, ..default },
        _ => default,
    }
}

fn conditions(rng: &mut ChaCha8Rng) -> Conditions {
    let delay = *[MS / 10, MS, 10 * MS, 50 * MS, 100 * MS].choose(rng).unwrap_or(&MS);
    let some = |rng: &mut ChaCha8Rng, most: f64| {
        if rng.random_bool(0.5) { rng.random_range(0.0..most) } else { 0.0 }
    };
    Conditions {
        delay,
        jitter: rng.random_range(0..=2 * delay),
        loss: some(rng, 0.2),
        duplicate: some(rng, 0.3),
        bandwidth: *[30_000, 1_000_000, 100_000_000].choose(rng).unwrap_or(&1_000_000),
        receive_window: *[2 << 10, 16 << 10, 256 << 10].choose(rng).unwrap_or(&1024),
    }
}

/// How wrong the clocks are, and how long what the fastest one wrote may have to wait, ns.
fn skews(rng: &mut ChaCha8Rng, count: usize) -> (Vec<Skew>, i64) {
    let within =
        |rng: &mut ChaCha8Rng, millis: i64| WallDuration::from_millis(rng.random_range(-millis..=millis));
    let drift = |rng: &mut ChaCha8Rng| rng.random_range(-50..=50);
    match rng.random_range(0..4) {
        0 => (vec![Skew::default(); count], 0),
        1 => {
            let skew = |_| Skew { offset: within(rng, 900), drift_ppm: drift(rng), follows: false };
            ((0..count).map(skew).collect(), 0)
        }
        2 => {
            let mut skews = vec![Skew::default(); count];
            let ahead = rng.random_range(1_000..8_000);
            skews[rng.random_range(0..count)].offset = WallDuration::from_millis(ahead);
            (skews, WallDuration::from_millis(ahead).as_nanos())
        }
        _ => {
            let skew = |site| {
                let offset = if site == 0 { WallDuration::ZERO } else { within(rng, 600_000) };
                Skew { offset, drift_ppm: drift(rng), follows: true }
            };
            ((0..count).map(skew).collect(), 0)
        }
    }
}

/// When a changing mesh changes, and to what.
pub(super) fn layouts(rng: &mut ChaCha8Rng, count: usize, end: u64, out: &mut Vec<(u64, Action)>) {
    for _ in 0..rng.random_range(1..6) {
        let shape = *Topology::SHAPES.choose(rng).unwrap_or(&Topology::Ring);
        let layout = Layout { shape, turn: rng.random_range(0..count) };
        out.push((rng.random_range(2 * SECOND..end), Action::Lay(layout)));
    }
}

/// One fault, with its end; both before `end`.
pub(super) fn fault(rng: &mut ChaCha8Rng, plan: &Plan, end: u64, out: &mut Vec<(u64, Action)>) {
    let count = plan.skews.len();
    let from = rng.random_range(2 * SECOND..end);
    let to = (from + rng.random_range(MS..25 * SECOND)).min(end);
    let (site, other) = (rng.random_range(0..count), rng.random_range(0..count));
    match rng.random_range(0..12) {
        0 => out.extend([(from, Action::Crash(site)), (to, Action::Restart(site))]),
        1 => out.extend([(from, Action::Pause(site, true)), (to, Action::Pause(site, false))]),
        2 => out.extend([(from, Action::Read(site, false)), (to, Action::Read(site, true))]),
        3 => {
            let part = |cut| Action::Part { inside: 1 << site, both: false, cut };
            out.extend([(from, part(true)), (to, part(false))]);
        }
        4 => flap(rng, (site, other), (from, to), end, out),
        5 => out.extend([(from, Action::Leave(site)), (to, Action::Restart(site))]),
        6 => out.push((from, Action::Way(site, other, conditions(rng)))),
        7 => {
            // What follows a reference may be set by any amount; a raw clock must stay within what is admitted.
            let most = if plan.skews[site].follows { 600_000 } else { 400 };
            let by = WallDuration::from_millis(rng.random_range(-most..=most));
            out.push((from, Action::StepClock(site, by)));
        }
        9 => {
            // Both sides have much to tell each other, and are disturbed while they do.
            let (inside, both) = (rng.random_range(0..1u64 << count.min(63)), true);
            let part = |cut| Action::Part { inside, both, cut };
            out.extend([(from, part(true)), (to, part(false))]);
            for _ in 0..rng.random_range(4..40) {
                let at = (to + rng.random_range(0..2 * SECOND)).min(end);
                let (a, b) = (rng.random_range(0..count), rng.random_range(0..count));
                out.push((at, Action::Break { a, b }));
            }
        }
        8 => out.extend([(from, Action::FreezeClock(site, true)), (to, Action::FreezeClock(site, false))]),
        _ => {
            let (inside, both) = (rng.random_range(0..1u64 << count.min(63)), rng.random_bool(0.7));
            let part = |cut| Action::Part { inside, both, cut };
            out.extend([(from, part(true)), (to, part(false))]);
        }
    }
}

/// A link that comes and goes.
fn flap(
    rng: &mut ChaCha8Rng,
    (a, b): (Site, Site),
    (from, to): (u64, u64),
    end: u64,
    out: &mut Vec<(u64, Action)>,
) {
    let mut at = from;
    while at < to {
        let until = (at + rng.random_range(100 * MS..12 * SECOND)).min(end);
        out.extend([(at, Action::Flap { a, b, cut: true }), (until, Action::Flap { a, b, cut: false })]);
        at = until + rng.random_range(MS..2 * SECOND);
    }
}
