//! What must hold: by name, at any time, and as one reader of one replica sees it.
use coeval_store::{Shown, Snapshot, Store};
use coeval_time::{Stamp, WallTime};
use coeval_value::{EntityId, NodeId, Path};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The invariants of a mesh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Check {
    /// At any time: the stamp that a reader sees at a path never goes back.
    StampsGoOn,
    /// At any time: what a thread wrote is what its replica holds.
    WritersReadTheirWrites,
    /// At any time: snapshots of a replica that has caught up hold all or none of a batch.
    BatchesAreWhole,
    /// At any time: each stamp of a node is above all it issued before.
    HybridClockGoesOn,
    /// At any time: what was deleted is never seen again, and not written to.
    DeletedStaysDeleted,
    /// At any time: session wall time never goes back.
    SessionTimeGoesOn,
    /// At any time: no frame of one honest engine is an error to another.
    PeersUnderstandEachOther,
    /// Eventually: when faults stop, all digests become equal, nothing waits, and all are present to all.
    MeshConverges,
    /// Finally: every replica shows what replaying the surviving batches in stamp order shows.
    ReplicasShowTheReplay,
    /// Finally: kept digests are those of a plain replica after the same batches.
    DigestsAreRight,
    /// Finally: what a living node acknowledged, or its living author wrote, is there.
    AcknowledgedSurvives,
    /// Finally: sim time is the same everywhere, to the nanosecond, at any wall instant, and as the edits fold.
    ClocksAgree,
    /// Finally: events arrive once and in order at those who were present when they were sent, and at no one else.
    EventsArriveOnce,
    /// Finally: equal replicas exchange root digests and nothing else.
    EqualIsQuiet,
    /// Finally: at rest, every neighbor has acknowledged everything.
    FlushReturns,
    /// Finally: in steady state each update reaches each peer about once.
    UpdatesArriveOnce,
    /// Finally: nothing that an honest node wrote was refused.
    NothingIsRefused,
    /// The same seed gives the same run.
    RunsRepeat,
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

/// The paths that are only ever written together, in one batch: each at its own entity, or below one.
#[derive(Clone, Debug, Default)]
pub struct Twins(pub Vec<(EntityId, Path)>);

/// What a reader of one replica has seen.
#[derive(Debug, Default)]
pub struct Witness {
    shown: BTreeMap<(EntityId, Path), Stamp>,
    deleted: BTreeSet<EntityId>,
    session: WallTime,
    /// The paths whose batches must be whole.
    twins: Twins,
}

impl Witness {
    /// A witness that knows which paths are written together.
    pub fn new(twins: Twins) -> Self {
        Self { twins, ..Self::default() }
    }

    /// Session wall time, read again; what is wrong with it.
    pub fn session_time(&mut self, now: WallTime) -> Option<String> {
        let before = std::mem::replace(&mut self.session, now);
        (now < before).then(|| format!("went from {before} back to {now}"))
    }

    /// An entity was deleted here.
    pub fn deleted(&mut self, entity: EntityId) {
        self.deleted.insert(entity);
    }

    /// Takes a snapshot and compares it with all before. `whole`: batches must not be torn.
    pub fn look(&mut self, store: &Store, whole: bool) -> Vec<Violation> {
        let snapshot = store.snapshot();
        let node = None;
        let mut found = Vec::new();
        for (entity, view) in snapshot.entities() {
            if self.deleted.contains(&entity) {
                let detail = format!("{entity} is shown again");
                found.push(Violation { check: Check::DeletedStaysDeleted, node, detail });
            }
            for (path, shown) in &view.parameters {
                let Shown::Leaf(leaf) = shown else { continue };
                let last = self.shown.entry((entity, path.clone())).or_default();
                if leaf.stamp < *last {
                    let detail = format!("{entity} {path} went from {last:?} back to {:?}", leaf.stamp);
                    found.push(Violation { check: Check::StampsGoOn, node, detail });
                }
                *last = leaf.stamp;
            }
        }
        for &(entity, _) in self.shown.keys() {
            if store.is_deleted(entity) {
                self.deleted.insert(entity);
            }
        }
        self.shown.retain(|(entity, _), _| !self.deleted.contains(entity));
        found.extend(self.torn(&snapshot).filter(|_| whole));
        found
    }

    fn torn(&self, snapshot: &Snapshot) -> Option<Violation> {
        let stamp = |(entity, path): &(EntityId, Path)| snapshot.leaf(*entity, path).map(|leaf| leaf.stamp);
        let stamps: Vec<Option<Stamp>> = self.twins.0.iter().map(stamp).collect();
        let differ = stamps.windows(2).any(|pair| pair[0] != pair[1]);
        let detail = format!("what is written together has the stamps {stamps:?}");
        differ.then_some(Violation { check: Check::BatchesAreWhole, node: None, detail })
    }
}
