//! The atomics of coeval.
