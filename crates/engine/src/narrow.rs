//! What a session may have that an agent asks for: no right that the agent itself lacks, and no provider but those that its
//! campaign works with.

use ostler_domain::{
    Reason, Refusal, SessionId, campaign::Campaign, limits::PAGE_MOST, policy::Rights, query::Page,
    session::Created, text::one_line,
};

use crate::Engine;

impl Engine {
    /// The campaign as a session of this provider has it that another session asked for: without the rights that this one
    /// was started without.
    pub(crate) async fn campaign_for(
        &self,
        campaign: Campaign,
        asker: Option<SessionId>,
        provider: &str,
    ) -> Result<Campaign, Refusal> {
        let Some(asker) = asker else { return Ok(campaign) };
        let asker = self.state_of(asker).await?;
        let asker = asker.created();
        let usual = |provider: &str| Ok::<_, Refusal>(self.shared.provider(provider)?.usual_network());
        let own = Rights { policy: &campaign.policy, usual_network: usual(provider)? };
        let theirs = Rights { policy: &asker.policy, usual_network: usual(&asker.config.provider)? };
        let policy = own.narrowed_to(&theirs);
        Ok(Campaign { policy, ..campaign })
    }

    /// An agent has others work with its own provider, or with one that a person has chosen for its campaign: the campaign's
    /// usual one, the machine's, or a registered agent's. Each has an account of its own and a network of its own.
    pub(crate) async fn check_may_choose(&self, asker: &Created, provider: &str) -> Result<(), Refusal> {
        let campaign = self.campaign(&asker.campaign.to_string()).await?;
        let usual = campaign.policy.provider.clone();
        let usual = usual.or(self.shared.options.providers.default()?);
        if provider == asker.config.provider || usual.as_deref() == Some(provider) {
            return Ok(());
        }
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let agents = self.shared.store.agents(Some(campaign.id), page).await?;
            if agents.rows.iter().any(|agent| agent.profile.provider.as_deref() == Some(provider)) {
                return Ok(());
            }
            match agents.next_cursor {
                Some(next) => page = Page::of(PAGE_MOST, Some(next)),
                None => break,
            }
        }
        let (shown, name) = (one_line(provider, 64), &campaign.name);
        let grant = format!("ostler agent add -C {name} -p {shown} NAME");
        let target = format!("{shown} by session {}", asker.id.short());
        self.denied(target, "provider", &grant).await?;
        Err(Refusal::new(Reason::PermissionDenied, format!("agents of {name} do not choose {shown}"))
            .because(format!(
                "an agent has others work with its own provider ({}), the usual one, or one of a registered agent",
                asker.config.provider
            ))
            .hint(grant, "registers an agent that works with it; then the others may choose it too"))
    }
}
