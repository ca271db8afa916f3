//! Whether a session that goes on with a member's is that member's too. It is asked wherever one is made, so none works
//! beside the mission that its work is for.

use std::time::Duration;

use ostler_domain::{
    Reason, Refusal, SessionId,
    event::By,
    mission::{Membership, State, Succession},
    session::View,
};
use tokio::time::timeout;

use super::not_there;
use crate::Engine;

/// How long the end of a member's session takes to be taken in: what it left in its tree may be looked at first.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

impl Engine {
    /// The membership of the session that goes on with this one, which has ended. None where its mission wants nothing of
    /// it any more: then a person may still talk to it, and nobody else wakes it.
    pub(crate) async fn membership_after(&self, old: &View, by: &By) -> Result<Option<Membership>, Refusal> {
        let Some(member) = old.mission else { return Ok(None) };
        let state = match self.settled_mission(member, old).await {
            // Nothing is left that it could be a member of.
            Err(refusal) if refusal.reason == Reason::MissionUnknown => return Ok(None),
            state => state?,
        };
        match state.succession(old.id, old.goes_on()) {
            Succession::Member(member) => Ok(Some(member)),
            Succession::Unsettled => Err(unsettled(old.id)),
            Succession::Outsider if by.is_session() || by.mission().is_some() => {
                Err(match state.place_of(member.assignment) {
                    Some(place) => not_there(&state.slots()[place].assignment.name, state.standing_of(place)),
                    None => not_there(&old.name, "over"),
                })
            }
            Succession::Outsider => Ok(None),
        }
    }

    /// The mission of a session, once that has taken its end in.
    async fn settled_mission(&self, member: Membership, old: &View) -> Result<State, Refusal> {
        let is_settled = |state: &State| state.succession(old.id, old.goes_on()) != Succession::Unsettled;
        let state = self.current_mission(member.mission).await?;
        if is_settled(&state) {
            return Ok(state);
        }
        let mut shown = self.shown_mission(member.mission).await?;
        let settled = async { shown.wait_for(is_settled).await.ok().map(|state| state.clone()) };
        match timeout(SETTLED_WITHIN, settled).await.map_err(|_| unsettled(old.id))? {
            Some(state) => Ok(state),
            // Whoever showed it is gone: the mission is over, or the daemon shuts down.
            None => self.loaded_mission(member.mission).await,
        }
    }
}

fn unsettled(session: SessionId) -> Refusal {
    let short = session.short();
    Refusal::new(
        Reason::TimedOut,
        format!("session {short} has ended, and its mission has not settled it yet"),
    )
    .hint(format!("ostler show {short}"), "shows how it stands")
}
