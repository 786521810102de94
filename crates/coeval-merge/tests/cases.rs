//! Small inputs, right values: faults that other systems had, each in every order of arrival.
mod common;
use coeval_merge::{
    Applied, Batch, BatchError, Fate, Life, LinkTag, NodeState, Op, PlainLimits, PlainReplica, Refusal,
    Replica, SlotKey, SlotState, WriteError, digest,
};
use coeval_time::{Incarnation, Stamp, WallTime};
use coeval_value::{Leaf, SIM_ENTITY, SampleMeta, Value};
use common::*;

fn round(n: u64, ops: Vec<Op>) -> Round {
    Round { stamp: stamp(n), ops }
}

fn new(n: u64) -> PlainReplica {
    PlainReplica::new(Incarnation(n))
}

/// All orders of `0..n`.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(n - 1);
    let insert = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, n - 1);
        order
    };
    shorter.iter().flat_map(|o| (0..n).map(move |at| insert(o, at))).collect()
}

/// Applies the rounds (and the creation) in every order, checks what shows, returns the digests.
fn in_every_order(rounds: &[Round], want: &Option<Shown>) {
    let mut rounds = rounds.to_vec();
    rounds.push(round(1, vec![create()]));
    let mut digests = Vec::new();
    for order in orders(rounds.len()) {
        let replica = new(9);
        for &i in &order {
            apply_round(&replica, &rounds[i]);
            replica.drain();
        }
        assert_eq!(&show(&replica, entity(0)), want, "order {order:?}");
        digests.push(replica.digest());
    }
    assert!(digests.windows(2).all(|d| d[0] == d[1]), "digests differ by order of arrival");
    assert_eq!(&oracle(&rounds, entity(0)), want, "the oracle itself");
}

#[test]
fn late_put_under_a_newer_clear_stays_hidden() {
    let rounds = [round(2, vec![set("a/k", 1)]), round(4, vec![remove("a")]), round(3, vec![set("a/k", 2)])];
    in_every_order(&rounds, &tree(&[]));
}

#[test]
fn two_fields_of_two_writers_both_survive() {
    let (one, two) = (Stamp::new(5, Incarnation(2)), Stamp::new(5, Incarnation(3)));
    let rounds = [
        Round { stamp: one, ops: vec![set("pose/rotation", 1)] },
        Round { stamp: two, ops: vec![set("pose/position", 2)] },
    ];
    in_every_order(&rounds, &tree(&[("pose/rotation", 1), ("pose/position", 2)]));
}

#[test]
fn program_order_inside_a_batch_is_kept() {
    let one = |ops| [round(5, ops)];
    in_every_order(&one(vec![set("a/b", 30), remove("a")]), &tree(&[]));
    in_every_order(&one(vec![set("k", 1), set("k", 2)]), &tree(&[("k", 2)]));
    in_every_order(&one(vec![set("a", 1), set("a/b", 2)]), &tree(&[("a/b", 2)]));
    in_every_order(&one(vec![set("a/b", 2), remove("a/b")]), &tree(&[("a/", 0)]));
    in_every_order(&one(vec![remove("a"), set("a/b", 2), set("a", 3)]), &tree(&[("a", 3)]));
}

#[test]
fn a_map_stays_a_map_after_its_last_child_is_removed() {
    let rounds = [round(2, vec![set("a", 5)]), round(3, vec![set("a/b", 1)]), round(4, vec![remove("a/b")])];
    in_every_order(&rounds, &tree(&[("a/", 0)]));
    // Deeper: the write that made `q` a map is two levels below, under a clear in between.
    let rounds =
        [round(2, vec![set("q", 5)]), round(3, vec![set("q/a/b", 1)]), round(4, vec![remove("q/a")])];
    in_every_order(&rounds, &tree(&[("q/", 0)]));
}

#[test]
fn a_map_stays_a_map_where_the_removed_child_was_never_held() {
    // The child is written and removed before anything is drained: only the folded kind travels.
    let author = new(9);
    for r in [round(1, vec![create()]), round(3, vec![set("a/b", 1)]), round(4, vec![remove("a/b")])] {
        apply_round(&author, &r);
    }
    let other = new(10);
    apply_round(&other, &round(2, vec![set("a", 5)]));
    deliver(&other, 1, &drain(&author));
    assert_eq!(show(&other, entity(0)), tree(&[("a/", 0)]));
}

#[test]
fn a_leaf_hidden_under_a_newer_clear_does_not_count() {
    let (holds, never) = (new(9), new(10));
    for r in [round(1, vec![create()]), round(4, vec![remove("a")])] {
        apply_round(&holds, &r);
        apply_round(&never, &r);
    }
    apply_round(&holds, &round(2, vec![set("a/k", 1)]));
    drain(&holds);
    drain(&never);
    assert_eq!(holds.digest(), never.digest());
    assert_eq!(holds.bucket_digests(), never.bucket_digests());
    let stamps = |r: &PlainReplica| {
        let summary = r.summary(entity(0)).into_iter();
        summary.map(|s| (s.key, s.first, s.floor, s.kind)).collect::<Vec<_>>()
    };
    assert_eq!(stamps(&holds), stamps(&never), "nothing to repair");
}

#[test]
fn an_entity_deleted_while_flying_never_comes_back() {
    let rounds = [
        round(2, vec![set("motion", 1)]),
        round(3, vec![delete()]),
        round(4, vec![set("motion", 2)]),
        round(5, vec![create()]),
    ];
    in_every_order(&rounds, &None);
}

#[test]
fn writes_after_a_known_deletion_are_refused_locally() {
    let (streamer, other) = (new(9), new(10));
    let (wall, meta) = (WallTime::from_nanos(10), SampleMeta::default());
    streamer.write(&batch(&[create(), set("motion", 1)]), wall, meta).unwrap();
    deliver(&other, 1, &drain(&streamer));
    other.write(&batch(&[delete()]), wall, meta).unwrap();
    streamer.write(&batch(&[set("motion", 2)]), wall, meta).unwrap();
    deliver(&other, 1, &drain(&streamer));
    deliver(&streamer, 1, &drain(&other));
    let refused = streamer.write(&batch(&[set("motion", 3)]), wall, meta);
    assert_eq!(refused, Err(WriteError::Deleted(entity(0))));
    assert_eq!((show(&streamer, entity(0)), show(&other, entity(0))), (None, None));
    drain(&streamer);
    assert_eq!(streamer.digest(), other.digest(), "only the tombstone counts");
    assert_eq!(
        streamer.write(&batch(&[Op::Remove { entity: entity(5), path: path("a") }]), wall, meta),
        Err(WriteError::Unknown(entity(5)))
    );
}

#[test]
fn an_answer_to_what_was_received_wins() {
    let (ahead, behind) = (new(9), new(10));
    let meta = SampleMeta::default();
    ahead.write(&batch(&[create(), set("k", 1)]), WallTime::from_nanos(400_000_000), meta).unwrap();
    deliver(&behind, 1, &drain(&ahead));
    behind.write(&batch(&[set("k", 2)]), WallTime::from_nanos(5), meta).unwrap();
    deliver(&ahead, 1, &drain(&behind));
    assert_eq!(show(&ahead, entity(0)), tree(&[("k", 2)]));
}

#[test]
fn the_sim_entity_exists_and_cannot_be_deleted() {
    let replica = new(9);
    assert_eq!(show(&replica, SIM_ENTITY), tree(&[]));
    assert_eq!(Batch::new().push(Op::Delete { entity: SIM_ENTITY }), Err(BatchError::Protected));
    let slot = replica.resolve(&SlotKey { entity: SIM_ENTITY, path: None }).unwrap();
    let tombstone = Life { created: Stamp::NONE, deleted: stamp(3) };
    let applied = replica.apply(LinkTag(1), &[(slot, tombstone.into())], Vec::new());
    let mut refused = Applied::default();
    refused.note(slot, Fate::Refused(Refusal::Protected));
    assert_eq!(applied, refused);
    assert!(replica.life(SIM_ENTITY).is_live());
}

#[test]
fn fragments_not_in_normal_form_change_nothing() {
    let replica = new(9);
    apply_round(&replica, &round(1, vec![create()]));
    drain(&replica);
    let before = replica.digest();
    let slot = replica.resolve(&SlotKey { entity: entity(0), path: Some(path("a")) }).unwrap();
    let leaf = |value| Some(Leaf { stamp: stamp(5), meta: SampleMeta::default(), value });
    let bad = [
        NodeState { leaf: leaf(Value::Int(1)), kind: stamp(5), ..NodeState::default() },
        NodeState { leaf: leaf(Value::Int(1)), floor: stamp(5), ..NodeState::default() },
        NodeState { leaf: leaf(Value::Map(std::sync::Arc::default())), ..NodeState::default() },
    ];
    for state in bad {
        let applied = replica.apply(LinkTag(1), &[(slot, SlotState::Node(state))], Vec::new());
        assert_eq!(applied.refused, vec![(slot, Refusal::NotNormal)]);
    }
    let life: SlotState = Life::default().into();
    let applied = replica.apply(LinkTag(1), &[(slot, life)], Vec::new());
    assert_eq!(applied.refused, vec![(slot, Refusal::WrongKind)]);
    assert_eq!((drain(&replica).len(), replica.digest()), (0, before));
}

#[test]
fn orphans_wait_uncounted_and_bounded() {
    let limits = PlainLimits { orphans: 2, ..PlainLimits::default() };
    let replica = PlainReplica::with_limits(Incarnation(9), limits);
    let set = |n| Op::Set { entity: entity(n), path: path("a"), value: Value::Int(1) };
    for n in 0..3 {
        apply_round(&replica, &round(5 + n as u64, vec![set(n)]));
    }
    drain(&replica);
    assert_eq!((replica.digest(), replica.orphans_evicted()), (new(1).digest(), 1));
    assert_eq!(show(&replica, entity(2)), None);
    for n in 0..3 {
        apply_round(&replica, &round(1 + n as u64, vec![Op::Create { entity: entity(n) }]));
    }
    assert_eq!(show(&replica, entity(0)), tree(&[]), "forgotten to make room");
    assert_eq!(show(&replica, entity(2)), tree(&[("a", 1)]));
}

#[test]
fn at_the_limit_creation_is_refused_and_deletion_is_not() {
    let limits = PlainLimits { entities: 1, ..PlainLimits::default() };
    let replica = PlainReplica::with_limits(Incarnation(9), limits);
    let (wall, meta) = (WallTime::from_nanos(1), SampleMeta::default());
    replica.write(&batch(&[create()]), wall, meta).unwrap();
    let another = batch(&[Op::Create { entity: entity(1) }]);
    assert_eq!(replica.write(&another, wall, meta), Err(WriteError::Limit));
    replica.write(&batch(&[delete()]), wall, meta).unwrap();
    assert_eq!(show(&replica, entity(0)), None);
}

#[test]
fn values_count_by_their_bits() {
    let of = |value: Value| {
        let leaf = Some(Leaf { stamp: stamp(1), meta: SampleMeta::default(), value });
        digest::of_node(entity(0), &path("a"), &NodeState { leaf, ..NodeState::default() })
    };
    let all = [
        of(Value::Float(0.0)),
        of(Value::Float(-0.0)),
        of(Value::Float(f64::from_bits(0x7ff8_0000_0000_0001))),
        of(Value::Float(f64::from_bits(0x7ff8_0000_0000_0002))),
        of(Value::Int(0)),
        of(Value::UInt(0)),
        of(Value::Nil),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn a_fragment_that_says_nothing_new_is_no_change() {
    let replica = new(9);
    apply_round(&replica, &round(1, vec![create(), set("a", 1)]));
    drain(&replica);
    let slot = replica.resolve(&SlotKey { entity: entity(0), path: Some(path("a")) }).unwrap();
    let Some(SlotState::Node(held)) = replica.read(slot) else { panic!("a node") };
    let written = held.leaf.as_ref().unwrap().stamp;
    // As a floor, as who has seen a child beat the leaf sends it; as itself; as nothing.
    let floor = NodeState { floor: written, ..NodeState::default() };
    for state in [floor, held, NodeState::default()] {
        let applied = replica.apply(LinkTag(1), &[(slot, SlotState::Node(state.clone()))], Vec::new());
        assert_eq!(applied.fates, [Fate::Superseded], "{state:?}");
    }
    assert!(drain(&replica).is_empty());
}
