//! Whether something may be said to a conversation, and what is noted of where it came from.

use ostler_domain::{
    Event, Reason, Refusal,
    conversation::{
        Chat, ChatType, Conversation, GroupActivation, Inbound, SendAction, SendVerdict, send_verdict,
    },
    denied::{Denied, DeniedKind},
    event::ConversationChanged,
};

use crate::{Change, Engine};

impl Engine {
    async fn send_verdict(&self, conversation: &Conversation) -> Result<SendVerdict, Refusal> {
        let entry = &conversation.notes.entry;
        let agent = self.agent_name(conversation).await?;
        let chat = Chat::of(&conversation.key, agent.as_deref(), entry);
        let policy = self.campaign(&conversation.campaign.to_string()).await?.policy;
        Ok(send_verdict(entry.send_policy, &policy.send_rule, policy.send_default, &chat))
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
        let denied = Denied {
            kind: DeniedKind::Policy,
            target: format!("send to {} ({short}) by {}", conversation.name, change.by.0),
            rule: verdict.rule.clone(),
            grant: Some(grant.clone()),
        };
        self.record_nodes(vec![Event::Denied(denied)], None).await?;
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
        if entry == conversation.notes.entry {
            return Ok(conversation);
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
        self.record_nodes(vec![Event::ConversationChanged(Box::new(changed))], None).await?;
        Ok(conversation)
    }

    /// Why what was said in a group is not for its agent; none where it is.
    pub(crate) async fn unmentioned(
        &self,
        conversation: &Conversation,
        text: &str,
    ) -> Result<Option<String>, Refusal> {
        let entry = &conversation.notes.entry;
        let chat_type = Chat::of(&conversation.key, None, entry).chat_type;
        let is_group = matches!(chat_type, Some(ChatType::Group | ChatType::Channel));
        if entry.group_activation != Some(GroupActivation::Mention) || !is_group {
            return Ok(None);
        }
        let agent = self.agent_name(conversation).await?;
        let name = agent.unwrap_or_else(|| conversation.name.to_string());
        Ok((!mentions(text, &name))
            .then(|| format!("it does not mention @{name} (group_activation=mention)")))
    }

    /// Nobody is woken for what is not for them; that it was said is recorded.
    pub(crate) async fn not_woken(
        &self,
        conversation: &Conversation,
        change: &Change,
    ) -> Result<Refusal, Refusal> {
        let short = conversation.id.short();
        let denied = Denied {
            kind: DeniedKind::Policy,
            target: format!("send to {} ({short}) by {}", conversation.name, change.by.0),
            rule: "group_activation=mention".to_owned(),
            grant: Some(format!("ostler conversation set {short} group_activation=always")),
        };
        self.record_nodes(vec![Event::Denied(denied)], None).await?;
        Ok(Refusal::new(
            Reason::PermissionDenied,
            format!("{} sleeps, and is not woken for what does not mention it", conversation.name),
        )
        .because("group_activation=mention")
        .hint(format!("ostler conversation set {short} group_activation=always"), "has it hear everything"))
    }

    async fn agent_name(&self, conversation: &Conversation) -> Result<Option<String>, Refusal> {
        Ok(match conversation.agent {
            Some(agent) => self.shared.store.agent(agent).await?.map(|agent| agent.name.to_string()),
            None => None,
        })
    }
}

/// Whether a text speaks to somebody: `@api`, in any case, and not as the beginning of a longer name.
fn mentions(text: &str, name: &str) -> bool {
    let (text, sought) = (text.to_lowercase(), format!("@{}", name.to_lowercase()));
    text.match_indices(&sought).any(|(at, _)| {
        let after = text[at + sought.len()..].chars().next();
        after.is_none_or(|next| !(next.is_alphanumeric() || next == '-' || next == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_the_whole_name() {
        for text in ["@api", "please, @API: look", "(@api)", "x @apis and @api."] {
            assert!(mentions(text, "api"), "{text}");
        }
        for text in ["api", "@apis", "@api-auth", "@ api", ""] {
            assert!(!mentions(text, "api"), "{text}");
        }
    }
}
