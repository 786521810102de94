//! Known faults that tests put back in, one at a time, to show that they are found.
//!
//! A check that never failed may check nothing. So each rule that keeps replicas equal can be broken on purpose, at the
//! place where it is kept: the code asks [`active`] there. In every program that people run the answer is the constant
//! `false`, and the compiler drops the question. With the feature `switch`, which only the simulator and the models of
//! the atomics turn on, [`with`] puts a fault in for one thread while a closure runs.
//!
//! | file | what it holds |
//! |---|---|
//! | `fault` | [`Fault`]: what can be put in |
//! | `switch` | [`active`]; with the feature also `with` and `without` |
mod fault;
mod switch;

pub use fault::Fault;
pub use switch::active;
#[cfg(feature = "switch")]
pub use switch::{with, without};
