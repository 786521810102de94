//! What must hold: by name, with when it is checked.
//!
//! | check | when | what must hold |
//! |---|---|---|
//! | `StampsGoOn` | anytime | The stamp that a reader sees at a path never goes back. |
//! | `WritersReadTheirWrites` | anytime | What a thread wrote is what its replica holds. |
//! | `WritesAfterReadsWin` | anytime | What a thread writes is newer than all it could read. |
//! | `BatchesAreWhole` | anytime | Snapshots, rounds of a watch and receivers hold all or none of a batch. |
//! | `SnapshotsKeep` | anytime | A snapshot that is held across writes shows what it showed. |
//! | `WatchesTellAll` | anytime | A watch tells that only those come that were not there, and only those change or go that were; at rest it has told all that is there. |
//! | `AcknowledgedIsThere` | anytime | What a peer acknowledged is in its replica, or something newer. |
//! | `JournalsKeep` | anytime | A journal can be read again, and all of it has room. |
//! | `HybridClockGoesOn` | anytime | Each stamp of a node is above all it issued before. |
//! | `StampsAreUnique` | anytime | No stamp and no incarnation is used twice. |
//! | `ParkedDoesNotDrag` | anytime | What is too far ahead pulls no other node's stamps along. |
//! | `DeletedStaysDeleted` | anytime | What was deleted is never seen again, and not written to. |
//! | `SessionTimeGoesOn` | anytime | Session wall time never goes back. |
//! | `PeersUnderstandEachOther` | anytime | No frame of one honest engine is an error to another. |
//! | `DigestsMeanStates` | anytime | Two digests are equal exactly when the canonical states are. |
//! | `SendersStayBounded` | anytime | Who reads slowly, or not at all, costs its senders one entry for each changed parameter and a window of bytes. |
//! | `LeftoversAreBounded` | anytime | Tombstones and writes that overtook a creation stay within their limits. |
//! | `MeshConverges` | eventually | Within 90 s after faults stop, and as much longer as the fastest clock was ahead, all digests are equal, nothing waits or is parked, and all are present to all. |
//! | `OneLossHeals` | eventually | Any one message that is lost for good is made good within two digest periods and a second. |
//! | `MergeIsALattice` | finally | Merging the states that links carried is commutative, associative and idempotent. |
//! | `ReplicasShowTheReplay` | finally | Every replica shows what replaying the surviving batches in stamp order shows. |
//! | `ChildrenShowByTheRule` | finally | A child is visible exactly when the replay shows it. |
//! | `ScalarsAndMapsFlipAlike` | finally | What is a scalar in the replay is one everywhere, and what is a map is a map. |
//! | `BitsSurvive` | finally | NaN payloads and -0.0 arrive bit for bit. |
//! | `DigestsAreRight` | finally | Kept digests are those of a plain replica after the same batches. |
//! | `AcknowledgedSurvives` | finally | What a living node acknowledged, its living author wrote, or a journal had safely, is there. |
//! | `ParkedComesDue` | finally | What was parked is there in the end. |
//! | `JoinersEndEqual` | finally | Who joined while others wrote ends equal. |
//! | `AbsentEndEqual` | finally | Who was given up and came back ends equal, and brings nothing back. |
//! | `ClocksAgree` | finally | Sim time is the same everywhere, to the nanosecond, at any wall instant, as the edits fold in any order. |
//! | `EventsArriveOnce` | finally | Events arrive once and in order at those who were present when they were sent, and at no one else; commands are answered once. |
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
    BatchesAreWhole Anytime "Snapshots, rounds of a watch and receivers hold all or none of a batch.";
    SnapshotsKeep Anytime "A snapshot that is held across writes shows what it showed.";
    WatchesTellAll Anytime "A watch tells that only those come that were not there, and only those change or go that were; at rest it has told all that is there.";
    AcknowledgedIsThere Anytime "What a peer acknowledged is in its replica, or something newer.";
    JournalsKeep Anytime "A journal can be read again, and all of it has room.";
    HybridClockGoesOn Anytime "Each stamp of a node is above all it issued before.";
    StampsAreUnique Anytime "No stamp and no incarnation is used twice.";
    ParkedDoesNotDrag Anytime "What is too far ahead pulls no other node's stamps along.";
    DeletedStaysDeleted Anytime "What was deleted is never seen again, and not written to.";
    SessionTimeGoesOn Anytime "Session wall time never goes back.";
    PeersUnderstandEachOther Anytime "No frame of one honest engine is an error to another.";
    DigestsMeanStates Anytime "Two digests are equal exactly when the canonical states are.";
    SendersStayBounded Anytime "Who reads slowly, or not at all, costs its senders one entry for each changed parameter and a window of bytes.";
    LeftoversAreBounded Anytime "Tombstones and writes that overtook a creation stay within their limits.";
    MeshConverges Eventually "Within 90 s after faults stop, and as much longer as the fastest clock was ahead, all digests are equal, nothing waits or is parked, and all are present to all.";
    OneLossHeals Eventually "Any one message that is lost for good is made good within two digest periods and a second.";
    MergeIsALattice Finally "Merging the states that links carried is commutative, associative and idempotent.";
    ReplicasShowTheReplay Finally "Every replica shows what replaying the surviving batches in stamp order shows.";
    ChildrenShowByTheRule Finally "A child is visible exactly when the replay shows it.";
    ScalarsAndMapsFlipAlike Finally "What is a scalar in the replay is one everywhere, and what is a map is a map.";
    BitsSurvive Finally "NaN payloads and -0.0 arrive bit for bit.";
    DigestsAreRight Finally "Kept digests are those of a plain replica after the same batches.";
    AcknowledgedSurvives Finally "What a living node acknowledged, its living author wrote, or a journal had safely, is there.";
    ParkedComesDue Finally "What was parked is there in the end.";
    JoinersEndEqual Finally "Who joined while others wrote ends equal.";
    AbsentEndEqual Finally "Who was given up and came back ends equal, and brings nothing back.";
    ClocksAgree Finally "Sim time is the same everywhere, to the nanosecond, at any wall instant, as the edits fold in any order.";
    EventsArriveOnce Finally "Events arrive once and in order at those who were present when they were sent, and at no one else; commands are answered once.";
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
