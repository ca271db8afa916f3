//! Agents: registering identities, finding them again, letting them go.

use ostler_domain::{
    AgentId, CampaignId, Event, Name, Reason, Refusal,
    agent::{Agent, Profile},
    campaign::Campaign,
    event::{AgentChanged, AgentRemoved},
    limits::PAGE_MOST,
    query::{Listed, Page, Scope, SessionFilter},
    text::one_line,
};
use ostler_store::{Commit, CommitError, Urgency};

use crate::{
    Change, Engine,
    audit::{Decision, Entry, Who},
    clock::entropy,
};

impl Engine {
    /// Registers an agent. The same one again is answered with the agent that it is.
    pub async fn add_agent(
        &self,
        campaign: &str,
        name: Name,
        settings: &[String],
        change: Change,
    ) -> Result<Agent, Refusal> {
        let campaign = self.campaign(campaign).await?;
        let profile = Profile::default().changed_by(settings).map_err(|fault| {
            Refusal::invalid(fault.to_string())
                .hint("ostler agent add --help", "lists what can be said of it")
        })?;
        self.check_account(profile.provider.as_deref(), profile.auth_profile.as_ref())?;
        let fingerprint = format!("add_agent {} {name} {}", campaign.id, settings.join("\n"));
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.agent(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        if let Some(there) = self.shared.store.agent_named(campaign.id, name.as_str()).await? {
            if there.profile == profile {
                return Ok(there);
            }
            return Err(Refusal::new(
                Reason::NameTaken,
                format!("there is an agent {name} in {} already", campaign.name),
            )
            .hint(format!("ostler agent show {}/{name}", campaign.name), "says what it is")
            .hint(format!("ostler agent set {}/{name} KEY=VALUE", campaign.name), "changes it"));
        }
        self.check_no_agent_alike(&campaign, &name).await?;
        self.check_no_session_named(campaign.id, &name).await?;
        let now = self.shared.clock.now().wall;
        let id = AgentId::new(now, entropy());
        let agent = Agent { id, campaign: campaign.id, name, added: now, profile };
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::AgentAdded(Box::new(agent.clone())))],
            session: None,
            request: change.done(&fingerprint, agent.id.to_string()),
        };
        match self.shared.store.commit(commit).await {
            Ok(_) => {
                self.note_agent(&change, "agent.add", &agent, settings.join(" "));
                Ok(agent)
            }
            Err(CommitError::RequestDone { reply, .. }) => self.agent(&reply).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Keys name agents, and are found in any case: two whose names differ in that alone would have each other's.
    async fn check_no_agent_alike(&self, campaign: &Campaign, name: &Name) -> Result<(), Refusal> {
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let listed = self.shared.store.agents(Some(campaign.id), page).await?;
            let is_alike = |other: &&Agent| other.name.as_str().eq_ignore_ascii_case(name.as_str());
            if let Some(other) = listed.rows.iter().find(is_alike) {
                return Err(Refusal::new(
                    Reason::NameTaken,
                    format!("there is an agent {} in {} already", other.name, campaign.name),
                )
                .because("keys of conversations name agents, and are found in any case")
                .hint(format!("ostler agent show {}/{}", campaign.name, other.name), "says what it is"));
            }
            match listed.next_cursor {
                Some(next) => page = Page::of(PAGE_MOST, Some(next)),
                None => return Ok(()),
            }
        }
    }

    /// A name means one thing in its campaign: an agent, or somebody's session.
    async fn check_no_session_named(&self, campaign: CampaignId, name: &Name) -> Result<(), Refusal> {
        let filter = SessionFilter {
            scope: Scope::NotEnded,
            campaigns: vec![campaign],
            name: Some(name.to_string()),
            ..SessionFilter::default()
        };
        let Some(holder) = self.shared.store.list_sessions(&filter, Page::of(1, None)).await?.rows.pop()
        else {
            return Ok(());
        };
        Err(Refusal::new(Reason::NameTaken, format!("{name} is the name of a session that has not ended"))
            .because(format!("session {} is {}", holder.id.short(), holder.status.as_str()))
            .hint(format!("ostler stop {}", holder.id.short()), "ends it; the name is free then"))
    }

    /// The agent of an id, a name, `CAMPAIGN/NAME` or `CAMPAIGN/ROLE/NAME`.
    pub async fn agent(&self, who: &str) -> Result<Agent, Refusal> {
        self.find_agent(who).await?.ok_or_else(|| unknown(who))
    }

    pub(crate) async fn find_agent(&self, who: &str) -> Result<Option<Agent>, Refusal> {
        let store = &self.shared.store;
        if let Ok(id) = who.parse::<AgentId>() {
            return Ok(store.agent(id).await?);
        }
        let parts: Vec<&str> = who.split('/').collect();
        let found = match parts.as_slice() {
            [name] => {
                let found = store.agents_named(name).await?;
                if found.len() > 1 {
                    return Err(self.several(who, &found).await?);
                }
                found.into_iter().next()
            }
            [campaign, name] => store.agent_named(self.campaign(campaign).await?.id, name).await?,
            [campaign, role, name] => {
                let found = store.agent_named(self.campaign(campaign).await?.id, name).await?;
                found.filter(|agent| agent.profile.role.as_str() == *role)
            }
            _ => None,
        };
        Ok(found)
    }

    async fn several(&self, who: &str, found: &[Agent]) -> Result<Refusal, Refusal> {
        let mut refusal =
            Refusal::new(Reason::Ambiguous, format!("\"{}\" fits {} agents", one_line(who, 64), found.len()));
        let mut shown = Vec::new();
        for agent in found {
            let Some(row) = self.shared.store.campaign(agent.campaign).await? else { continue };
            let campaign = &row.campaign.name;
            shown.push(agent.address(campaign.as_str()));
            let one = format!("ostler agent show {campaign}/{}", agent.name);
            refusal = refusal.hint(one, format!("the one in {campaign}"));
        }
        Ok(refusal.because(shown.join(" · ")))
    }

    /// The registered agents of a campaign, or all, oldest first.
    pub async fn agents(&self, campaign: Option<CampaignId>, page: Page) -> Result<Listed<Agent>, Refusal> {
        Ok(self.shared.store.agents(campaign, page).await?)
    }

    /// Changes what an agent's sessions are started with, from the next one on.
    pub async fn set_agent(&self, who: &str, settings: &[String], change: Change) -> Result<Agent, Refusal> {
        let fingerprint = format!("set_agent {who} {}", settings.join("\n"));
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.agent(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let mut agent = self.agent(who).await?;
        agent.profile = agent.profile.changed_by(settings).map_err(|fault| {
            let show = format!("ostler agent show {}", agent.id);
            Refusal::invalid(fault.to_string()).hint(show, "shows its keys and their values")
        })?;
        self.check_account(agent.profile.provider.as_deref(), agent.profile.auth_profile.as_ref())?;
        let changed = AgentChanged {
            id: agent.id,
            settings: settings.to_vec(),
            profile: agent.profile.clone(),
            by: change.by.clone(),
        };
        let request = change.done(&fingerprint, agent.id.to_string());
        self.record_nodes(vec![Event::AgentChanged(Box::new(changed))], request).await?;
        self.note_agent(&change, "agent.set", &agent, settings.join(" "));
        self.shared.accounts.changed(agent.campaign);
        Ok(agent)
    }

    /// Forgets an agent of which nothing runs. Its conversations and their record stay.
    pub async fn remove_agent(&self, who: &str, change: Change) -> Result<Agent, Refusal> {
        let fingerprint = format!("remove_agent {who}");
        if let Some(done) = change.done_before(&self.shared.store, &fingerprint).await? {
            return self.agent(&done).await;
        }
        let _naming = self.shared.naming.lock().await;
        let agent = self.agent(who).await?;
        let filter = SessionFilter {
            scope: Scope::NotEnded,
            campaigns: vec![agent.campaign],
            agents: vec![agent.name.to_string()],
            ..SessionFilter::default()
        };
        if let Some(live) = self.shared.store.list_sessions(&filter, Page::of(1, None)).await?.rows.pop() {
            return Err(Refusal::new(Reason::ConversationBusy, format!("{} is at work", agent.name))
                .because(format!("session {} is {}", live.id.short(), live.status.as_str()))
                .hint(format!("ostler stop {}", live.id.short()), "ends it in an orderly way"));
        }
        let removed = AgentRemoved { id: agent.id, by: change.by.clone() };
        let request = change.done(&fingerprint, agent.id.to_string());
        self.record_nodes(vec![Event::AgentRemoved(removed)], request).await?;
        self.note_agent(&change, "agent.remove", &agent, String::new());
        Ok(agent)
    }

    fn note_agent(&self, change: &Change, action: &'static str, agent: &Agent, reason: String) {
        self.shared.audit.write(&Entry {
            time: self.shared.clock.now().wall,
            actor: Who::of(change),
            action,
            object: format!("{} {}", agent.id, agent.name),
            decision: Decision::Allowed,
            reason,
            policy: None,
        });
    }
}

impl Engine {
    /// Refuses an account that there is not: of the provider, or of any where nobody says which.
    pub(crate) fn check_account(
        &self,
        provider: Option<&str>,
        account: Option<&Name>,
    ) -> Result<(), Refusal> {
        let Some(name) = account else { return Ok(()) };
        let providers = &self.shared.options.providers;
        if let Some(provider) = provider {
            return providers.of_account(provider, Some(name)).map(drop);
        }
        let all = providers.all()?;
        if all.values().any(|settings| settings.profiles.contains_key(name.as_str())) {
            return Ok(());
        }
        let known = all.iter().flat_map(|(provider, settings)| {
            settings.profiles.keys().map(move |profile| format!("{profile} of {provider}"))
        });
        let known: Vec<String> = known.collect();
        let why = if known.is_empty() {
            "no provider has profiles on this machine".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        Err(Refusal::invalid(format!("no provider has a profile {name}")).because(why).hint(
            format!("ostler config set providers.NAME.profiles.{name}.api_key_env VARIABLE"),
            "makes one, by the variable that has its key",
        ))
    }
}

fn unknown(who: &str) -> Refusal {
    Refusal::new(Reason::AgentUnknown, format!("there is no agent \"{}\"", one_line(who, 64)))
        .hint("ostler agent ls", "lists those there are")
        .hint("ostler agent add NAME", "registers one in the campaign where you stand")
}
