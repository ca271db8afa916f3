//! Whether members get on: the calls that their agents make, and what comes of them.

use std::collections::HashMap;

use ostler_domain::{
    AssignmentId, Event, MessageId, Recorded, SessionId, Time,
    event::ToolCall,
    limits::CALLS_WATCHED,
    mission::{
        Input, Stuck, StuckKind,
        stuck::{Call, Seen, Watch},
    },
};

use super::{Command, actor::Actor, messages::is_nudge, shared_dir};

/// What was seen of the sessions that are at work. In memory: after a restart it begins anew.
#[derive(Default)]
pub(super) struct Progress {
    watches: HashMap<SessionId, Watch>,
    /// Calls that have no result yet.
    open: HashMap<(SessionId, String), ToolCall>,
    /// What agents were told of it, and have not got yet.
    nudges: HashMap<MessageId, SessionId>,
}

/// A member that does not get on, unless its files say otherwise.
pub(crate) struct Suspect {
    session: SessionId,
    assignment: AssignmentId,
    attempt: u32,
    stuck: Stuck,
    has_new_files: bool,
}

impl Progress {
    pub(super) fn forget(&mut self, session: SessionId) {
        self.watches.remove(&session);
        self.open.retain(|(whose, _), _| *whose != session);
        self.nudges.retain(|_, whose| *whose != session);
    }

    /// Takes in an event of a member's session; says so where its agent does not get on.
    fn see(&mut self, session: SessionId, recorded: &Recorded) -> Seen {
        match &recorded.event {
            Event::AgentToolCall(call) => {
                // An agent that never hears of its calls is none that this could help.
                if self.open.len() < CALLS_WATCHED {
                    self.open.insert((session, call.tool_id.clone()), call.clone());
                }
                Seen::Nothing
            }
            Event::AgentToolResult(result) => {
                let Some(call) = self.open.remove(&(session, result.tool_id.clone())) else {
                    return Seen::Nothing;
                };
                let watch = self.watches.entry(session).or_default();
                watch.call(&Call::of(recorded.time, &call, result))
            }
            Event::OutputAdded(_) | Event::StepEnded(_) => self.got_on(session),
            _ => Seen::Nothing,
        }
    }

    fn got_on(&mut self, session: SessionId) -> Seen {
        let watch = self.watches.entry(session).or_default();
        if watch.progress() { Seen::GotOn } else { Seen::Nothing }
    }
}

impl Actor {
    /// Looks at what a member does.
    pub(super) async fn watch_progress(&mut self, recorded: &Recorded) {
        // Files and commits are told of by events that name their session.
        let (session, seen) = match (&recorded.event, recorded.session) {
            (Event::CommitsSeen(seen), _) if !seen.commits.is_empty() => {
                (seen.session, self.progress.got_on(seen.session))
            }
            (Event::SnapshotTaken(taken), _) if taken.changed.files > 0 => {
                (taken.session, self.progress.got_on(taken.session))
            }
            (_, Some(session)) if self.state.of_session(session).is_some() => {
                (session, self.progress.see(session, recorded))
            }
            _ => return,
        };
        let Some((assignment, attempt)) = self.attempt_of(session) else { return };
        match seen {
            Seen::Nothing => {}
            Seen::Stuck { stuck, since } => self.look_at_files(session, assignment, attempt, stuck, since),
            Seen::GotOn => self.take(Input::ProgressSeen { assignment, attempt }).await,
        }
    }

    /// What becomes of a message that told an agent that it does not get on.
    pub(super) fn watch_nudge(&mut self, session: SessionId, event: &Event) {
        match event {
            Event::MessageAccepted(accepted) if is_nudge(accepted.key.as_deref()) => {
                self.progress.nudges.insert(accepted.message.id, session);
            }
            Event::MessageDelivered(sent) => {
                if let Some(session) = self.progress.nudges.remove(&sent.id)
                    && let Some(watch) = self.progress.watches.get_mut(&session)
                {
                    watch.heard();
                }
            }
            _ => {}
        }
    }

    fn attempt_of(&self, session: SessionId) -> Option<(AssignmentId, u32)> {
        let slot = &self.state.slots()[self.state.of_session(session)?];
        (slot.session() == Some(session)).then_some((slot.assignment.id, slot.attempt))
    }

    /// An agent may write by whatever program it likes: before it is said that it does not get on, its files are looked at.
    fn look_at_files(
        &self,
        session: SessionId,
        assignment: AssignmentId,
        attempt: u32,
        stuck: Stuck,
        since: Time,
    ) {
        let others = self.state.slots().iter().filter(|slot| slot.is_active()).count() > 1;
        let engine = self.engine.clone();
        let own = self.state.place_of(assignment).map(|place| {
            let name = &self.state.slots()[place].assignment.name;
            shared_dir::own(&engine.shared.options.state_dir, self.state.id(), name)
        });
        self.report(async move {
            let has_new_files = match engine.session(&session.to_string()).await {
                // In a tree that others write to as well, what is new says nothing about one that does the same over and
                // over.
                Ok(view) if stuck.kind == StuckKind::Loop && view.worktree.is_none() && others => false,
                Ok(view) => engine.has_new_files(&view, own, since).await,
                Err(refusal) => {
                    tracing::info!(%session, %refusal, "a member's files cannot be looked at");
                    false
                }
            };
            Command::Suspected(Suspect { session, assignment, attempt, stuck, has_new_files })
        });
    }

    pub(super) async fn judge(&mut self, suspect: Suspect) {
        let Suspect { session, assignment, attempt, stuck, has_new_files } = suspect;
        if !has_new_files {
            return self.take(Input::Stuck { assignment, attempt, stuck }).await;
        }
        self.progress.got_on(session);
        // Whether or not it had been told: what the watch says of that is about this suspicion.
        self.take(Input::ProgressSeen { assignment, attempt }).await;
    }
}
