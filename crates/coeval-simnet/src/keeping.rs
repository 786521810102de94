//! A program's journal, on the simulated disk of its machine.
//!
//! The real writer and the real recovery, without the thread between them: what the engine logs is handed over at once,
//! and every few times it is synced. A machine that falls loses what was not.
use crate::program::{GENESIS, SESSION};
use coeval_journal::{Header, JournalError, OnDamage, Recovery, SimDisk, Writer};
use coeval_store::Store;
use coeval_sync::{Effect, Input, Replay};
use coeval_time::Incarnation;
use std::path::Path;

/// Where it is on its disk.
const PATH: &str = "journal";
/// Every how many times it is synced.
const SYNCED: u32 = 3;

/// A journal in use.
pub(crate) struct Journal {
    writer: Writer<SimDisk>,
    file: u64,
    turn: u32,
}

/// What a journal gave back.
pub(crate) struct Kept {
    found: Option<Recovery>,
    /// The newest stamp in it.
    pub(crate) newest: u64,
}

/// Looks for a journal on a disk.
///
/// # Errors
/// What is wrong with the one that is there.
pub(crate) fn recover(disk: &SimDisk) -> Result<Kept, String> {
    let found = match Recovery::open(disk, Path::new(PATH), OnDamage::Refuse) {
        Err(error) if Recovery::not_found(&error) => return Ok(Kept { found: None, newest: 0 }),
        found => found.map_err(|error| error.to_string())?,
    };
    let mut newest = 0;
    let look = |message: &[u8]| {
        newest = newest.max(Replay::newest_in(message)?.hlc);
        Ok(())
    };
    found.replay(disk, look).map_err(|error| error.to_string())?;
    Ok(Kept { found: Some(found), newest })
}

impl Kept {
    /// Applies what was kept to an empty replica; how many fragments it refused.
    pub(crate) fn replay(&self, disk: &SimDisk, store: &Store) -> Result<u64, String> {
        let mut replay = Replay::new();
        if let Some(found) = &self.found {
            let replayed = found.replay(disk, |message| replay.message(store, message));
            replayed.map_err(|error| error.to_string())?;
        }
        Ok(replay.refused())
    }

    /// Goes on with the journal as `me`.
    pub(crate) fn go_on(self, disk: SimDisk, me: Incarnation) -> Result<Journal, String> {
        let mut writers = self.found.map(|found| found.header.writers).unwrap_or_default();
        writers.push(me);
        let header = Header {
            session: SESSION,
            genesis: GENESIS,
            config_digest: None,
            data: Vec::new(),
            key: [0; 32],
            identity: Vec::new(),
            name: String::new(),
            listen: String::new(),
            writers,
        };
        let writer = Writer::new(disk, Path::new(PATH), &header).map_err(|error| error.to_string())?;
        Ok(Journal { writer, file: 0, turn: 0 })
    }
}

impl Journal {
    /// Takes what is for the journal out of the effects; returns what it has to say.
    pub(crate) fn take(&mut self, effects: &mut Vec<Effect>) -> Vec<Input> {
        let mut answers = Vec::new();
        for effect in std::mem::take(effects) {
            let Effect::Log { file, mark, bytes } = effect else {
                effects.push(effect);
                continue;
            };
            self.file = file;
            let answer = match self.writer.append(file, mark, &bytes) {
                Ok(()) => Input::Logged { file, bytes: bytes.len(), durable: None },
                Err(error) => failed(file, &error),
            };
            answers.push(answer);
        }
        if answers.is_empty() {
            return answers;
        }
        self.turn += 1;
        let settled =
            if self.turn.is_multiple_of(SYNCED) { self.writer.settle(true) } else { self.writer.hand_over() };
        match settled {
            Ok(Some((file, mark))) => answers.push(Input::Logged { file, bytes: 0, durable: Some(mark) }),
            Ok(None) => {}
            Err(error) => answers.push(failed(self.file, &error)),
        }
        answers
    }
}

fn failed(file: u64, error: &JournalError) -> Input {
    Input::LogFailed { file, reason: error.to_string() }
}
