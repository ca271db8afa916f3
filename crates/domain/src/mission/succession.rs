//! Whether a session that goes on with that of a member is the mission's too.

use super::{Membership, State};
use crate::SessionId;

/// What whoever goes on with a session is to its mission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Succession {
    /// The member, in its place: the mission follows it.
    Member(Membership),
    /// Nobody knows yet: the session has ended, and the mission has not taken that in.
    Unsettled,
    /// Nobody: the mission has what it wanted of the session, or has given it up.
    Outsider,
}

impl State {
    /// What whoever goes on with this ended session is to the mission. `goes_on`: the session's end leaves its work to
    /// another one. Once it is settled it stays so: no session is a member's for a second time.
    pub fn succession(&self, session: SessionId, goes_on: bool) -> Succession {
        let place = self.of_session(session);
        let at_work = place.map(|place| &self.slots[place]).filter(|slot| slot.session() == Some(session));
        match at_work {
            None => Succession::Outsider,
            Some(_) if !goes_on => Succession::Unsettled,
            Some(slot) => Succession::Member(Membership {
                mission: self.id,
                assignment: slot.assignment.id,
                attempt: slot.attempt,
            }),
        }
    }
}
