//! Who is linked to whom, and shortest paths through it.
//!
//! An edge counts when both ends gossip it. Observers end paths: nothing is relayed through them.
use coeval_time::Incarnation;
use coeval_value::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An undirected graph of nodes, with distances kept once computed.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    edges: BTreeMap<NodeId, BTreeSet<NodeId>>,
    observers: BTreeSet<NodeId>,
    by_incarnation: BTreeMap<Incarnation, NodeId>,
    distances: BTreeMap<NodeId, BTreeMap<NodeId, u32>>,
}

impl Graph {
    /// The graph of rows (node, observer, the nodes it says it has links to).
    pub(crate) fn new<'a>(rows: impl Iterator<Item = (NodeId, bool, &'a [NodeId])>) -> Self {
        let mut graph = Self::default();
        let mut claims: BTreeSet<(NodeId, NodeId)> = BTreeSet::new();
        for (node, observer, links) in rows {
            claims.extend(links.iter().map(|&other| (node, other)));
            graph.by_incarnation.insert(node.incarnation, node);
            graph.edges.entry(node).or_default();
            if observer {
                graph.observers.insert(node);
            }
        }
        for &(a, b) in claims.iter().filter(|&&(a, b)| a != b && claims.contains(&(b, a))) {
            graph.edges.entry(a).or_default().insert(b);
        }
        graph
    }

    /// The node that an author's incarnation belongs to.
    pub(crate) fn node_of(&self, author: Incarnation) -> Option<NodeId> {
        self.by_incarnation.get(&author).copied()
    }

    /// Whether two nodes have a link.
    pub(crate) fn linked(&self, a: NodeId, b: NodeId) -> bool {
        self.edges.get(&a).is_some_and(|links| links.contains(&b))
    }

    /// Hops from `root` to every node it reaches.
    pub(crate) fn distances(&mut self, root: NodeId) -> &BTreeMap<NodeId, u32> {
        let Self { edges, observers, distances, .. } = self;
        distances.entry(root).or_insert_with(|| {
            let mut hops = BTreeMap::from([(root, 0)]);
            let mut queue = VecDeque::from([(root, 0)]);
            while let Some((at, far)) = queue.pop_front() {
                if at != root && observers.contains(&at) {
                    continue;
                }
                for &next in edges.get(&at).into_iter().flatten() {
                    hops.entry(next).or_insert_with(|| {
                        queue.push_back((next, far + 1));
                        far + 1
                    });
                }
            }
            hops
        })
    }

    /// The parent of `node` in the shortest-path tree rooted at `root`: its neighbor with the least distance to the
    /// root, the least node of these. All nodes compute the same tree from the same gossip.
    pub(crate) fn parent(&mut self, node: NodeId, root: NodeId) -> Option<NodeId> {
        self.distances(root);
        let Self { edges, observers, distances, .. } = self;
        let hops = distances.get(&root)?;
        let near = edges.get(&node)?.iter().filter(|n| **n == root || !observers.contains(*n));
        near.filter_map(|n| hops.get(n).map(|far| (*far, *n))).min().map(|(_, n)| n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coeval_value::PeerId;

    fn node(n: u8) -> NodeId {
        NodeId { peer: PeerId([n; 32]), incarnation: Incarnation(u64::from(n) + 100) }
    }

    fn graph(edges: &[(u8, u8)], observers: &[u8]) -> Graph {
        let mut rows: BTreeMap<u8, Vec<NodeId>> = BTreeMap::new();
        for &(a, b) in edges {
            rows.entry(a).or_default().push(node(b));
            rows.entry(b).or_default().push(node(a));
        }
        Graph::new(rows.iter().map(|(n, links)| (node(*n), observers.contains(n), links.as_slice())))
    }

    #[test]
    fn one_sided_claim_is_no_edge() {
        let rows = [(node(1), vec![node(2)]), (node(2), vec![])];
        let graph = Graph::new(rows.iter().map(|(n, links)| (*n, false, links.as_slice())));
        assert!(!graph.linked(node(1), node(2)));
    }

    #[test]
    fn every_node_has_one_parent_and_the_tree_reaches_all() {
        let mut ring = graph(&[(1, 2), (2, 3), (3, 4), (4, 5), (5, 1)], &[]);
        assert_eq!(ring.parent(node(3), node(1)), Some(node(2)));
        assert_eq!(ring.parent(node(4), node(1)), Some(node(5)));
        let mut square = graph(&[(1, 2), (1, 3), (2, 4), (3, 4)], &[]);
        assert_eq!(square.parent(node(4), node(1)), Some(node(2)), "ties go to the least node");
    }

    #[test]
    fn observers_are_not_relayed_through() {
        let mut line = graph(&[(1, 2), (2, 3)], &[2]);
        assert_eq!(line.distances(node(1)).get(&node(3)), None);
        assert_eq!(line.parent(node(3), node(1)), None);
    }
}
