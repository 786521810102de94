//! Frames: what is written is read back; what is not a frame is refused with words, never with a panic.
use bytes::Bytes;
use coeval_merge::Digest;
use coeval_time::{EditId, Incarnation, Stamp, WallTime};
use coeval_value::{EntityId, NodeId, PeerId};
use coeval_wire::frame::*;
use coeval_wire::{FrameError, Interest};
use proptest::prelude::*;
use uuid::Uuid;

fn node(n: u8) -> NodeId {
    NodeId { peer: PeerId([n; 32]), incarnation: Incarnation(u64::from(n) << 50) }
}

fn edit(n: u64) -> EditId {
    EditId { stamp: Stamp::new(n << 40, Incarnation(n)), index: n as u32 }
}

/// One frame of every kind.
fn all() -> Vec<Frame> {
    let id = EntityId(Uuid::from_u128(0x1234_5678_9abc_7000_8000_0000_0000_0001));
    let blob = Bytes::from_static(&[1, 2, 3, 250]);
    let stamps = vec![[Stamp::new(7, Incarnation(8)), Stamp::NONE, Stamp::GENESIS]];
    let event = Payload::Event {
        number: 4,
        topic: "fire".into(),
        target: WireTarget::Entity(id),
        sim: (-5, 999_999_999),
        command: true,
        value: blob.clone(),
    };
    let refused = Payload::Reply { number: 4, reply: Reply::Refused { reason: "no".into() } };
    let tag = WorldTag { number: 3, stamp: Stamp::new(9, Incarnation(4)), sim: (-5, 7), scale: u64::MAX };
    vec![
        Hello {
            cursor: Some((Incarnation(u64::MAX), 9)),
            empty: false,
            digest: Digest(u128::MAX - 1),
            world: tag,
            interest: Interest::Full,
        }
        .into(),
        Define { keys: blob.clone() }.into(),
        Delta { root: Some(Incarnation(7)), states: blob.clone() }.into(),
        Entries { entries: Bytes::new() }.into(),
        Mark { position: 1 << 40, caught_up: true }.into(),
        Ack { position: 3, parked: 1, ahead: 5_000_000_000, refused: 2, superseded: u32::MAX, inert: 7 }
            .into(),
        Root { digest: Digest(5), position: 6, members: u64::MAX }.into(),
        Buckets { round: 1, urgent: true, digests: (0..256).map(Digest).collect() }.into(),
        Entities {
            round: 1,
            bucket: Some(255),
            after: Some(id),
            until: None,
            digests: vec![(id, Digest(1))],
            last: true,
        }
        .into(),
        Summary { round: 1, entities: vec![id, id], keys: blob.clone(), stamps, last: false }.into(),
        EntryIds { after: None, until: Some(edit(3)), ids: vec![edit(1), edit(3)] }.into(),
        Want { slots: vec![0, u32::MAX], entries: vec![edit(2)], ends: Some(7) }.into(),
        Repaired { round: 7 }.into(),
        LinkState {
            node: node(1),
            version: 2,
            name: "näme".into(),
            addresses: vec!["10.0.0.1:1".into()],
            observer: true,
            left: false,
            links: vec![node(2), node(3)],
        }
        .into(),
        Event { from: node(1), to: node(2), seq: 3, first: 1, hops: 4, payload: event }.into(),
        Event { from: node(1), to: node(2), seq: 4, first: 1, hops: 4, payload: refused }.into(),
        EventAck { from: node(2), to: node(1), seq: 3, hops: 0 }.into(),
        Ping { id: 1 }.into(),
        Pong { id: 1, received: WallTime::from_nanos(5), sent: WallTime::from_nanos(u64::MAX) }.into(),
        Bye { reason: "done".into() }.into(),
        Fetch { world: tag }.into(),
    ]
}

#[test]
fn every_frame_is_read_back_as_it_was() {
    for frame in all() {
        let message = frame.encode().unwrap_or_else(|e| panic!("{}: {e}", frame.name()));
        assert_eq!(Frame::decode(&message).unwrap_or_else(|e| panic!("{}: {e}", frame.name())), frame);
    }
}

#[test]
fn unknown_version_kind_and_field_are_named() {
    let mut message = Frame::from(Ping { id: 1 }).encode().expect("a ping").to_vec();
    message[1] = 9;
    assert!(matches!(Frame::decode(&message), Err(FrameError::UnknownVersion(9))));
    message[1] = PROTOCOL_VERSION as u8;
    message[2] = 200;
    assert!(matches!(Frame::decode(&message), Err(FrameError::UnknownKind(200))));
    // A ping with a field more: a map of two.
    let more = [0, PROTOCOL_VERSION as u8, 17, 0x82, 0xa2, b'i', b'd', 1, 0xa3, b'n', b'e', b'w', 2];
    let error = Frame::decode(&more).expect_err("an unknown field").to_string();
    assert!(error.contains("Ping") && error.contains("new"), "{error}");
}

#[test]
fn frames_cut_short_or_with_bytes_to_spare_are_refused() {
    for frame in all() {
        let message = frame.encode().expect("a frame").to_vec();
        for end in 0..message.len() {
            assert!(Frame::decode(&message[..end]).is_err(), "{} cut at {end}", frame.name());
        }
        let longer = [message.as_slice(), &[0xc0]].concat();
        assert!(
            matches!(Frame::decode(&longer), Err(FrameError::Trailing { bytes: 1, .. })),
            "{}",
            frame.name()
        );
    }
}

#[test]
fn lengths_that_are_claimed_but_not_there_are_refused() {
    // `bin`, `str`, array and map headers that claim four billion items, in place of the value of the only field.
    for header in [0xc6, 0xdb, 0xdd, 0xdf] {
        let head = [
            0,
            PROTOCOL_VERSION as u8,
            2,
            0x81,
            0xa4,
            b'k',
            b'e',
            b'y',
            b's',
            header,
            0xff,
            0xff,
            0xff,
            0xff,
        ];
        assert!(Frame::decode(&head).is_err(), "{header:#x}");
    }
    let deep = [&[0, PROTOCOL_VERSION as u8, 19, 0x81, 0xa6][..], b"reason", &[0x91; 100_000]].concat();
    assert!(Frame::decode(&deep).is_err());
    assert!(matches!(Frame::decode(&vec![0; MAX_FRAME + 1]), Err(FrameError::TooLong(_))));
}

#[test]
fn too_long_frames_are_not_written() {
    let states = Bytes::from(vec![0; MAX_FRAME]);
    assert!(matches!(Frame::from(Delta { root: None, states }).encode(), Err(FrameError::TooLong(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(kind in 0u8..25, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Frame::decode(&bytes);
        let _ = Frame::decode(&[&[0, PROTOCOL_VERSION as u8, kind][..], &bytes].concat());
    }

    #[test]
    fn mutated_frames_never_panic_and_what_is_read_is_written_again(
        which in 0usize..21,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut message = all()[which].encode().expect("a frame").to_vec();
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] = byte;
        }
        if let Ok(frame) = Frame::decode(&message) {
            let again = frame.encode().expect("a frame that was read");
            prop_assert_eq!(Frame::decode(&again).expect("a frame that was written"), frame);
        }
    }
}
