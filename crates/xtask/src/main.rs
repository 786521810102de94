//! `cargo xtask tidy`: checks the rules of the house that the compiler does not know.
//!
//! Prints one line for each finding, `file:line: rule: what to do`, and exits with 1 if any of them is an error. Warnings
//! (long files) do not fail. A line that must break a rule of `calls` says so, with a reason, on the line itself or
//! the one above: `// tidy: allow: <reason>`.

mod calls;
mod files;
mod finding;
mod floors;
mod guarantees;
mod metadata;
mod readme;
mod source;
mod tree;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use finding::Finding;
use metadata::Workspace;
use tree::Tree;

const USAGE: &str = "usage: cargo xtask tidy    check the rules of the house over the workspace";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => match tidy() {
            Ok(code) => code,
            Err(error) => complain(&format!("tidy could not look at the workspace: {error}")),
        },
        ["help" | "--help" | "-h"] => {
            let _ = writeln!(io::stdout(), "{USAGE}");
            ExitCode::SUCCESS
        }
        _ => complain(USAGE),
    }
}

/// Exit code 2: nothing was checked.
fn complain(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::from(2)
}

fn tidy() -> Result<ExitCode, String> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("xtask is not in crates/xtask")?;
    let tree = Tree::of_repository(root)?;
    let workspace = Workspace::of_repository(root)?;
    let findings = check(&tree, &workspace);

    let mut out = io::stdout().lock();
    for finding in &findings {
        writeln!(out, "{finding}").map_err(|e| e.to_string())?;
    }
    let errors = findings.iter().filter(|f| f.is_error).count();
    let summary = format!(
        "tidy: {} files, {} crates, {errors} errors, {} warnings",
        tree.files.len(),
        workspace.packages.len(),
        findings.len() - errors
    );
    writeln!(out, "{summary}").map_err(|e| e.to_string())?;
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// All findings, in the order of files and lines.
fn check(tree: &Tree, workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    floors::check(tree, workspace, &mut findings);
    calls::check(tree, &mut findings);
    files::check(tree, &mut findings);
    guarantees::check(tree, &mut findings);
    readme::check(tree, workspace, &mut findings);
    findings.sort();
    findings
}
