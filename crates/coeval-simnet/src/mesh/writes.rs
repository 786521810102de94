//! What the threads of a mesh's programs do: writes, clock edits, records, events, handles. Each is compared at once with
//! what its replica then holds.
use super::Mesh;
use crate::check::Check;
use crate::ledger::{Act, Record};
use crate::net::Site;
use crate::program::SentEvent;
use crate::timepiece::START;
use coeval_merge::{Op, Replica, SlotKey, SlotState};
use coeval_store::WriteError;
use coeval_sync::{Event, Target};
use coeval_time::{Context, EditKind, Stamp, WallDuration, WallTime};
use coeval_value::{EntityId, Path, SampleMeta, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How far beyond the lead a node's stamps may be, by the error of its own session time.
const SLACK: WallDuration = WallDuration::from_secs(1);

impl Mesh {
    /// Notes that something was written at `site`: its engine is woken if the store asks for it.
    fn touch(&mut self, site: Site) {
        if self.program(site).is_some_and(|program| program.is_rung()) {
            self.net.wake(site);
        }
    }

    /// Writes a batch at a site, or by a handle one value, and compares what the store then holds.
    ///
    /// # Errors
    /// What the store says; nothing was written.
    pub fn write(&mut self, site: Site, acts: Vec<Act>, handle: Option<usize>) -> Result<Stamp, WriteError> {
        let Some(program) = self.net.machine_mut(site) else { return Err(WriteError::ForeignContext) };
        let (context, store) = (program.store.context(), Arc::clone(&program.store));
        let written = match (handle, &acts[..]) {
            (Some(handle), [(Op::Set { value, .. }, teleport)]) => {
                let handle = &program.handles[handle];
                if *teleport {
                    handle.teleport(context, value.clone())
                } else {
                    handle.set(context, value.clone())
                }
            }
            (_, [act]) => single(&store, context, act),
            _ => batch(&store, context, &acts),
        };
        self.operations += 1;
        let stamp = written.inspect_err(|_| self.refusals += 1)?;
        let meta = SampleMeta {
            sim: context.sim,
            epoch: context.epoch,
            direction: context.direction,
            discontinuous: false,
        };
        self.issued(site, stamp);
        self.after_reading(site, stamp, &acts);
        self.read_back(site, stamp, &acts);
        self.tell(|| format!("site {site} writes {stamp:?}: {acts:?}"));
        acts.iter().for_each(|(op, _)| touch_all(op, &mut self.touched));
        self.ledger.note(stamp, Record { acts, meta });
        self.touch(site);
        Ok(stamp)
    }

    /// A stamp was issued at a site.
    fn issued(&mut self, site: Site, stamp: Stamp) {
        let last = self.last.insert(stamp.writer, stamp).unwrap_or_default();
        if !self.issued.insert(stamp) {
            self.violate(Check::StampsAreUnique, format!("{stamp:?} was issued before"));
        }
        let Some(program) = self.net.machine_mut(site) else { return };
        program.unplaced.push(stamp);
        if stamp.hlc <= program.stamp_floor {
            let floor = program.stamp_floor;
            program.violate(Check::HybridClockGoesOn, format!("{stamp:?} after a life that reached {floor}"));
        }
        if stamp <= last || stamp.writer != program.node().incarnation {
            program.violate(Check::HybridClockGoesOn, format!("{stamp:?} after {last:?}"));
        }
        // A clock that was set back, or is a little wrong, adds to what a peer may be ahead.
        let (now, lead) = (program.store.now(), self.plan.config.lead);
        let ahead = stamp.wall().since(now).as_nanos();
        if ahead > lead.as_nanos() + SLACK.as_nanos() + self.set_back.get(&site).copied().unwrap_or_default()
        {
            let detail = format!("{stamp:?} is {:.3} s ahead of the node's own time", ahead as f64 * 1e-9);
            program.violate(Check::ParkedDoesNotDrag, detail);
        }
        let right = START.saturating_add(WallDuration::from_nanos(self.net.now().as_nanos().cast_signed()));
        if stamp.wall().since(right) > lead {
            self.parked.insert(stamp);
        }
    }

    /// What was just written is what the store holds.
    fn read_back(&mut self, site: Site, stamp: Stamp, acts: &[Act]) {
        let Some(program) = self.net.machine_mut(site) else { return };
        for (op, _) in acts {
            if let Op::Delete { entity } = op {
                program.deleted(*entity);
            }
        }
        let [(Op::Set { entity, path, value }, _)] = acts else { return };
        if matches!(value, Value::Map(_)) {
            return;
        }
        let key = SlotKey { entity: *entity, path: Some(path.clone()) };
        let state = program.store.resolve(&key).ok().and_then(|slot| program.store.read(slot));
        let leaf = match state {
            Some(SlotState::Node(node)) => node.leaf,
            _ => None,
        };
        if leaf.as_ref().is_none_or(|leaf| leaf.stamp != stamp || leaf.value != *value) {
            let detail = format!("{entity} {path} was set to {value:?} at {stamp:?} and holds {leaf:?}");
            program.violate(Check::WritersReadTheirWrites, detail);
        }
    }

    /// What was written is newer than all that could be read here, and not of an entity known to be deleted.
    fn after_reading(&mut self, site: Site, stamp: Stamp, acts: &[Act]) {
        let Some(program) = self.net.machine_mut(site) else { return };
        let seen = program.newest_seen();
        if stamp <= seen {
            program.violate(Check::WritesAfterReadsWin, format!("{stamp:?} after reading {seen:?}"));
        }
        let written = |op: &Op| !matches!(op, Op::Delete { .. } | Op::Create { .. });
        for (op, _) in acts.iter().filter(|(op, _)| written(op)) {
            if program.knows_deleted(op.entity()) {
                let detail = format!("{} was written to", op.entity());
                program.violate(Check::DeletedStaysDeleted, detail);
            }
        }
    }

    /// Edits the clock at a site.
    pub fn edit_clock(&mut self, site: Site, kinds: &[EditKind], at: Option<WallTime>) {
        let Some(store) = self.program(site).map(|program| Arc::clone(&program.store)) else { return };
        self.operations += 1;
        match store.edit_clock(kinds, at) {
            Ok(edits) => {
                let Some(first) = edits.first() else { return };
                self.issued(site, first.id.stamp);
                self.entries.insert(first.id.stamp, edits.len());
                self.touch(site);
            }
            Err(_) => self.refusals += 1,
        }
    }

    /// Adds a session record at a site.
    pub fn add_record(&mut self, site: Site, topic: &str, value: Value) {
        let Some(store) = self.program(site).map(|program| Arc::clone(&program.store)) else { return };
        self.operations += 1;
        if let Ok(entry) = store.add_record(topic, value) {
            self.issued(site, entry.id.stamp);
            self.entries.insert(entry.id.stamp, 1);
            self.touch(site);
        }
    }

    /// Sends an event from a site.
    pub fn send_event(&mut self, site: Site, target: Target, value: Value, command: bool) {
        let Some(program) = self.net.machine_mut(site) else { return };
        self.operations += 1;
        let sim = program.store.context().sim;
        let event = Event { topic: "signal".into(), target, value: value.clone(), sim, command };
        match program.sync.send_event(event) {
            Ok(number) => {
                let to = match target {
                    Target::Peer(node) => BTreeSet::from([node]),
                    _ => program.present.clone(),
                };
                program.sent.push(SentEvent { number, value, due: to.clone(), to, command });
            }
            Err(_) => self.refusals += 1,
        }
        self.net.perform(site, Vec::new());
    }

    /// A handle on a parameter, kept at the site.
    pub fn hold(&mut self, site: Site, entity: EntityId, path: &Path) {
        let Some(program) = self.net.machine_mut(site) else { return };
        if let Ok(handle) = program.store.param(entity, path) {
            program.hold(handle);
        }
    }
}

/// The slots that an operation makes: its path, all above, and all that its map spells out below.
fn touch_all(op: &Op, out: &mut BTreeSet<SlotKey>) {
    let entity = op.entity();
    let mut touch = |path: Option<Path>| _ = out.insert(SlotKey { entity, path });
    touch(None);
    let (path, value) = match op {
        Op::Set { path, value, .. } => (path, Some(value.clone())),
        Op::Replace { path, map, .. } => (path, Some(Value::Map(Arc::clone(map)))),
        Op::Remove { path, .. } => (path, None),
        Op::Create { .. } | Op::Delete { .. } => return,
    };
    for depth in 1..=path.keys().len() {
        touch(Path::new(path.keys()[..depth].to_vec()).ok());
    }
    let mut below = vec![(path.clone(), value)];
    while let Some((path, value)) = below.pop() {
        touch(Some(path.clone()));
        if let Some(Value::Map(map)) = value {
            below.extend(
                map.iter()
                    .filter_map(|(key, value)| Some((path.child(key.clone()).ok()?, Some(value.clone())))),
            );
        }
    }
}

fn single(store: &coeval_store::Store, context: Context, (op, teleport): &Act) -> Result<Stamp, WriteError> {
    match op.clone() {
        Op::Create { entity } => store.create_entity(context, entity, None),
        Op::Delete { entity } => store.delete_entity(context, entity),
        Op::Set { entity, path, value } if *teleport => store.teleport(context, entity, &path, value),
        Op::Set { entity, path, value } => store.set(context, entity, &path, value),
        Op::Remove { entity, path } => store.remove(context, entity, &path),
        Op::Replace { entity, path, map } => store.set(context, entity, &path, Value::Map(map)),
    }
}

fn batch(store: &coeval_store::Store, context: Context, acts: &[Act]) -> Result<Stamp, WriteError> {
    let mut batch = store.batch(context);
    for (op, teleport) in acts {
        match op.clone() {
            Op::Create { entity } => batch.create(entity)?,
            Op::Delete { entity } => batch.delete(entity)?,
            Op::Set { entity, path, value } if *teleport => batch.teleport(entity, &path, value)?,
            Op::Set { entity, path, value } => batch.set(entity, &path, value)?,
            Op::Remove { entity, path } => batch.remove(entity, &path)?,
            Op::Replace { entity, path, map } => batch.replace(entity, &path, BTreeMap::clone(&map))?,
        };
    }
    batch.commit()
}
