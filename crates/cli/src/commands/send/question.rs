//! What is said to an agent that asks is the answer to its question; with --wait, what comes of the turn that it asked in.

use std::time::Duration;

use ostler_client::{AnswerApproval, Approval, Client, Session, Watch, Watched};
use ostler_domain::{
    Event, Reason, Refusal, SessionId, Usage,
    event::{AskKind, StopReason},
    session::{Outcome, Restart},
};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::{no_answer, took, why_not};
use crate::{
    app::App,
    exit_code,
    failure::{Failure, of_outcome},
    form::ApprovalForm,
    output::{Line, Tone, Ui},
    screen::approval::somebody_is_asked_now,
};

/// The question that an agent waits with, if it is the only thing that it asks.
pub(super) async fn of(client: &Client, session: &Session) -> Result<Option<Approval>, Failure> {
    let [one] = session.approvals_open.as_slice() else { return Ok(None) };
    let approval = client.approval(&one.to_string()).await?;
    Ok((approval.kind == AskKind::Question).then_some(approval))
}

/// What came of an answer, for who waited.
#[derive(Serialize)]
struct Form<'a> {
    approval: ApprovalForm,
    /// The session that said it: another one than had asked, where that one ended and was replaced.
    session: String,
    answer: Option<&'a str>,
    /// Why the turn came to nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// Answers a question. With a watch that began before, waits for what comes of it.
pub(super) async fn answer(
    app: &App,
    client: &Client,
    question: &Approval,
    text: &str,
    wait: Option<(&mut Watch, Option<Duration>)>,
) -> Result<u8, Failure> {
    let request = AnswerApproval {
        approval: question.id.to_string(),
        allow: true,
        always: false,
        message: text.to_owned(),
    };
    let given = client.answer_approval(request).await?;
    app.touched(&question.session);
    let ui = &app.ui;
    let line = Line::toned(Tone::Good, "answered").plain(format!("  {}", question.asks));
    let line = line.faint(format!("   session {}", question.session.short()));
    let Some((watch, timeout)) = wait else {
        match ui.is_json() {
            true => ui.json(&ApprovalForm::new(&given.approval))?,
            false => ui.data(&line)?,
        }
        return Ok(exit_code::OK);
    };
    ui.remark(&line);
    let mut turn = Turn::of(question.session);
    if !turn.follow(ui, watch, timeout.map(|limit| Instant::now() + limit)).await? {
        return no_answer(app, client, turn.session, timeout.unwrap_or_default()).await;
    }
    let session = client.session(&turn.session.to_string()).await?;
    let code = turn.exit_code(session.outcome);
    let why = (code != exit_code::OK).then(|| why_not(&session, turn.failure.as_deref()));
    if ui.is_json() {
        let approval = ApprovalForm::new(&given.approval);
        let (session, answer) = (turn.session.to_string(), turn.answer.as_deref());
        ui.json(&Form { approval, session, answer, why })?;
        return Ok(code);
    }
    if let Some(answer) = &turn.answer {
        ui.text(answer)?;
    }
    let conversation = client.conversation(&session.conversation.to_string()).await?;
    took(conversation.notes.entry.response_usage, &turn.usage).iter().for_each(|line| ui.remark(line));
    if let Some(why) = why {
        ui.remark(&Line::toned(Tone::Bad, "✗ ").plain(why));
    }
    Ok(code)
}

/// An open turn, from the answer to its end.
struct Turn {
    /// The session that it is in; the next one where that is replaced.
    session: SessionId,
    answer: Option<String>,
    usage: Usage,
    /// Why it came to nothing.
    failure: Option<String>,
    was_interrupted: bool,
    /// It, or the session before it, has ended.
    is_over: bool,
}

impl Turn {
    fn of(session: SessionId) -> Self {
        Self {
            session,
            answer: None,
            usage: Usage::default(),
            failure: None,
            was_interrupted: false,
            is_over: false,
        }
    }

    /// Follows it to its end. False when the time is over first.
    async fn follow(&mut self, ui: &Ui, watch: &mut Watch, until: Option<Instant>) -> Result<bool, Failure> {
        while !self.is_over {
            let next = match until {
                Some(until) => match timeout_at(until, watch.next()).await {
                    Ok(next) => next,
                    Err(_) => return Ok(false),
                },
                None => watch.next().await,
            };
            match next {
                Some(Ok(Watched::Event(event))) => {
                    self.take(event.session, &event.event);
                    if let Event::ApprovalRequested(asked) = &event.event
                        && event.session == Some(self.session)
                    {
                        somebody_is_asked_now(&self.session, asked).iter().for_each(|line| ui.insist(line));
                    }
                }
                Some(Ok(Watched::Unknown(_) | Watched::Reconnected)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
            }
        }
        Ok(true)
    }

    fn take(&mut self, session: Option<SessionId>, event: &Event) {
        let is_own = session == Some(self.session);
        match event {
            Event::AgentCompletion(said) if is_own && said.subagent.is_none() => {
                self.answer = Some(said.text.clone())
            }
            Event::UsageRecorded(used) if is_own => self.usage += used.usage,
            // It is gone on with when its limit ends.
            Event::TurnEnded(turn) if is_own && turn.goes_on.is_some() => {}
            Event::TurnEnded(turn) if is_own => {
                self.failure = turn.failure().map(str::to_owned);
                self.was_interrupted = turn.stop_reason == StopReason::Interrupted;
                // A turn that ended with its process is the end of the session, which follows.
                self.is_over = turn.stop_reason != StopReason::ProcessEnded;
            }
            Event::SessionCreated(created) if created.continues == Some(self.session) => {
                self.session = created.id;
            }
            Event::SessionStopped(ended) | Event::SessionFailed(ended) if is_own => {
                let is_followed = matches!(ended.restart, Some(Restart::At(_)));
                if !is_followed {
                    self.failure.get_or_insert_with(|| ended.obituary.sentence.clone());
                }
                self.is_over = !is_followed;
            }
            _ => {}
        }
    }

    fn exit_code(&self, outcome: Option<Outcome>) -> u8 {
        match outcome.map_or(exit_code::OK, of_outcome) {
            _ if self.failure.is_none() && !self.was_interrupted => exit_code::OK,
            exit_code::OK if self.was_interrupted => exit_code::SESSION_STOPPED,
            exit_code::OK => exit_code::SESSION_FAILED,
            code => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Time,
        event::{Text, TurnEnded},
    };

    use super::*;
    use crate::testing::NOW;

    fn ended(stop_reason: StopReason) -> Event {
        Event::TurnEnded(TurnEnded::new(1, stop_reason))
    }

    #[test]
    fn a_turn_that_came_to_nothing_is_no_answer() {
        let session = SessionId::new(NOW, 1);
        let after = |stop_reason, outcome| {
            let mut turn = Turn::of(session);
            turn.take(Some(session), &ended(stop_reason));
            (turn.is_over, turn.exit_code(outcome))
        };
        assert_eq!(after(StopReason::Completed, None), (true, exit_code::OK));
        assert_eq!(after(StopReason::Completed, Some(Outcome::Done)), (true, exit_code::OK));
        assert_eq!(after(StopReason::Error, None), (true, exit_code::SESSION_FAILED));
        assert_eq!(after(StopReason::Error, Some(Outcome::Budget)), (true, exit_code::SESSION_BUDGET));
        assert_eq!(after(StopReason::Interrupted, None), (true, exit_code::SESSION_STOPPED));
        assert!(!after(StopReason::ProcessEnded, None).0, "how the session ended is yet to come");
    }

    #[test]
    fn an_answer_that_a_limit_delays_is_waited_for() {
        let session = SessionId::new(NOW, 1);
        let mut turn = Turn::of(session);
        let mut limited = TurnEnded::new(1, StopReason::Error);
        limited.goes_on = Some(Time::from_micros(5));
        turn.take(Some(session), &Event::TurnEnded(limited));
        assert!(!turn.is_over && turn.failure.is_none());
        turn.take(Some(session), &Event::AgentCompletion(Text::from("blue it is".to_owned())));
        turn.take(Some(SessionId::new(NOW, 2)), &ended(StopReason::Error));
        turn.take(Some(session), &ended(StopReason::Completed));
        assert_eq!((turn.is_over, turn.answer.as_deref()), (true, Some("blue it is")));
        assert_eq!(turn.exit_code(None), exit_code::OK);
    }
}
