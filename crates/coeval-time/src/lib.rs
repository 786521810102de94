//! Time as coeval knows it: sim time, session wall time, stamps, and the shared clock.
//!
//! | file | what it holds |
//! |---|---|
//! | [`sim`] | [`SimTime`] and [`SimDuration`]: integer nanoseconds on the TAI scale |
//! | [`wall`] | [`WallTime`], [`WallDuration`], [`MonoTime`]: session wall time and the local monotonic clock |
//! | [`stamp`] | [`Incarnation`], [`Stamp`], [`EditId`]: the total order of writes |
//! | [`edit`] | [`Edit`], [`EditKind`], [`Genesis`]: what the shared clock is folded from |
//! | [`context`] | [`SessionId`], [`Epoch`], [`Direction`], [`Context`]: the time a thread reads and writes at |
//!
//! No function here reads an operating-system clock: every instant comes in as an argument, so that the same
//! code runs under virtual time.
pub mod context;
pub mod edit;
pub mod sim;
pub mod stamp;
pub mod wall;

pub use context::{Context, Direction, Epoch, SessionId};
pub use edit::{Edit, EditKind, Genesis};
pub use sim::{SimDuration, SimTime};
pub use stamp::{EditId, Incarnation, Stamp};
pub use wall::{MonoTime, WallDuration, WallTime};
