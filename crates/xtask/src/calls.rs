//! What the pure floors must not call: clocks, randomness and I/O come to them as arguments, so that the same code runs
//! under virtual time; and what they iterate over has an order.

use crate::finding::Finding;
use crate::floors::pure_folders;
use crate::source::{production_code, test_modules};
use crate::tree::Tree;

/// Paths in code, and what to do instead. They match at word boundaries.
const FORBIDDEN: &[(&str, &str)] = &[
    ("Instant::now", CLOCK),
    ("SystemTime::now", CLOCK),
    ("Utc::now", CLOCK),
    ("Local::now", CLOCK),
    ("Epoch::now", CLOCK),
    ("now_v1", RANDOM),
    ("now_v6", RANDOM),
    ("now_v7", RANDOM),
    ("new_v4", RANDOM),
    ("thread_rng", RANDOM),
    ("rand::rng", RANDOM),
    ("rand::random", RANDOM),
    ("from_os_rng", RANDOM),
    ("from_entropy", RANDOM),
    ("OsRng", RANDOM),
    ("getrandom", RANDOM),
    ("std::net", IO),
    ("std::fs", IO),
    ("tokio", IO),
    ("quinn", IO),
    ("quinn_proto", IO),
    ("HashMap::new", ORDER),
    ("HashMap::with_capacity", ORDER),
    ("HashMap::from", ORDER),
    ("HashSet::new", ORDER),
    ("HashSet::with_capacity", ORDER),
    ("HashSet::from", ORDER),
    ("hash_map::RandomState", ORDER),
];
const CLOCK: &str = "take the instant as an argument";
const RANDOM: &str = "take the generator, or the id, as an argument";
const IO: &str = "leave it to the driver above: state what is to be done as data";
const ORDER: &str = "use BTreeMap or BTreeSet, or name a fixed hasher as the last type parameter";

/// Types whose last parameter is a hasher with random state unless it is named, and how many parameters come before.
const HASHED: &[(&str, usize)] = &[("HashMap", 2), ("HashSet", 1)];

/// What excuses a line, on it or above it; a reason must follow.
const EXCUSE: &str = "// tidy: allow: ";

pub(crate) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let folders: Vec<String> = pure_folders().map(|folder| folder + "src/").collect();
    let in_pure = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
    let only_in_tests: Vec<String> = tree
        .rust()
        .filter(|(path, _)| in_pure(path))
        .flat_map(|(path, text)| test_files(path, text))
        .collect();
    for (path, text) in tree.rust().filter(|(path, _)| in_pure(path)) {
        let is_test = |test: &String| path == format!("{test}.rs") || path.starts_with(&format!("{test}/"));
        if !only_in_tests.iter().any(is_test) {
            check_file(path, text, findings);
        }
    }
}

/// The files (without `.rs`, or as folders) of the modules that `path` declares for tests only.
fn test_files(path: &str, text: &str) -> Vec<String> {
    let stem = path.trim_end_matches(".rs");
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    test_modules(text).into_iter().map(|module| format!("{folder}/{module}")).collect()
}

fn check_file(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let code = production_code(text);
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in code.lines().enumerate() {
        let excused = [Some(at), at.checked_sub(1)]
            .into_iter()
            .flatten()
            .filter_map(|at| lines[at].split(EXCUSE).nth(1))
            .any(|reason| !reason.trim().is_empty());
        if excused {
            continue;
        }
        let called =
            FORBIDDEN.iter().filter(|(name, _)| has_word(line, name)).map(|(name, advice)| (*name, *advice));
        let hashed = HASHED.iter().filter(|(name, parameters)| has_random_state(line, name, *parameters));
        for (name, advice) in called.chain(hashed.map(|(name, _)| (*name, ORDER))) {
            let advice = format!("`{name}` on a pure floor: {advice}");
            findings.push(Finding::error(path, at + 1, "calls", advice));
        }
    }
}

/// Where `word` stands by itself in a line.
fn words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part))
}

fn has_word(line: &str, word: &str) -> bool {
    words(line, word).next().is_some()
}

/// Whether the line names a hashed type with as many parameters as it has before its hasher.
fn has_random_state(line: &str, name: &str, parameters: usize) -> bool {
    words(line, name).any(|at| {
        let rest = line[at + name.len()..].trim_start_matches("::");
        rest.strip_prefix('<').is_some_and(|list| count_parameters(list) == Some(parameters))
    })
}

/// The number of type parameters up to the closing `>`; none if the line ends before.
fn count_parameters(list: &str) -> Option<usize> {
    let (mut depth, mut commas, mut after_comma) = (0, 0, false);
    let mut before = ' ';
    for c in list.chars() {
        match c {
            '>' if before == '-' => {}
            '>' if depth == 0 => return Some(commas + usize::from(after_comma || commas == 0)),
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => (commas, after_comma) = (commas + 1, false),
            c if !c.is_whitespace() => after_comma = true,
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Tree::from([(path, text)]), &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn each_forbidden_call_is_found_at_its_line() {
        for (name, _) in FORBIDDEN {
            let found = found(
                "crates/coeval-store/src/deep/x.rs",
                &format!("//! x\nfn f() {{\n    a::{name}();\n}}"),
            );
            let at = format!("crates/coeval-store/src/deep/x.rs:3: calls: `{name}` on a pure floor");
            assert!(found.iter().any(|f| f.starts_with(&at)), "{name}: {found:?}");
        }
    }

    #[test]
    fn other_floors_tests_comments_strings_and_longer_words_are_free() {
        let call = "fn f() { Instant::now(); }";
        assert_eq!(found("crates/coeval-quic/src/lib.rs", call), [""; 0]);
        assert_eq!(found("crates/coeval-store/tests/a.rs", call), [""; 0]);
        for text in [
            "/// Never calls `Instant::now`.\nfn f() {}",
            "const A: &str = \"tokio\";",
            "#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }",
            "fn f() { MyInstant::now(); Instant::now_at(t); tokio_like(); }",
            "fn f() { Instant::now(); } // tidy: allow: shown to people only",
            "// tidy: allow: shown to people only\nfn f() { Instant::now(); }",
        ] {
            assert_eq!(found("crates/coeval-store/src/lib.rs", text), [""; 0], "{text}");
        }
        assert_eq!(
            found("crates/coeval-store/src/lib.rs", "fn f() { Instant::now(); } // tidy: allow: ").len(),
            1
        );
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_free() {
        let call = "fn f() { Instant::now(); }";
        let tree = Tree::from([
            ("crates/coeval-merge/src/lib.rs", "#[cfg(test)]\nmod oracle;\nmod tree;"),
            ("crates/coeval-merge/src/oracle.rs", call),
            ("crates/coeval-merge/src/oracle/deep.rs", call),
            ("crates/coeval-merge/src/tree.rs", "#[cfg(test)]\nmod tests;"),
            ("crates/coeval-merge/src/tree/tests.rs", call),
            ("crates/coeval-merge/src/tests.rs", call),
        ]);
        let mut findings = Vec::new();
        check(&tree, &mut findings);
        let files: Vec<&str> = findings.iter().map(|f| f.file.as_str()).collect();
        assert_eq!(files, ["crates/coeval-merge/src/tests.rs"]);
    }

    #[test]
    fn maps_with_random_state_are_found_and_fixed_ones_are_not() {
        let hits = |text: &str| found("crates/coeval-sync/src/lib.rs", text).len();
        for text in [
            "a: HashMap<u32, Vec<(u8, u8)>>,",
            "a: HashMap<fn(u8) -> u8, u8>,",
            "a: std::collections::HashSet<[u8; 4]>,",
            "x.collect::<HashMap<_, _>>()",
            "let a = HashMap::new();",
        ] {
            assert_eq!(hits(text), 1, "{text}");
        }
        for text in [
            "a: HashMap<u32, Vec<(u8, u8)>, FixedState>,",
            "a: HashSet<(u8, u8), FixedState>,",
            "a: BTreeMap<u32, u8>,",
            "use std::collections::HashMap;",
            "HashMap::with_hasher(FixedState::default())",
        ] {
            assert_eq!(hits(text), 0, "{text}");
        }
    }
}
