//! Frames and codec of the coeval protocol.
//!
//! | file | what it holds |
//! |---|---|
//! | [`body`] | packed states, definitions and entries: the hot part, encoded once for all links |
//! | [`checkpoint`] | [`Checkpoint`]: a world's content as bytes, for files |
//! | [`frame`] | [`Frame`]: what one message carries; version, kinds, limits |
pub mod body;
pub mod checkpoint;
pub mod frame;
mod packed;

pub use body::{BodyError, BodyLimits, MAX_BODY};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use frame::{Frame, FrameError, Interest, MAX_FRAME, PROTOCOL_VERSION, Reply};
