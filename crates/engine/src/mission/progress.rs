//! Whether members get on: the calls that their agents make, and what comes of them.

use std::collections::{HashMap, HashSet};

use ostler_domain::{
    Event, Recorded, SessionId,
    event::ToolCall,
    handoff::written,
    limits::{CALLS_WATCHED, WRITES_KNOWN},
    mission::{Input, stuck},
};

use super::actor::Actor;

/// What was seen of the sessions that are at work. In memory: after a restart it begins anew.
#[derive(Default)]
pub(super) struct Progress {
    watches: HashMap<SessionId, stuck::Watch>,
    /// What was written already: writing the same again is no progress.
    writes: HashMap<SessionId, HashSet<stuck::Signature>>,
    /// Calls that have no result yet.
    open: HashMap<(SessionId, String), ToolCall>,
}

impl Progress {
    pub(super) fn forget(&mut self, session: SessionId) {
        self.watches.remove(&session);
        self.writes.remove(&session);
        self.open.retain(|(whose, _), _| *whose != session);
    }

    /// Takes in an event of a member's session; says so where its agent does not get on.
    fn see(&mut self, session: SessionId, event: &Event) -> Seen {
        match event {
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
                let signature = stuck::Signature::of(&call.tool, &call.input, &result.output);
                let known = self.writes.entry(session).or_default();
                let is_new = result.success
                    && written(&call).is_some()
                    && known.len() < WRITES_KNOWN
                    && known.insert(signature);
                if is_new {
                    return self.got_on(session);
                }
                let watch = self.watches.entry(session).or_default();
                match watch.call(signature, &call.summary) {
                    Some(stuck) => Seen::Stuck(stuck),
                    None => Seen::Nothing,
                }
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

enum Seen {
    Nothing,
    Stuck(ostler_domain::mission::Stuck),
    GotOn,
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
            (event, Some(session)) if self.state.of_session(session).is_some() => {
                (session, self.progress.see(session, event))
            }
            _ => return,
        };
        let Some(place) = self.state.of_session(session) else { return };
        let slot = &self.state.slots()[place];
        if slot.session() != Some(session) {
            return;
        }
        let (assignment, attempt) = (slot.assignment.id, slot.attempt);
        match seen {
            Seen::Nothing => {}
            Seen::Stuck(stuck) => self.take(Input::Stuck { assignment, attempt, stuck }).await,
            Seen::GotOn => self.take(Input::ProgressSeen { assignment, attempt }).await,
        }
    }
}
