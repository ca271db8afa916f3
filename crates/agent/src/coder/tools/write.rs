//! `write_file`

use std::{fs, io::Write as _, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Job, Kind, Outcome, Tool, Work, place, prepared};

pub(super) const TOOL: Tool = Tool {
    name: "write_file",
    description: "Writes a whole file, replacing it if it exists. Makes missing directories.",
    parameters,
    kind: Kind::Edit,
    needs_leave: true,
    prepare: prepared::<Write>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
}

fn parameters() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["path", "content"], "properties": {
        "path": {"type": "string", "description": "relative to the working directory"},
        "content": {"type": "string"},
    }})
}

impl Work for Write {
    fn title(&self) -> String {
        format!("write {}", self.path)
    }

    fn run(&self, job: &Job) -> Outcome {
        Outcome::of(self.write(job))
    }
}

impl Write {
    fn write(&self, job: &Job) -> Result<String, String> {
        let path = place::find(&job.root, &self.path)?;
        if path.exists() {
            place::is_file(&path, &self.path)?;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", self.path))?;
        }
        replace(&path, self.content.as_bytes()).map_err(|error| format!("{}: {error}", self.path))?;
        Ok(format!("{} bytes written to {}", self.content.len(), self.path))
    }
}

/// Puts a file in place whole, keeping its mode: nobody ever sees half of it.
pub(super) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    // A link stays a link: what it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = fs::File::create(&beside).and_then(|mut file| {
        file.write_all(content)?;
        if let Ok(metadata) = fs::metadata(&path) {
            file.set_permissions(metadata.permissions())?;
        }
        fs::rename(&beside, &path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{super::testing::*, *};

    #[test]
    fn files_are_written_whole_and_keep_their_mode() {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path());
        let outcome = call(&job, "write_file", json!({"path": "new/deep/a.sh", "content": "x"}));
        assert!(outcome.ok, "{}", outcome.output);
        let file = dir.path().join("new/deep/a.sh");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("a.sh", dir.path().join("new/deep/link")).unwrap();
        assert!(call(&job, "write_file", json!({"path": "new/deep/link", "content": "yy"})).ok);
        assert_eq!(fs::read_to_string(&file).unwrap(), "yy");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 2, "nothing is left behind");
        let outside = call(&job, "write_file", json!({"path": "/etc/owned", "content": "x"}));
        assert!(!outside.ok && outside.output.contains("outside"));
    }
}
