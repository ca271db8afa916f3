//! `edit_file`

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Job, Kind, Outcome, Tool, Work, place, prepared, write::replace};

/// A larger file is changed by a command.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

pub(super) const TOOL: Tool = Tool {
    name: "edit_file",
    description: "Replaces a piece of text in a file. old_text must match exactly once, unless replace_all is true.",
    parameters,
    kind: Kind::Edit,
    needs_leave: true,
    prepare: prepared::<Edit>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

fn parameters() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["path", "old_text", "new_text"], "properties": {
        "path": {"type": "string", "description": "relative to the working directory"},
        "old_text": {"type": "string", "description": "exactly as it is in the file, without line numbers"},
        "new_text": {"type": "string"},
        "replace_all": {"type": "boolean"},
    }})
}

impl Work for Edit {
    fn title(&self) -> String {
        format!("edit {}", self.path)
    }

    fn run(&self, job: &Job) -> Outcome {
        Outcome::of(self.edit(job))
    }
}

impl Edit {
    fn edit(&self, job: &Job) -> Result<String, String> {
        let path = place::find(&job.root, &self.path)?;
        if place::is_file(&path, &self.path)? > FILE_BYTES {
            return Err(format!("{} is too large to be edited", self.path));
        }
        if self.old_text.is_empty() {
            return Err("old_text is empty; use write_file for a new file".to_owned());
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", self.path))?;
        let count = text.matches(&self.old_text).count();
        match count {
            0 => return Err(format!("old_text is not in {}; read the file again", self.path)),
            1 => {}
            _ if self.replace_all => {}
            _ => {
                return Err(format!(
                    "old_text is in {} {count} times; add lines around it, or set replace_all",
                    self.path
                ));
            }
        }
        let changed = text.replace(&self.old_text, &self.new_text);
        replace(&path, changed.as_bytes()).map_err(|error| format!("{}: {error}", self.path))?;
        Ok(format!("{count} replaced in {}", self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::*, *};

    #[test]
    fn a_text_must_match_once() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        let file = dir.path().join("a");
        fs::write(&file, "x = 1\ny = 1\n").unwrap();
        let edit = |old: &str, all: bool| {
            call(
                &job,
                "edit_file",
                json!({"path": "a", "old_text": old, "new_text": "2", "replace_all": all}),
            )
            .output
        };
        assert!(edit("1", false).contains("2 times"));
        assert!(edit("z", false).contains("not in a"));
        assert!(edit("", false).contains("empty"));
        assert_eq!(edit("1", true), "2 replaced in a");
        assert_eq!(fs::read_to_string(&file).unwrap(), "x = 2\ny = 2\n");
    }
}
