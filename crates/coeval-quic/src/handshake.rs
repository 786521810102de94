//! The link handshake: on the first stream of a connection both sides say who they are and prove that they belong.
//!
//! The dialer sends `Hello`, the other side answers `Welcome` or `Refused`, the dialer ends with `Ready`; the stream
//! then becomes the link's reliable lane. Each frame is a fixed header (magic, protocol version, kind, length: its
//! shape never changes, so that any version can refuse any other) and a MessagePack map, whose unknown fields are
//! skipped.
//!
//! A proof is HMAC-SHA256 under the shared secret (RFC 2104) over a TLS exporter value (RFC 8446, 7.5) that differs by
//! role, and over session, invite and both keys: it is worth nothing on another connection or in the other direction.
use crate::admission::{Admission, Refusal, RefusalCode, Secret, SessionInfo};
use crate::config::Config;
use crate::link::{self, Close};
use crate::{Invite, InviteId, MonoClock, tls};
use bytes::Bytes;
use coeval_sync::{LinkPeer, Now};
use coeval_time::{Genesis, Incarnation, SessionId, SimTime, WallTime};
use coeval_value::{NodeId, PeerId};
use quinn::{Connection, RecvStream, SendStream};
use ring::hmac;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use uuid::Uuid;

const MAGIC: [u8; 4] = *b"coev";
const HEADER: usize = 4 + 2 + 1 + 4;
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const READY: u8 = 4;
/// Limits of frame bodies and of what is in them, bytes.
const MAX_HELLO: usize = 8 << 10;
const MAX_DATA: usize = 64 << 10;
const MAX_REPLY: usize = MAX_HELLO + MAX_DATA;
const MAX_NAME: usize = 255;
const MAX_ADDRESSES: usize = 16;
const MAX_ADDRESS: usize = 64;
const MAX_TEXT: usize = 1_000;
/// How long a refused dialer may take to read why.
const LINGER: Duration = Duration::from_secs(1);

/// This side of all handshakes.
pub(crate) struct Site {
    pub(crate) config: Config,
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) addresses: Vec<String>,
    pub(crate) open_links: AtomicUsize,
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

#[derive(Serialize, Deserialize)]
struct Hello {
    session: Uuid,
    about: About,
    invite: Option<u64>,
    proof: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct About {
    incarnation: u64,
    name: String,
    addresses: Vec<String>,
    observer: bool,
}

#[derive(Serialize, Deserialize)]
struct Welcome {
    about: About,
    proof: [u8; 32],
    grant: Option<Grant>,
}

/// What only a joiner by invite gets.
#[derive(Serialize, Deserialize)]
struct Grant {
    key: [u8; 32],
    wall: WallTime,
    /// Whole seconds and nanoseconds of sim time.
    sim: (i64, u32),
    scale: f64,
    config_digest: Option<[u8; 16]>,
    data: Bytes,
}

#[derive(Serialize, Deserialize)]
struct Refused {
    code: u16,
    text: String,
}

struct Frame {
    version: u16,
    kind: u8,
    body: Vec<u8>,
}

impl Site {
    fn node(&self) -> NodeId {
        NodeId { peer: self.config.identity.peer(), incarnation: self.config.incarnation }
    }

    fn about(&self) -> About {
        let mut name = self.config.name.clone();
        truncate(&mut name, MAX_NAME);
        About {
            incarnation: self.config.incarnation.0,
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
        self.admission.admit(&peer, None, now()).map_err(Failure::Denied)?;
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
        if self.open_links.load(std::sync::atomic::Ordering::Relaxed) >= self.config.max_links {
            return Err(deny(RefusalCode::Full));
        }
        let key = self.admission.session_key().ok_or_else(|| deny(RefusalCode::NotReady))?;
        let via = hello.invite.map(InviteId);
        let secret = match via {
            None => key,
            Some(id) => self.admission.verify_invite(id, now()).map_err(Failure::Denied)?,
        };
        let tie = Tie { connection, secret, session, via };
        tie.verify(Role::Dialer, peer.node, self.node().peer, &hello.proof)?;
        let grant = match via {
            None => None,
            Some(_) => Some(self.grant(key)?),
        };
        self.admission.admit(&peer, via, now()).map_err(Failure::Denied)?;
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
        let body = rmp_serde::to_vec_named(body).map_err(|why| Failure::Lost(why.to_string()))?;
        let mut frame = Vec::with_capacity(HEADER + body.len());
        frame.extend_from_slice(&MAGIC);
        frame.extend_from_slice(&self.config.protocol.to_be_bytes());
        frame.push(kind);
        frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
        frame.extend_from_slice(&body);
        send.write_all(&frame).await.map_err(lost)
    }
}

#[derive(Clone, Copy)]
enum Role {
    Dialer,
    Acceptor,
}

impl Role {
    fn label(self) -> &'static [u8] {
        match self {
            Self::Dialer => b"dialer",
            Self::Acceptor => b"acceptor",
        }
    }
}

/// What a proof is tied to.
struct Tie<'a> {
    connection: &'a Connection,
    secret: Secret,
    session: SessionId,
    via: Option<InviteId>,
}

impl Tie<'_> {
    fn prove(&self, role: Role, prover: NodeId, verifier: PeerId) -> Result<[u8; 32], Failure> {
        let message = self.message(role, prover, verifier)?;
        let mut proof = [0; 32];
        proof.copy_from_slice(hmac::sign(&self.key(), &message).as_ref());
        Ok(proof)
    }

    fn verify(&self, role: Role, prover: NodeId, verifier: PeerId, proof: &[u8; 32]) -> Result<(), Failure> {
        let message = self.message(role, prover, verifier)?;
        hmac::verify(&self.key(), &message, proof)
            .map_err(|_| Failure::Denied(Refusal::standard(RefusalCode::BadProof)))
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.secret.0)
    }

    fn message(&self, role: Role, prover: NodeId, verifier: PeerId) -> Result<Vec<u8>, Failure> {
        let mut exported = [0; 32];
        self.connection
            .export_keying_material(&mut exported, b"EXPORTER-coeval-link", role.label())
            .map_err(|_| Failure::Lost("TLS exports no keying material".into()))?;
        let mut message = exported.to_vec();
        message.extend_from_slice(role.label());
        message.extend_from_slice(self.session.0.as_bytes());
        message.extend_from_slice(&prover.peer.0);
        message.extend_from_slice(&prover.incarnation.0.to_be_bytes());
        message.extend_from_slice(&verifier.0);
        message.push(u8::from(self.via.is_some()));
        message.extend_from_slice(&self.via.map_or(0, |id| id.0).to_be_bytes());
        Ok(message)
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

async fn read(recv: &mut RecvStream, limit: usize) -> Result<Frame, Failure> {
    let mut header = [0; HEADER];
    recv.read_exact(&mut header).await.map_err(lost)?;
    let length = u32::from_be_bytes([header[7], header[8], header[9], header[10]]) as usize;
    if header[..4] != MAGIC || length > limit {
        return Err(malformed());
    }
    let mut body = vec![0; length];
    recv.read_exact(&mut body).await.map_err(lost)?;
    Ok(Frame { version: u16::from_be_bytes([header[4], header[5]]), kind: header[6], body })
}

fn parse<'a, T: Deserialize<'a>>(frame: &'a Frame, kind: u8) -> Result<T, Failure> {
    if frame.kind != kind {
        return Err(malformed());
    }
    rmp_serde::from_slice(&frame.body).map_err(|_| malformed())
}

fn parse_refusal(body: &[u8]) -> Refusal {
    match rmp_serde::from_slice::<Refused>(body) {
        Ok(refused) => Refusal::new(RefusalCode::from_number(refused.code), printable(refused.text)),
        Err(_) => Refusal::standard(RefusalCode::Malformed),
    }
}

fn link_peer(peer: PeerId, about: About) -> Result<LinkPeer, Failure> {
    let About { incarnation, name, addresses, observer } = about;
    let fits = name.len() <= MAX_NAME
        && addresses.len() <= MAX_ADDRESSES
        && addresses.iter().all(|address| address.len() <= MAX_ADDRESS);
    // Incarnations zero and one are reserved.
    if !fits || incarnation < 2 {
        return Err(malformed());
    }
    let node = NodeId { peer, incarnation: Incarnation(incarnation) };
    Ok(LinkPeer { node, name, addresses, observer })
}

fn malformed() -> Failure {
    Failure::Denied(Refusal::standard(RefusalCode::Malformed))
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

pub(crate) fn now() -> Now {
    Now { mono: MonoClock::now() }
}

/// Text of another program, fit for a terminal.
pub(crate) fn printable(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

fn truncate(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_handshake_body_makes_the_decoder_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for kind in [HELLO, WELCOME] {
                let frame = Frame { version: 1, kind, body: body.clone() };
                let _ = parse::<Hello>(&frame, HELLO);
                let _ = parse::<Welcome>(&frame, WELCOME);
            }
            let _ = parse_refusal(&body);
        }
    }

    fn hello_body(addresses: usize, nested: usize) -> Vec<u8> {
        #[derive(Serialize)]
        struct NewerHello {
            session: Uuid,
            about: About,
            invite: Option<u64>,
            proof: [u8; 32],
            from_the_future: Vec<u8>,
        }
        let about = About {
            incarnation: 5,
            name: "n".into(),
            addresses: vec!["127.0.0.1:1".into(); addresses],
            observer: false,
        };
        let newer = NewerHello {
            session: Uuid::from_u128(3),
            about,
            invite: None,
            proof: [1; 32],
            from_the_future: vec![0; nested],
        };
        rmp_serde::to_vec_named(&newer).unwrap()
    }

    #[test]
    fn fields_of_a_later_version_are_skipped() {
        let frame = Frame { version: 1, kind: HELLO, body: hello_body(2, 40) };
        let hello: Hello = parse(&frame, HELLO).unwrap();
        assert_eq!(hello.session, Uuid::from_u128(3));
        let peer = link_peer(PeerId([1; 32]), hello.about).unwrap();
        assert_eq!(peer.addresses.len(), 2);
    }

    #[test]
    fn deep_nesting_and_too_many_addresses_are_refused() {
        let frame = Frame { version: 1, kind: HELLO, body: hello_body(17, 0) };
        let hello: Hello = parse(&frame, HELLO).unwrap();
        assert!(link_peer(PeerId([1; 32]), hello.about).is_err());
        let deep = Frame { version: 1, kind: HELLO, body: vec![0x91; MAX_HELLO] };
        assert!(parse::<Hello>(&deep, HELLO).is_err());
    }

    #[test]
    fn text_of_others_cannot_steer_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\n".into()), "a[2Jb");
        let mut text = "ä".repeat(10);
        truncate(&mut text, 5);
        assert_eq!(text, "ää");
    }
}
