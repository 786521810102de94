//! Where files lie, how they open, how long they are, and that they name no place on somebody's machine.

use crate::finding::Finding;
use crate::tree::Tree;

/// What may lie at the top level, beside dot files and licenses.
const TOP_FOLDERS: &[&str] = &["crates", "examples", "integration-tests"];
const TOP_FILES: &[&str] = &["Cargo.toml", "Cargo.lock", "README.md"];

/// Longer files get a warning: they have more than one job, as a rule.
const LONG: usize = 500;

/// Places that exist on one machine only. Put together here, so that this file does not hold them itself.
const LOCAL: &[&str] = &[concat!("/wo", "rk/"), concat!("/tmp/", "target"), concat!("../sha", "red")];

pub(crate) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in &tree.files {
        check_place(path, findings);
        check_local_paths(path, text, findings);
        if path.ends_with(".rs") {
            check_opening(path, text, findings);
            check_length(path, text, findings);
        }
    }
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if tree.text(license).is_none() {
            findings.push(Finding::error(license, 1, "top-level", "the license is missing: restore it"));
        }
    }
}

fn check_place(path: &str, findings: &mut Vec<Finding>) {
    let (top, is_folder) = path.split_once('/').map_or((path, false), |(top, _)| (top, true));
    let allowed = top.starts_with('.')
        || if is_folder {
            TOP_FOLDERS.contains(&top)
        } else {
            TOP_FILES.contains(&top) || top.starts_with("LICENSE-")
        };
    if !allowed {
        let advice = format!("`{top}` does not belong at the top level: move it into a crate, or delete it");
        findings.push(Finding::error(path, 1, "top-level", advice));
    }
    if path.ends_with(".rs") && !(is_folder && TOP_FOLDERS.contains(&top)) {
        findings.push(Finding::error(
            path,
            1,
            "places",
            "Rust lives in crates/, examples/ or integration-tests/",
        ));
    }
}

/// After a shebang and attributes of the whole file, the first thing is `//!`.
fn check_opening(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let opening = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .find(|(_, line)| !line.is_empty() && !line.starts_with("#!"));
    match opening {
        Some((_, line)) if line.strip_prefix("//!").is_some_and(|what| !what.trim().is_empty()) => {}
        opening => {
            let line = opening.map_or(1, |(line, _)| line);
            findings.push(Finding::error(path, line, "opening", "open with `//! ` and what the file is for"));
        }
    }
}

fn check_length(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > LONG {
        let advice = format!("{lines} lines: split it where it has two jobs (about {LONG} are fine)");
        findings.push(Finding::warning(path, LONG + 1, "length", advice));
    }
}

fn check_local_paths(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (at, line) in text.lines().enumerate() {
        for place in LOCAL {
            // `network/work/` is no such place: the path must start here.
            let starts = |(at, _): (usize, &str)| {
                !line[..at]
                    .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '/'))
            };
            if line.match_indices(place).any(starts) {
                let advice =
                    format!("`{place}` exists on one machine only: leave it out, or make it a setting");
                findings.push(Finding::error(path, at + 1, "local-path", advice));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of one file, in a tree that has the licenses.
    fn found(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Tree::from([("LICENSE-MIT", ""), ("LICENSE-APACHE", ""), (path, text)]), &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn what_belongs_is_accepted() {
        for path in [
            "README.md",
            ".ci/run",
            ".gitignore",
            "crates/a/src/lib.rs",
            "examples/demo/world.toml",
            "integration-tests/tests/a.rs",
        ] {
            assert_eq!(found(path, "//! What it is for."), [""; 0]);
        }
    }

    #[test]
    fn what_does_not_belong_at_the_top_is_found() {
        for path in ["notes.md", "src/data.csv", "scripts/run.sh", "crates", "clippy.toml"] {
            let found = found(path, "");
            assert!(found.len() == 1 && found[0].starts_with(&format!("{path}:1: top-level: ")), "{found:?}");
        }
        let mut findings = Vec::new();
        check(&Tree::default(), &mut findings);
        assert_eq!(findings.iter().filter(|f| f.rule == "top-level").count(), 2, "both licenses are missing");
    }

    #[test]
    fn rust_in_other_places_is_found() {
        assert!(found(".ci/build.rs", "//! x")[0].contains(": places: "));
        assert!(found("build.rs", "//! x").iter().any(|f| f.contains(": places: ")));
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_for_is_found() {
        let path = "crates/a/src/lib.rs";
        for text in ["//! x", "\n//! x\nmod a;", "#!/bin/rust\n#![cfg(a)]\n//! x"] {
            assert_eq!(found(path, text), [""; 0], "{text:?}");
        }
        for (text, line) in
            [("", 1), ("mod a;", 1), ("// x\n//! x", 1), ("#![a]\n\n/// x", 3), ("//!\n//! x", 1)]
        {
            assert_eq!(found(path, text).len(), 1, "{text:?}");
            assert!(found(path, text)[0].starts_with(&format!("{path}:{line}: opening: ")), "{text:?}");
        }
    }

    #[test]
    fn a_long_file_is_a_warning() {
        let lines = |count: usize| "//! x\n".repeat(count);
        assert_eq!(found("crates/a/src/lib.rs", &lines(500)), [""; 0]);
        let mut findings = Vec::new();
        check_length("crates/a/src/lib.rs", &lines(501), &mut findings);
        assert!(findings.len() == 1 && !findings[0].is_error);
        assert!(findings[0].to_string().contains("length: warning: 501 lines"));
    }

    #[test]
    fn places_of_one_machine_are_found() {
        for place in LOCAL {
            let found = found("crates/README.md", &format!("\nsee `{place}x`"));
            assert!(
                found.len() == 1 && found[0].starts_with("crates/README.md:2: local-path: "),
                "{found:?}"
            );
        }
        let inside = format!("see network{}x and a/{}", LOCAL[0], &LOCAL[0][1..]);
        assert_eq!(found("crates/README.md", &inside), [""; 0]);
    }
}
