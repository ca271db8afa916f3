//! What a run has come to so far, as its events tell it. No I/O.

use ostler_client::Session;
use ostler_domain::{
    Event, Usage,
    event::{Answer, By, StopReason, UsageSource},
    session::{Outcome, Restart},
};
use serde::Serialize;

use super::{
    changes::{Changes, FileForm},
    check::CheckForm,
    grant::Rules,
};
use ostler_form::CostForm;

use crate::{
    exit_code, failure::of_outcome, screen::session::Grant, signals::Asked, worktree_form::KeptForm,
};

/// A run so far.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// The last completed text: the answer, unless another one comes.
    answer: Option<String>,
    /// It was shown among the activities, because the agent went on after it.
    answer_was_shown: bool,
    questions: Vec<Question>,
    /// What answers questions; absent where nobody knows.
    rules: Option<Rules>,
    denied: Vec<DeniedForm>,
    last_turn: Option<StopReason>,
    /// The last turn came to nothing.
    failed: bool,
    /// What the agent last said had gone wrong.
    error: Option<String>,
    ended: bool,
    /// The model's server limits it, and it has done nothing since.
    limited: bool,
    /// A session that goes on with this one is to come.
    is_followed: bool,
    /// Tokens were read off the wire.
    has_wire: bool,
}

/// What was asked, and what would allow it from now on.
#[derive(Debug)]
struct Question {
    id: ostler_domain::ApprovalId,
    asks: String,
    why: String,
    grant: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct DeniedForm {
    kind: &'static str,
    target: String,
    /// Who answered a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// What of ours decided it; null where a person did.
    rule: Option<String>,
    /// The command that would allow it; null where none would.
    grant: Option<String>,
}

impl Story {
    pub(super) fn by(rules: Rules) -> Self {
        Self { rules: Some(rules), ..Self::default() }
    }

    /// Takes in an event. Returns a text that turned out not to be the last one, to be shown.
    pub(super) fn take(&mut self, event: &Event) -> Option<String> {
        // What its sub-agents do meanwhile is not it that goes on, and what they say is no answer.
        let goes_on = match event {
            Event::AgentThinking(said) | Event::AgentCompletion(said) => said.subagent.is_none(),
            Event::AgentToolCall(call) => call.subagent.is_none(),
            Event::ApprovalRequested(asked) => asked.subagent.is_none(),
            _ => false,
        };
        let earlier = if goes_on { self.passed_over() } else { None };
        if goes_on || matches!(event, Event::TurnStarted(_) | Event::AgentToolResult(_)) {
            self.limited = false;
        }
        match event {
            Event::RateLimited(_) => self.limited = true,
            Event::AgentCompletion(said) if said.subagent.is_none() => {
                self.answer = Some(said.text.clone());
                self.answer_was_shown = false;
            }
            Event::ApprovalRequested(asked) => {
                let grant = self.rules.as_ref().and_then(|rules| rules.grant(asked));
                let (asks, why) = (asked.asks(), asked.why.clone());
                self.questions.push(Question { id: asked.id, asks, why, grant });
            }
            Event::ApprovalAnswered(answered) => {
                let asked = self.questions.iter().position(|asked| asked.id == answered.id);
                let asked = asked.map(|place| self.questions.swap_remove(place));
                let (target, why, grant) =
                    asked.map(|asked| (asked.asks, asked.why, asked.grant)).unwrap_or_default();
                if answered.answer == Answer::Denied {
                    let by = Some(answered.by.0.clone());
                    let rules: Vec<String> = answered.rules.iter().map(ToString::to_string).collect();
                    let rule = match rules.is_empty() {
                        // Nobody was there to answer what no rule does.
                        true => (answered.by == By::ostler() && !why.is_empty()).then_some(why),
                        false => Some(rules.join("; ")),
                    };
                    self.denied.push(DeniedForm { kind: "approval", target, by, rule, grant });
                }
            }
            Event::Denied(denied) => self.denied.push(DeniedForm {
                kind: denied.kind.as_str(),
                target: denied.target.clone(),
                by: None,
                rule: Some(denied.rule.clone()),
                grant: denied.grant.clone(),
            }),
            Event::UsageRecorded(used) => {
                self.has_wire |= used.source == UsageSource::Wire && !used.cut;
            }
            Event::AgentError(said) | Event::ProviderAuthFailed(said) => self.error = Some(said.text.clone()),
            // It is gone on with when its limit ends, and whoever waits for the answer waits for that.
            Event::TurnEnded(turn) if turn.goes_on.is_some() => {}
            Event::TurnEnded(turn) => {
                self.last_turn = Some(turn.stop_reason);
                self.failed = turn.failure().is_some();
                if turn.failure.is_some() {
                    self.error.clone_from(&turn.failure);
                }
            }
            Event::SessionStopped(ended) | Event::SessionFailed(ended) => {
                self.is_followed = matches!(ended.restart, Some(Restart::At(_)));
                self.ended = !self.is_followed;
            }
            _ => {}
        }
        earlier
    }

    /// The text that would have been the answer, if the agent did not go on; to be shown, once.
    pub(super) fn passed_over(&mut self) -> Option<String> {
        let is_new = !std::mem::replace(&mut self.answer_was_shown, true);
        self.answer.clone().filter(|_| is_new)
    }

    pub(super) fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    pub(super) fn denied(&self) -> usize {
        self.denied.len()
    }

    /// What was denied and could be allowed, each once and the last first, with the command that would.
    pub(super) fn grants(&self) -> Vec<Grant> {
        let mut grants: Vec<Grant> = Vec::new();
        for denied in self.denied.iter().rev() {
            if let Some(command) = &denied.grant
                && grants.iter().all(|known| known.command != *command)
            {
                grants.push(Grant { target: denied.target.clone(), command: command.clone() });
            }
        }
        grants
    }

    /// Says whether there is nothing more to wait for.
    pub(super) fn is_over(&self, keep: bool) -> bool {
        let turn_ended = self.last_turn.is_some_and(|reason| reason != StopReason::ProcessEnded);
        self.ended || (keep && turn_ended)
    }

    /// Says whether the session has, with or without one that goes on with it.
    pub(super) fn has_ended(&self) -> bool {
        self.ended || self.is_followed
    }

    /// The one that goes on is there: its events come now.
    pub(super) fn follow_on(&mut self) {
        self.is_followed = false;
    }

    /// Says whether the session has ended and another one goes on with it.
    pub(super) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// The exit code of the run.
    pub(super) fn exit_code(&self, outcome: Option<Outcome>, asked: Option<Asked>) -> u8 {
        if let Some(asked) = asked {
            return asked.exit_code();
        }
        let code = match outcome {
            Some(Outcome::Timeout) if self.limited => exit_code::SESSION_LIMITED,
            outcome => outcome.map_or(exit_code::OK, of_outcome),
        };
        match self.last_turn {
            // A session that ends as it should after a turn that did not: the answer is not to be relied on.
            _ if self.failed && code == exit_code::OK => exit_code::SESSION_FAILED,
            Some(StopReason::Interrupted) if code == exit_code::OK => exit_code::SESSION_STOPPED,
            _ => code,
        }
    }

    /// The exit code with what was asked of the work beside that: a check, and that nothing was denied.
    pub(super) fn judged(&self, code: u8, passed: Option<bool>, fail_on_denied: bool) -> u8 {
        match code {
            exit_code::OK if passed == Some(false) => exit_code::CHECK_FAILED,
            exit_code::OK if fail_on_denied && !self.denied.is_empty() => exit_code::DENIED,
            code => code,
        }
    }

    /// Whether a turn has ended, and no other was asked for since.
    pub(super) fn is_at_rest(&self) -> bool {
        // A turn that ended with its process is the end of the session, which follows.
        !self.ended
            && !self.is_followed
            && self.last_turn.is_some_and(|reason| reason != StopReason::ProcessEnded)
    }

    /// Another turn was asked for.
    pub(super) fn go_on(&mut self) {
        (self.last_turn, self.failed) = (None, false);
    }

    pub(super) fn turn_failed(&self) -> bool {
        self.failed || matches!(self.last_turn, Some(StopReason::Error | StopReason::Interrupted))
    }

    /// Says whether a turn that failed is all that went wrong.
    pub(super) fn ended_by_turn_failed(&self, session: Option<Outcome>) -> bool {
        let is_all = matches!(session, None | Some(Outcome::Done | Outcome::Handoff | Outcome::TurnFailed));
        self.turn_failed() && is_all
    }

    /// How the run ended: as its session did, unless that ended well after a turn that did not.
    fn outcome(&self, session: Option<Outcome>) -> Option<&'static str> {
        match (session, self.last_turn) {
            (None | Some(Outcome::Done | Outcome::Handoff), _) if self.failed => Some("turn_failed"),
            (Some(Outcome::Done | Outcome::Handoff), Some(StopReason::Interrupted)) => Some("interrupted"),
            (session, _) => session.map(Outcome::as_str),
        }
    }

    /// The result, as programs read it.
    pub(super) fn form<'a>(&'a self, session: &'a Session, exit: u8, beside: Beside) -> ResultForm<'a> {
        let until = session.ended_at.unwrap_or(session.updated_at);
        ResultForm {
            kind: beside.is_line.then_some("result"),
            schema: "ostler.run/1",
            session: session.id.to_string(),
            name: session.name.as_str(),
            outcome: self.outcome(session.outcome),
            exit,
            last_turn: self.last_turn,
            error: self.error.as_deref().filter(|_| exit != exit_code::OK),
            result: self.answer(),
            turns: session.turns,
            usage: session.usage,
            cost: (!session.usage.is_zero() || beside.cut_answers > 0).then(|| RunCost {
                cost: match beside.cut_answers {
                    0 => CostForm::new(&session.cost),
                    _ => CostForm::new(&session.cost).and_unknown(),
                },
                cut_answers: beside.cut_answers,
                source: if self.has_wire { "wire" } else { "report" },
            }),
            files: beside.changes.as_ref().map(|changes| changes.files.clone()),
            commits: beside.changes.map(|changes| changes.commits),
            denied: &self.denied,
            check: beside.check,
            worktree: beside.worktree,
            duration_ms: u64::try_from(until.since(session.created_at).as_millis()).unwrap_or(u64::MAX),
            obituary: session.obituary.as_ref().map(|obituary| obituary.sentence.as_str()),
            sandbox: session.sandbox.as_str(),
        }
    }
}

/// What a result says beside the session's own story.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// It is the last of many lines.
    pub(super) is_line: bool,
    /// None where the campaign is no git repository.
    pub(super) changes: Option<Changes>,
    pub(super) check: Option<CheckForm>,
    /// None where it worked in the campaign's own directory.
    pub(super) worktree: Option<KeptForm>,
    /// Answers that were cut, and of which nobody says what they took.
    pub(super) cut_answers: u64,
}

/// What a run cost, and who told of its tokens.
#[derive(Serialize)]
struct RunCost {
    #[serde(flatten)]
    cost: CostForm,
    #[serde(skip_serializing_if = "is_zero")]
    cut_answers: u64,
    source: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// `ostler.run/1`
#[derive(Serialize)]
pub(super) struct ResultForm<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    schema: &'static str,
    session: String,
    name: &'a str,
    outcome: Option<&'static str>,
    exit: u8,
    /// How the last turn ended; null where none has.
    last_turn: Option<StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    result: Option<&'a str>,
    turns: u32,
    usage: Usage,
    /// None where no model was called.
    cost: Option<RunCost>,
    /// None where the campaign is no git repository.
    files: Option<Vec<FileForm>>,
    commits: Option<Vec<String>>,
    denied: &'a [DeniedForm],
    check: Option<CheckForm>,
    /// None where it worked in the campaign's own directory.
    worktree: Option<KeptForm>,
    duration_ms: u64,
    obituary: Option<&'a str>,
    sandbox: &'static str,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ostler_domain::{
        ApprovalId,
        event::{
            ApprovalAnswered, ApprovalRequested, AskKind, By, RateLimited, Text, TurnEnded, UsageRecorded,
        },
    };

    use super::*;
    use crate::testing::{self, NOW};

    fn said(text: &str) -> Event {
        Event::AgentCompletion(Text::from(text.to_owned()))
    }

    fn turn(stop_reason: StopReason) -> Event {
        Event::TurnEnded(TurnEnded::new(1, stop_reason))
    }

    #[test]
    fn a_turn_that_is_gone_on_with_is_waited_for() {
        let mut story = Story::default();
        let mut failed = TurnEnded::new(1, StopReason::Error);
        failed.goes_on = Some(ostler_domain::Time::from_micros(5));
        story.take(&Event::TurnEnded(failed));
        assert!(!story.is_over(true) && !story.turn_failed());
        story.take(&Event::TurnEnded(TurnEnded::new(2, StopReason::Completed)));
        assert!(story.is_over(true) && !story.turn_failed());
    }

    #[test]
    fn a_turn_that_failed_says_why() {
        let mut story = Story::default();
        story.take(&Event::AgentError(Text::from("400 no such model".to_owned())));
        story.take(&turn(StopReason::Error));
        let session = testing::fleet().remove(7);
        let form = |exit| crate::output::to_json(&story.form(&session, exit, Beside::default()));
        assert!(form(10).contains(r#""last_turn":"error","error":"400 no such model""#), "{}", form(10));
        assert!(form(10).contains(r#""outcome":"turn_failed","exit":10"#), "{}", form(10));
        assert!(!form(0).contains("no such model"));
    }

    #[test]
    fn what_cut_answers_took_is_unknown_and_never_nothing() {
        let mut session = testing::fleet().remove(7);
        (session.usage, session.cost) = Default::default();
        let form = |cut_answers| {
            let beside = Beside { cut_answers, ..Beside::default() };
            crate::output::to_json(&Story::default().form(&session, 0, beside))
        };
        assert!(form(0).contains(r#""cost":null"#), "{}", form(0));
        assert!(form(2).contains(r#""amount":null,"currency":"USD","is_known":false"#), "{}", form(2));
        assert!(form(2).contains(r#""cut_answers":2"#), "{}", form(2));
    }

    #[test]
    fn the_last_text_is_the_answer_and_the_others_are_shown() {
        let mut story = Story::default();
        assert_eq!(story.take(&said("one")), None);
        assert_eq!(story.take(&Event::AgentThinking(Text::from("hm".to_owned()))).as_deref(), Some("one"));
        assert_eq!(story.take(&said("two")), None);
        assert_eq!(story.take(&said("three")).as_deref(), Some("two"));
        let usage = UsageRecorded::default();
        assert_eq!(story.take(&Event::UsageRecorded(usage)), None);
        assert_eq!(story.take(&turn(StopReason::Completed)), None);
        assert_eq!(story.answer(), Some("three"));
        assert!(story.is_over(true) && !story.is_over(false));
    }

    #[test]
    fn what_a_sub_agent_says_is_not_the_answer() {
        let of_helper = |text: &str| Text { text: text.to_owned(), subagent: Some("call-1".to_owned()) };
        let mut story = Story::default();
        story.take(&said("counted: two"));
        assert_eq!(story.take(&Event::AgentThinking(of_helper("hm"))), None, "it has not gone on by that");
        assert_eq!(story.take(&Event::AgentCompletion(of_helper("I see two"))), None);
        story.take(&turn(StopReason::Completed));
        assert_eq!(story.answer(), Some("counted: two"));
    }

    #[test]
    fn a_limit_past_the_time_limit_has_a_code_of_its_own() {
        let limited = || {
            let limited = RateLimited { what: "429".to_owned(), until: None };
            let mut story = Story::default();
            story.take(&Event::RateLimited(limited));
            story
        };
        let mut story = limited();
        story.take(&turn(StopReason::ProcessEnded));
        assert_eq!(story.exit_code(Some(Outcome::Timeout), None), 14);
        assert_eq!(story.exit_code(Some(Outcome::Crashed), None), 10);
        let mut story = limited();
        story.take(&Event::AgentThinking(Text::from("on I go".to_owned())));
        assert_eq!(story.exit_code(Some(Outcome::Timeout), None), 12, "the limit was over");
    }

    #[test]
    fn a_session_that_is_started_again_is_not_the_end() {
        let mut story = Story::default();
        let mut session = testing::fleet().remove(6);
        let obituary = session.obituary.take().unwrap();
        let now = ostler_domain::Now { wall: NOW, since_boot: Duration::ZERO, boot: Default::default() };
        let at = Restart::At(ostler_domain::Deadline::after(&now, Duration::from_secs(1)));
        let ended = |restart| {
            let (outcome, obituary) = (Outcome::Crashed, obituary.clone());
            Event::SessionFailed(ostler_domain::session::Ended {
                outcome,
                obituary,
                restart,
                machine_restarted: None,
            })
        };
        story.take(&turn(StopReason::ProcessEnded));
        story.take(&ended(Some(at)));
        assert!(story.is_followed() && !story.is_over(false) && !story.is_over(true));
        story.take(&ended(Some(Restart::Quarantined { short_lives: 5 })));
        assert!(!story.is_followed() && story.is_over(false), "nothing comes after that");
    }

    #[test]
    fn the_exit_code_says_how_it_went() {
        let after = |reason| {
            let mut story = Story::default();
            story.take(&turn(reason));
            story
        };
        assert_eq!(after(StopReason::Completed).exit_code(Some(Outcome::Done), None), 0);
        assert_eq!(after(StopReason::Completed).exit_code(None, None), 0);
        assert_eq!(after(StopReason::Error).exit_code(Some(Outcome::Done), None), 10);
        assert_eq!(after(StopReason::Interrupted).exit_code(Some(Outcome::Done), None), 15);
        assert_eq!(after(StopReason::ProcessEnded).exit_code(Some(Outcome::Crashed), None), 10);
        assert_eq!(after(StopReason::ProcessEnded).exit_code(Some(Outcome::Budget), None), 11);
        assert_eq!(
            after(StopReason::ProcessEnded).exit_code(Some(Outcome::Stopped), Some(Asked::Terminate)),
            143
        );
    }

    #[test]
    fn a_failed_check_and_denials_count_where_nothing_worse_happened() {
        let mut story = Story::default();
        assert_eq!(story.judged(0, None, true), 0);
        assert_eq!(story.judged(0, Some(true), true), 0);
        assert_eq!(story.judged(0, Some(false), false), 16);
        assert_eq!(story.judged(12, Some(false), false), 12);
        story.denied.push(DeniedForm {
            kind: "network",
            target: "x".to_owned(),
            by: None,
            rule: None,
            grant: None,
        });
        assert_eq!((story.judged(0, None, true), story.judged(0, None, false)), (13, 0));
        assert_eq!((story.judged(0, Some(false), true), story.judged(10, None, true)), (16, 10));
    }

    #[test]
    fn the_result_is_pinned() {
        let mut story = Story::default();
        let id = ApprovalId::new(NOW, 1);
        let (ask, tool, input) = ("1".to_owned(), "run".to_owned(), "git push".to_owned());
        story.take(&Event::ApprovalRequested(Box::new(ApprovalRequested {
            id,
            ask,
            tool,
            input,
            kind: AskKind::Leave,
            action: Default::default(),
            subagent: None,
            why: String::new(),
            deadline: None,
        })));
        let (answer, by) = (Answer::Denied, By("ostler".to_owned()));
        let (message, rules) = (String::new(), Vec::new());
        story.take(&Event::ApprovalAnswered(ApprovalAnswered { id, answer, by, message, rules }));
        story.take(&said("All 39 tests pass."));
        let session = testing::fleet().remove(7);
        insta::assert_snapshot!(crate::output::to_json(&story.form(&session, 0, Beside::default())));
        let beside = Beside { is_line: true, ..Beside::default() };
        let line = crate::output::to_json(&story.form(&session, 0, beside));
        assert!(line.starts_with(r#"{"kind":"result","schema":"ostler.run/1""#), "{line}");
    }
}
