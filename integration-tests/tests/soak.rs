//! Processes under torture, for a short while and with one seed: `cargo run --release -p coeval-integration-tests --bin soak`
//! does it for long.
use coeval_integration_tests::soak::{self, Options, director};
use std::path::PathBuf;
use std::time::Duration;

/// Killed, stopped, cut off and written to all at once: nothing acknowledged is lost, nothing comes back, nothing comes
/// twice.
#[test]
fn nothing_acknowledged_is_lost_by_processes_under_torture() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        seed: 5,
        peers: 5,
        length: Duration::from_secs(8),
        folder: folder.path().to_owned(),
        exe: PathBuf::from(env!("CARGO_BIN_EXE_soak")),
    };
    let summary = soak::run(options).expect("processes and sockets");
    if !summary.passed() {
        let kept = director::default_folder(5);
        // The folder goes with its handle; what shows the fault stays.
        let moved = std::fs::rename(folder.path(), &kept);
        panic!("{summary}\nhistories and logs ({moved:?}): {}", kept.display());
    }
    assert!(summary.writes_judged > 100 && summary.deliveries_judged > 10, "{summary}");
    for fault in ["kill", "full_disk_under_log", "full_disk_under_journal"] {
        assert!(summary.faults.contains_key(fault), "{fault}: {summary}");
    }
}
