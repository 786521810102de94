//! The journal: what this peer wrote, and what it received, kept on disk, so that its end loses nothing.
//!
//! Off by default; one line turns it on: `.journal("world.journal")` when hosting or joining. From then on
//! [`Peer::flush`](crate::Peer::flush) counts the journal as one that must have what was written, so a peer that is alone
//! can flush too. After the program's end, [`Peer::rehost`](crate::Peer::rehost) opens the session again from the
//! journal, and [`Peer::join`](crate::Peer::join) with the same journal brings along what was written while nobody heard.
//!
//! Writing happens on a thread of its own: a slow disk delays neither writers nor links, only who flushes. A disk that is
//! full or broken stops nothing: [`PeerEvent::JournalFailed`] tells, `flush` says so, and a new file is tried every
//! second.
//!
//! A journal holds **secrets**: the session's key, the open invites and this peer's private key. Its file is readable by
//! its owner only (mode 0600); keep its copies as safe. `PATH.lock` beside it keeps a second program out, `PATH.new` is
//! the next file in the making.
use crate::gate::Gate;
use crate::hub::Hub;
use crate::notices::PeerEvent;
use crate::{Error, ErrorKind, Result};
use bytes::Bytes;
use coeval_journal::{
    FileDisk, Header, JournalError, Lock, OnDamage, Recovery, Report, Scribe, SyncPolicy, Writer,
};
use coeval_quic::{Admission, Bell, Identity, Secret, SessionInfo};
use coeval_store::Store;
use coeval_sync::{Effect, Input, Replay};
use coeval_time::{Incarnation, SessionId};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where the journal is, and how careful it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalOptions {
    path: PathBuf,
    sync: SyncPolicy,
    on_damage: OnDamage,
}

impl JournalOptions {
    /// A journal at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), sync: SyncPolicy::default(), on_damage: OnDamage::Refuse }
    }

    /// When what was written is forced onto the disk. The default is at most 100 ms later, and at once when someone
    /// flushes.
    #[must_use]
    pub fn sync(mut self, policy: SyncPolicy) -> Self {
        self.sync = policy;
        self
    }

    /// Takes what comes before the damage from a damaged journal, instead of refusing it. What comes after is lost.
    #[must_use]
    pub fn salvage(mut self) -> Self {
        self.on_damage = OnDamage::Salvage;
        self
    }
}

macro_rules! from_path {
    ($($path:ty),*) => {$(
        impl From<$path> for JournalOptions {
            fn from(path: $path) -> Self {
                Self::new(path)
            }
        }
    )*};
}

from_path!(&str, String, PathBuf, &Path, &PathBuf);

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        let kind = if Recovery::not_found(&error) { ErrorKind::NotFound } else { ErrorKind::Journal };
        Self::new(kind, error.to_string())
    }
}

/// What a journal holds, as [`inspect`] finds it.
#[derive(Clone, Debug)]
pub struct JournalReport {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub session_name: String,
    /// The peer that wrote it.
    pub peer_name: String,
    /// Where that peer listened, `IP:PORT`.
    pub listen: String,
    /// The openings of the peer that wrote it, the newest last.
    pub writers: Vec<Incarnation>,
    /// Bytes in the file.
    pub bytes: u64,
    /// Bytes up to the end of the last whole batch.
    pub kept: u64,
    /// Marks up to there.
    pub marks: u64,
    /// Bytes after it that were never safe: a torn tail.
    pub torn: u64,
    /// Whether it was closed in order.
    pub closed: bool,
    /// Where damage begins to what was once safe.
    pub damaged_at: Option<u64>,
}

/// Looks through the journal at `path` without changing it; it may be in use.
///
/// # Errors
/// [`ErrorKind::NotFound`], or [`ErrorKind::Journal`] for what is no journal. Damage is no error here: the report says so.
pub fn inspect(path: impl AsRef<Path>) -> Result<JournalReport> {
    let found = Recovery::open(&FileDisk, path.as_ref(), OnDamage::Salvage)?;
    found.replay(&FileDisk, |message| Replay::newest_in(message).map(drop))?;
    let torn = if found.damaged_at.is_some() { 0 } else { found.cut() };
    Ok(JournalReport {
        session: found.header.session,
        session_name: String::from_utf8_lossy(&found.header.data).into_owned(),
        peer_name: found.header.name,
        listen: found.header.listen,
        writers: found.header.writers,
        bytes: found.len,
        kept: found.kept,
        marks: found.marks,
        torn,
        closed: found.closed,
        damaged_at: found.damaged_at,
    })
}

/// A journal that this program has taken, before its peer is open.
pub(crate) struct Journaling {
    options: JournalOptions,
    lock: Lock,
    recovered: Option<Recovered>,
}

/// What a journal gave back.
pub(crate) struct Recovered {
    found: Recovery,
    /// The newest stamp in it, on the hybrid clock.
    pub(crate) newest: u64,
    pub(crate) identity: Identity,
}

impl Journaling {
    /// Takes the journal of a new session: there must be none yet.
    pub(crate) fn fresh(options: JournalOptions) -> Result<Self> {
        let lock = Lock::take(&options.path)?;
        match Recovery::open(&FileDisk, &options.path, OnDamage::Salvage) {
            Err(error) if Recovery::not_found(&error) => Ok(Self { options, lock, recovered: None }),
            Err(error) => Err(error.into()),
            Ok(found) => Err(Error::new(
                ErrorKind::Exists,
                format!(
                    "{} is the journal of session {:?} ({}): open that again with `rehost`, or choose another path for a \
                     new session",
                    options.path.display(),
                    String::from_utf8_lossy(&found.header.data),
                    found.header.session.0
                ),
            )),
        }
    }

    /// Takes a journal that is there, or will be.
    pub(crate) fn of_session(options: JournalOptions, session: SessionId) -> Result<Self> {
        match Self::existing(options.clone()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Self::fresh(options),
            Err(error) => Err(error),
            Ok(taken) => match &taken.recovered {
                Some(Recovered { found, .. }) if found.header.session != session => {
                    Err(Error::invalid(format!(
                        "{} is the journal of session {:?} ({}), the invite is for {}: give each session a journal of its own",
                        taken.options.path.display(),
                        String::from_utf8_lossy(&found.header.data),
                        found.header.session.0,
                        session.0
                    )))
                }
                _ => Ok(taken),
            },
        }
    }

    /// Takes a journal that is there.
    pub(crate) fn existing(options: JournalOptions) -> Result<Self> {
        let path = options.path.as_path();
        if !path.exists() {
            let why = format!("there is no journal at {}: `host` with `journal` begins one", path.display());
            return Err(Error::new(ErrorKind::NotFound, why));
        }
        let lock = Lock::take(path)?;
        let found = Recovery::open(&FileDisk, path, options.on_damage)?;
        let mut newest = 0;
        found.replay(&FileDisk, |message| {
            newest = newest.max(Replay::newest_in(message)?.hlc);
            Ok(())
        })?;
        let identity = Identity::from_secret_pkcs8(&found.header.identity).map_err(|why| {
            Error::new(ErrorKind::Journal, format!("the journal {}: {why}", path.display()))
        })?;
        let (bytes, damaged_at) = (found.cut(), found.damaged_at);
        if bytes > 0 {
            tracing::warn!(path = %path.display(), bytes, ?damaged_at, "the journal's end was cut at its last mark");
        }
        Ok(Self { recovered: Some(Recovered { found, newest, identity }), options, lock })
    }

    pub(crate) fn recovered(&self) -> Option<&Recovered> {
        self.recovered.as_ref()
    }

    /// Applies what the journal holds to the replica.
    pub(crate) fn replay(&self, store: &Store) -> Result<()> {
        let Some(recovered) = &self.recovered else { return Ok(()) };
        let mut replay = Replay::new();
        recovered.found.replay(&FileDisk, |message| replay.message(store, message))?;
        if replay.refused() > 0 {
            let refused = replay.refused();
            tracing::warn!(refused, "the limits of the replica are lower than when the journal was written");
        }
        Ok(())
    }

    /// Hands the journal to the engine.
    pub(crate) fn desk(self, identity: Identity, name: String, bell: Bell) -> Desk {
        let Self { options, lock, recovered } = self;
        let writers = recovered.map(|recovered| recovered.found.header.writers).unwrap_or_default();
        Desk { options, lock: Some(lock), identity, name, bell, writers, listen: None, scribe: None }
    }
}

impl Recovered {
    pub(crate) fn header(&self) -> &Header {
        &self.found.header
    }

    /// The session's facts, as every joiner is given them, and its key.
    pub(crate) fn session(&self) -> (SessionInfo, Secret) {
        let header = self.header();
        let info = SessionInfo {
            session: header.session,
            genesis: header.genesis,
            config_digest: header.config_digest,
            data: Bytes::from(header.data.clone()),
        };
        (info, Secret(header.key))
    }
}

/// The journal, as the engine keeps it on the I/O thread.
pub(crate) struct Desk {
    options: JournalOptions,
    /// Goes to the writing thread.
    lock: Option<Lock>,
    identity: Identity,
    name: String,
    bell: Bell,
    writers: Vec<Incarnation>,
    listen: Option<SocketAddr>,
    scribe: Option<Scribe>,
}

impl Desk {
    /// The openings of the peer that the journal knew when it was taken.
    pub(crate) fn earlier(&self) -> &[Incarnation] {
        &self.writers
    }

    /// Tells where this peer listens.
    pub(crate) fn bound_at(&mut self, address: SocketAddr) {
        self.listen = Some(address);
    }

    /// Starts the writing thread, once the session is known. Returns whether it runs.
    pub(crate) fn begin(&mut self, gate: &Gate, me: Incarnation, hub: &Hub) -> bool {
        let started = self.start(gate, me);
        if let Err(error) = &started {
            tracing::error!("{error}");
            hub.tell(&PeerEvent::JournalFailed { reason: error.to_string() });
        }
        started.is_ok()
    }

    fn start(&mut self, gate: &Gate, me: Incarnation) -> Result<()> {
        let unknown = || Error::new(ErrorKind::Journal, "the journal needs a session, and none is known");
        let info = gate.session_info().ok_or_else(unknown)?;
        let key = gate.session_key().ok_or_else(unknown)?;
        self.writers.retain(|writer| *writer != me);
        self.writers.push(me);
        let header = Header {
            session: info.session,
            genesis: info.genesis,
            config_digest: info.config_digest,
            data: info.data.to_vec(),
            key: key.0,
            identity: self.identity.secret_pkcs8().to_vec(),
            name: self.name.clone(),
            listen: self.listen.map(|address| address.to_string()).unwrap_or_default(),
            writers: self.writers.clone(),
        };
        let writer = Writer::new(FileDisk, &self.options.path, &header)?;
        let bell = self.bell.clone();
        self.scribe = Some(Scribe::start(writer, self.options.sync, self.lock.take(), move || bell.ring())?);
        Ok(())
    }

    /// Asks for a sync of what was handed over so far.
    pub(crate) fn sync(&self) {
        if let Some(scribe) = &self.scribe {
            scribe.sync();
        }
    }

    /// Takes what is for the journal out of the effects.
    pub(crate) fn take(&self, effects: &mut Vec<Effect>) {
        if !effects.iter().any(|effect| matches!(effect, Effect::Log { .. })) {
            return;
        }
        let all = std::mem::take(effects);
        for effect in all {
            match (effect, &self.scribe) {
                (Effect::Log { file, mark, bytes }, Some(scribe)) => scribe.append(file, mark, bytes),
                (Effect::Log { .. }, None) => {}
                (other, _) => effects.push(other),
            }
        }
    }

    /// What the writing thread has to say.
    pub(crate) fn answers(&self) -> Vec<Input> {
        let Some(scribe) = &self.scribe else { return Vec::new() };
        let answer = |report| match report {
            Report::Written { file, bytes } => Input::Logged { file, bytes, durable: None },
            Report::Durable { file, mark } => Input::Logged { file, bytes: 0, durable: Some(mark) },
            Report::Failed { file, error } => Input::LogFailed { file, reason: error.to_string() },
        };
        std::iter::from_fn(|| scribe.poll()).map(answer).collect()
    }

    /// The journal's name in errors.
    pub(crate) fn name(&self) -> String {
        format!("the journal {}", self.options.path.display())
    }
}

/// How the journal stands to what was written.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    /// Its name.
    pub(crate) name: String,
    /// Whether it holds everything up to the position asked for, safely.
    pub(crate) holds: bool,
    /// Why it cannot, at present.
    pub(crate) failing: Option<String>,
}
