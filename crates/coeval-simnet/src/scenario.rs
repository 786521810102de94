//! Scenarios: everything that will be done to a mesh, made from one seed.
use crate::mesh::{Plan, Topology};
use crate::net::{Conditions, Site};
use crate::timepiece::Skew;
use coeval_sync::Config;
use coeval_time::WallDuration;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// What may be chosen apart from the seed; the same options and seed give the same run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Least and most sites.
    pub peers: (usize, usize),
    /// Most operations.
    pub operations: usize,
    /// Longest phase of faults, seconds of virtual time.
    pub seconds: u64,
    /// One topology instead of any.
    pub topology: Option<Topology>,
}

impl Default for Options {
    fn default() -> Self {
        Self { peers: (2, 8), operations: 300, seconds: 40, topology: None }
    }
}

/// Something done to the mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// An operation of the workload, at any open site.
    Operate,
    /// A program opens for the first time.
    Join(Site),
    /// A way is cut or healed, in one direction.
    Cut(Site, Site, bool),
    /// A program ends without a word.
    Crash(Site),
    /// A program opens again.
    Restart(Site),
    /// A process is stopped, or goes on.
    Pause(Site, bool),
    /// A program stops reading its links, or goes on.
    Read(Site, bool),
}

/// All that will happen.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed it was made from.
    pub seed: u64,
    /// How the mesh is laid out.
    pub plan: Plan,
    /// What is done, and when: nanoseconds of virtual time, in order.
    pub actions: Vec<(u64, Action)>,
    /// Sites that are there from the start.
    pub founders: usize,
    /// How long the mesh may take to come to rest once faults stop.
    pub bound: WallDuration,
    /// Whether clock edits of every kind are made.
    pub wild_clock: bool,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn new(seed: u64, options: Options) -> Self {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed ^ 0x5ce0_a210);
        let (least, most) = options.peers;
        // Few are many enough mostly, and cheap.
        let count = rng.random_range(least..=most).min(rng.random_range(least..=most));
        let topology = options.topology.or(Topology::ALL.choose(rng).copied()).unwrap_or(Topology::Full);
        let (skews, ahead) = skews(rng, count);
        let config = config(rng);
        let plan = Plan { topology, skews, conditions: conditions(rng), config };
        let founders = rng.random_range(1..=count);
        let end = rng.random_range(2..=options.seconds.max(2)) * SECOND + 2 * SECOND;
        let mut actions = Vec::new();
        for site in founders..count {
            actions.push((rng.random_range(2 * SECOND..end), Action::Join(site)));
        }
        for _ in 0..rng.random_range(options.operations / 8..=options.operations.max(1)) {
            actions.push((rng.random_range(2 * SECOND..end), Action::Operate));
        }
        for _ in 0..rng.random_range(0..9) {
            fault(rng, &plan, end, &mut actions);
        }
        actions.sort_by_key(|(at, _)| *at);
        let bound = WallDuration::from_secs(90).as_nanos() + ahead;
        let bound = WallDuration::from_nanos(bound);
        Self { seed, plan, actions, founders, bound, wild_clock: rng.random_bool(0.7) }
    }
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

/// One fault, with its end; both before `end`.
fn fault(rng: &mut ChaCha8Rng, plan: &Plan, end: u64, out: &mut Vec<(u64, Action)>) {
    let count = plan.skews.len();
    let from = rng.random_range(2 * SECOND..end);
    let to = (from + rng.random_range(MS..25 * SECOND)).min(end);
    let site = rng.random_range(0..count);
    match rng.random_range(0..7) {
        0 => out.extend([(from, Action::Crash(site)), (to, Action::Restart(site))]),
        1 => out.extend([(from, Action::Pause(site, true)), (to, Action::Pause(site, false))]),
        2 => out.extend([(from, Action::Read(site, false)), (to, Action::Read(site, true))]),
        3 => {
            let other = rng.random_range(0..count);
            out.extend([(from, Action::Cut(site, other, true)), (to, Action::Cut(site, other, false))]);
        }
        4 => {
            // A link that comes and goes.
            let other = rng.random_range(0..count);
            let mut at = from;
            while at < to {
                let until = (at + rng.random_range(100 * MS..12 * SECOND)).min(end);
                for (a, b) in [(site, other), (other, site)] {
                    out.extend([(at, Action::Cut(a, b, true)), (until, Action::Cut(a, b, false))]);
                }
                at = until + rng.random_range(MS..2 * SECOND);
            }
        }
        _ => {
            let inside: Vec<bool> = (0..count).map(|_| rng.random()).collect();
            let both = rng.random_bool(0.7);
            for (a, b) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
                if inside[a] && !inside[b] {
                    out.extend([(from, Action::Cut(a, b, true)), (to, Action::Cut(a, b, false))]);
                    if both {
                        out.extend([(from, Action::Cut(b, a, true)), (to, Action::Cut(b, a, false))]);
                    }
                }
            }
        }
    }
}
