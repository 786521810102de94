//! Who is who, what a world starts with, several writers of one entity.
use crate::common::{cut, host, join, mesh};
use coeval::{EntityId, ErrorKind, Identity, Incarnation, Limits, NodeId, Op, Path, Peer, PeerEvent, Value};
use coeval_integration_tests::{NEVER, converge, eventually};
use std::time::Duration;

fn op(entity: EntityId, path: &str, value: i64) -> Op {
    Op::Set { entity, path: Path::parse(path).unwrap(), value: Value::Int(value) }
}

/// Two openings of one installation are two peers.
#[test]
fn two_peers_of_one_identity_share_a_session() {
    let identity = Identity::generate().unwrap();
    let a = Peer::host("a").peer_name("a").identity(identity.clone()).open().unwrap();
    let open = |name: &str| {
        let invite = a.invite().unwrap();
        Peer::join(invite).peer_name(name).identity(identity.clone()).open().unwrap()
    };
    let (b, c) = (open("b"), open("c"));
    let nodes = [a.node(), b.node(), c.node()];
    assert!(nodes.iter().all(|node| node.peer == identity.peer()));
    assert!(nodes[0] != nodes[1] && nodes[1] != nodes[2] && nodes[0] != nodes[2]);
    for (peer, name) in [(&a, "one"), (&b, "two"), (&c, "three")] {
        peer.create_entity(name).unwrap();
    }
    converge(&[&a, &b, &c]);
    assert_eq!([&a, &b, &c].map(|peer| peer.entities().len()), [a.entities().len(); 3]);
    c.entity("one").unwrap();
    eventually("direct links", || [&a, &b, &c].iter().all(|peer| crate::common::direct(peer) == 2));
}

/// Two writers, one instant, two fields of one parameter.
#[test]
fn two_fields_by_two_writers_both_survive() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let ship = a.create_entity("ship").unwrap();
    converge(&[a, b]);
    let there = b.entity("ship").unwrap();
    for n in 0..50 {
        ship.set(a.context(), "pose/rotation", n).unwrap();
        there.set(b.context(), "pose/position", -n).unwrap();
        converge(&[a, b]);
        for (peer, entity) in [(a, &ship), (b, &there)] {
            assert_eq!(entity.get_as::<i64>(peer.context(), "pose/rotation").unwrap(), n);
            assert_eq!(entity.get_as::<i64>(peer.context(), "pose/position").unwrap(), -n);
        }
    }
}

/// What a thread writes after reading wins, over the network too.
#[test]
fn a_write_after_a_read_wins_everywhere() {
    let peers = mesh(["a", "b", "c"]);
    let [a, b, c] = &peers;
    let handles = {
        let token = a.create_entity("token").unwrap();
        converge(&[a, b, c]);
        [a, b, c].map(|peer| peer.entity_by_id(token.id()).unwrap().param::<i64>("turn").unwrap())
    };
    for turn in 0..150_i64 {
        let at = usize::try_from(turn).unwrap() % 3;
        let (peer, param) = ([a, b, c][at], &handles[at]);
        eventually("the turn comes round", || {
            turn == 0 || param.get(peer.context()).is_ok_and(|seen| seen == turn - 1)
        });
        param.set(peer.context(), turn).unwrap();
    }
    converge(&[a, b, c]);
    for (peer, param) in [a, b, c].into_iter().zip(&handles) {
        assert_eq!(param.get(peer.context()).unwrap(), 149);
    }
}

/// A joiner whose config is the session's starts with it; one whose config is another takes all from the session; and
/// what was written since wins over every initial value.
#[test]
fn a_joiner_overwrites_nothing_with_what_it_would_start_with() {
    let (base, stray) = (EntityId::v7(1, [1; 10]), EntityId::v7(1, [2; 10]));
    let world = vec![Op::Create { entity: base }, op(base, "x", 1), op(base, "y", 1)];
    let other = vec![Op::Create { entity: stray }, Op::Create { entity: base }, op(base, "x", 9)];
    let a = Peer::host("a").peer_name("a").initial(world.clone(), [7; 16]).open().unwrap();
    let there = a.entity_by_id(base).unwrap();
    there.set(a.context(), "x", 2_i64).unwrap();
    let same = Peer::join(a.invite().unwrap()).initial(world, [7; 16]).open().unwrap();
    let differs = Peer::join(a.invite().unwrap()).initial(other, [8; 16]).open().unwrap();
    for peer in [&same, &differs] {
        let entity = peer.entity_by_id(base).unwrap();
        assert_eq!(entity.get_as::<i64>(peer.context(), "x").unwrap(), 2);
        assert_eq!(entity.get_as::<i64>(peer.context(), "y").unwrap(), 1);
        assert!(peer.entity_by_id(stray).is_err());
    }
    converge(&[&a, &same, &differs]);
    assert!(a.entity_by_id(stray).is_err());
}

/// Sessions do not mix, though they share a process.
#[test]
fn two_sessions_in_one_process_stay_apart() {
    let (a, b) = (host("a"), host("b"));
    let (a2, b2) = (join(&a, "a2"), join(&b, "b2"));
    a.create_entity("only a").unwrap();
    b.create_entity("only b").unwrap();
    converge(&[&a, &a2]);
    converge(&[&b, &b2]);
    assert!(a2.entity("only b").is_err() && b2.entity("only a").is_err());
    assert_ne!(a.session().session, b.session().session);
    assert_eq!((a2.session_name(), b2.session_name()), (a.session_name(), b.session_name()));
}

/// Comings and goings are told in order, with who said that it leaves.
#[test]
fn who_comes_and_goes_is_told() {
    let a = host("a");
    let notices = a.notices();
    let b = join(&a, "b");
    let node = b.node();
    let joined = PeerEvent::PeerJoined { node, name: "b".into(), observer: false };
    assert_eq!(notices.wait(NEVER), Some(joined));
    b.leave(Duration::from_secs(10)).unwrap();
    assert_eq!(notices.wait(NEVER), Some(PeerEvent::PeerLeft { node, said_so: true }));
    assert_eq!((notices.poll(), notices.dropped()), (None, 0));
}

/// A flush to those who are near does not wait for one that is cut off; a flush to that one names it.
#[test]
fn a_flush_waits_for_those_it_names() {
    let peers = mesh(["a", "b", "c"]);
    let [a, b, c] = &peers;
    let base = a.create_entity("base").unwrap();
    a.flush_to(&[b.node(), c.node()], NEVER).unwrap();
    assert!(c.entity("base").is_ok());
    c.set_conditioner(cut());
    base.set(a.context(), "x", 1_i64).unwrap();
    a.flush_to(&[b.node()], NEVER).unwrap();
    assert_eq!(b.entity("base").unwrap().get_as::<i64>(b.context(), "x").unwrap(), 1);
    let short = Duration::from_millis(200);
    for stalled in [a.flush_to(&[b.node(), c.node()], short), a.flush(short)] {
        let error = stalled.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.to_string().ends_with(" by c"), "{error}");
    }
    // Not a peer at all: it is named too.
    let nobody = NodeId { incarnation: Incarnation(1), ..a.node() };
    let error = a.flush_to(&[nobody], short).unwrap_err();
    assert!(error.to_string().contains(&nobody.to_string()), "{error}");
    // Oneself has everything.
    a.flush_to(&[a.node()], Duration::ZERO).unwrap();
}

/// A digest speaks of what the asking thread wrote just before.
#[test]
fn a_digest_is_of_all_that_was_written_so_far() {
    let a = host("a");
    let base = a.create_entity("base").unwrap();
    let mut seen = std::collections::BTreeSet::from([a.digest()]);
    for n in 0..200_i64 {
        base.set(a.context(), "x", n).unwrap();
        assert!(seen.insert(a.digest()), "write {n} is not in the digest");
    }
    let last = a.digest();
    assert_eq!(a.digest(), last);
    let twin = a.clone();
    a.leave(Duration::ZERO).unwrap();
    assert_eq!(twin.digest(), last);
}

/// A peer that has no room for what others write says so to those who ask whether it has it.
#[test]
fn a_flush_names_who_refused() {
    let a = host("a");
    let small = Limits { entities: 6, ..Limits::default() };
    let b = Peer::join(a.invite().unwrap()).peer_name("b").limits(small).open().unwrap();
    a.create_entity("fits").unwrap();
    a.flush(NEVER).unwrap();
    for n in 0..20 {
        a.create_entity(&format!("e{n}")).unwrap();
    }
    let error = a.flush(NEVER).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("refused by b:"), "{error}");
    assert!(b.entities().len() <= 6 && b.entity("fits").is_ok());
    assert!(a.peers()[0].refused_there > 0 && b.peers()[0].refused > 0);
}
