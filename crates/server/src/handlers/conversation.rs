//! ConversationService.

use ostler_domain::{
    conversation::{CloseReason, Conversation, Key},
    query::ConversationFilter,
};
use ostler_engine::NewConversation;
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, conversation_service_server::ConversationService},
    to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{change, invalid, refused};
use crate::Served;

#[async_trait]
impl ConversationService for Served {
    async fn open_conversation(
        &self,
        request: Request<pb::OpenConversationRequest>,
    ) -> Result<Response<pb::OpenConversationResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::OpenConversationRequest { agent, key, settings, .. } = request.into_inner();
        let key = if key.is_empty() { Key::main() } else { from_proto::id(&key, "key").map_err(invalid)? };
        let agent = self.engine.agent(&agent).await.map_err(refused)?;
        let wanted = NewConversation { settings, ..NewConversation::of(agent, key) };
        let opened = self.engine.open_conversation(wanted, change).await.map_err(refused)?;
        Ok(Response::new(pb::OpenConversationResponse {
            conversation: shown(&opened.conversation),
            is_new: opened.is_new,
        }))
    }

    async fn get_conversation(
        &self,
        request: Request<pb::GetConversationRequest>,
    ) -> Result<Response<pb::GetConversationResponse>, Status> {
        let found = self.engine.conversation(&request.get_ref().who).await.map_err(refused)?;
        Ok(Response::new(pb::GetConversationResponse { conversation: shown(&found) }))
    }

    async fn list_conversations(
        &self,
        request: Request<pb::ListConversationsRequest>,
    ) -> Result<Response<pb::ListConversationsResponse>, Status> {
        let request = request.into_inner();
        let page = from_proto::page(request.limit, &request.cursor).map_err(invalid)?;
        let filter = self.conversation_filter(request).await?;
        let listed = self.engine.conversations(&filter, page).await.map_err(refused)?;
        Ok(Response::new(pb::ListConversationsResponse {
            conversations: listed.rows.iter().map(to_proto::conversation).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn set_conversation(
        &self,
        request: Request<pb::SetConversationRequest>,
    ) -> Result<Response<pb::SetConversationResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::SetConversationRequest { who, settings, .. } = request.into_inner();
        let found = self.engine.set_conversation(&who, &settings, change).await.map_err(refused)?;
        Ok(Response::new(pb::SetConversationResponse { conversation: shown(&found) }))
    }

    async fn reset_conversation(
        &self,
        request: Request<pb::ResetConversationRequest>,
    ) -> Result<Response<pb::ResetConversationResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::ResetConversationRequest { who, keep_metadata, .. } = request.into_inner();
        let fresh = self.engine.reset_conversation(&who, keep_metadata, change).await.map_err(refused)?;
        Ok(Response::new(pb::ResetConversationResponse { conversation: shown(&fresh) }))
    }

    async fn close_conversation(
        &self,
        request: Request<pb::CloseConversationRequest>,
    ) -> Result<Response<pb::CloseConversationResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::CloseConversationRequest { who, reason, .. } = request.into_inner();
        let why = from_proto::close_reason(reason, "reason").map_err(invalid)?;
        if why == CloseReason::Reset {
            return Err(invalid(InvalidField::new("reason", "ResetConversation does that")));
        }
        let found = self.engine.close_conversation(&who, why, change).await.map_err(refused)?;
        Ok(Response::new(pb::CloseConversationResponse { conversation: shown(&found) }))
    }

    async fn reopen_conversation(
        &self,
        request: Request<pb::ReopenConversationRequest>,
    ) -> Result<Response<pb::ReopenConversationResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let found = self.engine.reopen_conversation(&request.get_ref().who, change).await.map_err(refused)?;
        Ok(Response::new(pb::ReopenConversationResponse { conversation: shown(&found) }))
    }
}

impl Served {
    /// Words that people type, replaced by ids.
    async fn conversation_filter(
        &self,
        request: pb::ListConversationsRequest,
    ) -> Result<ConversationFilter, Status> {
        let campaign = match &request.campaign {
            Some(campaign) => Some(self.engine.campaign(campaign).await.map_err(refused)?.id),
            None => None,
        };
        let agent = match &request.agent {
            Some(agent) => Some(self.engine.agent(agent).await.map_err(refused)?.id),
            None => None,
        };
        let since =
            request.since.map(|since| from_proto::time(since, "since")).transpose().map_err(invalid)?;
        let until =
            request.until.map(|until| from_proto::time(until, "until")).transpose().map_err(invalid)?;
        let key = request.key.map(|key| from_proto::id(&key, "key")).transpose().map_err(invalid)?;
        Ok(ConversationFilter {
            campaign,
            agent,
            key,
            name: request.name,
            closed_too: request.closed_too,
            since,
            until,
        })
    }
}

fn shown(conversation: &Conversation) -> Option<pb::Conversation> {
    Some(to_proto::conversation(conversation))
}
