//! Keys and paths: the names of parameters inside an entity.
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// One name of a path: 1 to 255 bytes of UTF-8. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// The name of a parameter inside its entity: 1 to 16 keys. Cloning is cheap.
///
/// Ordered key by key, so that a path sorts directly before its descendants.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Arc<[Key]>);

/// Most keys in a path.
pub const MAX_KEYS: usize = 16;
/// Most bytes in a key.
pub const MAX_KEY_BYTES: usize = 255;

/// Why a key or a path was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// A key has no bytes.
    #[error("empty key in path {0:?}: write at least one character between slashes")]
    EmptyKey(String),
    /// A key is too long.
    #[error("key of {0} bytes: a key has at most {MAX_KEY_BYTES}")]
    LongKey(usize),
    /// A path has no keys or too many.
    #[error("path of {0} keys: a path has 1 to {MAX_KEYS}")]
    KeyCount(usize),
    /// A backslash is followed by neither a slash nor a backslash.
    #[error("stray backslash in path {0:?}: inside a key write \\\\ for a backslash and \\/ for a slash")]
    StrayEscape(String),
}

impl Key {
    /// A key from its text.
    pub fn new(text: &str) -> Result<Self, PathError> {
        match text.len() {
            0 => Err(PathError::EmptyKey(text.to_owned())),
            n if n > MAX_KEY_BYTES => Err(PathError::LongKey(n)),
            _ => Ok(Self(text.into())),
        }
    }

    /// The text, unescaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

// A key orders, compares and hashes as its text, so maps of keys can be asked with a `&str`.
impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for Key {
    type Error = PathError;

    fn try_from(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl Path {
    /// A path from its keys.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Result<Self, PathError> {
        let keys: Arc<[Key]> = keys.into_iter().collect();
        if (1..=MAX_KEYS).contains(&keys.len()) {
            Ok(Self(keys))
        } else {
            Err(PathError::KeyCount(keys.len()))
        }
    }

    /// A path from its textual form: keys joined with `/`; inside a key `\/` is a slash and `\\` a backslash.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let mut keys = Vec::new();
        let mut key = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '/' => keys.push(Key::new(&std::mem::take(&mut key)).map_err(|e| in_path(e, text))?),
                '\\' => match chars.next() {
                    Some(c @ ('/' | '\\')) => key.push(c),
                    _ => return Err(PathError::StrayEscape(text.to_owned())),
                },
                c => key.push(c),
            }
        }
        keys.push(Key::new(&key).map_err(|e| in_path(e, text))?);
        Self::new(keys)
    }

    /// Number of keys, 1 to [`MAX_KEYS`].
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// The innermost key.
    pub fn last(&self) -> &Key {
        &self.0[self.0.len() - 1]
    }

    /// The proper ancestors, outermost first; none for a path of one key.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        (1..self.0.len()).map(|depth| Self(self.0[..depth].into()))
    }

    /// The keys, outermost first.
    pub fn keys(&self) -> &[Key] {
        &self.0
    }

    /// The path without its last key, or `None` for a path of one key.
    pub fn parent(&self) -> Option<Self> {
        let parent = &self.0[..self.0.len() - 1];
        (!parent.is_empty()).then(|| Self(parent.into()))
    }

    /// This path with `key` appended.
    pub fn child(&self, key: Key) -> Result<Self, PathError> {
        Self::new(self.0.iter().cloned().chain([key]))
    }

    /// Whether `self` is `other` or an ancestor of it.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

fn in_path(error: PathError, text: &str) -> PathError {
    match error {
        PathError::EmptyKey(_) => PathError::EmptyKey(text.to_owned()),
        other => other,
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if matches!(c, '/' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, key) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("/")?;
            }
            write!(f, "{key}")?;
        }
        Ok(())
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Path {
    type Error = PathError;

    fn try_from(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl From<Key> for Path {
    fn from(key: Key) -> Self {
        Self([key].into())
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl de::Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of 1 to {MAX_KEY_BYTES} bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Key, E> {
        Key::new(text).map_err(E::custom)
    }
}

/// A list of keys, unescaped, outermost first.
impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(PathVisitor)
    }
}

struct PathVisitor;

impl<'de> de::Visitor<'de> for PathVisitor {
    type Value = Path;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of 1 to {MAX_KEYS} keys")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Path, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = seq.next_element::<Key>()? {
            if keys.len() == MAX_KEYS {
                return Err(de::Error::custom(PathError::KeyCount(MAX_KEYS + 1)));
            }
            keys.push(key);
        }
        Path::new(keys).map_err(de::Error::custom)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}
