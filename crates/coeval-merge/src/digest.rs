//! The digest: an order-independent 128-bit sum over canonical state, so that replicas compare worlds in 16 bytes.
//!
//! Each canonical fragment is written out in one defined form (little-endian, lengths first, floats by their bits:
//! NaN payloads and -0.0 are themselves), hashed with XXH3-128, and the hashes are added modulo 2^128. A sum, unlike
//! an exclusive-or, does not lose a fragment counted twice, and can be kept up to date by subtracting what a
//! fragment was and adding what it is. It detects accidents, not forgeries.
use crate::{Digest, Entry, EntryBody, LeafStore, Life, NodeState, Tree};
use coeval_time::{EditId, EditKind, Epoch, SimDuration, SimTime, Stamp};
use coeval_value::{EntityId, Leaf, Motion, Path, Value};
use xxhash_rust::xxh3::xxh3_128;

const LIFE: u8 = 1;
const NODE: u8 = 2;
const ENTRY: u8 = 3;

impl Digest {
    /// Of nothing.
    pub const ZERO: Self = Self(0);

    /// With `contribution` counted once more.
    #[must_use]
    pub const fn plus(self, contribution: Self) -> Self {
        Self(self.0.wrapping_add(contribution.0))
    }

    /// With `contribution` counted once less.
    #[must_use]
    pub const fn minus(self, contribution: Self) -> Self {
        Self(self.0.wrapping_sub(contribution.0))
    }
}

/// What an entity's life counts: of a deleted entity the tombstone, of a live one its creation, of an orphan
/// nothing.
pub fn of_life(entity: EntityId, life: &Life) -> Digest {
    let (what, stamp) = match (life.created.is_none(), life.deleted.is_none()) {
        (_, false) => (1, life.deleted),
        (false, true) => (0, life.created),
        (true, true) => return Digest::ZERO,
    };
    let mut out = vec![LIFE, what];
    out.extend_from_slice(entity.0.as_bytes());
    put_stamp(&mut out, stamp);
    Digest(xxh3_128(&out))
}

/// What one *canonical* fragment of a live entity counts (see [`Tree::canonical`]); an empty one counts nothing.
pub fn of_node(entity: EntityId, path: &Path, state: &NodeState) -> Digest {
    if state.is_empty() {
        return Digest::ZERO;
    }
    let mut out = vec![NODE];
    out.extend_from_slice(entity.0.as_bytes());
    put_len(&mut out, path.keys().len());
    for key in path.keys() {
        put_bytes(&mut out, key.as_str().as_bytes());
    }
    put_stamp(&mut out, state.floor);
    put_stamp(&mut out, state.kind);
    if let Some(leaf) = &state.leaf {
        put_leaf(&mut out, leaf);
    }
    Digest(xxh3_128(&out))
}

/// What a write-once entry counts, under the `SimEntity`.
pub fn of_entry(entry: &Entry) -> Digest {
    let mut out = vec![ENTRY];
    put_edit_id(&mut out, entry.id);
    match &entry.body {
        EntryBody::Clock(edit) => {
            out.push(0);
            out.extend_from_slice(&edit.at.as_nanos().to_le_bytes());
            put_edit_kind(&mut out, edit.kind);
        }
        EntryBody::Record { topic, value } => {
            out.push(1);
            put_bytes(&mut out, topic.as_bytes());
            put_value(&mut out, value);
        }
    }
    Digest(xxh3_128(&out))
}

/// What a whole entity counts: its life, and if it is live its canonical tree. Costs a walk of the tree.
pub fn of_entity<L: LeafStore>(entity: EntityId, life: &Life, tree: &Tree<L>) -> Digest {
    let start = of_life(entity, life);
    if !life.is_live() {
        return start;
    }
    tree.canonical().fold(start, |sum, (path, state)| sum.plus(of_node(entity, &path, &state)))
}

fn put_stamp(out: &mut Vec<u8>, stamp: Stamp) {
    out.extend_from_slice(&stamp.hlc.to_le_bytes());
    out.extend_from_slice(&stamp.writer.0.to_le_bytes());
}

fn put_edit_id(out: &mut Vec<u8>, id: EditId) {
    put_stamp(out, id.stamp);
    out.extend_from_slice(&id.index.to_le_bytes());
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&(len as u64).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_sim(out: &mut Vec<u8>, at: SimTime) {
    out.extend_from_slice(&at.as_nanos().to_le_bytes());
}

fn put_length(out: &mut Vec<u8>, by: SimDuration) {
    out.extend_from_slice(&by.as_nanos().to_le_bytes());
}

fn put_f64s(out: &mut Vec<u8>, values: &[f64]) {
    for v in values {
        out.extend_from_slice(&v.to_bits().to_le_bytes());
    }
}

fn put_leaf(out: &mut Vec<u8>, leaf: &Leaf) {
    put_stamp(out, leaf.stamp);
    let Epoch { at, jump } = leaf.meta.epoch;
    put_sim(out, leaf.meta.sim);
    out.extend_from_slice(&at.as_nanos().to_le_bytes());
    put_edit_id(out, jump);
    out.push(leaf.meta.direction as u8);
    out.push(u8::from(leaf.meta.discontinuous));
    put_value(out, &leaf.value);
}

fn put_edit_kind(out: &mut Vec<u8>, kind: EditKind) {
    match kind {
        EditKind::Scale(scale) => {
            out.push(0);
            put_f64s(out, &[scale]);
        }
        EditKind::Pause => out.push(1),
        EditKind::Resume => out.push(2),
        EditKind::JumpTo(at) => {
            out.push(3);
            put_sim(out, at);
        }
        EditKind::JumpBy(by) => {
            out.push(4);
            put_length(out, by);
        }
        EditKind::StopAt(at) => {
            out.push(5);
            put_sim(out, at);
        }
        EditKind::Cancel(id) => {
            out.push(6);
            put_edit_id(out, id);
        }
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => out.push(0),
        Value::Bool(v) => out.extend([1, u8::from(*v)]),
        Value::Int(v) => tagged(out, 2, &v.to_le_bytes()),
        Value::UInt(v) => tagged(out, 3, &v.to_le_bytes()),
        Value::Float(v) => tagged(out, 4, &v.to_bits().to_le_bytes()),
        Value::Float32(v) => tagged(out, 5, &v.to_bits().to_le_bytes()),
        Value::Uuid(v) => tagged(out, 6, v.as_bytes()),
        Value::Entity(v) => tagged(out, 7, v.0.as_bytes()),
        Value::Time(v) => tagged(out, 8, &v.as_nanos().to_le_bytes()),
        Value::Duration(v) => tagged(out, 9, &v.as_nanos().to_le_bytes()),
        Value::Vec2(v) => tagged_f64s(out, 10, v),
        Value::Vec3(v) => tagged_f64s(out, 11, v),
        Value::Vec4(v) => tagged_f64s(out, 12, v),
        Value::Quat(q) => tagged_f64s(out, 13, &[q.x, q.y, q.z, q.w]),
        Value::Ramp(r) => tagged_f64s(out, 14, &[r.value, r.rate]),
        Value::Motion(m) => put_motion(out, m),
        Value::Text(v) => put_sized(out, 16, v.as_bytes()),
        Value::Bytes(v) => put_sized(out, 17, v),
        Value::Ints(v) => put_many(out, 18, v.len(), v.iter().map(|v| v.to_le_bytes())),
        Value::UInts(v) => put_many(out, 19, v.len(), v.iter().map(|v| v.to_le_bytes())),
        Value::Floats(v) => put_many(out, 20, v.len(), v.iter().map(|v| v.to_bits().to_le_bytes())),
        Value::Floats32(v) => put_many(out, 21, v.len(), v.iter().map(|v| v.to_bits().to_le_bytes())),
        Value::Matrix(m) => {
            out.push(22);
            out.extend_from_slice(&m.rows.to_le_bytes());
            out.extend_from_slice(&m.columns.to_le_bytes());
            put_len(out, m.elements.len());
            put_f64s(out, &m.elements);
        }
        Value::List(values) => {
            out.push(23);
            put_len(out, values.len());
            values.iter().for_each(|v| put_value(out, v));
        }
        Value::Map(map) => {
            out.push(24);
            put_len(out, map.len());
            for (key, v) in map.iter() {
                put_bytes(out, key.as_str().as_bytes());
                put_value(out, v);
            }
        }
    }
}

fn tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn tagged_f64s(out: &mut Vec<u8>, tag: u8, values: &[f64]) {
    out.push(tag);
    put_f64s(out, values);
}

fn put_sized(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    put_bytes(out, bytes);
}

fn put_many<const N: usize>(out: &mut Vec<u8>, tag: u8, len: usize, values: impl Iterator<Item = [u8; N]>) {
    out.push(tag);
    put_len(out, len);
    values.for_each(|v| out.extend_from_slice(&v));
}

fn put_motion(out: &mut Vec<u8>, m: &Motion) {
    let parts = [m.position, m.velocity, m.acceleration, m.angular_velocity, m.angular_acceleration];
    tagged(out, 15, &[m.model as u8]);
    for part in parts {
        put_option(out, part.as_ref().map(|v| &v[..]));
    }
    let orientation = m.orientation.map(|q| [q.x, q.y, q.z, q.w]);
    put_option(out, orientation.as_ref().map(|v| &v[..]));
    put_option(out, m.mu.as_ref().map(std::slice::from_ref));
    match m.frame {
        Some(frame) => tagged(out, 1, frame.0.as_bytes()),
        None => out.push(0),
    }
}

fn put_option(out: &mut Vec<u8>, part: Option<&[f64]>) {
    match part {
        Some(values) => tagged_f64s(out, 1, values),
        None => out.push(0),
    }
}
