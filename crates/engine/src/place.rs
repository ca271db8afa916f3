//! Where a new session stands: in a conversation of its own, or in one that an agent has.

use ostler_domain::{
    Budget, ConversationId, Event, Name, Reason, Refusal, SessionId,
    agent::Agent,
    campaign::Campaign,
    conversation::{Conversation, Entry, Key, reset_word},
    event::ConversationOpened,
    message::Said,
    session::{AgentRef, Begin, State, View},
};

use crate::{Engine, NewSession, clock::entropy, conversation::check_key, handoff::Handed, shared::Shared};

/// Where a new session stands in its row of sessions.
pub(crate) struct Place {
    pub(crate) id: SessionId,
    pub(crate) conversation: ConversationId,
    pub(crate) name: Name,
    pub(crate) agent: Option<AgentRef>,
    pub(crate) continues: Option<SessionId>,
    pub(crate) chain: SessionId,
    pub(crate) spawned_by: Option<SessionId>,
    /// Whose rights it may not exceed beside its asker's.
    pub(crate) bounded_by: Option<SessionId>,
    pub(crate) restart_count: u32,
    pub(crate) short_lives: u32,
    pub(crate) begin: Begin,
}

impl Place {
    /// The first session of a conversation.
    pub(crate) fn first(id: SessionId, conversation: ConversationId, name: Name, begin: Begin) -> Place {
        Place {
            id,
            conversation,
            name,
            agent: None,
            continues: None,
            chain: id,
            spawned_by: None,
            bounded_by: None,
            restart_count: 0,
            short_lives: 0,
            begin,
        }
    }

    /// The session after another one of the same conversation.
    pub(crate) fn after(id: SessionId, old: &State, begin: Begin) -> Place {
        let before = old.created();
        Place {
            id,
            conversation: before.conversation,
            name: before.name.clone(),
            agent: before.agent.clone(),
            continues: Some(before.id),
            chain: before.chain,
            spawned_by: before.spawned_by,
            bounded_by: None,
            restart_count: before.restart_count + 1,
            short_lives: 0,
            begin,
        }
    }
}

/// A place, and what must be recorded with whoever takes it.
pub(crate) struct Placed {
    pub(crate) place: Place,
    pub(crate) opened: Option<Event>,
    /// What the session before never heard.
    pub(crate) carried: Vec<Said>,
    /// What it begins with beside its messages.
    pub(crate) told: Vec<Event>,
}

/// What an agent, and its conversation, say about a session of theirs.
pub(crate) struct Whose {
    pub(crate) agent: Option<Agent>,
    pub(crate) key: Key,
    pub(crate) entry: Entry,
    /// The conversation, where it is open.
    pub(crate) there: Option<Conversation>,
    /// The provider that the conversation was given.
    given: Option<String>,
}

impl Whose {
    fn nobody() -> Whose {
        Whose { agent: None, key: Key::main(), entry: Entry::default(), there: None, given: None }
    }

    /// Fills in what nobody said: the conversation's word, then the agent's.
    pub(crate) fn fill(&self, wanted: &mut NewSession, shared: &Shared) {
        let profile = self.agent.as_ref().map(|agent| &agent.profile);
        if wanted.provider.is_empty() {
            let own = profile.and_then(|profile| profile.provider.clone());
            wanted.provider = self.given.clone().or(own).unwrap_or_default();
        }
        // A model is one of its provider's: an agent's usual one means nothing to another.
        let is_own = profile
            .is_some_and(|profile| profile.provider.as_ref().is_none_or(|own| *own == wanted.provider));
        let usual = profile.filter(|_| is_own).and_then(|profile| profile.model.clone());
        wanted.model = wanted.model.take().or_else(|| self.entry.model_override.clone()).or(usual);
        let amount = profile.and_then(|profile| profile.budget);
        wanted.budget = wanted.budget.or_else(|| Some(Budget::new(amount?, wanted.when_used_up)));
        wanted.system_prompt = profile.and_then(|profile| profile.system_prompt.clone());
        let chosen = shared.account_given(&wanted.provider, &self.entry);
        let usual = profile.filter(|_| is_own).and_then(|profile| profile.auth_profile.clone());
        wanted.auth_profile = wanted.auth_profile.take().or(chosen).or(usual);
    }
}

impl Whose {
    /// Whether what is said first has the agent's conversation begin anew, as it does in a message. The word is no part of what
    /// the agent is told.
    pub(crate) fn takes_reset_word(&self, wanted: &mut NewSession) -> bool {
        let is_own = self.agent.is_some() && wanted.said.is_none() && wanted.handed.is_none();
        let rest = wanted.prompt.as_deref().filter(|_| is_own).and_then(reset_word).map(str::to_owned);
        let Some(rest) = rest else { return false };
        wanted.prompt = Some(rest).filter(|rest| !rest.is_empty());
        true
    }
}

impl Engine {
    /// Whose session is wanted, and what is noted about the conversation that it would be in.
    pub(crate) async fn whose(&self, wanted: &NewSession, campaign: &Campaign) -> Result<Whose, Refusal> {
        let named = wanted.agent.clone().or_else(|| {
            let agent = wanted.key.as_ref().and_then(Key::agent)?;
            Some(format!("{}/{agent}", campaign.name))
        });
        let Some(named) = named else {
            return match &wanted.key {
                None => Ok(Whose::nobody()),
                Some(_) => Err(Refusal::invalid("a key belongs to an agent")
                    .hint("ostler run --agent NAME --key KEY \"…\"", "says which")
                    .hint("ostler agent add NAME", "registers one")),
            };
        };
        let agent = match self.shared.store.agent_named(campaign.id, &named).await? {
            Some(agent) => agent,
            None => self.agent(&named).await?,
        };
        if agent.campaign != campaign.id {
            return Err(Refusal::new(
                Reason::AgentUnknown,
                format!("{} is an agent of another campaign, not of {}", agent.name, campaign.name),
            )
            .hint(format!("ostler agent add -C {} {}", campaign.name, agent.name), "registers one here"));
        }
        let key = check_key(&agent, wanted.key.as_ref().unwrap_or(&Key::main()))?;
        let there = self.shared.store.conversation_keyed(campaign.id, Some(agent.id), &key).await?;
        let entry = there.as_ref().map(|there| there.notes.entry.clone()).unwrap_or_default();
        let given = self.shared.provider_given(&entry);
        Ok(Whose { agent: Some(agent), key, entry, there, given })
    }

    /// Finds the place of a new session. Names are being chosen by nobody else meanwhile.
    pub(crate) async fn place(
        &self,
        wanted: &NewSession,
        whose: &Whose,
        campaign: &Campaign,
    ) -> Result<Placed, Refusal> {
        let now = self.shared.clock.now().wall;
        let id = wanted.id.unwrap_or_else(|| SessionId::new(now, entropy()));
        if let Some(handed) = &wanted.handed {
            return self.taking_over(id, handed, whose).await;
        }
        let Some(agent) = &whose.agent else {
            return match &wanted.helper {
                Some(key) => self.helping(id, wanted, key.clone(), campaign).await,
                None => self.adhoc(id, wanted, campaign).await,
            };
        };
        let agent_ref = AgentRef { id: agent.id, name: agent.name.clone(), role: agent.profile.role.clone() };
        let there = self.shared.store.conversation_keyed(campaign.id, Some(agent.id), &whose.key).await?;
        let Some(there) = there else {
            let conversation = ConversationId::new(now, entropy());
            let opened = self.opening(conversation, agent, whose.key.clone(), wanted.spawned_by, &[]).await?;
            let first = Place::first(id, conversation, opened.name.clone(), Begin::Fresh);
            let place = Place { agent: Some(agent_ref), spawned_by: wanted.spawned_by, ..first };
            let opened = Some(Event::ConversationOpened(Box::new(opened)));
            return Ok(Placed { place, opened, carried: Vec::new(), told: Vec::new() });
        };
        match self.last_session(there.id).await? {
            None => {
                let first = Place::first(id, there.id, there.name, Begin::Fresh);
                let place = Place { agent: Some(agent_ref), spawned_by: wanted.spawned_by, ..first };
                Ok(Placed { place, opened: None, carried: Vec::new(), told: Vec::new() })
            }
            Some(live) if live.outcome.is_none() => Err(busy(&there, &live)),
            Some(last) => {
                let loaded = self.shared.store.load_session(last.id).await?;
                let old = loaded.map(|loaded| loaded.state);
                let old =
                    old.ok_or_else(|| Refusal::internal(format!("session {} cannot be read", last.id)))?;
                let begin = self.shared.begin_after_with(&old, &wanted.provider).await?;
                let carried = self.carried(&old).await?;
                let place = Place { agent: Some(agent_ref), ..Place::after(id, &old, begin) };
                Ok(Placed { place, opened: None, carried, told: Vec::new() })
            }
        }
    }

    /// The place of whoever goes on with another one's work: in its conversation, or in one of the agent's that got it.
    async fn taking_over(&self, id: SessionId, handed: &Handed, whose: &Whose) -> Result<Placed, Refusal> {
        let Handed { old, pack } = handed;
        let before = old.created();
        if let Some(child) = self.shared.store.continued_by(before.id).await? {
            return Err(Refusal::new(
                Reason::WrongState,
                format!("the work of session {} has gone on already", before.id.short()),
            )
            .because(format!("session {} continues it", child.id.short()))
            .hint(format!("ostler handoff {}", child.id.short()), "hands on what that one does"));
        }
        let same = Place::after(id, old, Begin::Fresh);
        let own = before.agent.as_ref().map(|agent| agent.id);
        let (place, opened) = match whose.agent.as_ref().filter(|agent| own != Some(agent.id)) {
            None => (same, None),
            Some(agent) => {
                let key = Key::handed(before.chain);
                let there =
                    self.shared.store.conversation_keyed(agent.campaign, Some(agent.id), &key).await?;
                let (conversation, name, opened) = match there {
                    Some(there) => (there.id, there.name, None),
                    None => {
                        let conversation = ConversationId::new(self.shared.clock.now().wall, entropy());
                        let opened = self.opening(conversation, agent, key, before.spawned_by, &[]).await?;
                        let name = opened.name.clone();
                        (conversation, name, Some(Event::ConversationOpened(Box::new(opened))))
                    }
                };
                let agent =
                    AgentRef { id: agent.id, name: agent.name.clone(), role: agent.profile.role.clone() };
                (Place { conversation, name, agent: Some(agent), ..same }, opened)
            }
        };
        let carried = self.carried(old).await?;
        Ok(Placed { place, opened, carried, told: vec![Event::HandoffPacked(pack.clone())] })
    }

    /// A helper's conversation: opened for it, or the one that a helper for the same had.
    async fn helping(
        &self,
        id: SessionId,
        wanted: &NewSession,
        key: Key,
        campaign: &Campaign,
    ) -> Result<Placed, Refusal> {
        let there = self.shared.store.conversation_keyed(campaign.id, None, &key).await?;
        if let Some(there) = there {
            if let Some(live) = self.last_session(there.id).await?.filter(|live| live.outcome.is_none()) {
                return Err(busy(&there, &live));
            }
            let first = Place::first(id, there.id, there.name, Begin::Fresh);
            let place = Place { spawned_by: wanted.spawned_by, ..first };
            return Ok(Placed { place, opened: None, carried: Vec::new(), told: Vec::new() });
        }
        let Placed { place, .. } = self.adhoc(id, wanted, campaign).await?;
        let opened = ConversationOpened {
            spawned_by: wanted.spawned_by,
            ..ConversationOpened::new(place.conversation, campaign.id, key, place.name.clone())
        };
        let opened = Some(Event::ConversationOpened(Box::new(opened)));
        Ok(Placed { place, opened, carried: Vec::new(), told: Vec::new() })
    }

    /// A conversation that nobody registered an agent for, named after what it is told.
    async fn adhoc(
        &self,
        id: SessionId,
        wanted: &NewSession,
        campaign: &Campaign,
    ) -> Result<Placed, Refusal> {
        let slug = || wanted.prompt.as_deref().and_then(Name::slug).or_else(|| Name::slug(&wanted.provider));
        let made = |n: u32| {
            let slug = slug().unwrap_or_else(|| unreachable!("a provider's name is a name"));
            if n == 1 { slug } else { slug.numbered(n) }
        };
        let name = self.free_name(campaign.id, wanted.name.as_ref(), made).await?;
        let conversation = ConversationId::new(self.shared.clock.now().wall, entropy());
        let opened = ConversationOpened {
            spawned_by: wanted.spawned_by,
            ..ConversationOpened::new(conversation, campaign.id, Key::adhoc(id), name.clone())
        };
        let place =
            Place { spawned_by: wanted.spawned_by, ..Place::first(id, conversation, name, Begin::Fresh) };
        let opened = Some(Event::ConversationOpened(Box::new(opened)));
        Ok(Placed { place, opened, carried: Vec::new(), told: Vec::new() })
    }
}

fn busy(there: &Conversation, live: &View) -> Refusal {
    Refusal::new(
        Reason::ConversationBusy,
        format!("the conversation {} has a session that has not ended", there.name),
    )
    .because(format!("session {} is {}", live.id.short(), live.status.as_str()))
    .hint(format!("ostler send {} \"…\"", live.id.short()), "says something to it")
    .hint(format!("ostler stop {}", live.id.short()), "ends it; the next one goes on where it was")
}
