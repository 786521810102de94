//! The packed bodies, as the engine uses them.
use bytes::Bytes;
use coeval_merge::{Entry, EntryBody, Life, NodeState, SlotId, SlotKey, SlotState};
use coeval_time::{Edit, EditId, EditKind, SimDuration, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, Leaf, Path, Value};
use serde::{Deserialize, Serialize};

/// Numbers and what they are.
pub(crate) type Keys = Vec<(SlotId, SlotKey)>;

#[derive(Serialize, Deserialize)]
enum State {
    L(Stamp, Stamp),
    N(Option<Leaf>, Stamp, Stamp),
}

#[derive(Serialize, Deserialize)]
enum Kind {
    Scale(f64),
    Pause,
    Resume,
    JumpTo(SimTime),
    JumpBy(SimDuration),
    StopAt(SimTime),
    Cancel(EditId),
}

#[derive(Serialize, Deserialize)]
enum Body {
    C(WallTime, Kind),
    R(String, Value),
}

fn to<T: Serialize>(value: &T) -> Result<Bytes, String> {
    rmp_serde::to_vec(value).map(Bytes::from).map_err(|e| e.to_string())
}

fn from<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|e| e.to_string())
}

pub(crate) fn encode_keys(keys: &[(SlotId, SlotKey)]) -> Result<Bytes, String> {
    to(&keys.iter().map(|(n, k)| (n.0, k.entity, k.path.clone())).collect::<Vec<_>>())
}

pub(crate) fn decode_keys(bytes: &[u8]) -> Result<Keys, String> {
    let keys: Vec<(u32, EntityId, Option<Path>)> = from(bytes)?;
    Ok(keys.into_iter().map(|(n, entity, path)| (SlotId(n), SlotKey { entity, path })).collect())
}

pub(crate) fn encode_states(states: &[(SlotId, SlotState)]) -> Result<Bytes, String> {
    let pack = |state: &SlotState| match state {
        SlotState::Life(l) => State::L(l.created, l.deleted),
        SlotState::Node(n) => State::N(n.leaf.clone(), n.floor, n.kind),
    };
    to(&states.iter().map(|(n, s)| (n.0, pack(s))).collect::<Vec<_>>())
}

pub(crate) fn decode_states(bytes: &[u8]) -> Result<Vec<(SlotId, SlotState)>, String> {
    let states: Vec<(u32, State)> = from(bytes)?;
    let unpack = |state| match state {
        State::L(created, deleted) => SlotState::Life(Life { created, deleted }),
        State::N(leaf, floor, kind) => SlotState::Node(NodeState { leaf, floor, kind }),
    };
    Ok(states.into_iter().map(|(n, s)| (SlotId(n), unpack(s))).collect())
}

pub(crate) fn encode_entries(entries: &[Entry]) -> Result<Bytes, String> {
    let pack = |entry: &Entry| {
        let body = match &entry.body {
            EntryBody::Clock(edit) => Body::C(
                edit.at,
                match edit.kind {
                    EditKind::Scale(s) => Kind::Scale(s),
                    EditKind::Pause => Kind::Pause,
                    EditKind::Resume => Kind::Resume,
                    EditKind::JumpTo(t) => Kind::JumpTo(t),
                    EditKind::JumpBy(t) => Kind::JumpBy(t),
                    EditKind::StopAt(t) => Kind::StopAt(t),
                    EditKind::Cancel(t) => Kind::Cancel(t),
                },
            ),
            EntryBody::Record { topic, value } => Body::R(topic.to_string(), value.clone()),
        };
        (entry.id, body)
    };
    to(&entries.iter().map(pack).collect::<Vec<_>>())
}

pub(crate) fn decode_entries(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let entries: Vec<(EditId, Body)> = from(bytes)?;
    let unpack = |(id, body)| {
        let body = match body {
            Body::C(at, kind) => EntryBody::Clock(Edit {
                id,
                at,
                kind: match kind {
                    Kind::Scale(s) => EditKind::Scale(s),
                    Kind::Pause => EditKind::Pause,
                    Kind::Resume => EditKind::Resume,
                    Kind::JumpTo(t) => EditKind::JumpTo(t),
                    Kind::JumpBy(t) => EditKind::JumpBy(t),
                    Kind::StopAt(t) => EditKind::StopAt(t),
                    Kind::Cancel(t) => EditKind::Cancel(t),
                },
            }),
            Body::R(topic, value) => EntryBody::Record { topic: topic.into(), value },
        };
        Entry { id, body }
    };
    Ok(entries.into_iter().map(unpack).collect())
}

/// A value alone: the body of one record.
pub(crate) fn encode_value(value: &Value) -> Result<Bytes, String> {
    let body = EntryBody::Record { topic: "".into(), value: value.clone() };
    encode_entries(&[Entry { id: EditId::default(), body }])
}

/// The value of [`encode_value`].
pub(crate) fn decode_value(bytes: &[u8]) -> Result<Value, String> {
    match decode_entries(bytes)?.pop() {
        Some(Entry { body: EntryBody::Record { value, .. }, .. }) => Ok(value),
        _ => Err("no value in it".to_owned()),
    }
}
