//! What no agent may do, and some of the demo's try. They really try, and the kernel really stops them.

use std::{collections::HashMap, path::Path};

use ostler_domain::{Event, SessionId, text::one_line};

/// Something that no agent may do.
pub(super) struct Escape {
    command: &'static [&'static str],
    /// Why it fails.
    pub(super) rule: &'static str,
}

pub(super) const HIDDEN: Escape = Escape { command: &["cat", ".env"], rule: "a hidden file" };
pub(super) const OUTSIDE: Escape =
    Escape { command: &["sh", "-c", "echo owned > /etc/owned"], rule: "outside of the campaign" };
/// An address that belongs to nobody; inside there is no way to any.
pub(super) const NETWORK: Escape =
    Escape { command: &["git", "ls-remote", "https://192.0.2.1/shop"], rule: "no network but its own" };
pub(super) const RECORD: Escape = Escape { command: &["cat", RECORD_PATH], rule: "Ostler's own record" };

const RECORD_PATH: &str = "RECORD";
const ALL: [&Escape; 4] = [&NETWORK, &OUTSIDE, &HIDDEN, &RECORD];

impl Escape {
    pub(super) fn command(&self, record: &Path) -> Vec<String> {
        let word = |word: &&str| match *word {
            RECORD_PATH => record.display().to_string(),
            word => word.to_owned(),
        };
        self.command.iter().map(word).collect()
    }
}

/// What was tried, and what came of it.
#[derive(Default)]
pub(super) struct Escapes {
    open: HashMap<(SessionId, String), Tried>,
    pub(super) tried: usize,
    pub(super) stopped: usize,
}

/// One attempt.
#[derive(Clone)]
pub(super) struct Tried {
    pub(super) command: String,
    pub(super) rule: &'static str,
    pub(super) is_stopped: bool,
    /// What the command said.
    pub(super) said: String,
}

impl Escapes {
    /// Looks whether an agent tries to get out; says what came of it when that is known.
    pub(super) fn see(&mut self, session: SessionId, event: &Event, record: &Path) -> Option<Tried> {
        match event {
            Event::AgentToolCall(call) => {
                let escape = ALL.iter().find(|escape| escape.command(record).join(" ") == call.summary)?;
                let tried = Tried {
                    command: call.summary.clone(),
                    rule: escape.rule,
                    is_stopped: false,
                    said: String::new(),
                };
                self.open.insert((session, call.tool_id.clone()), tried);
                None
            }
            Event::AgentToolResult(result) => {
                let mut tried = self.open.remove(&(session, result.tool_id.clone()))?;
                tried.is_stopped = !result.success;
                let said = result.output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                // Programs say who they are and what they tried first.
                tried.said = one_line(said.rsplit(": ").next().unwrap_or(said), 60);
                self.tried += 1;
                self.stopped += usize::from(tried.is_stopped);
                Some(tried)
            }
            _ => None,
        }
    }

    /// Says whether all that was meant to be tried was, and was stopped.
    pub(super) fn is_right(&self) -> bool {
        self.stopped == self.tried && self.tried == ALL.len()
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Time,
        event::{ToolCall, ToolResult},
    };

    use super::{super::team, *};

    fn tried(success: bool) -> Escapes {
        let (mut escapes, session) = (Escapes::default(), SessionId::new(Time::from_micros(1), 1));
        let plan = team::plan(Path::new("/record"), true);
        for escape in ALL {
            let summary = escape.command(Path::new("/record")).join(" ");
            assert!(plan.contains(escape.command[0]), "nobody tries {summary}");
            let (tool, tool_id) = ("run".to_owned(), "1".to_owned());
            let call =
                ToolCall { tool, tool_id: tool_id.clone(), summary, input: String::new(), subagent: None };
            assert!(escapes.see(session, &Event::AgentToolCall(call), Path::new("/record")).is_none());
            let result = ToolResult { tool_id, success, exit: None, output: String::new(), subagent: None };
            let seen = escapes.see(session, &Event::AgentToolResult(result), Path::new("/record")).unwrap();
            assert_eq!(seen.is_stopped, !success);
        }
        escapes
    }

    #[test]
    fn what_got_through_or_was_not_tried_is_not_called_stopped() {
        assert!(tried(false).is_right());
        assert!(!tried(true).is_right());
        assert!(!Escapes::default().is_right());
    }
}
