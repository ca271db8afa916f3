//! A campaign, and the agents that are registered in it.

use ostler_client::{Agent, Campaign};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rfc3339;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Campaign")]
pub struct CampaignForm {
    id: String,
    name: String,
    path: String,
    added: String,
    policy: Vec<PolicyForm>,
    tracked_hidden: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwatched: Option<String>,
}

/// One key of a campaign's policy, its value, and who says so.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Policy")]
struct PolicyForm {
    key: &'static str,
    value: String,
    origin: &'static str,
}

impl CampaignForm {
    pub fn new(campaign: &Campaign) -> Self {
        Self {
            id: campaign.id.to_string(),
            name: campaign.name.to_string(),
            path: campaign.root.path.clone(),
            added: rfc3339(campaign.added),
            tracked_hidden: campaign.tracked_hidden.clone(),
            unwatched: campaign.unwatched.clone(),
            policy: campaign
                .policy
                .lines()
                .into_iter()
                .map(|line| PolicyForm { key: line.key, value: line.value, origin: line.origin.as_str() })
                .collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub struct AgentForm {
    id: String,
    name: String,
    role: String,
    campaign: String,
    address: String,
    provider: Option<String>,
    model: Option<String>,
    auth_profile: Option<String>,
    system_prompt: Option<String>,
    budget: Option<String>,
    added: String,
}

impl AgentForm {
    pub fn new(agent: &Agent, campaign: &str) -> Self {
        let Agent { profile, .. } = agent;
        Self {
            id: agent.id.to_string(),
            name: agent.name.to_string(),
            role: profile.role.to_string(),
            campaign: campaign.to_string(),
            address: agent.address(campaign),
            provider: profile.provider.clone(),
            model: profile.model.clone(),
            auth_profile: profile.auth_profile.as_ref().map(ToString::to_string),
            system_prompt: profile.system_prompt.clone(),
            budget: profile.budgets(),
            added: rfc3339(agent.added),
        }
    }
}
