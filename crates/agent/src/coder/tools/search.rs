//! `search`

use std::{fs::File, io::Read};

use ignore::{WalkBuilder, overrides::OverrideBuilder};
use ostler_domain::text::head;
use regex::RegexBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Job, Kind, Outcome, Tool, Work, place, prepared};

const HITS: usize = 200;
/// A line longer than this is somebody's generated file.
const LINE_BYTES: usize = 300;
const FILE_BYTES: u64 = 4 * 1024 * 1024;
/// An expression whose machine is larger is refused.
const REGEX_BYTES: usize = 1024 * 1024;

pub(super) const TOOL: Tool = Tool {
    name: "search",
    description: "Searches files for a regular expression, line by line. Leaves out what git ignores.",
    parameters,
    kind: Kind::Search,
    needs_leave: false,
    prepare: prepared::<Search>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
}

fn parameters() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["pattern"], "properties": {
        "pattern": {"type": "string", "description": "regular expression"},
        "path": {"type": "string", "description": "file or directory, relative to the working directory"},
        "glob": {"type": "string", "description": "only files like this, such as *.rs"},
    }})
}

impl Work for Search {
    fn title(&self) -> String {
        match &self.path {
            Some(path) => format!("search {} in {path}", self.pattern),
            None => format!("search {}", self.pattern),
        }
    }

    fn run(&self, job: &Job) -> Outcome {
        Outcome::of(self.search(job))
    }
}

impl Search {
    fn search(&self, job: &Job) -> Result<String, String> {
        let pattern = RegexBuilder::new(&self.pattern)
            .size_limit(REGEX_BYTES)
            .build()
            .map_err(|error| error.to_string())?;
        let from = place::find(&job.root, self.path.as_deref().unwrap_or("."))?;
        let mut walk = WalkBuilder::new(&from);
        walk.hidden(false).parents(true).require_git(false).sort_by_file_path(|a, b| a.cmp(b));
        walk.filter_entry(|entry| entry.file_name() != ".git");
        if let Some(glob) = &self.glob {
            let mut only = OverrideBuilder::new(&from);
            only.add(glob).map_err(|error| error.to_string())?;
            walk.overrides(only.build().map_err(|error| error.to_string())?);
        }
        let mut hits = Vec::new();
        for entry in walk.build().flatten() {
            if job.stop.is_stopped() || hits.len() > HITS {
                break;
            }
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let Some(text) = File::open(entry.path()).ok().and_then(text_of) else { continue };
            let name = place::shown(&job.root, entry.path());
            let found = (1..).zip(text.lines()).filter(|(_, line)| pattern.is_match(line));
            hits.extend(
                found
                    .take(HITS + 1)
                    .map(|(number, line)| format!("{name}:{number}: {}", head(line, LINE_BYTES))),
            );
        }
        if hits.len() > HITS {
            hits.truncate(HITS);
            hits.push(format!("… more than {HITS} hits; narrow the search"));
        }
        Ok(if hits.is_empty() { "no hits".to_owned() } else { hits.join("\n") })
    }
}

fn text_of(file: File) -> Option<String> {
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text).ok()?;
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::testing::*, *};

    #[test]
    fn lines_are_found_with_their_places() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        fs::create_dir_all(dir.path().join("src")).unwrap();
        fs::create_dir_all(dir.path().join("out")).unwrap();
        fs::write(dir.path().join(".gitignore"), "out/\n").unwrap();
        fs::write(dir.path().join("src/a.rs"), "fn main() {\n    login();\n}\n").unwrap();
        fs::write(dir.path().join("src/b.txt"), "login\n").unwrap();
        fs::write(dir.path().join("out/c.rs"), "login\n").unwrap();
        let found = |arguments| call(&job, "search", arguments).output;
        assert_eq!(found(json!({"pattern": "log.n"})), "src/a.rs:2:     login();\nsrc/b.txt:1: login");
        assert_eq!(found(json!({"pattern": "login", "glob": "*.txt"})), "src/b.txt:1: login");
        assert_eq!(found(json!({"pattern": "login", "path": "src/a.rs"})), "src/a.rs:2:     login();");
        assert_eq!(found(json!({"pattern": "nowhere"})), "no hits");
        assert!(found(json!({"pattern": "("})).contains("error"));
        fs::write(dir.path().join("many"), "x\n".repeat(1000)).unwrap();
        assert_eq!(found(json!({"pattern": "^x$"})).lines().count(), HITS + 1);
    }
}
