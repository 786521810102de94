//! The engine in a small world of virtual time: real replicas, links that are reset, datagrams that get lost.
mod converge;
mod events;
mod fork;
mod links;
mod log;
mod members;
mod repair;
mod units;
mod world;
mod worlds;
