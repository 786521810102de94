//! How values move between the instants at which they were written: pure mathematics, no clock, no storage.
//!
//! | file | what it holds |
//! |---|---|
//! | [`evolve`] | [`Evolve`]: what a value does with time; implemented for numbers, vectors, `Ramp`, `Motion`, `Value` |
//! | [`models`] | [`extrapolate`]: a `Motion` at another instant, by its own model |
//! | [`orbit`] | [`propagate`]: two-body motion in universal variables; [`Elements`] |
//! | [`interpolate`] | [`between`]: a `Motion` between two samples |
//! | [`policy`] | [`Policy`], [`Moment`], [`Reading`], [`Quality`], [`ReadError`]: what a read asks and answers |
//! | [`select`] | [`read`], [`read_newest`]: the rule for a read at `t` over the samples of one parameter |
//! | [`threshold`] | [`Publisher`]: when a publisher must send; [`lost_since`]: when an author counts as lost |
//!
//! All quantities are SI; conventions are those of `coeval_value::Motion`.
pub mod evolve;
pub mod interpolate;
mod linear;
pub mod models;
pub mod orbit;
pub mod policy;
pub mod select;
pub mod threshold;

pub use evolve::Evolve;
pub use interpolate::between;
pub use models::{ModelError, extrapolate, parent_velocity};
pub use orbit::{Elements, OrbitError, OrbitState, propagate};
pub use policy::{Beyond, Mode, Moment, Policy, Quality, ReadError, Reading, Side, Span};
pub use select::{Sample, Sampled, read, read_newest, read_with};
pub use threshold::{Decision, Publisher, Reason, Thresholds, lost_since};
