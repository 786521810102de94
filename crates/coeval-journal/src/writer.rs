//! Writing: appends to one file; a new file takes the place of the old when its first mark is on disk.
use crate::JournalError;
use crate::disk::{Disk, Tail, beside};
use crate::format::{self, Kind};
use crate::header::Header;
use coeval_faults::{Fault, active};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes gathered before they are handed to the system.
const GATHER: usize = 256 << 10;

/// The writer of one journal.
///
/// Files are numbered by whoever writes; a record of a higher number than the last begins a new file. After an error
/// what is written to that file is dropped: only a new one helps.
pub struct Writer<D> {
    disk: D,
    path: PathBuf,
    header: Vec<u8>,
    /// The highest number seen.
    number: u64,
    /// The file being written; `None` after an error, and before the first record.
    file: Option<Open>,
}

/// A file being written.
struct Open {
    tail: Box<dyn Tail>,
    salt: u64,
    /// Gathered, not handed to the system.
    buffer: Vec<u8>,
    /// Where the buffer will stand.
    offset: u64,
    /// All before this was synced.
    synced: u64,
    /// Whether it stands at the journal's path.
    placed: bool,
    /// The last mark, and whether it is beyond what was last told to be durable.
    mark: Option<u64>,
    news: bool,
}

impl<D: Disk> Writer<D> {
    /// A writer of the journal at `path`; nothing is written before the first record.
    ///
    /// # Errors
    /// [`JournalError::Io`] for a header that cannot be written.
    pub fn new(disk: D, path: &Path, header: &Header) -> Result<Self, JournalError> {
        let encoded =
            header.encode().map_err(|why| JournalError::io("write", path, io::Error::other(why)))?;
        Ok(Self { disk, path: path.to_owned(), header: encoded, number: 0, file: None })
    }

    /// Where the journal is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a message to file `number`; `mark` names the position if the message is a mark.
    ///
    /// # Errors
    /// [`JournalError::Io`]; the file is given up.
    pub fn append(&mut self, number: u64, mark: Option<u64>, message: &[u8]) -> Result<(), JournalError> {
        if number > self.number {
            self.number = number;
            self.file = None;
            let begun = self.begin();
            self.file = Some(self.checked("create", begun)?);
        }
        let Some(file) = self.file.as_mut().filter(|_| number == self.number) else { return Ok(()) };
        let appended = file.put(mark, message);
        self.checked("write", appended)
    }

    /// Whether there is a mark that [`settle`](Self::settle) has not told to be durable.
    pub fn has_news(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.news)
    }

    /// Hands everything to the system and, with `sync`, waits until it is on disk. Returns the file's number and the mark
    /// up to which the journal can be relied on from now on, if that has moved. A new file is always synced before it
    /// takes the old one's place.
    ///
    /// # Errors
    /// [`JournalError::Io`]; the file is given up.
    pub fn settle(&mut self, sync: bool) -> Result<Option<(u64, u64)>, JournalError> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let written = file.hand_over();
        self.checked("write", written)?;
        let Some(file) = &mut self.file else { return Ok(None) };
        let place = !file.placed && file.mark.is_some();
        if place || (sync && !active(Fault::SafeBeforeSync)) {
            let synced = file.sync();
            self.checked("sync", synced)?;
        }
        if place {
            let placed = self.disk.replace(&beside(&self.path, ".new"), &self.path);
            self.checked("replace", placed)?;
        }
        let number = self.number;
        let Some(file) = &mut self.file else { return Ok(None) };
        file.placed |= place;
        let news = file.placed && std::mem::take(&mut file.news);
        Ok(file.mark.filter(|_| news).map(|mark| (number, mark)))
    }

    /// Hands everything to the system, and tells nothing: marks wait for the next [`settle`](Self::settle). A file that
    /// is to take the old one's place does so at its first mark.
    ///
    /// # Errors
    /// [`JournalError::Io`]; the file is given up.
    pub fn hand_over(&mut self) -> Result<Option<(u64, u64)>, JournalError> {
        let Some(file) = &mut self.file else { return Ok(None) };
        if !file.placed && file.mark.is_some() {
            return self.settle(true);
        }
        let written = file.hand_over();
        self.checked("write", written).map(|()| None)
    }

    /// Ends the file in order: whoever reads it later can tell damage from a torn tail everywhere in it.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn close(&mut self) -> Result<Option<(u64, u64)>, JournalError> {
        let durable = self.settle(true)?;
        if let Some(file) = self.file.as_mut().filter(|file| file.placed) {
            let ended =
                file.put_record(Kind::End, &[]).and_then(|()| file.hand_over()).and_then(|()| file.sync());
            self.checked("close", ended)?;
        }
        self.file = None;
        Ok(durable)
    }

    /// A new file, beside the one that is there.
    fn begin(&mut self) -> io::Result<Open> {
        let (head, salt) = format::file_head(&self.header)?;
        let tail = self.disk.create(&beside(&self.path, ".new"))?;
        Ok(Open { tail, salt, buffer: head, offset: 0, synced: 0, placed: false, mark: None, news: false })
    }

    /// Gives the file up after an error: what the system did with the rest of it is not known.
    fn checked<T>(&mut self, doing: &'static str, result: io::Result<T>) -> Result<T, JournalError> {
        result.map_err(|source| {
            if self.file.take().is_some_and(|file| !file.placed) {
                // It holds room that the next one may need; if it cannot be removed, the next one replaces it.
                let _ = self.disk.remove(&beside(&self.path, ".new"));
            }
            JournalError::io(doing, &self.path, source)
        })
    }
}

impl Open {
    fn put(&mut self, mark: Option<u64>, message: &[u8]) -> io::Result<()> {
        match mark {
            None => self.put_record(Kind::Message, message)?,
            Some(position) => {
                self.put_record(Kind::Mark, message)?;
                self.mark = Some(position);
                self.news = true;
            }
        }
        if self.buffer.len() >= GATHER { self.hand_over() } else { Ok(()) }
    }

    fn put_record(&mut self, kind: Kind, message: &[u8]) -> io::Result<()> {
        let at = self.offset + self.buffer.len() as u64;
        format::put_record(&mut self.buffer, self.salt, at, kind, self.synced, message)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.tail.append(&self.buffer)?;
            self.offset += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.synced < self.offset {
            self.tail.sync()?;
            self.synced = self.offset;
        }
        Ok(())
    }
}
