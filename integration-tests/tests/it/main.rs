//! Real peers over real QUIC, in processes of their own and in threads.
//!
//! | file | what it tries |
//! |---|---|
//! | `processes` | programs that share a world, are killed, stopped, started again |
//! | `networks` | loss, delay, partitions, garbage |
//! | `clock` | one sim time everywhere |
//! | `motion` | what remote readers see of things that move |
//! | `events` | exactly once, in order, nobody else's |
//! | `batches` | never torn |
//! | `sessions` | who is who, what a world starts with, several writers |
//! | `journal` | peers that keep a journal, however they end |
//! | `worlds` | checkpoints, saved and restored |
//! | `misuse` | bad input, wrong order, wrong session |
mod batches;
mod clock;
mod common;
mod events;
mod journal;
mod misuse;
mod motion;
mod networks;
mod processes;
mod sessions;
mod worlds;
