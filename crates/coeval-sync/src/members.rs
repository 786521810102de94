//! Who is in the session: the newest link state of every node, and what follows from all of them.
use crate::graph::Graph;
use coeval_time::{MonoTime, WallDuration};
use coeval_value::NodeId;
use coeval_wire::frame::LinkState;
use std::collections::{BTreeMap, BTreeSet};

/// Most nodes known at once.
const MAX_NODES: usize = 4096;
/// Most bytes in a name, and in an address.
const MAX_TEXT: usize = 256;
/// Most addresses of a node.
const MAX_ADDRESSES: usize = 32;

/// A node that is known.
#[derive(Debug)]
pub(crate) struct Member {
    /// What it last said about itself.
    pub(crate) state: LinkState,
    /// Since when it cannot be reached.
    pub(crate) unreachable_since: Option<MonoTime>,
    /// Whether it was announced and not yet given up.
    pub(crate) present: bool,
}

/// What a change of the table means for the owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Up(NodeId),
    Lost { node: NodeId, left: bool },
}

/// The table of nodes, this one included.
pub(crate) struct Members {
    me: NodeId,
    rows: BTreeMap<NodeId, Member>,
    graph: Graph,
}

impl Members {
    /// A table of this node alone.
    pub(crate) fn new(state: LinkState) -> Self {
        let me = state.node;
        let member = Member { state, unreachable_since: None, present: false };
        let mut new = Self { me, rows: BTreeMap::from([(me, member)]), graph: Graph::default() };
        new.rebuild();
        new
    }

    fn rebuild(&mut self) {
        let rows = self.rows.values().filter(|m| !m.state.left || m.state.node == self.me);
        self.graph = Graph::new(rows.map(|m| (m.state.node, m.state.observer, m.state.links.as_slice())));
    }

    /// This node's own state, changed and with a new version.
    pub(crate) fn revise(&mut self, change: impl FnOnce(&mut LinkState)) -> Option<LinkState> {
        let row = self.rows.get_mut(&self.me)?;
        let before = row.state.clone();
        change(&mut row.state);
        if row.state == before {
            return None;
        }
        row.state.version += 1;
        let state = row.state.clone();
        self.rebuild();
        Some(state)
    }

    /// This node has a new name: what it now says about itself.
    pub(crate) fn rename(&mut self, state: LinkState) {
        self.rows.remove(&self.me);
        self.me = state.node;
        self.rows.insert(self.me, Member { state, unreachable_since: None, present: false });
        self.rebuild();
    }

    /// Takes what a node says about itself; whether it is news.
    pub(crate) fn learn(&mut self, state: LinkState, now: MonoTime) -> bool {
        let sane = state.name.len() <= MAX_TEXT
            && state.addresses.len() <= MAX_ADDRESSES
            && state.addresses.iter().all(|a| a.len() <= MAX_TEXT)
            && state.links.len() <= MAX_NODES;
        if !sane || state.node == self.me {
            return false;
        }
        let full = self.rows.len() >= MAX_NODES;
        match self.rows.get_mut(&state.node) {
            Some(row) if row.state.version >= state.version => return false,
            Some(row) => row.state = state,
            None if full => return false,
            None => {
                let node = state.node;
                self.rows.insert(node, Member { state, unreachable_since: Some(now), present: false });
            }
        }
        self.rebuild();
        true
    }

    /// Works out who can be reached, who is new, and who is lost.
    pub(crate) fn refresh(
        &mut self,
        now: MonoTime,
        lost_after: WallDuration,
        forget: WallDuration,
    ) -> Vec<Presence> {
        let reached: BTreeSet<NodeId> = self.graph.distances(self.me).keys().copied().collect();
        let mut out = Vec::new();
        let mut forgotten = Vec::new();
        for (&node, row) in self.rows.iter_mut().filter(|(node, _)| **node != self.me) {
            if reached.contains(&node) && !row.state.left {
                row.unreachable_since = None;
                if !std::mem::replace(&mut row.present, true) {
                    out.push(Presence::Up(node));
                }
                continue;
            }
            let away = now.since(*row.unreachable_since.get_or_insert(now));
            if row.present && (row.state.left || away >= lost_after) {
                row.present = false;
                out.push(Presence::Lost { node, left: row.state.left });
            }
            let keep = if row.state.left { lost_after } else { forget };
            if away >= keep {
                forgotten.push(node);
            }
        }
        for node in forgotten {
            self.rows.remove(&node);
        }
        out
    }

    /// When [`refresh`](Self::refresh) finds a lost node next if nothing else happens.
    pub(crate) fn next(&self, lost_after: WallDuration) -> Option<MonoTime> {
        let waiting = self.rows.values().filter(|row| row.present);
        waiting.filter_map(|row| row.unreachable_since).map(|since| since.saturating_add(lost_after)).min()
    }

    /// Drops rows of lost nodes that `addresses` now belong to someone else.
    pub(crate) fn supersede(&mut self, node: NodeId, addresses: &[String]) {
        let stale = |row: &Member| {
            row.state.node != node
                && !row.present
                && row.state.addresses.iter().any(|a| addresses.contains(a))
        };
        let me = self.me;
        self.rows.retain(|id, row| *id == me || !stale(row));
    }

    /// Who is linked to whom.
    pub(crate) fn graph(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// All rows but this node's own.
    pub(crate) fn others(&self) -> impl Iterator<Item = &Member> {
        self.rows.values().filter(|row| row.state.node != self.me)
    }

    /// A row.
    pub(crate) fn get(&self, node: NodeId) -> Option<&Member> {
        self.rows.get(&node)
    }

    /// Whether a node is in the session: announced, and not lost since.
    pub(crate) fn is_present(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(|row| row.present)
    }

    /// Whether a node may come back as the one it was, and then wants the answers to its commands.
    pub(crate) fn awaits_replies(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(|row| !row.state.left)
    }

    /// The states of this node and of all that can be reached.
    pub(crate) fn reachable(&self) -> impl Iterator<Item = &LinkState> {
        self.rows.values().filter(|row| row.unreachable_since.is_none()).map(|row| &row.state)
    }

    /// Those who are in the session, without this node.
    pub(crate) fn present(&self) -> impl Iterator<Item = NodeId> {
        self.others().filter(|row| row.present).map(|row| row.state.node)
    }

    /// An order-independent sum over the states of all that can be reached: equal tables, equal sums.
    pub(crate) fn sum(&self) -> u64 {
        let mix = |node: NodeId, version: u64| {
            let mut x = node.incarnation.0 ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // The finalizer of MurmurHash3: every input bit reaches every output bit.
            x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            x ^ (x >> 33)
        };
        self.reachable().fold(0, |sum, state| sum.wrapping_add(mix(state.node, state.version)))
    }
}
