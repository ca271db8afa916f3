//! What an agent may use in a stretch of time, whichever sessions and helpers it has.

use ostler_domain::{
    AgentId, Refusal, SessionId,
    agent::Agent,
    budget::Used,
    campaign::Campaign,
    session::{BudgetUse, Config, Created},
};

use crate::{
    Engine,
    accounts::{Owner, check_left},
    shared::Shared,
};

impl Shared {
    /// What an agent's sessions and their helpers have used of its budget.
    pub(crate) async fn agent_use(&self, agent: &Agent) -> Result<BudgetUse, Refusal> {
        let owner = Owner::Agent(Box::new(agent.clone()));
        self.budget_use(owner, agent.name.to_string(), agent.profile.period_budget).await
    }

    /// The agent with such a budget that a session works for: its own, or that of whoever it helps.
    pub(crate) async fn budgeted_agent(
        &self,
        own: Option<AgentId>,
        asker: Option<SessionId>,
    ) -> Result<Option<Agent>, Refusal> {
        let id = match (own, asker) {
            (Some(own), _) => Some(own),
            (None, Some(asker)) => self.store.agent_worked_for(asker).await?,
            (None, None) => None,
        };
        let Some(id) = id else { return Ok(None) };
        Ok(self.store.agent(id).await?.filter(|agent| agent.profile.period_budget.is_some()))
    }

    /// How the campaign and the agent of a session stand against their budgets.
    pub(crate) async fn uses(
        &self,
        campaign: &Campaign,
        created: &Created,
    ) -> Result<(BudgetUse, BudgetUse), Refusal> {
        Ok((self.campaign_use(campaign).await?, self.use_of_agent(created).await?))
    }

    /// How the agent of a session stands; without a budget where it has none.
    async fn use_of_agent(&self, created: &Created) -> Result<BudgetUse, Refusal> {
        let own = created.agent.as_ref().map(|agent| agent.id);
        match self.budgeted_agent(own, created.spawned_by).await? {
            Some(agent) => self.agent_use(&agent).await,
            None => Ok(BudgetUse::default()),
        }
    }
}

impl Engine {
    /// What an agent has used of its budget; none where it has none.
    pub async fn agent_used(&self, agent: &Agent) -> Result<Option<Used>, Refusal> {
        let used = self.shared.agent_use(agent).await?;
        Ok(used.budget.map(|_| used.used))
    }

    /// Refuses a session that its agent has nothing left for, or whose calls nobody could count against its dollars.
    pub(crate) async fn check_agent_budget(
        &self,
        own: Option<AgentId>,
        asker: Option<SessionId>,
        campaign: &Campaign,
        config: &Config,
    ) -> Result<(), Refusal> {
        let Some(agent) = self.shared.budgeted_agent(own, asker).await? else { return Ok(()) };
        self.check_priced(agent.profile.period_budget.and_then(|budget| budget.dollars), config)?;
        let usage = self.shared.agent_use(&agent).await?;
        let (name, command) = (&agent.name, format!("ostler agent set {}/{}", campaign.name, agent.name));
        check_left(&usage, config.billing, &format!("agent {name}"), &command)
    }
}
