//! Filters come with words that people type; the core's filters have ids. Replaces the ones by the others.

use ostler_domain::{
    Refusal,
    query::{EventFilter, SessionFilter},
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
        if let Some(campaign) = &mut filter.campaign {
            *campaign = self.engine.campaign(campaign).await.map_err(refused)?.id.to_string();
        }
        if let Some(chain) = &mut filter.chain {
            *chain = self.engine.session(chain).await.map_err(refused)?.chain.to_string();
        }
        if let Some(continues) = &mut filter.continues {
            *continues = self.session_id(continues).await.map_err(refused)?;
        }
        if let Some(ticket) = &mut filter.ticket {
            let campaign = match &filter.campaign {
                Some(campaign) => Some(from_proto::id(campaign, "campaign").map_err(invalid)?),
                None => None,
            };
            *ticket = self.engine.ticket_word(ticket, campaign).await.map_err(refused)?;
        }
        if let Some(mission) = &mut filter.mission {
            *mission = self.engine.mission(mission).await.map_err(refused)?.id.to_string();
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
