//! Runs seeds of the simulated mesh and says which fail, with the command that runs each again.
#![allow(clippy::print_stdout, reason = "this program's output is its purpose")]

use clap::Parser;
use coeval_simnet::check::{Check, Violation};
use coeval_simnet::mesh::Topology;
use coeval_simnet::run::{Outcome, run, tell};
use coeval_simnet::scenario::{Options, Scenario};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

/// Runs whole meshes of real stores and engines under virtual time and checks what must hold.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// One seed, told in full.
    #[arg(long)]
    seed: Option<u64>,
    /// Most sites of a mesh.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=64))]
    peers: u64,
    /// Most operations of a run.
    #[arg(long, default_value_t = 300)]
    operations: usize,
    /// Longest phase of faults, seconds of virtual time.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// Run every this many-th seed twice and compare.
    #[arg(long, default_value_t = 50)]
    repeat_every: u64,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct Sums {
    seeds: u64,
    failures: Vec<u64>,
    operations: u64,
    faults: BTreeMap<&'static str, u64>,
    virtual_seconds: f64,
    settled_after: f64,
    duplication: BTreeMap<Topology, (f64, u64)>,
}

impl Sums {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.operations += outcome.operations;
        self.virtual_seconds += outcome.virtual_seconds;
        self.settled_after = self.settled_after.max(outcome.settled_after);
        for (name, count) in outcome.faults.by_name() {
            *self.faults.entry(name).or_default() += count;
        }
        if let Some(factor) = outcome.duplication {
            let (sum, count) = self.duplication.entry(outcome.topology).or_default();
            *sum += factor;
            *count += 1;
        }
        if !outcome.violations.is_empty() {
            self.failures.push(outcome.seed);
        }
    }

    fn json(&self, wall_seconds: f64) -> Value {
        let factors = self.duplication.iter();
        let factors: Map<String, Value> = factors
            .map(|(t, (sum, count))| (format!("{t:?}").to_lowercase(), json!(sum / *count as f64)))
            .collect();
        json!({
            "seeds": self.seeds,
            "failures": self.failures,
            "operations": self.operations,
            "faults": self.faults,
            "virtual_seconds": self.virtual_seconds,
            "longest_settling_seconds": self.settled_after,
            "wall_seconds": wall_seconds,
            "duplication_factor": factors,
        })
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = Options {
        peers: (2, arguments.peers as usize),
        operations: arguments.operations,
        seconds: arguments.seconds,
        topology: None,
    };
    let started = Instant::now();
    let (from, count) = arguments.seed.map_or((arguments.from, arguments.seeds), |seed| (seed, 1));
    let mut sums = Sums::default();
    for seed in from..from.saturating_add(count) {
        let outcome = verdict(seed, options, &arguments);
        if !outcome.violations.is_empty() {
            report(&outcome, &arguments);
        }
        if arguments.seed.is_some() {
            println!("{:#?}", Scenario::new(seed, options).plan);
            tell(seed, options).story.iter().for_each(|line| println!("{line}"));
            println!("{outcome:#?}");
        }
        sums.add(&outcome);
    }
    let wall = started.elapsed().as_secs_f64();
    if arguments.json {
        println!("{}", sums.json(wall));
    } else {
        println!(
            "{} seeds, {} failed, {} operations, {wall:.1} s",
            sums.seeds,
            sums.failures.len(),
            sums.operations
        );
    }
    if sums.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn verdict(seed: u64, options: Options, arguments: &Arguments) -> Outcome {
    let mut outcome = run(seed, options);
    if arguments.seed.is_some() || (arguments.repeat_every > 0 && seed.is_multiple_of(arguments.repeat_every))
    {
        let again = run(seed, options).trace;
        if again != outcome.trace {
            let detail = format!("trace {:016x}, run again {again:016x}", outcome.trace);
            outcome.violations.push(Violation { check: Check::RunsRepeat, node: None, detail });
        }
    }
    outcome
}

fn report(outcome: &Outcome, arguments: &Arguments) {
    println!("seed {} failed ({:?}):", outcome.seed, outcome.topology);
    for violation in outcome.violations.iter().take(8) {
        println!("  {violation}");
    }
    if outcome.violations.len() > 8 {
        println!("  and {} more", outcome.violations.len() - 8);
    }
    println!(
        "  again: cargo run --release -p coeval-simnet --bin simulate -- --seed {} --peers {} --operations {} --seconds {}",
        outcome.seed, arguments.peers, arguments.operations, arguments.seconds
    );
}
