//! Reads all the time, and looks whether what must always hold does.
use super::{Desk, text};
use crate::soak::{PAIR, SHARED};
use coeval::{EntityId, Path, Snapshot, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(30);
/// More of one kind tell nothing new.
const TOLD: usize = 20;

struct Reader<'a> {
    desk: &'a Desk,
    /// The newest stamp seen of each parameter.
    stamps: BTreeMap<EntityId, BTreeMap<Path, Stamp>>,
    /// Entities seen once and not any more.
    gone: BTreeSet<EntityId>,
    pair: Vec<(EntityId, Path)>,
    told: usize,
}

/// Reads until the process ends.
pub(super) fn run(desk: &Desk) {
    let mut reader =
        Reader { desk, stamps: BTreeMap::new(), gone: BTreeSet::new(), pair: Vec::new(), told: 0 };
    for name in SHARED {
        if let Err(error) = desk.peer.entity(name) {
            reader.tell(format!("opened, but the entity {name:?} that was there first is not: {error}"));
        }
    }
    for (name, path) in PAIR {
        if let (Ok(entity), Ok(path)) = (desk.peer.entity(name), Path::parse(path)) {
            reader.pair.push((entity.id(), path));
        }
    }
    while !desk.is_ending() {
        let written = desk.count.load(Ordering::Acquire);
        let snapshot = desk.peer.snapshot();
        reader.look(&snapshot, written);
        std::thread::sleep(PAUSE);
    }
}

impl Reader<'_> {
    fn tell(&mut self, what: String) {
        self.told += 1;
        if self.told <= TOLD {
            self.desk.violation(what);
        }
    }

    fn look(&mut self, snapshot: &Snapshot, written: u64) {
        self.look_at_pair(snapshot);
        self.look_at_own(snapshot, written);
        self.look_at_entities(snapshot);
        self.look_at_stamps(snapshot);
    }

    /// All cells of the pair are of one batch.
    fn look_at_pair(&mut self, snapshot: &Snapshot) {
        let cells: Vec<_> = self.pair.iter().map(|(id, path)| snapshot.leaf(*id, path)).collect();
        let seen: BTreeSet<_> =
            cells.iter().map(|cell| cell.map(|leaf| (leaf.stamp, text(&leaf.value)))).collect();
        if seen.len() > 1 {
            self.tell(format!("a batch is torn: {seen:?}"));
        }
    }

    /// What this process wrote, it reads.
    fn look_at_own(&mut self, snapshot: &Snapshot, written: u64) {
        let Ok(path) = Path::parse("count") else { return };
        let shown = snapshot.leaf(self.desk.own.id(), &path).map(|leaf| text(&leaf.value));
        let shown = shown.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        if shown < written {
            self.tell(format!("wrote {written} to the own counter, read {shown} after"));
        }
    }

    /// What is gone stays gone.
    fn look_at_entities(&mut self, snapshot: &Snapshot) {
        let back: Vec<_> = self.gone.iter().copied().filter(|id| snapshot.entity(*id).is_some()).collect();
        for id in back {
            self.gone.remove(&id);
            self.tell(format!("resurrected: entity {id} was gone here and is back"));
        }
        let left: Vec<_> = self.stamps.keys().copied().filter(|id| snapshot.entity(*id).is_none()).collect();
        for id in left {
            self.stamps.remove(&id);
            self.gone.insert(id);
        }
        let Ok(mark) = Path::parse("n") else { return };
        let pool = snapshot.entities().filter(|(_, view)| view.leaf(&mark).is_some()).map(|(id, _)| id);
        *self.desk.pool.lock().unwrap_or_else(PoisonError::into_inner) = pool.collect();
    }

    /// The stamp of a parameter never goes back.
    fn look_at_stamps(&mut self, snapshot: &Snapshot) {
        let mut back = Vec::new();
        for (id, view) in snapshot.entities() {
            let known = self.stamps.entry(id).or_default();
            for (path, _) in &view.parameters {
                let Some(leaf) = view.leaf(path) else { continue };
                let old = known.insert(path.clone(), leaf.stamp);
                if old.is_some_and(|old| old > leaf.stamp) {
                    back.push(format!("{id}/{path} went back from {old:?} to {:?}", leaf.stamp));
                }
            }
        }
        back.into_iter().for_each(|what| self.tell(what));
    }
}
