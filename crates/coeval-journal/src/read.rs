//! Reading: what a journal holds, up to the last whole batch; damage told apart from a torn tail.
use crate::JournalError;
use crate::disk::{Disk, Source};
use crate::format::{self, FILE_HEAD, Head, Kind, MAGIC, MAX_HEADER, RECORD_HEAD, VERSION};
use crate::header::Header;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// What to do about damage in the middle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDamage {
    /// Refuse, and say where it is.
    #[default]
    Refuse,
    /// Keep the whole batches before it. What comes after is lost.
    Salvage,
}

/// What a journal holds.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Whose it is.
    pub header: Header,
    /// How long the file is, bytes.
    pub len: u64,
    /// Bytes up to the end of the last whole batch.
    pub kept: u64,
    /// Messages up to there.
    pub messages: u64,
    /// Marks up to there.
    pub marks: u64,
    /// Whether it was closed in order.
    pub closed: bool,
    /// Where damage begins to what was once synced.
    pub damaged_at: Option<u64>,
    path: PathBuf,
    salt: u64,
    start: u64,
}

impl Recovery {
    /// Looks through the journal at `path`.
    ///
    /// # Errors
    /// [`JournalError`]; [`JournalError::Damaged`] only if `on_damage` says to refuse. [`not_found`](Self::not_found)
    /// tells a journal that is not there from other trouble.
    pub fn open(disk: &dyn Disk, path: &Path, on_damage: OnDamage) -> Result<Self, JournalError> {
        let failed = |source| JournalError::io("read", path, source);
        let source = disk.open(path).map_err(failed)?;
        let mut window = Window::new(source).map_err(failed)?;
        let (header, salt, start) = read_header(&mut window, path)?;
        let (len, kept) = (window.len, start);
        let (at, messages, marks, closed, damaged_at) = (path.to_owned(), 0, 0, false, None);
        let mut found =
            Self { header, len, kept, messages, marks, closed, damaged_at, path: at, salt, start };
        let end = found.walk(&mut window, |_| Ok(())).map_err(failed)?;
        (found.kept, found.messages, found.marks, found.closed) =
            (end.kept, end.messages, end.marks, end.closed);
        if !end.closed && end.at < len {
            found.damaged_at = found.damage(&mut window, end.at).map_err(failed)?;
        }
        match found.damaged_at {
            Some(offset) if on_damage == OnDamage::Refuse => Err(JournalError::Damaged {
                path: found.path,
                offset,
                len,
                kept: found.kept,
                marks: found.marks,
            }),
            _ => Ok(found),
        }
    }

    /// Whether an error says that there is no journal.
    pub fn not_found(error: &JournalError) -> bool {
        matches!(error, JournalError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Bytes after the last whole batch that are not used: a torn tail, or what follows damage.
    pub fn cut(&self) -> u64 {
        if self.closed && self.damaged_at.is_none() { 0 } else { self.len - self.kept }
    }

    /// Hands all messages up to the last mark to `take`, in order.
    ///
    /// # Errors
    /// [`JournalError::Io`] when the file cannot be read (any more), or when `take` refuses a message.
    pub fn replay(
        &self,
        disk: &dyn Disk,
        mut take: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), JournalError> {
        let failed = |source| JournalError::io("read", &self.path, source);
        let mut window = Window::new(disk.open(&self.path).map_err(failed)?).map_err(failed)?;
        window.len = self.kept;
        let walked = self.walk(&mut window, |message| take(message).map_err(io::Error::other));
        let end = walked.map_err(failed)?;
        if end.kept != self.kept || end.messages != self.messages {
            return Err(failed(io::Error::other("it has changed while it was read")));
        }
        Ok(())
    }

    /// Goes through whole records until one is not.
    fn walk(&self, window: &mut Window, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<End> {
        let mut end = End { at: self.start, kept: self.start, messages: 0, marks: 0, closed: false };
        let mut messages = 0;
        while let Some((kind, length, message)) = record(window, self.salt, end.at)? {
            end.at += (RECORD_HEAD + length) as u64;
            match kind {
                Kind::End => end.closed = end.at == window.len,
                Kind::Message | Kind::Mark => {
                    messages += 1;
                    take(message.1)?;
                }
            }
            if kind == Kind::Mark {
                (end.kept, end.messages) = (end.at, messages);
                end.marks += 1;
            }
        }
        Ok(end)
    }

    /// Whether what is broken at `at` was once synced: a later record says so.
    fn damage(&self, window: &mut Window, at: u64) -> io::Result<Option<u64>> {
        let mut look = at + 1;
        while look + (RECORD_HEAD as u64) <= window.len {
            match record(window, self.salt, look)? {
                Some((_, _, (synced, _))) if synced > at => return Ok(Some(at)),
                Some((_, length, _)) => look += (RECORD_HEAD + length) as u64,
                None => look += 1,
            }
        }
        Ok(None)
    }
}

/// How far a walk came.
struct End {
    at: u64,
    kept: u64,
    messages: u64,
    marks: u64,
    closed: bool,
}

/// What a record is, the length of its payload, the synced place it tells, and its message.
type Record<'a> = (Kind, usize, (u64, &'a [u8]));

/// The record at `at`, if a whole one stands there.
fn record(window: &mut Window, salt: u64, at: u64) -> io::Result<Option<Record<'_>>> {
    let Some(head) = window.get(at, RECORD_HEAD)?.and_then(Head::parse) else { return Ok(None) };
    let payload = window.get(at + RECORD_HEAD as u64, head.length)?;
    let opened = payload.and_then(|payload| head.open(salt, at, payload));
    Ok(opened.map(|opened| (head.kind, head.length, opened)))
}

fn read_header(window: &mut Window, path: &Path) -> Result<(Header, u64, u64), JournalError> {
    let failed = |source| JournalError::io("read", path, source);
    let not = |why: &str| JournalError::NotAJournal { path: path.to_owned(), why: why.to_owned() };
    let head = window.get(0, FILE_HEAD).map_err(failed)?.ok_or_else(|| not("it is too short"))?;
    let rest = head.strip_prefix(MAGIC).ok_or_else(|| not("it begins otherwise"))?;
    let [v1, v2, l1, l2, l3, l4, checksum @ ..] = rest else { return Err(not("it is too short")) };
    let version = u16::from_be_bytes([*v1, *v2]);
    if version != VERSION {
        return Err(JournalError::Version { path: path.to_owned(), found: version, reads: VERSION });
    }
    let length = u32::from_be_bytes([*l1, *l2, *l3, *l4]) as usize;
    let checksum = u64::from_be_bytes(checksum.try_into().map_err(|_| not("it is too short"))?);
    if length > MAX_HEADER {
        return Err(not("its header is damaged"));
    }
    let header =
        window.get(FILE_HEAD as u64, length).map_err(failed)?.ok_or_else(|| not("its header is cut off"))?;
    if format::header_checksum(version, header) != checksum {
        return Err(not("its header is damaged"));
    }
    let header = Header::decode(header).map_err(|why| not(&why))?;
    Ok((header, checksum, (FILE_HEAD + length) as u64))
}

/// A file seen through a buffer.
struct Window {
    source: Box<dyn Source>,
    len: u64,
    buffer: Vec<u8>,
    start: u64,
}

impl Window {
    fn new(mut source: Box<dyn Source>) -> io::Result<Self> {
        let len = source.size()?;
        Ok(Self { source, len, buffer: Vec::new(), start: 0 })
    }

    /// `length` bytes at `at`; `None` if the file ends before.
    fn get(&mut self, at: u64, length: usize) -> io::Result<Option<&[u8]>> {
        if at.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let held = at >= self.start && at + length as u64 <= self.start + self.buffer.len() as u64;
        if !held && !self.fill(at, length)? {
            return Ok(None);
        }
        let from = (at - self.start) as usize;
        Ok(self.buffer.get(from..from + length))
    }

    /// Reads from `at` on, at least `length` bytes; `false` if the file has become shorter.
    fn fill(&mut self, at: u64, length: usize) -> io::Result<bool> {
        let want = usize::try_from(self.len - at).unwrap_or(usize::MAX).min(CHUNK.max(length));
        self.buffer.resize(want, 0);
        self.start = at;
        let mut have = 0;
        while have < want {
            match self.source.read_at(at + have as u64, &mut self.buffer[have..])? {
                0 => break,
                read => have += read,
            }
        }
        self.buffer.truncate(have);
        Ok(have >= length)
    }
}
