//! serde for [`Value`]: a pair `[kind, content]` in compact formats, `{ kind: content }` in human-readable ones.
//!
//! Decoding enforces [`Limits::MAX`] as it goes, so hostile input meets a bound before an allocation.
use crate::{Key, Limits, Value, kind};
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::{SerializeMap, SerializeTuple};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Elements reserved ahead of reading them, whatever length the input claims.
const RESERVED: usize = 64;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry(self.type_name(), &Content(self))?;
            map.end()
        } else {
            let mut pair = serializer.serialize_tuple(2)?;
            pair.serialize_element(&self.kind())?;
            pair.serialize_element(&Content(self))?;
            pair.end()
        }
    }
}

/// A value without its kind.
struct Content<'a>(&'a Value);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Nil => to.serialize_unit(),
            Value::Bool(v) => v.serialize(to),
            Value::Int(v) => v.serialize(to),
            Value::UInt(v) => v.serialize(to),
            Value::Float(v) => v.serialize(to),
            Value::Float32(v) => v.serialize(to),
            Value::Text(v) => to.serialize_str(v),
            Value::Bytes(v) => to.serialize_bytes(v),
            Value::Uuid(v) => v.serialize(to),
            Value::Entity(v) => v.serialize(to),
            Value::Time(v) => v.serialize(to),
            Value::Duration(v) => v.serialize(to),
            Value::Vec2(v) => v.serialize(to),
            Value::Vec3(v) => v.serialize(to),
            Value::Vec4(v) => v.serialize(to),
            Value::Quat(v) => v.serialize(to),
            Value::Ramp(v) => v.serialize(to),
            Value::Matrix(v) => v.serialize(to),
            Value::Ints(v) => v.serialize(to),
            Value::UInts(v) => v.serialize(to),
            Value::Floats(v) => v.serialize(to),
            Value::Floats32(v) => v.serialize(to),
            Value::List(v) => v.serialize(to),
            Value::Map(v) => v.serialize(to),
            Value::Motion(v) => v.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = ValueSeed { depth: Limits::MAX.depth }.deserialize(deserializer)?;
        value.check(&Limits::MAX).map_err(de::Error::custom)?;
        Ok(value)
    }
}

/// Reads one value that may nest `depth` deep.
#[derive(Clone, Copy)]
struct ValueSeed {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth == 0 {
            let limit = Limits::MAX.depth;
            return Err(de::Error::custom(format_args!("value nested deeper than {limit}")));
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_map(self)
        } else {
            deserializer.deserialize_tuple(2, self)
        }
    }
}

impl<'de> Visitor<'de> for ValueSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value: a pair of kind and content, or a map of one kind to its content")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let kind = seq.next_element::<u8>()?.ok_or_else(|| de::Error::invalid_length(0, &self))?;
        let content = ContentSeed { kind, inner: Self { depth: self.depth - 1 } };
        seq.next_element_seed(content)?.ok_or_else(|| de::Error::invalid_length(1, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let name: String = map.next_key()?.ok_or_else(|| de::Error::invalid_length(0, &self))?;
        let unknown = || de::Error::invalid_value(Unexpected::Str(&name), &"the name of a value type");
        let kind = kind::by_name(&name).ok_or_else(unknown)?;
        let value = map.next_value_seed(ContentSeed { kind, inner: Self { depth: self.depth - 1 } })?;
        if map.next_key::<de::IgnoredAny>()?.is_some() {
            return Err(de::Error::custom("a value has one type: found a second"));
        }
        Ok(value)
    }
}

/// Reads the content of a value of a known kind.
struct ContentSeed {
    kind: u8,
    inner: ValueSeed,
}

impl<'de> DeserializeSeed<'de> for ContentSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        Ok(match self.kind {
            kind::NIL => <()>::deserialize(from).map(|()| Value::Nil)?,
            kind::BOOL => Value::Bool(Deserialize::deserialize(from)?),
            kind::INT => Value::Int(Deserialize::deserialize(from)?),
            kind::UINT => Value::UInt(Deserialize::deserialize(from)?),
            kind::FLOAT => Value::Float(Deserialize::deserialize(from)?),
            kind::FLOAT32 => Value::Float32(Deserialize::deserialize(from)?),
            kind::TEXT => {
                Value::Text(from.deserialize_str(Blob::<Arc<str>>::at_most(Limits::MAX.text_bytes))?)
            }
            kind::BYTES => {
                Value::Bytes(from.deserialize_bytes(Blob::<Arc<[u8]>>::at_most(Limits::MAX.bytes))?)
            }
            kind::UUID => Value::Uuid(Deserialize::deserialize(from)?),
            kind::ENTITY => Value::Entity(Deserialize::deserialize(from)?),
            kind::TIME => Value::Time(Deserialize::deserialize(from)?),
            kind::DURATION => Value::Duration(Deserialize::deserialize(from)?),
            kind::VEC2 => Value::Vec2(Deserialize::deserialize(from)?),
            kind::VEC3 => Value::Vec3(Deserialize::deserialize(from)?),
            kind::VEC4 => Value::Vec4(Deserialize::deserialize(from)?),
            kind::QUAT => Value::Quat(Deserialize::deserialize(from)?),
            kind::RAMP => Value::Ramp(Deserialize::deserialize(from)?),
            kind::MATRIX => Value::Matrix(Arc::new(Deserialize::deserialize(from)?)),
            kind::INTS => Value::Ints(bounded(from)?.into()),
            kind::UINTS => Value::UInts(bounded(from)?.into()),
            kind::FLOATS => Value::Floats(bounded(from)?.into()),
            kind::FLOATS32 => Value::Floats32(bounded(from)?.into()),
            kind::LIST => Value::List(from.deserialize_seq(Elements(self.inner))?.into()),
            kind::MAP => Value::Map(Arc::new(from.deserialize_map(Entries(self.inner))?)),
            kind::MOTION => Value::Motion(Box::new(Deserialize::deserialize(from)?)),
            kind => {
                let unknown = Unexpected::Unsigned(kind.into());
                return Err(de::Error::invalid_value(unknown, &"a value kind this version knows"));
            }
        })
    }
}

/// Reads a text or a byte string of at most `limit` bytes.
struct Blob<T> {
    limit: usize,
    of: PhantomData<T>,
}

impl<T> Blob<T> {
    fn at_most(limit: usize) -> Self {
        Self { limit, of: PhantomData }
    }

    fn check<E: de::Error>(&self, len: usize) -> Result<(), E> {
        if len <= self.limit {
            Ok(())
        } else {
            Err(E::custom(format_args!("{len} bytes: at most {}", self.limit)))
        }
    }
}

impl Visitor<'_> for Blob<Arc<str>> {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Arc<str>, E> {
        self.check(text.len())?;
        Ok(text.into())
    }
}

impl<'de> Visitor<'de> for Blob<Arc<[u8]>> {
    type Value = Arc<[u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Arc<[u8]>, E> {
        self.check(bytes.len())?;
        Ok(bytes.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Arc<[u8]>, A::Error> {
        collect(seq, self.limit, PhantomData::<u8>).map(Into::into)
    }
}

/// Reads an array of at most [`Limits::MAX`] elements.
pub(crate) fn bounded<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Elements(PhantomData::<T>))
}

/// Reads elements, each through the seed.
struct Elements<S>(S);

impl<'de, S: DeserializeSeed<'de> + Clone> Visitor<'de> for Elements<S> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        collect(seq, Limits::MAX.elements, self.0)
    }
}

fn collect<'de, A, S>(mut seq: A, limit: usize, seed: S) -> Result<Vec<S::Value>, A::Error>
where
    A: SeqAccess<'de>,
    S: DeserializeSeed<'de> + Clone,
{
    let mut all = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(RESERVED));
    while let Some(element) = seq.next_element_seed(seed.clone())? {
        if all.len() == limit {
            return Err(de::Error::custom(format_args!("more than {limit} elements")));
        }
        all.push(element);
    }
    Ok(all)
}

/// Reads the entries of a map.
struct Entries(ValueSeed);

impl<'de> Visitor<'de> for Entries {
    type Value = BTreeMap<Key, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from keys to values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = BTreeMap::new();
        while let Some(key) = map.next_key::<Key>()? {
            if all.len() == Limits::MAX.elements {
                return Err(de::Error::custom(format_args!("more than {} entries", Limits::MAX.elements)));
            }
            let value = map.next_value_seed(self.0)?;
            if let Some(_twice) = all.insert(key, value) {
                return Err(de::Error::custom("a key twice in a map"));
            }
        }
        Ok(all)
    }
}
