//! Asks the others, and the journal, what they have, and writes down what they acknowledged.
use super::Desk;
use crate::soak::record::{JOURNAL, Life, Record};
use coeval::{NodeId, PeerState};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long one peer is waited for before the next is asked.
const PATIENCE: Duration = Duration::from_millis(150);
const PAUSE: Duration = Duration::from_millis(100);

/// Asks until the process ends.
pub(super) fn run(desk: &Desk) {
    while !desk.is_ending() {
        std::thread::sleep(PAUSE);
        // Read before asking: what a flush covers is at least what was written by now.
        let round = desk.round.load(Ordering::Acquire);
        let peers = desk.peer.peers();
        let linked = peers.iter().filter(|peer| peer.state == PeerState::Linked).map(|peer| peer.node);
        let linked: Vec<NodeId> = linked.collect();
        // All at once if they are all well, and the journal with them, which has it only if all have; else one by one.
        let all = desk.peer.flush(PATIENCE).is_ok();
        let has = |node: &&NodeId| desk.peer.flush_to(&[**node], PATIENCE).is_ok();
        let mut by: Vec<Life> = linked.iter().filter(has).map(|node| node.incarnation.0).collect();
        by.extend((all && desk.assignment.journal.is_some()).then_some(JOURNAL));
        if !by.is_empty() {
            desk.history.add(&Record::Acked { round, by });
        }
    }
}
