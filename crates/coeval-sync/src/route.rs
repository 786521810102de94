//! Which way changes go: over the tree of shortest paths of the node whose changes they are.
use crate::Sync;
use coeval_faults::{Fault, active};
use coeval_merge::{LinkTag, Origin, Replica};
use coeval_time::Incarnation;
use coeval_value::NodeId;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Where changes come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// From here.
    Here,
    /// Over a link, along the tree of their root; without a root, they are what this node had missed.
    From(LinkTag, Option<Incarnation>),
}

impl From<Origin> for Way {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Local => Self::Here,
            Origin::Remote { link, author } => Self::From(link, Some(author)),
        }
    }
}

/// Links by where changes come from.
pub(crate) type Targets = BTreeMap<Way, Rc<[LinkTag]>>;

impl<R: Replica> Sync<R> {
    /// The links that changes are for.
    pub(crate) fn targets(&mut self, way: Way, known: &mut Targets) -> Rc<[LinkTag]> {
        if let Some(targets) = known.get(&way) {
            return targets.clone();
        }
        let links: Vec<(LinkTag, NodeId)> =
            self.links.iter().map(|(tag, link)| (*tag, link.peer.node)).collect();
        let goes = |this: &mut Self, node| match way {
            Way::Here => true,
            Way::From(link, root) => {
                let source = this.links.get(&link).map(|link| link.peer.node);
                this.forwards(root, source, node)
            }
        };
        let targets: Rc<[LinkTag]> =
            links.into_iter().filter(|(_, node)| goes(self, *node)).map(|(tag, _)| tag).collect();
        known.insert(way, targets.clone());
        targets
    }

    /// Whether changes of `root` that came from `source` go on to `node`.
    ///
    /// They travel the shortest-path tree of their root: to a neighbor that has no link to the root and whose parent in
    /// that tree is this node. Where there is no tree, because the root is gone or because they are what was missed by
    /// this node, they go to every neighbor that has no link to the source, which is where it would have got them.
    fn forwards(&mut self, root: Option<Incarnation>, source: Option<NodeId>, node: NodeId) -> bool {
        let me = self.me.node;
        if source == Some(node) || self.me.observer {
            return false;
        }
        if active(Fault::ForwardedToAll) {
            return true;
        }
        let graph = self.members.graph();
        let root = root.and_then(|root| graph.node_of(root));
        match root.filter(|root| *root != me && graph.distances(me).contains_key(root)) {
            Some(root) if root == node || graph.linked(node, root) => false,
            Some(root) => graph.parent(node, root).is_none_or(|parent| parent == me),
            None => source.is_none_or(|source| !graph.linked(node, source)),
        }
    }
}
