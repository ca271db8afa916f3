//! Recordings of the real program as lines of a tape.

use std::{fs, path::Path};

use ostler_domain::{MessageId, Time, Usage};
use ostler_tape::{InputMark, Line, LineBody, Stream};
use serde_json::Value;

pub(crate) struct Recording {
    pub(crate) name: String,
    rows: Vec<Value>,
}

impl Recording {
    pub(crate) fn all() -> Vec<Recording> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude_code/recordings");
        let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let read = |path: &std::path::PathBuf| Recording {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            rows: fs::read_to_string(path)
                .unwrap()
                .lines()
                .map(|row| serde_json::from_str(row).unwrap())
                .collect(),
        };
        let all: Vec<_> = paths
            .iter()
            .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
            .map(read)
            .collect();
        assert!(all.len() > 80, "{} recordings", all.len());
        all
    }

    /// The lines as a keeper would have taped them, had our own daemon led the talk: its ids stand for the recorder's.
    pub(crate) fn lines(&self) -> Vec<Line<'static>> {
        let mut opening = None;
        let mut lines = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            let data = &row["data"];
            let (stream, text, input) = match row["dir"].as_str().unwrap() {
                "in" => {
                    let tag = self.tag(data, place, &mut opening);
                    (Stream::In, data.to_string(), Some(InputMark { input_no: place as u64, tag }))
                }
                "out" => (Stream::Out, said(data, opening.as_deref()), None),
                "err" => (Stream::Err, data.as_str().map_or_else(|| data.to_string(), str::to_owned), None),
                _ => continue,
            };
            let body = LineBody::Whole(text.into_bytes().into());
            let start = place as u64 * 1_000;
            let time_us = 1_763_000_000_000_000 + row["t_ms"].as_i64().unwrap_or(0) * 1_000;
            lines.push(Line { stream, start, end: start + 1_000, time_us, body, input });
        }
        lines
    }

    fn argument(&self, option: &str) -> Option<String> {
        let argv = self.rows[0]["data"]["argv"].as_array()?;
        let place = argv.iter().position(|word| word == option)?;
        argv.get(place + 1)?.as_str().map(str::to_owned)
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.argument("--resume").is_some() || self.rows[0].to_string().contains("\"--continue\"")
    }

    fn tag(&self, data: &Value, place: usize, opening: &mut Option<String>) -> String {
        let kind = data["request"]["subtype"].as_str().or(data["type"].as_str()).unwrap_or_default();
        match kind {
            "initialize" => {
                *opening = data["request_id"].as_str().map(str::to_owned);
                let id =
                    self.argument("--session-id").or_else(|| self.argument("--resume")).unwrap_or_default();
                let opened = serde_json::json!({
                    "id": id,
                    "model": self.argument("--model"),
                    "is_resumed": self.is_resumed(),
                });
                format!("open:{opened}")
            }
            "user" => format!("prompt:{}", message(data["uuid"].as_str(), place)),
            "control_response" => {
                format!("answer:{}", data["response"]["request_id"].as_str().unwrap_or_default())
            }
            other => other.to_owned(),
        }
    }

    pub(crate) fn has_an_interrupted_answer(&self) -> bool {
        self.rows.iter().any(|row| {
            row["data"]["terminal_reason"] == "aborted_streaming" || row["data"]["aborted"] == true
        })
    }

    /// Its totals begin anew then.
    pub(crate) fn has_a_reset(&self) -> bool {
        self.rows.iter().any(|row| row["data"]["type"] == "conversation_reset")
    }

    /// What the program itself counted at its last result; none where that is of other lives too, or was never said.
    pub(crate) fn counted(&self) -> Option<Usage> {
        let results = self.rows.iter().filter(|row| row["dir"] == "out" && row["data"]["type"] == "result");
        let last = results.clone().next_back()?;
        if self.is_resumed() {
            return None;
        }
        let models = last["data"]["modelUsage"].as_object()?;
        let of = |name: &str| models.values().filter_map(|model| model[name].as_u64()).sum();
        Some(Usage {
            input: of("inputTokens"),
            cache_read: of("cacheReadInputTokens"),
            cache_write: of("cacheCreationInputTokens"),
            output: of("outputTokens"),
            reasoning: 0,
        })
    }
}

fn said(data: &Value, opening: Option<&str>) -> String {
    if let Some(raw) = data.get("_raw").and_then(Value::as_str) {
        return raw.to_owned();
    }
    let mut data = data.clone();
    if data["type"] == "control_response" && opening.is_some_and(|id| data["response"]["request_id"] == id) {
        data["response"]["request_id"] = "ostler-open".into();
    }
    data.to_string()
}

/// The message whose id becomes this uuid.
fn message(uuid: Option<&str>, place: usize) -> MessageId {
    let bits =
        uuid.and_then(|uuid| u128::from_str_radix(&uuid.replace('-', ""), 16).ok()).unwrap_or(place as u128);
    let millis = i64::try_from(bits >> 80).unwrap();
    MessageId::new(Time::from_micros(millis * 1_000), bits & ((1 << 80) - 1))
}
