//! What members' sessions tell of themselves in the log, as a mission hears it.

use std::collections::BTreeSet;

use ostler_domain::{
    Event, Kind, Reason, Recorded, Refusal, SessionId, Time,
    budget::Used,
    mission::{Input, SessionEnd, Step},
    query::{EventFilter, Page, SessionFilter},
    session::{Outcome, Restart, View},
};
use tokio::time::sleep;

use super::actor::{AFTER_FAILURE, Actor};
use crate::{fault, restart};

/// Of a session, which are few: each is one that no keeper came of.
const STARTS: u32 = 20;

impl Actor {
    /// What its sessions have used and which are paused, as the record has it.
    pub(super) async fn recall(&mut self) -> Result<(), Refusal> {
        self.count_all().await?;
        let frozen =
            |place: usize| self.state.slots()[place].session().filter(|_| self.state.is_frozen(place));
        self.frozen = (0..self.state.slots().len()).filter_map(frozen).collect();
        Ok(())
    }

    /// Counts all of its sessions at the prices of now.
    pub(super) async fn count_all(&mut self) -> Result<(), Refusal> {
        let filter = SessionFilter { missions: vec![self.state.id()], ..SessionFilter::default() };
        let mut page = Page::of(ostler_domain::limits::PAGE_MOST, None);
        // Before anything is counted: what is set meanwhile is seen by the next look.
        let prices = self.engine.shared.prices.current();
        loop {
            let listed = self.engine.shared.store.list_sessions(&filter, page).await?;
            listed.rows.iter().for_each(|view| self.count(view));
            match listed.next_cursor {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        self.prices = prices;
        Ok(())
    }

    /// Looks at every session that should be at work: some may have ended, or gone on in another, while nobody looked.
    pub(super) async fn catch_up(&mut self) -> Result<(), Refusal> {
        let running: Vec<SessionId> = self.state.slots().iter().filter_map(|slot| slot.session()).collect();
        for session in running {
            self.show_messages(session).await?;
            self.began_unseen(session).await?;
            self.heard(session).await?;
        }
        Ok(())
    }

    /// The same from time to time: news that could not be read when they came are not lost.
    pub(super) async fn look_again(&mut self) {
        let looked = async {
            self.catch_up().await?;
            self.hold_to_promises().await
        };
        if let Err(refusal) = looked.await {
            tracing::warn!(mission = %self.state.id(), %refusal, "its sessions cannot be looked at; tried again later");
        }
        self.free_awaiting().await;
    }

    /// Lets go on what waited for sessions that have ended.
    pub(super) async fn free_awaiting(&mut self) {
        let awaited: BTreeSet<SessionId> =
            self.state.slots().iter().filter_map(|slot| slot.awaits()).collect();
        for session in awaited {
            match self.engine.shared.store.session(session).await {
                Ok(Some(view)) if view.outcome.is_none() => {}
                Ok(_) => self.take(Input::Freed { session }).await,
                Err(error) => {
                    tracing::warn!(mission = %self.state.id(), %session, %error, "looked at again later");
                }
            }
        }
    }

    /// A session that was to go on in another, and has not by now, does, or has come to nothing: nobody waits for ever.
    async fn hold_to_promises(&mut self) -> Result<(), Refusal> {
        if self.engine.halted().is_some() {
            return Ok(());
        }
        let running: Vec<SessionId> = self.state.slots().iter().filter_map(|slot| slot.session()).collect();
        for session in running {
            let store = &self.engine.shared.store;
            let Some(view) = store.session(session).await? else { continue };
            let is_due = match &view.restart {
                Some(Restart::At(due)) => due.has_passed(&self.engine.now()),
                _ => view.outcome == Some(Outcome::Handoff),
            };
            if !is_due || store.continued_by(session).await?.is_some() {
                continue;
            }
            let Err(refusal) = restart::go_on(&self.engine.shared, session).await else { continue };
            if refusal.reason == Reason::Halted {
                return Ok(());
            }
            let Some(place) = self.state.of_session(session) else { continue };
            let slot = &self.state.slots()[place];
            let (assignment, attempt, name) =
                (slot.assignment.id, slot.attempt, slot.assignment.name.clone());
            let (asides, all) = (self.asides(session).await?, slot.sessions.clone());
            let end = self.engine.session_end(&view, &name, &asides, &all).await?;
            let why = format!("it was to go on in another session, and could not: {}", refusal.told());
            let end = Box::new(SessionEnd { why, outcome: Outcome::Lost, ..end });
            self.take(Input::SessionEnded { assignment, attempt, session, end }).await;
        }
        Ok(())
    }

    /// An event of the log that may be about one of its sessions.
    pub(super) async fn told(&mut self, recorded: &Recorded) {
        let heard = match (&recorded.event, recorded.session) {
            (
                Event::AgentToolCall(_)
                | Event::AgentToolResult(_)
                | Event::StepEnded(_)
                | Event::OutputAdded(_)
                | Event::CommitsSeen(_)
                | Event::SnapshotTaken(_),
                _,
            ) => {
                self.watch_progress(recorded).await;
                self.forecast_after(recorded);
                Ok(())
            }
            (
                Event::MessageAccepted(_)
                | Event::MessageDelivered(_)
                | Event::MessageSeen(_)
                | Event::MessageAnswered(_)
                | Event::MessageUnknown(_)
                | Event::MessageReturned(_)
                | Event::MessageDropped(_)
                | Event::MessageCancelled(_),
                Some(session),
            ) => {
                self.watch_nudge(session, &recorded.event);
                self.show_messages(session).await
            }
            (Event::SessionCreated(created), _) => match created.continues {
                // What was handed on, or is started again, goes on in a session that the mission did not ask for.
                Some(before) if self.is_at_work(before) => self.goes_on(before).await,
                _ => Ok(()),
            },
            (Event::SessionStarting(starting), Some(session))
                if starting.attempt <= 1 && self.is_at_work(session) =>
            {
                self.begins(session, recorded.time).await
            }
            (Event::SessionStopped(_) | Event::SessionFailed(_), Some(session))
                if self.is_awaited(session) =>
            {
                self.take(Input::Freed { session }).await;
                Ok(())
            }
            (_, Some(session)) if self.state.of_session(session).is_some() => self.heard(session).await,
            _ => Ok(()),
        };
        if let Err(refusal) = heard {
            tracing::warn!(mission = %self.state.id(), %refusal, "news of a session cannot be read; looked at again later");
        }
    }

    /// A member's agent starts: what its session waited for a place is none of its time.
    async fn begins(&mut self, session: SessionId, at: Time) -> Result<(), Refusal> {
        let Some(view) = self.engine.shared.store.session(session).await? else { return Ok(()) };
        let Some(place) = self.state.of_session(session) else { return Ok(()) };
        let slot = &self.state.slots()[place];
        let (assignment, attempt) = (slot.assignment.id, slot.attempt);
        let waited = at.since(view.created_at);
        self.take(Input::SessionBegan { assignment, attempt, session, waited }).await;
        Ok(())
    }

    /// The same of one that started while nobody looked.
    async fn began_unseen(&mut self, session: SessionId) -> Result<(), Refusal> {
        let kinds = vec![Kind::SessionStarting];
        let filter = EventFilter { session: Some(session), kinds, ..EventFilter::default() };
        let starts = self.engine.shared.store.events_before(None, &filter, STARTS).await?.rows;
        match starts.last() {
            Some(first) => self.begins(session, first.time).await,
            None => Ok(()),
        }
    }

    fn is_awaited(&self, session: SessionId) -> bool {
        self.state.slots().iter().any(|slot| slot.awaits() == Some(session))
    }

    fn is_at_work(&self, session: SessionId) -> bool {
        let place = self.state.of_session(session);
        place.is_some_and(|place| self.state.slots()[place].session() == Some(session))
    }

    async fn heard(&mut self, session: SessionId) -> Result<(), Refusal> {
        let Some(view) = self.engine.shared.store.session(session).await? else { return Ok(()) };
        self.look(view).await
    }

    /// Takes in how a session stands.
    async fn look(&mut self, view: View) -> Result<(), Refusal> {
        self.count(&view);
        let Some(place) = self.state.of_session(view.id).filter(|_| self.is_at_work(view.id)) else {
            return Ok(());
        };
        let slot = &self.state.slots()[place];
        let (assignment, attempt, session) = (slot.assignment.id, slot.attempt, view.id);
        let name = slot.assignment.name.clone();
        if view.outcome.is_none() {
            // A budget may be used up.
            self.take(Input::Tick).await;
            return Ok(());
        }
        // Its work is not over: another session has it, or is about to.
        if view.goes_on() {
            return self.goes_on(view.id).await;
        }
        fault::slow("member-ended").await;
        let has_tree = view.worktree.is_some();
        self.progress.forget(view.id);
        self.assign_before_end(session, assignment).await?;
        let asides = self.asides(session).await?;
        let before = self.state.slots()[place].sessions.clone();
        if !has_tree {
            let end = Box::new(self.engine.session_end(&view, &name, &asides, &before).await?);
            self.take(Input::SessionEnded { assignment, attempt, session, end }).await;
            return Ok(());
        }
        // What its last turn left in a tree of its own may still be looked at, and others do not wait for that.
        let engine = self.engine.clone();
        self.beside(async move {
            loop {
                match engine.session_end(&view, &name, &asides, &before).await {
                    Ok(end) => {
                        let end = Box::new(end);
                        return Some(Input::SessionEnded { assignment, attempt, session, end });
                    }
                    Err(refusal) => {
                        tracing::warn!(%session, %refusal, "the end of a member cannot be read; trying again");
                        sleep(AFTER_FAILURE).await;
                    }
                }
            }
        });
        Ok(())
    }

    /// Follows work that was handed on to the session that has it now.
    async fn goes_on(&mut self, before: SessionId) -> Result<(), Refusal> {
        let Some(place) = self.state.of_session(before) else { return Ok(()) };
        let Some(next) = self.engine.shared.store.continued_by(before).await? else { return Ok(()) };
        let slot = &self.state.slots()[place];
        if !matches!(slot.step, Step::Running { session, .. } if session == before) {
            return Ok(());
        }
        let (assignment, attempt) = (slot.assignment.id, slot.attempt);
        self.take(Input::SessionStarted { assignment, attempt, session: next.id }).await;
        if next.outcome.is_some() {
            return Box::pin(self.look(next)).await;
        }
        Ok(())
    }

    fn count(&mut self, view: &View) {
        let prices = self.engine.shared.prices.current();
        self.used.insert(view.id, Used::of(&view.usage, &view.cost, &prices));
        let is_paused = view.outcome.is_none() && view.desired == ostler_domain::session::Desired::Pause;
        if is_paused {
            self.paused.insert(view.id);
        } else {
            self.paused.remove(&view.id);
        }
    }
}
