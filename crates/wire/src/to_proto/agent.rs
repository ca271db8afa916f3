//! Agents.

use ostler_domain::{agent::Agent, budget::Used};

use super::time;
use crate::pb;

pub fn agent(agent: &Agent) -> pb::Agent {
    pb::Agent {
        id: agent.id.to_string(),
        campaign_id: agent.campaign.to_string(),
        name: agent.name.to_string(),
        role: agent.profile.role.to_string(),
        added_time: Some(time(agent.added)),
        settings: agent.profile.settings(),
    }
}

pub fn agent_use(used: &Used) -> pb::AgentUse {
    pb::AgentUse { tokens: used.tokens, micro_usd: used.dollars.0, unpriced: used.unpriced.clone() }
}
