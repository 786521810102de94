//! The commands, one file each.
//!
//! Each checks what it can before it joins, joins as an ordinary peer, does one thing, and leaves.
pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod demo;
pub(crate) mod get;
pub(crate) mod journal;
pub(crate) mod ls;
pub(crate) mod peers;
pub(crate) mod send;
pub(crate) mod stay;
pub(crate) mod watch;
