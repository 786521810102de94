//! The atomics of coeval, and nothing else: no `unsafe`, no clock, no names of the world above.
//!
//! | type | its one job |
//! |---|---|
//! | [`RingCell`] | hands the newest sample to any number of readers that never block |
//! | [`DirtyBits`] | remembers which cells changed since the consumer last looked |
//! | [`Doorbell`] | wakes a sleeping consumer, and costs nothing while it is awake |
//! | [`Ratchet`] | a counter that only climbs, for the hybrid clock |
//!
//! The writer's path through them is always the same: publish the cell, mark its bit, ring.
//! The consumer's is its mirror: swap the bits out, then read the cells.
//!
//! Every memory order is argued where it stands and model-checked in `tests/loom.rs`:
//!
//! ```text
//! RUSTFLAGS="--cfg coeval_loom" cargo test -p coeval-cell --release --test loom
//! ```

mod dirty;
mod doorbell;
mod ratchet;
mod ring;
mod sync;

pub use dirty::DirtyBits;
pub use doorbell::Doorbell;
pub use ratchet::Ratchet;
pub use ring::{CellWriter, RingCell};
