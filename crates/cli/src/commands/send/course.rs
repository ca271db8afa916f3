//! One message's way from the inbox to its answer.

use ostler_client::{Watch, Watched, reply::Sent};
use ostler_domain::{
    Event, MessageId, Reason, Receipt, Refusal, SessionId, Usage,
    event::{MovedTo, StopReason},
    session::Restart,
};
use tokio::time::{Instant, timeout_at};

use crate::{
    failure::Failure,
    output::{Line, Ui},
    screen::{approval::somebody_is_asked_now, hold},
};

/// What became of one message.
pub(super) struct Course {
    pub(super) message: MessageId,
    pub(super) session: SessionId,
    pub(super) receipt: Receipt,
    pub(super) answer: Option<String>,
    /// What its turn took so far.
    pub(super) usage: Usage,
    pub(super) ended: bool,
    /// Why the turn that it was in came to nothing.
    pub(super) failure: Option<String>,
    /// The session ended within the turn, and the next one goes on with it.
    is_followed: bool,
    /// The turn failed of a limit, and is gone on with when that ends.
    waits_for_limit: bool,
}

impl Course {
    pub(super) fn new(sent: &Sent) -> Self {
        Self { receipt: sent.receipt, ..Self::at(sent.message, sent.session.id) }
    }

    fn at(message: MessageId, session: SessionId) -> Self {
        Self {
            message,
            session,
            receipt: Receipt::Accepted,
            answer: None,
            usage: Usage::default(),
            ended: false,
            failure: None,
            is_followed: false,
            waits_for_limit: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.receipt.is_final() || self.ended
    }

    /// Follows the message until enough is known. False when the time is over first.
    pub(super) async fn follow(
        &mut self,
        ui: &Ui,
        watch: &mut Watch,
        until: Option<Instant>,
        enough: impl Fn(&Self) -> bool,
    ) -> Result<bool, Failure> {
        while !enough(self) {
            let item = match until {
                Some(until) => match timeout_at(until, watch.next()).await {
                    Ok(item) => item,
                    Err(_) => return Ok(false),
                },
                None => watch.next().await,
            };
            match item {
                Some(Ok(Watched::Event(event))) => {
                    self.take(event.session, &event.event);
                    self.waits_for(event.session, &event.event).iter().for_each(|line| ui.insist(line));
                }
                Some(Ok(Watched::Unknown(_) | Watched::Reconnected)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
            }
        }
        Ok(true)
    }

    /// Whom its agent waits for from this event on, where that is somebody.
    fn waits_for(&self, session: Option<SessionId>, event: &Event) -> Option<Line> {
        match event {
            _ if session != Some(self.session) => None,
            Event::ApprovalRequested(asked) => somebody_is_asked_now(&self.session, asked),
            Event::SessionHeld(held) => hold::at_a_budget_now(&self.session, held),
            _ => None,
        }
    }

    fn take(&mut self, session: Option<SessionId>, event: &Event) {
        let is_own = session == Some(self.session);
        match event {
            // A session that ended first hands its messages to the next one.
            Event::MessageAccepted(accepted) if accepted.message.id == self.message => {
                self.session = session.unwrap_or(self.session);
                self.ended = false;
            }
            Event::MessageDelivered(mark) if mark.id == self.message => self.receipt = Receipt::Delivered,
            Event::MessageSeen(mark) if mark.id == self.message => self.receipt = Receipt::Seen,
            Event::MessageAnswered(mark) if mark.id == self.message && !self.waits_for_limit => {
                self.receipt = Receipt::Answered;
            }
            Event::MessageUnknown(unknown) if unknown.id == self.message => self.receipt = Receipt::Unknown,
            Event::MessageReturned(returned) if returned.id == self.message => {
                self.receipt = Receipt::Accepted;
            }
            Event::MessageDropped(dropped) if dropped.id == self.message => {
                self.receipt = Receipt::Dropped;
                self.failure = Some(dropped.why.clone());
            }
            Event::MessageCancelled(cancelled) if cancelled.id == self.message => {
                self.receipt = Receipt::Cancelled;
                self.failure = Some(cancelled.why.clone());
            }
            Event::MessageMoved(moved) if moved.id == self.message => {
                if let MovedTo::Conversation { message, .. } = moved.to {
                    self.message = message;
                }
            }
            // Only what is said after it was written to the agent can be an answer to it.
            Event::AgentCompletion(said)
                if is_own && said.subagent.is_none() && self.receipt > Receipt::Accepted =>
            {
                self.answer = Some(said.text.clone());
            }
            Event::UsageRecorded(used) if is_own && self.receipt > Receipt::Accepted => {
                self.usage += used.usage;
            }
            Event::TurnEnded(turn) if is_own && self.receipt >= Receipt::Seen => {
                let goes_on = turn.goes_on.is_some();
                self.failure = turn.failure().filter(|_| !goes_on).map(str::to_owned);
                // It was read in the turn or the session before, and is answered in this one.
                let is_later = self.is_followed || self.waits_for_limit;
                if is_later && !goes_on && turn.stop_reason != StopReason::ProcessEnded {
                    self.receipt = Receipt::Answered;
                }
                self.waits_for_limit = goes_on;
            }
            Event::SessionCreated(created) if created.continues == Some(self.session) => {
                self.session = created.id;
            }
            Event::SessionStopped(ended) | Event::SessionFailed(ended) if is_own => {
                self.is_followed = matches!(ended.restart, Some(Restart::At(_)));
                self.ended = !self.is_followed;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Time,
        event::{MessageMark, Text, TurnEnded},
    };

    use super::*;
    use crate::testing::NOW;

    #[test]
    fn what_a_sub_agent_says_is_not_the_answer() {
        let (message, session) = (MessageId::new(NOW, 1), SessionId::new(NOW, 1));
        let mut course = Course { receipt: Receipt::Seen, ..Course::at(message, session) };
        let said = |text: &str, subagent: Option<&str>| {
            Event::AgentCompletion(Text { text: text.to_owned(), subagent: subagent.map(str::to_owned) })
        };
        course.take(Some(session), &said("two", None));
        course.take(Some(session), &said("I see two", Some("call-1")));
        assert_eq!(course.answer.as_deref(), Some("two"));
    }

    #[test]
    fn an_answer_that_a_limit_delays_is_waited_for() {
        let (message, session) = (MessageId::new(NOW, 1), SessionId::new(NOW, 1));
        let mut course = Course { receipt: Receipt::Seen, ..Course::at(message, session) };
        let mut failed = TurnEnded::new(1, StopReason::Error);
        failed.goes_on = Some(Time::from_micros(5));
        course.take(Some(session), &Event::TurnEnded(failed));
        course.take(Some(session), &Event::MessageAnswered(MessageMark { id: message, turn: Some(1) }));
        assert!(!course.is_over() && course.failure.is_none());
        course.take(Some(session), &Event::TurnEnded(TurnEnded::new(2, StopReason::Completed)));
        assert!(course.is_over() && course.failure.is_none());
    }
}
