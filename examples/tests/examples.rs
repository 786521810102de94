//! Runs every example, and looks at what it says.
use std::process::Command;
use std::time::{Duration, Instant};

/// What the program prints; it ends well and in good time.
fn run(program: &str) -> String {
    let begun = Instant::now();
    let output = Command::new(program).output().expect("the example is built");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    // Each takes a second or so; a machine under load may take longer.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    text
}

/// The number after `label`.
fn number(text: &str, label: &str) -> f64 {
    let after = text.split_once(label).unwrap_or_else(|| panic!("no {label:?} in {text}")).1;
    let end = after.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(after.len());
    after[..end].parse().unwrap_or_else(|e| panic!("{e} after {label:?} in {text}"))
}

#[test]
fn ten_lines_tell_where_the_probe_is_now() {
    let text = run(env!("CARGO_BIN_EXE_ten_lines"));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("velocity: Some([10.0, 0.0, 0.0])"), "{text}");
    // It has moved since it was written, at 10 m/s of sim time: the guest extrapolates.
    let moved = number(&text, "position: Some([");
    let by = number(&text, "extrapolated by ");
    assert!(moved > 0.0 && (moved - 10.0 * by).abs() < 1e-6, "{text}");
}

#[test]
fn ten_lines_are_those_of_the_documentation() {
    let code = |text: &str| {
        let from = text.split_once("use coeval::{Motion, Peer, Result};").expect("the ten lines").1;
        let body = from.split_once("\n}").expect("the end of main").0.to_owned();
        let lines = body.lines().map(|line| line.split(" //").next().unwrap_or_default().trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    let documented = include_str!("../../crates/coeval/src/lib.rs").replace("//! ", "");
    assert_eq!(code(include_str!("../ten_lines.rs")), code(&documented.replace("//!", "")));
    assert_eq!(code(include_str!("../ten_lines.rs")), code(include_str!("../../README.md")));
}

#[test]
fn pendulums_swing_and_keep_their_energy() {
    let text = run(env!("CARGO_BIN_EXE_custom_system"));
    assert!(text.starts_with("2 pendulums swing at 4 times wall time\n"), "{text}");
    let swings: Vec<&str> = text.lines().filter(|line| line.starts_with("at ")).collect();
    assert_eq!(swings.len(), 5, "{text}");
    let first = number(swings[0], "short ");
    assert!(
        swings.iter().any(|swing| (number(swing, "short ") - first).abs() > 0.01),
        "it stands still: {text}"
    );
    for (name, length, angle) in [("short", 1.0, 0.3_f64), ("long", 4.0, 0.1)] {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}: "))).expect("its end");
        let energy = 9.80665 * length * (1.0 - angle.cos());
        assert!((number(line, "energy ") - energy).abs() < 0.05 * energy, "{line}, expected {energy}");
        assert!(number(line, &format!("{name}: ")) >= 2.0, "{line}");
    }
}

#[test]
fn threads_read_and_write_without_waiting() {
    let text = run(env!("CARGO_BIN_EXE_many_threads"));
    assert!(number(&text, "writer: ") > 0.0, "{text}");
    for reader in 0..3 {
        assert!(number(&text, &format!("reader {reader}: ")) > 0.0, "{text}");
    }
    assert!(text.ends_with(", as written: true\n"), "{text}");
}

#[test]
fn both_peers_show_one_time() {
    let text = run(env!("CARGO_BIN_EXE_shared_clock"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert_eq!(lines[6], "6 edits, the same sim time at both peers each time: true");
    let rate = |line: &&str| {
        let text = line.split_once(" rate ").and_then(|(_, rest)| rest.split_once(':')).expect("a rate").0;
        text.trim().parse::<f64>().expect("a number")
    };
    assert_eq!(lines[..6].iter().map(rate).collect::<Vec<_>>(), [1.0, 60.0, 0.0, 0.0, -1.0, 2.0], "{text}");
    let years: Vec<bool> = lines[..6].iter().map(|line| line.contains("ada 1928-")).collect();
    assert_eq!(years, [false, false, false, true, true, true], "{text}");
}
