//! The scripted agent's lines, read and written.

use std::borrow::Cow;

use ostler_domain::{
    MessageId, Usage,
    event::{Action, AskKind, StopReason, ToolCall, ToolResult},
    session::{AgentRequest, CallUsage, Report},
};
use ostler_tape::Line;
use serde::{Deserialize, Serialize};

use crate::{Dialogue, DialogueState, Heard, UnknownState, foreign};

const STATE_VERSION: u32 = 1;

/// Every line stands for itself, so there is nothing to remember.
pub(super) struct ScriptDialogue;

impl ScriptDialogue {
    pub(super) fn restore(state: Option<&DialogueState>) -> Result<Self, UnknownState> {
        match state {
            Some(state) if state.version != STATE_VERSION => Err(UnknownState(state.version)),
            _ => Ok(Self),
        }
    }
}

/// What the scripted agent prints.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said<'a> {
    Ready {},
    TurnStarted {
        #[serde(borrow, default)]
        prompt: Cow<'a, str>,
    },
    TurnEnded {
        reason: StopReason,
    },
    Think {
        text: String,
    },
    Say {
        text: String,
    },
    Delta {
        text: String,
    },
    ToolCall {
        id: String,
        tool: String,
        summary: String,
        #[serde(default)]
        input: String,
    },
    ToolResult {
        id: String,
        ok: bool,
        #[serde(default)]
        exit: Option<i32>,
        #[serde(default)]
        output: String,
    },
    Usage(Usage),
    Ask {
        id: String,
        tool: String,
        input: String,
    },
    Error {
        text: String,
    },
    Pong {},
}

/// What it is told.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Told<'a> {
    Prompt { id: MessageId, text: &'a str },
    Interrupt {},
    Answer { id: &'a str, allow: bool, message: &'a str },
    Ping {},
}

impl Dialogue for ScriptDialogue {
    fn on_line(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let said = foreign::object(line).and_then(|text| serde_json::from_str::<Said<'_>>(text).ok());
        heard.extend(match said {
            Some(said) => Some(meaning(said)),
            None => foreign::unread(line).map(Heard::Report),
        });
    }

    fn on_request(&self, request: &AgentRequest, _input_no: u64) -> Option<Vec<u8>> {
        let told = match request {
            AgentRequest::Prompt(message) => Told::Prompt { id: message.id, text: &message.text },
            AgentRequest::Steer(_)
            | AgentRequest::Model(_)
            | AgentRequest::Proceed { .. }
            | AgentRequest::End => return None,
            AgentRequest::Interrupt => Told::Interrupt {},
            AgentRequest::Answer { ask, allow, message } => Told::Answer { id: ask, allow: *allow, message },
            AgentRequest::Nudge => Told::Ping {},
        };
        let mut line = serde_json::to_vec(&told).ok()?;
        line.push(b'\n');
        Some(line)
    }

    fn state(&self) -> DialogueState {
        DialogueState { version: STATE_VERSION, bytes: Vec::new() }
    }
}

/// What it would do, by the name of its tool.
fn wanted(tool: &str, input: &str) -> (AskKind, Action) {
    let text = || input.to_owned();
    match tool {
        "run" => (AskKind::Leave, Action::Run { command: text() }),
        "write" => (AskKind::Leave, Action::Write { paths: vec![text()] }),
        "read" => (AskKind::Leave, Action::Read { paths: vec![text()] }),
        "fetch" => (AskKind::Leave, Action::Fetch { url: text() }),
        "question" => (AskKind::Question, Action::Other),
        _ => (AskKind::Leave, Action::Other),
    }
}

fn meaning(said: Said<'_>) -> Heard {
    Heard::Report(match said {
        Said::Delta { text } => return Heard::Delta(text),
        Said::Ready {} => Report::Ready { provider_id: None, model: Some("script".to_owned()) },
        Said::TurnStarted { prompt } => {
            Report::TurnStarted { messages: prompt.parse().ok().into_iter().collect() }
        }
        Said::TurnEnded { reason } => Report::TurnEnded { stop_reason: reason },
        Said::Think { text } => Report::Thinking(text.into()),
        Said::Say { text } => Report::Completion(text.into()),
        Said::ToolCall { id, tool, summary, input } => {
            Report::ToolCall(ToolCall { tool, tool_id: id, summary, input, subagent: None })
        }
        Said::ToolResult { id, ok, exit, output } => {
            Report::ToolResult(ToolResult { tool_id: id, success: ok, exit, output, subagent: None })
        }
        Said::Usage(usage) => {
            Report::Usage(CallUsage { usage, model: Some("script".to_owned()), call: None })
        }
        Said::Ask { id, tool, input } => {
            let (kind, action) = wanted(&tool, &input);
            Report::ApprovalAsked { ask: id, tool, input, kind, action, subagent: None }
        }
        Said::Error { text } => Report::Error(text),
        Said::Pong {} => Report::Alive,
    })
}

#[cfg(test)]
mod tests {
    use ostler_tape::{LineBody, Stream};

    use super::*;

    fn hear(stream: Stream, body: LineBody<'_>) -> Vec<Heard> {
        let mut heard = vec![];
        let line = Line { stream, start: 40, end: 80, time_us: 0, body, input: None };
        ScriptDialogue::restore(None).unwrap().on_line(&line, &mut heard);
        heard
    }

    fn whole(text: &str) -> LineBody<'_> {
        LineBody::Whole(text.as_bytes().into())
    }

    #[test]
    fn each_line_means_one_thing() {
        assert_eq!(
            hear(Stream::Out, whole(r#"{"type":"say","text":"tick 1"}"#)),
            [Heard::Report(Report::Completion("tick 1".into()))]
        );
        assert_eq!(hear(Stream::Out, whole(r#"{"type":"delta","text":"ti"}"#)), [Heard::Delta("ti".into())]);
        assert_eq!(
            hear(Stream::Out, whole(r#"{"type":"usage","input":500,"output":0,"new_field":1}"#)),
            [Heard::Report(Report::Usage(CallUsage {
                usage: Usage { input: 500, ..Usage::default() },
                model: Some("script".into()),
                call: None,
            }))]
        );
        assert!(hear(Stream::In, whole("x")).is_empty());
        assert!(hear(Stream::Keeper, whole("{}")).is_empty());
    }

    #[test]
    fn what_is_no_protocol_is_an_event_with_its_place() {
        let deep = format!(r#"{{"type":"say","text":{}"#, "[".repeat(100_000));
        for (stream, body) in [
            (Stream::Out, whole("garbage")),
            (Stream::Out, whole(r#"{"type":"levitate"}"#)),
            (Stream::Out, whole(r#"{"type":"say""#)),
            (Stream::Out, whole(&deep)),
            (Stream::Out, LineBody::Whole(b"\xff\xfe\0{"[..].into())),
            (Stream::Out, LineBody::Oversize { len: 1 << 30 }),
            (Stream::Out, LineBody::Partial(b"{\"type\":\"say"[..].into())),
            (Stream::Err, whole("warning")),
        ] {
            let heard = hear(stream, body);
            assert!(
                matches!(
                    heard.as_slice(),
                    [Heard::Report(Report::Opaque(raw) | Report::Oversize(raw) | Report::Partial(raw) | Report::Stderr(raw))] if raw.at == 40
                ),
                "{heard:?}"
            );
        }
    }

    #[test]
    fn requests_are_single_lines() {
        let dialogue = ScriptDialogue::restore(None).unwrap();
        let request = AgentRequest::Answer { ask: "a1".into(), allow: false, message: "two\nlines".into() };
        let line = dialogue.on_request(&request, 1).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert!(ScriptDialogue::restore(Some(&DialogueState { version: 9, bytes: vec![] })).is_err());
    }
}
