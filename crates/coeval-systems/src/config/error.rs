//! What was wrong with a sim config: file, line, key, and what to do.
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// A sim config that was refused. Nothing of it was applied. Displays as one line: `FILE:LINE: KEY: MESSAGE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as it was named by the caller.
    pub file: PathBuf,
    /// Line in the file, from 1.
    pub line: usize,
    /// The key concerned, in full (`entities.probe.parameters.mass`); empty for a fault of the whole file.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file.display(), self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// What is wrong with one value, before it is known under which key it stands.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// Where exactly, if it is a part of the value.
    at: Option<usize>,
    /// Which part: `[2]`.
    part: String,
    message: String,
}

impl Wrong {
    /// The same fault, told of the array whose item `index` has it.
    pub(crate) fn in_item(self, index: usize, at: usize) -> Self {
        Self { at: self.at.or(Some(at)), part: format!("[{index}]{}", self.part), ..self }
    }

    /// The fault of a value under `key` that begins at `at`.
    pub(crate) fn under(self, at: usize, key: &str) -> Fault {
        Fault::new(self.at.unwrap_or(at), format!("{key}{}", self.part), self.message)
    }
}

impl From<String> for Wrong {
    fn from(message: String) -> Self {
        Self { at: None, part: String::new(), message }
    }
}

impl From<&str> for Wrong {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// A fault at a byte of the source, before it is known which line and file that is.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) key: String,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at, key: key.into(), message: message.into() }
    }

    /// What the TOML reader refused.
    pub(crate) fn syntax(source: &str, error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or(0..0);
        let key = key_near(source, &span).unwrap_or_default();
        let message = error.message().trim();
        let advice = if message == "duplicate key" {
            ": it stands above already; keep one, or rename this"
        } else {
            ""
        };
        Self::new(span.start, key, format!("{message}{advice}"))
    }

    pub(crate) fn locate(self, file: &Path, source: &[u8]) -> ConfigError {
        let line = line_of(source, self.at);
        ConfigError {
            file: file.to_owned(),
            line,
            key: one_line(&self.key),
            message: one_line(&self.message),
        }
    }
}

/// The line, from 1, that holds byte `at`.
fn line_of(source: &[u8], at: usize) -> usize {
    let before = &source[..at.min(source.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The text without control characters: what it quotes of the source may hold any.
pub(crate) fn one_line(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// `key.name`, the name in quotes where TOML needs them.
pub(crate) fn join(key: &str, name: &str) -> String {
    let bare =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let name = if bare { name.to_owned() } else { format!("{name:?}") };
    if key.is_empty() { name } else { format!("{key}.{name}") }
}

/// The full key of the line that is no TOML: what stands before its `=`, under the last table header above it.
fn key_near(source: &str, span: &Range<usize>) -> Option<String> {
    let line = line_of(source.as_bytes(), span.start);
    let lines: Vec<&str> = source.lines().take(line).collect();
    let here = lines.last()?.trim();
    if let Some(header) = keys_of_header(here) {
        return Some(header);
    }
    let table = lines.iter().rev().find_map(|line| keys_of_header(line.trim())).unwrap_or_default();
    let (name, _) = here.split_once('=')?;
    let key = keys_of(&format!("{} = 0", name.trim()))?;
    Some(if table.is_empty() { key } else { format!("{table}.{key}") })
}

fn keys_of_header(line: &str) -> Option<String> {
    if line.starts_with('[') && line.contains(']') { keys_of(line) } else { None }
}

/// The dotted key of one line of TOML, written as errors write it.
fn keys_of(line: &str) -> Option<String> {
    let parsed = DeTable::parse(line).ok()?;
    let mut table = parsed.get_ref();
    let mut keys = String::new();
    while let Some((name, node)) = table.iter().next() {
        keys = join(&keys, name.get_ref());
        let Some(inner) = node.get_ref().as_table() else { break };
        table = inner;
    }
    (!keys.is_empty()).then_some(keys)
}
