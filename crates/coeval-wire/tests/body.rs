//! What must hold of packed bodies: every bit comes back, bad input is an error, neighbors are cheap.
#[path = "../../coeval-value/tests/strategies/mod.rs"]
mod strategies;

use coeval_merge::{Entry, EntryBody, Life, NodeState, SlotId, SlotKey, SlotState};
use coeval_time::{Edit, EditId, EditKind, Incarnation, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, LimitError, Limits, Motion, Path, Quat, SampleMeta, Value};
use coeval_wire::body::{
    BodyError, BodyLimits, MAX_BODY, decode_entries, decode_keys, decode_states, decode_value,
    encode_entries, encode_keys, encode_states, encode_value,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strategies::*;

const LIMITS: BodyLimits = BodyLimits { items: 1 << 18, value: Limits::MAX };

/// Stamps that leave room for the next one, or none.
fn stamp_or_none() -> impl Strategy<Value = Stamp> + Clone {
    prop_oneof![Just(Stamp::NONE), Just(Stamp::GENESIS), usable_stamp()]
}

fn usable_stamp() -> impl Strategy<Value = Stamp> + Clone {
    any_stamp().prop_map(|s| Stamp::new(s.hlc.min(u64::MAX - (1 << 33)), s.writer))
}

fn any_state() -> impl Strategy<Value = SlotState> + Clone {
    let life =
        (stamp_or_none(), stamp_or_none()).prop_map(|(created, deleted)| Life { created, deleted }.into());
    let leaf = (usable_stamp(), any_leaf()).prop_map(|(stamp, leaf)| coeval_value::Leaf { stamp, ..leaf });
    let node = (proptest::option::weighted(0.8, leaf), stamp_or_none(), stamp_or_none())
        .prop_map(|(leaf, floor, kind)| NodeState { leaf, floor, kind })
        .prop_filter("normal form", NodeState::is_normal)
        .prop_map(SlotState::Node);
    prop_oneof![1 => life, 4 => node]
}

fn any_states() -> impl Strategy<Value = Vec<(SlotId, SlotState)>> {
    let slot = prop_oneof![3 => 0u32..40, 1 => any::<u32>()];
    (vec((slot.prop_map(SlotId), any_state()), 0..12), any::<bool>()).prop_map(|(mut states, sorted)| {
        if sorted {
            states.sort_by_key(|(slot, _)| *slot);
        }
        states
    })
}

fn any_keys() -> impl Strategy<Value = Vec<(SlotId, SlotKey)>> {
    let entity = prop_oneof![3 => (0u128..3).prop_map(|n| EntityId(uuid(n))), 1 => any_entity()];
    let key = (entity, proptest::option::weighted(0.8, any_path()))
        .prop_map(|(entity, path)| SlotKey { entity, path });
    vec((any::<u32>().prop_map(SlotId), key), 0..20)
}

fn uuid(n: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(n)
}

fn any_entry() -> impl Strategy<Value = Entry> + Clone {
    let id = (any_stamp(), any::<u32>()).prop_map(|(stamp, index)| EditId { stamp, index });
    let kind = prop_oneof![
        any_f64().prop_filter("finite", |v| v.is_finite()).prop_map(EditKind::Scale),
        Just(EditKind::Pause),
        Just(EditKind::Resume),
        any_time().prop_map(EditKind::JumpTo),
        any_duration().prop_map(EditKind::JumpBy),
        any_time().prop_map(EditKind::StopAt),
        id.clone().prop_map(EditKind::Cancel),
    ];
    let clock = (id.clone(), any::<u64>(), kind).prop_map(|(id, at, kind)| Entry {
        id,
        body: EntryBody::Clock(Edit { id, at: WallTime::from_nanos(at), kind }),
    });
    let record = (id, "[a-z/é]{0,20}", any_value())
        .prop_map(|(id, topic, value)| Entry { id, body: EntryBody::Record { topic: topic.into(), value } });
    prop_oneof![clock, record]
}

fn borrow<T>(items: &[(SlotId, T)]) -> Vec<(SlotId, &T)> {
    items.iter().map(|(slot, item)| (*slot, item)).collect()
}

fn states_body(states: &[(SlotId, SlotState)]) -> Result<Vec<u8>, BodyError> {
    let mut out = Vec::new();
    encode_states(&borrow(states), &mut out).map(|()| out)
}

/// By bits.
fn same_state(a: &SlotState, b: &SlotState) -> bool {
    match (a, b) {
        (SlotState::Life(a), SlotState::Life(b)) => a == b,
        (SlotState::Node(a), SlotState::Node(b)) => (&a.leaf, a.floor, a.kind) == (&b.leaf, b.floor, b.kind),
        _ => false,
    }
}

/// By bits.
fn same_entry(a: &Entry, b: &Entry) -> bool {
    let body = match (&a.body, &b.body) {
        (EntryBody::Record { topic: s, value: v }, EntryBody::Record { topic: t, value: w }) => {
            (s, v) == (t, w)
        }
        (EntryBody::Clock(a), EntryBody::Clock(b)) => match (a.kind, b.kind) {
            (EditKind::Scale(s), EditKind::Scale(t)) => {
                s.to_bits() == t.to_bits() && (a.id, a.at) == (b.id, b.at)
            }
            _ => a == b,
        },
        _ => false,
    };
    a.id == b.id && body
}

/// Feeds bytes to every decoder; returns how many took them.
fn decode_all(bytes: &[u8]) -> usize {
    let ok = [
        decode_states(bytes, &LIMITS).is_ok(),
        decode_keys(bytes, &LIMITS).is_ok(),
        decode_entries(bytes, &LIMITS).is_ok(),
        decode_value(bytes, &LIMITS.value).is_ok(),
    ];
    ok.into_iter().filter(|ok| *ok).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn states_come_back_by_bits(states in any_states()) {
        let body = states_body(&states).unwrap();
        let back = decode_states(&body, &LIMITS).unwrap();
        prop_assert_eq!(back.len(), states.len());
        for ((slot, state), (sent_slot, sent)) in back.iter().zip(&states) {
            prop_assert_eq!(slot, sent_slot);
            prop_assert!(same_state(state, sent), "{:?} is not {:?}", state, sent);
        }
        prop_assert_eq!(states_body(&back).unwrap(), body);
    }

    #[test]
    fn keys_come_back(keys in any_keys()) {
        let mut body = Vec::new();
        encode_keys(&borrow(&keys), &mut body).unwrap();
        prop_assert_eq!(decode_keys(&body, &LIMITS).unwrap(), keys);
    }

    #[test]
    fn entries_come_back_by_bits(entries in vec(any_entry(), 0..8)) {
        let mut body = Vec::new();
        encode_entries(&entries, &mut body).unwrap();
        let back = decode_entries(&body, &LIMITS).unwrap();
        prop_assert_eq!(back.len(), entries.len());
        prop_assert!(back.iter().zip(&entries).all(|(a, b)| same_entry(a, b)), "{:?} is not {:?}", back, entries);
    }

    #[test]
    fn a_value_comes_back_by_bits(value in any_value()) {
        let mut body = Vec::new();
        encode_value(&value, &mut body).unwrap();
        prop_assert_eq!(decode_value(&body, &Limits::MAX).unwrap(), value);
    }

    #[test]
    fn a_cut_or_lengthened_body_is_an_error(states in any_states(), cut in any::<prop::sample::Index>()) {
        let mut body = states_body(&states).unwrap();
        prop_assert!(decode_states(&body[..cut.index(body.len())], &LIMITS).is_err());
        let at = body.len();
        body.push(0);
        prop_assert_eq!(decode_states(&body, &LIMITS).unwrap_err(), BodyError::Trailing { at, left: 1 });
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..200), content in 0usize..5) {
        if let ([version, what, ..], Some(real)) = (&mut bytes[..], b"SKEV".get(content)) {
            (*version, *what) = (1, *real);
        }
        prop_assert!(decode_all(&bytes) <= 1);
    }
}

/// Bodies of every content, small and whole.
fn valid_bodies() -> Vec<Vec<u8>> {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut bodies = Vec::new();
    for _ in 0..40 {
        let states = any_states().new_tree(&mut runner).unwrap().current();
        let keys = any_keys().new_tree(&mut runner).unwrap().current();
        let entries = vec(any_entry(), 0..8).new_tree(&mut runner).unwrap().current();
        bodies.push(states_body(&states).unwrap());
        let (mut k, mut e) = (Vec::new(), Vec::new());
        encode_keys(&borrow(&keys), &mut k).unwrap();
        encode_entries(&entries, &mut e).unwrap();
        bodies.extend([k, e]);
    }
    bodies
}

/// Changes, inserts, removes, repeats or splices a few bytes.
fn mutate(body: &mut Vec<u8>, other: &[u8], rng: &mut ChaCha8Rng) {
    const TELLING: [u8; 8] = [0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, 0x16, 0x17];
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=body.len());
        match rng.random_range(0..5) {
            0 if at < body.len() => body[at] ^= 1 << rng.random_range(0..8),
            1 if at < body.len() => body[at] = TELLING[rng.random_range(0..TELLING.len())],
            2 => body.insert(at, rng.next_u32() as u8),
            3 => drop(body.drain(at..rng.random_range(at..=body.len()))),
            _ => {
                body.truncate(at);
                body.extend_from_slice(&other[rng.random_range(0..=other.len())..]);
            }
        }
    }
}

/// Roughly what decoded states occupy.
fn size_of_states(states: &[(SlotId, SlotState)]) -> usize {
    let heap = |state: &SlotState| match state {
        SlotState::Node(NodeState { leaf: Some(leaf), .. }) => leaf.value.deep_size(),
        _ => 0,
    };
    states.iter().map(|(slot, state)| size_of_val(slot) + size_of_val(state) + heap(state)).sum()
}

#[test]
fn mutated_bodies_never_panic_and_never_grow_out_of_proportion() {
    let seed = 0x5eed_b0d7;
    println_seed(seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let bodies = valid_bodies();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut body = bodies[rng.random_range(0..bodies.len())].clone();
        let other = &bodies[rng.random_range(0..bodies.len())];
        mutate(&mut body, other, &mut rng);
        match decode_all(&body) {
            0 => refused += 1,
            _ => taken += 1,
        }
        if let Ok(states) = decode_states(&body, &LIMITS) {
            assert!(size_of_states(&states) <= 256 * body.len(), "seed {seed}: {} bytes grew", body.len());
            assert!(states_body(&states).is_ok(), "seed {seed}: decoded what cannot be encoded");
        }
    }
    // Both happen, or the mutator tests nothing.
    assert!(taken > 200 && refused > 2_000, "seed {seed}: {taken} taken, {refused} refused");
}

#[expect(clippy::print_stderr, reason = "a failing run must show its seed")]
fn println_seed(seed: u64) {
    eprintln!("seed {seed:#x}");
}

fn leaf(n: u64, rate: i128, value: Value) -> SlotState {
    let stamp = Stamp::new(1_700_000_000_000_000_000 + n * 1_000_000, Incarnation(77));
    let meta =
        SampleMeta { sim: SimTime::from_nanos(i128::from(n) * 1_000_000 * rate), ..Default::default() };
    SlotState::Node(NodeState { leaf: Some(coeval_value::Leaf { stamp, meta, value }), ..Default::default() })
}

fn average(rate: i128, values: impl Iterator<Item = Value>) -> f64 {
    let states: Vec<_> =
        (0..).zip(values).map(|(n, value)| (SlotId(n * 2), leaf(n.into(), rate, value))).collect();
    states_body(&states).unwrap().len() as f64 / states.len() as f64
}

#[test]
#[expect(clippy::print_stderr, reason = "the sizes are what one runs this test to see")]
fn neighbors_cost_at_most_fourteen_bytes_above_their_components() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut random = || -> [f64; 3] { std::array::from_fn(|_| rng.random_range(-1e7..1e7)) };
    for rate in [1, 4, 0, -1, 100] {
        let motions = (0..1_000).map(|_| {
            let q = Quat::from_axis_angle(random(), 1.0).unwrap();
            Motion::at(random()).velocity(random()).orientation(q).into()
        });
        let motion = average(rate, motions);
        let scalar = average(rate, (0..1_000).map(|_| random()[0].into()));
        eprintln!("rate {rate}, bytes each: motion {motion} (80 raw), scalar {scalar} (8 raw)");
        assert!(motion <= 94.0, "rate {rate}: {motion}");
        assert!(scalar <= 20.0, "rate {rate}: {scalar}");
    }
}

#[test]
fn many_slots_of_alike_entities_are_defined_in_few_bytes() {
    let paths = ["motion", "engine/throttle", "engine/temperature"].map(|p| Some(Path::parse(p).unwrap()));
    let keys: Vec<_> = (0..3_000u32)
        .map(|n| {
            let entity = EntityId(uuid(u128::from(n / 3)));
            (SlotId(n), SlotKey { entity, path: paths[n as usize % 3].clone() })
        })
        .collect();
    let mut body = Vec::new();
    encode_keys(&borrow(&keys), &mut body).unwrap();
    assert!(
        body.len() <= 1_000 * (17 + 3 * 3 + "motionenginethrottletemperature".len() + 4) + 10,
        "{}",
        body.len()
    );
}

#[test]
fn state_not_in_normal_form_is_refused_both_ways() {
    let stamp = Stamp::new(5, Incarnation(7));
    let of = |value: Value, stamp, floor, kind| {
        let leaf = coeval_value::Leaf { stamp, meta: SampleMeta::default(), value };
        vec![(SlotId(0), SlotState::Node(NodeState { leaf: Some(leaf), floor, kind }))]
    };
    let none = Stamp::NONE;
    for states in [
        of(Value::Nil, stamp, none, stamp),
        of(Value::Nil, stamp, stamp, none),
        of(Value::Nil, none, none, none),
        of(Value::map::<Value>([]), stamp, none, none),
    ] {
        assert!(matches!(states_body(&states), Err(BodyError::NotNormal { .. })), "{states:?}");
    }
    // The same from a peer that does not check: version, content, count, slot, flags, then the leaf and its stamps.
    let leaf_of = |flags, rest: &[u8]| {
        let mut body = vec![1, b'S', 1, 0, flags, 10, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9];
        body.extend_from_slice(rest);
        decode_states(&body, &LIMITS).map(|states| states.len())
    };
    let (leaf, same_epoch, floor, kind) = (2, 64, 4, 8);
    assert_eq!(leaf_of(leaf | same_epoch, &[0]), Ok(1));
    assert_eq!(leaf_of(leaf | same_epoch | kind, &[0, 2, 0]), Ok(1));
    assert!(matches!(
        leaf_of(leaf | same_epoch | kind, &[0, 0, 0]),
        Err(BodyError::NotNormal { at: 19, .. })
    ));
    assert!(matches!(
        leaf_of(leaf | same_epoch | floor, &[0, 0, 0]),
        Err(BodyError::NotNormal { at: 19, .. })
    ));
    assert!(matches!(leaf_of(leaf | same_epoch, &[23, 0]), Err(BodyError::NotNormal { at: 18, .. })));
}

#[test]
fn what_is_unknown_is_named_with_its_place() {
    let states = |body: &[u8]| decode_states(body, &LIMITS).map(|s| s.len()).unwrap_err();
    assert_eq!(states(&[2, b'S', 0]), BodyError::Version(2));
    assert_eq!(states(&[1, b'K', 0]), BodyError::Content { found: b'K', asked: b'S' });
    let flags = |code| BodyError::Unknown { what: "flags of a state", code, at: 4 };
    assert_eq!(states(&[1, b'S', 1, 0, 3]), flags(3));
    assert_eq!(states(&[1, b'S', 1, 0, 0x10]), flags(0x10));
    let value = |body: &[u8]| decode_value(body, &Limits::MAX).unwrap_err();
    assert_eq!(value(&[1, b'V', 200]), BodyError::Unknown { what: "value kind", code: 200, at: 2 });
    assert_eq!(value(&[1, b'V', 24, 0, 99]), BodyError::Unknown { what: "motion model", code: 99, at: 4 });
    let entries = decode_entries(&[1, b'E', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], &LIMITS).unwrap_err();
    assert_eq!(entries, BodyError::Unknown { what: "entry", code: 9, at: 14 });
}

#[test]
fn a_claimed_count_allocates_nothing() {
    for content in *b"SKE" {
        let body = [1, content, 0xff, 0xff, 0x0f];
        assert_eq!(decode_all(&body), 0);
    }
    let many = decode_states(&[1, b'S', 0xff, 0xff, 0xff, 0x7f], &LIMITS).unwrap_err();
    assert_eq!(many, BodyError::Count { what: "states", found: 0x0fff_ffff, limit: LIMITS.items });
    assert_eq!(decode_all(&vec![1; MAX_BODY + 1]), 0);
}

#[test]
fn an_encoder_that_refuses_leaves_its_output_as_it_was() {
    let blob = |n: u64| (SlotId(n as u32), leaf(n, 1, vec![0u8; 3 << 20].into()));
    let (one, two) = ([blob(0)], [blob(0), blob(1)]);
    let mut out = b"before".to_vec();
    assert!(matches!(encode_states(&borrow(&two), &mut out), Err(BodyError::TooLong(_))));
    assert_eq!(out, b"before");
    assert_eq!(encode_states(&borrow(&one), &mut out), Ok(()));
    let deep = (1..17).fold(Value::Nil, |v, _| Value::list([v]));
    let error = encode_value(&deep, &mut out).unwrap_err();
    assert!(matches!(error, BodyError::Value { error: LimitError::Depth { limit: 16 }, .. }), "{error}");
}

#[test]
fn nesting_is_bounded_before_it_is_built() {
    let deep = |levels: usize| {
        let mut body = vec![1, b'V'];
        (1..levels).for_each(|_| body.extend([22, 1]));
        body.push(0);
        decode_value(&body, &Limits::MAX).map(|v| v.depth())
    };
    assert_eq!(deep(16), Ok(16));
    assert!(matches!(deep(17), Err(BodyError::Value { .. })));
    assert!(matches!(deep(100_000), Err(BodyError::Value { at: 34, .. })));
}

#[test]
fn lists_of_nothing_are_bounded_before_they_are_built() {
    // Ten lists of 100,000 nils: a megabyte of input, forty of memory.
    let lists = |count: usize| {
        let mut body = vec![1, b'V', 22, count as u8];
        (0..count).for_each(|_| {
            body.extend([22, 0xa0, 0x8d, 0x06]);
            body.extend([0; 100_000]);
        });
        decode_value(&body, &Limits::MAX)
    };
    assert!(lists(2).is_ok());
    let error = lists(10).unwrap_err();
    let limit = matches!(error, BodyError::Value { at, error: LimitError::Size { .. } } if at < 600_000);
    assert!(limit, "{error}");
}

#[test]
fn overflow_stamps_are_refused_both_ways() {
    let stamp = Stamp::new(u64::MAX, Incarnation(7));
    let states = [(SlotId(0), SlotState::Life(Life { created: stamp, deleted: Stamp::NONE }))];
    assert!(matches!(states_body(&states), Err(BodyError::Range { what: "stamp", .. })));
    // A difference of -1 from nothing.
    let body = [1, b'S', 1, 0, 4, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(decode_states(&body, &LIMITS).unwrap_err(), BodyError::Range { what: "stamp", at: 15 });
}

#[test]
fn a_scale_that_is_not_finite_is_refused_both_ways() {
    let id = EditId { stamp: Stamp::new(0, Incarnation(7)), index: 0 };
    let edit = |scale| Edit { id, at: WallTime::from_nanos(0), kind: EditKind::Scale(scale) };
    let mut body = Vec::new();
    let entry = |scale| [Entry { id, body: EntryBody::Clock(edit(scale)) }];
    assert!(encode_entries(&entry(f64::NAN), &mut body).is_err());
    encode_entries(&entry(1.0), &mut body).unwrap();
    let at = body.len() - 8;
    body[at..].copy_from_slice(&f64::INFINITY.to_bits().to_le_bytes());
    assert!(matches!(
        decode_entries(&body, &LIMITS),
        Err(BodyError::Range { what: "scale of a clock edit", .. })
    ));
    let other = Entry { id: EditId { index: 1, ..id }, body: EntryBody::Clock(edit(1.0)) };
    assert!(matches!(encode_entries(&[other], &mut body), Err(BodyError::NotNormal { .. })));
}
