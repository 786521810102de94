//! The frames of the protocol: what one message of a link carries.
//!
//! A message is the protocol version (two bytes, big-endian), the kind of frame (one byte) and the frame's fields as a
//! MessagePack map by name. A reader that meets a version, a kind or a field it does not know says which.
use crate::packed;
use bytes::Bytes;
use coeval_merge::{Digest, World};
use coeval_time::hybrid::STAMP_LIMIT;
use coeval_time::{EditId, Incarnation, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, NodeId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The protocol version spoken here.
pub const PROTOCOL_VERSION: u16 = 2;

/// Most bytes in one message.
pub const MAX_FRAME: usize = 4 << 20;

/// Bytes before the fields: version and kind.
const HEAD: usize = 3;

/// Why a message was refused. Nothing of it was kept.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than [`MAX_FRAME`].
    #[error("message of {0} bytes: a message has at most {MAX_FRAME}")]
    TooLong(usize),
    /// Shorter than version and kind.
    #[error("message of {0} bytes: a message has at least {HEAD}")]
    TooShort(usize),
    /// Another version of the protocol.
    #[error("protocol version {0}: this side speaks {PROTOCOL_VERSION}")]
    UnknownVersion(u16),
    /// A kind of frame that this version does not have.
    #[error("unknown kind of frame: {0}")]
    UnknownKind(u8),
    /// The fields do not fit the kind.
    #[error("frame {kind}: {source}")]
    Fields {
        /// Which kind of frame.
        kind: &'static str,
        /// What is wrong with its fields.
        source: rmp_serde::decode::Error,
    },
    /// Bytes after the fields.
    #[error("frame {kind}: {bytes} bytes after its end")]
    Trailing {
        /// Which kind of frame.
        kind: &'static str,
        /// How many.
        bytes: usize,
    },
    /// The frame could not be written.
    #[error("frame {kind} cannot be written: {source}")]
    Encode {
        /// Which kind of frame.
        kind: &'static str,
        /// Why.
        source: rmp_serde::encode::Error,
    },
}

macro_rules! frames {
    ($($(#[$doc:meta])* $kind:literal $name:ident),* $(,)?) => {
        /// One message of a link.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Frame {
            $($(#[$doc])* $name($name),)*
        }

        $(impl From<$name> for Frame {
            fn from(frame: $name) -> Self {
                Self::$name(frame)
            }
        })*

        impl Frame {
            /// The name of the kind of frame.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name),)* }
            }

            /// The message that carries this frame.
            pub fn encode(&self) -> Result<Bytes, FrameError> {
                match self { $(Self::$name(frame) => write($kind, stringify!($name), frame),)* }
            }

            /// The frame of a message, whole or not at all.
            pub fn decode(message: &[u8]) -> Result<Self, FrameError> {
                let (kind, fields) = open(message)?;
                match kind {
                    $($kind => read(stringify!($name), fields).map(Self::$name),)*
                    unknown => Err(FrameError::UnknownKind(unknown)),
                }
            }
        }
    };
}

frames! {
    /// First on every link, from both sides, and again when the sender went to another world.
    1 Hello,
    /// Names the slots that later frames speak of by number.
    2 Define,
    /// A part of a delta.
    3 Delta,
    /// Write-once entries of a delta.
    4 Entries,
    /// The end of a delta.
    5 Mark,
    /// The answer to a mark.
    6 Ack,
    /// The digest of everything, once a period.
    7 Root,
    /// Repair, step 1: the digests of all buckets.
    8 Buckets,
    /// Repair, step 2: the digests of the entities of a differing bucket.
    9 Entities,
    /// Repair, step 3: the stamps of differing entities.
    10 Summary,
    /// Repair, step 3 for entries: their ids.
    11 EntryIds,
    /// Asks for slots and entries.
    12 Want,
    /// The end of a round of repair.
    13 Repaired,
    /// What a node says about itself, passed on to everyone.
    14 LinkState,
    /// An event on its way to one node.
    15 Event,
    /// Events that have arrived.
    16 EventAck,
    /// Asks for the time (datagram).
    17 Ping,
    /// Tells the time (datagram).
    18 Pong,
    /// The sender leaves.
    19 Bye,
    /// Asks for the whole content of a newer world.
    20 Fetch,
}

fn open(message: &[u8]) -> Result<(u8, &[u8]), FrameError> {
    match message {
        m if m.len() > MAX_FRAME => Err(FrameError::TooLong(m.len())),
        [v1, v2, kind, fields @ ..] => match u16::from_be_bytes([*v1, *v2]) {
            PROTOCOL_VERSION => Ok((*kind, fields)),
            other => Err(FrameError::UnknownVersion(other)),
        },
        m => Err(FrameError::TooShort(m.len())),
    }
}

fn read<T: DeserializeOwned>(kind: &'static str, fields: &[u8]) -> Result<T, FrameError> {
    let mut from = rmp_serde::Deserializer::new(std::io::Cursor::new(fields));
    // Frames are flat; what is nested deeper is not one of them.
    from.set_max_depth(16);
    let frame = T::deserialize(&mut from).map_err(|source| FrameError::Fields { kind, source })?;
    match fields.len() - usize::try_from(from.position()).unwrap_or(usize::MAX).min(fields.len()) {
        0 => Ok(frame),
        bytes => Err(FrameError::Trailing { kind, bytes }),
    }
}

fn write<T: Serialize>(kind: u8, name: &'static str, frame: &T) -> Result<Bytes, FrameError> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
    out.push(kind);
    let mut to = rmp_serde::Serializer::new(&mut out).with_struct_map();
    frame.serialize(&mut to).map_err(|source| FrameError::Encode { kind: name, source })?;
    if out.len() > MAX_FRAME { Err(FrameError::TooLong(out.len())) } else { Ok(out.into()) }
}

/// What of the world a receiver wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Interest {
    /// Everything.
    #[default]
    Full,
}

/// A world of the session.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldTag {
    /// How many restores led to it.
    pub number: u64,
    /// The stamp of the restore.
    #[serde(with = "packed::one")]
    pub stamp: Stamp,
    /// Sim time at its beginning: seconds and nanoseconds.
    pub sim: (i64, u32),
    /// The bits of the scale that its clock begins with, paused.
    pub scale: u64,
}

impl From<World> for WorldTag {
    fn from(World { number, stamp, sim, scale }: World) -> Self {
        Self { number, stamp, sim: sim.secs_nanos(), scale: scale.to_bits() }
    }
}

impl WorldTag {
    /// The world; `None` if there is none of the kind.
    pub fn world(&self) -> Option<World> {
        let Self { number, stamp, sim: (secs, nanos), scale } = *self;
        let fits = nanos < 1_000_000_000 && stamp.hlc < STAMP_LIMIT;
        let sim = SimTime::from_secs_nanos(secs, nanos.min(999_999_999));
        let world = World { number, stamp, sim, scale: f64::from_bits(scale) };
        (fits && world.is_sound()).then_some(world)
    }
}

/// First on every link, from both sides, and again when the sender has gone to another world: what it holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The incarnation and drained position of the *receiver of this frame* up to which the sender holds everything.
    pub cursor: Option<(Incarnation, u64)>,
    /// Whether the sender holds nothing at all.
    pub empty: bool,
    /// The digest of what the sender holds.
    #[serde(with = "packed::one")]
    pub digest: Digest,
    /// The world of the session that the sender is in.
    pub world: WorldTag,
    /// What the sender wants to receive.
    pub interest: Interest,
}

/// Names the slots that later frames of this direction of this link speak of by number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Define {
    /// Numbers and keys, packed by [`body`](crate::body).
    pub keys: Bytes,
}

/// A part of a delta; kept aside by the receiver until the [`Mark`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    /// Whose changes these are: they travel the tree of shortest paths from this node, and who passes them on passes on
    /// all of them or none. `None`: what the receiver has missed, whoever wrote it.
    pub root: Option<Incarnation>,
    /// Numbers and states, packed by [`body`](crate::body).
    pub states: Bytes,
}

/// Write-once entries of a delta; kept aside by the receiver until the [`Mark`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entries {
    /// Entries, packed by [`body`](crate::body).
    pub entries: Bytes,
}

/// The end of a delta: the receiver applies what it kept aside, all at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The sender's drained position that the delta reaches.
    pub position: u64,
    /// From here on the receiver holds everything that the sender held when the link came up.
    pub caught_up: bool,
}

/// The answer to a mark, after the delta was applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// The position of the mark.
    pub position: u64,
    /// Fragments kept outside until due, because their stamps are too far ahead.
    pub parked: u32,
    /// How far ahead of session time the farthest of them is, nanoseconds.
    pub ahead: u64,
    /// Fragments refused.
    pub refused: u32,
    /// Fragments already known.
    pub superseded: u32,
    /// Fragments that are inert, because the receiver is in a newer world.
    pub inert: u32,
}

/// The digest of everything the sender holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// Of the state as of `position`.
    #[serde(with = "packed::one")]
    pub digest: Digest,
    /// The sender's drained position, all of which it has sent.
    pub position: u64,
    /// A sum over the newest link states that the sender knows.
    pub members: u64,
}

/// Repair, step 1: the digests of all 256 buckets of entities.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buckets {
    /// The sender's number for this round of repair.
    pub round: u64,
    /// Send what differs now, not only when it still differs in the next round.
    pub urgent: bool,
    /// 256 digests.
    #[serde(with = "packed::many")]
    pub digests: Vec<Digest>,
}

/// Repair, step 2: the digests of some entities of a differing bucket.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entities {
    /// The round this answers.
    pub round: u64,
    /// The bucket; `None` only in a last frame without entities.
    pub bucket: Option<u8>,
    /// The entities told of come after this one; `None`: from the first.
    #[serde(with = "packed::maybe")]
    pub after: Option<EntityId>,
    /// The entities told of end with this one; `None`: with the last.
    #[serde(with = "packed::maybe")]
    pub until: Option<EntityId>,
    /// All entities of the bucket in that range, in order, with their digests.
    #[serde(with = "packed::many")]
    pub digests: Vec<(EntityId, Digest)>,
    /// The last frame of this step.
    pub last: bool,
}

/// Repair, step 3: the stamps of some differing entities.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The round.
    pub round: u64,
    /// The entities whose slots end in this frame, also those without any.
    #[serde(with = "packed::many")]
    pub entities: Vec<EntityId>,
    /// Numbers and keys of slots, packed by [`body`](crate::body); defines the numbers too.
    pub keys: Bytes,
    /// Of each slot: leaf (creation), floor (deletion), kind.
    #[serde(with = "packed::many")]
    pub stamps: Vec<[Stamp; 3]>,
    /// The last frame of this step.
    pub last: bool,
}

/// Repair, step 3 for entries: the ids the sender knows in a range.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryIds {
    /// The ids told of come after this one; `None`: from the first.
    #[serde(with = "packed::maybe")]
    pub after: Option<EditId>,
    /// The ids told of end with this one; `None`: with the last.
    #[serde(with = "packed::maybe")]
    pub until: Option<EditId>,
    /// All ids in that range, in order.
    #[serde(with = "packed::many")]
    pub ids: Vec<EditId>,
}

/// Asks for slots, by the numbers of the *receiver of this frame*, and for entries.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Want {
    /// The slots; their numbers are to be defined again.
    #[serde(with = "packed::many")]
    pub slots: Vec<u32>,
    /// The entries.
    #[serde(with = "packed::many")]
    pub entries: Vec<EditId>,
    /// The round of repair that this ends on the sender's side: all the sender had to give was sent before.
    pub ends: Option<u64>,
}

/// The end of a round of repair: all that was wanted was sent before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repaired {
    /// The round.
    pub round: u64,
}

/// What a node says about itself, passed on to everyone; a higher version replaces a lower.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkState {
    /// Who.
    #[serde(with = "packed::one")]
    pub node: NodeId,
    /// Counts the changes.
    pub version: u64,
    /// The name it gave itself (a label).
    pub name: String,
    /// Addresses it can be dialed at, as text (`IP:PORT`).
    pub addresses: Vec<String>,
    /// Whether it only reads: never writes, never relays.
    pub observer: bool,
    /// Whether it has left the session for good.
    pub left: bool,
    /// The nodes it has links to.
    #[serde(with = "packed::many")]
    pub links: Vec<NodeId>,
}

/// Whom an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WireTarget {
    /// Whoever minds an entity.
    Entity(EntityId),
    /// One node: the one it was sent to.
    Node,
    /// Everyone.
    All,
}

/// What became of a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Taken on; [`Done`](Self::Done) may follow.
    Accepted,
    /// Not taken on.
    Refused {
        /// Why, in words.
        reason: String,
    },
    /// Carried out.
    Done,
}

/// The content of an event frame.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Payload {
    /// An event or a command.
    Event {
        /// The sender's number for it, the same at every destination.
        number: u64,
        /// What it is about.
        topic: String,
        /// Whom it is for.
        target: WireTarget,
        /// The sim time it is for: seconds and nanoseconds.
        sim: (i64, u32),
        /// Whether a reply is expected.
        command: bool,
        /// The value, packed by [`body`](crate::body).
        value: Bytes,
    },
    /// A reply to a command.
    Reply {
        /// The command's number.
        number: u64,
        /// What became of it.
        reply: Reply,
    },
}

/// An event on its way to one node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Who sent it.
    #[serde(with = "packed::one")]
    pub from: NodeId,
    /// Who shall get it.
    #[serde(with = "packed::one")]
    pub to: NodeId,
    /// Its number from `from` to `to`, from 1.
    pub seq: u64,
    /// The lowest number that `from` may still send again to `to`.
    pub first: u64,
    /// Hops it may still take.
    pub hops: u8,
    /// Its content.
    pub payload: Payload,
}

/// Events that have arrived, told back to their sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventAck {
    /// Who got them.
    #[serde(with = "packed::one")]
    pub from: NodeId,
    /// Who sent them.
    #[serde(with = "packed::one")]
    pub to: NodeId,
    /// All up to this number have arrived.
    pub seq: u64,
    /// Hops it may still take.
    pub hops: u8,
}

/// Asks for the time (datagram).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// The sender's number for it.
    pub id: u64,
}

/// Tells the time (datagram).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pong {
    /// The ping's number.
    pub id: u64,
    /// Session wall time at which the ping arrived.
    pub received: WallTime,
    /// Session wall time at which this was sent.
    pub sent: WallTime,
}

/// The sender leaves.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bye {
    /// Why, in words.
    pub reason: String,
}

/// Asks for the whole content of the world that the receiver of this frame said it is in. The sender keeps aside what
/// comes until its mark, and then goes there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Which world: no answer comes if the receiver has gone on to a newer one.
    pub world: WorldTag,
}
