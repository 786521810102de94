//! Runs seeds of the second layer, the real driver over a simulated network, and says which fail.
#![allow(clippy::print_stdout, reason = "this program's output is its purpose")]

use clap::Parser;
use coeval_simnet::driver::scene::{Options, Outcome, run};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

/// Runs programs with the real driver, tokio and quinn over a simulated UDP network under paused time.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// One seed, told in full.
    #[arg(long)]
    seed: Option<u64>,
    /// Most sites of a run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=32))]
    sites: u64,
    /// Longest phase of faults, seconds of virtual time.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Run every this many-th seed twice and compare.
    #[arg(long, default_value_t = 10)]
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
    datagrams: BTreeMap<String, u64>,
    virtual_seconds: f64,
    settled_after: f64,
}

impl Sums {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.operations += outcome.operations;
        self.virtual_seconds += outcome.virtual_seconds;
        self.settled_after = self.settled_after.max(outcome.settled_after);
        for (name, count) in &outcome.faults {
            *self.faults.entry(name).or_default() += count;
        }
        for (fate, count) in &outcome.fates {
            *self.datagrams.entry(format!("{fate:?}").to_lowercase()).or_default() += count;
        }
        if !outcome.violations.is_empty() {
            self.failures.push(outcome.seed);
        }
    }

    fn json(&self, wall_seconds: f64) -> Value {
        let faults: Map<String, Value> =
            self.faults.iter().map(|(n, c)| ((*n).to_owned(), json!(c))).collect();
        json!({
            "seeds": self.seeds,
            "failures": self.failures,
            "operations": self.operations,
            "faults": faults,
            "datagrams": self.datagrams,
            "virtual_seconds": self.virtual_seconds,
            "longest_settling_seconds": self.settled_after,
            "wall_seconds": wall_seconds,
        })
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = Options { sites: arguments.sites as usize, seconds: arguments.seconds };
    let started = Instant::now();
    let (from, count) = arguments.seed.map_or((arguments.from, arguments.seeds), |seed| (seed, 1));
    let mut sums = Sums::default();
    for seed in from..from.saturating_add(count) {
        let mut outcome = run(seed, options);
        let twice = arguments.repeat_every > 0 && seed.is_multiple_of(arguments.repeat_every);
        if arguments.seed.is_some() || twice {
            let again = run(seed, options).trace;
            if again != outcome.trace {
                let traces = format!("trace {:016x}, run again {again:016x}", outcome.trace);
                outcome.violations.push(format!("the same seed gave another run: {traces}"));
            }
        }
        if arguments.seed.is_some() {
            println!("{outcome:#?}");
        }
        if !outcome.violations.is_empty() {
            report(&outcome, &arguments);
        }
        sums.add(&outcome);
    }
    let wall = started.elapsed().as_secs_f64();
    if arguments.json {
        println!("{}", sums.json(wall));
    } else {
        println!("{} seeds, failed: {:?}, {wall:.1} s", sums.seeds, sums.failures);
    }
    if sums.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(outcome: &Outcome, arguments: &Arguments) {
    println!("seed {} failed:", outcome.seed);
    for violation in outcome.violations.iter().take(8) {
        println!("  {violation}");
    }
    println!(
        "  again: cargo run --release -p coeval-simnet --bin driver -- --seed {} --sites {} --seconds {}",
        outcome.seed, arguments.sites, arguments.seconds
    );
}
