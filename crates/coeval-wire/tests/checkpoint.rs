//! Checkpoints as bytes: read back as they were, or refused with the reason.
use coeval_merge::{Content, Life, NodeState, SlotKey, SlotState};
use coeval_time::{Incarnation, SessionId, SimTime, Stamp, WallTime};
use coeval_value::{EntityId, Leaf, Path, SampleMeta, Value};
use coeval_wire::checkpoint::CHECKPOINT_VERSION;
use coeval_wire::{Checkpoint, CheckpointError};
use proptest::prelude::*;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

fn example(entities: u64, bytes: usize) -> Checkpoint {
    let mut states: Vec<(SlotKey, SlotState)> = Vec::new();
    for n in 0..entities {
        let entity = EntityId(Uuid::from_u128(u128::from(n) + 1));
        let stamp = Stamp::new(1_000 + n, Incarnation(5));
        let life = Life { created: stamp, deleted: if n % 5 == 4 { stamp } else { Stamp::NONE } };
        states.push((SlotKey { entity, path: None }, life.into()));
        let meta = SampleMeta { epoch: Content::CURRENT, ..SampleMeta::default() };
        let value = Value::Bytes(vec![n as u8; bytes].into());
        let node = NodeState { leaf: Some(Leaf { stamp, meta, value }), ..NodeState::default() };
        let path = Path::parse("a/b").expect("a path");
        states.push((SlotKey { entity, path: Some(path) }, node.into()));
    }
    let content = Content { sim: SimTime::from_nanos(-12_345_678_901), scale: -0.25, states };
    Checkpoint { session: SessionId(Uuid::from_u128(7)), taken: WallTime::from_nanos(99), content }
}

/// The checksum of changed bytes, put where it belongs: what a decoder then meets is what a forger would send.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > 34 {
        let length = (bytes.len() - 34) as u64;
        let sum = xxh3_128(&bytes[34..]);
        bytes[10..18].copy_from_slice(&length.to_le_bytes());
        bytes[18..34].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

#[test]
fn a_checkpoint_is_read_back_as_it_was() {
    // The last one has groups that are too long for one body.
    for (entities, bytes) in [(0, 0), (1, 3), (3_000, 10), (20, 1 << 20)] {
        let whole = example(entities, bytes);
        let read = Checkpoint::decode(&whole.encode().expect("bytes")).expect("a checkpoint");
        assert_eq!((read.session, read.taken), (whole.session, whole.taken));
        assert_eq!((read.content.sim, read.content.scale), (whole.content.sim, whole.content.scale));
        assert_eq!(read.content.digest(), whole.content.digest());
        assert_eq!(format!("{:?}", read.content.states), format!("{:?}", whole.content.states));
    }
}

#[test]
fn damaged_cut_and_foreign_bytes_are_told_apart() {
    let bytes = example(40, 10).encode().expect("bytes");
    for end in 0..bytes.len() {
        let error = Checkpoint::decode(&bytes[..end]).expect_err("cut off");
        let expected = matches!(error, CheckpointError::Length { .. })
            || (end == 0 && matches!(error, CheckpointError::NotACheckpoint));
        assert!(expected, "cut at {end}: {error}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(Checkpoint::decode(&longer), Err(CheckpointError::Length { .. })));
    for at in 34..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(matches!(Checkpoint::decode(&changed), Err(CheckpointError::Damaged)), "changed at {at}");
    }
    let mut later = bytes.clone();
    later[8..10].copy_from_slice(&(CHECKPOINT_VERSION + 1).to_le_bytes());
    assert!(
        matches!(Checkpoint::decode(&later), Err(CheckpointError::Version(v)) if v == CHECKPOINT_VERSION + 1)
    );
    assert!(matches!(Checkpoint::decode(b"not at all"), Err(CheckpointError::NotACheckpoint)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_checkpoints_never_panic_and_what_is_read_is_written_again(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = example(6, 4).encode().expect("bytes");
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        if let Ok(read) = Checkpoint::decode(&sealed(bytes)) {
            let again = Checkpoint::decode(&read.encode().expect("bytes")).expect("what was written");
            prop_assert_eq!(again.content.digest(), read.content.digest());
        }
    }
}
