//! The word form of small values: what the concurrent cell holds. No allocation, no loss: every bit comes back.
use crate::motion::MotionModel;
use crate::{EntityId, Motion, Parameter, Quat, Ramp, Value, kind};
use coeval_time::{SimDuration, SimTime};
use uuid::Uuid;

/// Most words of an inline value: a motion with every component.
pub const MAX_INLINE_WORDS: usize = 23;

/// Room for the words of any inline value.
pub type Words = [u64; MAX_INLINE_WORDS];

/// Writes the words of an inline value and returns its kind (see [`kind`]) and how many words were written.
///
/// `None`, with `out` untouched, for values that live on the heap: text, bytes, arrays, matrices, lists, maps.
pub fn encode_words(value: &Value, out: &mut Words) -> Option<(u8, usize)> {
    match value {
        Value::Nil => Some((kind::NIL, 0)),
        Value::Bool(v) => v.write_words(out),
        Value::Int(v) => v.write_words(out),
        Value::UInt(v) => v.write_words(out),
        Value::Float(v) => v.write_words(out),
        Value::Float32(v) => v.write_words(out),
        Value::Uuid(v) => v.write_words(out),
        Value::Entity(v) => v.write_words(out),
        Value::Time(v) => v.write_words(out),
        Value::Duration(v) => v.write_words(out),
        Value::Vec2(v) => v.write_words(out),
        Value::Vec3(v) => v.write_words(out),
        Value::Vec4(v) => v.write_words(out),
        Value::Quat(v) => v.write_words(out),
        Value::Ramp(v) => v.write_words(out),
        Value::Motion(v) => v.write_words(out),
        Value::Text(_) | Value::Bytes(_) | Value::Matrix(_) | Value::List(_) | Value::Map(_) => None,
        Value::Ints(_) | Value::UInts(_) | Value::Floats(_) | Value::Floats32(_) => None,
    }
}

/// The value that [`encode_words`] wrote. Words beyond those it wrote are ignored.
///
/// `None` for a kind that is not inline, too few words, or words that no value has.
pub fn decode_words(kind: u8, words: &[u64]) -> Option<Value> {
    Some(match kind {
        kind::NIL => Value::Nil,
        kind::BOOL => Value::Bool(Inline::get(words)?),
        kind::INT => Value::Int(Inline::get(words)?),
        kind::UINT => Value::UInt(Inline::get(words)?),
        kind::FLOAT => Value::Float(Inline::get(words)?),
        kind::FLOAT32 => Value::Float32(Inline::get(words)?),
        kind::UUID => Value::Uuid(Inline::get(words)?),
        kind::ENTITY => Value::Entity(Inline::get(words)?),
        kind::TIME => Value::Time(Inline::get(words)?),
        kind::DURATION => Value::Duration(Inline::get(words)?),
        kind::VEC2 => Value::Vec2(Inline::get(words)?),
        kind::VEC3 => Value::Vec3(Inline::get(words)?),
        kind::VEC4 => Value::Vec4(Inline::get(words)?),
        kind::QUAT => Value::Quat(Inline::get(words)?),
        kind::RAMP => Value::Ramp(Inline::get(words)?),
        kind::MOTION => Value::Motion(Box::new(Inline::get(words)?)),
        _ => return None,
    })
}

/// A type with a word form of its own.
pub(crate) trait Inline: Copy {
    /// Its kind number.
    const KIND: u8;
    /// Writes the words and returns how many.
    fn put(&self, out: &mut Words) -> usize;
    /// Reads them back; `None` for too few or impossible words.
    fn get(words: &[u64]) -> Option<Self>;
}

macro_rules! one_word {
    ($($t:ty, $kind:ident, $v:ident => $put:expr, $w:ident => $get:expr;)*) => {$(
        impl Inline for $t {
            const KIND: u8 = kind::$kind;
            fn put(&self, out: &mut Words) -> usize {
                let $v = *self;
                out[0] = $put;
                1
            }
            fn get(words: &[u64]) -> Option<Self> {
                let $w = *words.first()?;
                $get
            }
        }
    )*};
}

one_word! {
    bool, BOOL, v => u64::from(v), w => (w < 2).then_some(w == 1);
    i64, INT, v => v.cast_unsigned(), w => Some(w.cast_signed());
    u64, UINT, v => v, w => Some(w);
    f64, FLOAT, v => v.to_bits(), w => Some(f64::from_bits(w));
    f32, FLOAT32, v => u64::from(v.to_bits()), w => u32::try_from(w).ok().map(f32::from_bits);
}

macro_rules! two_words {
    ($($t:ty, $kind:ident, $v:ident => $put:expr, $w:ident => $get:expr;)*) => {$(
        impl Inline for $t {
            const KIND: u8 = kind::$kind;
            fn put(&self, out: &mut Words) -> usize {
                let $v = *self;
                let all: u128 = $put;
                out[0] = all as u64;
                out[1] = (all >> 64) as u64;
                2
            }
            fn get(words: &[u64]) -> Option<Self> {
                let $w = u128::from(*words.first()?) | u128::from(*words.get(1)?) << 64;
                $get
            }
        }
    )*};
}

two_words! {
    Uuid, UUID, v => v.as_u128(), w => Some(Uuid::from_u128(w));
    EntityId, ENTITY, v => v.0.as_u128(), w => Some(EntityId(Uuid::from_u128(w)));
    SimTime, TIME, v => v.as_nanos().cast_unsigned(), w => time(w.cast_signed());
    SimDuration, DURATION, v => v.as_nanos().cast_unsigned(), w => duration(w.cast_signed());
}

/// The instant, unless it is outside the range of instants.
fn time(nanos: i128) -> Option<SimTime> {
    Some(SimTime::from_nanos(nanos)).filter(|t| t.as_nanos() == nanos)
}

/// The length, unless it is outside the range of lengths.
fn duration(nanos: i128) -> Option<SimDuration> {
    Some(SimDuration::from_nanos(nanos)).filter(|t| t.as_nanos() == nanos)
}

macro_rules! vectors {
    ($($n:literal, $kind:ident;)*) => {$(
        impl Inline for [f64; $n] {
            const KIND: u8 = kind::$kind;
            fn put(&self, out: &mut Words) -> usize {
                put_floats(self, out, 0)
            }
            fn get(words: &[u64]) -> Option<Self> {
                get_floats(words, &mut 0)
            }
        }
    )*};
}

vectors! { 2, VEC2; 3, VEC3; 4, VEC4; }

/// Writes `floats` from word `at` on and returns the word after them.
fn put_floats(floats: &[f64], out: &mut Words, at: usize) -> usize {
    for (word, float) in out[at..].iter_mut().zip(floats) {
        *word = float.to_bits();
    }
    at + floats.len()
}

/// Reads `N` floats from word `at` on and moves `at` behind them.
fn get_floats<const N: usize>(words: &[u64], at: &mut usize) -> Option<[f64; N]> {
    let words: &[u64; N] = words.get(*at..*at + N)?.try_into().ok()?;
    *at += N;
    Some(words.map(f64::from_bits))
}

impl Inline for Quat {
    const KIND: u8 = kind::QUAT;
    fn put(&self, out: &mut Words) -> usize {
        put_floats(&self.to_array(), out, 0)
    }
    fn get(words: &[u64]) -> Option<Self> {
        get_floats(words, &mut 0).map(Self::from_array)
    }
}

impl Inline for Ramp {
    const KIND: u8 = kind::RAMP;
    fn put(&self, out: &mut Words) -> usize {
        put_floats(&[self.value, self.rate], out, 0)
    }
    fn get(words: &[u64]) -> Option<Self> {
        get_floats(words, &mut 0).map(|[value, rate]| Self { value, rate })
    }
}

/// The first word holds the presence mask in its low 8 bits and the model's code in the next 8; then come the present
/// components in the order of the mask.
impl Inline for Motion {
    const KIND: u8 = kind::MOTION;

    fn put(&self, out: &mut Words) -> usize {
        out[0] = u64::from(self.presence()) | u64::from(self.model.code()) << 8;
        let mut at = 1;
        for vector in [self.position, self.velocity, self.acceleration].into_iter().flatten() {
            at = put_floats(&vector, out, at);
        }
        if let Some(q) = self.orientation {
            at = put_floats(&q.to_array(), out, at);
        }
        for vector in [self.angular_velocity, self.angular_acceleration].into_iter().flatten() {
            at = put_floats(&vector, out, at);
        }
        if let Some(mu) = self.mu {
            at = put_floats(&[mu], out, at);
        }
        if let Some(frame) = self.frame {
            let id = frame.0.as_u128();
            out[at] = id as u64;
            out[at + 1] = (id >> 64) as u64;
            at += 2;
        }
        at
    }

    fn get(words: &[u64]) -> Option<Self> {
        let head = *words.first()?;
        let mask = head as u8;
        let mut at = 1;
        let mut motion =
            Self { model: MotionModel::from_code(u8::try_from(head >> 8).ok()?)?, ..Self::default() };
        let has = |bit: u8| mask & bit != 0;
        if has(Self::POSITION) {
            motion.position = Some(get_floats(words, &mut at)?);
        }
        if has(Self::VELOCITY) {
            motion.velocity = Some(get_floats(words, &mut at)?);
        }
        if has(Self::ACCELERATION) {
            motion.acceleration = Some(get_floats(words, &mut at)?);
        }
        if has(Self::ORIENTATION) {
            motion.orientation = Some(Quat::from_array(get_floats(words, &mut at)?));
        }
        if has(Self::ANGULAR_VELOCITY) {
            motion.angular_velocity = Some(get_floats(words, &mut at)?);
        }
        if has(Self::ANGULAR_ACCELERATION) {
            motion.angular_acceleration = Some(get_floats(words, &mut at)?);
        }
        if has(Self::MU) {
            motion.mu = Some(get_floats::<1>(words, &mut at)?[0]);
        }
        if has(Self::FRAME) {
            motion.frame = Some(EntityId::get(words.get(at..)?)?);
        }
        Some(motion)
    }
}
