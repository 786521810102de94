//! Programs that share a world, are killed, stopped, and started again.
use crate::common::{host_program, join_program};
use coeval_integration_tests::eventually;
use coeval_integration_tests::program::{Program, converge};
use serde_json::json;
use std::time::Duration;

fn shows(program: &mut Program, entity: &str, path: &str, value: i64) {
    eventually(&format!("{entity}/{path} is {value}"), || program.get(entity, path) == json!(value));
}

fn linked(program: &mut Program, names: &[&str]) {
    eventually(&format!("direct links with {names:?}"), || {
        let peers = program.peers();
        names.iter().all(|name| peers.iter().any(|(n, state)| n == name && state == "Linked"))
    });
}

fn create(program: &mut Program, name: &str) {
    program.ask(json!({ "do": "create", "name": name }));
}

#[test]
fn two_programs_share_a_world() {
    let mut a = host_program("a");
    create(&mut a, "probe");
    a.set("probe", "fuel", 80);
    let mut b = join_program(&a.invite, "b");
    // What was there before the joiner is there when it has opened.
    assert_eq!(b.get("probe", "fuel"), json!(80));
    b.set("probe", "fuel", 79);
    b.ask(json!({ "do": "flush" }));
    assert_eq!(a.get("probe", "fuel"), json!(79));
    converge(&mut [&mut a, &mut b]);
    assert_eq!(b.ask(json!({ "do": "leave" })), json!({}));
    eventually("a peer that left is gone", || a.peers().iter().all(|(_, state)| state != "Linked"));
}

#[test]
fn a_mesh_outlives_the_kill_of_its_host() {
    let mut a = host_program("a");
    let mut b = join_program(&a.invite, "b");
    let mut c = join_program(&a.invite, "c");
    linked(&mut a, &["b", "c"]);
    linked(&mut b, &["a", "c"]);
    linked(&mut c, &["a", "b"]);
    create(&mut a, "base");
    shows_nothing_yet_then(&mut a, &mut b, &mut c);
    a.kill();
    b.set("base", "x", 1);
    c.set("base", "y", 2);
    shows(&mut c, "base", "x", 1);
    shows(&mut b, "base", "y", 2);
    converge(&mut [&mut b, &mut c]);
    let invite = b.ask(json!({ "do": "invite" }))["invite"].as_str().unwrap().to_owned();
    let mut d = join_program(&invite, "d");
    assert_eq!((d.get("base", "x"), d.get("base", "y")), (json!(1), json!(2)));
    d.set("base", "z", 3);
    shows(&mut c, "base", "z", 3);
    converge(&mut [&mut b, &mut c, &mut d]);
}

/// The entity that `a` made reaches the others.
fn shows_nothing_yet_then(a: &mut Program, b: &mut Program, c: &mut Program) {
    a.set("base", "w", 0);
    shows(b, "base", "w", 0);
    shows(c, "base", "w", 0);
}

#[test]
fn the_kill_of_a_joiner_disturbs_nobody_and_it_comes_back() {
    let mut a = host_program("a");
    let b = join_program(&a.invite, "b");
    let mut c = join_program(&a.invite, "c");
    create(&mut a, "base");
    b.kill();
    for n in 0..50 {
        a.set("base", "x", n);
    }
    shows(&mut c, "base", "x", 49);
    let mut b = join_program(&a.invite, "b");
    assert_eq!(b.get("base", "x"), json!(49));
    c.set("base", "x", 50);
    shows(&mut b, "base", "x", 50);
    converge(&mut [&mut a, &mut b, &mut c]);
}

#[test]
fn a_stopped_program_catches_up() {
    let mut a = host_program("a");
    let mut b = join_program(&a.invite, "b");
    create(&mut a, "base");
    shows_entity(&mut b, "base");
    a.ask(json!({ "do": "stream", "entity": "base", "keys": 50, "hz": 500, "ms": 3_000 }));
    b.signal("STOP");
    let streamed = a.ask(json!({ "do": "streamed" }));
    assert_eq!(streamed, json!({ "writes": 1_500 }));
    b.signal("CONT");
    shows(&mut b, "base", "k49", 1_499);
    converge(&mut [&mut a, &mut b]);
}

fn shows_entity(program: &mut Program, name: &str) {
    eventually("the entity arrives", || {
        program
            .try_ask(&json!({ "do": "set", "entity": name, "path": "seen", "value": true }))
            .get("error")
            .is_none()
    });
}

#[test]
fn a_joiner_during_writes_misses_nothing() {
    let mut a = host_program("a");
    let mut b = join_program(&a.invite, "b");
    for name in ["one", "two"] {
        create(&mut a, name);
        shows_entity(&mut b, name);
    }
    a.ask(json!({ "do": "stream", "entity": "one", "keys": 300, "hz": 1_000, "ms": 2_500 }));
    b.ask(json!({ "do": "stream", "entity": "two", "keys": 300, "hz": 1_000, "ms": 2_500 }));
    let mut c = join_program(&b.invite, "c");
    let mut d = join_program(&a.invite, "d");
    for program in [&mut a, &mut b] {
        assert_eq!(program.ask(json!({ "do": "streamed" })), json!({ "writes": 2_500 }));
    }
    converge(&mut [&mut a, &mut b, &mut c, &mut d]);
    assert_eq!(c.get("one", "k99"), json!(2_499));
    assert_eq!(d.get("two", "k99"), json!(2_499));
}

/// The deleter's word reaches the streamer, who is stopped, late.
#[test]
fn an_entity_deleted_while_it_flies_never_comes_back() {
    let mut a = host_program("a");
    let mut b = join_program(&a.invite, "b");
    let mut c = join_program(&a.invite, "c");
    create(&mut a, "plane");
    shows_entity(&mut b, "plane");
    shows_entity(&mut c, "plane");
    b.ask(json!({ "do": "stream", "entity": "plane", "hz": 60, "ms": 20_000 }));
    eventually("the stream arrives", || c.get("plane", "k0").as_i64() > Some(5));
    b.signal("STOP");
    a.ask(json!({ "do": "delete", "entity": "plane" }));
    eventually("the deletion arrives", || c.get("plane", "k0").is_null());
    std::thread::sleep(Duration::from_secs(2));
    b.signal("CONT");
    let streamed = b.ask(json!({ "do": "streamed" }));
    assert_eq!(streamed["refused"], json!("Deleted"), "{streamed}");
    converge(&mut [&mut a, &mut b, &mut c]);
    for program in [&mut a, &mut b, &mut c] {
        assert!(program.get("plane", "k0").is_null());
    }
}

/// A program whose OS clock is 9 minutes off shares the session's time, not its own.
#[test]
fn a_wrong_clock_does_not_keep_a_program_out() {
    let mut a = host_program("a");
    create(&mut a, "base");
    a.set("base", "x", 1);
    for (name, offset) in [("slow", "offset_ms=-540000"), ("fast", "offset_ms=540000")] {
        let mut b =
            Program::start(crate::common::PEER, &["join", &a.invite, &format!("name={name}"), offset]);
        assert_eq!(b.get("base", "x"), json!(1), "{name}: the world is there when the peer is open");
        b.set("base", "x", 2);
        shows(&mut a, "base", "x", 2);
        a.set("base", "x", 1);
        shows(&mut b, "base", "x", 1);
        converge(&mut [&mut a, &mut b]);
        let wall = |program: &mut Program| -> i128 {
            let read = program.ask(json!({ "do": "clock", "edit": "read" }));
            read["wall"].as_str().unwrap().parse().unwrap()
        };
        let (before, theirs, after) = (wall(&mut a), wall(&mut b), wall(&mut a));
        let slack = 50_000_000;
        assert!(before - slack <= theirs && theirs <= after + slack, "{name}: {before} {theirs} {after}");
    }
}
