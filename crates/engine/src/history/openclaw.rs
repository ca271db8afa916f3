//! OpenClaw's index: `sessions.json` beside the transcripts says by which key each is known, and what is noted about it.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::{
    conversation::{Entry, Key, Notes},
    exchange::{openclaw::recovered_key, openclaw_index::Index},
};
use serde_json::{Map, Value};

/// Larger ones are not read: an index of a hundred thousand sessions is smaller.
const INDEX_BYTES: u64 = 512 * 1024 * 1024;

/// What the index says of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// As it is written there; `agent:<agent>:recovered:<session>` for one that no row names, as OpenClaw itself does.
    pub(super) key: String,
    /// All of the row, whatever a newer version may have put into it.
    pub(super) entry: Map<String, Value>,
}

impl Row {
    /// The name of its transcript, as far as the row says it. Only the name: a row must not lead out of its directory.
    pub(super) fn file(&self) -> Option<String> {
        let named = self.entry.get("sessionFile").and_then(Value::as_str);
        let named = named.and_then(|path| Path::new(path).file_name());
        let own = || self.session_id().map(|id| format!("{id}.jsonl"));
        named.map(|name| name.to_string_lossy().into_owned()).or_else(own)
    }

    pub(super) fn session_id(&self) -> Option<&str> {
        self.entry.get("sessionId").and_then(Value::as_str).filter(|id| !id.is_empty())
    }

    /// The key, where it can be one here.
    pub(super) fn key(&self) -> Option<Key> {
        self.key.parse().ok()
    }

    /// What is noted about the conversation. What does not fit what this version knows is kept all the same.
    pub(super) fn notes(&self) -> Notes {
        Notes { entry: Entry::of_row(&self.entry), ..Notes::default() }
    }
}

/// Rows by the transcript's file, for each directory that was asked for.
#[derive(Default)]
pub(super) struct Indexes(HashMap<PathBuf, HashMap<String, Row>>);

impl Indexes {
    pub(super) fn row(&mut self, file: &Path, dialogue: Option<&str>) -> Row {
        let dir = file.parent().unwrap_or(Path::new("/"));
        let index = self.0.entry(dir.to_owned()).or_insert_with(|| read(dir));
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // A row may leave out that its transcript is of a topic.
        let of_topic = || {
            let (id, _) = name.split_once("-topic-")?;
            index.get(&format!("{id}.jsonl")).filter(|_| !dir.join(format!("{id}.jsonl")).exists())
        };
        index.get(&name).or_else(of_topic).cloned().unwrap_or_else(|| {
            // Its file is found by its name, whatever is written in it.
            let session = name.strip_suffix(".jsonl").or(dialogue).unwrap_or(&name);
            Row { key: recovered_key(&agent_of(dir), session), entry: Map::new() }
        })
    }
}

/// The agent whose transcripts lie in a directory: `agents/<agent>/sessions`.
pub(super) fn agent_of(dir: &Path) -> String {
    let name = dir.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "main".to_owned())
}

/// The key of what can have none of its own here: it says whose it is, so that it goes out where it came from.
pub(super) fn other_key(dir: &Path, name: &str) -> Key {
    let of_agent = format!("agent:{}:import:{name}", agent_of(dir)).parse();
    of_agent.or_else(|_| format!("import:openclaw:{name}").parse()).unwrap_or_else(|_| Key::main())
}

fn read(dir: &Path) -> HashMap<String, Row> {
    let named = rows(&dir.join(INDEX)).into_iter().filter_map(|row| Some((row.file()?, row)));
    named.collect()
}

/// The index's name beside the transcripts.
pub(super) const INDEX: &str = "sessions.json";

/// An index that cannot be read has no rows: its transcripts come in all the same.
pub(super) fn rows(index: &Path) -> Vec<Row> {
    read_rows(index).unwrap_or_default()
}

/// None where there is none that can be read.
pub(super) fn read_rows(index: &Path) -> Option<Vec<Row>> {
    fs::metadata(index).ok().filter(|about| about.is_file() && about.len() <= INDEX_BYTES)?;
    let text = fs::read(index).ok()?;
    let index = Index::read(&text)?;
    Some(index.rows().map(|(key, entry)| Row { key: key.to_owned(), entry }).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_found_by_file_and_never_lead_out_of_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = dir.path().join("agents/main/sessions");
        fs::create_dir_all(&sessions).unwrap();
        let index = json!({
            "agent:main:main": {"sessionId": "a", "updatedAt": 1, "thinkingLevel": "high", "fromTheFuture": {"x": [1]}},
            "agent:main:discord:dm:USER": {"sessionId": "b", "sessionFile": "../../../../etc/b-topic-7.jsonl"},
            "agent:main:broken": 5,
        });
        fs::write(sessions.join("sessions.json"), index.to_string()).unwrap();
        let mut indexes = Indexes::default();
        let row = indexes.row(&sessions.join("a.jsonl"), Some("a"));
        assert_eq!(row.key, "agent:main:main");
        let notes = row.notes();
        assert_eq!(notes.entry.thinking_level.as_deref(), Some("high"));
        assert_eq!(notes.entry.other["fromTheFuture"], json!({"x": [1]}));
        assert!(notes.entry.is_imported());
        assert_eq!(indexes.row(&sessions.join("b-topic-7.jsonl"), None).key, "agent:main:discord:dm:USER");
        assert_eq!(indexes.row(&sessions.join("c.jsonl"), Some("c")).key, "agent:main:recovered:c");
    }

    #[test]
    fn a_row_that_does_not_fit_is_kept_whole() {
        let entry = json!({"sessionId": "a", "queueMode": {"not": "a mode"}, "label": "L"});
        let Value::Object(fields) = entry.clone() else { unreachable!() };
        let row = Row { key: "agent:main:main".to_owned(), entry: fields };
        let noted = row.notes();
        assert_eq!(serde_json::to_value(&noted.entry).unwrap(), entry);
        assert_eq!(noted.entry.label.as_deref(), Some("L"), "what fits holds");
        assert_eq!(Notes::from_json(&noted.to_json()).unwrap(), noted, "and is read from the record again");
    }
}
