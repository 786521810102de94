//! Ids, keys, paths, values and motion data: what coeval stores, before any behavior.
//!
//! | file | what it holds |
//! |---|---|
//! | [`id`] | [`EntityId`], [`PeerId`], [`NodeId`], the well-known [`SIM_ENTITY`] |
//! | [`path`] | [`Key`], [`Path`]: 1 to 16 keys, and their textual form |
//! | [`value`] | [`Value`]: every type a parameter may hold |
//! | [`motion`] | [`Motion`], [`Quat`], [`Ramp`]: kinematic state as one atomic value |
//! | [`sample`] | [`Leaf`], [`SampleMeta`]: a value with the stamp and sim time it was written at |
pub mod id;
pub mod motion;
pub mod path;
pub mod sample;
pub mod value;

pub use id::{EntityId, NodeId, PeerId, SIM_ENTITY};
pub use motion::{Motion, MotionModel, Quat, Ramp};
pub use path::{Key, Path};
pub use sample::{Leaf, SampleMeta};
pub use value::{Matrix, Value};
