//! How a mesh is laid out: who keeps links to whom, how wrong clocks are, what the network does.
use crate::net::{Conditions, Site};
use crate::timepiece::Skew;
use coeval_store::Limits;
use coeval_sync::Config;
use coeval_time::WallDuration;
use std::collections::{BTreeMap, BTreeSet};

/// Who keeps links to whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Topology {
    /// Everyone to everyone, by the engines' own dialing.
    Full,
    /// Everyone to the first, who relays.
    Star,
    /// Each to the next.
    Line,
    /// Each to the next, the last to the first.
    Ring,
    /// Two cliques, joined by one link.
    Cliques,
    /// One of the others, and another after a while, with other sites at its joints. Begins as a line.
    Changing,
}

impl Topology {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Star, Self::Line, Self::Ring, Self::Cliques, Self::Changing];
    /// What a changing one changes between.
    pub const SHAPES: [Self; 5] = [Self::Full, Self::Star, Self::Line, Self::Ring, Self::Cliques];

    /// The links among `count` sites.
    pub fn edges(self, count: usize) -> Vec<(Site, Site)> {
        let half = count.div_ceil(2);
        let all = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let linked = |&(a, b): &(Site, Site)| match self {
            Self::Full => true,
            Self::Star => a == 0,
            Self::Line | Self::Changing => b == a + 1,
            Self::Ring => b == a + 1 || (a == 0 && b == count - 1),
            Self::Cliques => (a < half) == (b < half) || (a == half - 1 && b == half),
        };
        all.filter(linked).collect()
    }

    /// Sites that nothing needs to go through, out of `count`: they may be observers.
    pub fn ends(self, count: usize) -> Vec<Site> {
        let half = count.div_ceil(2);
        let all = 1..count;
        match self {
            Self::Full | Self::Star => all.collect(),
            Self::Line | Self::Ring => all.filter(|site| site + 1 == count).collect(),
            Self::Cliques => all.filter(|site| *site != half - 1 && *site != half).collect(),
            Self::Changing => Vec::new(),
        }
    }
}

/// The links that are wanted at present: a shape, and which site stands where in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The shape.
    pub shape: Topology,
    /// How many places each site has moved on.
    pub turn: usize,
}

impl Layout {
    /// The links among `sites`.
    pub fn edges(self, sites: &[Site]) -> Vec<(Site, Site)> {
        let at = |place: usize| sites[(place + self.turn) % sites.len()];
        let edges = self.shape.edges(sites.len()).into_iter();
        edges.map(|(a, b)| (at(a).min(at(b)), at(a).max(at(b)))).collect()
    }
}

/// How a mesh is laid out.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who keeps links to whom.
    pub topology: Topology,
    /// How wrong each site's clocks are; as many as there are sites.
    pub skews: Vec<Skew>,
    /// The network to begin with.
    pub conditions: Conditions,
    /// Ways that are unlike the others.
    pub ways: Vec<((Site, Site), Conditions)>,
    /// Sites whose programs only read.
    pub observers: BTreeSet<Site>,
    /// Sites that take no part: what they would have done does not happen.
    pub absent: BTreeSet<Site>,
    /// Sites whose programs keep a journal, with the room on their disks until all faults end; `None`: any.
    pub journals: BTreeMap<Site, Option<usize>>,
    /// The engines' settings.
    pub config: Config,
    /// What the replicas refuse to outgrow.
    pub limits: Limits,
}

impl Plan {
    /// A mesh of `count` sites with right clocks on a good network.
    pub fn new(topology: Topology, count: usize) -> Self {
        Self {
            topology,
            skews: vec![Skew::default(); count],
            conditions: Conditions::default(),
            ways: Vec::new(),
            observers: BTreeSet::new(),
            absent: BTreeSet::new(),
            journals: BTreeMap::new(),
            config: Config::default(),
            limits: Limits::default(),
        }
    }

    /// The sites that take part.
    pub fn sites(&self) -> Vec<Site> {
        (0..self.skews.len()).filter(|site| !self.absent.contains(site)).collect()
    }

    /// How long the longest way takes at most, without losses.
    pub fn longest_way(&self) -> WallDuration {
        let ways = self.ways.iter().map(|(_, conditions)| conditions);
        let longest = ways.chain([&self.conditions]).map(|c| c.delay + c.jitter).max().unwrap_or_default();
        WallDuration::from_nanos(longest.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_connects_all_and_does_without_those_at_its_ends() {
        for (topology, count) in Topology::ALL.into_iter().flat_map(|t| (2..20).map(move |n| (t, n))) {
            for turn in 0..3 {
                let sites: Vec<Site> = (10..10 + count).collect();
                let edges = Layout { shape: topology, turn }.edges(&sites);
                assert_eq!(reach(&sites, &edges), count, "{topology:?} of {count}, turned by {turn}");
            }
            for end in topology.ends(count) {
                let sites: Vec<Site> = (0..count).filter(|site| *site != end).collect();
                let edges = topology.edges(count);
                let edges: Vec<_> = edges.into_iter().filter(|(a, b)| *a != end && *b != end).collect();
                assert_eq!(reach(&sites, &edges), count - 1, "{topology:?} of {count} without {end}");
            }
        }
    }

    fn reach(sites: &[Site], edges: &[(Site, Site)]) -> usize {
        let mut seen = BTreeSet::from([sites[0]]);
        for _ in sites {
            for (a, b) in edges {
                if seen.contains(a) || seen.contains(b) {
                    seen.extend([*a, *b]);
                }
            }
        }
        seen.len()
    }
}
