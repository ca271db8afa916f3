//! Agents.

use ostler_domain::{
    agent::{Agent, Profile},
    budget::Used,
    price::Dollars,
};

use super::{Result, id, required_time};
use crate::{InvalidField, pb};

pub fn agent(agent: pb::Agent) -> Result<Agent> {
    // A daemon of a later version has keys that this one does not know: they are the daemon's to obey.
    let known = |profile: Profile, setting: &String| profile.changed_by([setting]).unwrap_or(profile);
    let mut profile = agent.settings.iter().fold(Profile::default(), known);
    profile.role = agent.role.parse().map_err(|error| InvalidField::new("role", error))?;
    Ok(Agent {
        id: id(&agent.id, "id")?,
        campaign: id(&agent.campaign_id, "campaign_id")?,
        name: id(&agent.name, "name")?,
        added: required_time(agent.added_time, "added_time")?,
        profile,
    })
}

pub fn agent_use(used: pb::AgentUse) -> Used {
    Used { tokens: used.tokens, dollars: Dollars(used.micro_usd), unpriced: used.unpriced }
}
