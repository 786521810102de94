//! The QUIC driver of coeval: it runs a sans-IO [`Machine`](coeval_sync::Machine) on a thread of its own.
//!
//! | file | what it holds |
//! |---|---|
//! | [`clock`] | [`MonoClock`]: the process's monotonic clock |
//! | [`identity`] | [`Identity`]: the Ed25519 key pair of an installation |
//! | [`invite`] | [`Invite`]: what a program needs to join, and its textual form |
//! | [`admission`] | [`Admission`], [`Refusal`], [`SessionInfo`]: who may link, decided by the session's state |
//! | `handshake` | the exchange of proofs on a new connection |
//! | `tls` | TLS 1.3 with raw Ed25519 keys on both sides |
//! | [`config`] | [`Config`]: addresses, names, limits, time-outs |
//! | [`driver`] | [`spawn`], [`Io`]: the handle to the I/O thread |
//! | [`dial`] | [`Target`], [`Dialing`], [`DialError`]: making a link |
//! | [`bell`] | [`Bell`]: wakes the I/O thread, cheaply, from any thread |
//! | [`conditioner`] | [`Conditioner`], [`LinkConditioner`]: delay, jitter, loss, duplication, bandwidth, partitions |
//! | [`simulated`] | the driver inside a simulation: many on one thread, over a network of its making, under paused time |
//! | `pump`, `link`, `lane`, `socket` | the loop on the I/O thread, the tasks of a link, framing, the wrapped UDP socket |
//!
//! # Threat model
//! Both ends of a link prove their keys (TLS 1.3) and that they belong to the session (an HMAC over a TLS exporter
//! value, so a proof is worthless on any other connection; secrets are never sent in the clear, and the session key
//! only to a joiner that proved an invite). A link peer vouches for what it relays.
pub mod admission;
pub mod bell;
pub mod clock;
pub mod conditioner;
pub mod config;
pub mod dial;
pub mod driver;
mod handshake;
pub mod identity;
pub mod invite;
mod lane;
mod link;
mod pump;
pub mod simulated;
mod socket;
mod tls;

pub use admission::{Admission, Refusal, RefusalCode, Secret, SessionInfo};
pub use bell::Bell;
pub use clock::MonoClock;
pub use conditioner::{Conditioner, ConditionerError, LinkConditioner};
pub use config::{Config, Congestion, PROTOCOL};
pub use dial::{DialError, Dialed, Dialing, Target};
pub use driver::{BindError, Io, IoStats, Stopped, spawn};
pub use identity::{Identity, IdentityError};
pub use invite::{Invite, InviteError, InviteId};
