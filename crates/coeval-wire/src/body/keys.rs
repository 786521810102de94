//! Bodies of definitions: what the sender's slot numbers mean.
//!
//! Slots of one entity that follow one another form a group: the entity's 16 bytes, a count, the slots. Each slot is its
//! number, how many keys its path shares with the previous path of the body, how many keys follow, and those keys. No
//! keys at all is the entity's own life. Paths are shared across groups, since entities of a kind have the same ones.
use super::bytes::{Reader, open, put_varint};
use super::states::{get_slot, put_slot};
use super::value::{get_key, put_key};
use super::{BodyError, BodyLimits, guarded};
use coeval_merge::{SlotId, SlotKey};
use coeval_value::path::MAX_KEYS;
use coeval_value::{EntityId, Key, Path};
use uuid::Uuid;

/// What a body of keys says it holds.
const CONTENT: u8 = b'K';

/// Least bytes of a slot: number, shared keys, keys that follow.
const LEAST: usize = 3;

/// Appends a body of definitions, in the order given; slots of one entity side by side are the shortest.
pub fn encode_keys(keys: &[(SlotId, &SlotKey)], out: &mut Vec<u8>) -> Result<(), BodyError> {
    guarded(out, |out| {
        open(out, CONTENT, keys.len());
        let mut next = 0;
        let mut before: &[Key] = &[];
        for group in keys.chunk_by(|(_, a), (_, b)| a.entity == b.entity) {
            out.extend_from_slice(group[0].1.entity.0.as_bytes());
            put_varint(out, group.len() as u64);
            for (slot, key) in group {
                put_slot(out, &mut next, *slot);
                before = put_path(out, before, key.path.as_ref());
            }
        }
        Ok(())
    })
}

/// Writes a path and returns its keys, or the ones before if there is none.
fn put_path<'a>(out: &mut Vec<u8>, before: &'a [Key], path: Option<&'a Path>) -> &'a [Key] {
    let Some(path) = path else {
        out.extend([0, 0]);
        return before;
    };
    let keys = path.keys();
    let shared = before.iter().zip(keys).take_while(|(a, b)| a == b).count();
    // A path has at most 16 keys.
    out.extend([shared as u8, (keys.len() - shared) as u8]);
    keys[shared..].iter().for_each(|key| put_key(out, key));
    keys
}

/// Reads a body of definitions.
pub fn decode_keys(bytes: &[u8], limits: &BodyLimits) -> Result<Vec<(SlotId, SlotKey)>, BodyError> {
    let mut from = Reader::open(bytes, CONTENT)?;
    let count = from.count("keys", limits.items, LEAST)?;
    let mut keys: Vec<(SlotId, SlotKey)> = Vec::with_capacity(count);
    let mut next = 0;
    let mut before = Vec::new();
    while keys.len() < count {
        let entity = EntityId(Uuid::from_bytes(from.array()?));
        let group = from.count("keys of a group", count - keys.len(), LEAST)?;
        if group == 0 || keys.last().is_some_and(|(_, last)| last.entity == entity) {
            return Err(from.not_canonical("group"));
        }
        for _ in 0..group {
            let slot = get_slot(&mut from, &mut next)?;
            let path = get_path(&mut from, &mut before)?;
            keys.push((slot, SlotKey { entity, path }));
        }
    }
    from.finish()?;
    Ok(keys)
}

/// Reads a path; `before` holds the keys of the previous one.
fn get_path(from: &mut Reader<'_>, before: &mut Vec<Key>) -> Result<Option<Path>, BodyError> {
    let [shared, more] = from.array()?.map(usize::from);
    if (shared, more) == (0, 0) {
        return Ok(None);
    }
    if shared > before.len() || shared + more > MAX_KEYS {
        return Err(from.range("number of keys"));
    }
    let skipped = before.get(shared).cloned();
    before.truncate(shared);
    for i in 0..more {
        let key = get_key(from)?;
        if i == 0 && skipped.as_ref() == Some(&key) {
            return Err(from.not_canonical("shared keys of a path"));
        }
        before.push(key);
    }
    Path::new(before.iter().cloned()).map(Some).map_err(|_| from.malformed("path"))
}
