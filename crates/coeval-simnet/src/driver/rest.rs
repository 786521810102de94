//! When all processes are at rest: equal replicas, nothing on its way, and the links that should be there and no more.
use crate::driver::program::Program;
use crate::driver::world::{Process, World};
use crate::net::Site;
use coeval_merge::Replica;
use coeval_value::NodeId;
use std::collections::BTreeSet;

impl World {
    /// Why the world is not at rest.
    pub fn unrest(&self) -> Option<String> {
        if let Some(leaving) = self.leaving.first() {
            return Some(format!("site {} has not left", leaving.site));
        }
        let sites = self.live();
        let processes: Vec<&Process> = sites.iter().filter_map(|site| self.process(*site)).collect();
        let digest = processes.first()?.seat.program().store.digest();
        let nodes: BTreeSet<NodeId> = processes.iter().map(|p| p.seat.program().sync.node()).collect();
        for (site, process) in sites.iter().zip(&processes) {
            let program = process.seat.program();
            let mut others = nodes.clone();
            others.remove(&program.sync.node());
            let flushed = program.sync.flushed(program.sync.flush_target());
            let reason = if program.store.digest() != digest {
                "its digest differs from the first".to_owned()
            } else if program.written.values().any(Option::is_none) {
                "its store has changes that were not drained".to_owned()
            } else if let Some((node, _)) = flushed.iter().find(|(_, done)| !**done) {
                unacknowledged(&program, *node)
            } else if program.sync.parked() > 0 {
                "something is parked".to_owned()
            } else if program.present != others {
                format!("{} are present to it, {} are here", program.present.len(), others.len())
            } else if let Some(reason) = self.undelivered(&program, &processes) {
                reason
            } else if let Some(reason) = self.links_astir(*site, process, &program) {
                reason
            } else {
                continue;
            };
            return Some(format!("site {site} ({}): {reason}", program.sync.node().short()));
        }
        None
    }

    /// Who has not heard what was last written and sent at a site.
    pub fn unheard(&self, site: Site) -> Option<String> {
        let processes: Vec<&Process> = self.processes.iter().flatten().collect();
        let speaker = self.process(site)?.seat.program();
        let digest = speaker.store.digest();
        let differs = |process: &&Process| {
            process.seat.try_program().is_some_and(|program| program.store.digest() != digest)
        };
        let deaf = processes.iter().position(differs);
        deaf.map(|site| format!("the digest of site {site} differs"))
            .or_else(|| self.undelivered(&speaker, &processes))
    }

    fn undelivered(&self, sender: &Program, here: &[&Process]) -> Option<String> {
        let me = sender.sync.node();
        for process in here {
            // The sender's own is held.
            let Some(receiver) = process.seat.try_program() else { continue };
            let node = receiver.sync.node();
            let got: BTreeSet<u64> =
                receiver.received.iter().filter(|e| e.id.from == me).map(|e| e.id.number).collect();
            if let Some(event) =
                sender.sent.iter().find(|e| e.due.contains(&node) && !got.contains(&e.number))
            {
                return Some(format!("its event {} waits for {}", event.number, node.short()));
            }
        }
        None
    }

    /// Whether a process has the links that it should have, and the tasks of these links, and no more.
    fn links_astir(&self, site: Site, process: &Process, program: &Program) -> Option<String> {
        for other in self.live().into_iter().filter(|other| *other != site) {
            let can = !(self.network.is_translated(site) && self.network.is_translated(other));
            let node = self.process(other)?.seat.try_program()?.sync.node();
            if can && program.sync.link_to(node).is_none() {
                return Some(format!("it has no link to site {other}"));
            }
        }
        let rows = program.sync.peers();
        let linked = rows.iter().filter(|row| program.sync.link_to(row.node).is_some()).count();
        let (links, tasks) = (process.io.stats().links, process.tasks.live());
        // Who died is dialed for minutes, now and then. That nobody dials at one moment would be chance.
        let right = links == linked && process.dials_at_most(rows.len() - linked);
        let tell = || format!("its engine has {linked} links, its driver {links}, with {tasks} tasks: ");
        (!right).then(|| tell() + &process.tasks.origins().join(" "))
    }
}

/// Who has not acknowledged everything, and how the link to it stands.
fn unacknowledged(program: &Program, node: NodeId) -> String {
    let row = program.sync.peers().into_iter().find(|row| row.node == node);
    let stands = row.map(|row| (row.state, row.waiting, row.in_flight, row.acked));
    let target = program.sync.flush_target();
    format!(
        "{} has not acknowledged {target}: (state, waiting, in flight, acknowledged) {stands:?}",
        node.short()
    )
}
