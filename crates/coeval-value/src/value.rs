//! Every type a parameter may hold, compared by bits.
use crate::words::{MAX_INLINE_WORDS, encode_words};
use crate::{EntityId, Key, Motion, Quat, Ramp, kind};
use coeval_time::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use uuid::Uuid;

/// A matrix of `rows` by `columns` f64, row-major.
///
/// Its fields can be set at will; [`Limits::check`](crate::Limits::check) and every decoder refuse one whose elements
/// are not `rows * columns`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "RawMatrix")]
pub struct Matrix {
    /// Number of rows.
    pub rows: u16,
    /// Number of columns.
    pub columns: u16,
    /// `rows * columns` elements, row-major.
    pub elements: Vec<f64>,
}

/// A matrix as decoded, before its shape is checked.
#[derive(Deserialize)]
struct RawMatrix {
    rows: u16,
    columns: u16,
    #[serde(deserialize_with = "crate::serial::bounded")]
    elements: Vec<f64>,
}

impl TryFrom<RawMatrix> for Matrix {
    type Error = ShapeError;

    fn try_from(raw: RawMatrix) -> Result<Self, ShapeError> {
        Self::new(raw.rows, raw.columns, raw.elements)
    }
}

/// A matrix whose elements are not `rows * columns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("matrix of {rows} rows and {columns} columns with {elements} elements: it needs rows times columns")]
pub struct ShapeError {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
    /// Elements given.
    pub elements: usize,
}

impl Matrix {
    /// A matrix from its row-major elements; refused unless there are `rows * columns` of them.
    pub fn new(rows: u16, columns: u16, elements: Vec<f64>) -> Result<Self, ShapeError> {
        let matrix = Self { rows, columns, elements };
        let elements = matrix.elements.len();
        if matrix.is_well_formed() { Ok(matrix) } else { Err(ShapeError { rows, columns, elements }) }
    }

    /// Whether there are `rows * columns` elements.
    pub fn is_well_formed(&self) -> bool {
        usize::from(self.rows) * usize::from(self.columns) == self.elements.len()
    }

    /// The element at a row and a column, both from zero; `None` outside.
    pub fn get(&self, row: u16, column: u16) -> Option<f64> {
        let inside = row < self.rows && column < self.columns;
        let at = usize::from(row) * usize::from(self.columns) + usize::from(column);
        self.elements.get(at).filter(|_| inside).copied()
    }
}

/// By bits.
impl PartialEq for Matrix {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.columns) == (other.rows, other.columns) && same_f64(&self.elements, &other.elements)
    }
}

impl Eq for Matrix {}

impl Hash for Matrix {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.rows, self.columns).hash(state);
        hash_f64(&self.elements, state);
    }
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

impl Value {
    /// Its stable kind number, see [`kind`].
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Nil => kind::NIL,
            Self::Bool(_) => kind::BOOL,
            Self::Int(_) => kind::INT,
            Self::UInt(_) => kind::UINT,
            Self::Float(_) => kind::FLOAT,
            Self::Float32(_) => kind::FLOAT32,
            Self::Text(_) => kind::TEXT,
            Self::Bytes(_) => kind::BYTES,
            Self::Uuid(_) => kind::UUID,
            Self::Entity(_) => kind::ENTITY,
            Self::Time(_) => kind::TIME,
            Self::Duration(_) => kind::DURATION,
            Self::Vec2(_) => kind::VEC2,
            Self::Vec3(_) => kind::VEC3,
            Self::Vec4(_) => kind::VEC4,
            Self::Quat(_) => kind::QUAT,
            Self::Ramp(_) => kind::RAMP,
            Self::Matrix(_) => kind::MATRIX,
            Self::Ints(_) => kind::INTS,
            Self::UInts(_) => kind::UINTS,
            Self::Floats(_) => kind::FLOATS,
            Self::Floats32(_) => kind::FLOATS32,
            Self::List(_) => kind::LIST,
            Self::Map(_) => kind::MAP,
            Self::Motion(_) => kind::MOTION,
        }
    }

    /// The name of its type, as errors print it.
    pub const fn type_name(&self) -> &'static str {
        match kind::name(self.kind()) {
            Some(name) => name,
            None => "unknown",
        }
    }

    /// A list of anything that converts to values.
    pub fn list<T: Into<Self>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }

    /// A map of anything that converts to values.
    pub fn map<T: Into<Self>>(items: impl IntoIterator<Item = (Key, T)>) -> Self {
        Self::Map(Arc::new(items.into_iter().map(|(key, value)| (key, value.into())).collect()))
    }

    /// Bytes it occupies, the heap included. What several values share is counted in each.
    pub fn deep_size(&self) -> usize {
        size_of::<Self>() + self.heap_size()
    }

    fn heap_size(&self) -> usize {
        match self {
            Self::Text(v) => v.len(),
            Self::Bytes(v) => v.len(),
            Self::Matrix(v) => size_of::<Matrix>() + size_of_val(v.elements.as_slice()),
            Self::Ints(v) => size_of_val(v.as_ref()),
            Self::UInts(v) => size_of_val(v.as_ref()),
            Self::Floats(v) => size_of_val(v.as_ref()),
            Self::Floats32(v) => size_of_val(v.as_ref()),
            Self::List(v) => v.iter().map(Self::deep_size).sum(),
            Self::Map(v) => v.iter().map(|(k, v)| size_of::<Key>() + k.as_str().len() + v.deep_size()).sum(),
            Self::Motion(_) => size_of::<Motion>(),
            _ => 0,
        }
    }

    /// Depth of nesting: 1 for a value that holds no values.
    pub fn depth(&self) -> usize {
        1 + match self {
            Self::List(v) => v.iter().map(Self::depth).max().unwrap_or(0),
            Self::Map(v) => v.values().map(Self::depth).max().unwrap_or(0),
            _ => 0,
        }
    }
}

fn same_f64(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

fn hash_f64<H: Hasher>(floats: &[f64], state: &mut H) {
    floats.len().hash(state);
    floats.iter().for_each(|v| v.to_bits().hash(state));
}

/// By type and bits: `Int(1)` is not `UInt(1)`, 0.0 is not -0.0, a NaN equals a NaN of the same bits.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Matrix(a), Self::Matrix(b)) => a == b,
            (Self::Ints(a), Self::Ints(b)) => a == b,
            (Self::UInts(a), Self::UInts(b)) => a == b,
            (Self::Floats(a), Self::Floats(b)) => same_f64(a, b),
            (Self::Floats32(a), Self::Floats32(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => self.kind() == other.kind() && same_words(self, other),
        }
    }
}

impl Eq for Value {}

/// The word form holds every bit of an inline value and nothing else, so it decides equality.
fn same_words(a: &Value, b: &Value) -> bool {
    let (mut left, mut right) = ([0; MAX_INLINE_WORDS], [0; MAX_INLINE_WORDS]);
    match (encode_words(a, &mut left), encode_words(b, &mut right)) {
        (Some((_, m)), Some((_, n))) => left[..m] == right[..n],
        _ => false,
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind().hash(state);
        match self {
            Self::Text(v) => v.hash(state),
            Self::Bytes(v) => v.hash(state),
            Self::Matrix(v) => v.hash(state),
            Self::Ints(v) => v.hash(state),
            Self::UInts(v) => v.hash(state),
            Self::Floats(v) => hash_f64(v, state),
            Self::Floats32(v) => {
                v.len().hash(state);
                v.iter().for_each(|v| v.to_bits().hash(state));
            }
            Self::List(v) => v.hash(state),
            Self::Map(v) => v.hash(state),
            inline => {
                let mut words = [0; MAX_INLINE_WORDS];
                let count = encode_words(inline, &mut words).map_or(0, |(_, count)| count);
                words[..count].hash(state);
            }
        }
    }
}
