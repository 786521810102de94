//! Waiting for what must come about. Time-outs are generous: only a fault reaches them.
use coeval::Peer;
use std::time::{Duration, Instant};

/// How long anything may take before it counts as never.
pub const NEVER: Duration = Duration::from_secs(40);

/// Waits until `ready` holds; panics with `what` when it never does.
pub fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + NEVER;
    while !ready() {
        assert!(Instant::now() < deadline, "never came about: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Looks for `time` that `holds` stays true; panics with `what` when it does not.
pub fn keep(what: &str, time: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        assert!(holds(), "did not last: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until all peers hold the same world, with all that was written before the call.
pub fn converge(peers: &[&Peer]) {
    eventually("equal digests", || {
        let digests: Vec<_> = peers.iter().map(|peer| peer.digest()).collect();
        digests.windows(2).all(|pair| pair[0] == pair[1])
    });
}
