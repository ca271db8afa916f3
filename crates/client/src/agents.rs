//! Agents: named identities in campaigns.

use ostler_domain::{
    Name,
    agent::Agent,
    budget::Used,
    query::{Listed, Page},
};
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, agent_service_client::AgentServiceClient as Service},
    to_proto,
};

use crate::{Client, Error};

impl Client {
    /// Registers an agent in a campaign, with settings such as `model=gpt-5.5`. One that is registered just so already is
    /// returned as it is.
    pub async fn add_agent(
        &self,
        campaign: &str,
        name: &Name,
        settings: Vec<String>,
    ) -> Result<Agent, Error> {
        let request = pb::AddAgentRequest {
            request_id: self.request_id().to_string(),
            campaign: campaign.to_owned(),
            name: name.to_string(),
            settings,
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).add_agent(request.clone()).await
            })
            .await?;
        Ok(read(answer.agent)?)
    }

    /// Returns an agent by its name, `CAMPAIGN/NAME`, `CAMPAIGN/ROLE/NAME` or id.
    pub async fn agent(&self, who: &str) -> Result<Agent, Error> {
        let request = pb::GetAgentRequest { who: who.to_owned() };
        let answer = self.ask(async |channel| Service::new(channel).get_agent(request.clone()).await).await?;
        Ok(read(answer.agent)?)
    }

    /// The same, with what its sessions and their helpers have used of its budget for a stretch of time.
    pub async fn agent_with_use(&self, who: &str) -> Result<(Agent, Option<Used>), Error> {
        let request = pb::GetAgentRequest { who: who.to_owned() };
        let answer = self.ask(async |channel| Service::new(channel).get_agent(request.clone()).await).await?;
        Ok((read(answer.agent)?, answer.used.map(from_proto::agent_use)))
    }

    /// Lists the agents of a campaign, or all, oldest first.
    pub async fn agents(&self, campaign: Option<&str>, page: Page) -> Result<Listed<Agent>, Error> {
        let request = pb::ListAgentsRequest {
            campaign: campaign.map(str::to_owned),
            limit: page.limit,
            cursor: to_proto::cursor(page.cursor),
        };
        let answer =
            self.ask(async |channel| Service::new(channel).list_agents(request.clone()).await).await?;
        Ok(from_proto::listed(answer.agents, &answer.next_cursor, from_proto::agent)?)
    }

    /// Changes what an agent's sessions are started with: all settings, or none.
    pub async fn set_agent(&self, who: &str, settings: Vec<String>) -> Result<Agent, Error> {
        let request =
            pb::SetAgentRequest { request_id: self.request_id().to_string(), who: who.to_owned(), settings };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).set_agent(request.clone()).await
            })
            .await?;
        Ok(read(answer.agent)?)
    }

    /// Forgets an agent of which nothing runs. Its conversations and their record stay.
    pub async fn remove_agent(&self, who: &str) -> Result<Agent, Error> {
        let request =
            pb::RemoveAgentRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).remove_agent(request.clone()).await
            })
            .await?;
        Ok(read(answer.agent)?)
    }
}

fn read(agent: Option<pb::Agent>) -> Result<Agent, InvalidField> {
    from_proto::agent(from_proto::required(agent, "agent")?).map_err(|e| e.within("agent"))
}
