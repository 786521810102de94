//! Bad input: one clear line that says what, where and what to do; the right exit code; nothing applied by halves.

use crate::common::{coeval, config, file, free_port, host, json};
use serde_json::json;

/// Checks and hosts a bad config: both say the same.
#[track_caller]
fn refused_config(rest: &str, words: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = file(directory.path(), "world.toml", &config(rest));
    let path = path.to_str().expect("UTF-8");
    for verb in ["check", "host"] {
        let mut all = vec!["world.toml:"];
        all.extend(words);
        coeval(None, &[verb, path]).fails(2, &all);
    }
}

#[test]
fn a_config_with_a_wrong_key() {
    refused_config(
        "[entities.probe]\nparamters = { mass = 5.0 }\n",
        &[":7:", "entities.probe.paramters", "parameters"],
    );
}

#[test]
fn a_config_with_a_wrong_type() {
    refused_config("rate = true\n", &[":6:", "genesis.rate", "boolean"]);
    refused_config(
        "[entities.probe.parameters]\na = { type = \"mass\" }\n",
        &[":7:", "probe.parameters.a", "\"mass\""],
    );
}

#[test]
fn a_config_with_a_wrong_unit() {
    let motion = "[entities.probe.parameters.motion]\ntype = \"motion\"\nposition = [\"400 kg\", 0, 0]\n";
    refused_config(motion, &[":8:", "motion.position", "\"kg\"", "km"]);
}

#[test]
fn a_config_with_a_duplicate_entity() {
    refused_config("[entities.probe]\n[entities.twin]\n[entities.probe]\n", &[":8:", "duplicate"]);
}

#[test]
fn a_config_with_a_cyclic_reference() {
    let on = |name: &str, frame: &str| {
        format!(
            "[entities.{name}.parameters.motion]\ntype = \"motion\"\nposition = [1, 0, 0]\nframe = \"{frame}\"\n"
        )
    };
    refused_config(&(on("moon", "ship") + &on("ship", "moon")), &["frame", "cyclic"]);
}

#[test]
fn a_config_that_is_not_there() {
    coeval(None, &["host", "/nowhere/world.toml"]).fails(2, &["/nowhere/world.toml", "read"]);
}

#[test]
fn an_invite_that_is_damaged() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    let half = &invite[..invite.len() / 2];
    coeval(Some(half), &["ls"]).fails(5, &["cut off", "copy"]);
    coeval(None, &["join", half]).fails(5, &["cut off", "copy"]);
    let other = invite.replace("coeval1_", "coeval2_");
    coeval(Some(&other), &["ls"]).fails(5, &["version 2", "version 1"]);
    let mut typed = invite.clone();
    let at = typed.len() - 20;
    let wrong = if &typed[at..=at] == "A" { "B" } else { "A" };
    typed.replace_range(at..=at, wrong);
    coeval(Some(&typed), &["ls"]).fails(5, &["mistyped"]);
    coeval(Some("hello"), &["ls"]).fails(5, &["not an invite"]);
    coeval(None, &["ls"]).fails(2, &["COEVAL_INVITE"]);
    assert_eq!(json(&invite, &["ls"]), json!([]), "the session goes on");
}

#[test]
fn an_invite_that_has_expired_or_is_used_up() {
    let (_host, invite) = host(&["--name", "sandbox", "--invite-expires", "0"]);
    coeval(Some(&invite), &["ls"]).fails(5, &["expired", "new one"]);
    let (_host, invite) = host(&["--name", "sandbox", "--invite-uses", "1"]);
    json(&invite, &["ls"]);
    coeval(Some(&invite), &["ls"]).fails(5, &["used", "new one"]);
}

#[test]
fn an_invite_of_another_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("key");
    let key = key.to_str().expect("UTF-8");
    let listen = format!("127.0.0.1:{}", free_port());
    let (mut first, invite) = host(&["--name", "first", "--listen", &listen, "--identity", key]);
    assert_eq!(first.interrupt(), Some(0));
    let (_second, _) = host(&["--name", "second", "--listen", &listen, "--identity", key]);
    coeval(Some(&invite), &["ls"]).fails(5, &["session", "invite"]);
}

#[test]
fn nobody_is_there() {
    let (mut gone, invite) = host(&["--name", "sandbox"]);
    gone.kill();
    let ran = coeval(Some(&invite), &["ls", "--timeout", "3"]);
    assert!(matches!(ran.code, Some(4 | 6)), "{:?}: {}", ran.code, ran.err);
    assert!(ran.err.contains("check that the peer runs"), "what to do: {}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
}

#[test]
fn a_port_in_use() {
    let listen = format!("127.0.0.1:{}", free_port());
    let (_host, invite) = host(&["--name", "sandbox", "--listen", &listen]);
    coeval(None, &["host", "--name", "late", "--listen", &listen]).fails(6, &[&listen, "in use"]);
    coeval(Some(&invite), &["join", "--listen", &listen]).fails(6, &[&listen, "in use"]);
}

#[test]
fn a_scale_that_is_no_number() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    for scale in ["NaN", "nan", "inf", "-inf", "fast"] {
        coeval(Some(&invite), &["clock", "scale", scale]).fails(2, &[scale]);
    }
    coeval(None, &["host", "--name", "x", "--rate", "NaN"]).fails(2, &["NaN", "finite"]);
    assert_eq!(json(&invite, &["clock", "log"]), json!([]), "nothing was applied");
}

#[test]
fn a_time_without_its_scale() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    coeval(Some(&invite), &["clock", "jump", "2028-04-25T05:30:00"])
        .fails(2, &["2028-04-25T05:30:00", "TAI", "Z"]);
    coeval(Some(&invite), &["clock", "jump", "5 min"]).fails(2, &["+5 min or -5 min"]);
    coeval(Some(&invite), &["clock", "jump", "-5 parsec"]).fails(2, &["parsec", "min"]);
}

#[test]
fn a_write_to_a_deleted_entity() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    let made = json(&invite, &["set", "probe/mass", "1.0", "--create"]);
    let id = made["id"].as_str().expect("an id").to_owned();
    json(&invite, &["rm", "probe"]);
    coeval(Some(&invite), &["set", "probe/mass", "2.0"]).fails(3, &["probe", "--create"]);
    for arguments in
        [vec!["set", "ID/mass", "2.0"], vec!["set", "ID/mass", "2.0", "--create"], vec!["rm", "ID"]]
    {
        let arguments: Vec<String> = arguments.iter().map(|word| word.replace("ID", &id)).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        coeval(Some(&invite), &arguments).fails(3, &[&id, "deleted"]);
    }
    assert_eq!(json(&invite, &["ls"]), json!([]), "it stays deleted");
}

#[test]
fn a_read_as_a_wrong_type() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    json(&invite, &["set", "probe", "{ mass = 5.5, label = \"x\" }", "--create"]);
    coeval(Some(&invite), &["get", "probe/label", "--as", "float"]).fails(2, &["probe/label", "text", "f64"]);
    coeval(Some(&invite), &["get", "probe/mass", "--as", "int"]).fails(2, &["probe/mass"]);
    coeval(Some(&invite), &["get", "probe/mass", "--as", "number"]).fails(2, &["number", "float"]);
}

#[test]
fn what_is_not_there() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    json(&invite, &["set", "probe/mass", "1.0", "--create"]);
    coeval(Some(&invite), &["get", "ghost/mass"]).fails(3, &["ghost", "coeval ls"]);
    coeval(Some(&invite), &["get", "probe/size"]).fails(3, &["probe/size"]);
    coeval(Some(&invite), &["rm", "probe/size"]).fails(3, &["probe/size"]);
    coeval(Some(&invite), &["set", "ghost/mass", "1.0"]).fails(3, &["ghost", "--create"]);
    coeval(Some(&invite), &["set", "probe", "--create"]).fails(2, &["probe", "exists"]);
}

#[test]
fn a_value_that_is_no_toml() {
    let (_host, invite) = host(&["--name", "sandbox"]);
    coeval(Some(&invite), &["set", "probe/label", "first", "--create"]).fails(2, &["first", "quote"]);
    coeval(Some(&invite), &["set", "probe/a", "{ type = \"mass\" }", "--create"]).fails(2, &["mass"]);
    coeval(Some(&invite), &["set", "probe", "5.0", "--create"]).fails(2, &["probe/KEY"]);
    coeval(Some(&invite), &["set", "probe/ref", "{ type = \"ref\", entity = \"ghost\" }", "--create"])
        .fails(2, &["ghost"]);
    coeval(Some(&invite), &["send", "", "1"]).fails(2, &["topic"]);
    assert_eq!(json(&invite, &["ls"]), json!([]), "no half of it was applied");
}

#[test]
fn a_command_line_that_makes_no_sense() {
    coeval(None, &[]).fails(2, &["coeval --help"]);
    coeval(None, &["gett", "probe"]).fails(2, &["'gett'", "'get'"]);
    coeval(None, &["host"]).fails(2, &["CONFIG"]);
    coeval(None, &["host", "--name", ""]).fails(2, &["--name"]);
    coeval(None, &["ls", "--timeout", "soon"]).fails(2, &["soon", "seconds"]);
    coeval(None, &["get", "probe//mass"]).fails(2, &["probe//mass"]);
    coeval(None, &["host", "--name", "x", "--listen", "4433"]).fails(2, &["4433", "127.0.0.1:4433"]);
    coeval(None, &["host", "--name", "x", "--condition", "speed=3"]).fails(2, &["speed=3"]);
    coeval(None, &["schema", "--log", "coeval=loud"]).fails(2, &["--log", "coeval=loud"]);
}

#[test]
fn every_command_helps_with_examples() {
    for verb in [
        "host", "join", "ls", "get", "set", "rm", "watch", "send", "clock", "peers", "check", "schema",
        "demo",
    ] {
        let help = coeval(None, &[verb, "--help"]).ok();
        assert!(help.contains("Examples:") && help.contains(&format!("coeval {verb}")), "{verb}: {help}");
    }
    assert!(coeval(None, &["--help"]).ok().contains("Exit codes:"));
}

#[test]
fn a_file_that_cannot_be_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let plain = file(directory.path(), "plain", "");
    let inside = plain.join("logs");
    let inside = inside.to_str().expect("UTF-8");
    coeval(None, &["schema", "--log-file", inside]).fails(6, &[inside, "directory"]);
    coeval(None, &["host", "--name", "x", "--invite-file", inside]).fails(6, &[inside, "invite"]);
    coeval(None, &["host", "--name", "x", "--identity", inside]).fails(6, &[inside]);
}
