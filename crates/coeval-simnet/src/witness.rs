//! What holds at any time, as one reader of one replica sees it: in snapshots, in rounds of a watch, at each drain.
use crate::check::{Check, Violation};
use crate::ledger::{Map, shown};
use coeval_merge::{Replica, SlotId, SlotKey, SlotState};
use coeval_store::{ChangeKind, PathFilter, Shown, Snapshot, Store, Watch, WatchFilter};
use coeval_time::{Stamp, WallTime};
use coeval_value::{EntityId, Path};
use std::collections::{BTreeMap, BTreeSet};

/// Looks over which a snapshot is held.
const HELD: u32 = 5;

/// The paths that are only ever written together, in one batch: each at its own entity, or below one.
#[derive(Clone, Debug, Default)]
pub struct Twins(pub Vec<(EntityId, Path)>);

/// A snapshot that somebody holds, with what it showed when it was taken.
struct Held {
    snapshot: Snapshot,
    showed: BTreeMap<EntityId, Map>,
    looks: u32,
}

/// What a reader of one replica has seen.
pub struct Witness {
    stamps: BTreeMap<EntityId, BTreeMap<Path, Stamp>>,
    deleted: BTreeSet<EntityId>,
    newest: Stamp,
    session: WallTime,
    twins: Twins,
    /// Where the twins are, once they are.
    twin_slots: Vec<SlotId>,
    position: u64,
    watch: Watch,
    /// What is there, as the watch told it.
    watched: BTreeSet<SlotKey>,
    /// Entities that the watch said are gone.
    gone: BTreeSet<EntityId>,
    held: Option<Held>,
}

impl Witness {
    /// A witness that knows which paths are written together.
    pub fn new(twins: Twins, store: &Store) -> Self {
        Self {
            stamps: BTreeMap::new(),
            deleted: BTreeSet::new(),
            newest: Stamp::default(),
            session: WallTime::default(),
            twins,
            twin_slots: Vec::new(),
            position: 0,
            watch: store.watch(WatchFilter { entity: None, paths: PathFilter::All }),
            watched: BTreeSet::new(),
            gone: BTreeSet::new(),
            held: None,
        }
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

    /// Whether an entity was seen to be deleted.
    pub fn knows_deleted(&self, entity: EntityId) -> bool {
        self.deleted.contains(&entity)
    }

    /// The newest stamp that was read.
    pub const fn newest(&self) -> Stamp {
        self.newest
    }

    /// The replica was drained; what is torn in it.
    pub fn received(&mut self, store: &Store, position: u64) -> Option<String> {
        if std::mem::replace(&mut self.position, position) == position {
            return None;
        }
        if self.twin_slots.len() < self.twins.0.len() {
            let key =
                |(entity, path): &(EntityId, Path)| SlotKey { entity: *entity, path: Some(path.clone()) };
            self.twin_slots = self.twins.0.iter().filter_map(|twin| store.resolve(&key(twin)).ok()).collect();
        }
        let stamp = |slot: &SlotId| match store.read(*slot) {
            Some(SlotState::Node(node)) => node.leaf.map(|leaf| leaf.stamp),
            _ => None,
        };
        let stamps: Vec<Option<Stamp>> = self.twin_slots.iter().map(stamp).collect();
        // What overtakes creations in too great a number is refused one by one, and comes again with a digest.
        let whole = store.counters().orphans_refused == 0;
        (whole && differ(&stamps))
            .then(|| format!("at position {position}, what is written together has {stamps:?}"))
    }

    /// Takes a snapshot and compares it with all before.
    pub fn look(&mut self, store: &Store) -> Vec<Violation> {
        let snapshot = store.snapshot();
        let mut found = Vec::new();
        let mut wrong = |check, detail| found.push(Violation { check, node: None, detail });
        self.read(store, &snapshot, &mut wrong);
        self.poll(store.counters().orphans_refused == 0, &mut wrong);
        self.hold(snapshot, &mut wrong);
        found
    }

    fn read(&mut self, store: &Store, snapshot: &Snapshot, wrong: &mut impl FnMut(Check, String)) {
        for (entity, view) in snapshot.entities() {
            if self.deleted.contains(&entity) {
                wrong(Check::DeletedStaysDeleted, format!("{entity} is shown again"));
            }
            let seen = self.stamps.entry(entity).or_default();
            for (path, shown) in &view.parameters {
                let Shown::Leaf(leaf) = shown else { continue };
                let last = seen.insert(path.clone(), leaf.stamp).unwrap_or_default();
                self.newest = self.newest.max(leaf.stamp);
                if leaf.stamp < last {
                    let detail = format!("{entity} {path} went from {last:?} back to {:?}", leaf.stamp);
                    wrong(Check::StampsGoOn, detail);
                }
            }
        }
        self.deleted.extend(self.stamps.keys().copied().filter(|entity| store.is_deleted(*entity)));
        self.stamps.retain(|entity, _| !self.deleted.contains(entity));
        let stamp = |(entity, path): &(EntityId, Path)| snapshot.leaf(*entity, path).map(|leaf| leaf.stamp);
        let stamps: Vec<Option<Stamp>> = self.twins.0.iter().map(stamp).collect();
        if differ(&stamps) && store.counters().orphans_refused == 0 {
            wrong(Check::BatchesAreWhole, format!("in a snapshot, what is written together has {stamps:?}"));
        }
    }

    /// A round of the watch: of what is written together all or nothing; only what is there goes, only what is not comes.
    fn poll(&mut self, whole: bool, wrong: &mut impl FnMut(Check, String)) {
        let round = self.watch.poll();
        if round.overflowed {
            wrong(Check::WatchesTellAll, "it overflowed".to_owned());
        }
        let told = |(entity, path): &(EntityId, Path)| {
            let key = SlotKey { entity: *entity, path: Some(path.clone()) };
            round.changes.iter().any(|(changed, _)| *changed == key)
        };
        let twins: Vec<bool> = self.twins.0.iter().map(told).collect();
        if whole && differ(&twins) {
            wrong(
                Check::BatchesAreWhole,
                format!("a round of a watch tells of what is written together {twins:?}"),
            );
        }
        for (key, kind) in round.changes {
            let right = match kind {
                ChangeKind::Created => self.watched.insert(key.clone()),
                ChangeKind::Changed => self.watched.contains(&key),
                ChangeKind::Removed => self.watched.remove(&key),
            };
            // What the watch said is gone does not come again. (The store may know of a deletion before its drain.)
            let entity = key.path.is_none().then_some(key.entity);
            let again = kind != ChangeKind::Removed && entity.is_some_and(|id| self.gone.contains(&id));
            if kind == ChangeKind::Removed {
                self.gone.extend(entity);
            }
            if !right || again {
                wrong(Check::WatchesTellAll, format!("{key:?} is {kind:?}, which it cannot be"));
            }
        }
    }

    /// At rest: what the watch told is what a snapshot shows.
    pub fn watched_all(&mut self, store: &Store) -> Vec<Violation> {
        let mut found = self.look(store);
        let snapshot = store.snapshot();
        let shown: BTreeSet<SlotKey> = snapshot
            .entities()
            .flat_map(|(entity, view)| {
                let paths = view.parameters.iter().map(|(path, _)| Some(path.clone()));
                paths.chain([None]).map(move |path| SlotKey { entity, path })
            })
            .collect();
        let differs = shown.symmetric_difference(&self.watched).next();
        found.extend(differs.map(|key| {
            let detail =
                format!("{key:?} is shown: {}, told: {}", shown.contains(key), self.watched.contains(key));
            Violation { check: Check::WatchesTellAll, node: None, detail }
        }));
        found
    }

    /// A snapshot that is held across writes shows what it showed.
    fn hold(&mut self, snapshot: Snapshot, wrong: &mut impl FnMut(Check, String)) {
        let shows = |snapshot: &Snapshot| snapshot.entities().map(|(id, view)| (id, shown(view))).collect();
        let held = self.held.get_or_insert_with(|| {
            let showed = shows(&snapshot);
            Held { snapshot, showed, looks: 0 }
        });
        held.looks += 1;
        if held.looks > HELD {
            let now: BTreeMap<EntityId, Map> = shows(&held.snapshot);
            if now != held.showed {
                wrong(Check::SnapshotsKeep, format!("{now:?} instead of {:?}", held.showed));
            }
            self.held = None;
        }
    }
}

fn differ<T: PartialEq>(all: &[T]) -> bool {
    all.windows(2).any(|pair| pair[0] != pair[1])
}
