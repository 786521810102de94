//! What must hold: by name, with when it is checked.
//!
//! | check | when | what must hold |
//! |---|---|---|
//! | `StampsGoOn` | anytime | The stamp that a reader sees at a path never goes back. |
//! | `WritersReadTheirWrites` | anytime | What a thread wrote is what its replica holds. |
//! | `WritesAfterReadsWin` | anytime | What a thread writes is newer than all it could read. |
//! | `BatchesAreWhole` | anytime | Snapshots and receivers that have caught up hold all or none of a batch. |
//! | `HybridClockGoesOn` | anytime | Each stamp of a node is above all it issued before. |
//! | `StampsAreUnique` | anytime | No stamp and no incarnation is used twice. |
//! | `DeletedStaysDeleted` | anytime | What was deleted is never seen again, and not written to. |
//! | `SessionTimeGoesOn` | anytime | Session wall time never goes back. |
//! | `PeersUnderstandEachOther` | anytime | No frame of one honest engine is an error to another. |
//! | `MeshConverges` | eventually | Within 90 s after faults stop, and as much longer as the fastest clock was ahead, all digests are equal, nothing waits, and all are present to all. |
//! | `ReplicasShowTheReplay` | finally | Every replica shows what replaying the surviving batches in stamp order shows. |
//! | `DigestsAreRight` | finally | Kept digests are those of a plain replica after the same batches. |
//! | `AcknowledgedSurvives` | finally | What a living node acknowledged, or its living author wrote, is there. |
//! | `ClocksAgree` | finally | Sim time is the same everywhere, to the nanosecond, at any wall instant, and as the edits fold. |
//! | `EventsArriveOnce` | finally | Events arrive once and in order at those who were present when they were sent, and at no one else. |
//! | `EqualIsQuiet` | finally | Equal replicas exchange root digests and nothing else. |
//! | `FlushReturns` | finally | At rest, every neighbor has acknowledged everything. |
//! | `UpdatesArriveOnce` | finally | In steady state each update reaches each peer about once: at most 1.1 copies. |
//! | `NothingIsRefused` | finally | Nothing that an honest node wrote was refused. |
//! | `RunsRepeat` | finally | The same seed gives the same run. |
use coeval_value::NodeId;
use std::fmt;

/// When a check is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// While faults go on.
    Anytime,
    /// When faults stop.
    Eventually,
    /// At the end.
    Finally,
}

/// Makes the checks, and the table of them, from one list.
macro_rules! checks {
    ($($name:ident $when:ident $promise:literal;)*) => {
        /// The invariants of a mesh. The table is at the head of this file.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Check {
            $(#[doc = $promise] $name,)*
        }

        impl Check {
            /// All of them: when they are checked, and what must hold.
            pub const ALL: &[(Self, When, &'static str)] = &[$((Self::$name, When::$when, $promise),)*];
        }
    };
}

checks! {
    StampsGoOn Anytime "The stamp that a reader sees at a path never goes back.";
    WritersReadTheirWrites Anytime "What a thread wrote is what its replica holds.";
    WritesAfterReadsWin Anytime "What a thread writes is newer than all it could read.";
    BatchesAreWhole Anytime "Snapshots and receivers that have caught up hold all or none of a batch.";
    HybridClockGoesOn Anytime "Each stamp of a node is above all it issued before.";
    StampsAreUnique Anytime "No stamp and no incarnation is used twice.";
    DeletedStaysDeleted Anytime "What was deleted is never seen again, and not written to.";
    SessionTimeGoesOn Anytime "Session wall time never goes back.";
    PeersUnderstandEachOther Anytime "No frame of one honest engine is an error to another.";
    MeshConverges Eventually "Within 90 s after faults stop, and as much longer as the fastest clock was ahead, all digests are equal, nothing waits, and all are present to all.";
    ReplicasShowTheReplay Finally "Every replica shows what replaying the surviving batches in stamp order shows.";
    DigestsAreRight Finally "Kept digests are those of a plain replica after the same batches.";
    AcknowledgedSurvives Finally "What a living node acknowledged, or its living author wrote, is there.";
    ClocksAgree Finally "Sim time is the same everywhere, to the nanosecond, at any wall instant, and as the edits fold.";
    EventsArriveOnce Finally "Events arrive once and in order at those who were present when they were sent, and at no one else.";
    EqualIsQuiet Finally "Equal replicas exchange root digests and nothing else.";
    FlushReturns Finally "At rest, every neighbor has acknowledged everything.";
    UpdatesArriveOnce Finally "In steady state each update reaches each peer about once: at most 1.1 copies.";
    NothingIsRefused Finally "Nothing that an honest node wrote was refused.";
    RunsRepeat Finally "The same seed gives the same run.";
}

/// A broken invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which.
    pub check: Check,
    /// Where; `None`: in the mesh as a whole.
    pub node: Option<NodeId>,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, node, detail } = self;
        match node {
            Some(node) => write!(f, "{check:?} at {}: {detail}", node.short()),
            None => write!(f, "{check:?}: {detail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_docs_lists_every_check() {
        let rows = Check::ALL.iter().map(|(check, when, promise)| {
            format!("//! | `{check:?}` | {} | {promise} |", format!("{when:?}").to_lowercase())
        });
        let table: Vec<&str> =
            include_str!("check.rs").lines().filter(|line| line.starts_with("//! | `")).collect();
        assert_eq!(rows.collect::<Vec<_>>(), table);
    }
}
