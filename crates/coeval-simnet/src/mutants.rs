//! Shows that the checks find faults: known ones are put in one at a time, and seeds are run until a check fails.
//!
//! `cargo run --release -q -p coeval-simnet --bin simulate -- --mutants` makes the table below anew, and runs the models
//! that find the faults of the atomics. Each row is a test, too: the seed fails by that check with the fault in, and holds
//! without it.
//!
//! | fault | seed | found by |
//! |---|---|---|
use crate::check::Check;
use crate::run::run;
use crate::scenario::Options;
use coeval_faults::{Fault, with};
use std::ops::Range;

/// A fault that a check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The fault.
    pub fault: Fault,
    /// The first seed that showed it.
    pub seed: u64,
    /// The check that failed; of several the one that looks earliest.
    pub check: Check,
    /// What it saw.
    pub detail: String,
}

/// The rows of the table: each fault that the simulator can show, a seed that shows it, and the check that fails.
pub const FOUND: &[(Fault, u64, Check)] = &[];

/// The faults that the simulator is to find; those of the atomics are found by models of their own.
pub fn faults() -> impl Iterator<Item = Fault> {
    Fault::ALL.iter().copied().filter(|fault| !fault.is_of_atomics())
}

/// Runs one seed with a fault in; what found it.
pub fn try_seed(fault: Fault, seed: u64, options: Options) -> Option<Found> {
    let outcome = with(fault, || run(seed, options));
    let first = outcome.violations.iter().min_by_key(|violation| violation.check)?;
    Some(Found { fault, seed, check: first.check, detail: first.to_string() })
}

/// Runs seeds with a fault in until one shows it.
pub fn hunt(fault: Fault, mut seeds: Range<u64>, options: Options) -> Option<Found> {
    seeds.find_map(|seed| try_seed(fault, seed, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_docs_lists_every_fault_with_its_seed() {
        let rows = FOUND
            .iter()
            .map(|(fault, seed, check)| format!("//! | {} | {seed} | `{check:?}` |", fault.name()));
        let models = Fault::ALL.iter().filter(|fault| fault.is_of_atomics());
        let rows: Vec<String> =
            rows.chain(models.map(|fault| format!("//! | {} | | loom |", fault.name()))).collect();
        let text = include_str!("mutants.rs");
        let table: Vec<&str> =
            text.lines().filter(|line| line.starts_with("//! | ") && !line.contains("found by")).collect();
        assert_eq!(rows, table);
        assert!(faults().eq(FOUND.iter().map(|(fault, ..)| *fault)), "each fault has a row");
    }
}
