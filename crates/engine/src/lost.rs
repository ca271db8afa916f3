//! Sessions that were lost with the machine: who they are, what it costs to go on with them, and leaving them.

use ostler_domain::{
    Event, Refusal,
    event::LostLeft,
    reboot::{GoingOn, LostSession, MachineRestart, OnReboot, awaits_a_word},
    session::View,
};
use ostler_store::{Commit, Lost, Urgency};

use crate::{Change, Engine};

impl Engine {
    /// Those that nobody has answered for, the oldest first.
    pub async fn lost(&self) -> Result<Vec<LostSession>, Refusal> {
        let mut listed = Vec::new();
        for lost in self.waiting_for_a_word().await? {
            let Some(loaded) = self.shared.store.load_session(lost.session.id).await? else { continue };
            let last = lost.last_call.as_ref();
            let is_on_plan = last.is_some_and(|call| call.is_on_plan);
            let prices = self.shared.prices.current();
            let price = GoingOn::of(&loaded.state, last.map(|call| &call.usage), is_on_plan, &prices);
            listed.push(LostSession { session: lost.session, restarted_at: lost.restarted, price });
        }
        Ok(listed)
    }

    /// What a person is to be told, unless the machine's owner wants to hear of it no more.
    pub(crate) async fn machine_restart(&self) -> Result<Option<MachineRestart>, Refusal> {
        if self.shared.options.on_reboot == OnReboot::Leave {
            return Ok(None);
        }
        let lost = self.waiting_for_a_word().await?;
        let last = lost.iter().map(|lost| lost.restarted).max();
        Ok(last.map(|at| MachineRestart { at, lost: lost.len() as u64 }))
    }

    /// Nobody wants to go on with them. Returns how many they are.
    pub async fn leave_lost(&self, change: Change) -> Result<u64, Refusal> {
        const FINGERPRINT: &str = "leave_lost";
        if let Some(reply) = change.done_before(&self.shared.store, FINGERPRINT).await? {
            return Ok(reply.parse().unwrap_or_default());
        }
        let sessions: Vec<_> =
            self.waiting_for_a_word().await?.into_iter().map(|lost| lost.session.id).collect();
        let count = sessions.len() as u64;
        if count > 0 {
            let left = Event::LostLeft(LostLeft { sessions, by: change.by.clone() });
            let commit = Commit {
                urgency: Urgency::Control,
                node_events: vec![(self.shared.clock.now().wall, left)],
                session: None,
                request: change.done(FINGERPRINT, count.to_string()),
            };
            self.shared.store.commit(commit).await?;
        }
        Ok(count)
    }

    async fn waiting_for_a_word(&self) -> Result<Vec<Lost>, Refusal> {
        let now = self.shared.clock.now().wall;
        let mut waiting = Vec::new();
        for lost in self.shared.store.lost().await? {
            if awaits_a_word(&lost.session, now) && !self.is_answered_for(&lost.session).await? {
                waiting.push(lost);
            }
        }
        Ok(waiting)
    }

    /// A mission tries again by itself what its members were at, or waits to be resumed with it.
    async fn is_answered_for(&self, lost: &View) -> Result<bool, Refusal> {
        match &lost.mission {
            Some(member) => Ok(self.current_mission(member.mission).await?.answers_for(member.assignment)),
            None => Ok(false),
        }
    }
}
