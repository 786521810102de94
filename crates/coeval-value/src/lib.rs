//! Ids, keys, paths, values and motion data: what coeval stores, before any behavior.
//!
//! | file | what it holds |
//! |---|---|
//! | [`id`] | [`EntityId`], [`PeerId`], [`NodeId`], the well-known [`SIM_ENTITY`] |
//! | [`path`] | [`Key`], [`Path`]: 1 to 16 keys, and their textual form |
//! | [`value`] | [`Value`]: every type a parameter may hold, compared by bits; [`Matrix`] |
//! | [`kind`] | the stable numbers and names of the value types |
//! | [`limits`] | [`Limits`]: how large a value may be |
//! | [`typed`] | [`Parameter`]: the Rust types a parameter is read and written as; exact number conversion in `number` |
//! | [`words`] | the word form of small values, which the concurrent cell holds |
//! | [`mismatch`] | [`TypeMismatch`]: the error of a read as another type |
//! | [`motion`], [`quat`] | [`Motion`], [`Ramp`], [`Quat`]: kinematic state as one atomic value |
//! | [`conventions`] | named conversions from and to other worlds' axes, units and angles |
//! | `maths` | conversions to `mint`, `glam`, `nalgebra` |
//! | [`sample`] | [`Leaf`], [`SampleMeta`]: a value with the stamp and sim time it was written at |
//! | `serial`, `display` | serde with bounds; printing for people |
//!
//! # Conventions
//!
//! SI units: meters, seconds, radians. Quaternions are Hamilton and unit, with fields named `x, y, z, w`, and rotate
//! body-frame vectors into the parent frame (`parent_from_body`). Angular velocity is of the body relative to its
//! parent, in body axes. Matrices are row-major.
pub mod conventions;
mod display;
pub mod id;
pub mod kind;
pub mod limits;
mod maths;
pub mod mismatch;
pub mod motion;
mod number;
pub mod path;
pub mod quat;
pub mod sample;
mod serial;
pub mod typed;
pub mod value;
pub mod words;

pub use id::{EntityId, IdError, NodeId, PeerId, SIM_ENTITY};
pub use limits::{LimitError, Limits};
pub use mismatch::TypeMismatch;
pub use motion::{Motion, MotionModel, Ramp};
pub use path::{Key, Path, PathError};
pub use quat::Quat;
pub use sample::{Leaf, SampleMeta};
pub use typed::Parameter;
pub use value::{Matrix, ShapeError, Value};
pub use words::{MAX_INLINE_WORDS, decode_words, encode_words};
