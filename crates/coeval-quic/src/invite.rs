//! Invites: what a program needs to join a session, as one word that survives being copied from a terminal.
//!
//! Text form: `coeval1_` and base64url (no padding) of
//! `[length: u16, check: u8] session[16] host_key[32] invite[8] secret[32] expires[8] flags[1] digest[0|16]
//! count[1] (family[1] ip[4|16] port[2])* checksum[4]`, integers big-endian, the checksum being the first 4 bytes of
//! SHA-256 over all before it. The leading length has a check of its own, so that a cut-off text is told apart from a
//! mistyped one.
use crate::Secret;
use coeval_time::{SessionId, WallTime};
use coeval_value::PeerId;
use data_encoding::BASE64URL_NOPAD;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

const PREFIX: &str = "coeval";
/// The version of the text form this side reads and writes.
pub const VERSION: u16 = 1;
/// The most addresses an invite carries.
pub const MAX_ADDRESSES: usize = 16;
const NANOS: u64 = 1_000_000_000;
const HAS_DIGEST: u8 = 1;
const CHECKSUM: usize = 4;
/// Header, fixed fields, no digest, no address, checksum.
const MIN_BYTES: usize = 3 + 16 + 32 + 8 + 32 + 8 + 1 + 1 + CHECKSUM;
const MAX_BYTES: usize = MIN_BYTES + 16 + MAX_ADDRESSES * 19;

/// Names an invite within its session, so that it can be counted and revoked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InviteId(pub u64);

/// Permission to join a session, and where. Whoever has the text can use it: treat it like a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invite {
    /// The version of the text form.
    pub version: u16,
    /// Which session.
    pub session: SessionId,
    /// Where its maker listens; at most [`MAX_ADDRESSES`] are written.
    pub addresses: Vec<SocketAddr>,
    /// The maker's key: the dialer speaks to nobody else.
    pub host_key: PeerId,
    /// Which invite.
    pub id: InviteId,
    /// Proved over the channel, never sent.
    pub secret: Secret,
    /// Session wall time in whole seconds since the Unix epoch from which on it is refused.
    pub expires: u64,
    /// The session's config digest, for a joiner that has a config of its own.
    pub config_digest: Option<[u8; 16]>,
}

/// Why an invite cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// The text is something else.
    #[error(
        "this is not an invite: an invite starts with `coeval{VERSION}_`; paste the line the host printed"
    )]
    NotAnInvite,
    /// Made by another version.
    #[error(
        "this invite has format version {found}, this program reads version {VERSION}; \
         use programs of the same coeval version on both sides"
    )]
    Version {
        /// The invite's version.
        found: u16,
    },
    /// Its end is missing.
    #[error("the invite is cut off: {have} of {want} characters are here; copy the whole line")]
    Truncated {
        /// Characters found.
        have: usize,
        /// Characters expected.
        want: usize,
    },
    /// A character is wrong.
    #[error("the invite is mistyped ({0}); copy it instead of typing it")]
    Mistyped(&'static str),
    /// Too late.
    #[error("the invite expired {ago} s ago (session time); ask a member of the session for a new one")]
    Expired {
        /// Seconds since.
        ago: u64,
    },
    /// For another session.
    #[error("the invite is for session {found}, not for {wanted}; ask a member of {wanted} for one")]
    OtherSession {
        /// The invite's session.
        found: uuid::Uuid,
        /// The session asked for.
        wanted: uuid::Uuid,
    },
}

impl Invite {
    /// Errors when the invite has expired at session wall time `now`.
    ///
    /// A program that has not joined does not know session time: its OS clock may be wrong, so joining leaves this
    /// check to the member that admits.
    pub fn check_expiry(&self, now: WallTime) -> Result<(), InviteError> {
        let now = now.as_nanos() / NANOS;
        if now >= self.expires {
            return Err(InviteError::Expired { ago: now - self.expires });
        }
        Ok(())
    }

    /// Errors when the invite is not for `session`.
    pub fn check_session(&self, session: SessionId) -> Result<(), InviteError> {
        if self.session != session {
            return Err(InviteError::OtherSession { found: self.session.0, wanted: session.0 });
        }
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 3];
        out.extend_from_slice(self.session.0.as_bytes());
        out.extend_from_slice(&self.host_key.0);
        out.extend_from_slice(&self.id.0.to_be_bytes());
        out.extend_from_slice(&self.secret.0);
        out.extend_from_slice(&self.expires.to_be_bytes());
        out.push(if self.config_digest.is_some() { HAS_DIGEST } else { 0 });
        out.extend(self.config_digest.iter().flatten());
        let addresses = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        out.push(addresses.len() as u8);
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    out.push(4);
                    out.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    out.push(6);
                    out.extend_from_slice(&ip.octets());
                }
            }
            out.extend_from_slice(&address.port().to_be_bytes());
        }
        let length = ((out.len() + CHECKSUM) as u16).to_be_bytes();
        out[..2].copy_from_slice(&length);
        out[2] = length_check(length);
        let checksum = checksum(self.version, &out);
        out.extend_from_slice(&checksum);
        out
    }

    fn decode(version: u16, bytes: &[u8]) -> Result<Self, InviteError> {
        let (body, sum) = bytes.split_at(bytes.len() - CHECKSUM);
        if checksum(version, body) != sum {
            return Err(InviteError::Mistyped("its checksum does not match"));
        }
        // The checksum held, so what is malformed from here on was made by a faulty program, not by a typist.
        let mut rest = Reader(&body[3..]);
        let session = SessionId(uuid::Uuid::from_bytes(rest.array()?));
        let host_key = PeerId(rest.array()?);
        let id = InviteId(u64::from_be_bytes(rest.array()?));
        let secret = Secret(rest.array()?);
        let expires = u64::from_be_bytes(rest.array()?);
        let config_digest = match rest.array::<1>()?[0] {
            0 => None,
            HAS_DIGEST => Some(rest.array()?),
            _ => return Err(InviteError::Mistyped("it has unknown flags")),
        };
        let count = rest.array::<1>()?[0] as usize;
        if count > MAX_ADDRESSES {
            return Err(InviteError::Mistyped("it has too many addresses"));
        }
        let addresses = (0..count).map(|_| rest.address()).collect::<Result<_, _>>()?;
        if !rest.0.is_empty() {
            return Err(InviteError::Mistyped("it has bytes left over"));
        }
        Ok(Self { version, session, addresses, host_key, id, secret, expires, config_digest })
    }
}

impl fmt::Display for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_{}", self.version, BASE64URL_NOPAD.encode(&self.encode()))
    }
}

impl FromStr for Invite {
    type Err = InviteError;

    fn from_str(text: &str) -> Result<Self, InviteError> {
        // A terminal may have wrapped the line.
        let text: String = text.chars().filter(|c| !c.is_whitespace()).take(2 * MAX_BYTES).collect();
        let (version, body) = text
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('_'))
            .and_then(|(version, body)| Some((version.parse::<u16>().ok()?, body)))
            .ok_or(InviteError::NotAnInvite)?;
        if version != VERSION {
            return Err(InviteError::Version { found: version });
        }
        let want = stated_chars(body)?;
        let lead = text.len() - body.len();
        if body.len() < want {
            return Err(InviteError::Truncated { have: text.len(), want: lead + want });
        }
        if body.len() > want {
            return Err(InviteError::Mistyped("it has extra characters at its end"));
        }
        let bytes = BASE64URL_NOPAD
            .decode(body.as_bytes())
            .map_err(|_| InviteError::Mistyped("it has a character that invites never have"))?;
        Self::decode(version, &bytes)
    }
}

/// How many characters the body of an invite should have, from its first four.
fn stated_chars(body: &str) -> Result<usize, InviteError> {
    let least = BASE64URL_NOPAD.encode_len(MIN_BYTES);
    let Some(head) = body.as_bytes().get(..4) else {
        return Err(InviteError::Truncated { have: body.len() + 8, want: least + 8 });
    };
    let head = BASE64URL_NOPAD.decode(head).map_err(|_| InviteError::Mistyped("its beginning is damaged"))?;
    let length = [head[0], head[1]];
    let bytes = u16::from_be_bytes(length) as usize;
    if head[2] != length_check(length) || !(MIN_BYTES..=MAX_BYTES).contains(&bytes) {
        return Err(InviteError::Mistyped("its beginning is damaged"));
    }
    Ok(BASE64URL_NOPAD.encode_len(bytes))
}

fn length_check(length: [u8; 2]) -> u8 {
    length[0].rotate_left(3) ^ length[1] ^ 0xa5
}

fn checksum(version: u16, body: &[u8]) -> [u8; CHECKSUM] {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(b"coeval invite");
    context.update(&version.to_be_bytes());
    context.update(body);
    let digest = context.finish();
    std::array::from_fn(|i| digest.as_ref()[i])
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], InviteError> {
        let (head, rest) =
            self.0.split_first_chunk::<N>().ok_or(InviteError::Mistyped("it ends too early"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn address(&mut self) -> Result<SocketAddr, InviteError> {
        let ip = match self.array::<1>()?[0] {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>()?)),
            6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>()?)),
            _ => return Err(InviteError::Mistyped("it has an unknown kind of address")),
        };
        Ok(SocketAddr::new(ip, u16::from_be_bytes(self.array()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arb_invite() -> impl Strategy<Value = Invite> {
        let address = (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port));
        (
            (any::<u128>(), any::<[u8; 32]>(), any::<u64>(), any::<[u8; 32]>(), any::<u64>()),
            proptest::option::of(any::<[u8; 16]>()),
            proptest::collection::vec(address, 0..=MAX_ADDRESSES),
        )
            .prop_map(|((session, key, id, secret, expires), config_digest, addresses)| Invite {
                version: VERSION,
                session: SessionId(uuid::Uuid::from_u128(session)),
                addresses,
                host_key: PeerId(key),
                id: InviteId(id),
                secret: Secret(secret),
                expires,
                config_digest,
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn invite_round_trips_also_when_wrapped(invite in arb_invite(), at in any::<prop::sample::Index>()) {
            let mut text = invite.to_string();
            prop_assert_eq!(&text.parse::<Invite>().unwrap(), &invite);
            text.insert_str(at.index(text.len()), "\n  ");
            prop_assert_eq!(text.parse::<Invite>().unwrap(), invite);
        }

        #[test]
        fn every_cut_is_called_truncated(invite in arb_invite(), at in any::<prop::sample::Index>()) {
            let text = invite.to_string();
            let cut = 8 + at.index(text.len() - 8);
            let error = text[..cut].parse::<Invite>().unwrap_err();
            prop_assert!(matches!(error, InviteError::Truncated { have, .. } if have == cut), "{}: {}", cut, error);
        }

        #[test]
        fn every_wrong_character_is_called_mistyped(
            invite in arb_invite(), at in any::<prop::sample::Index>(), by in "[A-Za-z0-9_.!-]",
        ) {
            let text = invite.to_string();
            let at = 8 + at.index(text.len() - 8);
            prop_assume!(text[at..=at] != by);
            let wrong = format!("{}{by}{}", &text[..at], &text[at + 1..]);
            let error = wrong.parse::<Invite>().unwrap_err();
            prop_assert!(matches!(error, InviteError::Mistyped(_)), "{}", error);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "(coeval1_)?\\PC{0,300}") {
            let _ = text.parse::<Invite>();
        }
    }

    fn sample() -> Invite {
        Invite {
            version: VERSION,
            session: SessionId(uuid::Uuid::from_u128(7)),
            addresses: vec!["127.0.0.1:4000".parse().unwrap()],
            host_key: PeerId([1; 32]),
            id: InviteId(3),
            secret: Secret([9; 32]),
            expires: 1_000,
            config_digest: None,
        }
    }

    #[test]
    fn other_things_pasted_are_told_apart() {
        assert_eq!("http://example.org".parse::<Invite>(), Err(InviteError::NotAnInvite));
        assert_eq!("".parse::<Invite>(), Err(InviteError::NotAnInvite));
        let newer = sample().to_string().replace("coeval1_", "coeval2_");
        assert_eq!(newer.parse::<Invite>(), Err(InviteError::Version { found: 2 }));
        let doubled = format!("{0}{0}", sample());
        assert!(matches!(doubled.parse::<Invite>(), Err(InviteError::Mistyped(_))));
    }

    #[test]
    fn expired_and_foreign_invites_say_so() {
        let invite = sample();
        assert_eq!(invite.check_expiry(WallTime::from_nanos(999 * NANOS)), Ok(()));
        let late = invite.check_expiry(WallTime::from_nanos(1_060 * NANOS)).unwrap_err();
        assert!(late.to_string().contains("expired 60 s ago"), "{late}");
        assert_eq!(invite.check_session(invite.session), Ok(()));
        let other = invite.check_session(SessionId(uuid::Uuid::from_u128(8))).unwrap_err();
        assert!(other.to_string().contains("00000007"), "{other}");
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let text = format!("{:?}", sample());
        assert!(!text.contains("9, 9"), "{text}");
    }
}
