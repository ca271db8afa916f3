//! The shape of the workspace: what the manifests, the sources and the pages must agree on.
//!
//! `ARCHITECTURE.md` is read, not repeated: its blocks `arrows` and `without` are the rules.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod arrows;
mod figures;
mod pages;
mod roots;
mod workspace;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The directory of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A file of the workspace.
fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of the fenced block with this name in `ARCHITECTURE.md`.
fn block(name: &str) -> Vec<String> {
    let page = text("ARCHITECTURE.md");
    let fence = format!("```{name}");
    let lines = page.lines().skip_while(|line| *line != fence).skip(1).take_while(|line| *line != "```");
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert!(!lines.is_empty(), "ARCHITECTURE.md has no block {fence}");
    lines
}
