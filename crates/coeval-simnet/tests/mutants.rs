//! The net still catches fish: each known fault is found at the seed that the table names, and that seed holds without it.
use coeval_simnet::mutants::{FOUND, try_seed};
use coeval_simnet::run::run;
use coeval_simnet::scenario::Options;

#[test]
fn every_fault_is_found_at_its_seed_which_holds_without_it() {
    let options = Options::default();
    for &(fault, seed, check) in FOUND {
        let found = try_seed(fault, seed, options).map(|found| (found.check, found.detail));
        let (by, detail) = found.unwrap_or_else(|| panic!("{fault:?} is not found at seed {seed} any more"));
        assert_eq!(by, check, "{fault:?} at seed {seed}: {detail}");
        let sound = run(seed, options);
        assert_eq!(sound.violations, [], "seed {seed} without a fault");
    }
}
