//! What the tests of whole sessions share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`program`] | [`Program`]: a peer in a process of its own, told what to do line by line |
//! | [`proxy`] | [`Proxy`](proxy::Proxy): the bad network between processes |
//! | [`soak`] | many processes under torture, their histories, and the judge |
//! | [`wait`] | waiting for what must come about, with time-outs that only a fault reaches |
pub mod program;
pub mod proxy;
pub mod soak;
pub mod wait;

pub use program::Program;
pub use wait::{NEVER, converge, eventually, keep};
