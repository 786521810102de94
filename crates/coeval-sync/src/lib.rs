//! Sans-IO replication: links, cursors, digests, membership, events, pings.
//!
//! No socket, no clock, no thread: [`Input`] goes in with the time, [`Effect`]s come out, so the same code runs under
//! quinn and under the simulator.
//!
//! | file | what it holds |
//! |---|---|
//! | [`io`] | [`Input`], [`Effect`], [`Machine`]: what a driver sees |
//! | [`engine`] | [`Sync`]: takes inputs apart, keeps the links, runs what is due |
//! | [`config`] | [`Config`], [`SessionTime`]: limits, periods, and session wall time |
//! | [`notice`] | [`Notice`]: what the engine tells its owner |
//! | [`events`] | [`Event`], [`Target`], [`EventId`], [`EventError`]: events and commands |
//! | [`stats`] | [`PeerStatus`], [`PeerStats`]: the table of peers and its counters |
//! | [`log`] | the log: a link that never answers; [`LogStatus`] |
//! | [`replay`] | [`Replay`]: reading a log back |
//! | `standing` | who is linked, caught up, and has acknowledged what |
//! | `link` | one link: what is on its way out, what came in and is not applied yet |
//! | `pump` | the way out: units of changes, encoded once and fanned out; links that lag; snapshots |
//! | `route`, `encode` | which way changes go; their messages |
//! | `receive` | the way in: hellos and cursors, deltas staged to their mark, acknowledgements |
//! | `worlds` | [`Sync::restore`], [`RestoreError`]: another world of the session, and following to it |
//! | `parking` | fragments too far ahead of session time |
//! | `repair` | digests: finding and mending differences |
//! | `gossip`, `members`, `graph` | link states, who is present, shortest-path trees |
//! | `dial` | making the full mesh |
//! | `fork` | another program under the same name |
//! | `ping` | round-trip times and clock samples |
//! | `codec` | the packed bodies |
pub mod config;
pub mod engine;
pub mod events;
pub mod io;
pub mod notice;
pub mod stats;

mod codec;
mod dial;
mod encode;
mod fork;
mod gossip;
mod graph;
mod link;
pub mod log;
mod members;
mod parking;
mod ping;
mod pump;
mod receive;
mod repair;
pub mod replay;
mod route;
mod standing;
mod worlds;

pub use coeval_wire::Reply;
pub use config::{Config, SessionTime};
pub use engine::Sync;
pub use events::{Event, EventError, EventId, Target};
pub use io::{CloseReason, Effect, Input, LinkPeer, Machine, Now};
pub use log::LogStatus;
pub use notice::{EventNotice, Notice};
pub use replay::Replay;
pub use stats::{PeerState, PeerStats, PeerStatus};
pub use worlds::RestoreError;
