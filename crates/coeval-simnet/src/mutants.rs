//! Shows that the checks find faults: known ones are put in one at a time, and seeds are run until a check fails.
//!
//! `cargo run --release -q -p coeval-simnet --bin simulate -- --mutants` makes the table below anew, and runs the models
//! that find the faults of the atomics. Each row is a test, too: the seed fails by that check with the fault in, and holds
//! without it.
//!
//! | fault | seed | found by |
//! |---|---|---|
//! | equal stamps tie by value | 0 | `StampsGoOn` |
//! | batches not in normal form | 25 | `ChildrenShowByTheRule` |
//! | a clear beats its own batch | 0 | `ChildrenShowByTheRule` |
//! | kind derived from surviving leaves | 8 | `DigestsAreRight` |
//! | pruning without folding into the parent's kind | 8 | `DigestsAreRight` |
//! | digest over hidden leaves | 0 | `MeshConverges` |
//! | deletion loses against a later write | 25 | `AcknowledgedIsThere` |
//! | tombstones dropped after a time | 0 | `AcknowledgedIsThere` |
//! | value bits canonicalized | 0 | `MeshConverges` |
//! | hybrid clock raised after publishing | 5 | `WritesAfterReadsWin` |
//! | hybrid clock reset on restart | 56 | `HybridClockGoesOn` |
//! | duplicate incarnation | 0 | `AcknowledgedIsThere` |
//! | far-future stamp adopted | 6 | `ParkedDoesNotDrag` |
//! | parking decided by arrival time | 13 | `AcknowledgedIsThere` |
//! | late clock edit applied at arrival | 0 | `ClocksAgree` |
//! | cursor kept by the sender only | 33 | `AcknowledgedIsThere` |
//! | cursor advanced before the apply | 113 | `AcknowledgedIsThere` |
//! | flush returns before the first repair is through | 0 | `AcknowledgedIsThere` |
//! | snapshot for a joiner misses concurrent writes | 118 | `AcknowledgedIsThere` |
//! | snapshot pages applied before the mark | 3 | `BatchesAreWhole` |
//! | batch torn at the receiver | 3 | `BatchesAreWhole` |
//! | batch torn by repair | 321 | `BatchesAreWhole` |
//! | batch torn by forwarding | 0 | `BatchesAreWhole` |
//! | forwarded to everyone | 0 | `UpdatesArriveOnce` |
//! | slow link drops instead of conflating | 16 | `AcknowledgedIsThere` |
//! | journal told safe before it is synced | 82 | `ReplicasShowTheReplay` |
//! | events sent again without being told apart | 0 | `EventsArriveOnce` |
//! | dirty bit skipped on a plain load | | loom |
//! | dirty bits read, then cleared | | loom |
//! | ring cell published before its slot is written | | loom |
//! | ring cell written without a fence | | loom |
//! | doorbell set without a fence | | loom |
//! | hybrid clock set instead of raised | | loom |
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
pub const FOUND: &[(Fault, u64, Check)] = &[
    (Fault::EqualStampsTieByValue, 0, Check::StampsGoOn),
    (Fault::BatchNotNormal, 25, Check::ChildrenShowByTheRule),
    (Fault::ClearBeatsItsBatch, 0, Check::ChildrenShowByTheRule),
    (Fault::KindFromSurvivors, 8, Check::DigestsAreRight),
    (Fault::PrunedWithoutFolding, 8, Check::DigestsAreRight),
    (Fault::DigestOverHidden, 0, Check::MeshConverges),
    (Fault::DeletionLoses, 25, Check::AcknowledgedIsThere),
    (Fault::TombstonesDropped, 0, Check::AcknowledgedIsThere),
    (Fault::NanCanonicalized, 0, Check::MeshConverges),
    (Fault::ClockRaisedAfterPublishing, 5, Check::WritesAfterReadsWin),
    (Fault::ClockResetOnRestart, 56, Check::HybridClockGoesOn),
    (Fault::DuplicateIncarnation, 0, Check::AcknowledgedIsThere),
    (Fault::FarFutureAdopted, 6, Check::ParkedDoesNotDrag),
    (Fault::ParkedByArrival, 13, Check::AcknowledgedIsThere),
    (Fault::LateEditAtArrival, 0, Check::ClocksAgree),
    (Fault::CursorKeptBySender, 33, Check::AcknowledgedIsThere),
    (Fault::CursorBeforeApply, 113, Check::AcknowledgedIsThere),
    (Fault::FlushBeforeRepair, 0, Check::AcknowledgedIsThere),
    (Fault::SnapshotMissesWrites, 118, Check::AcknowledgedIsThere),
    (Fault::PagesBeforeMark, 3, Check::BatchesAreWhole),
    (Fault::TornAtReceiver, 3, Check::BatchesAreWhole),
    (Fault::TornByRepair, 321, Check::BatchesAreWhole),
    (Fault::TornByForwarding, 0, Check::BatchesAreWhole),
    (Fault::ForwardedToAll, 0, Check::UpdatesArriveOnce),
    (Fault::SlowLinkDrops, 16, Check::AcknowledgedIsThere),
    (Fault::SafeBeforeSync, 82, Check::ReplicasShowTheReplay),
    (Fault::EventsTwice, 0, Check::EventsArriveOnce),
];

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
        assert!(faults().all(|fault| FOUND.iter().any(|row| row.0 == fault)), "each fault is found");
    }
}
