//! How many registered agents need each provider.

use std::collections::BTreeMap;

use ostler_client::{Campaign, Client};
use ostler_domain::agent::Agent;

use crate::{failure::Failure, listing::Found};

pub(super) async fn count(
    client: &Client,
    campaigns: &[Campaign],
    usual: Option<&str>,
) -> Result<BTreeMap<String, u64>, Failure> {
    let agents = Found::paged(None, None, async |page| client.agents(None, page).await).await?.rows;
    Ok(counted(&agents, campaigns, usual))
}

/// An agent's own provider, else its campaign's, else the machine's.
fn counted(agents: &[Agent], campaigns: &[Campaign], usual: Option<&str>) -> BTreeMap<String, u64> {
    let mut users = BTreeMap::new();
    for agent in agents {
        let campaign = campaigns.iter().find(|campaign| campaign.id == agent.campaign);
        let of_campaign = || campaign.and_then(|campaign| campaign.policy.provider.as_deref());
        let provider = agent.profile.provider.as_deref().or_else(of_campaign).or(usual);
        if let Some(provider) = provider {
            *users.entry(provider.to_owned()).or_default() += 1;
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use ostler_domain::{AgentId, agent::Profile};

    use super::*;
    use crate::testing::{self, NOW};

    #[test]
    fn agents_count_for_the_provider_that_their_sessions_get() {
        let mut campaign = testing::campaign();
        let agent = |n: u128, provider: Option<&str>| Agent {
            id: AgentId::new(NOW, n),
            campaign: testing::campaign().id,
            name: format!("agent-{n}").parse().unwrap(),
            added: NOW,
            profile: Profile { provider: provider.map(str::to_owned), ..Profile::default() },
        };
        let agents = [agent(1, Some("codex")), agent(2, None), agent(3, Some("codex"))];
        let counts = |campaign: &Campaign, usual| {
            counted(&agents, std::slice::from_ref(campaign), usual).into_iter().collect::<Vec<_>>()
        };
        let of = |name: &str, n: u64| (name.to_owned(), n);
        assert_eq!(counts(&campaign, None), [of("codex", 2)]);
        assert_eq!(counts(&campaign, Some("openclaw")), [of("codex", 2), of("openclaw", 1)]);
        campaign.policy.provider = Some("claude-code".to_owned());
        assert_eq!(counts(&campaign, Some("openclaw")), [of("claude-code", 1), of("codex", 2)]);
    }
}
