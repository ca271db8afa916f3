//! Committing what was decided, and what follows when that is durable, or cannot be.

use std::sync::Arc;

use ostler_domain::{
    Event, Refusal, Time,
    limits::SNAPSHOT_EVENTS,
    session::{Effect, View},
};
use ostler_store::{Commit, CommitError, Committed, RequestReply, SessionCommit, Urgency};
use tokio::time::Instant;

use super::{
    actor::{AFTER_FAILURE, Actor, open_intake},
    commits::{Draft, InFlight},
    guarding::denied_in,
};
use crate::tidy::{self, Closed};

impl Actor {
    pub(super) async fn submit(
        &mut self,
        draft: Draft,
        urgency: Urgency,
        taped_input: Option<u64>,
        done: Option<RequestReply>,
    ) {
        if let Some(taped) = taped_input {
            self.taped_input_no = taped;
            self.outbox.retain(|row| row.input_no > taped);
        }
        let view = Arc::new(self.state.view());
        let spends = draft.events.iter().any(|(_, event)| matches!(event, Event::UsageRecorded(_)));
        let denied = denied_in(&draft.events);
        let turn_over = turn_over_in(&draft.events);
        let expected_seq = self.state.session_seq() - draft.events.len() as u64;
        let outbox = draft.outbox.clone();
        let ended = draft
            .events
            .iter()
            .find(|(_, event)| matches!(event, Event::SessionStopped(_) | Event::SessionFailed(_)));
        let of_ticket = match ended {
            Some((at, _)) => self.shared.ticket_after(&self.state, *at).await,
            None => None,
        };
        let commit = Commit {
            urgency,
            node_events: of_ticket.into_iter().collect(),
            session: Some(SessionCommit {
                id: self.id,
                expected_seq,
                events: draft.events,
                recorded: None,
                view: Arc::clone(&view),
                tape: Some(self.intake.mark()),
                outbox: draft.outbox,
                outbox_done: taped_input,
                snapshot: self.snapshot_if_due(),
            }),
            request: done,
        };
        let answer = self.shared.store.submit(commit).await;
        let tape_offset = self.intake.offset();
        self.commits.push(InFlight {
            answer,
            outbox,
            effects: draft.effects,
            replies: draft.replies,
            view,
            tape_offset,
            spends,
            denied,
            turn_over,
        });
    }

    /// The state, when so much has happened since the last one that the next start would feel it.
    fn snapshot_if_due(&mut self) -> Option<String> {
        let seq = self.state.session_seq();
        if seq < self.snapshot_seq + SNAPSHOT_EVENTS || self.state.is_ended() {
            return None;
        }
        self.snapshot_seq = seq;
        Some(self.state.snapshot())
    }

    /// A commit was answered: what follows from it may happen now.
    pub(super) async fn settled(&mut self, answer: Result<Committed, CommitError>, commit: InFlight) {
        match answer {
            Ok(_) => {
                crate::fault::point("before-effects");
                for reply in commit.replies {
                    let _ = reply.send(Ok(View::clone(&commit.view)));
                }
                self.outbox.extend(commit.outbox);
                self.send_outbox().await;
                for effect in commit.effects {
                    self.carry_out(effect).await;
                }
                self.audit_denied(&commit.denied);
                if let Some(turn) = commit.turn_over {
                    crate::fault::point("turn-over");
                    self.shared.snapshot_after(self.state.created(), turn);
                }
                if commit.spends {
                    self.shared.accounts.changed(self.handle.campaign);
                }
                if tidy::is_due(self.tidied, commit.tape_offset) {
                    self.tidied = commit.tape_offset;
                    tidy::compress(self.dir.clone(), Closed::Before(commit.tape_offset));
                }
            }
            Err(error) => self.begin_again(error, commit).await,
        }
    }

    /// A commit failed: nothing of it is true. Forgets what was thought and goes on from the store.
    async fn begin_again(&mut self, error: CommitError, failed: InFlight) {
        tracing::warn!(session = %self.id, %error, "a commit failed; going on from the record");
        let mut waiting = failed.replies;
        let mut effects = failed.effects;
        for (_, commit) in self.commits.settle().await {
            waiting.extend(commit.replies);
            effects.extend(commit.effects);
        }
        let done_all_the_same = self.end_all_the_same(effects).await;
        for reply in waiting {
            let refusal = Refusal::from(error.clone());
            let _ = reply.send(Err(if done_all_the_same {
                refusal.because(
                    "the agent is being ended or frozen all the same; it is recorded when that is possible",
                )
            } else {
                refusal
            }));
        }
        self.not_before = Some(Instant::now() + AFTER_FAILURE);
        match self.shared.store.load_session(self.id).await {
            Ok(Some(loaded)) => match open_intake(&self.dir, self.provider.as_ref(), &loaded) {
                Ok(intake) => {
                    self.next_input_no = loaded.last_input_no + 1;
                    self.state = loaded.state;
                    self.outbox = loaded.outbox.into();
                    self.intake = intake;
                    self.repeat_effects().await;
                }
                Err(refusal) => tracing::error!(session = %self.id, %refusal, "the tape cannot be opened"),
            },
            Ok(None) => tracing::error!(session = %self.id, "the session is not in the record"),
            Err(error) => tracing::error!(session = %self.id, %error, "the record cannot be read"),
        }
    }

    /// A disk that is full must not keep an agent alive: whoever asked for its end or its stillness gets it, and
    /// the keeper's exit record says so later.
    async fn end_all_the_same(&mut self, effects: Vec<Effect>) -> bool {
        let mut done = false;
        for effect in effects {
            if matches!(effect, Effect::Stop(..) | Effect::Freeze(true)) {
                self.carry_out(effect).await;
                done = true;
            }
        }
        done
    }
}

/// The last turn that ended.
fn turn_over_in(events: &[(Time, Event)]) -> Option<u32> {
    events.iter().rev().find_map(|(_, event)| match event {
        Event::TurnEnded(ended) => Some(ended.turn),
        _ => None,
    })
}
