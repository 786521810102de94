//! The writer on a thread of its own: a slow disk keeps nobody waiting but who asks.
use crate::disk::Disk;
use crate::{JournalError, Lock, Writer};
use bytes::Bytes;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes written between two looks at whether to sync.
const ROUND: usize = 4 << 20;

/// When what was written is forced onto the disk. Whatever the policy, what was handed to the operating system survives
/// the end of the *process*; the policy is about the end of the *machine*. Whoever asks ([`Scribe::sync`]) is served at
/// once, so what a program was told is safe is safe, save with [`Never`](Self::Never).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncPolicy {
    /// After every mark; marks that came while the disk was busy share one sync. Nothing that was written longer ago than
    /// one sync takes is lost. A disk under this policy is never idle while something changes.
    EveryMark,
    /// At most this long after a mark: a machine that ends loses at most what was written in that time and was not asked
    /// for. The default, 100 ms, is ten syncs per second at any rate of writes.
    Every(Duration),
    /// Only when a new file takes the old one's place: a machine that ends may lose all that was written since.
    Never,
}

impl Default for SyncPolicy {
    fn default() -> Self {
        Self::Every(Duration::from_millis(100))
    }
}

/// What became of what was written.
#[derive(Clone, Debug)]
pub enum Report {
    /// The disk's queue has taken this many message bytes.
    Written {
        /// To which file.
        file: u64,
        /// How many.
        bytes: usize,
    },
    /// All up to a mark can be relied on.
    Durable {
        /// In which file.
        file: u64,
        /// The mark's position.
        mark: u64,
    },
    /// The file is given up; only a new one helps.
    Failed {
        /// Which file.
        file: u64,
        /// Why.
        error: JournalError,
    },
}

enum Work {
    Append { file: u64, mark: Option<u64>, bytes: Bytes },
    Sync,
}

/// The handle to the writing thread. Dropping it closes the journal in order, which waits for the disk.
#[derive(Debug)]
pub struct Scribe {
    work: Option<Sender<Work>>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
}

impl Scribe {
    /// Starts the thread. `notify` is called on it whenever there are reports to take; `lock` is kept until it ends.
    ///
    /// The queue has no bound of its own: who writes must not have more on the way than it was told is written, plus one
    /// delta.
    ///
    /// # Errors
    /// [`JournalError::Io`] when no thread can be started.
    pub fn start<D: Disk + 'static>(
        writer: Writer<D>,
        policy: SyncPolicy,
        lock: Option<Lock>,
        notify: impl Fn() + Send + 'static,
    ) -> Result<Self, JournalError> {
        let (work, queue) = channel();
        let (sender, reports) = channel();
        let path = writer.path().to_owned();
        let mut desk =
            Desk { writer, policy, queue, reports: sender, notify, file: 0, due: None, asked: false };
        let thread = std::thread::Builder::new().name("coeval-journal".into()).spawn(move || {
            desk.run();
            drop(lock);
        });
        let thread = thread.map_err(|source| JournalError::io("start a thread for", &path, source))?;
        Ok(Self { work: Some(work), reports, thread: Some(thread) })
    }

    /// Queues a message for file `file`; `mark` is its position if it is a mark. Returns at once.
    pub fn append(&self, file: u64, mark: Option<u64>, bytes: Bytes) {
        self.queue(Work::Append { file, mark, bytes });
    }

    /// Asks for a sync of what was queued before. Returns at once; a report tells when it is done.
    pub fn sync(&self) {
        self.queue(Work::Sync);
    }

    /// The next report that is there.
    pub fn poll(&self) -> Option<Report> {
        self.reports.try_recv().ok()
    }

    fn queue(&self, work: Work) {
        if let Some(queue) = &self.work {
            // The thread ends before its queue only by a panic, which shows as a journal that says nothing more.
            let _ = queue.send(work);
        }
    }
}

impl Drop for Scribe {
    fn drop(&mut self) {
        self.work = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the journal's thread panicked");
        }
    }
}

/// The thread's side.
struct Desk<D, N> {
    writer: Writer<D>,
    policy: SyncPolicy,
    queue: Receiver<Work>,
    reports: Sender<Report>,
    notify: N,
    /// The file last written to.
    file: u64,
    /// When the oldest mark that is not synced has to be.
    due: Option<Instant>,
    asked: bool,
}

impl<D: Disk, N: Fn()> Desk<D, N> {
    fn run(&mut self) {
        loop {
            let first = match self.due {
                None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => self.queue.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match first {
                Ok(work) => self.round(Some(work)),
                Err(RecvTimeoutError::Timeout) => self.round(None),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let closed = self.writer.close();
        self.told(closed);
        (self.notify)();
    }

    /// Writes what is queued, syncs if it is time, and tells.
    fn round(&mut self, first: Option<Work>) {
        let mut written = 0;
        let mut next = first;
        while let Some(work) = next {
            match work {
                Work::Append { file, mark, bytes } => {
                    if file != self.file {
                        self.tell_written(&mut written);
                        self.file = file;
                    }
                    written += bytes.len();
                    if let Err(error) = self.writer.append(file, mark, &bytes) {
                        self.failed(error);
                    }
                }
                Work::Sync => self.asked = true,
            }
            next = if written < ROUND { self.queue.try_recv().ok() } else { None };
        }
        self.tell_written(&mut written);
        self.settle();
        (self.notify)();
    }

    fn settle(&mut self) {
        let now = Instant::now();
        let news = self.writer.has_news();
        let sync = match self.policy {
            SyncPolicy::EveryMark => news,
            SyncPolicy::Every(span) => {
                if news && self.due.is_none() {
                    self.due = now.checked_add(span);
                }
                news && (self.asked || self.due.is_some_and(|due| due <= now))
            }
            SyncPolicy::Never => false,
        };
        // Under `Every`, marks count once they are synced; the others are told as soon as they are handed over.
        let waits = matches!(self.policy, SyncPolicy::Every(_)) && news && !sync;
        let settled = if waits { self.writer.hand_over() } else { self.writer.settle(sync) };
        self.told(settled);
        if !self.writer.has_news() {
            self.due = None;
        }
        self.asked = false;
    }

    fn told(&mut self, settled: Result<Option<(u64, u64)>, JournalError>) {
        match settled {
            Ok(Some((file, mark))) => self.tell(Report::Durable { file, mark }),
            Ok(None) => {}
            Err(error) => self.failed(error),
        }
    }

    fn failed(&mut self, error: JournalError) {
        self.due = None;
        self.tell(Report::Failed { file: self.file, error });
    }

    fn tell_written(&self, written: &mut usize) {
        let bytes = std::mem::take(written);
        if bytes > 0 {
            self.tell(Report::Written { file: self.file, bytes });
        }
    }

    fn tell(&self, report: Report) {
        // Nobody listens any more while the handle is being dropped.
        let _ = self.reports.send(report);
    }
}
