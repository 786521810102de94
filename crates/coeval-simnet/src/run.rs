//! Runs a scenario: a phase of faults, a phase without in which the mesh must come to rest, and a phase of measuring.
use crate::check::{Check, Violation};
use crate::finals;
use crate::mesh::{Mesh, Topology};
use crate::net::{Conditions, FaultKind, Faults, Site};
use crate::program::{Program, Story};
use crate::scenario::{Action, Options, SETTLING, Scenario};
use crate::workload::Workload;
use coeval_time::WallDuration;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How often whoever runs the programs looks after them, ns of virtual time.
const TEND: u64 = 500_000_000;
/// How long equal replicas are listened to.
const QUIET: WallDuration = WallDuration::from_secs(4);
/// What the rounds of a repair may take on top of two digest periods, with ways of up to 75 ms.
const LOSS_SLACK: WallDuration = WallDuration::from_secs(1);
/// Updates of the measuring phase, at each site.
const STEADY: u64 = 10;
/// Copies received for each copy needed, above which updates count as sent around in circles. One in ten, and a few more
/// because the measurement is short.
const DUPLICATION_LIMIT: f64 = 1.1;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The topology.
    pub topology: Topology,
    /// What was broken; empty: all held.
    pub violations: Vec<Violation>,
    /// Operations done.
    pub operations: u64,
    /// Operations that a store refused, as it should.
    pub refusals: u64,
    /// What was done to the mesh.
    pub faults: Faults,
    /// Virtual time at the end, s.
    pub virtual_seconds: f64,
    /// How long the mesh took to come to rest, s.
    pub settled_after: f64,
    /// Copies received for each copy needed, in steady state; `None` if it was not measured.
    pub duplication: Option<f64>,
    /// Hash of all that happened.
    pub trace: u64,
    /// All that happened, if it was asked for.
    pub story: Vec<String>,
}

/// Runs the scenario of a seed.
pub fn run(seed: u64, options: Options) -> Outcome {
    perform(&Scenario::new(seed, options), None)
}

/// Runs a scenario; with `story`, everything that happens is told there.
pub fn perform(scenario: &Scenario, story: Option<Story>) -> Outcome {
    let mut run = Run::new(scenario, story);
    run.faults(scenario);
    run.finish(scenario)
}

struct Run {
    mesh: Mesh,
    workload: Workload,
    tended: u64,
}

impl Run {
    fn new(scenario: &Scenario, story: Option<Story>) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(scenario.seed ^ 0x0304_10ad);
        let mut workload = Workload::new(&mut rng);
        workload.wild_clock = scenario.wild_clock;
        let mut mesh = Mesh::new(scenario.seed, scenario.plan.clone(), workload.twins());
        mesh.story = story;
        let sites = scenario.plan.sites();
        let founders = sites.iter().filter(|site| **site < scenario.founders).count().max(1);
        sites.iter().take(founders).for_each(|site| mesh.open(*site));
        let tended = mesh.net.now().as_nanos();
        if let Some(&first) = mesh.writers().first() {
            workload.begin(&mut mesh, first);
        }
        Self { mesh, workload, tended }
    }

    /// Lets time pass to `at`, with everyone tended.
    fn pass(&mut self, at: u64) {
        while self.tended <= at {
            self.mesh.run_until(self.tended);
            self.mesh.tend();
            self.tended += TEND;
        }
        self.mesh.run_until(at);
    }

    fn faults(&mut self, scenario: &Scenario) {
        for &(number, at, action) in &scenario.actions {
            self.pass(at);
            self.mesh.reseed(scenario.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number as u64);
            self.act(action);
            if self.mesh.rng.random_bool(0.15) {
                self.mesh.look();
            }
        }
    }

    fn act(&mut self, action: Action) {
        let mesh = &mut self.mesh;
        if action != Action::Operate {
            mesh.tell(|| format!("{action:?}"));
        }
        match action {
            Action::Operate => {
                if let Some(&site) = mesh.writers().choose(&mut mesh.rng) {
                    self.workload.step(mesh, site);
                }
            }
            Action::Join(site) => mesh.open(site),
            Action::Part { inside, both, cut } => mesh.part(|site| inside >> site & 1 == 1, both, cut),
            Action::Flap { a, b, cut } => {
                let changed = mesh.net.cut(a, b, cut) | mesh.net.cut(b, a, cut);
                if cut && changed {
                    mesh.net.count(FaultKind::Flapped);
                }
            }
            Action::Break { a, b } => mesh.net.tear_down(a, b),
            Action::Way(from, to, conditions) => mesh.net.set_way(from, to, conditions),
            Action::Crash(site) if mesh.live().len() > 1 => mesh.crash(site),
            Action::Leave(site) if mesh.live().len() > 1 => mesh.leave(site),
            Action::Restart(site) if mesh.net.was_open(site) => mesh.reopen(site),
            Action::Pause(site, paused) => mesh.net.pause(site, paused),
            Action::Read(site, reads) => mesh.net.read(site, reads),
            Action::StepClock(site, by) => mesh.step_clock(site, by),
            Action::FreezeClock(site, frozen) => mesh.freeze_clock(site, frozen),
            Action::Lay(layout) => mesh.lay(layout),
            Action::Crash(_) | Action::Leave(_) | Action::Restart(_) => {}
        }
    }

    fn finish(mut self, scenario: &Scenario) -> Outcome {
        let started = self.mesh.net.now();
        self.calm();
        let mut violations = Vec::new();
        let unrest = self.mesh.settle(scenario.bound);
        let settled_after = self.mesh.net.now().since(started).as_secs_f64();
        let mut duplication = None;
        self.mesh.look();
        if let Some(detail) = unrest {
            violations.push(Violation { check: Check::MeshConverges, node: None, detail });
        } else {
            violations.extend(self.quiet());
            duplication = self.steady(scenario);
            if let Some(unrest) = self.mesh.settle(scenario.bound) {
                let detail = format!("after steady writes: {unrest}");
                violations.push(Violation { check: Check::MeshConverges, node: None, detail });
            }
            if duplication.is_some_and(|factor| factor > DUPLICATION_LIMIT) {
                let detail = format!("{duplication:?} copies for each that was needed");
                violations.push(Violation { check: Check::UpdatesArriveOnce, node: None, detail });
            }
        }
        self.mesh.look();
        self.mesh.watched_all();
        violations.extend(finals::check(&self.mesh));
        // Last of all: no other promise is kept where a transport loses messages for good.
        if violations.is_empty() {
            violations.extend(self.one_loss(scenario));
        }
        let mesh = self.mesh;
        Outcome {
            seed: scenario.seed,
            topology: scenario.plan.topology,
            violations,
            operations: mesh.operations,
            refusals: mesh.refusals,
            faults: mesh.net.faults(),
            virtual_seconds: mesh.net.now().as_nanos() as f64 * 1e-9,
            settled_after,
            duplication,
            trace: mesh.net.trace(),
            story: mesh.story.map(|story| story.lock().expect("one thread").clone()).unwrap_or_default(),
        }
    }

    /// Ends all faults.
    fn calm(&mut self) {
        let mesh = &mut self.mesh;
        mesh.tell(|| "all faults end".to_owned());
        mesh.net.heal();
        mesh.widen_disks();
        let delay = mesh.plan.conditions.delay.min(50_000_000);
        mesh.net.set_conditions(Conditions { delay, jitter: delay / 2, ..Conditions::default() });
        for site in 0..mesh.net.len() {
            mesh.net.pause(site, false);
            mesh.net.read(site, true);
            mesh.freeze_clock(site, false);
            mesh.open(site);
        }
    }

    fn totals(&self) -> Vec<[u64; 5]> {
        let sites = self.mesh.live().into_iter();
        sites.filter_map(|site| self.mesh.program(site)).map(Program::totals).collect()
    }

    /// Equal replicas: no repair, no updates.
    fn quiet(&mut self) -> Option<Violation> {
        // The last rounds may be under way still.
        self.mesh.run_for(WallDuration::from_secs(3));
        let before = self.totals();
        self.mesh.run_for(QUIET);
        let after = self.totals();
        let detail = format!("repairs, repaired, sent, received, superseded: {before:?} became {after:?}");
        (before != after).then_some(Violation { check: Check::EqualIsQuiet, node: None, detail })
    }

    /// One message that is lost for good is made good soon.
    fn one_loss(&mut self, scenario: &Scenario) -> Option<Violation> {
        let writers = self.mesh.writers();
        let site = self.mesh.any_of(&writers)?;
        let linked = self.mesh.neighbors(site);
        let other = self.mesh.any_of(&linked)?;
        self.mesh.tell(|| format!("a message from {site} to {other} is lost"));
        self.mesh.net.lose_next(site, other);
        self.workload.steady(&mut self.mesh, site);
        // What is written far ahead waits for its time first.
        let period = self.mesh.plan.config.digest_period;
        let bound = WallDuration::from_nanos(
            2 * period.as_nanos() + LOSS_SLACK.as_nanos() + scenario.bound.as_nanos() - SETTLING.as_nanos(),
        );
        let end = self.mesh.net.now().saturating_add(bound);
        self.mesh.run_for(WallDuration::from_millis(1));
        while self.mesh.net.now() < end && !self.mesh.is_equal() {
            self.mesh.run_for(WallDuration::from_millis(50));
        }
        let healed = self.mesh.is_equal();
        let detail = format!("from site {site} to {other}: not made good in {bound}");
        (!healed).then_some(Violation { check: Check::OneLossHeals, node: None, detail })
    }

    /// Steady writes at every site; how many copies arrive for each that is needed.
    fn steady(&mut self, scenario: &Scenario) -> Option<f64> {
        let sites: Vec<Site> = self.mesh.writers();
        let readers = self.mesh.open_sites().len() as u64 - 1;
        let ahead =
            scenario.plan.skews.iter().any(|skew| skew.offset > WallDuration::from_secs(1) && !skew.follows);
        if sites.len() < 2 || ahead {
            return None;
        }
        let round = |this: &mut Self| {
            for &site in &sites {
                this.workload.steady(&mut this.mesh, site);
                this.mesh.run_for(WallDuration::from_millis(7));
            }
        };
        self.mesh.tell(|| "steady writes".to_owned());
        round(self);
        self.mesh.run_for(WallDuration::from_secs(1));
        let received = |this: &Self| this.totals().iter().map(|totals| totals[3]).sum::<u64>();
        let links = |this: &Self| {
            let live = this.mesh.live().into_iter();
            live.filter_map(|site| this.mesh.program(site)).map(|program| program.caught_up).sum::<u64>()
        };
        let (before, linked) = (received(self), links(self));
        for _ in 0..STEADY {
            round(self);
        }
        self.mesh.run_for(WallDuration::from_secs(1));
        let needed = STEADY * sites.len() as u64 * readers;
        // Where a link comes up late, what it brings again is no steady state.
        (links(self) == linked).then(|| (received(self) - before) as f64 / needed as f64)
    }
}
