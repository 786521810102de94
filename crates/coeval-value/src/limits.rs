//! How large a value may be.
use crate::Value;

/// Bounds on one value. Every decoder enforces [`MAX`](Self::MAX); a session may set tighter ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Nesting of lists and maps: 1 admits values that hold no values.
    pub depth: usize,
    /// Bytes of one text.
    pub text_bytes: usize,
    /// Bytes of one byte string.
    pub bytes: usize,
    /// Elements of one array, matrix, list or map.
    pub elements: usize,
    /// Bytes of the whole value in memory, as [`Value::deep_size`] counts them.
    pub total: usize,
}

impl Limits {
    /// The most any coeval program stores or decodes: depth 16, 16 MiB, 1,048,576 elements.
    pub const MAX: Self =
        Self { depth: 16, text_bytes: 16 << 20, bytes: 16 << 20, elements: 1 << 20, total: 16 << 20 };

    /// Refuses a value that exceeds a bound, or that holds a matrix of the wrong shape.
    pub fn check(&self, value: &Value) -> Result<(), LimitError> {
        // Depth first: it bounds the recursion of everything after it.
        self.check_depth(value, self.depth)?;
        at_most("total bytes", value.deep_size(), self.total)?;
        self.check_parts(value)
    }

    fn check_depth(&self, value: &Value, left: usize) -> Result<(), LimitError> {
        let Some(left) = left.checked_sub(1) else { return Err(LimitError::Depth { limit: self.depth }) };
        match value {
            Value::List(v) => v.iter().try_for_each(|v| self.check_depth(v, left)),
            Value::Map(v) => v.values().try_for_each(|v| self.check_depth(v, left)),
            _ => Ok(()),
        }
    }

    fn check_parts(&self, value: &Value) -> Result<(), LimitError> {
        match value {
            Value::Text(v) => at_most("bytes of text", v.len(), self.text_bytes),
            Value::Bytes(v) => at_most("bytes", v.len(), self.bytes),
            Value::Matrix(v) if !v.is_well_formed() => Err(LimitError::Shape),
            Value::Matrix(v) => at_most("matrix elements", v.elements.len(), self.elements),
            Value::Ints(v) => at_most("array elements", v.len(), self.elements),
            Value::UInts(v) => at_most("array elements", v.len(), self.elements),
            Value::Floats(v) => at_most("array elements", v.len(), self.elements),
            Value::Floats32(v) => at_most("array elements", v.len(), self.elements),
            Value::List(v) => {
                at_most("list elements", v.len(), self.elements)?;
                v.iter().try_for_each(|v| self.check_parts(v))
            }
            Value::Map(v) => {
                at_most("map entries", v.len(), self.elements)?;
                v.values().try_for_each(|v| self.check_parts(v))
            }
            _ => Ok(()),
        }
    }
}

/// 64 KiB of text, 256 KiB of bytes and in total, 16,384 elements, depth 16.
impl Default for Limits {
    fn default() -> Self {
        Self { depth: 16, text_bytes: 64 << 10, bytes: 256 << 10, elements: 16_384, total: 256 << 10 }
    }
}

impl Value {
    /// Refuses a value that exceeds `limits`.
    pub fn check(&self, limits: &Limits) -> Result<(), LimitError> {
        limits.check(self)
    }
}

fn at_most(what: &'static str, found: usize, limit: usize) -> Result<(), LimitError> {
    if found <= limit { Ok(()) } else { Err(LimitError::Size { what, found, limit }) }
}

/// Why a value is too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitError {
    /// Lists and maps nest too deep.
    #[error("value nested deeper than {limit}: flatten it, or spread it over paths")]
    Depth {
        /// The bound.
        limit: usize,
    },
    /// Something is too large.
    #[error("value with {found} {what}: at most {limit}")]
    Size {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The bound.
        limit: usize,
    },
    /// A matrix whose elements are not rows times columns.
    #[error("matrix whose elements are not rows times columns")]
    Shape,
}
