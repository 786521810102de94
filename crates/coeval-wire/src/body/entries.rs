//! Bodies of write-once entries: clock edits and session records.
//!
//! An entry is its stamp, its index in the batch, a code, and the content: for a clock edit the instant it takes effect
//! (zigzag varint from its stamp), for a record its topic and its value.
use super::bytes::{Reader, open, put_blob, put_f64s, put_signed, put_signed128, put_varint};
use super::table::{Reading, Writing};
use super::value::{get_checked, get_duration, get_time, put_checked};
use super::{BodyError, BodyLimits, guarded};
use coeval_merge::{Entry, EntryBody};
use coeval_time::{Edit, EditId, EditKind, WallTime};

/// What a body of entries says it holds.
const CONTENT: u8 = b'E';

const SCALE: u8 = 0;
const PAUSE: u8 = 1;
const RESUME: u8 = 2;
const JUMP_TO: u8 = 3;
const JUMP_BY: u8 = 4;
const STOP_AT: u8 = 5;
const CANCEL: u8 = 6;
const RECORD: u8 = 16;

/// Least bytes of an entry: stamp, writer, index, code, content.
const LEAST: usize = 5;

/// Most bytes of a topic.
pub const MAX_TOPIC: usize = 255;

/// Appends a body of entries, in the order given.
///
/// Refuses a clock edit whose id is not its entry's or whose scale is not finite, and a topic beyond [`MAX_TOPIC`].
pub fn encode_entries(entries: &[Entry], out: &mut Vec<u8>) -> Result<(), BodyError> {
    guarded(out, |out| {
        open(out, CONTENT, entries.len());
        let mut table = Writing::default();
        entries.iter().try_for_each(|entry| put_entry(out, &mut table, entry))
    })
}

/// Reads a body of entries.
pub fn decode_entries(bytes: &[u8], limits: &BodyLimits) -> Result<Vec<Entry>, BodyError> {
    let mut from = Reader::open(bytes, CONTENT)?;
    let count = from.count("entries", limits.items, LEAST)?;
    let mut table = Reading::default();
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(get_entry(&mut from, &mut table, limits)?);
    }
    from.finish()?;
    Ok(entries)
}

fn put_entry(out: &mut Vec<u8>, table: &mut Writing, entry: &Entry) -> Result<(), BodyError> {
    put_id(out, table, entry.id);
    match &entry.body {
        EntryBody::Clock(edit) if edit.id != entry.id => {
            Err(BodyError::NotNormal { why: "a clock edit under another id", at: out.len() })
        }
        EntryBody::Clock(edit) => put_edit(out, table, edit),
        EntryBody::Record { topic, value } => {
            if topic.len() > MAX_TOPIC {
                let found = topic.len() as u64;
                return Err(BodyError::Count { what: "bytes of topic", found, limit: MAX_TOPIC });
            }
            out.push(RECORD);
            put_blob(out, topic.as_bytes());
            put_checked(out, value)
        }
    }
}

fn put_id(out: &mut Vec<u8>, table: &mut Writing, id: EditId) {
    table.stamp(out, id.stamp);
    put_varint(out, id.index.into());
}

fn put_edit(out: &mut Vec<u8>, table: &mut Writing, edit: &Edit) -> Result<(), BodyError> {
    out.push(match edit.kind {
        EditKind::Scale(scale) if !scale.is_finite() => {
            return Err(BodyError::Range { what: "scale of a clock edit", at: out.len() });
        }
        EditKind::Scale(_) => SCALE,
        EditKind::Pause => PAUSE,
        EditKind::Resume => RESUME,
        EditKind::JumpTo(_) => JUMP_TO,
        EditKind::JumpBy(_) => JUMP_BY,
        EditKind::StopAt(_) => STOP_AT,
        EditKind::Cancel(_) => CANCEL,
    });
    put_signed(out, edit.at.as_nanos().wrapping_sub(edit.id.stamp.hlc).cast_signed());
    match edit.kind {
        EditKind::Scale(scale) => put_f64s(out, &[scale]),
        EditKind::Pause | EditKind::Resume => {}
        EditKind::JumpTo(time) | EditKind::StopAt(time) => put_signed128(out, time.as_nanos()),
        EditKind::JumpBy(by) => put_signed128(out, by.as_nanos()),
        EditKind::Cancel(id) => put_id(out, table, id),
    }
    Ok(())
}

fn get_entry(from: &mut Reader<'_>, table: &mut Reading, limits: &BodyLimits) -> Result<Entry, BodyError> {
    let id = get_id(from, table)?;
    let code = from.byte()?;
    if code == RECORD {
        let topic = from.text("bytes of topic", MAX_TOPIC)?.into();
        let value = get_checked(from, &limits.value)?;
        return Ok(Entry { id, body: EntryBody::Record { topic, value } });
    }
    if code > CANCEL {
        return Err(from.unknown("entry", code));
    }
    let at = WallTime::from_nanos(id.stamp.hlc.wrapping_add_signed(from.signed()?));
    let kind = match code {
        SCALE => EditKind::Scale(get_scale(from)?),
        PAUSE => EditKind::Pause,
        RESUME => EditKind::Resume,
        JUMP_TO => EditKind::JumpTo(get_time(from)?),
        JUMP_BY => EditKind::JumpBy(get_duration(from)?),
        STOP_AT => EditKind::StopAt(get_time(from)?),
        _ => EditKind::Cancel(get_id(from, table)?),
    };
    Ok(Entry { id, body: EntryBody::Clock(Edit { id, at, kind }) })
}

fn get_id(from: &mut Reader<'_>, table: &mut Reading) -> Result<EditId, BodyError> {
    Ok(EditId { stamp: table.stamp(from)?, index: from.u32("index of an entry")? })
}

fn get_scale(from: &mut Reader<'_>) -> Result<f64, BodyError> {
    let [scale] = from.f64s()?;
    if scale.is_finite() { Ok(scale) } else { Err(from.range("scale of a clock edit")) }
}
