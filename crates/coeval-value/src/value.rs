//! Every type a parameter may hold.
use crate::{EntityId, Key, Motion, Quat, Ramp};
use coeval_time::{SimDuration, SimTime};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A matrix of `rows` by `columns` f64, row-major.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Number of rows.
    pub rows: u16,
    /// Number of columns.
    pub columns: u16,
    /// `rows * columns` elements, row-major.
    pub elements: Vec<f64>,
}

/// A value. Compared by bits: NaN payloads and -0.0 are themselves. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing, as a value.
    #[default]
    Nil,
    /// True or false.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    UInt(u64),
    /// Double precision.
    Float(f64),
    /// Single precision.
    Float32(f32),
    /// UTF-8 text.
    Text(Arc<str>),
    /// Raw bytes.
    Bytes(Arc<[u8]>),
    /// A UUID.
    Uuid(Uuid),
    /// A reference to an entity; detectable when it is deleted.
    Entity(EntityId),
    /// A sim instant.
    Time(SimTime),
    /// A length of sim time.
    Duration(SimDuration),
    /// Two components.
    Vec2([f64; 2]),
    /// Three components.
    Vec3([f64; 3]),
    /// Four components.
    Vec4([f64; 4]),
    /// A rotation.
    Quat(Quat),
    /// A scalar with a rate.
    Ramp(Ramp),
    /// A matrix.
    Matrix(Arc<Matrix>),
    /// Typed array of i64.
    Ints(Arc<[i64]>),
    /// Typed array of u64.
    UInts(Arc<[u64]>),
    /// Typed array of f64.
    Floats(Arc<[f64]>),
    /// Typed array of f32.
    Floats32(Arc<[f32]>),
    /// A list: one atomic value.
    List(Arc<[Value]>),
    /// A map. Setting a map at a path *replaces* the subtree there; inside a list it is atomic.
    Map(Arc<BTreeMap<Key, Value>>),
    /// Kinematic state.
    Motion(Box<Motion>),
}
