//! The scripted agent's side of its lines: what it is told and what it prints.

use std::io::{self, Write};

use ostler_domain::{Usage, event::StopReason};
use serde::{Deserialize, Serialize};

/// What comes in on standard input.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Told {
    Prompt {
        id: String,
        text: String,
    },
    Interrupt {},
    Answer {
        id: String,
        allow: bool,
        #[serde(default)]
        message: String,
    },
    Ping {},
}

/// What goes out on standard output.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Said<'a> {
    Ready {},
    TurnStarted {
        prompt: &'a str,
    },
    TurnEnded {
        reason: StopReason,
    },
    Think {
        text: &'a str,
    },
    Say {
        text: &'a str,
    },
    Delta {
        text: &'a str,
    },
    ToolCall {
        id: &'a str,
        tool: &'a str,
        summary: &'a str,
        input: &'a str,
    },
    ToolResult {
        id: &'a str,
        ok: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        output: &'a str,
    },
    Usage(Usage),
    Ask {
        id: &'a str,
        tool: &'a str,
        input: &'a str,
    },
    Error {
        text: &'a str,
    },
    Pong {},
}

/// Prints one line, whole and at once: who kills us between two lines finds no half one.
pub(super) fn say(said: &Said<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    raw(&line)
}

pub(super) fn raw(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
