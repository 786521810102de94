//! Runs seeds of the simulated mesh and says which fail, with the command that runs each again.
#![allow(clippy::print_stdout, reason = "this program's output is its purpose")]

mod arguments;
mod mutants;
mod report;

use arguments::Arguments;
use clap::Parser;
use coeval_simnet::check::{Check, Violation};
use coeval_simnet::program::Story;
use coeval_simnet::run::{Outcome, perform};
use coeval_simnet::scenario::Scenario;
use coeval_simnet::shrink::shrink;
use report::Sums;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.mutants {
        return if mutants::hunt_all(&arguments) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let started = Instant::now();
    let sums = match arguments.seed {
        Some(seed) => one(seed, &arguments),
        None => many(&arguments),
    };
    let wall = started.elapsed().as_secs_f64();
    println!("{}", if arguments.json { sums.json(wall).to_string() } else { sums.line(wall) });
    if sums.failed_seeds.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One seed, told in full if that is wanted.
fn one(seed: u64, arguments: &Arguments) -> Sums {
    let outcome = verdict(seed, arguments, true);
    let mut sums = Sums::default();
    if arguments.story {
        let scenario = arguments.scenario(seed);
        println!("{:#?}\nobservers {:?}", scenario.plan.skews, scenario.plan.observers);
        let story = Story::default();
        perform(&scenario, Some(story.clone()));
        story.lock().expect("one thread").iter().for_each(|line| println!("{line}"));
        println!("{outcome:#?}");
    }
    conclude(&outcome, arguments, &mut sums);
    sums
}

/// A range of seeds on many threads; results come in the order of the seeds.
fn many(arguments: &Arguments) -> Sums {
    let (next, end) = (AtomicU64::new(arguments.from), arguments.from.saturating_add(arguments.seeds));
    let (sender, results) = channel();
    let mut sums = Sums::default();
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs() {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let wanted = seed < end;
                    if !wanted || sender.send(verdict(seed, arguments, false)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut due) = (BTreeMap::new(), arguments.from);
        for outcome in results {
            early.insert(outcome.seed, outcome);
            while let Some(outcome) = early.remove(&due) {
                conclude(&outcome, arguments, &mut sums);
                due += 1;
            }
        }
    });
    sums
}

fn verdict(seed: u64, arguments: &Arguments, again: bool) -> Outcome {
    let scenario = arguments.scenario(seed);
    let mut outcome = perform(&scenario, None);
    if again || (arguments.repeat_every > 0 && seed.is_multiple_of(arguments.repeat_every)) {
        let again = perform(&scenario, None).trace;
        if again != outcome.trace {
            let detail = format!("trace {:016x}, run again {again:016x}", outcome.trace);
            outcome.violations.push(Violation { check: Check::RunsRepeat, node: None, detail });
        }
    }
    outcome
}

fn conclude(outcome: &Outcome, arguments: &Arguments, sums: &mut Sums) {
    sums.add(outcome);
    let Some(first) = outcome.violations.first() else { return };
    report::failure(outcome, arguments);
    if arguments.shrink > 0 && arguments.keep.is_none() && first.check != Check::RunsRepeat {
        let scenario: Scenario = arguments.scenario(outcome.seed);
        let keep = shrink(&scenario, first.check, arguments.shrink);
        report::shrunk(outcome, arguments, &keep);
    }
}
