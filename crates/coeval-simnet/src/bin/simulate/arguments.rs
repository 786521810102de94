//! The command line.
use clap::Parser;
use coeval_simnet::mesh::Topology;
use coeval_simnet::scenario::{Keep, Options, Scenario};
use coeval_simnet::shrink::Numbers;
use std::thread::available_parallelism;

/// Runs whole meshes of real stores and engines under virtual time and checks what must hold.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000)]
    pub(crate) seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub(crate) from: u64,
    /// One seed only.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Of one seed: the actions that are done, by number, such as 3-17,22.
    #[arg(long, requires = "seed")]
    pub(crate) keep: Option<Numbers>,
    /// Of one seed: the sites that are left out.
    #[arg(long, requires = "seed")]
    pub(crate) without: Option<Numbers>,
    /// Of one seed: tell all that happens.
    #[arg(long, requires = "seed")]
    pub(crate) story: bool,
    /// Most sites of a mesh.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=64))]
    pub(crate) peers: u64,
    /// Most operations of a run.
    #[arg(long, default_value_t = 300)]
    pub(crate) operations: usize,
    /// Longest phase of faults, seconds of virtual time.
    #[arg(long, default_value_t = 40)]
    pub(crate) seconds: u64,
    /// One topology instead of any: full, star, line, ring, cliques, changing.
    #[arg(long, value_parser = topology)]
    pub(crate) topology: Option<Topology>,
    /// How many threads run seeds; 0: one for each core.
    #[arg(long, default_value_t = 0)]
    pub(crate) jobs: usize,
    /// Run every this many-th seed twice and compare; 0: none.
    #[arg(long, default_value_t = 50)]
    pub(crate) repeat_every: u64,
    /// Runs spent on making a failing seed small; 0: none.
    #[arg(long, default_value_t = 150)]
    pub(crate) shrink: usize,
    /// Put known faults in, one at a time, and say at which seed each is found.
    #[arg(long)]
    pub mutants: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    pub(crate) json: bool,
}

fn topology(text: &str) -> Result<Topology, String> {
    let named = |topology: &Topology| format!("{topology:?}").eq_ignore_ascii_case(text);
    Topology::ALL.into_iter().find(named).ok_or_else(|| format!("there is no topology `{text}`"))
}

impl Arguments {
    /// What may be chosen apart from the seed.
    pub(crate) fn options(&self) -> Options {
        Options {
            peers: (2, self.peers as usize),
            operations: self.operations,
            seconds: self.seconds,
            topology: self.topology,
        }
    }

    /// What is run for a seed.
    pub(crate) fn scenario(&self, seed: u64) -> Scenario {
        let keep = Keep {
            without: self.without.clone().unwrap_or_default().0,
            actions: self.keep.clone().map(|numbers| numbers.0),
        };
        Scenario::new(seed, self.options()).only(&keep)
    }

    /// How many threads run seeds.
    pub(crate) fn jobs(&self) -> usize {
        if self.jobs > 0 { self.jobs } else { available_parallelism().map_or(1, usize::from) }
    }

    /// The command that runs one seed as these arguments do.
    pub(crate) fn again(&self, seed: u64) -> String {
        let topology = self.topology.map(|one| format!(" --topology {one:?}").to_lowercase());
        format!(
            "cargo run --release -q -p coeval-simnet --bin simulate -- --seed {seed} --peers {} --operations {} --seconds {}{}",
            self.peers,
            self.operations,
            self.seconds,
            topology.unwrap_or_default()
        )
    }
}
