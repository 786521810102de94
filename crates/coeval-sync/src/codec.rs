//! The packed bodies, as the engine uses them: whole messages' worth, errors as words.
use bytes::Bytes;
use coeval_merge::{Entry, SlotId, SlotKey, SlotState};
use coeval_value::{Limits, Value};
use coeval_wire::body::{self, BodyError, BodyLimits};

/// Numbers and what they are.
pub(crate) type Keys = Vec<(SlotId, SlotKey)>;

fn packed(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), BodyError>) -> Result<Bytes, String> {
    let mut out = Vec::new();
    encode(&mut out).map_err(|error| error.to_string())?;
    Ok(out.into())
}

/// The body that defines slots.
pub(crate) fn encode_keys(keys: &[(SlotId, SlotKey)]) -> Result<Bytes, String> {
    let keys: Vec<_> = keys.iter().map(|(slot, key)| (*slot, key)).collect();
    packed(|out| body::encode_keys(&keys, out))
}

/// The slots that a body defines, in its order.
pub(crate) fn decode_keys(bytes: &[u8]) -> Result<Keys, String> {
    body::decode_keys(bytes, &BodyLimits::default()).map_err(|error| error.to_string())
}

/// The body of states.
pub(crate) fn encode_states(states: &[(SlotId, SlotState)]) -> Result<Bytes, String> {
    let states: Vec<_> = states.iter().map(|(slot, state)| (*slot, state)).collect();
    packed(|out| body::encode_states(&states, out))
}

/// The states of a body.
pub(crate) fn decode_states(bytes: &[u8]) -> Result<Vec<(SlotId, SlotState)>, String> {
    body::decode_states(bytes, &BodyLimits::default()).map_err(|error| error.to_string())
}

/// The body of entries.
pub(crate) fn encode_entries(entries: &[Entry]) -> Result<Bytes, String> {
    packed(|out| body::encode_entries(entries, out))
}

/// The entries of a body.
pub(crate) fn decode_entries(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    body::decode_entries(bytes, &BodyLimits::default()).map_err(|error| error.to_string())
}

/// The body of one value.
pub(crate) fn encode_value(value: &Value) -> Result<Bytes, String> {
    packed(|out| body::encode_value(value, out))
}

/// The value of a body.
pub(crate) fn decode_value(bytes: &[u8]) -> Result<Value, String> {
    body::decode_value(bytes, &Limits::MAX).map_err(|error| error.to_string())
}
