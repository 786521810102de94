//! The commands that the README shows exist: packages, binaries, examples, aliases, scripts.

use crate::finding::Finding;
use crate::metadata::Workspace;
use crate::tree::Tree;

const README: &str = "README.md";

/// Languages of code blocks that hold commands.
const SHELLS: &[&str] = &["sh", "bash", "console", "shell", "text", ""];

/// Commands that come with cargo or its usual companions.
const CARGO: &[&str] = &[
    "add", "bench", "build", "check", "clippy", "doc", "fmt", "install", "metadata", "new", "nextest", "run",
    "test", "tree", "update",
];

pub(crate) fn check(tree: &Tree, workspace: &Workspace, findings: &mut Vec<Finding>) {
    let Some(text) = tree.text(README) else {
        findings.push(Finding::error(
            README,
            1,
            "readme",
            "write it: what this is, and the commands to start with",
        ));
        return;
    };
    let mut commands = 0;
    for (line, command) in commands_of(text) {
        commands += 1;
        if let Err(wrong) = check_command(&command, tree, workspace) {
            let advice = format!("`{}`: {wrong}", command.join(" "));
            findings.push(Finding::error(README, line, "readme", advice));
        }
    }
    if commands == 0 {
        findings.push(Finding::error(
            README,
            1,
            "readme",
            "show the commands to start with, in a `sh` block",
        ));
    }
}

/// The commands in the code blocks, as words, with their lines: what starts with cargo, a path of ours, or `coeval`.
fn commands_of(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut commands = Vec::new();
    let mut block: Option<bool> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            block = match block {
                None => Some(SHELLS.contains(&language.trim())),
                Some(_) => None,
            };
        } else if block == Some(true) {
            let words = line.trim_start_matches("$ ").split_whitespace();
            let words = words.skip_while(|word| is_setting(word)).take_while(|word| !word.starts_with('#'));
            let words: Vec<String> = words.map(str::to_owned).collect();
            let first = words.first().map_or("", String::as_str);
            if matches!(first, "cargo" | "coeval") || first.starts_with("./") || first.starts_with(".ci/") {
                commands.push((at + 1, words));
            }
        }
    }
    commands
}

/// `NAME=value` before a command.
fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

fn check_command(words: &[String], tree: &Tree, workspace: &Workspace) -> Result<(), String> {
    match words[0].as_str() {
        "cargo" => check_cargo(&words[1..], tree, workspace),
        "coeval" => match has_target(workspace, None, "bin", "coeval") {
            true => Ok(()),
            false => Err("no crate builds a binary `coeval`".into()),
        },
        script => match tree.text(script.trim_start_matches("./")) {
            Some(_) => Ok(()),
            None => Err(format!("there is no file `{script}`")),
        },
    }
}

fn check_cargo(words: &[String], tree: &Tree, workspace: &Workspace) -> Result<(), String> {
    // What follows `--` is for the program that runs.
    let words: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let command = words.iter().find(|word| !word.starts_with(['+', '-'])).copied().unwrap_or("");
    let alias = format!("{command} = ");
    let aliases = tree.text(".cargo/config.toml").unwrap_or("");
    if !CARGO.contains(&command) && !aliases.lines().any(|line| line.starts_with(&alias)) {
        return Err(format!("cargo has no `{command}`, and .cargo/config.toml no such alias"));
    }
    if command == "xtask" && words.get(1) != Some(&"tidy") {
        return Err("xtask knows `tidy`".into());
    }
    let package = option(&words, &["-p", "--package"]);
    if let Some(package) = package.filter(|name| !workspace.packages.contains_key(*name)) {
        return Err(format!("the workspace has no package `{package}`"));
    }
    for (flag, kind) in [("--bin", "bin"), ("--example", "example"), ("--test", "test"), ("--bench", "bench")]
    {
        if let Some(name) = option(&words, &[flag]).filter(|name| !has_target(workspace, package, kind, name))
        {
            return Err(format!("there is no {kind} `{name}`"));
        }
    }
    Ok(())
}

/// The value of an option, as `--name value` or `--name=value`.
fn option<'a>(words: &[&'a str], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| match word.split_once('=') {
        Some((name, value)) => names.contains(&name).then_some(value),
        None => names.contains(word).then(|| words.get(at + 1).copied().unwrap_or("")),
    })
}

fn has_target(workspace: &Workspace, package: Option<&str>, kind: &str, name: &str) -> bool {
    let target = (kind.to_owned(), name.to_owned());
    let mut packages =
        workspace.packages.iter().filter(|(of, _)| package.is_none_or(|package| package == *of));
    packages.any(|(_, package)| package.targets.contains(&target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn found(readme: &str) -> Vec<String> {
        let tree = Tree::from([
            (README, readme),
            (".ci/run", ""),
            (".cargo/config.toml", "[alias]\nxtask = \"run --package xtask --\"\n"),
        ]);
        let mut workspace = Workspace::default();
        for (name, targets) in [
            ("coeval-cli", &[("bin", "coeval"), ("test", "verbs")][..]),
            ("examples", &[("example", "ten-lines"), ("bin", "demo")]),
        ] {
            let targets = targets.iter().map(|(kind, name)| (kind.to_string(), name.to_string())).collect();
            workspace.packages.insert(name.into(), Package { targets, ..Package::default() });
        }
        let mut findings = Vec::new();
        check(&tree, &workspace, &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn commands_that_exist_are_accepted() {
        let text = "# x\n```sh\n$ cargo run --release -p coeval-cli --bin coeval -- demo --bin x\n\
                    RUSTFLAGS=-g cargo test --workspace # all\ncargo run --example=ten-lines\n\
                    cargo test -p coeval-cli --test verbs\ncargo xtask tidy\ncoeval ls\n.ci/run\nls nothing\n```\n\
                    cargo nonsense\n```rust\ncargo nonsense\n```\n";
        assert_eq!(found(text), [""; 0]);
    }

    #[test]
    fn commands_that_do_not_exist_are_found() {
        for command in [
            "cargo fly",
            "cargo run -p coeval-clu",
            "cargo run --bin ten-lines",
            "cargo run -p coeval-cli --bin demo",
            "cargo run --example ten_lines",
            "cargo test --test=verb",
            "cargo xtask neat",
            "./demo.sh",
            ".ci/test",
        ] {
            let found = found(&format!("```\ncargo test\n{command}\n```"));
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("README.md:3: readme: `{command}`: ")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_readme_without_commands_or_none_at_all_is_found() {
        assert_eq!(found("cargo test").len(), 1);
        let mut findings = Vec::new();
        check(&Tree::default(), &Workspace::default(), &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
