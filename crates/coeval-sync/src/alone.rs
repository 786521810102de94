//! Whether anybody is linked, and what somebody has acknowledged.
use crate::Sync;
use coeval_merge::Replica;

impl<R: Replica> Sync<R> {
    /// Whether no link is up.
    pub fn is_alone(&self) -> bool {
        self.links.is_empty()
    }

    /// The newest position that a linked peer has acknowledged; 0 if none has.
    pub fn acked_by_any(&self) -> u64 {
        self.links.values().map(|link| link.out.acked).max().unwrap_or(0)
    }
}
