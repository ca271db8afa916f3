//! How a mission stands, for whoever looks at it: as its actor has it, with what its sessions say beside it.

use ostler_domain::{
    MissionId, Refusal,
    limits::PAGE_MOST,
    mission::{Beside, State, asked},
    query::{Page, Scope, SessionFilter},
    session::{Status, View},
};

use crate::Engine;

impl Engine {
    /// A mission as it is now: its actor's, where it has one, for reading ten thousand events takes a while.
    pub(crate) async fn current_mission(&self, id: MissionId) -> Result<State, Refusal> {
        match self.shared.missions.state(id) {
            Some(state) => Ok(state),
            None => self.loaded_mission(id).await,
        }
    }

    /// What is known of a mission beside its own events.
    pub async fn mission_beside(&self, state: &State) -> Result<Beside, Refusal> {
        let mut beside = Beside { halted: self.halted().is_some(), ..Beside::default() };
        if state.is_over() || state.slots().iter().all(|slot| slot.session().is_none()) {
            return Ok(beside);
        }
        let filter =
            SessionFilter { missions: vec![state.id()], scope: Scope::NotEnded, ..SessionFilter::default() };
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let listed = self.shared.store.list_sessions(&filter, page).await?;
            for view in &listed.rows {
                self.take_in(&mut beside, state, view).await?;
            }
            match listed.next_cursor {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        for session in state.slots().iter().filter_map(|slot| slot.session()) {
            if beside.live.contains_key(&session) {
                continue;
            }
            let why = match self.shared.store.session(session).await? {
                None => "its session is being made",
                Some(view) => {
                    self.take_in(&mut beside, state, &view).await?;
                    "its session has ended, and another is to go on with it"
                }
            };
            beside.in_line.insert(session, why.to_owned());
        }
        Ok(beside)
    }

    async fn take_in(&self, beside: &mut Beside, state: &State, view: &View) -> Result<(), Refusal> {
        let Some(place) = state.of_session(view.id) else { return Ok(()) };
        let slot = &state.slots()[place];
        if slot.session() != Some(view.id) {
            return Ok(());
        }
        beside.live.insert(view.id, self.spent_on_attempt(view, &slot.sessions).await?);
        let asked = asked(view);
        if !asked.is_empty() {
            beside.asked.insert(view.id, asked);
        }
        if let Some(why) = self.shared.line.why(&view.id).filter(|_| view.status == Status::Created) {
            beside.in_line.insert(view.id, why);
            beside.waiting.insert(view.id);
        }
        Ok(())
    }
}
