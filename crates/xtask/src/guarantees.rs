//! The tests that the library's page of guarantees names exist.

use crate::finding::Finding;
use crate::source;
use crate::tree::Tree;

const PAGE: &str = "crates/coeval/src/guarantees.rs";

/// Packages that do not lie in `crates/`.
const ELSEWHERE: &[&str] = &["integration-tests", "examples"];

pub(crate) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(text) = tree.text(PAGE) else {
        findings.push(Finding::error(
            PAGE,
            1,
            "guarantees",
            "write it: what can be relied on, and its tests",
        ));
        return;
    };
    for (at, line) in text.lines().enumerate() {
        for (package, file, test) in line.split('`').skip(1).step_by(2).filter_map(parts) {
            if !is_test(tree, package, file, test) {
                let advice = format!("no test `{package}::{file}::{test}`: name the one that shows it now");
                findings.push(Finding::error(PAGE, at + 1, "guarantees", advice));
            }
        }
    }
}

/// `package::file::test`, taken apart; other code is none of our business.
fn parts(code: &str) -> Option<(&str, &str, &str)> {
    let mut parts = code.split("::");
    let parts = (parts.next()?, parts.next()?, parts.next()?, parts.next());
    let (package, file, test, None) = parts else { return None };
    Some((package, file, test))
}

fn is_test(tree: &Tree, package: &str, file: &str, test: &str) -> bool {
    let folder =
        if ELSEWHERE.contains(&package) { format!("{package}/") } else { format!("crates/{package}/") };
    let end = format!("/{file}.rs");
    tree.rust()
        .filter(|(path, _)| path.starts_with(&folder) && path.ends_with(&end))
        .any(|(_, text)| has_test(&source::without_comments(text), test))
}

/// Whether the code has this function, and `#[test]` between it and the function before.
fn has_test(code: &str, test: &str) -> bool {
    let Some((before, _)) = code.split_once(&format!("fn {test}(")) else { return false };
    before.rsplit("fn ").next().is_some_and(|own| own.contains("#[test]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "#[test]\nfn one() {}\nfn helper() {}\n// #[test]\nfn not_a_test() {}\n";

    fn found(page: &str) -> Vec<usize> {
        let tree = Tree::from([
            (PAGE, page),
            ("crates/coeval-time/tests/clock.rs", TESTS),
            ("integration-tests/tests/it/clock.rs", TESTS),
        ]);
        let mut findings = Vec::new();
        check(&tree, &mut findings);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn tests_that_are_there_are_accepted_and_other_code_is_free() {
        let page = "//! `Duration::MAX`\n//! `coeval-time::clock::one`, `integration-tests::clock::one`.";
        assert_eq!(found(page), [] as [usize; 0]);
    }

    #[test]
    fn tests_that_are_gone_are_found_at_their_line() {
        for gone in [
            "time::clock::one",
            "coeval-time::timer::one",
            "coeval-time::clock::on",
            "coeval-time::clock::helper",
        ] {
            assert_eq!(found(&format!("//! a\n//! `{gone}`")), [2], "{gone}");
        }
        assert_eq!(found("//! `coeval-time::clock::not_a_test`"), [1]);
    }

    #[test]
    fn a_page_that_is_gone_is_found() {
        let mut findings = Vec::new();
        check(&Tree::default(), &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
