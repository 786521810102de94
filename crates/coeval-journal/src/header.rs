//! What stands at the head of a journal: whose it is, and of which session.
use coeval_time::{Genesis, Incarnation, SessionId, SimTime, WallTime};
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// Openings of the peer that are remembered; beyond, the oldest are forgotten.
pub const MAX_WRITERS: usize = 256;

/// Whose journal this is. It holds secrets: the session's key and the private key of the peer.
#[derive(Clone, PartialEq)]
pub struct Header {
    /// The session.
    pub session: SessionId,
    /// What its clock started from.
    pub genesis: Genesis,
    /// Digest of its sim config, if it has one.
    pub config_digest: Option<[u8; 16]>,
    /// What else every joiner is given (the session's name).
    pub data: Vec<u8>,
    /// The key that members prove to each other.
    pub key: [u8; 32],
    /// The private key of the peer, PKCS#8.
    pub identity: Vec<u8>,
    /// The name of the peer, a label.
    pub name: String,
    /// Where it listened, `IP:PORT`; invites made by it say so.
    pub listen: String,
    /// The openings of the peer that wrote this journal or those it came from, the newest last.
    pub writers: Vec<Incarnation>,
}

impl fmt::Debug for Header {
    /// Without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("session", &self.session)
            .field("name", &self.name)
            .field("listen", &self.listen)
            .field("writers", &self.writers)
            .finish_non_exhaustive()
    }
}

/// The header as it is stored: plain numbers and bytes, by name, so that later versions can add to it.
#[derive(Serialize, Deserialize)]
struct Stored {
    session: [u8; 16],
    genesis_wall: u64,
    genesis_sim: (i64, u32),
    genesis_scale: f64,
    config_digest: Option<[u8; 16]>,
    data: Vec<u8>,
    key: [u8; 32],
    identity: Vec<u8>,
    name: String,
    listen: String,
    writers: Vec<u64>,
}

impl Header {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, String> {
        let skip = self.writers.len().saturating_sub(MAX_WRITERS);
        let stored = Stored {
            session: *self.session.0.as_bytes(),
            genesis_wall: self.genesis.wall.as_nanos(),
            genesis_sim: self.genesis.sim.secs_nanos(),
            genesis_scale: self.genesis.scale,
            config_digest: self.config_digest,
            data: self.data.clone(),
            key: self.key,
            identity: self.identity.clone(),
            name: self.name.clone(),
            listen: self.listen.clone(),
            writers: self.writers.iter().skip(skip).map(|writer| writer.0).collect(),
        };
        rmp_serde::to_vec_named(&stored).map_err(|error| error.to_string())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut from = rmp_serde::Deserializer::from_read_ref(bytes);
        from.set_max_depth(16);
        let stored = Stored::deserialize(&mut from).map_err(|error| error.to_string())?;
        let (secs, nanos) = stored.genesis_sim;
        if nanos >= 1_000_000_000 || !stored.genesis_scale.is_finite() {
            return Err("the clock's start makes no sense".to_owned());
        }
        Ok(Self {
            session: SessionId(Uuid::from_bytes(stored.session)),
            genesis: Genesis {
                wall: WallTime::from_nanos(stored.genesis_wall),
                sim: SimTime::from_secs_nanos(secs, nanos),
                scale: stored.genesis_scale,
            },
            config_digest: stored.config_digest,
            data: stored.data,
            key: stored.key,
            identity: stored.identity,
            name: stored.name,
            listen: stored.listen,
            writers: stored.writers.into_iter().map(Incarnation).collect(),
        })
    }
}
