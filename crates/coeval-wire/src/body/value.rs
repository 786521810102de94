//! Values in bodies: one byte of kind, then the content.
//!
//! | kind | content |
//! |---|---|
//! | nil | nothing |
//! | bool | 0 or 1 |
//! | int, uint | zigzag varint, varint |
//! | float, float32 | 8, 4 bytes |
//! | text, bytes | length, bytes |
//! | uuid, entity | 16 bytes |
//! | time, duration | zigzag varint of nanoseconds |
//! | vec2, vec3, vec4, quat, ramp | 8 bytes each part |
//! | matrix | rows, columns, 8 bytes each element |
//! | ints, uints, floats, floats32 | length, 8 (4) bytes each |
//! | list | length, values |
//! | map | length, keys (one byte of length, bytes) ascending, each with its value |
//! | motion | presence mask, model, the present components in the order of the mask |
use super::bytes::{Reader, put_blob, put_f64s, put_signed, put_signed128, put_varint};
use super::{BODY_VERSION, BodyError, guarded};
use coeval_time::{SimDuration, SimTime};
use coeval_value::{EntityId, Key, LimitError, Limits, Matrix, Motion, MotionModel, Quat, Ramp, Value, kind};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// What a body of one value says it holds.
const CONTENT: u8 = b'V';

/// Appends a body of one value.
pub fn encode_value(value: &Value, out: &mut Vec<u8>) -> Result<(), BodyError> {
    guarded(out, |out| {
        out.extend([BODY_VERSION, CONTENT]);
        put_checked(out, value)
    })
}

/// Reads the body of one value.
pub fn decode_value(bytes: &[u8], limits: &Limits) -> Result<Value, BodyError> {
    let mut from = Reader::open(bytes, CONTENT)?;
    let value = get_checked(&mut from, limits)?;
    from.finish()?;
    Ok(value)
}

/// Writes a value, unless it is beyond what any decoder admits.
pub(super) fn put_checked(out: &mut Vec<u8>, value: &Value) -> Result<(), BodyError> {
    // Most values are small and hold none: they cannot exceed a limit.
    if matches!(value.kind(), kind::TEXT | kind::BYTES | kind::MATRIX..=kind::MAP) {
        value.check(&Limits::MAX).map_err(|error| BodyError::Value { at: out.len(), error })?;
    }
    put(out, value);
    Ok(())
}

/// Reads a value within limits.
pub(super) fn get_checked(from: &mut Reader<'_>, limits: &Limits) -> Result<Value, BodyError> {
    from.set_room(limits.total);
    let value = get(from, limits, limits.depth)?;
    if matches!(value.kind(), kind::TEXT | kind::BYTES | kind::MATRIX..=kind::MAP) {
        value.check(limits).map_err(|error| BodyError::Value { at: from.at(), error })?;
    }
    Ok(value)
}

fn put(out: &mut Vec<u8>, value: &Value) {
    out.push(value.kind());
    match value {
        Value::Nil => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int(v) => put_signed(out, *v),
        Value::UInt(v) => put_varint(out, *v),
        Value::Float(v) => put_f64s(out, &[*v]),
        Value::Float32(v) => out.extend_from_slice(&v.to_bits().to_le_bytes()),
        Value::Text(v) => put_blob(out, v.as_bytes()),
        Value::Bytes(v) => put_blob(out, v),
        Value::Uuid(v) | Value::Entity(EntityId(v)) => out.extend_from_slice(v.as_bytes()),
        Value::Time(v) => put_signed128(out, v.as_nanos()),
        Value::Duration(v) => put_signed128(out, v.as_nanos()),
        Value::Vec2(v) => put_f64s(out, v),
        Value::Vec3(v) => put_f64s(out, v),
        Value::Vec4(v) => put_f64s(out, v),
        Value::Quat(v) => put_f64s(out, &v.to_array()),
        Value::Ramp(v) => put_f64s(out, &[v.value, v.rate]),
        Value::Motion(v) => put_motion(out, v),
        Value::Ints(v) => put_array(out, v, |v| v.to_le_bytes()),
        Value::UInts(v) => put_array(out, v, |v| v.to_le_bytes()),
        Value::Floats(v) => put_array(out, v, |v| v.to_bits().to_le_bytes()),
        Value::Floats32(v) => put_array(out, v, |v| v.to_bits().to_le_bytes()),
        Value::Matrix(v) => {
            put_varint(out, v.rows.into());
            put_varint(out, v.columns.into());
            put_f64s(out, &v.elements);
        }
        Value::List(v) => {
            put_varint(out, v.len() as u64);
            v.iter().for_each(|v| put(out, v));
        }
        Value::Map(v) => {
            put_varint(out, v.len() as u64);
            for (key, value) in v.iter() {
                put_key(out, key);
                put(out, value);
            }
        }
    }
}

fn put_array<T: Copy, const N: usize>(out: &mut Vec<u8>, items: &[T], bytes: impl Fn(T) -> [u8; N]) {
    put_varint(out, items.len() as u64);
    items.iter().for_each(|item| out.extend_from_slice(&bytes(*item)));
}

pub(super) fn put_key(out: &mut Vec<u8>, key: &Key) {
    // A key has 1 to 255 bytes.
    out.push(key.as_str().len() as u8);
    out.extend_from_slice(key.as_str().as_bytes());
}

pub(super) fn get_key(from: &mut Reader<'_>) -> Result<Key, BodyError> {
    let length = from.byte()?;
    let bytes = from.take(length.into())?;
    let text = std::str::from_utf8(bytes).map_err(|_| from.malformed("key"))?;
    Key::new(text).map_err(|_| from.malformed("key"))
}

fn put_motion(out: &mut Vec<u8>, motion: &Motion) {
    out.extend([motion.presence(), motion.model.code()]);
    for vector in [motion.position, motion.velocity, motion.acceleration].iter().flatten() {
        put_f64s(out, vector);
    }
    if let Some(q) = motion.orientation {
        put_f64s(out, &q.to_array());
    }
    for vector in [motion.angular_velocity, motion.angular_acceleration].iter().flatten() {
        put_f64s(out, vector);
    }
    if let Some(mu) = motion.mu {
        put_f64s(out, &[mu]);
    }
    if let Some(frame) = motion.frame {
        out.extend_from_slice(frame.0.as_bytes());
    }
}

/// Reads a value that may nest `depth` deep.
fn get(from: &mut Reader<'_>, limits: &Limits, depth: usize) -> Result<Value, BodyError> {
    let Some(depth) = depth.checked_sub(1) else {
        let error = LimitError::Depth { limit: limits.depth };
        return Err(BodyError::Value { at: from.at(), error });
    };
    let kind = from.byte()?;
    Ok(match kind {
        kind::NIL => Value::Nil,
        kind::BOOL => match from.byte()? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            other => return Err(from.unknown("bool", other)),
        },
        kind::INT => Value::Int(from.signed()?),
        kind::UINT => Value::UInt(from.varint()?),
        kind::FLOAT => Value::Float(f64::from_bits(from.u64()?)),
        kind::FLOAT32 => Value::Float32(f32::from_bits(u32::from_le_bytes(from.array()?))),
        kind::UUID => Value::Uuid(get_uuid(from)?),
        kind::ENTITY => Value::Entity(EntityId(get_uuid(from)?)),
        kind::TIME => Value::Time(get_time(from)?),
        kind::DURATION => Value::Duration(get_duration(from)?),
        kind::VEC2 => Value::Vec2(from.f64s()?),
        kind::VEC3 => Value::Vec3(from.f64s()?),
        kind::VEC4 => Value::Vec4(from.f64s()?),
        kind::QUAT => Value::Quat(Quat::from_array(from.f64s()?)),
        kind::RAMP => from.f64s().map(|[value, rate]| Value::Ramp(Ramp { value, rate }))?,
        kind::MOTION => Value::Motion(Box::new(get_motion(from)?)),
        _ => return get_heap(from, limits, depth, kind),
    })
}

/// Reads the content of a value on the heap, in which values may nest `depth` deep.
fn get_heap(from: &mut Reader<'_>, limits: &Limits, depth: usize, kind: u8) -> Result<Value, BodyError> {
    Ok(match kind {
        kind::TEXT => Value::Text(from.text("bytes of text", limits.text_bytes)?.into()),
        kind::BYTES => Value::Bytes(from.blob("bytes", limits.bytes)?.into()),
        kind::MATRIX => Value::Matrix(Arc::new(get_matrix(from, limits)?)),
        kind::INTS => Value::Ints(get_array(from, limits, i64::from_le_bytes)?),
        kind::UINTS => Value::UInts(get_array(from, limits, u64::from_le_bytes)?),
        kind::FLOATS => Value::Floats(get_array(from, limits, |b| f64::from_bits(u64::from_le_bytes(b)))?),
        kind::FLOATS32 => {
            Value::Floats32(get_array(from, limits, |b| f32::from_bits(u32::from_le_bytes(b)))?)
        }
        kind::LIST => {
            let count = from.count("list elements", limits.elements, 1)?;
            from.take_room(count, size_of::<Value>())?;
            let mut list = Vec::with_capacity(count);
            for _ in 0..count {
                list.push(get(from, limits, depth)?);
            }
            Value::List(list.into())
        }
        kind::MAP => Value::Map(Arc::new(get_map(from, limits, depth)?)),
        other => return Err(from.unknown("value kind", other)),
    })
}

fn get_map(from: &mut Reader<'_>, limits: &Limits, depth: usize) -> Result<BTreeMap<Key, Value>, BodyError> {
    let count = from.count("map entries", limits.elements, 3)?;
    from.take_room(count, size_of::<(Key, Value)>())?;
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let key = get_key(from)?;
        if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(from.not_canonical("order of map keys"));
        }
        let value = get(from, limits, depth)?;
        map.insert(key, value);
    }
    Ok(map)
}

fn get_array<T, const N: usize>(
    from: &mut Reader<'_>,
    limits: &Limits,
    item: impl Fn([u8; N]) -> T,
) -> Result<Arc<[T]>, BodyError> {
    let count = from.count("array elements", limits.elements, N)?;
    let (items, _) = from.take(count * N)?.as_chunks::<N>();
    Ok(items.iter().map(|bytes| item(*bytes)).collect())
}

fn get_matrix(from: &mut Reader<'_>, limits: &Limits) -> Result<Matrix, BodyError> {
    let [rows, columns] = [from.varint()?, from.varint()?].map(u16::try_from);
    let (Ok(rows), Ok(columns)) = (rows, columns) else { return Err(from.range("matrix shape")) };
    let count = usize::from(rows) * usize::from(columns);
    if count > limits.elements {
        return Err(BodyError::Count {
            what: "matrix elements",
            found: count as u64,
            limit: limits.elements,
        });
    }
    let (items, _) = from.take(count * 8)?.as_chunks::<8>();
    let elements = items.iter().map(|bytes| f64::from_bits(u64::from_le_bytes(*bytes))).collect();
    Ok(Matrix { rows, columns, elements })
}

fn get_uuid(from: &mut Reader<'_>) -> Result<Uuid, BodyError> {
    from.array().map(Uuid::from_bytes)
}

pub(super) fn get_time(from: &mut Reader<'_>) -> Result<SimTime, BodyError> {
    let nanos = from.signed128()?;
    Some(SimTime::from_nanos(nanos)).filter(|t| t.as_nanos() == nanos).ok_or_else(|| from.range("sim time"))
}

pub(super) fn get_duration(from: &mut Reader<'_>) -> Result<SimDuration, BodyError> {
    let nanos = from.signed128()?;
    let duration = Some(SimDuration::from_nanos(nanos)).filter(|t| t.as_nanos() == nanos);
    duration.ok_or_else(|| from.range("length of sim time"))
}

fn get_motion(from: &mut Reader<'_>) -> Result<Motion, BodyError> {
    let mask = from.byte()?;
    let code = from.byte()?;
    let model = MotionModel::from_code(code).ok_or_else(|| from.unknown("motion model", code))?;
    let has = |bit: u8| mask & bit != 0;
    let mut vector = |bit: u8| -> Result<Option<[f64; 3]>, BodyError> {
        if has(bit) { from.f64s().map(Some) } else { Ok(None) }
    };
    let position = vector(Motion::POSITION)?;
    let velocity = vector(Motion::VELOCITY)?;
    let acceleration = vector(Motion::ACCELERATION)?;
    let orientation = if has(Motion::ORIENTATION) { Some(Quat::from_array(from.f64s()?)) } else { None };
    let mut vector = |bit: u8| -> Result<Option<[f64; 3]>, BodyError> {
        if has(bit) { from.f64s().map(Some) } else { Ok(None) }
    };
    let angular_velocity = vector(Motion::ANGULAR_VELOCITY)?;
    let angular_acceleration = vector(Motion::ANGULAR_ACCELERATION)?;
    let mu = if has(Motion::MU) { Some(f64::from_bits(from.u64()?)) } else { None };
    let frame = if has(Motion::FRAME) { Some(EntityId(get_uuid(from)?)) } else { None };
    Ok(Motion {
        model,
        position,
        velocity,
        acceleration,
        orientation,
        angular_velocity,
        angular_acceleration,
        mu,
        frame,
    })
}
