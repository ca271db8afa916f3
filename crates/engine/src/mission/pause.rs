//! Pausing a mission, and seeing its agents stand still: who is told that it is paused can rely on it.

use std::time::Duration;

use ostler_domain::{
    Refusal, SessionId,
    mission::{Request, State},
    session::Status,
};
use ostler_tape::frame::FrozenBy;
use tokio::time::{Instant, sleep};

use crate::{Change, Engine};

/// How long whoever pauses a mission waits to see its agents stand still.
const STILL_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// How the agents of a mission were made to stand still.
#[derive(Debug, Clone, Default)]
pub struct StoodStill {
    pub by_freezer: u32,
    pub by_signals: u32,
    /// Those that had not said so in time: they are told again until they do.
    pub not_yet: Vec<SessionId>,
}

impl Engine {
    /// Pauses a mission, and waits a while until everything of it stands still.
    pub async fn pause_mission(
        &self,
        who: &str,
        why: String,
        change: Change,
    ) -> Result<(State, StoodStill), Refusal> {
        let state = self.ask_mission(who, Request::Pause { why }, change).await?;
        let places = (0..state.slots().len()).filter(|place| state.is_frozen(*place));
        let mut left: Vec<SessionId> = places.filter_map(|place| state.slots()[place].session()).collect();
        let (mut stood, deadline) = (StoodStill::default(), Instant::now() + STILL_WITHIN);
        loop {
            let mut runs = Vec::new();
            for session in left {
                match self.shared.sessions.frozen(&session) {
                    Some(FrozenBy::Cgroup) => stood.by_freezer += 1,
                    Some(FrozenBy::Signals) => stood.by_signals += 1,
                    None if self.has_process(session).await? => runs.push(session),
                    None => {}
                }
            }
            left = runs;
            if left.is_empty() || Instant::now() >= deadline {
                break;
            }
            sleep(LOOK).await;
        }
        stood.not_yet = left;
        Ok((state, stood))
    }

    /// Whether something of a session may run: not of one that was never started, or has ended.
    async fn has_process(&self, session: SessionId) -> Result<bool, Refusal> {
        if self.shared.sessions.is_linked(&session) {
            return Ok(self.shared.sessions.has_agent(&session));
        }
        let view = self.shared.store.session(session).await?;
        Ok(view.is_some_and(|view| view.outcome.is_none() && view.status != Status::Created))
    }
}
