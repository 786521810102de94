//! What `cargo metadata` says about the workspace, reduced to what the rules ask.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The packages of the workspace, and who depends on whom among all packages.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// By name.
    pub(crate) packages: BTreeMap<String, Package>,
    /// Package id to its name and the ids of its normal dependencies, over the whole lock file.
    pub(crate) graph: BTreeMap<String, Node>,
}

/// A package of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) id: String,
    /// Path of its `Cargo.toml` from the top level.
    pub(crate) manifest: String,
    /// Names of the packages it asks for, with the kind of the wish.
    pub(crate) dependencies: BTreeSet<(String, Kind)>,
    /// Target kinds (`bin`, `example`, `test`, `bench`...) and names.
    pub(crate) targets: BTreeSet<(String, String)>,
}

/// How a dependency is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// A package in the resolved graph.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) normal: Vec<String>,
}

impl Workspace {
    pub(crate) fn of_repository(root: &Path) -> Result<Self, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1"])
            .current_dir(root)
            .output()
            .map_err(|e| format!("cargo does not run: {e}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let value = serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
        Ok(Self::of_metadata(&value))
    }

    pub(crate) fn of_metadata(value: &Value) -> Self {
        let root = text(&value["workspace_root"]);
        let members: BTreeSet<&str> = list(&value["workspace_members"]).iter().map(text).collect();
        let mut workspace = Workspace::default();
        for package in list(&value["packages"]) {
            let (id, name) = (text(&package["id"]), text(&package["name"]));
            workspace.graph.entry(id.into()).or_default().name = name.into();
            if members.contains(id) {
                workspace.packages.insert(name.into(), Package::of_metadata(package, root));
            }
        }
        for node in list(&value["resolve"]["nodes"]) {
            let normal = list(&node["deps"])
                .iter()
                .filter(|dep| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()));
            let normal = normal.map(|dep| text(&dep["pkg"]).to_owned()).collect();
            workspace.graph.entry(text(&node["id"]).into()).or_default().normal = normal;
        }
        workspace
    }
}

impl Package {
    fn of_metadata(package: &Value, root: &str) -> Self {
        let dependencies = list(&package["dependencies"]).iter().map(|dependency| {
            let kind = match text(&dependency["kind"]) {
                "dev" => Kind::Dev,
                "build" => Kind::Build,
                _ => Kind::Normal,
            };
            (text(&dependency["name"]).to_owned(), kind)
        });
        let targets = list(&package["targets"]).iter().flat_map(|target| {
            let kinds = list(&target["kind"]).iter().map(text);
            kinds.map(|kind| (kind.to_owned(), text(&target["name"]).to_owned()))
        });
        let manifest = text(&package["manifest_path"]).replace('\\', "/");
        let below_root = manifest.strip_prefix(&root.replace('\\', "/")).unwrap_or(&manifest);
        Package {
            id: text(&package["id"]).into(),
            manifest: below_root.trim_start_matches('/').into(),
            dependencies: dependencies.collect(),
            targets: targets.collect(),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let workspace = Workspace::of_repository(root).unwrap();
        let xtask = &workspace.packages["xtask"];
        assert_eq!(xtask.manifest, "crates/xtask/Cargo.toml");
        assert!(xtask.targets.contains(&("bin".into(), "xtask".into())));
        assert!(xtask.dependencies.contains(&("serde_json".into(), Kind::Normal)));
        let normal: Vec<&str> =
            workspace.graph[&xtask.id].normal.iter().map(|id| workspace.graph[id].name.as_str()).collect();
        assert_eq!(normal, ["serde_json"]);
    }
}
