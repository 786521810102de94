//! One entity's parameters as a tree of mergeable nodes: what a store embeds, generic over where leaves live.
//!
//! Per path there is a *leaf* (stamp, value), a *floor* (the newest clear here) and a *kind* (the newest child write
//! ever below, also of children since removed, or the newest explicit map write). With
//!
//! - `clear(p)` = the newer of floor and own leaf's stamp (a leaf is an implied clear),
//! - `g(p)` = the newest clear of `p` and of all its ancestors,
//! - `K(p)` = the newest of the kind of `p` and of the leaves and kinds of all its descendants,
//!
//! a node shows its leaf iff the leaf's stamp is at least `g(p)` and newer than `K(p)`; otherwise it shows as a map
//! iff `K(p) >= g(p)`. (No normal-form batch makes a leaf tie with `K`; the map wins there so that even a hostile
//! peer's fragments converge.)
//!
//! Every join leaves the touched part of the tree *settled*:
//!
//! - a leaf is held iff it shows: one that is older than `g` is dropped, one that is hidden by `K` becomes a floor
//!   (its implied clear), and the stamp of either is folded into its parent's kind;
//! - a kind is held iff it is at least `g`: a dominated one is folded into its parent's kind;
//! - a floor is held iff it is newer than the clears above it and than its own leaf.
//!
//! Stamps of leaves that show are *not* written into the ancestors' kinds; `K` is derived. So a cell may publish a
//! newer leaf over one that shows without telling the tree.
use crate::NodeState;
use crate::state::replaces;
use coeval_faults::{Fault, active};
use coeval_time::{Incarnation, Stamp};
use coeval_value::{Leaf, Path, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// What readers of one node see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Visibility {
    /// Nothing.
    #[default]
    Hidden,
    /// A map.
    Map,
    /// The leaf that the store holds.
    Leaf {
        /// No child nodes exist: a newer leaf may be published without touching the tree.
        exclusive: bool,
    },
}

/// Where the leaf of one node lives. Called under the mutex that guards the tree, except that the store itself may
/// [`write`](Self::write) to a leaf whose visibility is `Leaf { exclusive: true }` at any time.
pub trait LeafStore {
    /// The stamp of the leaf held; [`Stamp::NONE`] if none.
    fn stamp(&self) -> Stamp;
    /// The leaf held.
    fn leaf(&self) -> Option<Leaf>;
    /// Publishes `leaf` if it is newer than what is held; says whether it did. Compares under the cell's own lock.
    fn write(&mut self, leaf: Leaf) -> bool;
    /// If the leaf held is older than `clear`, forgets it for ever and returns its stamp.
    fn clear_below(&mut self, clear: Stamp) -> Option<Stamp>;
    /// What readers see from now on. Before any step that could hide a leaf the tree makes it non-exclusive, so
    /// that fast writers fall back to the mutex.
    fn set_visibility(&mut self, visibility: Visibility);
}

/// What a [`Tree::join`] did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JoinReport {
    /// Stored state or visibility changed somewhere.
    pub changed: bool,
    /// The fragment's leaf lost to something newer: a write, a clear, a child, or the entity's deletion.
    pub superseded: bool,
    /// Nodes whose stored state or visibility changed, in path order: to be marked dirty. Whoever joins the same
    /// fragment folds it into other nodes in the same way. A node whose state [is empty](NodeState::is_empty) need not be
    /// sent.
    pub touched: Vec<Path>,
}

#[derive(Debug)]
struct Node<L> {
    leaf: L,
    floor: Stamp,
    kind: Stamp,
    visibility: Visibility,
    has_children: bool,
}

/// The parameters of one entity. See the [module](self) for the rule.
#[derive(Debug)]
pub struct Tree<L> {
    nodes: BTreeMap<Path, Node<L>>,
    veiled: bool,
    dead: bool,
}

impl<L> Default for Tree<L> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new(), veiled: false, dead: false }
    }
}

impl<L: LeafStore> Node<L> {
    fn clear(&self) -> Stamp {
        self.floor.max(self.leaf.stamp())
    }

    fn state(&self) -> NodeState {
        NodeState { leaf: self.leaf.leaf(), floor: self.floor, kind: self.kind }
    }

    /// What must stay equal for the node to count as untouched.
    fn mark(&self) -> (Stamp, Stamp, Stamp, Visibility) {
        (self.leaf.stamp(), self.floor, self.kind, self.visibility)
    }

    /// Sends fast writers to the mutex; from here on the leaf's stamp stands still.
    fn freeze(&mut self, veiled: bool) {
        if self.visibility == (Visibility::Leaf { exclusive: true }) {
            self.see(Visibility::Leaf { exclusive: false }, veiled);
        }
    }

    fn see(&mut self, visibility: Visibility, veiled: bool) {
        if self.visibility != visibility {
            self.visibility = visibility;
            if !veiled {
                self.leaf.set_visibility(visibility);
            }
        }
    }

    /// Forgets the leaf whatever its stamp.
    fn forget(&mut self) {
        let held = self.leaf.stamp();
        if !held.is_none() {
            self.leaf.clear_below(after(held));
        }
    }
}

impl<L: LeafStore> Tree<L> {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// The leaf store of `path`, made with `make` if it is not there, like those of its ancestors. State does not
    /// change.
    pub fn ensure(&mut self, path: &Path, make: &mut dyn FnMut(&Path) -> L) -> &L {
        if !self.nodes.contains_key(path) {
            let mut at = Some(path.clone());
            let mut below = false;
            while let Some(here) = at {
                if let Some(node) = self.nodes.get_mut(&here) {
                    node.freeze(self.veiled);
                    node.has_children = true;
                    break;
                }
                let mut leaf = make(&here);
                leaf.set_visibility(Visibility::Hidden);
                let node = Node {
                    leaf,
                    floor: Stamp::NONE,
                    kind: Stamp::NONE,
                    visibility: Visibility::Hidden,
                    has_children: below,
                };
                at = here.parent();
                self.nodes.insert(here, node);
                below = true;
            }
        }
        &self.nodes[path].leaf
    }

    /// The leaf store of `path`, if its node exists.
    pub fn get(&self, path: &Path) -> Option<&L> {
        self.nodes.get(path).map(|n| &n.leaf)
    }

    /// What the tree last made visible at `path`, not counting a veil; [`Visibility::Hidden`] if no node exists.
    pub fn visibility(&self, path: &Path) -> Visibility {
        self.nodes.get(path).map_or(Visibility::Hidden, |n| n.visibility)
    }

    /// The leaf stores of the nodes below `path`, in path order.
    pub fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a L> {
        let parent = self.nodes.get(path).filter(|node| node.has_children);
        let span = (Bound::Excluded(path), Bound::Unbounded);
        let after = parent.map(|_| self.nodes.range::<Path, _>(span)).into_iter().flatten();
        after.take_while(|(at, _)| path.contains(at)).map(|(_, node)| &node.leaf)
    }

    /// All nodes, in path order.
    pub fn nodes(&self) -> impl Iterator<Item = (&Path, &L)> {
        self.nodes.iter().map(|(p, n)| (p, &n.leaf))
    }

    /// Joins a fragment: local writes (in normal form) and received state alike.
    ///
    /// Cost: one node and its ancestors when `path` has no child nodes; else all nodes below too.
    pub fn join(&mut self, path: &Path, state: &NodeState, make: &mut dyn FnMut(&Path) -> L) -> JoinReport {
        let arriving = state.leaf.as_ref().map_or(Stamp::NONE, |l| l.stamp);
        if self.dead {
            return JoinReport { superseded: !arriving.is_none(), ..JoinReport::default() };
        }
        let mut touched = BTreeSet::new();
        self.ensure(path, make);
        let written = arriving.max(state.kind);
        let ancestors = ancestors_of(path);
        let above = self.knock_out(&ancestors, written, &mut touched);
        let folded = self.settle(path, above, state, &mut touched);
        self.fold_up(&ancestors, folded, &mut touched);
        self.show_as_maps(&ancestors, written, &mut touched);
        let superseded = !arriving.is_none() && self.nodes[path].leaf.stamp() != arriving;
        JoinReport { changed: !touched.is_empty(), superseded, touched: touched.into_iter().collect() }
    }

    /// Turns ancestors' leaves that a write at `written` beats into floors. Returns the newest clear above.
    fn knock_out(&mut self, ancestors: &[Path], written: Stamp, touched: &mut BTreeSet<Path>) -> Stamp {
        let mut above = Stamp::NONE;
        for (depth, path) in ancestors.iter().enumerate() {
            // They have children, so no fast writer is at them.
            let node = self.node(path);
            let held = node.leaf.stamp();
            if !held.is_none() && held <= written {
                // Any floor here is older than the leaf; one that a clear above implies is not held.
                node.floor = if held > above { held } else { Stamp::NONE };
                node.forget();
                touched.insert(path.clone());
                self.fold_up(&ancestors[..depth], held, touched);
            }
            above = above.max(held).max(self.nodes[path].floor);
        }
        above
    }

    /// Merges `state` into `path` and restores the invariants of it and of all below. Returns the newest stamp that
    /// `path` no longer holds and that its parent's kind must remember.
    fn settle(
        &mut self,
        path: &Path,
        above: Stamp,
        state: &NodeState,
        touched: &mut BTreeSet<Path>,
    ) -> Stamp {
        // Before fast writers are sent away for a moment, which is no change.
        let first = self.nodes[path].mark();
        let (gates, last) = self.gates_below(path, above, state);
        let veiled = self.veiled;
        let mut gates = gates.into_iter().rev();
        let mut sums = [Below::default(); coeval_value::path::MAX_KEYS + 2];
        let span = (Bound::Included(path), Bound::Included(&last));
        for (at, node) in self.nodes.range_mut::<Path, _>(span).rev() {
            let depth = at.keys().len();
            let before = if at == path { first } else { node.mark() };
            let gate = gates.next().unwrap_or(above);
            let below = std::mem::take(&mut sums[depth + 1]);
            let arriving = (at == path).then_some(state);
            let up = settle_node(node, gate, below, arriving, veiled);
            sums[depth] = sums[depth].max(up);
            if node.mark() != before {
                touched.insert(at.clone());
            }
        }
        sums[path.keys().len()].folded
    }

    /// For `path` (once `state` is in it) and each node below, in path order: the newest clear strictly above it;
    /// and the last of those nodes.
    fn gates_below(&mut self, path: &Path, above: Stamp, state: &NodeState) -> (Vec<Stamp>, Path) {
        let veiled = self.veiled;
        let first = self.node(path);
        if !state.floor.is_none() || !state.kind.is_none() {
            first.freeze(veiled);
        }
        let arriving = state.leaf.as_ref().map_or(Stamp::NONE, |l| l.stamp);
        let own = first.clear().max(state.floor).max(arriving);
        let mut gates = vec![above];
        let mut last = path;
        let base = path.keys().len();
        let mut stack = vec![above, above.max(own)];
        let below = (Bound::Excluded(path), Bound::Unbounded);
        if self.nodes[path].has_children {
            for (at, node) in self.nodes.range::<Path, _>(below).take_while(|(p, _)| path.contains(p)) {
                stack.truncate(at.keys().len() - base + 1);
                let gate = stack[stack.len() - 1];
                gates.push(gate);
                stack.push(gate.max(node.clear()));
                last = at;
            }
        }
        (gates, last.clone())
    }

    /// Lets the nearest ancestor that can still use it remember `stamp` in its kind.
    fn fold_up(&mut self, ancestors: &[Path], stamp: Stamp, touched: &mut BTreeSet<Path>) {
        if stamp.is_none() || active(Fault::KindFromSurvivors) {
            return;
        }
        for depth in (0..ancestors.len()).rev() {
            let gate = self.gate(&ancestors[..=depth]);
            let node = self.node(&ancestors[depth]);
            if stamp <= node.kind || stamp < node.leaf.stamp() {
                return; // Implied already, here and so above.
            }
            if stamp >= gate {
                node.kind = stamp;
                touched.insert(ancestors[depth].clone());
                return;
            }
        }
    }

    /// A child written at `written` makes each ancestor a map that has no newer clear.
    fn show_as_maps(&mut self, ancestors: &[Path], written: Stamp, touched: &mut BTreeSet<Path>) {
        let veiled = self.veiled;
        let mut gate = Stamp::NONE;
        for path in ancestors {
            let node = self.node(path);
            gate = gate.max(node.clear());
            if !written.is_none()
                && written >= gate
                && node.leaf.stamp().is_none()
                && node.visibility != Visibility::Map
            {
                node.see(Visibility::Map, veiled);
                touched.insert(path.clone());
            }
        }
    }

    /// The newest clear of a chain of paths.
    fn gate(&self, chain: &[Path]) -> Stamp {
        chain.iter().map(|p| self.nodes[p].clear()).max().unwrap_or(Stamp::NONE)
    }

    fn node(&mut self, path: &Path) -> &mut Node<L> {
        self.nodes.get_mut(path).expect("the node was ensured with its ancestors")
    }

    /// The state of `path` as sent to peers; `None` if no node exists.
    pub fn state(&self, path: &Path) -> Option<NodeState> {
        self.nodes.get(path).map(Node::state)
    }

    /// What a reader sees at `path` (`None`: the whole entity); `None` if nothing, or while veiled.
    pub fn show(&self, path: Option<&Path>) -> Option<Value> {
        if self.veiled {
            return None;
        }
        let Some(path) = path else {
            return Some(self.show_map(None));
        };
        let node = self.nodes.get(path)?;
        match node.visibility {
            Visibility::Hidden => None,
            Visibility::Leaf { .. } => node.leaf.leaf().map(|l| l.value),
            Visibility::Map => Some(self.show_map(Some(path))),
        }
    }

    fn show_map(&self, path: Option<&Path>) -> Value {
        let depth = path.map_or(0, |p| p.keys().len());
        let start = path.map_or(Bound::Unbounded, Bound::Excluded);
        let mut map = BTreeMap::new();
        let below = self.nodes.range::<Path, _>((start, Bound::Unbounded));
        for (at, _) in below.take_while(|(at, _)| path.is_none_or(|p| p.contains(at))) {
            if at.keys().len() == depth + 1
                && let Some(value) = self.show(Some(at))
            {
                map.insert(at.keys()[depth].clone(), value);
            }
        }
        Value::Map(Arc::new(map))
    }

    /// All leaves that show, in path order; none while veiled.
    pub fn visible_leaves(&self) -> impl Iterator<Item = (&Path, Leaf)> {
        let nodes = (!self.veiled).then_some(&self.nodes).into_iter().flatten();
        nodes.filter_map(|(p, n)| {
            matches!(n.visibility, Visibility::Leaf { .. }).then(|| n.leaf.leaf().map(|l| (p, l)))?
        })
    }

    /// The canonical state, in path order: of all states that show the same and will show the same whatever is
    /// joined to them, the one that says least. Nodes with nothing left are omitted.
    ///
    /// A kind that a leaf or kind below implies is omitted, so a leaf's write can change the canonical state of its
    /// ancestors.
    pub fn canonical(&self) -> impl Iterator<Item = (Path, NodeState)> {
        let mut sums = [Stamp::NONE; coeval_value::path::MAX_KEYS + 2];
        let mut out = Vec::new();
        for (at, node) in self.nodes.iter().rev() {
            let depth = at.keys().len();
            let below = std::mem::take(&mut sums[depth + 1]);
            let mut state = node.state();
            let leaf = state.leaf.as_ref().map_or(Stamp::NONE, |l| l.stamp);
            sums[depth] = sums[depth].max(below).max(state.kind).max(leaf);
            if state.kind <= below {
                state.kind = Stamp::NONE;
            }
            if !state.is_empty() {
                out.push((at.clone(), state));
            }
        }
        out.into_iter().rev()
    }

    /// Hides all nodes from readers (an entity whose creation is not known yet) or shows them again. The tree goes
    /// on merging meanwhile.
    pub fn set_veiled(&mut self, veiled: bool) {
        if self.dead || self.veiled == veiled {
            return;
        }
        self.veiled = veiled;
        for node in self.nodes.values_mut() {
            node.leaf.set_visibility(if veiled { Visibility::Hidden } else { node.visibility });
        }
    }

    /// The entity is deleted: hides all nodes for ever, forgets what they hold, and ignores every later join.
    /// Nodes stay, for the handles that point at them.
    pub fn hide_all(&mut self) {
        for node in self.nodes.values_mut() {
            node.freeze(self.veiled);
            node.see(Visibility::Hidden, self.veiled);
            node.forget();
            node.floor = Stamp::NONE;
            node.kind = Stamp::NONE;
        }
        self.veiled = true;
        self.dead = true;
    }
}

/// What the nodes of one depth pass on to their parent.
#[derive(Clone, Copy, Default)]
struct Below {
    /// The newest child write there or further below, ever.
    written: Stamp,
    /// The newest of those that no node there holds any more.
    folded: Stamp,
}

impl Below {
    fn max(self, other: Self) -> Self {
        Self { written: self.written.max(other.written), folded: self.folded.max(other.folded) }
    }
}

/// Settles one node whose descendants are settled. `gate` is the newest clear above it.
fn settle_node<L: LeafStore>(
    node: &mut Node<L>,
    gate: Stamp,
    below: Below,
    arriving: Option<&NodeState>,
    veiled: bool,
) -> Below {
    let mut folded = Stamp::NONE;
    if !active(Fault::KindFromSurvivors) {
        node.kind = node.kind.max(below.folded);
    }
    let mut candidate = None;
    if let Some(state) = arriving {
        node.kind = node.kind.max(state.kind);
        node.floor = node.floor.max(state.floor);
        candidate = state.leaf.as_ref().filter(|l| replaces(l, node.leaf.stamp(), || node.leaf.leaf()));
    }
    let written_below = node.kind.max(below.written);
    let base = gate.max(node.floor);
    if node.leaf.stamp() < base || node.leaf.stamp() <= written_below {
        node.freeze(veiled);
    }
    let best = candidate.map_or(Stamp::NONE, |l| l.stamp).max(node.leaf.stamp());
    let reaches = best >= base && !(active(Fault::ClearBeatsItsBatch) && best == gate);
    let shows = !best.is_none() && reaches && best > written_below;
    if shows {
        if let Some(leaf) = candidate {
            node.leaf.write(leaf.clone());
        }
    } else if !best.is_none() {
        if best >= base {
            node.floor = node.floor.max(best); // Hidden by a child: its implied clear stays.
        }
        node.forget();
        folded = best;
    }
    let held = node.leaf.stamp();
    if node.kind < gate.max(node.floor).max(held) {
        if !shows && !active(Fault::PrunedWithoutFolding) {
            folded = folded.max(node.kind);
        }
        node.kind = Stamp::NONE;
    }
    let own = gate.max(node.floor).max(held);
    if node.floor <= gate || node.floor <= held {
        node.floor = Stamp::NONE;
    }
    let is_map = !written_below.is_none() && written_below >= own;
    node.see(
        match (shows, is_map) {
            (true, _) => Visibility::Leaf { exclusive: !node.has_children },
            (false, true) => Visibility::Map,
            (false, false) => Visibility::Hidden,
        },
        veiled,
    );
    Below { written: written_below.max(best), folded }
}

/// The strict ancestors of `path`, outermost first.
fn ancestors_of(path: &Path) -> Vec<Path> {
    let mut out = Vec::with_capacity(path.keys().len());
    let mut at = path.parent();
    while let Some(here) = at {
        at = here.parent();
        out.push(here);
    }
    out.reverse();
    out
}

/// The least stamp above `stamp` (itself at the very end of the range, which no replica admits).
fn after(stamp: Stamp) -> Stamp {
    match stamp.writer.0.checked_add(1) {
        Some(writer) => Stamp::new(stamp.hlc, Incarnation(writer)),
        None => Stamp::new(stamp.hlc.saturating_add(1), Incarnation(0)),
    }
}
