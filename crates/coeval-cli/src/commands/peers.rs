//! `coeval peers`: who is in the session, and how well they are connected.
use crate::args::PeersArgs;
use crate::errors::Outcome;
use crate::output::{Output, bytes, span};
use crate::session::Session;
use coeval::{PeerInfo, PeerState};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};

/// How long a newcomer waits for round trips to be measured.
const MEASURING: Duration = Duration::from_millis(1_500);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Lists the other peers.
pub(crate) fn run(args: &PeersArgs, output: Output) -> Outcome {
    let session = Session::join(&args.membership, "peers")?;
    let peers = measured(&session);
    let wall = session.peer.wall();
    let uncertainty = wall.uncertainty.map(|bound| bound.as_secs_f64());
    if output.is_json() {
        output.json(&json!({
            "me": {
                "node": session.peer.node().to_string(),
                "name": session.peer.name(),
                "clock_offset_s": wall.offset_to_os.as_secs_f64(),
                "clock_uncertainty_s": uncertainty,
            },
            "peers": peers.iter().map(peer_json).collect::<Vec<_>>(),
        }))?;
    } else {
        let rows: Vec<_> = peers.iter().map(cells).collect();
        output.table(
            [
                "NODE",
                "NAME",
                "STATE",
                "RTT",
                "CLOCK",
                "UPDATES OUT/IN",
                "BYTES OUT/IN",
                "CONFLATED",
                "WAITING",
            ],
            &rows,
        )?;
        let known =
            uncertainty.map_or_else(|| "not yet measured".to_owned(), |bound| format!("± {}", span(bound)));
        output.line(format!(
            "session time is this machine's clock {:+.6} s, {known}",
            wall.offset_to_os.as_secs_f64()
        ))?;
    }
    session.leave();
    Ok(())
}

/// The table of peers, once it holds a round trip for each link, or after a while.
fn measured(session: &Session) -> Vec<PeerInfo> {
    let until = Instant::now() + MEASURING.min(session.timeout);
    let mut before = 0;
    loop {
        let peers = session.peer.peers();
        let linked = |peer: &PeerInfo| !matches!(peer.state, PeerState::Reachable | PeerState::Unreachable);
        let settled =
            peers.len() == before && peers.iter().filter(|peer| linked(peer)).all(|peer| peer.rtt.is_some());
        if settled && !peers.is_empty() || Instant::now() >= until {
            return peers;
        }
        before = peers.len();
        std::thread::sleep(LOOK_EVERY);
    }
}

fn state(state: PeerState) -> &'static str {
    match state {
        PeerState::Linked => "linked",
        PeerState::CatchingUp => "catching up",
        PeerState::Lagging => "lagging",
        PeerState::Reachable => "through others",
        PeerState::Unreachable => "unreachable",
    }
}

fn cells(peer: &PeerInfo) -> [String; 9] {
    let dash = || "-".to_owned();
    [
        peer.node.short(),
        if peer.observer { format!("{} (observer)", peer.name) } else { peer.name.clone() },
        state(peer.state).to_owned(),
        peer.rtt.map_or_else(dash, |rtt| span(rtt.as_secs_f64())),
        match (peer.clock_offset, peer.clock_uncertainty) {
            (Some(offset), Some(bound)) => {
                format!("{} ± {}", span(offset.as_secs_f64()), span(bound.as_secs_f64()))
            }
            _ => dash(),
        },
        format!("{}/{}", peer.updates_sent, peer.updates_received),
        format!("{}/{}", bytes(peer.bytes_sent), bytes(peer.bytes_received)),
        peer.conflated.to_string(),
        peer.waiting.to_string(),
    ]
}

fn peer_json(peer: &PeerInfo) -> Json {
    json!({
        "node": peer.node.to_string(),
        "name": peer.name,
        "state": state(peer.state),
        "observer": peer.observer,
        "rtt_s": peer.rtt.map(|rtt| rtt.as_secs_f64()),
        "clock_offset_s": peer.clock_offset.map(|offset| offset.as_secs_f64()),
        "clock_uncertainty_s": peer.clock_uncertainty.map(|bound| bound.as_secs_f64()),
        "updates_sent": peer.updates_sent,
        "updates_received": peer.updates_received,
        "bytes_sent": peer.bytes_sent,
        "bytes_received": peer.bytes_received,
        "conflated": peer.conflated,
        "waiting": peer.waiting,
        "lagging": peer.state == PeerState::Lagging,
    })
}
