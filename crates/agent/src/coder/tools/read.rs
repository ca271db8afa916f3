//! `read_file`

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Job, Kind, Outcome, Tool, Work, place, prepared};

/// A larger file is read in parts or by other means.
const FILE_BYTES: u64 = 256 * 1024;
const LINES: usize = 2000;

pub(super) const TOOL: Tool = Tool {
    name: "read_file",
    description: "Reads a text file, with line numbers. Use offset and limit for a part of a long one.",
    parameters,
    kind: Kind::Read,
    needs_leave: false,
    prepare: prepared::<Read>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

fn parameters() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
        "path": {"type": "string", "description": "relative to the working directory"},
        "offset": {"type": "integer", "description": "first line, from 1"},
        "limit": {"type": "integer", "description": "number of lines"},
    }})
}

impl Work for Read {
    fn title(&self) -> String {
        format!("read {}", self.path)
    }

    fn run(&self, job: &Job) -> Outcome {
        Outcome::of(self.read(job))
    }
}

impl Read {
    fn read(&self, job: &Job) -> Result<String, String> {
        let path = place::find(&job.root, &self.path)?;
        let bytes = place::is_file(&path, &self.path)?;
        if bytes > FILE_BYTES && self.limit.is_none() {
            return Err(format!("{} has {bytes} bytes; say offset and limit, or search", self.path));
        }
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", self.path))?;
        let Ok(text) = String::from_utf8(content) else {
            return Err(format!("{} is not a text file", self.path));
        };
        if text.is_empty() {
            return Ok("the file is empty".to_owned());
        }
        let first = self.offset.unwrap_or(1).max(1);
        let limit = self.limit.unwrap_or(LINES).min(LINES);
        let total = text.lines().count();
        let mut shown = String::new();
        for (number, line) in (1..).zip(text.lines()).skip(first - 1).take(limit) {
            shown.push_str(&format!("{number:>6}\t{line}\n"));
            if shown.len() as u64 > FILE_BYTES {
                shown.push_str("… cut here: the lines are long\n");
                break;
            }
        }
        let last = (first - 1 + limit).min(total);
        if first > total {
            return Err(format!("{} has {total} lines", self.path));
        }
        if last < total {
            shown.push_str(&format!("… {} more lines\n", total - last));
        }
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::*, *};

    #[test]
    fn files_are_read_with_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        fs::write(dir.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(dir.path().join("bin"), b"\xff\0").unwrap();
        let all = call(&job, "read_file", json!({"path": "a.txt"}));
        assert_eq!(all.output, "     1\tone\n     2\ttwo\n     3\tthree\n");
        let part = call(&job, "read_file", json!({"path": "a.txt", "offset": 2, "limit": 1}));
        assert_eq!(part.output, "     2\ttwo\n… 1 more lines\n");
        for (arguments, why) in [
            (json!({"path": "bin"}), "not a text file"),
            (json!({"path": "."}), "directory"),
            (json!({"path": "nope"}), "No such file"),
            (json!({"path": "../../etc/passwd"}), "outside"),
            (json!({"path": "a.txt", "offset": 9}), "has 3 lines"),
        ] {
            let outcome = call(&job, "read_file", arguments);
            assert!(!outcome.ok && outcome.output.contains(why), "{}", outcome.output);
        }
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let outcome = call(&job(dir.path()), "read_file", json!({"path": "pipe"}));
        assert!(outcome.output.contains("not a regular file"), "{}", outcome.output);
    }
}
