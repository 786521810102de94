//! The link handshake: on the first stream of a connection both sides say who they are and prove that they belong.
//!
//! The dialer sends `Hello`, the other side answers `Welcome` or `Refused`, the dialer ends with `Ready`; the stream
//! then becomes the link's reliable lane. Each frame is a fixed header (magic, protocol version, kind, length: its
//! shape never changes, so that any version can refuse any other) and a MessagePack map, whose unknown fields are
//! skipped.
//!
//! A proof is HMAC-SHA256 under the shared secret (RFC 2104) over a TLS exporter value (RFC 8446, 7.5) that differs by
//! role, and over session, invite and both keys: it is worth nothing on another connection or in the other direction.
mod proof;
#[cfg(test)]
mod tests;
mod wire;

use crate::admission::{Admission, Refusal, RefusalCode, Secret, SessionInfo};
use crate::clock::DriverClock;
use crate::config::Config;
use crate::link::{self, Close};
use crate::{Invite, InviteId, tls};
use coeval_sync::{LinkPeer, Now};
use coeval_time::{Genesis, Incarnation, SessionId, SimTime};
use coeval_value::NodeId;
use proof::{Role, Tie};
use quinn::{Connection, RecvStream, Runtime, SendStream};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
pub(crate) use wire::printable;
use wire::{
    About, Frame, Grant, HELLO, Hello, MAX_ADDRESSES, MAX_DATA, MAX_HELLO, MAX_NAME, MAX_REPLY, MAX_TEXT,
    READY, REFUSED, Refused, WELCOME, Welcome, link_peer, malformed, parse, parse_refusal, read, truncate,
};

/// How long a refused dialer may take to read why.
const LINGER: Duration = Duration::from_secs(1);

/// This side of all handshakes.
pub(crate) struct Site {
    pub(crate) config: Config,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) addresses: Vec<String>,
    pub(crate) open_links: AtomicUsize,
    /// Which opening of the installation this is: of the configuration, until the machine takes a new name.
    pub(crate) incarnation: AtomicU64,
    /// What tasks run on.
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) clock: DriverClock,
}

/// A connection whose handshake is done.
pub(crate) struct Linked {
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    pub(crate) peer: LinkPeer,
    pub(crate) info: Option<SessionInfo>,
}

/// Why there is no link.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The other side refused this one.
    Refused(Refusal),
    /// This side refused the other.
    Denied(Refusal),
    /// Neither an invite nor the session key is here.
    NoCredential,
    /// The connection failed.
    Lost(String),
}

impl Site {
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Runs a task beside the others.
    #[track_caller]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(Box::pin(task));
    }

    fn node(&self) -> NodeId {
        let incarnation = Incarnation(self.incarnation.load(Ordering::Relaxed));
        NodeId { peer: self.config.identity.peer(), incarnation }
    }

    fn about(&self) -> About {
        let mut name = self.config.name.clone();
        truncate(&mut name, MAX_NAME);
        About {
            incarnation: self.node().incarnation.0,
            name,
            addresses: self.addresses.iter().take(MAX_ADDRESSES).cloned().collect(),
            observer: self.config.observer,
        }
    }

    fn check_version(&self, theirs: u16) -> Result<(), Refusal> {
        let ours = self.config.protocol;
        if theirs == ours {
            return Ok(());
        }
        let text = format!(
            "this side speaks protocol version {ours}, the other {theirs}; use programs of the same coeval version"
        );
        Err(Refusal::new(RefusalCode::Version, text))
    }

    /// The dialer's side, within the time allowed.
    pub(crate) async fn dial(
        &self,
        connection: Connection,
        invite: Option<&Invite>,
    ) -> Result<Linked, Failure> {
        let exchange = self.dial_exchange(&connection, invite);
        let result = tokio::time::timeout(self.config.handshake_timeout, exchange).await;
        let (send, recv, peer, info) = match result.unwrap_or_else(|_| Err(timed_out())) {
            Ok(parts) => parts,
            Err(why) => {
                link::close(&connection, Close::refused(&why.to_string()));
                return Err(why);
            }
        };
        Ok(Linked { connection, send, recv, peer, info })
    }

    async fn dial_exchange(
        &self,
        connection: &Connection,
        invite: Option<&Invite>,
    ) -> Result<(SendStream, RecvStream, LinkPeer, Option<SessionInfo>), Failure> {
        let them = tls::peer_of(connection).ok_or_else(|| Failure::Lost("no key was shown".into()))?;
        let session = self.admission.session();
        let (secret, via) = match (self.admission.session_key(), invite) {
            (Some(key), _) => (key, None),
            (None, Some(invite)) => (invite.secret, Some(invite.id)),
            (None, None) => return Err(Failure::NoCredential),
        };
        let tie = Tie { connection, secret, session, via };
        let about = self.about();
        let proof = tie.prove(Role::Dialer, self.node(), them)?;
        let hello = Hello { session: session.0, about, invite: via.map(|id| id.0), proof };
        let (mut send, mut recv) = connection.open_bi().await.map_err(lost)?;
        self.write(&mut send, HELLO, &hello).await?;
        let reply = read(&mut recv, MAX_REPLY).await?;
        if reply.kind == REFUSED {
            return Err(Failure::Refused(parse_refusal(&reply.body)));
        }
        self.check_version(reply.version).map_err(Failure::Denied)?;
        let welcome: Welcome = parse(&reply, WELCOME)?;
        let peer = link_peer(them, welcome.about)?;
        tie.verify(Role::Acceptor, peer.node, self.node().peer, &welcome.proof)?;
        let info = match (via, welcome.grant) {
            (Some(_), Some(grant)) => Some(self.keep(session, grant)?),
            (None, _) => None,
            (Some(_), None) => return Err(malformed()),
        };
        self.admission.admit(&peer, None, self.now()).map_err(Failure::Denied)?;
        self.write(&mut send, READY, &()).await?;
        Ok((send, recv, peer, info))
    }

    fn keep(&self, session: SessionId, grant: Grant) -> Result<SessionInfo, Failure> {
        let (seconds, nanos) = grant.sim;
        if !grant.scale.is_finite() || nanos >= 1_000_000_000 || grant.data.len() > MAX_DATA {
            return Err(malformed());
        }
        let info = SessionInfo {
            session,
            genesis: Genesis {
                wall: grant.wall,
                sim: SimTime::from_secs_nanos(seconds, nanos),
                scale: grant.scale,
            },
            config_digest: grant.config_digest,
            data: grant.data,
        };
        self.admission.welcomed(&info, Secret(grant.key)).map_err(Failure::Denied)?;
        Ok(info)
    }

    /// The other side, within the time allowed. A refusal has been sent and read when this returns.
    pub(crate) async fn accept(&self, connection: Connection) -> Result<Linked, Failure> {
        let exchange = self.accept_exchange(&connection);
        let result = tokio::time::timeout(self.config.handshake_timeout, exchange).await;
        let (send, recv, peer) = match result.unwrap_or_else(|_| Err(timed_out())) {
            Ok(parts) => parts,
            Err(why) => {
                link::close(&connection, Close::refused(&why.to_string()));
                return Err(why);
            }
        };
        Ok(Linked { connection, send, recv, peer, info: None })
    }

    async fn accept_exchange(
        &self,
        connection: &Connection,
    ) -> Result<(SendStream, RecvStream, LinkPeer), Failure> {
        let (mut send, mut recv) = connection.accept_bi().await.map_err(lost)?;
        let hello = read(&mut recv, MAX_HELLO).await;
        let judged = hello.and_then(|frame| self.judge(connection, &frame));
        let (welcome, peer) = match judged {
            Ok(verdict) => verdict,
            Err(Failure::Denied(refusal)) => {
                self.refuse(connection, &mut send, &refusal).await;
                return Err(Failure::Denied(refusal));
            }
            Err(other) => return Err(other),
        };
        self.write(&mut send, WELCOME, &welcome).await?;
        let ready = read(&mut recv, 16).await?;
        if ready.kind != READY {
            return Err(malformed());
        }
        Ok((send, recv, peer))
    }

    fn judge(&self, connection: &Connection, frame: &Frame) -> Result<(Welcome, LinkPeer), Failure> {
        let deny = |code| Failure::Denied(Refusal::standard(code));
        let them = tls::peer_of(connection).ok_or_else(|| Failure::Lost("no key was shown".into()))?;
        self.check_version(frame.version).map_err(Failure::Denied)?;
        let hello: Hello = parse(frame, HELLO)?;
        let session = self.admission.session();
        if hello.session != session.0 {
            let text = format!(
                "this peer is in session {}, not in {}; ask a member of that session for an invite",
                session.0, hello.session
            );
            return Err(Failure::Denied(Refusal::new(RefusalCode::OtherSession, text)));
        }
        let peer = link_peer(them, hello.about)?;
        if peer.node == self.node() {
            return Err(deny(RefusalCode::Itself));
        }
        if self.open_links.load(Ordering::Relaxed) >= self.config.max_links {
            return Err(deny(RefusalCode::Full));
        }
        let key = self.admission.session_key().ok_or_else(|| deny(RefusalCode::NotReady))?;
        let via = hello.invite.map(InviteId);
        let secret = match via {
            None => key,
            Some(id) => self.admission.verify_invite(id, self.now()).map_err(Failure::Denied)?,
        };
        let tie = Tie { connection, secret, session, via };
        tie.verify(Role::Dialer, peer.node, self.node().peer, &hello.proof)?;
        let grant = match via {
            None => None,
            Some(_) => Some(self.grant(key)?),
        };
        self.admission.admit(&peer, via, self.now()).map_err(Failure::Denied)?;
        let proof = tie.prove(Role::Acceptor, self.node(), them)?;
        Ok((Welcome { about: self.about(), proof, grant }, peer))
    }

    fn grant(&self, key: Secret) -> Result<Grant, Failure> {
        let info = self
            .admission
            .info()
            .filter(|info| info.data.len() <= MAX_DATA)
            .ok_or_else(|| Failure::Denied(Refusal::standard(RefusalCode::NotReady)))?;
        Ok(Grant {
            key: key.0,
            wall: info.genesis.wall,
            sim: info.genesis.sim.secs_nanos(),
            scale: info.genesis.scale,
            config_digest: info.config_digest,
            data: info.data,
        })
    }

    async fn refuse(&self, connection: &Connection, send: &mut SendStream, refusal: &Refusal) {
        let mut text = refusal.text.clone();
        truncate(&mut text, MAX_TEXT);
        let refused = Refused { code: refusal.code.number(), text };
        if self.write(send, REFUSED, &refused).await.is_ok() && send.finish().is_ok() {
            // The dialer closes when it has read the reason; closing first would overtake it.
            let _ = tokio::time::timeout(LINGER, connection.closed()).await;
        }
    }

    async fn write<T: Serialize>(&self, send: &mut SendStream, kind: u8, body: &T) -> Result<(), Failure> {
        wire::write(send, self.config.protocol, kind, body).await
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refusal) | Self::Denied(refusal) => refusal.fmt(f),
            Self::NoCredential => f.write_str("neither an invite nor the session key is here"),
            Self::Lost(why) => f.write_str(why),
        }
    }
}

fn timed_out() -> Failure {
    Failure::Lost("the link handshake took too long".into())
}

/// The error, with what the other side said when it closed.
fn lost(why: impl std::error::Error + 'static) -> Failure {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&why);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<quinn::ConnectionError>() {
            return Failure::Lost(link::describe(error));
        }
        source = error.source();
    }
    Failure::Lost(why.to_string())
}
