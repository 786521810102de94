//! Messages of states and entries, each about a chunk long.
use crate::Sync;
use crate::codec;
use crate::notice::Notice;
use bytes::Bytes;
use coeval_merge::{Entry, Replica, SlotId, SlotState};
use coeval_time::Incarnation;
use coeval_value::Value;
use coeval_wire::Frame;
use coeval_wire::frame::{Delta, Entries};

impl<R: Replica> Sync<R> {
    /// Delta messages of states, each about a chunk long, with how many states each holds.
    pub(crate) fn encode_states(
        &mut self,
        root: Option<Incarnation>,
        states: &[(SlotId, SlotState)],
    ) -> Vec<(Bytes, u64)> {
        let mut out = Vec::new();
        let mut rest = states;
        while !rest.is_empty() {
            let count = fit(rest, self.config.chunk, |(_, state)| state_size(state));
            let (now, later) = rest.split_at(count);
            rest = later;
            match delta(root, now) {
                Ok(bytes) => out.push((bytes, count as u64)),
                // One state that cannot be sent must not hold back the others.
                Err(_) if count > 1 => {
                    for state in now.chunks(1) {
                        match delta(root, state) {
                            Ok(bytes) => out.push((bytes, 1)),
                            Err(message) => self.unsent(message),
                        }
                    }
                }
                Err(message) => self.unsent(message),
            }
        }
        out
    }

    /// Messages of entries, each about a chunk long, with how many entries each holds.
    pub(crate) fn encode_entries(&mut self, entries: &[Entry]) -> Vec<(Bytes, u64)> {
        let mut out = Vec::new();
        let mut rest = entries;
        while !rest.is_empty() {
            let count = fit(rest, self.config.chunk, entry_size);
            let (now, later) = rest.split_at(count);
            rest = later;
            let message = codec::encode_entries(now).and_then(|entries| {
                Frame::from(Entries { entries }).encode().map_err(|error| error.to_string())
            });
            match message {
                Ok(bytes) => out.push((bytes, count as u64)),
                Err(message) => self.unsent(message),
            }
        }
        out
    }

    pub(crate) fn unsent(&mut self, message: String) {
        tracing::warn!(message, "not sent");
        self.notices.push_back(Notice::Error { node: self.me.node, message });
    }
}

/// One message of a delta.
fn delta(root: Option<Incarnation>, states: &[(SlotId, SlotState)]) -> Result<Bytes, String> {
    let states = codec::encode_states(states)?;
    Frame::from(Delta { root, states }).encode().map_err(|error| error.to_string())
}

/// How many items from the front take about `bytes`; at least one.
fn fit<T>(items: &[T], bytes: usize, size: impl Fn(&T) -> usize) -> usize {
    let mut total = 0;
    let fits = items.iter().take_while(|item| {
        total += size(item);
        total <= bytes
    });
    fits.count().max(1)
}

/// About how many bytes a state takes on the wire.
fn state_size(state: &SlotState) -> usize {
    match state {
        SlotState::Life(_) => 24,
        SlotState::Node(node) => 48 + node.leaf.as_ref().map_or(0, |leaf| value_size(&leaf.value)),
    }
}

fn entry_size(entry: &Entry) -> usize {
    match &entry.body {
        coeval_merge::EntryBody::Clock(_) => 64,
        coeval_merge::EntryBody::Record { topic, value } => 32 + topic.len() + value_size(value),
    }
}

fn value_size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len() + 4,
        Value::Bytes(bytes) => bytes.len() + 4,
        Value::Ints(items) => items.len() * 8,
        Value::UInts(items) => items.len() * 8,
        Value::Floats(items) => items.len() * 8,
        Value::Floats32(items) => items.len() * 4,
        Value::Matrix(matrix) => matrix.elements.len() * 8 + 8,
        Value::List(items) => items.iter().map(value_size).sum::<usize>() + 4,
        Value::Map(map) => {
            map.iter().map(|(key, value)| key.as_str().len() + value_size(value)).sum::<usize>() + 4
        }
        Value::Motion(_) => 180,
        _ => 40,
    }
}
