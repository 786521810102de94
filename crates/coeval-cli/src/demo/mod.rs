//! `coeval demo`: three processes share recorded flights and real satellites over a bad link.
//!
//! | file | what it holds |
//! |---|---|
//! | `director.rs` | starts the processes, plays the script, kills the host, sums up |
//! | `role.rs` | one process: a peer that authors, reads and reports |
//! | `world.rs`, `track.rs`, `j2.rs`, `geometry.rs` | what moves and how it truly moves |
//! | `movers.rs` | the systems that publish it |
//! | `judge.rs` | reads against truth, after the run |
//! | `report.rs` | what the processes tell one another |
//! | `view.rs` | the live view |
mod director;
mod geometry;
mod j2;
mod judge;
mod movers;
mod report;
mod role;
mod track;
mod view;
mod world;

pub(crate) use director::{DIS_BYTES, Summary, direct};
pub(crate) use role::{Role, run};
pub(crate) use view::View;
