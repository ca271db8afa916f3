//! Asking a provider one small thing, to see what works: an answer, a tool, leave to use it, and who tells of the tokens.

use serde::Serialize;
use serde_json::json;

use crate::{
    Event, Recorded, Time, Usage,
    event::{AskKind, StopReason, UsageSource},
    provider::SCRIPT,
    text::one_line,
};

/// What the agent is to run. No program counts it among those that need no leave, and what it leaves behind is in the
/// sandbox's own `/tmp`, which goes with it.
pub const COMMAND: &str = "touch /tmp/ostler-trial";

/// How much of an answer is shown.
const ANSWER_SHOWN: usize = 80;

/// What the agent is told. The scripted one is told what to do, others are asked.
pub fn prompt(provider: &str) -> String {
    if provider == SCRIPT {
        let words: Vec<&str> = COMMAND.split(' ').collect();
        let steps = json!([{"ask": {"tool": "run", "input": COMMAND}}, {"run": words}, {"say": "ready"}]);
        return json!({ "steps": steps }).to_string();
    }
    format!(
        "This is a trial of whether you work. Run exactly this command with your tool for shell commands, and nothing \
         else: {COMMAND}\nThen answer with one word: ready"
    )
}

/// Whether leave is asked for what the agent was told to do, and for nothing beside it. `asks` is the question in one line.
pub fn is_what_was_asked(asks: &str) -> bool {
    match asks.strip_prefix("run: ") {
        Some(command) => command.trim() == COMMAND,
        // Some show only a title, or a tool of theirs with what it is given.
        None => asks.contains(COMMAND),
    }
}

/// Whether something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Works {
    Yes,
    No,
    /// The agent did not come to it.
    NotTried,
}

impl Works {
    pub const fn as_str(self) -> &'static str {
        match self {
            Works::Yes => "yes",
            Works::No => "no",
            Works::NotTried => "not tried",
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// How long the turn took, without the start.
    pub answered_ms: Option<u64>,
    pub answer: Option<String>,
    /// What the gateway saw; none where no call went through it.
    pub wire: Option<Usage>,
    /// What the agent said of itself; none where it said nothing.
    pub report: Option<Usage>,
    pub tool_call: Works,
    pub approval: Works,
}

impl Asked {
    /// Whether there was an answer, and nothing that was tried did not work.
    pub fn is_ok(&self) -> bool {
        self.answered_ms.is_some() && ![self.tool_call, self.approval].contains(&Works::No)
    }

    /// What the events of the session say.
    pub fn of(events: &[Recorded]) -> Self {
        let mut asked = Self {
            answered_ms: None,
            answer: None,
            wire: None,
            report: None,
            tool_call: Works::NotTried,
            approval: Works::NotTried,
        };
        let mut began: Option<Time> = None;
        let mut ours: Option<&str> = None;
        for recorded in events {
            match &recorded.event {
                Event::TurnStarted(_) => began = began.or(Some(recorded.time)),
                Event::TurnEnded(ended) if ended.stop_reason == StopReason::Completed => {
                    let took = began.map(|began| recorded.time.since(began).as_millis());
                    let took = took.and_then(|took| u64::try_from(took).ok());
                    asked.answered_ms = asked.answered_ms.or(took).filter(|_| asked.answer.is_some());
                }
                Event::AgentCompletion(said) if said.subagent.is_none() => {
                    asked.answer = Some(one_line(&said.text, ANSWER_SHOWN))
                }
                Event::ApprovalRequested(request) if request.kind == AskKind::Leave => {
                    asked.approval = Works::Yes;
                }
                Event::AgentToolCall(call)
                    if call.input.contains(COMMAND) || call.summary.contains(COMMAND) =>
                {
                    ours = Some(&call.tool_id);
                }
                Event::AgentToolResult(result) if ours == Some(&result.tool_id) => {
                    asked.tool_call = if result.success { Works::Yes } else { Works::No };
                    // It was to ask for everything that is no mere reading.
                    if asked.approval == Works::NotTried && result.success {
                        asked.approval = Works::No;
                    }
                }
                Event::UsageRecorded(used) => {
                    let sum = match used.source {
                        UsageSource::Wire => &mut asked.wire,
                        UsageSource::Report | UsageSource::History => &mut asked.report,
                    };
                    *sum = Some(sum.unwrap_or_default() + used.said());
                }
                _ => {}
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ApprovalId,
        event::{Action, ApprovalRequested, ToolCall, ToolResult, TurnEnded, TurnStarted, UsageRecorded},
    };

    fn call() -> Event {
        Event::AgentToolCall(ToolCall {
            tool: "Bash".to_owned(),
            tool_id: "t1".to_owned(),
            summary: String::new(),
            input: format!("{{\"command\":\"{COMMAND}\"}}"),
            subagent: None,
        })
    }

    fn result(tool_id: &str, success: bool) -> Event {
        let (tool_id, output) = (tool_id.to_owned(), String::new());
        Event::AgentToolResult(ToolResult { tool_id, success, exit: None, output, subagent: None })
    }

    fn request() -> Event {
        Event::ApprovalRequested(Box::new(ApprovalRequested {
            id: ApprovalId::new(Time::from_micros(1), 1),
            ask: "a1".to_owned(),
            tool: "Bash".to_owned(),
            input: COMMAND.to_owned(),
            kind: AskKind::Leave,
            action: Action::Run { command: COMMAND.to_owned() },
            subagent: None,
            why: String::new(),
            deadline: None,
        }))
    }

    fn used(source: UsageSource) -> Event {
        let usage = Usage { input: 10, output: 2, ..Usage::default() };
        Event::UsageRecorded(UsageRecorded { usage, source, ..UsageRecorded::default() })
    }

    fn ended(reason: StopReason) -> Event {
        Event::TurnEnded(TurnEnded::new(1, reason))
    }

    /// One event every 100 ms.
    fn come_of(events: Vec<Event>) -> Asked {
        let recorded = events.into_iter().enumerate().map(|(n, event)| {
            let time = Time::from_micros(n as i64 * 100_000);
            Recorded { seq: n as u64 + 1, session: None, session_seq: None, time, event }
        });
        Asked::of(&recorded.collect::<Vec<_>>())
    }

    #[test]
    fn a_whole_trial_says_that_all_of_it_works() {
        let asked = come_of(vec![
            Event::TurnStarted(TurnStarted { turn: 1 }),
            request(),
            call(),
            used(UsageSource::Wire),
            result("t1", true),
            used(UsageSource::Wire),
            used(UsageSource::Report),
            Event::AgentCompletion("ready".into()),
            ended(StopReason::Completed),
        ]);
        assert_eq!((asked.answered_ms, asked.answer.as_deref()), (Some(800), Some("ready")));
        assert_eq!((asked.wire.unwrap().input, asked.report.unwrap().input), (20, 10));
        assert_eq!((asked.tool_call, asked.approval), (Works::Yes, Works::Yes));
        assert!(asked.is_ok());
    }

    #[test]
    fn what_was_not_tried_is_no_failure_and_what_was_done_without_leave_is() {
        let said = || Event::AgentCompletion("ready".into());
        let began = || Event::TurnStarted(TurnStarted { turn: 1 });
        let idle = come_of(vec![began(), said(), ended(StopReason::Completed)]);
        assert_eq!((idle.tool_call, idle.approval), (Works::NotTried, Works::NotTried));
        assert!(idle.is_ok(), "it answered");
        let reader = come_of(vec![began(), result("t7", true), said(), ended(StopReason::Completed)]);
        assert_eq!(reader.approval, Works::NotTried, "reading needs no leave");
        let bold = come_of(vec![began(), call(), result("t1", true), said(), ended(StopReason::Completed)]);
        assert_eq!((bold.tool_call, bold.approval), (Works::Yes, Works::No));
        assert!(!bold.is_ok());
        let failed = come_of(vec![began(), said(), ended(StopReason::Error)]);
        assert!(failed.answered_ms.is_none() && !failed.is_ok());
    }

    #[test]
    fn leave_is_given_for_what_was_told_and_nothing_beside_it() {
        assert!(is_what_was_asked(&format!("run: {COMMAND}")));
        assert!(is_what_was_asked(&format!("Bash: {{\"command\":\"{COMMAND}\"}}")));
        for other in [format!("run: rm -r src; {COMMAND}"), "run: touch /tmp/other".to_owned()] {
            assert!(!is_what_was_asked(&other), "{other}");
        }
    }

    #[test]
    fn the_scripted_agent_is_told_a_scenario() {
        assert!(prompt(SCRIPT).starts_with('{') && prompt(SCRIPT).contains("\"steps\""));
        assert!(prompt("codex").contains(COMMAND));
    }
}
