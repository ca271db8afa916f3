//! What members say to each other: whom they mean, and the files in which both find what was said and its receipt.

use std::collections::BTreeSet;

use ostler_domain::{
    Name, Reason, Refusal, SessionId,
    event::By,
    limits::PAGE_MOST,
    mission::{Membership, State},
    query::Page,
};

use sha2::{Digest, Sha256};

use super::{
    actor::Actor,
    shared_dir::{SaidBetween, put_message},
};
use crate::Engine;

const NUDGE: &str = "mission:";

impl Engine {
    /// The session of a mission's member that another one calls by its name there. Who is not at work hears nothing, and
    /// that is said.
    pub(crate) async fn team_mate(&self, asker: Membership, to: &str) -> Result<Option<SessionId>, Refusal> {
        let state = self.loaded_mission(asker.mission).await?;
        let Some(place) = state.find(to) else { return Ok(None) };
        let slot = &state.slots()[place];
        match slot.session() {
            Some(session) => Ok(Some(session)),
            None => Err(not_there(&slot.assignment.name, state.standing_of(place))),
        }
    }
}

/// Who is meant does not work now.
pub(crate) fn not_there(name: &Name, status: &str) -> Refusal {
    let message = format!("{name} is {status}, and hears nothing now");
    let cure = "put it into messages/inbox of the directory that all members share: $OSTLER_MISSION_DIR";
    Refusal::new(Reason::WrongState, message).because(cure)
}

impl Actor {
    /// Has both sides of what was said to a member by others find it in their files.
    pub(super) async fn show_messages(&self, session: SessionId) -> Result<(), Refusal> {
        let Some(to) = name_of(&self.state, session) else { return Ok(()) };
        let store = &self.engine.shared.store;
        for row in store.messages_of_session(session, Page::of(PAGE_MOST, None)).await?.rows {
            let Some(from) = self.sender(&row.by) else { continue };
            let text = self.engine.message_text(&row).await?;
            let said = SaidBetween { id: row.id, from, to, text: &text, receipt: row.receipt };
            if let Err(error) = put_message(&self.engine.shared.options.state_dir, self.state.id(), &said) {
                tracing::warn!(mission = %self.state.id(), message = %row.id, %error, "a message is not shown in the mission's directory");
            }
        }
        Ok(())
    }

    /// The turns of a session that answer nothing but what its agent was told beside its task: by other members, or by
    /// Ostler, that it does not get on.
    pub(super) async fn asides(&self, session: SessionId) -> Result<BTreeSet<u32>, Refusal> {
        let store = &self.engine.shared.store;
        let (mut asides, mut tasks) = (BTreeSet::new(), BTreeSet::new());
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let listed = store.messages_of_session(session, page).await?;
            for row in &listed.rows {
                let is_aside = is_nudge(row.key.as_deref()) || self.sender(&row.by).is_some();
                let turns = if is_aside { &mut asides } else { &mut tasks };
                turns.extend(row.turn);
            }
            match listed.next_cursor {
                Some(next) => page.cursor = Some(next),
                None => return Ok(&asides - &tasks),
            }
        }
    }

    fn sender(&self, by: &By) -> Option<&Name> {
        let said = |slot: &&ostler_domain::mission::Slot| {
            slot.sessions.iter().any(|session| By::session(*session) == *by)
        };
        self.state.slots().iter().find(said).map(|slot| &slot.assignment.name)
    }
}

/// Whether a message of this key told its agent that it does not get on.
pub(super) fn is_nudge(key: Option<&str>) -> bool {
    key.is_some_and(|key| key.starts_with(NUDGE))
}

pub(super) fn nudge_key(session: SessionId, text: &str) -> String {
    // The same words again are the same message.
    let digest = Sha256::digest(text);
    let short: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{NUDGE}{session}:{short}")
}

fn name_of(state: &State, session: SessionId) -> Option<&Name> {
    state.of_session(session).map(|place| &state.slots()[place].assignment.name)
}
