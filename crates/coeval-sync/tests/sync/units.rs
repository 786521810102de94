//! Units: what is passed on is passed on whole.
use crate::world::{MS, SEC, World, entity, fixed, path};
use coeval_merge::Op;
use coeval_value::Value;

/// The kind of a delta's frame.
const DELTA: u8 = 3;

/// A relay that holds something newer than half of a batch passes on both halves: who does not hold the newer thing, and may
/// never hear of it, would hold half a batch.
#[test]
fn a_relay_passes_on_also_what_was_superseded_at_it() {
    for seed in 0..20 {
        let mut world = World::new(seed, 4, fixed());
        let [author, relay, reader, other] = [0, 1, 2, 3];
        world.create(author, entity(0));
        for (a, b) in [(author, relay), (relay, reader), (relay, other), (reader, other)] {
            world.connect(a, b);
        }
        world.run(3 * SEC);
        // A newer write of one path is at the relay; what tells the author and the reader of it is lost.
        world.drops.extend([(other, reader, DELTA), (relay, author, DELTA)]);
        world.set_ahead(other, entity(0), "b", 2, 500 * MS);
        let mut patience = 0..400;
        while world.get(relay, entity(0), "b") != Some(2) && patience.next().is_some() {
            world.run(MS);
        }
        world.ops(
            author,
            ["a", "b"].map(|p| Op::Set { entity: entity(0), path: path(p), value: Value::UInt(1) }),
        );
        while world.get(reader, entity(0), "a").is_none() && patience.next().is_some() {
            world.run(MS);
        }
        let [at_relay, at_reader] = [relay, reader].map(|n| ["a", "b"].map(|p| world.get(n, entity(0), p)));
        assert_eq!(at_relay, [Some(1), Some(2)], "seed {seed}");
        assert_eq!(at_reader, [Some(1), Some(1)], "seed {seed}");
        world.run(4 * SEC);
        let all = [author, relay, reader, other].map(|n| world.get(n, entity(0), "b"));
        assert_eq!(all, [Some(2); 4], "seed {seed}: what was lost is repaired");
    }
}
