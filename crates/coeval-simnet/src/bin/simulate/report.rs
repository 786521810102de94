//! What is printed: failures with the command that runs them again, and sums.
use crate::arguments::Arguments;
use coeval_simnet::mesh::Topology;
use coeval_simnet::net::Faults;
use coeval_simnet::run::Outcome;
use coeval_simnet::scenario::Keep;
use coeval_simnet::shrink::Numbers;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::Command;

/// Violations of one seed that are printed.
const PRINTED: usize = 8;

/// Sums over all seeds.
#[derive(Default)]
pub(crate) struct Sums {
    seeds: u64,
    /// Seeds that broke something.
    pub(crate) failed_seeds: Vec<u64>,
    operations: u64,
    faults: Faults,
    virtual_seconds: f64,
    settled_after: f64,
    duplication: BTreeMap<Topology, (f64, u64)>,
}

impl Sums {
    /// Adds a run.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.operations += outcome.operations;
        self.virtual_seconds += outcome.virtual_seconds;
        self.settled_after = self.settled_after.max(outcome.settled_after);
        self.faults.add(&outcome.faults);
        if let Some(factor) = outcome.duplication {
            let (sum, count) = self.duplication.entry(outcome.topology).or_default();
            *sum += factor;
            *count += 1;
        }
        if !outcome.violations.is_empty() {
            self.failed_seeds.push(outcome.seed);
        }
    }

    /// As one JSON object.
    pub(crate) fn json(&self, wall_seconds: f64) -> Value {
        let factors = self.duplication.iter();
        let factors: Map<String, Value> = factors
            .map(|(t, (sum, count))| (format!("{t:?}").to_lowercase(), json!(sum / *count as f64)))
            .collect();
        json!({
            "seeds": self.seeds,
            "failures": self.failed_seeds.len(),
            "failed_seeds": self.failed_seeds,
            "operations": self.operations,
            "faults": self.faults.by_name().collect::<BTreeMap<_, _>>(),
            "virtual_seconds": self.virtual_seconds,
            "longest_settling_seconds": self.settled_after,
            "wall_seconds": wall_seconds,
            "duplication_factor": factors,
        })
    }

    /// As one line for people.
    pub(crate) fn line(&self, wall_seconds: f64) -> String {
        let Self { seeds, operations, failed_seeds, .. } = self;
        format!("{seeds} seeds, {} failed, {operations} operations, {wall_seconds:.1} s", failed_seeds.len())
    }
}

/// Prints what a seed broke, and how to run it again.
pub(crate) fn failure(outcome: &Outcome, arguments: &Arguments) {
    println!("seed {} failed ({:?}, commit {}):", outcome.seed, outcome.topology, commit());
    for violation in outcome.violations.iter().take(PRINTED) {
        println!("  {violation}");
    }
    if outcome.violations.len() > PRINTED {
        println!("  and {} more", outcome.violations.len() - PRINTED);
    }
    println!("  again: {}", arguments.again(outcome.seed));
}

/// Prints what is left of a scenario that was made small.
pub(crate) fn shrunk(outcome: &Outcome, arguments: &Arguments, keep: &Keep) {
    let without = Numbers(keep.without.clone());
    let without = if keep.without.is_empty() { String::new() } else { format!(" --without {without}") };
    let actions = keep.actions.clone().map(|actions| format!(" --keep {}", Numbers(actions)));
    let command = arguments.again(outcome.seed);
    println!("  small: {command}{without}{} --story", actions.unwrap_or_default());
}

/// The commit in the working folder.
fn commit() -> String {
    let hash = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let hash = hash.ok().filter(|output| output.status.success());
    hash.and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
