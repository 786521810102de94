//! Dialing: trying the addresses of a peer until one answers with the right key, then the link handshake.
use crate::admission::{Refusal, RefusalCode, SessionInfo};
use crate::conditioner::canonical;
use crate::handshake::{Failure, Linked, Site};
use crate::identity::short;
use crate::link;
use crate::tls::{self, Pin};
use crate::{Invite, Stopped};
use coeval_merge::LinkTag;
use coeval_sync::LinkPeer;
use coeval_value::PeerId;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, TransportErrorCode};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;
use tokio::task::JoinSet;

/// An address gets this head start before the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(200);
/// The most addresses tried in one dial.
const MAX_TRIED: usize = 16;
/// TLS alert `no_application_protocol` (RFC 7301) as a QUIC error code.
const NO_PROTOCOL: u8 = 120;

/// Whom to dial.
#[derive(Clone, Debug)]
pub enum Target {
    /// By invite: pins its maker's key, and joins with its secret if this peer is not a member yet.
    Invite(Invite),
    /// A member by address, for members: proves the session key.
    Member {
        /// Addresses to try.
        addresses: Vec<SocketAddr>,
        /// Its key, if known; else any member's will do.
        key: Option<PeerId>,
    },
}

impl Target {
    fn parts(&self) -> (&[SocketAddr], Option<PeerId>, Option<&Invite>) {
        match self {
            Self::Invite(invite) => (&invite.addresses, Some(invite.host_key), Some(invite)),
            Self::Member { addresses, key } => (addresses, *key, None),
        }
    }
}

/// A link that was made.
#[derive(Clone, Debug)]
pub struct Dialed {
    /// The link.
    pub link: LinkTag,
    /// Who is there.
    pub peer: LinkPeer,
    /// The session's facts, if this dial joined it by invite.
    pub info: Option<SessionInfo>,
}

/// Why dialing made no link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// There is nothing to try.
    #[error("there is no address to dial; give at least one")]
    NoAddress,
    /// Not a member, and no invite.
    #[error("this peer is not a member of the session and has no invite; join with an invite")]
    NoCredential,
    /// No address answered.
    #[error("no answer: {tried}; check that the peer runs, the address, and that UDP passes the firewall")]
    Unreachable {
        /// Each address and what became of it.
        tried: String,
    },
    /// Someone else answered.
    #[error(
        "{address} answered with key {found}, not with the expected {expected}: it is another peer (the program \
         there was replaced, or someone is in between); get a new invite from a peer you trust"
    )]
    WrongKey {
        /// Where.
        address: SocketAddr,
        /// The beginning of the expected key.
        expected: String,
        /// The beginning of the key met.
        found: String,
    },
    /// The other side refused, or this side refused the other.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The connection broke during the handshake.
    #[error("the link handshake failed: {0}")]
    Broken(String),
    /// The time given to wait is over; dialing goes on.
    #[error(
        "no answer within {0:.1?}; check that the peer runs, the address, and that UDP passes the firewall"
    )]
    Pending(Duration),
    /// The I/O thread is gone.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A dial under way.
#[derive(Debug)]
pub struct Dialing {
    pub(crate) outcome: Receiver<Result<Dialed, DialError>>,
    pub(crate) stopped: crate::driver::StopNote,
}

impl Dialing {
    /// Waits for the outcome: when it is a link, the machine has seen it come up.
    pub fn wait(&self, timeout: Duration) -> Result<Dialed, DialError> {
        match self.outcome.recv_timeout(timeout) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err(DialError::Pending(timeout)),
            Err(RecvTimeoutError::Disconnected) => Err(self.stopped.stopped().into()),
        }
    }

    /// The outcome, if there is one already; it is given out once.
    pub fn poll(&self) -> Option<Result<Dialed, DialError>> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(self.stopped.stopped().into())),
        }
    }
}

/// Dials `target` to a finished handshake.
pub(crate) async fn dial(endpoint: Endpoint, site: Arc<Site>, target: Target) -> Result<Linked, DialError> {
    let (addresses, key, invite) = target.parts();
    if let Some(invite) = invite {
        let session = site.admission.session();
        invite
            .check_session(session)
            .map_err(|why| Refusal::new(RefusalCode::OtherSession, why.to_string()))?;
    }
    if site.admission.session_key().is_none() && invite.is_none() {
        return Err(DialError::NoCredential);
    }
    let limit = site.config.dial_timeout;
    let connection = match tokio::time::timeout(limit, connect(&endpoint, &site, addresses, key)).await {
        Ok(connection) => connection?,
        Err(_) => return Err(DialError::Unreachable { tried: list(addresses, "no answer") }),
    };
    site.dial(connection, invite).await.map_err(|failure| match failure {
        Failure::Refused(refusal) | Failure::Denied(refusal) => DialError::Refused(refusal),
        Failure::NoCredential => DialError::NoCredential,
        Failure::Lost(why) => DialError::Broken(why),
    })
}

/// The first address that answers with the right key wins; the attempts start one after the other and overlap.
async fn connect(
    endpoint: &Endpoint,
    site: &Site,
    addresses: &[SocketAddr],
    key: Option<PeerId>,
) -> Result<Connection, DialError> {
    let mut attempts = JoinSet::new();
    for (i, address) in addresses.iter().copied().take(MAX_TRIED).enumerate() {
        let pin = Pin::new(key);
        let config = client_config(site, pin.clone())?;
        let endpoint = endpoint.clone();
        attempts.spawn(async move {
            tokio::time::sleep(STAGGER * i as u32).await;
            attempt(&endpoint, config, address, &pin, key).await
        });
    }
    let mut worst: Option<DialError> = None;
    let mut tried = Vec::new();
    while let Some(ended) = attempts.join_next().await {
        match ended {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(DialError::Unreachable { tried: one })) => tried.push(one),
            Ok(Err(telling)) => worst = Some(telling),
            Err(fault) => tried.push(fault.to_string()),
        }
    }
    match worst {
        Some(telling) => Err(telling),
        None if tried.is_empty() => Err(DialError::NoAddress),
        None => Err(DialError::Unreachable { tried: tried.join("; ") }),
    }
}

fn client_config(site: &Site, pin: Pin) -> Result<ClientConfig, DialError> {
    let tls = tls::client(&site.config.identity, pin).map_err(|why| DialError::Broken(why.to_string()))?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(site.config.transport());
    Ok(config)
}

async fn attempt(
    endpoint: &Endpoint,
    config: ClientConfig,
    address: SocketAddr,
    pin: &Pin,
    key: Option<PeerId>,
) -> Result<Connection, DialError> {
    let failed = |why: String| DialError::Unreachable { tried: format!("{address}: {why}") };
    // The name travels nowhere: keys identify peers.
    let connecting =
        endpoint.connect_with(config, address, "coeval").map_err(|why| failed(why.to_string()))?;
    let error = match connecting.await {
        Ok(connection) => return Ok(connection),
        Err(error) => error,
    };
    if let (Some(expected), Some(found)) = (key, pin.mismatch()) {
        let address = canonical(address);
        return Err(DialError::WrongKey { address, expected: short(expected), found: short(found) });
    }
    if speaks_otherwise(&error) {
        return Err(DialError::Refused(Refusal::standard(RefusalCode::Version)));
    }
    Err(failed(link::describe(&error)))
}

/// Whether the other side knows QUIC, but not this protocol.
fn speaks_otherwise(error: &ConnectionError) -> bool {
    let code = match error {
        ConnectionError::TransportError(error) => error.code,
        ConnectionError::ConnectionClosed(close) => close.error_code,
        ConnectionError::VersionMismatch => return true,
        _ => return false,
    };
    code == TransportErrorCode::crypto(NO_PROTOCOL)
}

pub(crate) fn list(addresses: &[SocketAddr], what: &str) -> String {
    let each: Vec<String> = addresses.iter().map(|address| format!("{address}: {what}")).collect();
    each.join("; ")
}
