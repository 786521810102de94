//! When a mesh is at rest.
use super::Mesh;
use crate::net::Site;
use crate::program::Program;
use coeval_merge::Replica;
use coeval_time::WallDuration;
use coeval_value::NodeId;
use std::collections::BTreeSet;

impl Mesh {
    /// Why the mesh is not at rest; `None` when all digests are equal, nothing waits, and all are present to all.
    pub fn unrest(&self) -> Option<String> {
        let sites = self.live();
        let programs: Vec<&Program> = sites.iter().filter_map(|site| self.program(*site)).collect();
        let digest = programs.first()?.store.digest();
        let nodes: BTreeSet<NodeId> = programs.iter().map(|program| program.node()).collect();
        for (site, program) in sites.iter().zip(&programs) {
            let others: BTreeSet<NodeId> = nodes.iter().copied().filter(|n| *n != program.node()).collect();
            let reason = if !program.is_open() {
                "it has not found the session's time".to_owned()
            } else if program.store.digest() != digest {
                "its digest differs from the first".to_owned()
            } else if program.is_rung() || !program.unplaced.is_empty() {
                "its store has changes that were not drained".to_owned()
            } else if program.sync.parked() > 0 {
                format!("{} fragments are parked", program.sync.parked())
            } else if program.present != others {
                let names =
                    |set: &BTreeSet<NodeId>| set.iter().map(|n| n.short()).collect::<Vec<_>>().join(", ");
                format!("present to it: [{}], here: [{}]", names(&program.present), names(&others))
            } else if program.sync.peers().iter().any(|row| row.in_flight > 0) {
                "its transport has not taken everything".to_owned()
            } else if let Some(node) = unacknowledged(program, &nodes).first() {
                format!("{} has not acknowledged everything", node.short())
            } else if let Some(waiting) =
                program.sent.iter().find_map(|event| event.waits(program, &programs))
            {
                waiting
            } else {
                continue;
            };
            return Some(format!("site {site} ({}): {reason}", program.node().short()));
        }
        None
    }

    /// Whether all digests are equal.
    pub fn is_equal(&self) -> bool {
        let programs = self.live().into_iter().filter_map(|site| self.program(site));
        let digests: Vec<_> = programs.map(|program| program.store.digest()).collect();
        let drained = self.live().into_iter().filter_map(|site| self.program(site)).all(|one| !one.is_rung());
        drained && digests.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Sites that a site has a link to.
    pub fn neighbors(&self, site: Site) -> Vec<Site> {
        self.live().into_iter().filter(|other| self.is_linked(site, *other)).collect()
    }

    /// Every observer says whether its watch told all that is there.
    pub fn watched_all(&mut self) {
        for site in self.live() {
            if let Some(program) = self.net.machine_mut(site) {
                program.watched_all();
            }
        }
    }

    /// Runs until the mesh is at rest, for at most `bound`; what is still astir then.
    pub fn settle(&mut self, bound: WallDuration) -> Option<String> {
        let end = self.net.now().saturating_add(bound);
        loop {
            self.tend();
            self.run_for(WallDuration::from_millis(250));
            let unrest = self.unrest();
            if unrest.is_none() || self.net.now() >= end {
                return unrest;
            }
        }
    }
}

/// Those of `nodes` that have not acknowledged all that a program drained.
pub(crate) fn unacknowledged(program: &Program, nodes: &BTreeSet<NodeId>) -> Vec<NodeId> {
    let flushed = program.sync.flushed(program.sync.flush_target()).into_iter();
    flushed.filter(|(node, done)| !done && nodes.contains(node)).map(|(node, _)| node).collect()
}
