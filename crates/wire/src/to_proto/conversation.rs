//! Conversations.

use ostler_domain::{
    conversation::Conversation,
    query::{ConversationFilter, Page},
};

use super::{cursor, time};
use crate::{enums::to, pb};

pub fn conversation(conversation: &Conversation) -> pb::Conversation {
    pb::Conversation {
        id: conversation.id.to_string(),
        campaign_id: conversation.campaign.to_string(),
        agent_id: conversation.agent.map(|id| id.to_string()),
        key: conversation.key.to_string(),
        name: conversation.name.to_string(),
        opened_time: Some(time(conversation.opened)),
        active_time: Some(time(conversation.active)),
        forked_from: conversation.forked_from.map(|id| id.to_string()),
        forked_at: conversation
            .forked_at
            .map(|at| pb::TurnRef { session_id: at.session.to_string(), turn: at.turn }),
        spawned_by: conversation.spawned_by.map(|id| id.to_string()),
        replaces: conversation.replaces.map(|id| id.to_string()),
        closed: conversation.closed.map(|closed| pb::ConversationClosed {
            time: Some(time(closed.at)),
            reason: to::close_reason(closed.why).into(),
        }),
        notes_json: conversation.notes.to_json(),
    }
}

pub fn list_conversations(filter: &ConversationFilter, page: Page) -> pb::ListConversationsRequest {
    pb::ListConversationsRequest {
        campaign: filter.campaign.map(|id| id.to_string()),
        agent: filter.agent.map(|id| id.to_string()),
        key: filter.key.as_ref().map(ToString::to_string),
        name: filter.name.clone(),
        closed_too: filter.closed_too,
        since: filter.since.map(time),
        limit: page.limit,
        cursor: cursor(page.cursor),
        until: filter.until.map(time),
    }
}
