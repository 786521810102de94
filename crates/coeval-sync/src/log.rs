//! The log: a link that never answers. It takes the very messages that links take, and its owner keeps them.
//!
//! A log begins with a snapshot, in pages as fast as it takes them, and a conflated delta that ends with a mark; then it
//! gets each delta as it is drained, of all authors. One that lags takes a conflated delta later, like a lagging link.
//! So a slow log, or one that failed, delays no writer and no link and costs one entry per changed slot.
//!
//! A log that has grown to several times its snapshot begins a new *file* with a new snapshot; one that failed does so
//! after a while. The owner lets the new file take the old one's place when its first mark is safe. Whoever reads a file
//! back ([`Replay`](crate::Replay)) keeps its messages aside until a mark, so it sees no half of a batch.
use crate::Sync;
use crate::codec;
use crate::io::Effect;
use crate::link::SlotSet;
use crate::notice::Notice;
use bytes::Bytes;
use coeval_merge::{Drained, Entry, Replica, SlotId, SlotState, World};
use coeval_time::{EditId, MonoTime};
use coeval_wire::Frame;
use coeval_wire::frame::{Define, Fetch, Mark};
use std::collections::{BTreeMap, BTreeSet};

/// How changes reach the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Pages of everything, from this slot on.
    Snapshot(SlotId),
    /// Only what changed is noted, until there is room.
    Behind,
    /// Every delta, as it is drained.
    Live,
    /// Nothing, until a new file is begun.
    Failed { retry: MonoTime },
}

/// The log, as the engine keeps it.
pub(crate) struct Log {
    mode: Mode,
    /// The number of the file, from 1.
    file: u64,
    /// Slots whose numbers the file defines.
    defined: SlotSet,
    /// What changed and was not logged: at most one entry per slot.
    dirty: BTreeSet<SlotId>,
    entries: BTreeSet<EditId>,
    /// Message bytes handed to the owner and not yet written.
    in_flight: usize,
    /// Message bytes of the file, and of its snapshot once that is marked.
    bytes: u64,
    snapshot: Option<u64>,
    /// The position of the last mark handed over.
    marked: u64,
    /// The position up to which everything is safe.
    durable: Option<u64>,
    /// Why nothing is logged at present.
    failing: Option<String>,
    failures: u64,
}

/// How the log stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// The drained position up to which everything is safe; `None` before the first mark is.
    pub durable: Option<u64>,
    /// Why nothing can be logged at present.
    pub failing: Option<String>,
    /// How often logging failed.
    pub failures: u64,
    /// How many files were begun.
    pub files: u64,
    /// Message bytes in the file so far.
    pub bytes: u64,
    /// Slots that changed and are yet to be logged.
    pub waiting: usize,
}

impl<R: Replica> Sync<R> {
    /// Starts the log, with a snapshot of everything. The effects come with the next input.
    pub fn open_log(&mut self) {
        self.log.get_or_insert_with(Log::new);
        self.restart_log();
    }

    /// Begins a new file with a new snapshot, if there is a log.
    pub fn restart_log(&mut self) {
        let ids = self.replica.entries_since(0).into_iter().map(|entry| entry.id).collect();
        let Some(log) = &mut self.log else { return };
        log.file += 1;
        log.mode = Mode::Snapshot(SlotId(0));
        log.defined = SlotSet::default();
        log.dirty.clear();
        log.entries = ids;
        (log.in_flight, log.bytes, log.snapshot) = (0, 0, None);
        let world = self.replica.world();
        if world != World::FIRST {
            // First, so that whoever reads the file back goes there with all that follows up to the mark.
            match Frame::from(Fetch { world: world.into() }).encode() {
                Ok(bytes) => self.log_message(&bytes),
                Err(error) => self.unsent(error.to_string()),
            }
        }
        self.applied = true;
    }

    /// How the log stands; `None` without one.
    pub fn log_status(&self) -> Option<LogStatus> {
        self.log.as_ref().map(|log| LogStatus {
            durable: log.durable,
            failing: log.failing.clone(),
            failures: log.failures,
            files: log.file,
            bytes: log.bytes,
            waiting: log.dirty.len() + log.entries.len(),
        })
    }

    /// Whether the log waits for room, and has it.
    pub(crate) fn log_has_room(&self) -> bool {
        let low = self.config.log_window / 2;
        self.log
            .as_ref()
            .is_some_and(|l| matches!(l.mode, Mode::Behind | Mode::Snapshot(_)) && l.in_flight <= low)
    }

    /// Whether the log takes deltas as they are drained.
    pub(crate) fn log_is_live(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.mode == Mode::Live)
    }

    /// Before a drain: reads the slots that the log has missed, if it has room for them.
    pub(crate) fn read_log(&mut self) -> Option<BTreeMap<SlotId, SlotState>> {
        let (low, high) = (self.config.log_window / 2, self.config.log_window);
        let log = self.log.as_mut()?;
        if log.mode == Mode::Live && log.in_flight > high {
            log.mode = Mode::Behind;
        }
        if log.mode != Mode::Behind || log.in_flight > low {
            return None;
        }
        let dirty = std::mem::take(&mut log.dirty);
        Some(dirty.into_iter().filter_map(|slot| Some((slot, self.replica.read(slot)?))).collect())
    }

    /// After a drain: gives what it found to the log that is not live. Whatever a batch changed since the slots were
    /// read is in the drain, and all of it is for the log, so the delta lies at a batch boundary.
    pub(crate) fn note_log(&mut self, drained: &Drained, read: &mut Option<BTreeMap<SlotId, SlotState>>) {
        let Some(log) = &mut self.log else { return };
        let slots = drained.changes.iter().map(|change| change.slot);
        match (log.mode, read) {
            (Mode::Live | Mode::Failed { .. }, _) => return,
            (_, Some(read)) => {
                read.extend(drained.changes.iter().map(|change| (change.slot, change.state.clone())));
            }
            (Mode::Snapshot(next), None) => log.dirty.extend(slots.filter(|slot| *slot < next)),
            (Mode::Behind, None) => log.dirty.extend(slots),
        }
        log.entries.extend(drained.entries.iter().map(|(_, entry)| entry.id));
    }

    /// Logs one conflated delta; the log is live from then on.
    pub(crate) fn log_delta(&mut self, states: BTreeMap<SlotId, SlotState>) {
        let Some(log) = &mut self.log else { return };
        log.mode = Mode::Live;
        let ids = std::mem::take(&mut log.entries);
        let first = log.snapshot.is_none();
        let entries: Vec<Entry> = ids.into_iter().filter_map(|id| self.replica.entry(id)).collect();
        let states: Vec<_> = states.into_iter().collect();
        if !first && states.is_empty() && entries.is_empty() {
            return;
        }
        self.log_define(states.iter().map(|(slot, _)| *slot));
        let states = self.encode_states(None, &states);
        for (bytes, _) in states.into_iter().chain(self.encode_entries(&entries)) {
            self.log_message(&bytes);
        }
        self.log_mark();
    }

    /// Logs pages of the snapshot while there is room.
    pub(crate) fn log_pages(&mut self) {
        while self.log_has_room() {
            let Some(log) = &mut self.log else { return };
            let Mode::Snapshot(from) = log.mode else { return };
            let page = self.replica.scan(from, 0, self.config.page);
            log.mode = page.next.map_or(Mode::Behind, Mode::Snapshot);
            self.log_define(page.states.iter().map(|(slot, _)| *slot));
            for (bytes, _) in self.encode_states(None, &page.states) {
                self.log_message(&bytes);
            }
            // The rest, and the mark, need a drain of their own.
            self.applied |= page.next.is_none();
        }
    }

    /// Tells the log the keys of slots whose numbers it does not define yet.
    pub(crate) fn log_define(&mut self, slots: impl Iterator<Item = SlotId>) {
        let Some(log) = &mut self.log else { return };
        let new: BTreeSet<SlotId> = slots.filter(|slot| !log.defined.contains(*slot)).collect();
        let keys: Vec<_> = new.into_iter().filter_map(|slot| Some((slot, self.replica.key(slot)?))).collect();
        keys.iter().for_each(|(slot, _)| log.defined.insert(*slot));
        for keys in keys.chunks(self.config.page.max(1)) {
            let encoded = codec::encode_keys(keys)
                .and_then(|keys| Frame::from(Define { keys }).encode().map_err(|error| error.to_string()));
            match encoded {
                Ok(bytes) => self.log_message(&bytes),
                Err(message) => self.unsent(message),
            }
        }
    }

    /// Hands a message to the log's owner.
    pub(crate) fn log_message(&mut self, bytes: &Bytes) {
        self.log_bytes(bytes.clone(), None);
    }

    /// After a drain that was logged: marks its end, if it found something.
    pub(crate) fn log_drained(&mut self) {
        let position = self.replica.position();
        if self.log.as_ref().is_some_and(|log| log.mode == Mode::Live && log.marked < position) {
            self.log_mark();
        }
    }

    fn log_mark(&mut self) {
        let position = self.replica.position();
        let Some(log) = &mut self.log else { return };
        log.marked = position;
        let first = log.snapshot.is_none();
        match Frame::from(Mark { position, caught_up: first }).encode() {
            Ok(bytes) => self.log_bytes(bytes, Some(position)),
            Err(error) => self.unsent(error.to_string()),
        }
        let (floor, factor) = (self.config.log_floor, self.config.log_factor);
        let Some(log) = &mut self.log else { return };
        let snapshot = *log.snapshot.get_or_insert(log.bytes);
        if log.bytes > snapshot.saturating_mul(factor).max(floor) {
            self.restart_log();
        }
    }

    fn log_bytes(&mut self, bytes: Bytes, mark: Option<u64>) {
        let Some(log) = &mut self.log else { return };
        log.in_flight += bytes.len();
        log.bytes += bytes.len() as u64;
        self.out.push(Effect::Log { file: log.file, mark, bytes });
    }

    /// The owner has written some of a file, and relies on what was marked up to `durable`.
    pub(crate) fn on_logged(&mut self, file: u64, bytes: usize, durable: Option<u64>) {
        let Some(log) = &mut self.log else { return };
        if file == log.file {
            log.in_flight = log.in_flight.saturating_sub(bytes);
        }
        if let Some(position) = durable {
            log.durable = log.durable.max(Some(position));
            if file == log.file && log.failing.take().is_some() {
                self.notices.push_back(Notice::LogRestored);
            }
        }
    }

    /// The owner has given up a file.
    pub(crate) fn on_log_failed(&mut self, file: u64, reason: String) {
        let retry = self.now.saturating_add(self.config.log_retry);
        let Some(log) = self.log.as_mut().filter(|log| log.file == file) else { return };
        log.mode = Mode::Failed { retry };
        log.in_flight = 0;
        log.dirty.clear();
        log.entries.clear();
        log.failures += 1;
        if log.failing.replace(reason.clone()).is_none() {
            self.notices.push_back(Notice::LogFailed { reason });
        }
    }

    /// When a log that failed begins a new file.
    pub(crate) fn log_due(&self) -> Option<MonoTime> {
        match self.log.as_ref()?.mode {
            Mode::Failed { retry } => Some(retry),
            _ => None,
        }
    }

    /// Begins a new file after a failure, if it is time.
    pub(crate) fn retry_log(&mut self) {
        if self.log_due().is_some_and(|due| due <= self.now) {
            self.restart_log();
        }
    }
}

impl Log {
    fn new() -> Self {
        Self {
            mode: Mode::Behind,
            file: 0,
            defined: SlotSet::default(),
            dirty: BTreeSet::new(),
            entries: BTreeSet::new(),
            in_flight: 0,
            bytes: 0,
            snapshot: None,
            marked: 0,
            durable: None,
            failing: None,
            failures: 0,
        }
    }
}
