//! Looking at all replicas of a mesh while it runs.
use super::Mesh;
use crate::check::Check;
use crate::net::Site;
use crate::program::Program;
use coeval_merge::{Replica, SlotId};
use coeval_store::Snapshot;
use coeval_value::SIM_ENTITY;
use rand::Rng;
use rand::seq::{IndexedRandom, index};

/// States kept of one run, and taken at one look.
const FLOWN: usize = 60;
const TAKEN: usize = 4;
/// Messages that may lie at the transport beyond the window, in chunks; and the largest value that is written, bytes.
const BEYOND: usize = 4;
/// Bytes of the largest values that are written.
pub const LARGE: usize = 24 << 10;

impl Mesh {
    /// Every running program's observer looks at its replica; two replicas are compared.
    pub fn look(&mut self) {
        let sites = self.live();
        for &site in &sites {
            if let Some(program) = self.net.machine_mut(site) {
                program.look();
            }
            self.bounded(site);
            self.sample(site);
        }
        let broken = crate::promises::check(self);
        self.violations.extend(broken);
        if sites.len() > 1 && self.rng.random_bool(0.3) {
            let two = index::sample(&mut self.rng, sites.len(), 2);
            self.compare(sites[two.index(0)], sites[two.index(1)]);
        }
    }

    /// What a program keeps for its peers is bounded by what was written, whether they read or not.
    fn bounded(&mut self, site: Site) {
        let (most, config) = (self.touched.len() + 8, &self.plan.config);
        let bytes = config.window + BEYOND * config.chunk + BEYOND * LARGE;
        let Some(program) = self.net.machine_mut(site) else { return };
        let rows = program.sync.peers();
        for row in rows.iter().filter(|row| row.waiting > most || row.in_flight > bytes) {
            let (waiting, in_flight) = (row.waiting, row.in_flight);
            let detail = format!(
                "for {} wait {waiting} slots (at most {most}) and {in_flight} bytes (at most {bytes})",
                row.node.short()
            );
            program.violate(Check::SendersStayBounded, detail);
        }
        let (counters, limits) = (program.store.counters(), *program.store.limits());
        if counters.orphans > u64::from(limits.orphans) {
            let detail = format!("{} orphans, at most {}", counters.orphans, limits.orphans);
            program.violate(Check::LeftoversAreBounded, detail);
        }
    }

    /// Keeps some states as links would send them now.
    fn sample(&mut self, site: Site) {
        let Some(program) = self.net.machine(site).filter(|_| self.flown.len() < FLOWN) else { return };
        let store = &program.store;
        let from = SlotId(self.rng.random_range(0..=self.touched.len() as u32));
        let states = store.scan(from, 0, TAKEN).states;
        self.flown.extend(states.into_iter().filter_map(|(slot, state)| Some((store.key(slot)?, state))));
    }

    /// The digests of two replicas are equal exactly when their states are.
    fn compare(&mut self, a: Site, b: Site) {
        let (Some(one), Some(two)) = (self.program(a), self.program(b)) else { return };
        let (left, right) = (one.store.snapshot(), two.store.snapshot());
        let (digests, states) = (left.digest() == right.digest(), self.same(one, &left, two, &right));
        if digests != states {
            let detail = format!("equal digests: {digests}, equal states: {states}, at sites {a} and {b}");
            self.violate(Check::DigestsMeanStates, detail);
        }
    }

    fn same(&self, one: &Program, left: &Snapshot, two: &Program, right: &Snapshot) -> bool {
        let stamps = |program: &Program, entity| {
            let slots = program.store.summary(entity).into_iter();
            slots.map(|slot| (slot.key, [slot.first, slot.floor, slot.kind])).collect::<Vec<_>>()
        };
        let mut entities = self.ledger.created().into_iter().chain([SIM_ENTITY]);
        left == right && entities.all(|entity| stamps(one, entity) == stamps(two, entity))
    }

    /// Some site of those given.
    pub(crate) fn any_of(&mut self, sites: &[Site]) -> Option<Site> {
        sites.choose(&mut self.rng).copied()
    }
}
