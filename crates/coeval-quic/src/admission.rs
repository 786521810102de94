//! Who may link: the questions the driver asks of the session's state, and the answers that travel.
use crate::InviteId;
use bytes::Bytes;
use coeval_sync::{LinkPeer, Now};
use coeval_time::{Genesis, SessionId};
use std::fmt;

/// A shared secret: an invite's, or the session key. Never printed, never sent in the clear.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// A fresh one.
    pub fn generate() -> Self {
        Self(rand::random())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What a joiner is given when it is admitted.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// Which session.
    pub session: SessionId,
    /// What its clock starts from.
    pub genesis: Genesis,
    /// Digest of its sim config, if it has one.
    pub config_digest: Option<[u8; 16]>,
    /// What else the façade passes on (name, limits); at most 64 KiB, opaque here.
    pub data: Bytes,
}

/// Why a link was refused, in a form that travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalCode {
    /// Another protocol version.
    Version,
    /// Another session.
    OtherSession,
    /// No such invite is known.
    InviteUnknown,
    /// Past its date.
    InviteExpired,
    /// As many have used it as may.
    InviteUsedUp,
    /// Withdrawn.
    InviteRevoked,
    /// The peer itself was shut out.
    PeerRevoked,
    /// The session takes no observers.
    ObserverNotAllowed,
    /// The proof of the secret or of the session key does not hold.
    BadProof,
    /// What was sent cannot be read.
    Malformed,
    /// The dialed peer is the dialer.
    Itself,
    /// Not a member yet, or leaving.
    NotReady,
    /// As many links as there may be.
    Full,
    /// A code this version does not know; the text still says why.
    Other(u16),
}

const CODES: [(RefusalCode, u16); 13] = [
    (RefusalCode::Version, 1),
    (RefusalCode::OtherSession, 2),
    (RefusalCode::InviteUnknown, 3),
    (RefusalCode::InviteExpired, 4),
    (RefusalCode::InviteUsedUp, 5),
    (RefusalCode::InviteRevoked, 6),
    (RefusalCode::PeerRevoked, 7),
    (RefusalCode::ObserverNotAllowed, 8),
    (RefusalCode::BadProof, 9),
    (RefusalCode::Malformed, 10),
    (RefusalCode::Itself, 11),
    (RefusalCode::NotReady, 12),
    (RefusalCode::Full, 13),
];

impl RefusalCode {
    /// The number that travels.
    pub fn number(self) -> u16 {
        match self {
            Self::Other(number) => number,
            known => CODES.iter().find(|(code, _)| *code == known).map_or(0, |(_, number)| *number),
        }
    }

    /// The code of a number that arrived.
    pub fn from_number(number: u16) -> Self {
        CODES.iter().find(|(_, known)| *known == number).map_or(Self::Other(number), |(code, _)| *code)
    }
}

/// A refusal: the code for programs, the text for people (what is wrong and what to do).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people.
    pub text: String,
}

impl Refusal {
    /// A refusal with a text of one's own; at most 1,000 bytes of it travel.
    pub fn new(code: RefusalCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// A refusal with the standard text of its code.
    pub fn standard(code: RefusalCode) -> Self {
        Self::new(code, standard_text(code))
    }
}

fn standard_text(code: RefusalCode) -> &'static str {
    match code {
        RefusalCode::Version => "the other side speaks another protocol version; update the older program",
        RefusalCode::OtherSession => {
            "the other side is in another session; ask a member of the wanted session for an invite"
        }
        RefusalCode::InviteUnknown => "the session does not know this invite; ask a member for a new one",
        RefusalCode::InviteExpired => "the invite has expired; ask a member of the session for a new one",
        RefusalCode::InviteUsedUp => {
            "the invite was used as often as it may be; ask a member of the session for a new one"
        }
        RefusalCode::InviteRevoked => "the invite was revoked; ask a member of the session for a new one",
        RefusalCode::PeerRevoked => {
            "this peer was removed from the session; ask an admin of the session to let it in again"
        }
        RefusalCode::ObserverNotAllowed => "the session takes no observers; join as a contributor",
        RefusalCode::BadProof => {
            "the secret is wrong: the invite or the stored session key is not this session's; ask for a new invite"
        }
        RefusalCode::Malformed => {
            "the link handshake cannot be read; use programs of the same coeval version on both sides"
        }
        RefusalCode::Itself => "this address is the dialing program itself; give the address of another peer",
        RefusalCode::NotReady => {
            "the other side is not a member of the session (yet, or no longer); try again or dial another peer"
        }
        RefusalCode::Full => "the other side has as many links as it may; dial another peer",
        RefusalCode::Other(_) => "refused for a reason this version does not know",
    }
}

/// What the driver asks of the session's replicated state. Called on the I/O thread: must not block for long.
pub trait Admission: Send + Sync {
    /// The session this peer is in, or wants to join.
    fn session(&self) -> SessionId;

    /// The key that members prove to each other; `None` until admitted.
    fn session_key(&self) -> Option<Secret>;

    /// What a joiner gets with the key; `None` until admitted.
    fn info(&self) -> Option<SessionInfo>;

    /// The secret of an invite that may be used now, or why it may not. Consumes no use of it.
    fn verify_invite(&self, invite: InviteId, now: Now) -> Result<Secret, Refusal>;

    /// The other side proved the session key (`via` is `None`) or an invite's secret: last say (roles, revoked peers,
    /// observers), and the place to count a use of the invite. Called on both sides of each link before it is up.
    fn admit(&self, peer: &LinkPeer, via: Option<InviteId>, now: Now) -> Result<(), Refusal>;

    /// This peer was admitted by invite: keep the key and the session's facts. After this
    /// [`session_key`](Self::session_key) gives `key`.
    fn welcomed(&self, info: &SessionInfo, key: Secret) -> Result<(), Refusal>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_travels_and_unknown_ones_stay_readable() {
        for (code, number) in CODES {
            assert_eq!(RefusalCode::from_number(number), code);
            assert_eq!(code.number(), number);
            assert!(Refusal::standard(code).to_string().len() > 20);
        }
        assert_eq!(RefusalCode::from_number(999).number(), 999);
    }
}
