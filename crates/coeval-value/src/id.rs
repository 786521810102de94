//! Identities: entities, peers (installations), nodes (opened peers).
use coeval_time::Incarnation;
use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Identity of an entity: v7 when made at run time, v5 of (config id, path in the file) when declared in a sim config.
///
/// Printed as a hyphenated UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityId(pub Uuid);

/// The `SimEntity`: exists in every world, cannot be deleted, takes no Systems.
pub const SIM_ENTITY: EntityId = EntityId(Uuid::from_u128(0x636f_6576_616c_8000_8000_5349_4d45_4e54));

/// Identity of an installation: its Ed25519 public key.
///
/// Printed as 52 lower-case base32 characters (RFC 4648, no padding); read in either case. Serialized as that text in
/// human-readable formats and as 32 bytes in others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PeerId(pub [u8; 32]);

/// One opened peer: links, membership and ties go by node, roles by [`PeerId`].
///
/// Printed as the peer, a dot, and the incarnation as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct NodeId {
    /// The installation.
    pub peer: PeerId,
    /// This opening of it.
    pub incarnation: Incarnation,
}

/// Why a text is not an id.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdError {
    /// Not a UUID.
    #[error("entity id {0:?} is not a UUID: write it like 01890a5d-ac96-774b-bcce-b302099a8057")]
    Entity(String),
    /// Not 32 bytes of base32.
    #[error("peer id {0:?} is not 52 characters of base32")]
    Peer(String),
    /// Not a peer, a dot and an incarnation.
    #[error("node id {0:?} is not a peer id, a dot and 16 hexadecimal digits")]
    Node(String),
}

impl EntityId {
    /// The id of an entity made at run time: UUID v7 of the creation time and random bits, both given by the caller.
    ///
    /// `unix_millis` is milliseconds since 1970-01-01T00:00:00 UTC (the low 48 bits count).
    pub const fn v7(unix_millis: u64, random: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(unix_millis, &random).into_uuid())
    }

    /// The id of an entity declared in a sim config: UUID v5 of the config's id and the entity's path in the file.
    ///
    /// Programs that parse the same file independently agree on it.
    pub fn declared(config: Uuid, path_in_file: &str) -> Self {
        Self(Uuid::new_v5(&config, path_in_file.as_bytes()))
    }

    /// The last 8 hexadecimal digits: for people who look at a log. The first digits of a v7 id are a time, and alike.
    pub fn short(self) -> String {
        format!("{:08x}", self.0.as_u128() as u32)
    }
}

impl PeerId {
    /// The first 8 characters of the printed form: for people who look at a log.
    pub fn short(self) -> String {
        let mut text = self.to_string();
        text.truncate(8);
        text
    }
}

impl NodeId {
    /// The short peer, a dot, and the last 4 digits of the incarnation: for people who look at a log.
    pub fn short(self) -> String {
        format!("{}.{:04x}", self.peer.short(), self.incarnation.0 as u16)
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for EntityId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Uuid::parse_str(text).map(Self).map_err(|_| IdError::Entity(text.to_owned()))
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&BASE32_NOPAD.encode(&self.0).to_ascii_lowercase())
    }
}

impl FromStr for PeerId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        BASE32_NOPAD
            .decode(text.to_ascii_uppercase().as_bytes())
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| IdError::Peer(text.to_owned()))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:016x}", self.peer, self.incarnation.0)
    }
}

impl FromStr for NodeId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = || IdError::Node(text.to_owned());
        let (peer, digits) = text.split_once('.').ok_or_else(bad)?;
        let hex = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let incarnation = u64::from_str_radix(digits, 16).ok().filter(|_| hex).ok_or_else(bad)?;
        Ok(Self { peer: peer.parse()?, incarnation: Incarnation(incarnation) })
    }
}

impl Serialize for PeerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for PeerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(PeerVisitor)
        } else {
            deserializer.deserialize_bytes(PeerVisitor)
        }
    }
}

struct PeerVisitor;

impl de::Visitor<'_> for PeerVisitor {
    type Value = PeerId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a peer id: 32 bytes, or 52 characters of base32")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<PeerId, E> {
        bytes.try_into().map(PeerId).map_err(|_| E::invalid_length(bytes.len(), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PeerId, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_time_ids_are_v7_and_declared_ids_are_v5() {
        let made = EntityId::v7(1_700_000_000_123, [7; 10]);
        assert_eq!(made.0.get_version_num(), 7);
        assert_eq!(made.0.get_timestamp().map(|t| t.to_unix()), Some((1_700_000_000, 123_000_000)));
        let config = Uuid::from_u128(42);
        let declared = EntityId::declared(config, "fleet/probe");
        assert_eq!(declared.0.get_version_num(), 5);
        assert_eq!(declared, EntityId::declared(config, "fleet/probe"));
        assert_ne!(declared, EntityId::declared(config, "fleet/probe2"));
        assert_ne!(declared, EntityId::declared(Uuid::from_u128(43), "fleet/probe"));
        assert_eq!(made.short(), made.to_string()[28..]);
    }

    #[test]
    fn ids_print_and_parse_back() {
        let peer = PeerId(std::array::from_fn(|i| (i * 37) as u8));
        let node = NodeId { peer, incarnation: Incarnation(0xfeed) };
        assert_eq!(peer.to_string().len(), 52);
        assert_eq!(peer.to_string().parse(), Ok(peer));
        assert_eq!(peer.to_string().to_uppercase().parse(), Ok(peer));
        assert_eq!(node.to_string().parse(), Ok(node));
        assert_eq!(SIM_ENTITY.to_string().parse(), Ok(SIM_ENTITY));
        assert!(node.short().starts_with(&peer.short()));
    }

    #[test]
    fn malformed_ids_are_refused() {
        let peer = PeerId([255; 32]).to_string();
        assert!("not-an-id".parse::<EntityId>().is_err());
        assert!(peer[1..].parse::<PeerId>().is_err());
        // The last character carries one bit of the key: the other four must be zero.
        assert!(format!("{}7", &peer[..51]).parse::<PeerId>().is_err());
        assert!(format!("{peer}.+00000000000000a").parse::<NodeId>().is_err());
        assert!(format!("{peer}.a").parse::<NodeId>().is_err());
        assert!(peer.parse::<NodeId>().is_err());
    }
}
