//! The demo, whole: three processes, a bad link, a wrong clock, a killed host.
use serde_json::Value;
use std::process::Command;

#[test]
fn the_demo_keeps_what_it_promises() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_coeval"));
    let output = demo.args(["demo", "--seconds", "10", "--json"]).output().expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let trouble = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {text}{trouble}"));
    assert!(output.status.success(), "{trouble}{summary:#}");
    assert_eq!(summary["processes"], 3);
    assert_eq!(summary["converged"], true);
    assert_eq!(summary["sim_time_disagreement_ns"], 0);
    // The joiners did compute: reads were compared with the truth, on both sides of the jump.
    let count = |field: &str| summary[field].as_u64().unwrap_or(0);
    assert!(count("checks") > 1_000, "{summary:#}");
    assert!(count("held_a_century_away") > 0 && count("followed_a_century_away") > 0, "{summary:#}");
    assert!(
        count("updates_received") > 0 && count("updates_sent") < count("updates_unfiltered_30hz"),
        "{summary:#}"
    );
    let flights = &summary["flights_only"];
    assert!(
        flights["updates_sent"].as_u64() > Some(0) && flights["updates_unfiltered_30hz"].as_u64() > Some(0)
    );
}
