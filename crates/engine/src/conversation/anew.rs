//! Conversations that begin anew by themselves, by their campaign's rules: when something is said to them, and never before.

use ostler_domain::{
    Reason, Refusal,
    conversation::reset_due,
    event::By,
    session::{Status, View},
};

use crate::{Change, Engine, clock::seconds_east, send::Hearer};

impl Engine {
    /// The fresh conversation in the place of one that is due to begin anew; none where nothing is due.
    pub(crate) async fn begun_anew(
        &self,
        hearer: &Hearer,
        change: &Change,
    ) -> Result<Option<Hearer>, Refusal> {
        let Hearer { conversation, session } = hearer;
        let rules = self.campaign(&conversation.campaign.to_string()).await?.policy.reset;
        if rules.is_empty() || !session.as_ref().is_some_and(is_at_rest) {
            return Ok(None);
        }
        let did = session.as_ref().and_then(|view| view.last_activity_at);
        let last_active = did.unwrap_or(conversation.active).max(conversation.active);
        let now = self.shared.clock.now().wall;
        let Some(rule) = reset_due(&rules, last_active, now, seconds_east) else { return Ok(None) };
        let by = Change { by: By(format!("ostler, {rule}")), request: None, ..change.clone() };
        match self.reset_as(&conversation.id.to_string(), true, by, "", |id| id.to_string()).await {
            Ok(fresh) => Ok(Some(Hearer { conversation: fresh, session: None })),
            // Somebody else's message came at the same time, and was first.
            Err(refusal) if refusal.reason == Reason::WrongState => {
                let (campaign, agent) = (conversation.campaign, conversation.agent);
                let fresh = self.shared.store.conversation_keyed(campaign, agent, &conversation.key).await?;
                let fresh = fresh.ok_or(refusal)?;
                let session = self.last_session(fresh.id).await?;
                Ok(Some(Hearer { conversation: fresh, session }))
            }
            Err(refusal) => Err(refusal),
        }
    }
}

/// Nobody's work is ended for it, and what ran outside is only read. Without a session there is nothing to forget.
fn is_at_rest(view: &View) -> bool {
    let rests = view.outcome.is_some() || view.status == Status::Running;
    rests && view.messages_waiting == 0 && view.approvals_open.is_empty() && view.imported.is_none()
}
