//! Peers in threads of this process.
use coeval::{Conditioner, Peer};
use coeval_integration_tests::{Program, eventually};
use std::time::Duration;

/// A session and its first peer.
pub(crate) fn host(name: &str) -> Peer {
    Peer::host(name).peer_name(name).open().expect("hosting works")
}

/// Joins `host`'s session.
pub(crate) fn join(host: &Peer, name: &str) -> Peer {
    let invite = host.invite().expect("an invite");
    Peer::join(invite).peer_name(name).timeout(Duration::from_secs(30)).open().expect("joining works")
}

/// A host and joiners with links between all of them.
pub(crate) fn mesh<const N: usize>(names: [&str; N]) -> [Peer; N] {
    let first = host(names[0]);
    let peers: [Peer; N] =
        std::array::from_fn(|i| if i == 0 { first.clone() } else { join(&first, names[i]) });
    eventually("a full mesh", || peers.iter().all(|peer| direct(peer) == N - 1));
    peers
}

/// How many peers have a direct link with `peer`.
pub(crate) fn direct(peer: &Peer) -> usize {
    peer.peers().iter().filter(|other| other.state == coeval::PeerState::Linked).count()
}

/// A network that delays by `ms` and loses `share` of what is sent.
pub(crate) fn bad_net(ms: u64, share: f64) -> Conditioner {
    Conditioner { delay: Duration::from_millis(ms), loss: share, ..Conditioner::default() }
}

/// Nothing gets through.
pub(crate) fn cut() -> Conditioner {
    Conditioner { loss: 1.0, ..Conditioner::default() }
}

/// The scripted program.
pub(crate) const PEER: &str = env!("CARGO_BIN_EXE_peer");

/// A program that hosts.
pub(crate) fn host_program(name: &str) -> Program {
    Program::start(PEER, &["host", &format!("name={name}")])
}

/// A program that joins by `invite`.
pub(crate) fn join_program(invite: &str, name: &str) -> Program {
    Program::start(PEER, &["join", invite, &format!("name={name}")])
}
