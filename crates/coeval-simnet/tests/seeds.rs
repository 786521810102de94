//! Thousands of small scenarios: whatever is done to a mesh, its invariants hold.
use coeval_simnet::mesh::Topology;
use coeval_simnet::run::run;
use coeval_simnet::scenario::Options;

/// Runs seeds; tells those that fail, with what is needed to run one of them again.
fn hold(seeds: std::ops::Range<u64>, options: Options) {
    let mut failed = Vec::new();
    for seed in seeds {
        let outcome = run(seed, options);
        if let Some(first) = outcome.violations.first() {
            failed.push(format!("seed {seed} ({:?}): {first}", outcome.topology));
        }
    }
    assert!(failed.is_empty(), "run(seed, {options:?}) failed for\n{}", failed.join("\n"));
}

#[test]
fn two_real_stores_converge_whatever_is_done_to_their_link() {
    hold(0..1_000, Options { peers: (2, 2), operations: 60, seconds: 8, topology: None });
}

#[test]
fn meshes_of_every_topology_hold_their_invariants() {
    hold(0..600, Options { peers: (2, 6), operations: 60, seconds: 20, topology: None });
}

#[test]
fn each_topology_passes_updates_on_once() {
    for (n, topology) in (0u64..).zip(Topology::ALL) {
        let options = Options { peers: (5, 5), operations: 30, seconds: 5, topology: Some(topology) };
        let factors = (n * 100..n * 100 + 30).filter_map(|seed| run(seed, options).duplication);
        let factors: Vec<f64> = factors.collect();
        assert!(factors.len() > 10, "{topology:?}: measured {} times", factors.len());
        let mean = factors.iter().sum::<f64>() / factors.len() as f64;
        assert!((0.95..=1.1).contains(&mean), "{topology:?}: {mean} copies for each that was needed");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let options = Options { peers: (2, 6), operations: 80, seconds: 15, topology: None };
    let mut traces = std::collections::BTreeSet::new();
    for seed in 5_000..5_030 {
        let (one, two) = (run(seed, options), run(seed, options));
        assert_eq!(
            (one.trace, one.operations, one.faults),
            (two.trace, two.operations, two.faults),
            "seed {seed}"
        );
        traces.insert(one.trace);
    }
    assert_eq!(traces.len(), 30, "different seeds give different runs");
}

/// Each failed once, for the reason given: as a run of the generator of that time. The generator has learned more faults
/// since, so that these seeds are other runs now; tests named after the reasons, in the crates at fault, hold what was
/// found. A seed that fails from here on goes to the end of the list.
#[test]
fn seeds_that_failed_once_hold() {
    let seeds = [
        // Who reconnected with an old cursor was sent again all that followed it, though the digests were equal.
        763, 1786, 2677, 3154,
        // A flush returned before what the first round of repair gives had arrived.
        1758,
        // A command came before the news that its sender is here, so it could not be replied to.
        1648, 4677, 5228,
        // A command was answered while its sender stood still: whoever gave the sender up dropped the reply with the
        // events, but the sender, who lost no one, waited on.
        30134, 32024,
        // A joiner took session time from a peer that had none yet, or that stood still.
        1041, 2053, 2748, 2826, 2879, 3086, 5840,
        // Pages of a snapshot tore batches of a peer that had caught up by another link.
        3279,
        // Rounds of repair that were under way at once took each other's beginning for their own, and gave one entity's
        // part of a batch that had come in between.
        21268, 22447,
        // A joiner applied pages of a snapshot before its mark, and those who held the rest of a batch crashed.
        41895,
        // Half of a batch went on and half did not: the other half was superseded at the relay, by who had another tree.
        3014086,
        // An empty joiner linked two that had no link, and each refused what the other's entities were sent as: that
        // counted as acknowledged.
        4006456,
        // A value and its entity's creation were parked, and fell due in the order of the links they had come by.
        7002396,
    ];
    for seed in seeds {
        hold(seed..seed + 1, Options::default());
    }
}
