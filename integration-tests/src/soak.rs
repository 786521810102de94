//! Real processes under torture, and a judge that reads what they wrote down.
//!
//! A *director* starts peers in processes of their own, each behind a [proxy](crate::proxy), and for a while does to them
//! what [faults] lists: kills, stops, cuts, storms, full disks. Then it makes everything well again, waits until all
//! replicas are equal, and the [judge] compares the final state with the *histories* that the processes kept.
//!
//! # What must hold
//! A write is *acknowledged* when a flush to another peer succeeded after it. A peer *holds* a write if it made it, if it
//! acknowledged it, or if it joined by the invite of a peer that held it already and was still seen alive afterwards. A
//! write that its author's own journal acknowledged is held by whoever goes on with that journal. A write *must survive*
//! if one of those who hold it lives on to the end. Then:
//! * *lost: 0.* Each write that must survive is in the final state, or a newer one of the same parameter is (by stamp), or a
//!   removal or deletion accounts for its absence. Each event that was acknowledged as delivered is in the log of each peer
//!   that was there when it was sent, was not lost from the sender's view meanwhile, and lives on or logged a later one.
//! * *resurrected: 0.* No entity whose deletion must survive is in the final state, and none that was gone at a peer was
//!   seen there again.
//! * *duplicated: 0.* At each receiver, the numbers of the events of each sender rise strictly.
//! * No stamp was given out twice, the stamps of one life rise, and no value is shown that nobody wrote.
//! * While everything goes on: batches are never torn in snapshots, stamps of a parameter never go back, every process
//!   reads what it wrote.
//! * Once the faults have ended, all replicas and clocks are equal within a bound, memory has stayed within another, and no
//!   process has ended by itself.
pub mod director;
pub mod faults;
pub mod judge;
pub mod record;
pub mod report;
mod seat;
pub mod worker;

pub use director::{Options, run};
pub use report::Summary;

/// Entities that are there from the start: the board of registers, and two that are written to together.
pub const SHARED: [&str; 3] = ["board", "left", "right"];

/// Parameters of the board that all write to.
pub const REGISTERS: [&str; 8] = ["r0", "r1", "r2", "r3", "deep/r4", "deep/r5", "deep/er/r6", "deep/er/r7"];

/// Parameters that are only ever written together.
pub const PAIR: &[(&str, &str)] = &[("left", "a"), ("left", "b"), ("right", "a"), ("right", "deep/b")];
