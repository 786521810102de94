//! Whole meshes of real peers on one thread, under virtual time and a seeded network.
//!
//! | file | what it holds |
//! |---|---|
//! | [`net`] | [`Net`](net::Net): links with delay, jitter, loss, duplication, reordering, bandwidth, partitions; what was done is counted by [`FaultKind`](net::FaultKind) |
//! | [`timepiece`] | [`Timepiece`](timepiece::Timepiece): a machine's monotonic clock, OS clock and session wall time, wrong on purpose |
//! | [`program`] | [`Program`](program::Program): a real store under a real engine, as a [`Machine`](coeval_sync::Machine) of the network |
//! | [`mesh`] | [`Mesh`](mesh::Mesh): programs in a layout; writes, crashes, leaves, restarts; when it is at rest |
//! | [`ledger`] | [`Ledger`](ledger::Ledger): every batch that was taken, and what replaying them shows |
//! | [`workload`] | [`Workload`](workload::Workload): seeded operations of every kind |
//! | [`scenario`] | [`Scenario`](scenario::Scenario): all that is done to a mesh, made from one seed, as [`Action`](scenario::Action)s |
//! | [`check`] | [`Check`](check::Check): **the table of invariants** |
//! | [`mutants`] | **the table of faults** that are put in on purpose, with the seed and the check that find each |
//! | `promises` | what holds at any time between two replicas |
//! | `bystander` | a thread that runs in the middle of what a store does |
//! | `keeping` | a program's journal, on the simulated disk of its machine |
//! | [`witness`] | what a reader of one replica finds at any time |
//! | [`finals`] | what must hold at rest |
//! | [`run`] | [`run`](run::run): one seed from its first link to its verdict |
//! | [`shrink`] | a failing scenario made small |
//! | [`driver`] | the second layer: programs under the real driver, with tokio and quinn, over a simulated UDP network |
mod bystander;
pub mod check;
pub mod driver;
pub mod finals;
mod keeping;
pub mod ledger;
pub mod mesh;
pub mod mutants;
pub mod net;
pub mod program;
mod promises;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod timepiece;
pub mod witness;
pub mod workload;
