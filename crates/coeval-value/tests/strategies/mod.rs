//! Strategies for every value type, by bits: NaN payloads, negative zeros, the ends of ranges. Other crates' tests
//! include this file by its path.
#![allow(dead_code, unreachable_pub, missing_docs)]
use coeval_time::{Direction, EditId, Epoch, Incarnation, SimDuration, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, Key, Leaf, Matrix, Motion, MotionModel, Path, Quat, Ramp, SampleMeta, Value};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use std::sync::Arc;
use uuid::Uuid;

pub fn any_f64() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        4 => any::<u64>().prop_map(f64::from_bits),
        2 => -1e6..1e6,
        1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::MIN, f64::from_bits(1)]),
        1 => any::<u64>().prop_map(|bits| f64::from_bits(bits | 0x7ff0_0000_0000_0000)),
    ]
}

pub fn any_f32() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits),
        any::<u32>().prop_map(|b| f32::from_bits(b | 0x7f80_0000))
    ]
}

pub fn any_vector<const N: usize>() -> impl Strategy<Value = [f64; N]> + Clone {
    vec(any_f64(), N).prop_map(|v| v.try_into().unwrap())
}

pub fn any_time() -> impl Strategy<Value = SimTime> + Clone {
    prop_oneof![
        (any::<i64>(), 0..1_000_000_000u32).prop_map(|(s, n)| SimTime::from_secs_nanos(s, n)),
        (-1_000i64..1_000, 0..1_000_000_000u32).prop_map(|(s, n)| SimTime::from_secs_nanos(s, n)),
        Just(SimTime::MIN),
        Just(SimTime::MAX),
    ]
}

pub fn any_duration() -> impl Strategy<Value = SimDuration> + Clone {
    any_time().prop_map(|t| SimDuration::from_nanos(t.as_nanos()))
}

pub fn any_uuid() -> impl Strategy<Value = Uuid> + Clone {
    any::<u128>().prop_map(Uuid::from_u128)
}

pub fn any_entity() -> impl Strategy<Value = EntityId> + Clone {
    any_uuid().prop_map(EntityId)
}

pub fn any_quat() -> impl Strategy<Value = Quat> + Clone {
    any_vector::<4>().prop_map(Quat::from_array)
}

pub fn any_motion() -> impl Strategy<Value = Motion> + Clone {
    let v = || of(any_vector::<3>());
    let codes = prop::sample::select(vec![1u8, 2, 3, 4, 5, 6, 7, 8, 9, 16]);
    let codes = codes.prop_map(|code| MotionModel::from_code(code).unwrap());
    (codes, v(), v(), v(), of(any_quat()), v(), v(), of(any_f64()), of(any_entity())).prop_map(
        |(model, position, velocity, acceleration, orientation, spin, spin_up, mu, frame)| Motion {
            model,
            position,
            velocity,
            acceleration,
            orientation,
            angular_velocity: spin,
            angular_acceleration: spin_up,
            mu,
            frame,
        },
    )
}

/// Any key: slashes, backslashes and control characters included.
pub fn any_key() -> impl Strategy<Value = Key> + Clone {
    let chars = prop_oneof![
        4 => prop::char::range('a', 'f'),
        1 => any::<char>(),
        1 => prop::sample::select(vec!['/', '\\', '"', '\0', 'é']),
    ];
    vec(chars, 1..12).prop_map(|chars| Key::new(&chars.into_iter().collect::<String>()).unwrap())
}

pub fn any_path() -> impl Strategy<Value = Path> + Clone {
    vec(any_key(), 1..6).prop_map(|keys| Path::new(keys).unwrap())
}

/// Values that have a word form.
pub fn any_inline() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::UInt),
        any_f64().prop_map(Value::Float),
        any_f32().prop_map(Value::Float32),
        any_uuid().prop_map(Value::Uuid),
        any_entity().prop_map(Value::Entity),
        any_time().prop_map(Value::Time),
        any_duration().prop_map(Value::Duration),
        any_vector::<2>().prop_map(Value::Vec2),
        any_vector::<3>().prop_map(Value::Vec3),
        any_vector::<4>().prop_map(Value::Vec4),
        any_quat().prop_map(Value::Quat),
        any_vector::<2>().prop_map(|[value, rate]| Value::Ramp(Ramp { value, rate })),
        any_motion().prop_map(|motion| Value::Motion(Box::new(motion))),
    ]
}

/// Values on the heap that hold no values.
pub fn any_array() -> impl Strategy<Value = Value> + Clone {
    let matrix = (0u16..4, 0u16..4).prop_flat_map(|(rows, columns)| {
        vec(any_f64(), usize::from(rows * columns))
            .prop_map(move |elements| Matrix::new(rows, columns, elements).unwrap())
    });
    prop_oneof![
        vec(any::<char>(), 0..12).prop_map(|c| Value::Text(c.into_iter().collect::<String>().into())),
        vec(any::<u8>(), 0..40).prop_map(|v| Value::Bytes(v.into())),
        matrix.prop_map(|m| Value::Matrix(Arc::new(m))),
        vec(any::<i64>(), 0..6).prop_map(|v| Value::Ints(v.into())),
        vec(any::<u64>(), 0..6).prop_map(|v| Value::UInts(v.into())),
        vec(any_f64(), 0..6).prop_map(|v| Value::Floats(v.into())),
        vec(any_f32(), 0..6).prop_map(|v| Value::Floats32(v.into())),
    ]
}

/// Any value, nested up to three deep.
pub fn any_value() -> impl Strategy<Value = Value> + Clone {
    let flat = prop_oneof![3 => any_inline(), 2 => any_array()];
    flat.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|v| Value::List(v.into())),
            btree_map(any_key(), inner, 0..4).prop_map(|v| Value::Map(Arc::new(v))),
        ]
    })
}

/// Stamps; many of few writers and near one another, as they come.
pub fn any_stamp() -> impl Strategy<Value = Stamp> + Clone {
    let near = (1_700_000_000_000_000_000u64..1_700_000_001_000_000_000, 2u64..5);
    prop_oneof![4 => near, 1 => (any::<u64>(), any::<u64>())]
        .prop_map(|(hlc, writer)| Stamp::new(hlc, Incarnation(writer)))
}

pub fn any_epoch() -> impl Strategy<Value = Epoch> + Clone {
    let jump = (any::<u64>(), any_stamp(), any::<u32>())
        .prop_map(|(at, stamp, index)| Epoch { at: WallTime::from_nanos(at), jump: EditId { stamp, index } });
    prop_oneof![2 => Just(Epoch::GENESIS), 1 => jump]
}

pub fn any_meta() -> impl Strategy<Value = SampleMeta> + Clone {
    (any_time(), any_epoch(), any::<bool>(), any::<bool>()).prop_map(|(sim, epoch, back, discontinuous)| {
        SampleMeta {
            sim,
            epoch,
            direction: if back { Direction::Backward } else { Direction::Forward },
            discontinuous,
        }
    })
}

/// A leaf: any value but a map, which is never a leaf.
pub fn any_leaf() -> impl Strategy<Value = Leaf> + Clone {
    (any_stamp(), any_meta(), any_value()).prop_map(|(stamp, meta, value)| {
        let value = if matches!(value, Value::Map(_)) { Value::list([value]) } else { value };
        Leaf { stamp, meta, value }
    })
}
