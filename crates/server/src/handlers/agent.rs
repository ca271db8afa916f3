//! AgentService.

use ostler_wire::{
    from_proto,
    pb::{self, agent_service_server::AgentService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{change, invalid, refused};
use crate::Served;

#[async_trait]
impl AgentService for Served {
    async fn add_agent(
        &self,
        request: Request<pb::AddAgentRequest>,
    ) -> Result<Response<pb::AddAgentResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::AddAgentRequest { campaign, name, settings, .. } = request.into_inner();
        let name = from_proto::id(&name, "name").map_err(invalid)?;
        let agent = self.engine.add_agent(&campaign, name, &settings, change).await.map_err(refused)?;
        Ok(Response::new(pb::AddAgentResponse { agent: Some(to_proto::agent(&agent)) }))
    }

    async fn get_agent(
        &self,
        request: Request<pb::GetAgentRequest>,
    ) -> Result<Response<pb::GetAgentResponse>, Status> {
        let agent = self.engine.agent(&request.get_ref().who).await.map_err(refused)?;
        let used = self.engine.agent_used(&agent).await.map_err(refused)?;
        Ok(Response::new(pb::GetAgentResponse {
            agent: Some(to_proto::agent(&agent)),
            used: used.as_ref().map(to_proto::agent_use),
        }))
    }

    async fn list_agents(
        &self,
        request: Request<pb::ListAgentsRequest>,
    ) -> Result<Response<pb::ListAgentsResponse>, Status> {
        let pb::ListAgentsRequest { campaign, limit, cursor } = request.into_inner();
        let campaign = match campaign {
            Some(campaign) => Some(self.engine.campaign(&campaign).await.map_err(refused)?.id),
            None => None,
        };
        let page = from_proto::page(limit, &cursor).map_err(invalid)?;
        let listed = self.engine.agents(campaign, page).await.map_err(refused)?;
        Ok(Response::new(pb::ListAgentsResponse {
            agents: listed.rows.iter().map(to_proto::agent).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn set_agent(
        &self,
        request: Request<pb::SetAgentRequest>,
    ) -> Result<Response<pb::SetAgentResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::SetAgentRequest { who, settings, .. } = request.into_inner();
        let agent = self.engine.set_agent(&who, &settings, change).await.map_err(refused)?;
        Ok(Response::new(pb::SetAgentResponse { agent: Some(to_proto::agent(&agent)) }))
    }

    async fn remove_agent(
        &self,
        request: Request<pb::RemoveAgentRequest>,
    ) -> Result<Response<pb::RemoveAgentResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let agent = self.engine.remove_agent(&request.get_ref().who, change).await.map_err(refused)?;
        Ok(Response::new(pb::RemoveAgentResponse { agent: Some(to_proto::agent(&agent)) }))
    }
}
