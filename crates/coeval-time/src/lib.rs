//! Time as coeval knows it: sim time, session wall time, stamps, and the shared clock.
//!
//! | file | what it holds |
//! |---|---|
//! | [`sim`] | [`SimTime`] and [`SimDuration`]: integer nanoseconds on the TAI scale |
//! | [`wall`] | [`WallTime`], [`WallDuration`], [`MonoTime`]: session wall time and the local monotonic clock |
//! | [`civil`] | [`Civil`]: calendar dates in TAI and UTC, printed and read with the scale named |
//! | [`leap`] | [`LeapCoverage`]: the leap-second table and how far it reaches |
//! | [`stamp`] | [`Incarnation`], [`Stamp`], [`EditId`]: the total order of writes |
//! | [`hybrid`] | [`HybridClock`]: issues stamps; the admitted lead |
//! | [`session_wall`] | [`SessionWall`]: session wall time from the monotonic clock |
//! | [`estimator`] | [`PingSample`]: offset and uncertainty from four-timestamp exchanges |
//! | [`edit`] | [`Edit`], [`EditKind`], [`Genesis`]: what the shared clock is folded from |
//! | [`fold`] | [`Fold`]: edits in any order to one exact mapping |
//! | [`segment`] | [`Segment`]: a stretch of that mapping |
//! | `rate` | exact products of rates and nanoseconds |
//! | [`clock`] | [`Clock`]: the fold, published for lock-free reading |
//! | [`change`] | [`ClockChange`]: what changed, when, from what to what |
//! | [`draft`] | [`DraftError`]; run until, step: wishes as edits |
//! | [`timer`] | [`Interval`], [`Deadline`]: timers in sim time |
//! | [`context`] | [`SessionId`], [`Epoch`], [`Direction`], [`Context`]: the time a thread reads and writes at |
//!
//! No function here reads an operating-system clock: every instant comes in as an argument, so that the same
//! code runs under virtual time.
pub mod change;
pub mod civil;
pub mod clock;
pub mod context;
pub mod draft;
pub mod edit;
pub mod estimator;
pub mod fold;
pub mod hybrid;
pub mod leap;
mod rate;
pub mod segment;
pub mod session_wall;
pub mod sim;
pub mod stamp;
pub mod timer;
pub mod wall;

pub use change::{ChangeCause, Changes, ClockChange, ClockPoint};
pub use civil::{Civil, CivilError, CivilScale};
pub use clock::{Clock, ClockState, Inserted, LoggedEdit};
pub use context::{Context, Direction, Epoch, SessionId};
pub use draft::DraftError;
pub use edit::{Edit, EditKind, Genesis};
pub use estimator::PingSample;
pub use fold::{EditError, Fold, MAX_EDIT_LEAD, MAX_EDIT_REACH};
pub use hybrid::{ADMITTED_LEAD, HybridClock, StampError, is_ahead};
pub use leap::LeapCoverage;
pub use segment::{Segment, WaitingStop};
pub use session_wall::{Observed, SessionWall, WallEstimate, WallRole};
pub use sim::{SimDuration, SimTime};
pub use stamp::{EditId, Incarnation, Stamp};
pub use timer::{Deadline, Due, Interval};
pub use wall::{MonoTime, WallDuration, WallTime};
