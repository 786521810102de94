//! Dialing nodes that are known but not linked, so that the session becomes a full mesh and outlives its host.
use crate::Sync;
use crate::io::Effect;
use crate::notice::Notice;
use coeval_merge::Replica;
use coeval_time::{MonoTime, WallDuration};
use coeval_value::NodeId;
use std::collections::BTreeMap;

/// Wait before the lesser node dials, and before the greater one does: mostly one dial suffices.
const FIRST: [WallDuration; 2] = [WallDuration::from_millis(50), WallDuration::from_millis(1000)];
/// Longest wait between two dials of one node.
const LONGEST: WallDuration = WallDuration::from_secs(30);
/// A dial that was not answered by then is given up.
const UNANSWERED: WallDuration = WallDuration::from_secs(15);
/// A joiner dials others when it is caught up, or after this long: what it holds by then need not be compared.
const SETTLE: WallDuration = WallDuration::from_secs(3);

struct Attempt {
    due: MonoTime,
    wait: WallDuration,
}

/// Nodes to dial.
#[derive(Default)]
pub(crate) struct Dialer {
    attempts: BTreeMap<NodeId, Attempt>,
    joined: Option<MonoTime>,
}

impl Dialer {
    /// A link to a node is up.
    pub(crate) fn linked(&mut self, node: NodeId) {
        self.attempts.remove(&node);
    }

    /// When the next dial is due.
    pub(crate) fn next(&self) -> Option<MonoTime> {
        self.attempts.values().map(|attempt| attempt.due).min()
    }
}

impl<R: Replica> Sync<R> {
    /// Notes which nodes are to be dialed, and forgets those that are not any more.
    pub(crate) fn plan_dials(&mut self) {
        if !self.config.mesh {
            return;
        }
        if self.links.is_empty() && self.dialer.joined.is_none() {
            return;
        }
        let joined = *self.dialer.joined.get_or_insert(self.now);
        let settled = self.caught_up() || self.now.since(joined) >= SETTLE;
        let linked = |node: NodeId| self.links.values().any(|link| link.peer.node == node);
        let wanted: Vec<NodeId> = self
            .members
            .others()
            .filter(|row| !row.state.left && !row.state.addresses.is_empty() && !linked(row.state.node))
            .map(|row| row.state.node)
            .collect();
        self.dialer.attempts.retain(|node, _| wanted.binary_search(node).is_ok());
        for node in wanted {
            if !self.dialer.attempts.contains_key(&node) {
                let wait = FIRST[usize::from(node < self.me.node)];
                let settle = if settled { self.now } else { joined.saturating_add(SETTLE) };
                let due = settle.saturating_add(self.jitter(wait));
                self.dialer.attempts.insert(node, Attempt { due, wait });
            }
        }
    }

    /// Dials whom it is time to dial.
    pub(crate) fn dial_if_due(&mut self) {
        let due: Vec<NodeId> =
            self.dialer.attempts.iter().filter(|(_, a)| a.due <= self.now).map(|(node, _)| *node).collect();
        for node in due {
            let addresses = self.members.get(node).map(|row| row.state.addresses.clone()).unwrap_or_default();
            self.out.push(Effect::Dial { node, addresses });
            if let Some(attempt) = self.dialer.attempts.get_mut(&node) {
                attempt.due = self.now.saturating_add(UNANSWERED);
            }
        }
    }

    /// A dial failed: tries again later, and later each time.
    pub(crate) fn dial_failed(&mut self, node: NodeId) {
        let Some(wait) = self.dialer.attempts.get(&node).map(|attempt| attempt.wait) else { return };
        let longer = WallDuration::from_nanos(wait.as_nanos().saturating_mul(2)).min(LONGEST);
        let due = self.now.saturating_add(self.jitter(longer));
        self.dialer.attempts.insert(node, Attempt { due, wait: longer });
    }

    /// This replica has caught up with a node.
    pub(crate) fn settled(&mut self, node: NodeId) {
        let all = self.caught_up();
        for attempt in self.dialer.attempts.values_mut().filter(|_| all) {
            attempt.due = attempt.due.min(self.now.saturating_add(attempt.wait));
        }
        self.notices.push_back(Notice::CaughtUp { node });
    }
}
