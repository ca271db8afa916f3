//! A conversation.

use ostler_client::Conversation;
use ostler_domain::{ConversationId, conversation::Notes};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{rfc3339, shape};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Conversation")]
pub struct ConversationForm<'a> {
    id: String,
    name: String,
    label: Option<&'a str>,
    key: String,
    campaign: String,
    agent: Option<String>,
    opened: String,
    active: String,
    closed: Option<String>,
    close_reason: Option<&'static str>,
    forked_from: Option<String>,
    forked_at: Option<TurnForm>,
    spawned_by: Option<String>,
    replaces: Option<String>,
    #[serde(flatten)]
    #[schemars(with = "shape::Notes")]
    notes: &'a Notes,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Turn")]
struct TurnForm {
    session: String,
    turn: u32,
}

impl<'a> ConversationForm<'a> {
    pub fn new(conversation: &'a Conversation, campaign: &str) -> Self {
        let id = |id: Option<ConversationId>| id.map(|id| id.to_string());
        Self {
            id: conversation.id.to_string(),
            name: conversation.name.to_string(),
            label: conversation.notes.entry.label.as_deref(),
            key: conversation.key.to_string(),
            campaign: campaign.to_owned(),
            agent: conversation.agent.map(|id| id.to_string()),
            opened: rfc3339(conversation.opened),
            active: rfc3339(conversation.active),
            closed: conversation.closed.map(|closed| rfc3339(closed.at)),
            close_reason: conversation.closed.map(|closed| closed.why.as_str()),
            forked_from: id(conversation.forked_from),
            forked_at: conversation
                .forked_at
                .map(|at| TurnForm { session: at.session.to_string(), turn: at.turn }),
            spawned_by: conversation.spawned_by.map(|id| id.to_string()),
            replaces: id(conversation.replaces),
            notes: &conversation.notes,
        }
    }
}
