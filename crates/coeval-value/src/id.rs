//! Identities: entities, peers (installations), nodes (opened peers).
use coeval_time::Incarnation;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Identity of an entity: v7 when made at run time, v5 of (config id, path in the file) when declared in a sim config.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityId(pub Uuid);

/// The `SimEntity`: exists in every world, cannot be deleted, takes no Systems.
pub const SIM_ENTITY: EntityId = EntityId(Uuid::from_u128(0x636f_6576_616c_8000_8000_5349_4d45_4e54));

/// Identity of an installation: its Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PeerId(pub [u8; 32]);

/// One opened peer: links, membership and ties go by node, roles by [`PeerId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct NodeId {
    /// The installation.
    pub peer: PeerId,
    /// This opening of it.
    pub incarnation: Incarnation,
}
