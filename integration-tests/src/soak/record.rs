//! What each process writes down as it goes: the history that the run is judged by.
//!
//! One line of JSON for each record, handed to the operating system in one call, so that what was written down survives
//! `kill -9`. A line that was cut all the same is the last one, and is passed over.
use coeval::Stamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// One opening of a peer, by its incarnation.
pub type Life = u64;

/// Stands for the author's own journal among those who acknowledged. No peer's incarnation is zero.
pub const JOURNAL: Life = 0;

/// Something that a process wrote, or tried to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Op {
    /// A counter of its own, which only ever rises, through a handle.
    Count {
        /// Whose.
        entity: String,
        /// Which.
        path: String,
        /// The new value.
        value: i64,
    },
    /// A register that all write; no two writes have the same value.
    Set {
        /// Whose.
        entity: String,
        /// Which.
        path: String,
        /// The new value.
        value: String,
    },
    /// The removal of a register.
    Remove {
        /// Whose.
        entity: String,
        /// Which.
        path: String,
    },
    /// A batch that writes the same value to all cells of [`PAIR`](super::PAIR).
    Pair {
        /// The value.
        value: String,
    },
    /// The creation of an entity.
    Create {
        /// Which.
        entity: String,
        /// Its parameters from the start, in the same batch.
        with: Vec<(String, String)>,
    },
    /// The deletion of an entity.
    Delete {
        /// Which.
        entity: String,
    },
    /// An edit of the clock.
    Clock,
}

/// What became of an [`Op`] at its author.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// Written; the stamp where the call tells it.
    Done(Option<Stamp>),
    /// Refused, for this reason: nothing was written.
    Refused(String),
}

/// One entry of a history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Record {
    /// The peer is open, caught up, and has subscribed to events.
    Opened {
        /// Who it is.
        life: Life,
    },
    /// What is about to be written.
    Try {
        /// Rounds of one life are numbered from 1.
        round: u64,
        /// The operations, in order.
        ops: Vec<Op>,
    },
    /// What became of it.
    Did {
        /// Which round.
        round: u64,
        /// Of each operation, in order.
        outcomes: Vec<Outcome>,
    },
    /// Others acknowledged all that was written up to a round.
    Acked {
        /// The last round that is covered.
        round: u64,
        /// Who.
        by: Vec<Life>,
    },
    /// An event is about to be sent. Events and commands of one life are numbered from 1.
    Sending {
        /// Its number, which is its value too.
        number: u64,
        /// The only receiver; none: all.
        to: Option<Life>,
        /// Whether it is a command.
        command: bool,
        /// Who is in the session for sure.
        present: Vec<Life>,
    },
    /// It was not sent after all.
    Unsent {
        /// Its number.
        number: u64,
        /// Why.
        why: String,
    },
    /// All events up to this number have arrived wherever they were to arrive.
    Delivered {
        /// The last number that is covered.
        upto: u64,
    },
    /// A peer is gone from this one's view: events on their way to it may be dropped.
    Lost {
        /// Who.
        life: Life,
    },
    /// An event arrived.
    Got {
        /// Its sender.
        from: Life,
        /// Its number.
        number: u64,
    },
    /// A command was answered.
    Answered {
        /// Its number.
        number: u64,
    },
    /// The journal could not be written.
    JournalFailed {
        /// Why.
        reason: String,
    },
    /// Something was seen that must never be.
    Violation {
        /// What, in words.
        what: String,
    },
    /// A sign of life.
    Beat {
        /// Resident memory, KiB.
        rss_kib: u64,
    },
}

/// A record and when it was written down: nanoseconds of this machine's clock since the Unix epoch.
pub type Line = (u64, Record);

/// Nanoseconds of this machine's clock since the Unix epoch.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The history of one life, being written. Any thread may add to it.
#[derive(Debug)]
pub struct History(File);

impl History {
    /// Opens a history at its end.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }

    /// Adds a record.
    ///
    /// # Panics
    /// When it cannot be written: a run without its history shows nothing.
    pub fn add(&self, record: &Record) {
        let mut line = serde_json::to_vec(&(now(), record)).expect("a record is JSON");
        line.push(b'\n');
        let mut file = &self.0;
        file.write_all(&line).expect("the history can be written");
    }
}

/// The lines of a history; empty if the process never got that far.
pub fn read(path: &Path) -> Vec<Line> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str(&line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval::Incarnation;

    #[test]
    fn a_history_is_read_back_and_a_cut_line_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let stamp = Stamp::new(u64::MAX, Incarnation(u64::MAX - 1));
        let outcomes = vec![Outcome::Done(Some(stamp)), Outcome::Refused("Deleted".into())];
        let records = [Record::Opened { life: u64::MAX }, Record::Did { round: 1, outcomes }];
        let history = History::open(&path).expect("a file");
        records.iter().for_each(|record| history.add(record));
        (&history.0).write_all(b"[17,{\"Got\":{\"fr").expect("written");
        let lines = read(&path);
        assert_eq!(lines.iter().map(|(_, record)| record.clone()).collect::<Vec<_>>(), records);
        assert!(lines.is_sorted_by_key(|(at, _)| *at));
    }
}
