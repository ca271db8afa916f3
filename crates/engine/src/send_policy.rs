//! Whether something may be said to a conversation, and what is noted of where it came from.

use ostler_domain::{
    ConversationId, Event, Policy, Reason, Refusal,
    campaign::Campaign,
    conversation::{
        Chat, Conversation, Entry, Inbound, SendAction, SendVerdict, group_intro, send_verdict, unmentioned,
    },
    denied::{Denied, DeniedKind},
    event::ConversationChanged,
};

use crate::{Change, Engine, place::Whose};

impl Engine {
    async fn send_verdict(&self, conversation: &Conversation) -> Result<SendVerdict, Refusal> {
        let entry = &conversation.notes.entry;
        let agent = self.agent_name(conversation).await?;
        let chat = Chat::of(&conversation.key, agent.as_deref(), entry);
        let policy = self.campaign(&conversation.campaign.to_string()).await?.policy;
        Ok(verdict(entry, &policy, &chat))
    }

    /// Refuses to begin a session with what may not be said to its agent's conversation, which need not be open yet.
    pub(crate) async fn check_may_begin(
        &self,
        campaign: &Campaign,
        whose: &Whose,
        change: &Change,
    ) -> Result<Option<SendVerdict>, Refusal> {
        let Some(agent) = &whose.agent else { return Ok(None) };
        if let Some(there) = &whose.there {
            return self.check_may_send(there, change).await.map(Some);
        }
        let chat = Chat::of(&whose.key, Some(agent.name.as_str()), &whose.entry);
        let verdict = verdict(&whose.entry, &campaign.policy, &chat);
        if verdict.action == SendAction::Allow {
            return Ok(Some(verdict));
        }
        let (agent, key) = (&agent.name, &whose.key);
        let grant = format!("ostler conversation open {agent} {key}");
        self.denied(format!("send to {agent} {key} by {}", change.by.0), &verdict.rule, &grant).await?;
        Err(Refusal::new(Reason::PermissionDenied, format!("nothing may be said to {agent} as {key}"))
            .because(verdict.rule)
            .hint(grant, "opens it; send_policy=allow set there lets it be spoken to")
            .hint(format!("ostler campaign show {}", campaign.name), "shows the rules"))
    }

    pub(crate) async fn denied(&self, target: String, rule: &str, grant: &str) -> Result<(), Refusal> {
        let (rule, grant) = (rule.to_owned(), Some(grant.to_owned()));
        let denied = Denied { kind: DeniedKind::Policy, target, rule, grant };
        self.record_nodes(vec![Event::Denied(denied)], None).await
    }

    /// Refuses what may not be said there, and records that.
    pub(crate) async fn check_may_send(
        &self,
        conversation: &Conversation,
        change: &Change,
    ) -> Result<SendVerdict, Refusal> {
        let verdict = self.send_verdict(conversation).await?;
        if verdict.action == SendAction::Allow {
            return Ok(verdict);
        }
        let short = conversation.id.short();
        let grant = format!("ostler conversation set {short} send_policy=allow");
        let target = format!("send to {} ({short}) by {}", conversation.name, change.by.0);
        self.denied(target, &verdict.rule, &grant).await?;
        Err(Refusal::new(
            Reason::PermissionDenied,
            format!("nothing may be said to the conversation {}", conversation.name),
        )
        .because(verdict.rule)
        .hint(grant, "lets this conversation be spoken to")
        .hint(format!("ostler policy test send {short}"), "what decides, and why"))
    }

    /// Notes where a message came from, before it is said.
    pub(crate) async fn note_inbound(
        &self,
        conversation: Conversation,
        inbound: Option<&Inbound>,
        change: &Change,
    ) -> Result<Conversation, Refusal> {
        let Some(inbound) = inbound else { return Ok(conversation) };
        let _naming = self.shared.naming.lock().await;
        let mut conversation = self.stored_conversation(conversation.id).await?;
        let entry = conversation.notes.entry.reached_from(inbound);
        self.note_entry(&mut conversation, entry, change).await?;
        Ok(conversation)
    }

    /// Records what has become of a conversation's entry, where anything has.
    async fn note_entry(
        &self,
        conversation: &mut Conversation,
        entry: Entry,
        change: &Change,
    ) -> Result<(), Refusal> {
        if entry == conversation.notes.entry {
            return Ok(());
        }
        let was = conversation.notes.entry.values();
        let settings = entry.values().into_iter().filter(|value| !was.contains(value));
        let settings = settings.map(|(key, value)| format!("{key}={value}")).collect();
        conversation.notes.entry = entry;
        let changed = ConversationChanged {
            id: conversation.id,
            settings,
            notes: conversation.notes.clone(),
            by: change.by.clone(),
        };
        self.record_nodes(vec![Event::ConversationChanged(Box::new(changed))], None).await
    }

    /// What an agent is told of the group that it first hears something of; none where it knows, or is in none.
    pub(crate) async fn intro(&self, conversation: &Conversation) -> Result<Option<String>, Refusal> {
        let entry = &conversation.notes.entry;
        let chat = Chat::of(&conversation.key, None, entry);
        let agent = self.agent_name(conversation).await?;
        let name = agent.unwrap_or_else(|| conversation.name.to_string());
        Ok(group_intro(entry, &chat, &name))
    }

    /// Notes that it was told.
    pub(crate) async fn introduced(&self, id: ConversationId, change: &Change) -> Result<(), Refusal> {
        let _naming = self.shared.naming.lock().await;
        let mut conversation = self.stored_conversation(id).await?;
        let told = Some(false);
        let entry = conversation.notes.entry.clone();
        let entry = Entry { group_activation_needs_system_intro: told, ..entry };
        self.note_entry(&mut conversation, entry, change).await
    }

    /// Why what was said in a group is not for its agent; none where it is.
    pub(crate) async fn unmentioned(
        &self,
        conversation: &Conversation,
        text: &str,
    ) -> Result<Option<String>, Refusal> {
        let entry = &conversation.notes.entry;
        let chat = Chat::of(&conversation.key, None, entry);
        let agent = self.agent_name(conversation).await?;
        let name = agent.unwrap_or_else(|| conversation.name.to_string());
        Ok(unmentioned(entry, &chat, &name, text))
    }

    /// No session is begun for what is not for its agent; that somebody spoke is recorded.
    pub(crate) async fn not_begun(
        &self,
        conversation: &Conversation,
        change: &Change,
    ) -> Result<Refusal, Refusal> {
        let short = conversation.id.short();
        let grant = format!("ostler conversation set {short} group_activation=always");
        let target = format!("send to {} ({short}) by {}", conversation.name, change.by.0);
        self.denied(target, "group_activation=mention", &grant).await?;
        Ok(Refusal::new(
            Reason::PermissionDenied,
            format!(
                "{} has no session yet, and none is begun for what does not mention it",
                conversation.name
            ),
        )
        .because("group_activation=mention")
        .hint(grant, "has it hear everything"))
    }

    async fn agent_name(&self, conversation: &Conversation) -> Result<Option<String>, Refusal> {
        Ok(match conversation.agent {
            Some(agent) => self.shared.store.agent(agent).await?.map(|agent| agent.name.to_string()),
            None => None,
        })
    }
}

fn verdict(entry: &Entry, policy: &Policy, chat: &Chat) -> SendVerdict {
    send_verdict(entry.send_policy, &policy.send_rule, policy.send_default, chat)
}
