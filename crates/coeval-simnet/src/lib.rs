//! Whole meshes of real peers on one thread, under virtual time and a seeded network.
//!
//! | file | what it holds |
//! |---|---|
//! | [`net`] | [`Net`](net::Net): links with delay, jitter, loss, duplication, reordering, bandwidth, partitions; crashes and restarts |
//! | [`timepiece`] | [`Timepiece`](timepiece::Timepiece): a machine's monotonic clock, OS clock and session wall time, wrong on purpose |
//! | [`program`] | [`Program`](program::Program): a real store under a real engine, as a [`Machine`](coeval_sync::Machine) of the network |
//! | [`mesh`] | [`Mesh`](mesh::Mesh): programs in a topology; writes, crashes, restarts; when it is at rest |
//! | [`ledger`] | [`Ledger`](ledger::Ledger): every batch that was taken, and what replaying them shows |
//! | [`workload`] | [`Workload`](workload::Workload): seeded operations of every kind |
//! | [`scenario`] | [`Scenario`](scenario::Scenario): all that is done to a mesh, made from one seed |
//! | [`check`] | [`Check`](check::Check): the invariants by name, and those that hold at any time |
//! | [`finals`] | what must hold at rest |
//! | [`run`] | [`run`](run::run): one seed from its first link to its verdict |
pub mod check;
pub mod finals;
pub mod ledger;
pub mod mesh;
pub mod net;
pub mod program;
pub mod run;
pub mod scenario;
pub mod timepiece;
pub mod workload;
