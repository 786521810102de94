//! Peers that keep a journal end in every way, and come back with all that they were told is safe.
use crate::common::{PEER, cut, join, join_program};
use coeval::{ErrorKind, JournalOptions, Motion, Peer, PeerEvent, SyncPolicy, Value, WallDuration};
use coeval_integration_tests::eventually;
use coeval_integration_tests::program::{Program, converge};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn journaled(path: &Path) -> Peer {
    Peer::host("flight").peer_name("ada").journal(path).open().expect("hosting works")
}

fn set(peer: &Peer, entity: &str, path: &str, value: impl Into<Value>) {
    peer.entity(entity).and_then(|e| e.set(peer.context(), path, value)).expect("a write");
}

fn get(peer: &Peer, entity: &str, path: &str) -> Option<Value> {
    peer.entity(entity).and_then(|e| e.get(peer.context(), path)).ok()
}

#[test]
fn a_lone_peer_flushes_to_its_journal_and_its_session_is_hosted_again() {
    let folder = folder();
    let path = folder.path().join("world.journal");
    let host = journaled(&path);
    let (session, node, digest) = {
        let probe = host.create_entity("probe").unwrap();
        probe.set(host.context(), "motion", Motion::at([1.0, 2.0, 3.0])).unwrap();
        let gone = host.create_entity("gone").unwrap();
        gone.set(host.context(), "x", 1_i64).unwrap();
        gone.delete().unwrap();
        host.clock().set_scale(4.0).unwrap();
        host.flush(PATIENCE).expect("the journal counts");
        (host.session(), host.node(), host.digest())
    };
    let invite = host.invite().unwrap();
    host.leave(PATIENCE).unwrap();
    let again = Peer::rehost(path.as_path()).open().unwrap();
    assert_eq!(again.session(), session);
    assert_eq!(
        (again.node().peer, again.name(), again.session_name().as_str()),
        (node.peer, "ada", "flight")
    );
    assert_ne!(again.node().incarnation, node.incarnation, "a new opening");
    assert_eq!(again.context().rate, 4.0);
    assert!(again.entity("gone").is_err());
    // The member record of the new opening is all that was added.
    assert_ne!(again.digest(), digest);
    let guest = Peer::join(invite).open().expect("an invite made before still works");
    let motion: Motion =
        guest.entity("probe").unwrap().param("motion").unwrap().get(guest.context()).unwrap();
    assert_eq!(motion.position, Some([1.0, 2.0, 3.0]));
    set(&guest, "probe", "mass", 5.0);
    guest.flush(PATIENCE).unwrap();
    assert_eq!(get(&again, "probe", "mass"), Some(Value::Float(5.0)));
    guest.leave(PATIENCE).unwrap();
    again.leave(PATIENCE).unwrap();
    // What others wrote is in it too.
    let third = Peer::rehost(path.as_path()).open().unwrap();
    assert_eq!(get(&third, "probe", "mass"), Some(Value::Float(5.0)));
    let report = coeval::journal::inspect(&path).unwrap();
    assert_eq!((report.writers.len(), report.damaged_at), (3, None), "{report:?}");
}

/// Case 15: written at ten o'clock, the clock set back to nine, written again: the second write wins everywhere.
#[test]
fn after_a_restart_with_the_clock_set_back_the_second_write_wins_everywhere() {
    let folder = folder();
    let path = folder.path().join("world.journal");
    let host = journaled(&path);
    host.create_entity("probe").unwrap();
    set(&host, "probe", "k", 1_i64);
    let before = host.wall().now;
    host.leave(PATIENCE).unwrap();
    let back = WallDuration::from_secs(-3_600);
    let again = Peer::rehost(path.as_path()).os_clock_offset(back).open().unwrap();
    assert!(again.wall().now.since(before) > WallDuration::from_secs(-1), "session wall time goes on");
    set(&again, "probe", "k", 2_i64);
    // A program whose own clock is right.
    let guest = join(&again, "guest");
    assert_eq!(get(&guest, "probe", "k"), Some(Value::Int(2)));
    set(&again, "probe", "k", 3_i64);
    again.flush(PATIENCE).unwrap();
    assert_eq!(get(&guest, "probe", "k"), Some(Value::Int(3)));
    assert!(guest.peers().iter().all(|peer| peer.parked == 0), "nothing had to wait");
}

#[test]
fn what_was_written_while_nobody_heard_spreads_and_what_was_deleted_meanwhile_stays_deleted() {
    let folder = folder();
    let path = folder.path().join("guest.journal");
    let host = crate::common::host("host");
    for name in ["kept", "doomed"] {
        host.create_entity(name).unwrap();
    }
    let open = || {
        Peer::join(host.invite().unwrap()).peer_name("guest").journal(path.as_path()).timeout(PATIENCE).open()
    };
    let guest = open().unwrap();
    let node = guest.node();
    guest.set_conditioner(cut());
    set(&guest, "kept", "x", 1_i64);
    set(&guest, "kept", "y", 1_i64);
    set(&guest, "doomed", "x", 1_i64);
    guest.create_entity("born alone").unwrap();
    assert_eq!(guest.flush(Duration::from_millis(300)).unwrap_err().kind(), ErrorKind::Timeout);
    drop(guest);
    host.entity("doomed").unwrap().delete().unwrap();
    set(&host, "kept", "y", 2_i64);
    let back = open().expect("it comes back");
    assert_eq!((back.node().peer, back.node() == node), (node.peer, false));
    // It learns what became of what it wrote.
    let told = back.offline_writes().expect("told when it caught up");
    assert_eq!((told.superseded, told.fell, told.unknown), (1, 1, 0), "{told:?}");
    assert!(told.stood >= 2, "{told:?}");
    let lost: Vec<_> = told.lost.iter().map(|w| (w.path.clone().unwrap().to_string(), w.fell)).collect();
    assert!(lost.contains(&("y".into(), false)) && lost.contains(&("x".into(), true)), "{told:?}");
    assert!(told.lost.iter().all(|write| write.by.as_deref() == Some("host")), "{told:?}");
    back.flush(PATIENCE).unwrap();
    eventually("equal worlds", || host.digest() == back.digest());
    for peer in [&host, &back] {
        assert_eq!(get(peer, "kept", "x"), Some(Value::Int(1)));
        assert_eq!(get(peer, "kept", "y"), Some(Value::Int(2)));
        assert!(peer.entity("born alone").is_ok());
        assert!(peer.entity("doomed").is_err(), "it came back");
    }
}

/// Without a journal: links that were cut come back.
#[test]
fn who_was_cut_off_learns_what_became_of_its_writes() {
    let host = crate::common::host("host");
    let guest = join(&host, "guest");
    let base = host.create_entity("base").unwrap();
    host.flush(PATIENCE).unwrap();
    set(&guest, "base", "heard", 1_i64);
    guest.flush(PATIENCE).unwrap();
    let notices = guest.notices();
    for peer in [&host, &guest] {
        peer.set_conditioner(cut());
    }
    eventually("both are alone", || crate::common::direct(&host) + crate::common::direct(&guest) == 0);
    set(&guest, "base", "x", 1_i64);
    set(&guest, "base", "y", 1_i64);
    std::thread::sleep(Duration::from_millis(5));
    base.set(host.context(), "y", 2_i64).unwrap();
    for peer in [&host, &guest] {
        peer.set_conditioner(coeval::Conditioner::default());
    }
    eventually("it is told", || guest.offline_writes().is_some());
    let told = guest.offline_writes().unwrap();
    assert_eq!((told.stood, told.superseded, told.fell), (1, 1, 0), "{told:?}");
    assert_eq!(told.lost[0].by.as_deref(), Some("host"));
    assert!(std::iter::from_fn(|| notices.poll()).any(|n| n == PeerEvent::OfflineWrites(told.clone())));
    assert_eq!(get(&guest, "base", "y"), Some(Value::Int(2)));
}

#[test]
fn journals_of_others_are_refused_with_words() {
    let folder = folder();
    let path = folder.path().join("world.journal");
    let refused = |result: coeval::Result<Peer>| {
        let error = result.expect_err("refused");
        (error.kind(), error.to_string())
    };
    let (kind, text) = refused(Peer::rehost(path.as_path()).open());
    assert!(kind == ErrorKind::NotFound && text.contains("no journal at"), "{text}");
    let host = journaled(&path);
    // Two on one journal.
    let (kind, text) = refused(Peer::rehost(path.as_path()).open());
    assert!(kind == ErrorKind::Journal && text.contains("in use by another program"), "{text}");
    host.leave(PATIENCE).unwrap();
    // A new session on the journal of an old one.
    let (kind, text) = refused(Peer::host("other").journal(path.as_path()).open());
    assert!(kind == ErrorKind::Exists && text.contains("rehost") && text.contains("flight"), "{text}");
    // The journal of another session.
    let other = crate::common::host("other");
    let (kind, text) = refused(Peer::join(other.invite().unwrap()).journal(path.as_path()).open());
    assert!(kind == ErrorKind::Invalid && text.contains("flight"), "{text}");
    // A place that cannot be written to.
    let nowhere = folder.path().join("no/such/folder/j");
    let (kind, text) = refused(Peer::host("x").journal(nowhere.as_path()).open());
    assert!(kind == ErrorKind::NotFound || kind == ErrorKind::Journal, "{kind:?}");
    assert!(text.contains("no/such/folder/j"), "{text}");
    // Something else.
    let text_file = folder.path().join("notes.txt");
    std::fs::write(&text_file, "these are no journal, but notes that nobody wants to lose").unwrap();
    let (_, text) = refused(Peer::host("x").journal(text_file.as_path()).open());
    assert!(text.contains("is not a journal"), "{text}");
    assert!(std::fs::read_to_string(&text_file).unwrap().starts_with("these are"), "it was overwritten");
}

#[test]
fn damage_in_the_middle_is_told_and_what_comes_before_can_be_salvaged() {
    let folder = folder();
    let path = folder.path().join("world.journal");
    let host = journaled(&path);
    let probe = host.create_entity("probe").unwrap();
    for n in 0..50_i64 {
        probe.set(host.context(), "k", n).unwrap();
        host.flush(PATIENCE).unwrap();
    }
    host.leave(PATIENCE).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() * 3 / 4;
    bytes[middle] ^= 0x10;
    std::fs::write(&path, &bytes).unwrap();
    let error = Peer::rehost(path.as_path()).open().unwrap_err();
    let text = error.to_string();
    assert!(
        error.kind() == ErrorKind::Journal && text.contains("damaged at byte") && text.contains("salvage"),
        "{text}"
    );
    assert!(coeval::journal::inspect(&path).unwrap().damaged_at.is_some());
    let saved = Peer::rehost(JournalOptions::new(&path).salvage()).open().unwrap();
    let Some(Value::Int(k)) = get(&saved, "probe", "k") else { panic!("nothing was saved") };
    assert!((0..49).contains(&k), "{k}");
}

/// Every way of syncing; the world is large; and the file is followed by new ones while writes go on.
#[test]
fn a_large_world_comes_back_and_long_files_are_replaced_while_writes_go_on() {
    let folder = folder();
    let path = folder.path().join("world.journal");
    let options = JournalOptions::new(&path).sync(SyncPolicy::Never);
    let host = Peer::host("large").journal(options).open().unwrap();
    let entities: Vec<_> = (0..1_000).map(|n| host.create_entity(&format!("e{n}")).unwrap()).collect();
    let keys: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
    for entity in &entities {
        let mut batch = host.batch(host.context());
        for key in &keys {
            batch.set(entity.id(), key.as_str(), 1.5).unwrap();
        }
        batch.commit().unwrap();
    }
    host.flush(PATIENCE).unwrap();
    let first = std::fs::metadata(&path).unwrap().len();
    // Several times the snapshot, over 100 parameters.
    let mut written = 0;
    let start = Instant::now();
    while written < 8 * first && start.elapsed() < PATIENCE {
        for key in &keys {
            let text = "x".repeat(20_000);
            written += text.len() as u64;
            entities[0].set(host.context(), key.as_str(), text).unwrap();
        }
        host.flush(PATIENCE).unwrap();
    }
    let digest = host.digest();
    host.leave(PATIENCE).unwrap();
    let last = std::fs::metadata(&path).unwrap().len();
    assert!(last < written, "{last} bytes after {written} were written: nothing was replaced");
    let start = Instant::now();
    let again = Peer::rehost(path.as_path()).open().unwrap();
    let took = start.elapsed();
    // A measurement, not a judgment; a closed standard output is no fault.
    let _ = writeln!(std::io::stdout(), "100,000 parameters came back from {last} bytes in {took:?}");
    assert_eq!(again.entities().len(), 1_001);
    assert_eq!(again.entity("e999").unwrap().get(again.context(), "k99").unwrap(), Value::Float(1.5));
    assert_ne!(again.digest(), digest, "the member record");
    assert_eq!(again.counters().orphans, 0);
}

fn flushes(program: &mut Program) {
    program.ask(json!({ "do": "flush" }));
}

/// It was alone when it wrote, and was killed: what it was told is safe is there.
#[test]
fn a_lone_program_that_is_killed_loses_nothing_it_flushed() {
    let folder = folder();
    let path = folder.path().join("j").display().to_string();
    let mut alone = Program::start(PEER, &["host", "name=alone", &format!("journal={path}")]);
    alone.ask(json!({ "do": "create", "name": "probe" }));
    for n in 0..20 {
        alone.set("probe", &format!("k{n}"), n);
    }
    flushes(&mut alone);
    // More, in full flight when it dies.
    alone.ask(json!({ "do": "stream", "entity": "probe", "keys": 5, "hz": 2000, "ms": 60_000 }));
    std::thread::sleep(Duration::from_millis(300));
    let invite = alone.invite.clone();
    alone.kill();
    // The machine had begun to write one more record.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"\0\0\0\x20MS half of a record");
    std::fs::write(&path, bytes).unwrap();
    let mut again = Program::start(PEER, &["rehost", &path, "name=again"]);
    for n in 5..20 {
        assert_eq!(again.get("probe", &format!("k{n}")), json!(n), "lost");
    }
    let mut guest = join_program(&invite, "guest");
    converge(&mut [&mut again, &mut guest]);
    assert_eq!(guest.get("probe", "k19"), json!(19));
}

/// No room: the session goes on, `flush` says what is wrong, and what was flushed before is safe.
#[cfg(unix)]
#[test]
fn a_full_disk_stops_nothing_and_flush_names_the_journal() {
    let folder = folder();
    let path = folder.path().join("j").display().to_string();
    // Files may grow to 64 KiB here; beyond, writing fails as on a full disk.
    let limited = "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\"";
    let journal = format!("journal={path}");
    let mut host = Program::start("sh", &["-c", limited, PEER, "host", "name=host", &journal]);
    host.ask(json!({ "do": "create", "name": "probe" }));
    host.set("probe", "safe", 7);
    flushes(&mut host);
    let mut guest = join_program(&host.invite.clone(), "guest");
    let mut refused = json!(null);
    for n in 0..200 {
        host.set("probe", &format!("k{n}"), "x".repeat(2_000));
        refused = host.try_ask(&json!({ "do": "flush" }));
        if refused.get("error").is_some() {
            break;
        }
    }
    assert_eq!(refused["kind"], "Journal", "{refused}");
    assert!(refused["error"].as_str().is_some_and(|text| text.contains(&path)), "{refused}");
    // Links go on.
    host.set("probe", "late", 1);
    eventually("the guest has it", || guest.get("probe", "late") == json!(1));
    host.kill();
    guest.kill();
    let mut again = Program::start(PEER, &["rehost", &path]);
    assert_eq!(again.get("probe", "safe"), json!(7));
}

/// Whoever looks after the program hears of it once, and hears when it is over.
#[cfg(unix)]
#[test]
fn a_journal_that_cannot_be_written_for_a_while_is_told_and_comes_back_whole() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let path = inner.join("j");
    let host = journaled(&path);
    host.create_entity("probe").unwrap();
    let notices = host.notices();
    // The next file cannot be made: its name is taken by a folder that is not empty.
    std::fs::create_dir_all(inner.join("j.new/x")).unwrap();
    let mut value = 0_i64;
    let failed = eventually_failed(&host, &mut value);
    assert!(failed.to_string().contains("j"), "{failed}");
    assert!(std::iter::from_fn(|| notices.poll()).any(|n| matches!(n, PeerEvent::JournalFailed { .. })));
    std::fs::remove_dir_all(inner.join("j.new")).unwrap();
    eventually("the journal works again", || host.flush(PATIENCE).is_ok());
    assert!(std::iter::from_fn(|| notices.poll()).any(|n| n == PeerEvent::JournalRestored));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    host.leave(PATIENCE).unwrap();
    let again = Peer::rehost(path.as_path()).open().unwrap();
    assert_eq!(get(&again, "probe", "n"), Some(Value::Int(value)));
}

/// Writes until a flush fails: until the next file is due.
fn eventually_failed(host: &Peer, value: &mut i64) -> coeval::Error {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < PATIENCE, "the journal never failed");
        *value += 1;
        set(host, "probe", "n", *value);
        for key in ["a", "b", "c", "d"] {
            set(host, "probe", key, "x".repeat(500_000));
        }
        if let Err(error) = host.flush(PATIENCE) {
            return error;
        }
    }
}
