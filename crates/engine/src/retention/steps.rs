//! Doing what a rule says with one session. It is looked at once more first: it may have been gone on with meanwhile.

use std::time::Duration;

use ostler_domain::{
    ConversationId, Event, Reason, Refusal,
    event::{DeletionMarked, SessionArchived, SessionDeleted, SessionRestored},
    limits::PAGE_MOST,
    retention::{Planned, Step},
};

use super::needed::Needed;
use crate::{Change, Engine, fault};

/// How long whoever has something deleted waits for it to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(30);

impl Engine {
    /// Does what was planned, if the rules still say so. What stands against it, or went wrong, is said in the answer.
    pub async fn follow(&self, planned: Planned, change: &Change) -> Result<Planned, Refusal> {
        let _at_work = self.shared.retention.at_work.lock().await;
        match self.follow_one(&planned, change).await {
            Ok(followed) => Ok(followed),
            Err(refusal) if refusal.reason == Reason::ShuttingDown => Err(refusal),
            // Others are not to stay as they are for it.
            Err(refusal) => Ok(Planned { spared: Some(refusal.to_string()), ..planned }),
        }
    }

    async fn follow_one(&self, planned: &Planned, change: &Change) -> Result<Planned, Refusal> {
        // Nobody goes on with it from here on.
        let naming = self.shared.naming.lock().await;
        let store = &self.shared.store;
        let id = planned.standing.session;
        let unknown = || Refusal::new(Reason::SessionUnknown, format!("there is no session {id}"));
        let candidate = store.retention_candidate(id).await?.ok_or_else(unknown)?;
        let rules = self.rules_of(candidate.standing.campaign).await?;
        let now = self.shared.clock.now().wall;
        let needed = Needed::now(store).await?;
        let Some(again) = self.judge(&candidate, &rules, &needed, now).await? else {
            return Ok(Planned {
                spared: Some("nothing is to be done any more".to_owned()),
                ..planned.clone()
            });
        };
        if again.spared.is_some() {
            return Ok(again);
        }
        let (rule, by) = (again.rule.clone(), change.by.clone());
        match again.step {
            Step::Mark { due } => {
                let marked = DeletionMarked { session: id, due, rule, by };
                self.record_nodes(vec![Event::DeletionMarked(marked)], None).await?;
            }
            Step::Unmark => {
                let restored = SessionRestored { session: id, why: rule, by_rule: true, by };
                self.record_nodes(vec![Event::SessionRestored(restored)], None).await?;
            }
            Step::Delete => {
                fault::point("retention");
                let mut gone = self.shared.retention.gone.subscribe();
                let deleted = SessionDeleted { session: id, rule, by };
                self.record_nodes(vec![Event::SessionDeleted(deleted)], None).await?;
                fault::point("retention");
                drop(naming);
                // The words and the files follow. Whoever hears that it is deleted finds nothing of it any more, unless
                // that takes very long.
                let _ = tokio::time::timeout(GONE_WITHIN, gone.wait_for(|last| *last == Some(id))).await;
            }
            Step::Archive => {
                // Compressing takes its time, and does no harm to whoever goes on with it.
                drop(naming);
                let (bytes, archived_bytes) = self.compress(&candidate).await?;
                fault::point("retention");
                let archived = SessionArchived { session: id, rule, bytes, archived_bytes, by };
                self.record_nodes(vec![Event::SessionArchived(archived)], None).await?;
                fault::point("retention");
            }
        }
        let action = match again.step {
            Step::Archive => "retention.archive",
            Step::Mark { .. } => "retention.mark",
            Step::Unmark => "retention.unmark",
            Step::Delete => "retention.delete",
        };
        self.note_retention(change, action, &again.standing, again.rule.clone());
        Ok(again)
    }

    /// Of a conversation that is open again nothing is to be deleted because it had been removed.
    pub(crate) async fn call_off(&self, id: ConversationId, change: &Change) -> Result<(), Refusal> {
        let store = &self.shared.store;
        for view in store.sessions_of_conversation(id, PAGE_MOST).await? {
            let candidate = store.retention_candidate(view.id).await?;
            let Some(candidate) = candidate.filter(|found| found.standing.kept.due.is_some()) else {
                continue;
            };
            let rules = self.rules_of(candidate.standing.campaign).await?;
            let (needed, now) = (Needed::now(store).await?, self.shared.clock.now().wall);
            let planned = self.judge(&candidate, &rules, &needed, now).await?;
            if let Some(planned) = planned.filter(|planned| planned.step == Step::Unmark) {
                self.follow(planned, change).await?;
            }
        }
        Ok(())
    }

    async fn rules_of(
        &self,
        campaign: ostler_domain::CampaignId,
    ) -> Result<ostler_domain::retention::Rules, Refusal> {
        let machine = self.shared.options.providers.retention()?;
        let own = self.shared.store.recorded_campaigns().await?.into_iter().find(|row| row.id == campaign);
        Ok(own.map_or(machine, |row| row.policy.retention.or(machine)))
    }
}
