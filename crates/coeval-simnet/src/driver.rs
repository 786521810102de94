//! The second layer: the real driver, with the real tokio and the real quinn, over a simulated network under paused time.
//!
//! The first layer runs stores and engines and makes up the transport; this one makes up only UDP. Programs of a store,
//! an engine and the driver (pump, links, handshakes, dials, lanes, TLS, QUIC) run beside each other in one runtime on
//! one thread, and their datagrams are delayed, lost, doubled, reordered, cut off and translated by one seed.
//!
//! What repeats: the same seed gives the same times, sizes, ends and fates of all datagrams and the same inputs of all
//! machines, and so the same trace hash. What does not: the bytes. TLS draws its ephemeral keys, and QUIC its connection
//! ids, from the operating system; neither changes a length.
//!
//! | file | what it holds |
//! |---|---|
//! | [`network`] | [`Network`](network::Network): sockets, weather, cuts, address translation |
//! | [`tasks`] | [`Tasks`](tasks::Tasks): the tasks of one process, which can be stopped, killed and counted |
//! | [`program`] | [`Program`](program::Program): a store and an engine; [`Desk`](program::Desk): its admission |
//! | [`world`] | [`World`](world::World): processes that open, fall, stop, leave; what they did |
//! | `rest` | when all is at rest, and why it is not |
//! | [`scene`] | [`run`](scene::run): one seed from its first dial to its verdict |
pub mod network;
pub mod program;
mod rest;
pub mod scene;
pub mod tasks;
pub mod world;
