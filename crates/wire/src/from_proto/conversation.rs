//! Conversations.

use ostler_domain::conversation::{Closed, Conversation, Notes, TurnRef};

use super::{Result, id, optional_id, required_time};
use crate::{InvalidField, enums::from, pb};

pub fn conversation(conversation: pb::Conversation) -> Result<Conversation> {
    let closed = conversation.closed.map(|closed| {
        Ok(Closed {
            at: required_time(closed.time, "time")?,
            why: from::close_reason(closed.reason, "reason")?,
        })
    });
    let forked_at = conversation
        .forked_at
        .map(|at| Ok(TurnRef { session: id(&at.session_id, "session_id")?, turn: at.turn }));
    Ok(Conversation {
        id: id(&conversation.id, "id")?,
        campaign: id(&conversation.campaign_id, "campaign_id")?,
        agent: optional_id(conversation.agent_id, "agent_id")?,
        key: id(&conversation.key, "key")?,
        name: id(&conversation.name, "name")?,
        opened: required_time(conversation.opened_time, "opened_time")?,
        active: required_time(conversation.active_time, "active_time")?,
        forked_from: optional_id(conversation.forked_from, "forked_from")?,
        forked_at: forked_at.transpose().map_err(|e: InvalidField| e.within("forked_at"))?,
        spawned_by: optional_id(conversation.spawned_by, "spawned_by")?,
        replaces: optional_id(conversation.replaces, "replaces")?,
        closed: closed.transpose().map_err(|e: InvalidField| e.within("closed"))?,
        notes: Notes::from_json(&conversation.notes_json)
            .map_err(|error| InvalidField::new("notes_json", error))?,
    })
}
