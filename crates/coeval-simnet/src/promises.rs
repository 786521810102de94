//! What holds at any time between two replicas: what a peer said it has, it has.
use crate::check::{Check, Violation};
use crate::mesh::Mesh;
use crate::net::Site;
use crate::program::Program;
use coeval_merge::{Op, Replica, SlotKey, SlotState};
use coeval_time::{ADMITTED_LEAD, EditId, Stamp};
use coeval_value::{EntityId, NodeId, Path};
use std::collections::BTreeMap;

/// How many of a program's last writes are looked at, and how many of all its writes.
const LAST: usize = 8;
const SPREAD: usize = 16;

/// The newest clear or value at each path of an entity.
type Clears = BTreeMap<Path, Stamp>;

/// The last writes of each program are in each replica that acknowledged them, or something newer is.
pub(crate) fn check(mesh: &Mesh) -> Vec<Violation> {
    let programs: Vec<&Program> =
        mesh.live().into_iter().filter_map(|site: Site| mesh.program(site)).collect();
    let mut looks = Looks { mesh, seen: BTreeMap::new() };
    let mut found = Vec::new();
    for author in &programs {
        let step = author.placed.len().div_ceil(SPREAD).max(1);
        let all = author.placed.iter().rev();
        for (stamp, position) in all.clone().take(LAST).chain(all.skip(LAST).step_by(step)) {
            let flushed = author.sync.flushed(*position);
            let claims = |program: &&&Program| flushed.get(&program.node()).is_some_and(|done| *done);
            for there in programs.iter().filter(claims) {
                if counts(*stamp, there) && !looks.holds(author, there, *stamp) {
                    let detail =
                        format!("it acknowledged {stamp:?} of {} and lacks it", author.node().short());
                    let node = Some(there.node());
                    found.push(Violation { check: Check::AcknowledgedIsThere, node, detail });
                }
            }
        }
    }
    found
}

/// Whether a write must be in effect there, and not parked.
fn counts(stamp: Stamp, there: &Program) -> bool {
    let limit = there.time.session_now().saturating_add(ADMITTED_LEAD);
    there.is_open() && there.sync.parked() == 0 && stamp.wall() <= limit
}

/// What was looked up so far.
struct Looks<'a> {
    mesh: &'a Mesh,
    seen: BTreeMap<(NodeId, EntityId), Clears>,
}

impl Looks<'_> {
    /// Whether all that a batch wrote, or something newer, is there.
    fn holds(&mut self, author: &Program, there: &Program, stamp: Stamp) -> bool {
        let mesh = self.mesh;
        if mesh.entries.contains_key(&stamp) {
            return there.store.entry(EditId { stamp, index: 0 }).is_some();
        }
        let Some(record) = mesh.ledger.0.get(&stamp) else { return true };
        record.acts.iter().all(|(op, _)| {
            let entity = op.entity();
            let path = match op {
                _ if there.store.is_deleted(entity) || author.store.is_deleted(entity) => return true,
                Op::Create { .. } => return there.store.exists(entity),
                Op::Delete { .. } => return false,
                Op::Set { path, .. } | Op::Remove { path, .. } | Op::Replace { path, .. } => path,
            };
            self.clear(there, entity, path) >= stamp
        })
    }

    /// The newest write or clear of a path or of one above it.
    fn clear(&mut self, at: &Program, entity: EntityId, path: &Path) -> Stamp {
        let chain = std::iter::successors(Some(path.clone()), Path::parent);
        if !at.store.exists(entity) {
            // It waits for the entity's creation, and the summary does not tell of it.
            return chain.map(|path| waiting(at, entity, path)).max().unwrap_or_default();
        }
        let clears = self.seen.entry((at.node(), entity)).or_insert_with(|| {
            let slots = at.store.summary(entity).into_iter();
            slots.filter_map(|slot| Some((slot.key.path?, slot.first.max(slot.floor)))).collect()
        });
        chain.filter_map(|path| clears.get(&path).copied()).max().unwrap_or_default()
    }
}

/// The write or clear of one path of an entity that need not be known.
fn waiting(at: &Program, entity: EntityId, path: Path) -> Stamp {
    let key = SlotKey { entity, path: Some(path) };
    let state = at.store.resolve(&key).ok().and_then(|slot| at.store.read(slot));
    match state {
        Some(SlotState::Node(node)) => node.leaf.map_or(Stamp::NONE, |leaf| leaf.stamp).max(node.floor),
        _ => Stamp::NONE,
    }
}
