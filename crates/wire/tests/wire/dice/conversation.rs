//! Agents and conversations.

use ostler_domain::{
    AgentId,
    agent::{Agent, Profile},
    conversation::{CloseReason, Closed, Conversation, Key, Notes, TurnRef},
    session::AgentRef,
};

use super::Dice;

impl Dice {
    pub(crate) fn key(&mut self) -> Key {
        let key =
            self.of(&["main", "agent:a:slack:dm:u1", "agent:a:subagent:w:t", "nightly:docs", "Ünïcode:🐎"]);
        key.parse().unwrap()
    }

    pub(crate) fn agent_id(&mut self) -> AgentId {
        let (at, entropy) = self.entropy();
        AgentId::new(at, entropy)
    }

    pub(crate) fn agent_ref(&mut self) -> AgentRef {
        AgentRef { id: self.agent_id(), name: self.name(), role: self.name() }
    }

    pub(crate) fn agent(&mut self) -> Agent {
        let said =
            ["provider=codex", "model=m-1", "auth_profile=work", "system_prompt=a = b\nc", "budget=2usd,5k"];
        let settings: Vec<String> =
            said.iter().filter(|_| self.yes()).map(|setting| (*setting).to_owned()).collect();
        let mut profile = Profile::default().changed_by(&settings).unwrap();
        profile.role = self.name();
        Agent {
            id: self.agent_id(),
            campaign: self.campaign_id(),
            name: self.name(),
            added: self.time(),
            profile,
        }
    }

    pub(crate) fn conversation(&mut self) -> Conversation {
        let said =
            ["model=m", "label=A b", "channel=slack", "queue_cap=7", "state.a.b=[1]", "metadata.x=\"y\""];
        let settings: Vec<String> =
            said.iter().filter(|_| self.yes()).map(|setting| (*setting).to_owned()).collect();
        let why = self.of(&[CloseReason::Reset, CloseReason::Archived, CloseReason::Removed]);
        Conversation {
            id: self.conversation_id(),
            campaign: self.campaign_id(),
            agent: self.maybe(Self::agent_id),
            key: self.key(),
            name: self.name(),
            opened: self.time(),
            active: self.time(),
            forked_from: self.maybe(Self::conversation_id),
            forked_at: self.maybe(|dice| TurnRef { session: dice.session_id(), turn: dice.small() }),
            spawned_by: self.maybe(Self::session_id),
            replaces: self.maybe(Self::conversation_id),
            closed: self.maybe(|dice| Closed { at: dice.time(), why }),
            notes: Notes::default().changed_by(&settings).unwrap(),
        }
    }
}
