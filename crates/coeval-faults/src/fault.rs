//! The faults that can be put in, and the words they go by.

/// Makes the enum, the list of all, and the names from one table.
macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident = $name:literal,)*) => {
        /// A fault that some version of this or another system had, or that its design rules out.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$(Self::$fault),*];

            /// What it does, in a few words.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)*
                }
            }
        }
    };
}

faults! {
    // The merge rule.
    /// Of two writes at one reading of the hybrid clock, the greater value wins, not the greater writer.
    EqualStampsTieByValue = "equal stamps tie by value",
    /// A batch keeps what a later operation of it overwrote: all of it has one stamp, so the later one does not win.
    BatchNotNormal = "batches not in normal form",
    /// A clear also hides what its own batch wrote below it.
    ClearBeatsItsBatch = "a clear beats its own batch",
    /// Whether a path is a map follows from the children that are left, not from those that ever were.
    KindFromSurvivors = "kind derived from surviving leaves",
    /// A dominated node is dropped without its stamp being kept by its parent.
    PrunedWithoutFolding = "pruning without folding into the parent's kind",
    /// A leaf that a newer clear hides goes on counting in the digest.
    DigestOverHidden = "digest over hidden leaves",
    /// A write newer than the deletion of its entity brings the entity back.
    DeletionLoses = "deletion loses against a later write",
    /// A deletion is forgotten a few seconds after it was made.
    TombstonesDropped = "tombstones dropped after a time",
    /// Every NaN becomes the same NaN on its way.
    NanCanonicalized = "value bits canonicalized",

    // Time.
    /// What is received can be read before the hybrid clock was raised to its stamp.
    ClockRaisedAfterPublishing = "hybrid clock raised after publishing",
    /// A restart begins at the OS clock, not above the stamps of the life before.
    ClockResetOnRestart = "hybrid clock reset on restart",
    /// A machine that opens again is who it was before.
    DuplicateIncarnation = "duplicate incarnation",
    /// A stamp far ahead of session time counts at once.
    FarFutureAdopted = "far-future stamp adopted",
    /// What arrives before it is due is forgotten; what arrives when it is due counts.
    ParkedByArrival = "parking decided by arrival time",
    /// A clock edit that arrives late takes effect when it arrives, not where it belongs.
    LateEditAtArrival = "late clock edit applied at arrival",

    // Replication.
    /// Whoever sends remembers how far the receiver was, also when the receiver lost everything.
    CursorKeptBySender = "cursor kept by the sender only",
    /// A cursor moves on while what was held before the link came up has not arrived.
    CursorBeforeApply = "cursor advanced before the apply",
    /// A flush returns before what was held when the link came up is across.
    FlushBeforeRepair = "flush returns before the first repair is through",
    /// What is written while a joiner takes its snapshot, to a slot that it was sent, is left out.
    SnapshotMissesWrites = "snapshot for a joiner misses concurrent writes",
    /// Pages of a snapshot are applied one by one though the receiver's readers count on whole batches.
    PagesBeforeMark = "snapshot pages applied before the mark",
    /// Parts of a delta are applied as they arrive.
    TornAtReceiver = "batch torn at the receiver",
    /// Repair sends of a batch only what it noticed first.
    TornByRepair = "batch torn by repair",
    /// What is passed on goes in parts, each with a mark of its own.
    TornByForwarding = "batch torn by forwarding",
    /// A change goes on to every neighbor but the one it came from.
    ForwardedToAll = "forwarded to everyone",
    /// What a link cannot take now is dropped.
    SlowLinkDrops = "slow link drops instead of conflating",
    /// What a journal has handed to the system counts as safe before it is on the disk.
    SafeBeforeSync = "journal told safe before it is synced",
    /// An event that was sent again is delivered again.
    EventsTwice = "events sent again without being told apart",

    // The atomics. Only the order of memory shows these: loom finds them.
    /// A mark is skipped when a plain look shows the bit set.
    DirtyBitSkipped = "dirty bit skipped on a plain load",
    /// A drain reads the bits and then clears them.
    DirtyBitsCleared = "dirty bits read, then cleared",
    /// The ring's head moves before the slot is written.
    RingPublishedEarly = "ring cell published before its slot is written",
    /// The words of a sample can be seen before its announcement.
    RingFenceMissing = "ring cell written without a fence",
    /// The consumer goes to sleep without a point in the order of all threads.
    BellFenceMissing = "doorbell set without a fence",
    /// The hybrid clock is set to a received stamp, not raised to it.
    ClockSetNotRaised = "hybrid clock set instead of raised",
}

impl Fault {
    /// Whether only a model of the atomics can show it: the simulator runs one thread.
    pub const fn is_of_atomics(self) -> bool {
        matches!(
            self,
            Self::DirtyBitSkipped
                | Self::DirtyBitsCleared
                | Self::RingPublishedEarly
                | Self::RingFenceMissing
                | Self::BellFenceMissing
                | Self::ClockSetNotRaised
        )
    }
}
