//! The command `coeval` in real processes: sessions, and bad input.
mod bad_input;
mod common;
mod session;
