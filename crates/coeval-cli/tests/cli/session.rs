//! The command over real processes: host, join, look, change, and go on when the host is killed.

use crate::common::{PATIENCE, Reader, Running, coeval, config, eventually, file, host, join, json};
use serde_json::json;
use std::time::Instant;

#[test]
fn what_one_process_sets_another_gets() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    let invite = invite.as_str();
    let set = json(invite, &["set", "probe/mass", "5.0", "--create"]);
    assert_eq!((&set["created"], &set["value"]), (&json!(true), &json!(5.0)));
    json(invite, &["set", "probe", "{ label = \"first\", pose = { x = 1.5, y = -2.0 } }"]);

    let mass = json(invite, &["get", "probe/mass"]);
    assert_eq!(
        (&mass["value"], &mass["type"], &mass["author"]),
        (&json!(5.0), &json!("float"), &json!("coeval set"))
    );
    assert_eq!(mass["id"], set["id"]);
    assert_eq!(mass["alive"], json!(false), "the command that wrote it has left");
    let out = coeval(Some(invite), &["get", "probe/mass", "--at", "+1h"]).ok();
    assert!(out.starts_with("5.0  # ") && out.contains("by coeval set"), "{out}");
    let whole = coeval(Some(invite), &["get", "probe"]).ok();
    for line in ["mass = 5.0", "label = \"first\"", "pose = { x = 1.5, y = -2.0 }"] {
        assert!(whole.lines().any(|printed| printed == line), "{line} is missing in: {whole}");
    }
    assert_eq!(
        coeval(Some(invite), &["get", "probe/mass", "--as", "int"]).ok(),
        "5\n",
        "5.0 is an integer exactly"
    );

    let listed = json(invite, &["ls", "probe/pose"]);
    let keys: Vec<_> = listed.as_array().expect("an array").iter().map(|row| row["key"].clone()).collect();
    assert_eq!(keys, [json!("pose/x"), json!("pose/y")], "what is beneath is listed too");
    let table = coeval(Some(invite), &["ls"]).ok();
    assert!(table.starts_with("PATH") && table.contains("probe/mass"), "{table}");

    json(invite, &["rm", "probe/label"]);
    coeval(Some(invite), &["get", "probe/label"]).fails(3, &["probe/label"]);
    json(invite, &["rm", "probe"]);
    assert_eq!(json(invite, &["ls"]), json!([]));
}

#[test]
fn a_motion_is_read_where_it_is() {
    let (_host, invite) = host(&["--name", "sandbox", "--start", "2028-04-25T05:30:00 TAI", "--rate", "0"]);
    let motion = "{ type = \"motion\", position = [\"400 km\", 0, 0], velocity = [10.0, 0.0, 0.0] }";
    json(&invite, &["set", "probe/motion", motion, "--create"]);
    let later = json(&invite, &["get", "probe/motion", "--at", "+5 s"]);
    assert_eq!(later["value"]["position"], json!([400_050.0, 0.0, 0.0]));
    assert_eq!(later["quality"], json!({ "kind": "extrapolated", "by_s": 5.0 }));
    assert_eq!(later["at"]["tai"], json!("2028-04-25T05:30:05.000000000 TAI"));
    assert!(later["at"]["utc"].as_str().expect("text").contains("beyond the leap-second table"));
    let written = later["toml"].as_str().expect("text").to_owned();
    json(&invite, &["set", "copy/motion", &written, "--create"]);
    assert_eq!(json(&invite, &["get", "copy/motion"])["value"], later["value"], "what get prints, set reads");
}

#[test]
fn the_clock_is_changed_by_whoever_is_there() {
    let (_host, invite) = host(&["--name", "sandbox", "--start", "2028-04-25T05:30:00 TAI"]);
    let invite = invite.as_str();
    let shown = json(invite, &["clock", "pause"]);
    assert_eq!((&shown["paused"], &shown["rate"], &shown["scale"]), (&json!(true), &json!(0.0), &json!(1.0)));
    json(invite, &["clock", "jump", "2016-12-31T23:59:60.5Z"]);
    let shown = json(invite, &["clock"]);
    assert_eq!(shown["sim"]["tai"], json!("2017-01-01T00:00:36.500000000 TAI"));
    assert_eq!(shown["sim"]["utc"], json!("2016-12-31T23:59:60.500000000 UTC"));
    json(invite, &["clock", "jump", "-100y"]);
    json(invite, &["clock", "jump", "+36525 d"]);
    let shown = json(invite, &["clock", "scale", "-1"]);
    assert_eq!(shown["sim"]["tai"], json!("2017-01-01T00:00:36.500000000 TAI"), "a century there and back");
    let shown = json(invite, &["clock", "stop-at", "-1 s"]);
    assert_eq!(shown["waiting_stops"][0]["tai"], json!("2017-01-01T00:00:35.500000000 TAI"));
    json(invite, &["clock", "resume"]);
    let stopped = eventually(invite, &["clock"], |shown| shown["stopped"] == json!(true));
    assert_eq!(stopped["sim"]["tai"], json!("2017-01-01T00:00:35.500000000 TAI"), "exactly there");

    let log = json(invite, &["clock", "log"]);
    let edits: Vec<_> =
        log.as_array().expect("an array").iter().map(|edit| edit["edit"].as_str().expect("text")).collect();
    assert_eq!(edits.len(), 7, "{edits:?}");
    assert_eq!((edits[0], edits[4], edits[6]), ("pause", "scale -1", "resume"));
    assert_eq!(log[0]["author"], json!("coeval clock"));
    let text = coeval(Some(invite), &["clock"]).ok();
    assert!(text.contains("TAI") && text.contains("UTC"), "{text}");
}

#[test]
fn a_watch_tells_what_is_created_changed_and_removed() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    json(&invite, &["set", "probe/mass", "1.0", "--create"]);
    let mut watch = Running::start(Some(&invite), &["watch", "probe", "--json", "--for", "60"]);
    // The watch joins after this process saw it start: changes go on until it tells of one.
    let mut number = 1;
    let first = loop {
        number += 1;
        json(&invite, &["set", "probe/mass", &format!("{number}.0")]);
        if let Some(line) = watch.poll_line() {
            break line;
        }
    };
    let first: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(
        (&first["path"], &first["kind"], &first["type"]),
        (&json!("probe/mass"), &json!("changed"), &json!("float"))
    );
    json(&invite, &["set", "probe/label", "\"new\""]);
    json(&invite, &["rm", "probe/label"]);
    json(&invite, &["rm", "probe"]);
    let mut told = Vec::new();
    while told.last().is_none_or(|(kind, path)| (kind, path) != (&json!("removed"), &json!("probe"))) {
        let event: serde_json::Value = serde_json::from_str(&watch.line()).expect("JSON");
        let event = (
            event["kind"].clone(),
            if event["key"].is_null() { json!("probe") } else { event["path"].clone() },
        );
        told.push(event);
    }
    for kind in ["created", "removed"] {
        assert!(told.contains(&(json!(kind), json!("probe/label"))), "{kind} is missing in {told:?}");
    }
    assert_eq!(watch.interrupt(), Some(0), "Ctrl-C ends it in order");
}

#[test]
fn a_watch_for_scripts_ends_by_count_and_by_time() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    let ran = coeval(Some(&invite), &["watch", "--count", "1", "--for", "0.5"]);
    ran.fails(4, &["0 of 1"]);
    assert_eq!(coeval(Some(&invite), &["watch", "--for", "0.5"]).ok(), "");
}

#[test]
fn a_reader_that_goes_ends_a_command_quietly() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    json(&invite, &["set", "probe/mass", "0.0", "--create"]);
    let mut watch = Reader::start(&invite, &["watch"]);
    watch.go();
    let (mut number, began) = (0, Instant::now());
    while watch.runs() {
        assert!(began.elapsed() < PATIENCE, "it goes on for nobody");
        number += 1;
        json(&invite, &["set", "probe/mass", &format!("{number}.0")]);
    }
    assert_eq!(watch.end(), (Some(0), String::new()));
}

#[test]
fn peers_are_listed_and_sent_to() {
    let (_host, invite) = host(&["--name", "sandbox", "--peer-name", "ada"]);
    let (_bob, _) = join(&invite, &["--peer-name", "bob"]);
    let listed = eventually(&invite, &["peers"], |answer| {
        answer["peers"].as_array().is_some_and(|peers| peers.len() >= 2)
    });
    let names: Vec<_> =
        listed["peers"].as_array().expect("an array").iter().map(|peer| peer["name"].clone()).collect();
    assert!(names.contains(&json!("ada")) && names.contains(&json!("bob")), "{names:?}");
    let ada = listed["peers"]
        .as_array()
        .expect("an array")
        .iter()
        .find(|peer| peer["name"] == json!("ada"))
        .expect("ada");
    assert!(ada["rtt_s"].as_f64().is_some_and(|rtt| rtt > 0.0), "{ada}");
    assert!(ada["bytes_received"].as_u64().is_some_and(|bytes| bytes > 0), "{ada}");
    let table = coeval(Some(&invite), &["peers"]).ok();
    assert!(table.contains("RTT") && table.contains("ada") && table.contains("±"), "{table}");

    let sent = json(&invite, &["send", "lights", "\"on\"", "--to", "bob"]);
    assert_eq!(sent["outcome"], json!("sent"));
    assert_eq!(json(&invite, &["send", "fire", "{ munition = \"A\" }"])["outcome"], json!("sent"));
    coeval(Some(&invite), &["send", "lights", "1", "--to", "nobody"]).fails(3, &["nobody", "coeval peers"]);
    // Nobody here answers commands: the time-out says so.
    coeval(Some(&invite), &["send", "deploy", "1", "--to", "bob", "--command", "--timeout", "2"])
        .fails(4, &["deploy", "answer"]);
}

#[test]
fn the_session_outlives_its_killed_host() {
    let (mut host, invite) = host(&["--name", "sandbox", "--peer-name", "host"]);
    let (_ada, by_ada) = join(&invite, &["--peer-name", "ada"]);
    let (_bob, by_bob) = join(&invite, &["--peer-name", "bob"]);
    json(&invite, &["set", "probe/mass", "1.0", "--create"]);
    // Ada and Bob know of each other before the host goes.
    for own in [&by_ada, &by_bob] {
        eventually(own, &["peers"], |answer| {
            answer["peers"].as_array().is_some_and(|peers| peers.len() >= 3)
        });
    }
    host.kill();

    json(&by_ada, &["set", "probe/mass", "2.0"]);
    eventually(&by_bob, &["get", "probe/mass"], |mass| mass["value"] == json!(2.0));
    let (mut cyd, by_cyd) = join(&by_bob, &["--peer-name", "cyd"]);
    json(&by_cyd, &["set", "probe/mass", "3.0"]);
    eventually(&by_ada, &["get", "probe/mass"], |mass| mass["value"] == json!(3.0));
    let paused = json(&by_cyd, &["clock", "pause"]);
    let seen = eventually(&by_ada, &["clock"], |shown| shown["paused"] == json!(true));
    assert_eq!(seen["sim"], paused["sim"], "one sim time for all");
    assert_eq!(cyd.interrupt(), Some(0), "a peer leaves in order");
}

#[test]
fn a_config_is_hosted_and_joined() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = config(
        "rate = 0.0\n[entities.probe]\ntags = [\"t\"]\nparameters = { mass = 5.0, pose = { x = 1.0 } }\n",
    );
    let path = file(directory.path(), "world.toml", &text);
    let path = path.to_str().expect("UTF-8");
    let checked = coeval(None, &["check", path]).ok();
    assert!(
        checked.contains("1 entities") && checked.contains("2028-04-25T05:30:00.000000000 TAI"),
        "{checked}"
    );
    let invite_file = directory.path().join("invite");
    let (_host, invite) =
        host(&[path, "--invite-file", invite_file.to_str().expect("UTF-8"), "--condition", "delay=5ms"]);
    assert_eq!(std::fs::read_to_string(&invite_file).expect("the invite file"), format!("{invite}\n"));
    let (_peer, own) = join(&invite, &["--config", path]);
    let mass = json(&own, &["get", "probe/mass"]);
    assert_eq!((&mass["value"], &mass["author"]), (&json!(5.0), &json!(null)));
    let row = &json(&own, &["ls", "probe/pose"])[0];
    assert_eq!((&row["path"], &row["alive"]), (&json!("probe/pose/x"), &json!(true)));
    let clock = json(&own, &["clock"]);
    assert_eq!(clock["sim"]["tai"], json!("2028-04-25T05:30:00.000000000 TAI"), "genesis, at rate 0");
}

#[test]
fn logs_go_to_files_and_never_to_standard_output() {
    let directory = tempfile::tempdir().expect("a directory");
    let logs = directory.path().join("logs");
    let logs = logs.to_str().expect("UTF-8");
    let (mut host, invite) = host(&["--name", "sandbox", "--log-file", logs]);
    let listed = coeval(Some(&invite), &["ls", "--json", "-vv"]);
    assert_eq!(listed.out, "[]\n");
    assert!(!listed.err.is_empty(), "-vv says something");
    assert_eq!(host.interrupt(), Some(0));
    let written: Vec<_> =
        std::fs::read_dir(logs).expect("the directory").map(|entry| entry.expect("a file").path()).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    assert!(!std::fs::read_to_string(&written[0]).expect("the log").is_empty());
}

/// Saying that the log cannot be written must not go where it cannot be written: that panicked on the I/O thread.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_the_log_does_not_end_a_peer() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let mut host = Running::start_logging_to(full.into(), None, &["host", "--name", "sandbox", "-vv"]);
    let invite = host.line();
    json(&invite, &["set", "probe/mass", "5.0", "--create"]);
    assert_eq!(json(&invite, &["get", "probe/mass"])["value"], json!(5.0));
    assert_eq!(host.interrupt(), Some(0));
}

#[test]
fn the_schema_is_json() {
    let schema: serde_json::Value = serde_json::from_str(&coeval(None, &["schema"]).ok()).expect("JSON");
    assert_eq!(schema["title"], json!("coeval sim config"));
}

#[test]
fn a_session_is_hosted_again_from_its_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("world.journal").display().to_string();
    let (first, invite) = host(&["--name", "sandbox", "--journal", &path]);
    json(&invite, &["set", "probe/mass", "5.0", "--create"]);
    coeval(None, &["host", "--name", "other", "--journal", &path]).fails(6, &["in use"]);
    drop(first);
    coeval(None, &["host", "--name", "other", "--journal", &path]).fails(2, &["rehost", "sandbox"]);
    let checked = coeval(None, &["journal", "check", &path]).ok();
    assert!(checked.contains("sandbox") && checked.contains("whole"), "{checked}");
    let mut again = Running::start(None, &["rehost", &path]);
    assert!(again.line().starts_with("coeval1_"));
    assert_eq!(json(&invite, &["get", "probe/mass"])["value"], json!(5.0), "the old invite works");
    assert_eq!(again.interrupt(), Some(0));
    let mut bytes = std::fs::read(&path).expect("the journal");
    let middle = bytes.len() * 3 / 4;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("the journal");
    coeval(None, &["rehost", &path]).fails(6, &["damaged at byte", "salvage"]);
}
