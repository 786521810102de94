//! The files of the repository, in memory, so that tests can feed the rules bad ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Path from the top level (with `/`) to text. Files that are not UTF-8 are listed with no text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

impl Tree {
    /// What git tracks, and what it would track if it were added: generated and ignored files are nobody's business.
    pub(crate) fn of_repository(root: &Path) -> Result<Self, String> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|e| format!("git does not run: {e}"))?;
        if !listing.status.success() {
            return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listing.stderr).trim()));
        }
        let mut files = BTreeMap::new();
        for path in String::from_utf8_lossy(&listing.stdout).split('\0').filter(|path| !path.is_empty()) {
            // Listed but gone: deleted, and not committed yet.
            if let Ok(bytes) = std::fs::read(root.join(path)) {
                files.insert(path.to_owned(), String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(Tree { files })
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// The files below `crates/`, `examples/` and `integration-tests/` that are Rust.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .filter(|(path, _)| path.ends_with(".rs"))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        Tree { files: files.into_iter().map(|(path, text)| (path.into(), text.into())).collect() }
    }
}
