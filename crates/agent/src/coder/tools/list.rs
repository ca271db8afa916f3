//! `list_dir`

use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Job, Kind, Outcome, Tool, Work, place, prepared};

const ENTRIES: usize = 500;
const DEEPEST: usize = 10;

pub(super) const TOOL: Tool = Tool {
    name: "list_dir",
    description: "Lists a directory: name, and size of files; directories end with a slash. Leaves out what git ignores.",
    parameters,
    kind: Kind::Search,
    needs_leave: false,
    prepare: prepared::<List>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default = "here")]
    path: String,
    #[serde(default)]
    depth: Option<usize>,
}

fn here() -> String {
    ".".to_owned()
}

fn parameters() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {
        "path": {"type": "string", "description": "relative to the working directory, which is the default"},
        "depth": {"type": "integer", "description": "1, the default, is the directory alone"},
    }})
}

impl Work for List {
    fn title(&self) -> String {
        format!("list {}", self.path)
    }

    fn run(&self, job: &Job) -> Outcome {
        Outcome::of(self.list(job))
    }
}

impl List {
    fn list(&self, job: &Job) -> Result<String, String> {
        let dir = place::find(&job.root, &self.path)?;
        if !dir.metadata().map_err(|error| format!("{}: {error}", self.path))?.is_dir() {
            return Err(format!("{} is not a directory", self.path));
        }
        let depth = self.depth.unwrap_or(1).clamp(1, DEEPEST);
        let walk = WalkBuilder::new(&dir)
            .hidden(false)
            .parents(true)
            .require_git(false)
            .max_depth(Some(depth))
            .filter_entry(|entry| entry.file_name() != ".git")
            .sort_by_file_path(|a, b| a.cmp(b))
            .build();
        let mut lines = Vec::new();
        for entry in walk.skip(1).flatten() {
            if job.stop.is_stopped() {
                break;
            }
            if lines.len() == ENTRIES {
                lines.push(format!("… more than {ENTRIES}; list a part of it"));
                break;
            }
            let name = place::shown(&dir, entry.path());
            lines.push(match entry.file_type() {
                Some(kind) if kind.is_dir() => format!("{name}/"),
                Some(kind) if kind.is_symlink() => format!("{name} (link)"),
                _ => format!("{name}  {}", entry.metadata().map_or(0, |metadata| metadata.len())),
            });
        }
        Ok(if lines.is_empty() { "empty".to_owned() } else { lines.join("\n") })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::testing::*, *};

    #[test]
    fn a_directory_is_listed_without_what_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        fs::create_dir_all(dir.path().join("target")).unwrap();
        fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        fs::write(dir.path().join("src/a.rs"), "abc").unwrap();
        assert_eq!(call(&job, "list_dir", json!({})).output, ".gitignore  7\nsrc/");
        let deep = call(&job, "list_dir", json!({"path": "src", "depth": 2})).output;
        assert_eq!(deep, "a.rs  3\ndeep/");
        assert_eq!(call(&job, "list_dir", json!({"path": "src/deep"})).output, "empty");
        assert!(!call(&job, "list_dir", json!({"path": "src/a.rs"})).ok);
    }
}
