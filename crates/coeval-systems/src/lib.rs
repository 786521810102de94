//! Behavior over a coeval session: systems, and the sim config that declares what they work on.
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | [`SimConfig`]: entities, initial parameters, systems, genesis, from TOML |
//! | [`system`] | [`System`]: `load`, `init`, `update`, `end`; [`Scope`] and [`Step`] |
//! | [`runner`] | [`Runner`]: one thread per system instance, each at its own rate |
//! | `pace` | when updates are due; what instances wait for together |
pub mod config;
mod pace;
pub mod runner;
pub mod system;

pub use config::{ConfigError, SimConfig};
pub use runner::{Ended, Runner, Running, StartError, StopError};
pub use system::{Scope, Step, System, SystemError};
