//! Arrows point downward: which crate may depend on which, and what must stay out of the low floors.

use std::collections::{BTreeMap, VecDeque};

use crate::finding::Finding;
use crate::metadata::{Kind, Workspace};
use crate::tree::Tree;

/// The floor of each crate. A crate depends only on lower floors, in its tests too.
const FLOORS: &[(&str, u32)] = &[
    // Below all: whoever keeps a rule asks it whether the rule is to be broken.
    ("coeval-faults", 0),
    ("coeval-cell", 1),
    ("coeval-time", 2),
    ("coeval-value", 3),
    ("coeval-motion", 4),
    ("coeval-merge", 4),
    ("coeval-store", 5),
    ("coeval-wire", 5),
    ("coeval-sync", 6),
    ("coeval-quic", 7),
    ("coeval-journal", 7),
    ("coeval", 8),
    ("coeval-systems", 9),
    ("coeval-cli", 10),
    ("coeval-simnet", 10),
    ("coeval-bench", 10),
    ("xtask", 10),
    // Above all: they run the others.
    ("coeval-examples", 11),
    ("examples", 11),
    ("coeval-integration-tests", 11),
    ("integration-tests", 11),
];

/// The highest floor that runs under virtual time: no I/O, no clock, no randomness of its own.
pub(crate) const HIGHEST_PURE_FLOOR: u32 = 6;

/// What brings I/O along.
const IO_LIBRARIES: &[&str] = &[
    "tokio",
    "quinn",
    "quinn-proto",
    "quinn-udp",
    "mio",
    "socket2",
    "async-std",
    "smol",
    "async-io",
    "polling",
];

pub(crate) fn floor(package: &str) -> Option<u32> {
    FLOORS.iter().find(|(name, _)| *name == package).map(|(_, floor)| *floor)
}

/// The folders of the crates of the pure floors, `crates/<name>/`.
pub(crate) fn pure_folders() -> impl Iterator<Item = String> {
    let pure = FLOORS.iter().filter(|(_, floor)| *floor <= HIGHEST_PURE_FLOOR);
    pure.map(|(name, _)| format!("crates/{name}/"))
}

pub(crate) fn check(tree: &Tree, workspace: &Workspace, findings: &mut Vec<Finding>) {
    for (name, package) in &workspace.packages {
        let manifest = tree.text(&package.manifest).unwrap_or("");
        let Some(own) = floor(name) else {
            let advice = format!("`{name}` has no floor: add it to FLOORS in crates/xtask/src/floors.rs");
            findings.push(Finding::error(&package.manifest, line_of(manifest, "name"), "floors", advice));
            continue;
        };
        for (dependency, kind) in &package.dependencies {
            let Some(theirs) = floor(dependency).filter(|_| workspace.packages.contains_key(dependency))
            else {
                continue;
            };
            if theirs >= own {
                let section = if *kind == Kind::Dev { "dev-dependency" } else { "dependency" };
                let advice = format!(
                    "{section} on `{dependency}` (floor {theirs}) does not point down from `{name}` (floor {own}): \
                     move what is needed to a lower floor, or pass it in"
                );
                findings.push(Finding::error(
                    &package.manifest,
                    line_of(manifest, dependency),
                    "arrows",
                    advice,
                ));
            }
        }
        if own <= HIGHEST_PURE_FLOOR
            && let Some(chain) = chain_to_io(workspace, &package.id)
        {
            let next = chain.get(1).map_or("", String::as_str);
            let advice = format!("floor {own} must do without I/O, but: {}", chain.join(" -> "));
            findings.push(Finding::error(&package.manifest, line_of(manifest, next), "pure", advice));
        }
        check_manifest(tree, name, &package.manifest, manifest, findings);
    }
}

/// The shortest way through normal dependencies from a package to a library that does I/O, by names.
fn chain_to_io(workspace: &Workspace, id: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::from([(id, id)]);
    let mut queue = VecDeque::from([id]);
    while let Some(at) = queue.pop_front() {
        let node = workspace.graph.get(at)?;
        if IO_LIBRARIES.contains(&node.name.as_str()) {
            let mut chain = vec![node.name.clone()];
            let mut step = at;
            while step != id {
                step = came_from[step];
                chain.push(workspace.graph[step].name.clone());
            }
            chain.reverse();
            return Some(chain);
        }
        for next in &node.normal {
            if !came_from.contains_key(next.as_str()) {
                came_from.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    None
}

/// Each crate takes the lints of the workspace, and is on the map.
fn check_manifest(tree: &Tree, name: &str, path: &str, manifest: &str, findings: &mut Vec<Finding>) {
    let takes_lints = manifest
        .split("[lints]")
        .nth(1)
        .is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
    if !takes_lints {
        findings.push(Finding::error(path, 1, "lints", "add `[lints]` with `workspace = true`"));
    }
    const MAP: &str = "crates/README.md";
    if path.starts_with("crates/") && !tree.text(MAP).unwrap_or("").contains(&format!("`{name}`")) {
        findings.push(Finding::error(MAP, 1, "map", format!("say in one line what `{name}` is for")));
    }
}

/// The line of a manifest that sets `key` (also as `key.workspace`), or 1.
fn line_of(manifest: &str, key: &str) -> usize {
    let sets = |line: &str| {
        let rest = line.trim_start().strip_prefix(key).unwrap_or("x");
        rest.starts_with([' ', '=', '.'])
    };
    manifest.lines().position(sets).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Node, Package};

    const LINTS: &str = "[lints]\nworkspace = true\n";

    /// A workspace of packages that ask for others, all on the map and with lints, and their findings.
    fn findings(packages: &[(&str, &[(&str, Kind)])], graph: &[(&str, &[&str])]) -> Vec<String> {
        let mut workspace = Workspace::default();
        let mut tree = Tree::default();
        let mut map = String::new();
        for (name, dependencies) in packages {
            let manifest = format!("crates/{name}/Cargo.toml");
            let lines: String = dependencies.iter().map(|(d, _)| format!("{d}.workspace = true\n")).collect();
            tree.files.insert(manifest.clone(), format!("{LINTS}[dependencies]\n{lines}"));
            map += &format!("`{name}`\n");
            let dependencies = dependencies.iter().map(|(d, kind)| (d.to_string(), *kind)).collect();
            let package = Package { id: name.to_string(), manifest, dependencies, ..Package::default() };
            workspace.packages.insert(name.to_string(), package);
            workspace.graph.insert(name.to_string(), Node { name: name.to_string(), normal: vec![] });
        }
        for (name, normal) in graph {
            let normal = normal.iter().map(|n| n.to_string()).collect();
            workspace.graph.insert(name.to_string(), Node { name: name.to_string(), normal });
        }
        tree.files.insert("crates/README.md".into(), map);
        let mut findings = Vec::new();
        check(&tree, &workspace, &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn arrows_down_are_fine_in_code_and_in_tests() {
        let none = findings(
            &[
                ("coeval-cell", &[]),
                ("coeval-time", &[("coeval-cell", Kind::Normal)]),
                ("coeval-store", &[("coeval-time", Kind::Normal), ("coeval-cell", Kind::Dev)]),
                ("coeval-quic", &[("coeval-store", Kind::Normal), ("tokio", Kind::Normal)]),
            ],
            &[("coeval-quic", &["tokio"]), ("tokio", &[])],
        );
        assert_eq!(none, [""; 0]);
    }

    #[test]
    fn an_arrow_up_or_sideways_is_found() {
        let found = findings(
            &[
                ("coeval-motion", &[("coeval-merge", Kind::Normal)]),
                ("coeval-merge", &[("coeval-store", Kind::Dev)]),
                ("coeval-store", &[("coeval-store", Kind::Build)]),
            ],
            &[],
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0]
                .starts_with("crates/coeval-merge/Cargo.toml:4: arrows: dev-dependency on `coeval-store`")
        );
        assert!(
            found[1].starts_with("crates/coeval-motion/Cargo.toml:4: arrows: dependency on `coeval-merge`")
        );
        assert!(found[2].contains("arrows"));
    }

    #[test]
    fn a_crate_without_a_floor_is_found() {
        let found = findings(&[("coeval-attic", &[])], &[]);
        assert!(found.len() == 1 && found[0].contains("floors: `coeval-attic` has no floor"), "{found:?}");
    }

    #[test]
    fn io_below_the_driver_is_found_however_deep() {
        let graph: &[(&str, &[&str])] =
            &[("coeval-sync", &["a"]), ("a", &["b", "c"]), ("b", &["a"]), ("c", &["tokio"]), ("tokio", &[])];
        let found = findings(&[("coeval-sync", &[("a", Kind::Normal)])], graph);
        assert_eq!(
            found,
            [
                "crates/coeval-sync/Cargo.toml:4: pure: floor 6 must do without I/O, but: coeval-sync -> a -> c -> tokio"
            ]
        );
        assert_eq!(findings(&[("coeval-quic", &[])], &[("coeval-quic", &["c"]), ("c", &["tokio"])]), [""; 0]);
    }

    #[test]
    fn missing_lints_and_a_gap_in_the_map_are_found() {
        let tree = Tree::from([
            ("crates/coeval-cell/Cargo.toml", "[package]\nname = \"coeval-cell\"\n"),
            ("crates/README.md", "`coeval-cells`\n"),
        ]);
        let package = Package { manifest: "crates/coeval-cell/Cargo.toml".into(), ..Package::default() };
        let mut workspace = Workspace::default();
        workspace.packages.insert("coeval-cell".into(), package);
        let mut findings = Vec::new();
        check(&tree, &workspace, &mut findings);
        let rules: Vec<&str> = findings.iter().map(|f| f.rule).collect();
        assert_eq!(rules, ["lints", "map"]);
    }
}
