//! Filters come with words that people type; the core's filters have ids. Replaces the ones by the others.

use ostler_domain::{
    Refusal,
    query::{EventFilter, SessionFilter, words},
};
use ostler_wire::{from_proto, pb};
use tonic::Status;

use super::{invalid, refused};
use crate::Served;

impl Served {
    pub(super) async fn session_filter(
        &self,
        filter: Option<pb::SessionFilter>,
    ) -> Result<SessionFilter, Status> {
        let mut filter = filter.unwrap_or_default();
        self.resolve_sessions(&mut filter).await?;
        from_proto::session_filter(filter).map_err(invalid)
    }

    pub(super) async fn resolve_sessions(&self, filter: &mut pb::SessionFilter) -> Result<(), Status> {
        let mut campaigns = Vec::new();
        if let Some(campaign) = &mut filter.campaign {
            for named in words(campaign) {
                campaigns.push(self.engine.campaign(named).await.map_err(refused)?.id);
            }
            *campaign = listed(&campaigns);
        }
        if let Some(chain) = &mut filter.chain {
            let mut chains = Vec::new();
            for who in words(chain) {
                chains.push(self.engine.session(who).await.map_err(refused)?.chain);
            }
            *chain = listed(&chains);
        }
        if let Some(continues) = &mut filter.continues {
            *continues = self.session_id(continues).await.map_err(refused)?;
        }
        if let Some(ticket) = &mut filter.ticket {
            // Two campaigns may have one of the same name.
            let campaign = if let [one] = campaigns.as_slice() { Some(*one) } else { None };
            let mut tickets = Vec::new();
            for named in words(ticket) {
                tickets.push(self.engine.ticket_word(named, campaign).await.map_err(refused)?);
            }
            *ticket = listed(&tickets);
        }
        if let Some(mission) = &mut filter.mission {
            let mut missions = Vec::new();
            for named in words(mission) {
                missions.push(self.engine.mission(named).await.map_err(refused)?.id);
            }
            *mission = listed(&missions);
        }
        for provider in filter.provider.iter().flat_map(|provider| words(provider)) {
            self.engine.is_a_provider(provider).await.map_err(refused)?;
        }
        Ok(())
    }

    pub(super) async fn event_filter(&self, filter: Option<pb::EventFilter>) -> Result<EventFilter, Status> {
        let mut filter = filter.unwrap_or_default();
        self.resolve_events(&mut filter).await?;
        from_proto::event_filter(filter).map_err(invalid)
    }

    pub(super) async fn resolve_events(&self, filter: &mut pb::EventFilter) -> Result<(), Status> {
        if let Some(session) = &mut filter.session {
            *session = self.session_id(session).await.map_err(refused)?;
        }
        if let Some(sessions) = &mut filter.sessions {
            self.resolve_sessions(sessions).await?;
        }
        Ok(())
    }

    async fn session_id(&self, who: &str) -> Result<String, Refusal> {
        Ok(self.engine.session(who).await?.id.to_string())
    }
}

/// As a filter has it; one that named nothing still does, and is refused.
fn listed<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
