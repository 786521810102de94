//! Scenarios: everything that will be done to a mesh, made from one seed.
mod draw;

use crate::mesh::{Layout, Plan, Topology};
use crate::net::{Conditions, Site};
use coeval_time::WallDuration;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// How long a mesh may take to come to rest once faults stop. If a clock is ahead, it may take as much longer.
pub const SETTLING: WallDuration = WallDuration::from_secs(90);

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

/// Some of the sites: bit n stands for site n.
pub type Sites = u64;

/// Something done to the mesh.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action {
    /// An operation of the workload, at any open site.
    Operate,
    /// A program opens for the first time.
    Join(Site),
    /// The ways from some sites to all others, and back if `both`, are cut or healed.
    Part {
        /// From which.
        inside: Sites,
        /// Whether the ways back, too.
        both: bool,
        /// Cut, or healed.
        cut: bool,
    },
    /// A link between two that comes and goes, goes or comes.
    Flap {
        /// One end.
        a: Site,
        /// The other.
        b: Site,
        /// Whether it goes.
        cut: bool,
    },
    /// The link between two is taken away; they dial again.
    Break {
        /// One end.
        a: Site,
        /// The other.
        b: Site,
    },
    /// The network changes on one way.
    Way(Site, Site, Conditions),
    /// A program ends without a word.
    Crash(Site),
    /// A program says that it leaves, and ends.
    Leave(Site),
    /// A program opens again.
    Restart(Site),
    /// A process is stopped, or goes on.
    Pause(Site, bool),
    /// A program stops reading its links, or goes on.
    Read(Site, bool),
    /// Somebody sets an OS clock.
    StepClock(Site, WallDuration),
    /// An OS clock stands still, or runs on.
    FreezeClock(Site, bool),
    /// Links are laid anew.
    Lay(Layout),
}

/// All that will happen.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed it was made from.
    pub seed: u64,
    /// How the mesh is laid out.
    pub plan: Plan,
    /// What is done, and when: nanoseconds of virtual time, in order. Each draws its own randomness by its number, the
    /// first, so that it does the same whatever else is left out.
    pub actions: Vec<(usize, u64, Action)>,
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
        let (plan, ahead) = draw::plan(rng, topology, count);
        let founders = rng.random_range(1..=count);
        let end = rng.random_range(2..=options.seconds.max(2)) * SECOND + 2 * SECOND;
        let mut actions = Vec::new();
        for site in founders..count {
            actions.push((rng.random_range(2 * SECOND..end), Action::Join(site)));
        }
        for _ in 0..rng.random_range(options.operations / 8..=options.operations.max(1)) {
            actions.push((rng.random_range(2 * SECOND..end), Action::Operate));
        }
        for _ in 0..rng.random_range(0..10) {
            draw::fault(rng, &plan, end, &mut actions);
        }
        if topology == Topology::Changing {
            draw::layouts(rng, count, end, &mut actions);
        }
        actions.sort_by_key(|(at, _)| *at);
        let actions = actions.into_iter().enumerate().map(|(n, (at, action))| (n, at, action)).collect();
        let bound = WallDuration::from_nanos(SETTLING.as_nanos() + ahead);
        Self { seed, plan, actions, founders, bound, wild_clock: rng.random_bool(0.7) }
    }

    /// The same with fewer sites and actions: those of `keep` only.
    #[must_use]
    pub fn only(mut self, keep: &Keep) -> Self {
        self.plan.absent.extend(keep.without.iter().copied());
        if let Some(numbers) = &keep.actions {
            self.actions.retain(|(number, ..)| numbers.contains(number));
        }
        self
    }
}

/// What is left of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Keep {
    /// Sites left out.
    pub without: BTreeSet<Site>,
    /// Actions kept, by number; `None`: all.
    pub actions: Option<BTreeSet<usize>>,
}
