//! How commands get into a session, find what is named in it, and leave it.
use crate::args::{Membership, Presence};
use crate::errors::{Exit, Failure, Outcome};
use coeval::{Entity, EntityId, ErrorKind, Identity, Invite, InviteOptions, Key, Path, Peer, Value};
use coeval_systems::SimConfig;
use std::io::Write;
use std::path::Path as File;
use std::time::Duration;

/// Longest that a command takes to say good-bye.
const FAREWELL: Duration = Duration::from_secs(2);

/// A command's place in a session, as an ordinary peer.
pub(crate) struct Session {
    pub(crate) peer: Peer,
    pub(crate) timeout: Duration,
}

impl Session {
    /// Joins as the options say; returns caught up. `verb` becomes part of the peer's name.
    pub(crate) fn join(membership: &Membership, verb: &str) -> Outcome<Self> {
        let invite = invite(membership.invite.as_deref(), "give --invite INVITE or set COEVAL_INVITE")?;
        let mut options = Peer::join(invite).peer_name(format!("coeval {verb}")).timeout(membership.timeout);
        if let Some(file) = &membership.identity {
            options = options.identity(identity(file)?);
        }
        let peer = options.open().map_err(|e| Failure::from(e).at("joining the session"))?;
        Ok(Self { peer, timeout: membership.timeout })
    }

    /// Waits until the other peers have what was written.
    pub(crate) fn acknowledged(&self) -> Outcome {
        self.peer.flush(self.timeout).map_err(|error| match error.kind() {
            ErrorKind::NoPeers => Failure::new(
                Exit::Timeout,
                "no other peer is connected any more: the change is lost; try again",
            ),
            ErrorKind::Timeout => Failure::new(
                Exit::Timeout,
                format!(
                    "{error}: it is written, but may be lost; look, or try again with a longer --timeout"
                ),
            ),
            _ => error.into(),
        })
    }

    /// Leaves. What was read is read and what was changed is acknowledged: trouble here changes nothing.
    pub(crate) fn leave(self) {
        if let Err(error) = self.peer.leave(FAREWELL) {
            tracing::debug!(%error, "leaving");
        }
    }

    /// The entity that a name or an id means.
    pub(crate) fn entity(&self, text: &str) -> Outcome<Entity> {
        find(&self.peer, text)
    }

    /// Reads a TOML value; references in it are names or ids of this session's entities.
    pub(crate) fn value(&self, text: &str) -> Outcome<Value> {
        let resolve =
            |name: &str| find(&self.peer, name).map(|entity| entity.id()).map_err(|e| e.to_string());
        coeval_systems::config::value_from_toml(text, &resolve).map_err(Failure::usage)
    }

    /// The name of an entity, for text.
    pub(crate) fn name_of(&self, id: EntityId) -> Option<String> {
        name_of(&self.peer, id)
    }
}

/// The name of an entity that looks it up again: not of one that shares it with another.
fn name_of(peer: &Peer, id: EntityId) -> Option<String> {
    let name = peer.entity_by_id(id).ok()?.name()?;
    peer.entity(&name).is_ok().then_some(name)
}

/// The entity that a name or an id means.
fn find(peer: &Peer, text: &str) -> Outcome<Entity> {
    match peer.entity(text) {
        Ok(entity) => Ok(entity),
        Err(error) => match text.parse::<EntityId>() {
            Ok(id) => Ok(peer.entity_by_id(id)?),
            Err(_) if error.kind() == ErrorKind::NotFound => Err(Failure::new(
                Exit::NotFound,
                format!("no entity {text:?} in this session: `coeval ls` lists those there are"),
            )),
            Err(_) => Err(error.into()),
        },
    }
}

/// The invite in `text`, which came from an option or the environment.
pub(crate) fn invite(text: Option<&str>, otherwise: &str) -> Outcome<Invite> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let text =
        text.ok_or_else(|| Failure::usage(format!("no invite: {otherwise} (`coeval host` prints one)")))?;
    text.parse().map_err(|e| Failure::new(Exit::Refused, e))
}

/// The key pair in `file`, made if it is not there.
pub(crate) fn identity(file: &File) -> Outcome<Identity> {
    Identity::load_or_create(file).map_err(|e| Failure::new(Exit::Network, e))
}

/// Reads a sim config.
pub(crate) fn config(file: &File) -> Outcome<SimConfig> {
    SimConfig::load(file).map_err(Failure::usage)
}

/// Makes the invite that `host` and `join` print, and writes it to the file asked for.
pub(crate) fn offer(peer: &Peer, presence: &Presence) -> Outcome<Invite> {
    let terms = InviteOptions {
        expires_in: Duration::from_secs(presence.invite_expires),
        uses: presence.invite_uses.unwrap_or(u64::MAX),
        ..InviteOptions::default()
    };
    let invite = peer.invite_with(terms)?;
    if let Some(file) = &presence.invite_file {
        write_private(file, &format!("{invite}\n")).map_err(|e| {
            Failure::new(Exit::Network, format!("cannot write the invite to {}: {e}", file.display()))
        })?;
    }
    Ok(invite)
}

/// Writes a file that only its owner can read; it appears whole.
fn write_private(file: &File, text: &str) -> std::io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let draft = file.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut out| out.write_all(text.as_bytes()));
    let moved = written.and_then(|()| std::fs::rename(&draft, file));
    if moved.is_err() {
        // The draft is of no use; that it may stay behind is the lesser trouble.
        let _ = std::fs::remove_file(&draft);
    }
    moved
}

/// A path of one key.
pub(crate) fn single(key: Key) -> Path {
    Path::from(key)
}
