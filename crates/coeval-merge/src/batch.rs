//! Batches: operations in program order, resolved into a normal form that carries one stamp.
//!
//! All fragments of a batch have the same stamp, so the merge rule cannot tell which came first. Program order is
//! resolved here instead: what a later operation overwrites is dropped. `set a/b; remove a` leaves a floor at `a`;
//! `set k=1; set k=2` leaves 2; `set a=1; set a/b=2` leaves a floor at `a` and a leaf at `a/b`.
use crate::{Life, NodeState, Op, SlotKey, SlotState};
use coeval_faults::{Fault, active};
use coeval_time::Stamp;
use coeval_value::{EntityId, Key, Leaf, Path, SIM_ENTITY, SampleMeta, Value};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Why a batch refused an operation; the batch is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BatchError {
    /// A nested map reaches deeper than a path may.
    #[error(
        "the map set at {0:?} nests deeper than a path reaches: flatten it, or wrap the inner part in a list"
    )]
    TooDeep(Path),
    /// The `SimEntity` cannot be deleted.
    #[error("the SimEntity cannot be deleted: every world has it")]
    Protected,
}

/// Operations in program order, kept in normal form.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    entities: BTreeMap<EntityId, Draft>,
    ops: usize,
}

/// What a batch does to one entity so far.
#[derive(Clone, Debug, Default)]
struct Draft {
    created: bool,
    deleted: bool,
    nodes: BTreeMap<Path, DraftNode>,
}

/// What a batch does to one path so far: a leaf (with its teleport flag), a clear, a write below.
#[derive(Clone, Debug, Default)]
struct DraftNode {
    leaf: Option<(Value, bool)>,
    floor: bool,
    kind: bool,
}

impl Batch {
    /// A batch of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations were added.
    pub fn len(&self) -> usize {
        self.ops
    }

    /// Whether no operation was added.
    pub fn is_empty(&self) -> bool {
        self.ops == 0
    }

    /// Adds an operation after all others.
    pub fn push(&mut self, op: Op) -> Result<(), BatchError> {
        self.add(op, false)
    }

    /// Adds an operation whose values are teleports: never interpolated or smoothed across.
    pub fn push_discontinuous(&mut self, op: Op) -> Result<(), BatchError> {
        self.add(op, true)
    }

    fn add(&mut self, op: Op, discontinuous: bool) -> Result<(), BatchError> {
        if matches!(op, Op::Delete { entity: SIM_ENTITY }) {
            return Err(BatchError::Protected);
        }
        let draft = self.entities.entry(op.entity()).or_default();
        match op {
            Op::Create { .. } => draft.created = true,
            Op::Delete { .. } => draft.deleted = true,
            Op::Set { path, value: Value::Map(map), .. } | Op::Replace { path, map, .. } => {
                let mut parts = Vec::new();
                flatten(&path, &path, &map, &mut parts)?;
                draft.replace(&path, parts, discontinuous);
            }
            Op::Set { path, value, .. } => draft.set(&path, value, discontinuous),
            Op::Remove { path, .. } => draft.remove(&path),
        }
        self.ops += 1;
        Ok(())
    }

    /// The entities it writes to, in order, with whether it creates and deletes them.
    pub fn entities(&self) -> impl Iterator<Item = (EntityId, bool, bool)> {
        self.entities.iter().map(|(id, d)| (*id, d.created, d.deleted))
    }

    /// The normal form: fragments in slot-key order (an entity's life before its paths), all at `stamp`, leaves with
    /// `meta` (but for the teleport flag, which is the operation's or `meta`'s).
    pub fn fragments(&self, stamp: Stamp, meta: SampleMeta) -> Vec<(SlotKey, SlotState)> {
        let mut out = Vec::new();
        for (&entity, draft) in &self.entities {
            let created = if draft.created { stamp } else { Stamp::NONE };
            let deleted = if draft.deleted { stamp } else { Stamp::NONE };
            if draft.created || draft.deleted {
                out.push((SlotKey { entity, path: None }, Life { created, deleted }.into()));
            }
            if !draft.deleted {
                draft.fragments(entity, stamp, meta, &mut out);
            }
        }
        out
    }
}

impl Draft {
    fn set(&mut self, path: &Path, value: Value, discontinuous: bool) {
        self.enter(path);
        self.drop_below(path);
        let leaf = Some((value, discontinuous));
        self.nodes.insert(path.clone(), DraftNode { leaf, floor: false, kind: false });
    }

    fn remove(&mut self, path: &Path) {
        self.drop_below(path);
        self.nodes.insert(path.clone(), DraftNode { leaf: None, floor: true, kind: false });
    }

    fn replace(&mut self, path: &Path, parts: Vec<(Path, Option<Value>)>, discontinuous: bool) {
        self.enter(path);
        self.drop_below(path);
        self.nodes.insert(path.clone(), DraftNode { leaf: None, floor: true, kind: true });
        for (at, value) in parts {
            let kind = value.is_none();
            let leaf = value.map(|v| (v, discontinuous));
            self.nodes.insert(at, DraftNode { leaf, floor: false, kind });
        }
    }

    /// A write at `path` makes its ancestors maps; a leaf that this batch had put there leaves its implied clear.
    fn enter(&mut self, path: &Path) {
        let mut at = path.parent();
        while let Some(here) = at {
            at = here.parent();
            let node = self.nodes.entry(here).or_default();
            node.floor |= node.leaf.take().is_some();
            node.kind = true;
        }
    }

    fn drop_below(&mut self, path: &Path) {
        if active(Fault::BatchNotNormal) {
            return;
        }
        let below = (Bound::Excluded(path), Bound::Unbounded);
        let gone: Vec<Path> = self
            .nodes
            .range::<Path, _>(below)
            .take_while(|(p, _)| path.contains(p))
            .map(|(p, _)| p.clone())
            .collect();
        for path in gone {
            self.nodes.remove(&path);
        }
    }

    /// What remains, without the floors that a clear above implies and the kinds that a write below implies.
    fn fragments(
        &self,
        entity: EntityId,
        stamp: Stamp,
        meta: SampleMeta,
        out: &mut Vec<(SlotKey, SlotState)>,
    ) {
        let mut clear_above: Option<&Path> = None;

        for (path, node) in &self.nodes {
            let cleared = clear_above.is_some_and(|clear| clear.contains(path));
            if !cleared && (node.floor || node.leaf.is_some()) {
                clear_above = Some(path);
            }
            // A removal below does not imply the kind; a node below that is a map or a leaf does.
            let implied = self.written_below(path);
            let leaf = node.leaf.as_ref().map(|(value, discontinuous)| Leaf {
                stamp,
                meta: SampleMeta { discontinuous: meta.discontinuous || *discontinuous, ..meta },
                value: value.clone(),
            });
            let floor = if node.floor && !cleared { stamp } else { Stamp::NONE };
            let kind = if node.kind && !implied { stamp } else { Stamp::NONE };
            let state = NodeState { leaf, floor, kind };
            if !state.is_empty() {
                out.push((SlotKey { entity, path: Some(path.clone()) }, state.into()));
            }
        }
    }

    fn written_below(&self, path: &Path) -> bool {
        let below = (Bound::Excluded(path), Bound::Unbounded);
        let mut below = self.nodes.range::<Path, _>(below).take_while(|(p, _)| path.contains(p));
        below.any(|(_, n)| n.kind || n.leaf.is_some())
    }
}

/// The leaves (with a value) and inner maps (without) of `map`, set at `at`, in the operation at `top`.
fn flatten(
    top: &Path,
    at: &Path,
    map: &BTreeMap<Key, Value>,
    out: &mut Vec<(Path, Option<Value>)>,
) -> Result<(), BatchError> {
    for (key, value) in map {
        let path = at.child(key.clone()).map_err(|_| BatchError::TooDeep(top.clone()))?;
        if let Value::Map(inner) = value {
            out.push((path.clone(), None));
            flatten(top, &path, inner, out)?;
        } else {
            out.push((path, Some(value.clone())));
        }
    }
    Ok(())
}
