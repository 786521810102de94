//! Checkpoints: saving the world, and taking the whole session back to it.
use crate::peer::Peer;
use crate::{Error, ErrorKind, Result};
use coeval_merge::Digest;
use coeval_sync::{Input, Machine, RestoreError};
use coeval_time::{SessionId, SimTime, WallTime};
use coeval_wire::CheckpointError;
use coeval_wire::checkpoint::MAX_CHECKPOINT;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// The world at one instant: what entities held, and the clock. It holds no members and no invites: those belong to the
/// session and stay what they are when it is restored.
///
/// It can be restored in the session that it was taken from, as often as one likes.
#[derive(Clone, Debug)]
pub struct Checkpoint(coeval_wire::Checkpoint);

impl Checkpoint {
    /// The session that it was taken from.
    pub fn session(&self) -> SessionId {
        self.0.session
    }

    /// Session wall time at which it was taken.
    pub fn taken(&self) -> WallTime {
        self.0.taken
    }

    /// Its sim time.
    pub fn sim(&self) -> SimTime {
        self.0.content.sim
    }

    /// The scale that was set.
    pub fn scale(&self) -> f64 {
        self.0.content.scale
    }

    /// Digest of entities, values and stamps: two checkpoints with an equal one hold the same.
    pub fn digest(&self) -> Digest {
        self.0.content.digest()
    }

    /// The bytes, with a version and a checksum.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when it is larger than a file of this kind may be.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.0.encode().map_err(|error| Error::new(ErrorKind::Limit, error.to_string()))
    }

    /// Reads the bytes, whole or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] says what is wrong: cut off, damaged, of another release, or no checkpoint.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        coeval_wire::Checkpoint::decode(bytes).map(Self).map_err(Error::invalid)
    }

    /// Writes a file. What was there before is there until all of the new one is.
    ///
    /// # Errors
    /// As [`to_bytes`](Self::to_bytes), and [`ErrorKind::Network`] when the operating system says no.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, bytes) = (path.as_ref(), self.to_bytes()?);
        let no = |error: std::io::Error| {
            Error::new(ErrorKind::Network, format!("checkpoint {}: {error}", path.display()))
        };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".part");
        let mut file = File::create(&beside).map_err(no)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(no)?;
        std::fs::rename(&beside, path).map_err(no)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and [`ErrorKind::NotFound`] or [`ErrorKind::Network`] when the operating
    /// system says no.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let no = |error: std::io::Error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let kind = if missing { ErrorKind::NotFound } else { ErrorKind::Network };
            Error::new(kind, format!("checkpoint {}: {error}", path.display()))
        };
        let mut bytes = Vec::new();
        // One byte more than may be there, so that a longer file is told from one that is just long enough.
        File::open(path)
            .and_then(|file| file.take(MAX_CHECKPOINT + 64).read_to_end(&mut bytes))
            .map_err(no)?;
        let read = coeval_wire::Checkpoint::decode(&bytes);
        let told = |error: CheckpointError| Error::invalid(format!("{}: {error}", path.display()));
        read.map(Self).map_err(told)
    }
}

impl Peer {
    /// The world now, between two batches: entities, values, and the clock.
    pub fn checkpoint(&self) -> Checkpoint {
        let shared = self.shared();
        let content = shared.store.content();
        Checkpoint(coeval_wire::Checkpoint { session: shared.clock.session(), taken: shared.now(), content })
    }

    /// Takes the session back to a checkpoint: it goes to a new *world*, whose content is the checkpoint's, with the
    /// clock at its time and paused. Returns how many restores led to that world; [`flush`](Self::flush) waits until the
    /// connected peers are there too.
    ///
    /// Everyone who hears of it follows, all at once: a snapshot shows the old world or the new one, and so does a
    /// handle, which goes on working. Whatever was written before and is not in the checkpoint counts no more, also what
    /// peers wrote that were cut off; each peer is told of its own
    /// ([`PeerEvent::WorldRestored`](crate::PeerEvent::WorldRestored)). Of several restores at once one wins everywhere.
    /// Members and invites stay, and events under way arrive. An entity that was deleted since lives again, but a handle
    /// that has said that it was deleted goes on saying so: ask for a new one.
    ///
    /// Writes on other threads wait meanwhile; reads do not.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a checkpoint of another session; [`ErrorKind::Limit`] when it does not fit into this
    /// replica; [`ErrorKind::Refused`] at an observer.
    pub fn restore(&self, checkpoint: &Checkpoint) -> Result<u64> {
        self.shared().check_writable()?;
        let session = self.shared().clock.session();
        if checkpoint.session() != session {
            let message = format!(
                "the checkpoint is of session {}, this is session {}: restore it where it was taken",
                checkpoint.session().0,
                session.0
            );
            return Err(Error::invalid(message));
        }
        let content = checkpoint.0.content.clone();
        let restored = self.shared().io.ask(move |engine, now, rng| {
            let mut effects = engine.handle(Input::Wake, now, rng);
            let restored = engine.with_sync(|sync| sync.restore(content));
            effects.extend(engine.handle(Input::Wake, now, rng));
            (restored, effects)
        })?;
        restored.map(|world| world.number).map_err(|error| {
            let kind = match error {
                RestoreError::Observer => ErrorKind::Refused,
                RestoreError::Unsound { .. } => ErrorKind::Invalid,
                _ => ErrorKind::Limit,
            };
            Error::new(kind, error.to_string())
        })
    }

    /// How many restores led to the world that this peer is in.
    pub fn world(&self) -> u64 {
        use coeval_merge::Replica;
        self.shared().store.world().number
    }
}
