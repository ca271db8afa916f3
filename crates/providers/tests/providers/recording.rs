//! A recording as the lines of a tape, and what a dialogue makes of it.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::{
    Usage,
    session::{AgentRequest, Report},
};
use ostler_providers::{DialogueState, Heard, registry};
use ostler_tape::{InputMark, Line, LineBody, Stream};
use serde_json::{Value, json};

/// How much of each line of a story is pinned.
const SHOWN_CHARACTERS: usize = 300;

pub(crate) struct Recording {
    name: String,
    provider: &'static str,
    lines: Vec<Line<'static>>,
}

/// The recordings of a folder whose names begin so.
pub(crate) fn all(folder: &'static str, prefix: &str, provider: &'static str) -> Vec<Recording> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(folder);
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "jsonl"))
        .filter(|path| path.file_stem().unwrap().to_str().unwrap().starts_with(prefix))
        .collect();
    found.sort();
    found.into_iter().map(|path| Recording::read(&path, provider)).collect()
}

impl Recording {
    fn read(path: &Path, provider: &'static str) -> Self {
        let mut lines = Vec::new();
        let mut inputs = 0;
        for (number, record) in fs::read_to_string(path).unwrap().lines().enumerate() {
            let record: Value = serde_json::from_str(record).unwrap();
            let stream = match record["dir"].as_str() {
                Some("C>A" | "C>S" | "stdin") => Stream::In,
                Some("A>C" | "S>C" | "stdout") => Stream::Out,
                Some("stderr") => Stream::Err,
                _ => continue,
            };
            let message = record.get("msg").or(record.get("frame")).unwrap_or(&Value::Null);
            let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
            let input = (stream == Stream::In).then(|| {
                inputs += 1;
                InputMark { input_no: inputs, tag: tag(message, inputs) }
            });
            let start = number as u64 * 100;
            let body = LineBody::Whole(text.into_bytes().into());
            lines.push(Line { stream, start, end: start + 100, time_us: 1_000_000, body, input });
        }
        Self { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), provider, lines }
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = Value> {
        self.lines.iter().filter_map(|line| serde_json::from_slice(line.body.bytes()).ok())
    }

    /// Its name and its lines.
    pub(crate) fn into_tape(self) -> (String, Vec<Line<'static>>) {
        (self.name, self.lines)
    }

    /// The same with every message changed, and the tags of what was said to the agent with it.
    pub(crate) fn adapted(mut self, mut adapt: impl FnMut(&mut Value, u64) -> Option<String>) -> Self {
        for line in &mut self.lines {
            let Ok(mut message) = serde_json::from_slice::<Value>(line.body.bytes()) else { continue };
            let input_no = line.input.as_ref().map_or(0, |input| input.input_no);
            let tag = adapt(&mut message, input_no);
            if let (Some(input), Some(tag)) = (&mut line.input, tag) {
                input.tag = tag;
            }
            line.body = LineBody::Whole(message.to_string().into_bytes().into());
        }
        self
    }

    /// Everything that is heard, and the state behind every line; restored from it each time if that is wanted.
    fn heard(&self, is_cut: bool) -> (Vec<Heard>, Vec<DialogueState>) {
        let provider = registry::find(self.provider).unwrap();
        let mut dialogue = provider.dialogue(None).unwrap();
        let (mut heard, mut states) = (Vec::new(), Vec::new());
        for line in &self.lines {
            dialogue.on_line(line, &mut heard);
            let state = dialogue.state();
            if is_cut {
                dialogue = provider.dialogue(Some(&state)).unwrap();
            }
            states.push(state);
        }
        (heard, states)
    }

    /// What a recording comes to, for people.
    fn story(&self) -> String {
        let (whole, states) = self.heard(false);
        let (cut, cut_states) = self.heard(true);
        assert_eq!(whole, cut, "{}: cut behind every line", self.name);
        assert_eq!(states, cut_states, "{}: the state is a function of the tape", self.name);
        check(&self.name, &whole);
        let mut story = String::new();
        let (mut spent, mut deltas) = (Usage::default(), 0);
        for heard in &whole {
            let line = match heard {
                Heard::Delta(_) => {
                    deltas += 1;
                    continue;
                }
                Heard::Report(Report::Usage(call)) => {
                    spent += call.usage;
                    format!("Usage {:?} {:?}", call.usage, call.model)
                }
                Heard::Report(report) => format!("{report:?}"),
                Heard::Say(say) => {
                    format!("Say {:?} {}", say.tag, String::from_utf8_lossy(&say.bytes).trim_end())
                }
            };
            writeln!(story, "{}", line.chars().take(SHOWN_CHARACTERS).collect::<String>()).unwrap();
        }
        writeln!(story, "deltas: {deltas}\nspent: {spent:?}").unwrap();
        story
    }
}

/// The tag that the daemon would have written.
fn tag(message: &Value, input_no: u64) -> String {
    match (message["method"].as_str(), message.get("result")) {
        (Some("initialize"), _) => format!("open:{}", json!({"cwd": "/campaign", "approval": "never"})),
        (Some("session/prompt" | "turn/start" | "turn/steer"), _) => format!("prompt:msg_{input_no:026}"),
        (Some("session/cancel" | "turn/interrupt"), _) => AgentRequest::Interrupt.tag(),
        (None, Some(_)) => format!("answer:{}", message["id"]),
        _ => String::new(),
    }
}

/// What holds for every dialogue: a call has at most one result, and turns begin before they end.
fn check(name: &str, heard: &[Heard]) {
    let (mut calls, mut results, mut is_open) = (Vec::new(), Vec::new(), false);
    for heard in heard {
        match heard {
            Heard::Report(Report::ToolCall(call)) => calls.push(&call.tool_id),
            Heard::Report(Report::ToolResult(result)) => {
                assert!(calls.contains(&&result.tool_id), "{name}: a result without a call");
                assert!(!results.contains(&&result.tool_id), "{name}: {} has two results", result.tool_id);
                results.push(&result.tool_id);
            }
            // A further prompt may be folded into a turn that is open.
            Heard::Report(Report::TurnStarted { .. }) => is_open = true,
            Heard::Report(Report::TurnEnded { .. }) => {
                assert!(is_open, "{name}: a turn ended that had not begun");
                is_open = false;
            }
            _ => {}
        }
    }
}

/// Pins the story of every recording.
pub(crate) fn pin(recordings: &[Recording]) {
    assert!(!recordings.is_empty());
    for recording in recordings {
        let name = format!("{}--{}", recording.provider.replace(':', "-"), recording.name);
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, recording.story());
        });
    }
}
