//! **coeval**: an asynchronous, eventually-consistent parameter store for real-time multi-user simulations.
//!
//! Every program is an equal [`Peer`] with a full replica of the world: entities, each with a map of timestamped
//! parameters. Any thread reads and writes its replica at memory speed and never waits for the network; changes stream
//! from peer to peer over QUIC, and all replicas converge. Sim time is shared: anyone may set the timescale, pause or
//! jump, and every peer computes the same sim time from the same edits.
//!
//! ```
//! use coeval::{Motion, Peer, Result};
//!
//! fn main() -> Result<()> {
//!     let host = Peer::host("demo").open()?; // own I/O thread; no runtime needed
//!     let probe = host.create_entity("probe")?;
//!     probe.set(host.context(), "motion", Motion::at([0.0; 3]).velocity([10.0, 0.0, 0.0]))?; // m, m/s
//!     host.clock().set_scale(4.0)?; // every peer recomputes its sim time
//!     let guest = Peer::join(host.invite()?).open()?; // usually another program; returns caught up
//!     let motion = guest.entity("probe")?.param::<Motion>("motion")?; // a handle: resolve once
//!     println!("{}", motion.read(guest.context())?); // where it is *now*, and how good that is
//!     Ok(())
//! }
//! ```
//!
//! # Where things are
//! | module | what it holds |
//! |---|---|
//! | [`peer`] | [`Peer`]: a place in a session |
//! | [`options`] | [`HostOptions`], [`JoinOptions`], [`RehostOptions`], [`InviteOptions`]: how a peer is opened |
//! | [`journal`] | [`JournalOptions`]: an optional log on disk from which a peer comes back |
//! | [`entity`] | [`Entity`], [`Param`]: what a program reads and writes |
//! | [`entered`] | [`Entered`], [`current`]: the context that a thread works in |
//! | [`batch`] | [`Batch`]: writes that belong together |
//! | [`checkpoint`] | [`Checkpoint`]: saving the world, and taking the session back to it |
//! | [`clock`] | [`SimClock`]: the shared sim clock |
//! | [`events`] | [`Events`]: what must not be conflated; commands |
//! | [`watch`] | [`Watch`]: what changed |
//! | [`notices`] | [`PeerEvent`]: who comes and goes, what needs a person's eye |
//! | [`offline`] | [`OfflineWrites`]: what became of what was written while nobody heard |
//! | [`publisher`] | [`Publisher`]: dead reckoning |
//! | [`info`] | [`PeerInfo`], [`ParamInfo`], [`WallReading`]: plain data |
//! | [`error`] | [`Error`], [`ErrorKind`] |
//! | [`guarantees`] | what can be relied on, and which test shows it |
//!
//! # What can be relied on
//! * A thread reads its own writes at once, and what it writes after reading wins over what it read.
//! * All replicas end up equal, whatever the order, repetition or delay of messages: the newest write of a path wins, by
//!   a total order of stamps; a deleted entity never comes back.
//! * A reader never waits for a writer and never sees half a value; a batch is seen whole or not at all by snapshots,
//!   watches and other peers.
//! * The same edits give the same sim time, to the nanosecond, on every peer.
//! * Events reach each peer that is present exactly once and in order per sender.
//!
//! [`guarantees`] names the test of each of these, and of the faults that they rule out.
//!
//! # Threads
//! Everything is usable from any thread. Reads and writes never wait for the network. Calls that wait are
//! [`HostOptions::open`], [`JoinOptions::open`], [`RehostOptions::open`], [`Peer::flush`], [`Peer::flush_to`], [`Peer::leave`],
//! [`Events::command`], [`Events::delivered`], everything named `wait`, and, as long as the I/O thread takes to answer,
//! [`Peer::peers`], [`Peer::digest`], [`Peer::restore`] and [`Events::send`]. A time-out of [`Duration::MAX`](std::time::Duration::MAX)
//! waits as good as for ever.
pub mod batch;
pub mod checkpoint;
pub mod clock;
mod convert;
mod engine;
pub mod entered;
pub mod entity;
pub mod error;
pub mod events;
mod gate;
mod glob;
pub mod guarantees;
mod hub;
mod inbox;
pub mod info;
pub mod journal;
pub mod notices;
pub mod offline;
pub mod options;
pub mod peer;
pub mod publisher;
mod shared;
pub mod watch;

pub use batch::Batch;
pub use checkpoint::Checkpoint;
pub use clock::{ClockChanges, LoggedEdit, SimClock};
pub use entered::{Entered, current};
pub use entity::{Entity, IntoPath, Param};
pub use error::{Error, ErrorKind, Result};
pub use events::{Event, EventStream, Events, Outcome};
pub use info::{ParamInfo, PeerInfo, WallReading};
pub use journal::{JournalOptions, JournalReport};
pub use notices::{PeerEvent, PeerNotices};
pub use offline::{OfflineWrite, OfflineWrites};
pub use options::{HostOptions, InviteOptions, JoinOptions, RehostOptions};
pub use peer::Peer;
pub use publisher::{PublishOptions, Published, Publisher};
pub use watch::{Watch, WatchEvent};

pub use coeval_journal::SyncPolicy;
pub use coeval_merge::{Digest, Op};
pub use coeval_motion::{Beyond, Evolve, Mode, ModelError, Policy, Quality, Reason, Side, Span, extrapolate};
pub use coeval_quic::{Conditioner, Identity, Invite, InviteId, SessionInfo};
pub use coeval_store::{ChangeKind, Counters, Limits, Reading, Snapshot};
pub use coeval_sync::{PeerState, Target};
pub use coeval_time::{
    ChangeCause, Civil, CivilScale, ClockChange, ClockPoint, ClockState, Context, Direction, Edit, EditId,
    EditKind, Epoch, Genesis, Incarnation, SessionId, SimDuration, SimTime, Stamp, WallDuration, WallTime,
};
pub use coeval_value::{
    EntityId, Key, Matrix, Motion, MotionModel, NodeId, Parameter, Path, PeerId, Quat, Ramp, SIM_ENTITY,
    TypeMismatch, Value,
};

/// Compiles and runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
