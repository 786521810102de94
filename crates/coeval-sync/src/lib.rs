//! Sans-IO replication: links, cursors, digests, membership, events, pings.
//!
//! No socket, no clock, no thread: [`Input`] goes in with the time, [`Effect`]s come out, so the same code runs under
//! quinn and under the simulator.
pub mod io;

pub use io::{CloseReason, Effect, Input, LinkPeer, Machine, Now};
