//! Loss, delay, partitions and garbage.
use crate::common::{PEER, bad_net, cut, host_program, mesh};
use coeval::Conditioner;
use coeval_integration_tests::program::{Program, converge as converge_programs};
use coeval_integration_tests::{converge, eventually, keep};
use rand::{RngCore, SeedableRng};
use serde_json::json;
use std::time::Duration;

#[test]
fn loss_and_delay_keep_nobody_apart() {
    let net = "net=delay=50ms,loss=5%";
    let mut a = Program::start(PEER, &["host", "name=a", net]);
    let mut b = Program::start(PEER, &["join", &a.invite, "name=b", net]);
    for (program, name) in [(&mut a, "one"), (&mut b, "two")] {
        program.ask(json!({ "do": "create", "name": name }));
        program.ask(json!({ "do": "stream", "entity": name, "keys": 40, "hz": 300, "ms": 2_000 }));
    }
    for program in [&mut a, &mut b] {
        assert_eq!(program.ask(json!({ "do": "streamed" })), json!({ "writes": 600 }));
    }
    converge_programs(&mut [&mut a, &mut b]);
    assert_eq!(b.get("one", "k39"), json!(599));
    assert_eq!(a.get("two", "k39"), json!(599));
}

#[test]
fn garbage_on_the_port_does_no_harm() {
    let mut a = host_program("a");
    let mut b = Program::start(PEER, &["join", &a.invite, "name=b"]);
    a.ask(json!({ "do": "create", "name": "base" }));
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let seed = 41;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    for n in 0..2_000 {
        let mut bytes = vec![0; (rng.next_u32() % 1_400) as usize + 1];
        rng.fill_bytes(&mut bytes);
        if n % 2 == 0 {
            // Like the first packet of a QUIC connection, version 1.
            bytes.splice(0..0, [0xc3, 0, 0, 0, 1, 8]);
        }
        // A full socket buffer is no matter here.
        let _ = socket.send_to(&bytes, &a.address);
    }
    b.ask(json!({ "do": "flush" }));
    eventually("b writes", || {
        let write = json!({ "do": "set", "entity": "base", "path": "x", "value": 5 });
        b.try_ask(&write).get("error").is_none()
    });
    eventually("a sees it", || a.get("base", "x") == json!(5));
    converge_programs(&mut [&mut a, &mut b]);
}

/// A short partition is bridged by the link; both sides go on writing and both keep the newest.
#[test]
fn a_partition_ends_in_one_world() {
    let peers = mesh(["a", "b", "c"]);
    let [a, b, c] = &peers;
    let base = a.create_entity("base").unwrap();
    converge(&[a, b, c]);
    let theirs = c.entity("base").unwrap();
    c.set_conditioner(cut());
    for n in 0..200 {
        base.set(a.context(), "x", n).unwrap();
        base.set(a.context(), format!("a{}", n % 7).as_str(), n).unwrap();
        theirs.set(c.context(), format!("c{}", n % 7).as_str(), n).unwrap();
    }
    // Later by the session's time as c knows it; the peers' estimates differ by a little.
    let last = a.wall().now;
    eventually("c's clock is past the last write of a", || c.wall().now > last);
    theirs.set(c.context(), "x", -1).unwrap();
    let apart = || a.digest() != c.digest();
    keep("nothing passes the partition", Duration::from_millis(1_000), apart);
    c.set_conditioner(Conditioner::default());
    converge(&[a, b, c]);
    assert_eq!(base.get_as::<i64>(a.context(), "x").unwrap(), -1, "the newest write wins");
    assert_eq!(theirs.get_as::<i64>(c.context(), "a3").unwrap(), 199);
}

/// Longer than the links live: they are made anew and go on from where they were.
#[test]
fn links_lost_in_a_long_partition_are_made_anew() {
    let peers = mesh(["a", "b"]);
    let [a, b] = &peers;
    let base = a.create_entity("base").unwrap();
    converge(&[a, b]);
    let theirs = b.entity("base").unwrap();
    b.set_conditioner(cut());
    a.set_conditioner(cut());
    base.set(a.context(), "x", 1).unwrap();
    theirs.set(b.context(), "y", 2).unwrap();
    eventually("the links are given up", || {
        [a, b].iter().all(|peer| peer.peers().iter().all(|other| other.state != coeval::PeerState::Linked))
    });
    for peer in [a, b] {
        peer.set_conditioner(bad_net(0, 0.0));
    }
    converge(&[a, b]);
    assert_eq!(base.get_as::<i64>(a.context(), "y").unwrap(), 2);
    assert_eq!(theirs.get_as::<i64>(b.context(), "x").unwrap(), 1);
}
