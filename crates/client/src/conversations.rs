//! Conversations: dialogues that survive processes.

use ostler_domain::{
    conversation::{CloseReason, Conversation, Key},
    query::{ConversationFilter, Listed, Page},
};
use ostler_wire::{
    InvalidField, from_proto,
    pb::{self, conversation_service_client::ConversationServiceClient as Service},
    to_proto,
};

use crate::{Client, Error};

impl Client {
    /// The conversation of an agent with a key; opened if it is not, and then the answer is `true`. However many ask at once,
    /// there is one.
    pub async fn open_conversation(&self, agent: &str, key: &Key) -> Result<(Conversation, bool), Error> {
        let request = pb::OpenConversationRequest {
            request_id: self.request_id().to_string(),
            agent: agent.to_owned(),
            key: key.to_string(),
            settings: Vec::new(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).open_conversation(request.clone()).await
            })
            .await?;
        Ok((read(answer.conversation)?, answer.is_new))
    }

    /// Returns a conversation by its id or a part of it, its name, or a session of it.
    pub async fn conversation(&self, who: &str) -> Result<Conversation, Error> {
        let request = pb::GetConversationRequest { who: who.to_owned() };
        let answer =
            self.ask(async |channel| Service::new(channel).get_conversation(request.clone()).await).await?;
        Ok(read(answer.conversation)?)
    }

    /// Lists conversations, newest-opened first.
    pub async fn conversations(
        &self,
        filter: &ConversationFilter,
        page: Page,
    ) -> Result<Listed<Conversation>, Error> {
        let request = to_proto::list_conversations(filter, page);
        let answer =
            self.ask(async |channel| Service::new(channel).list_conversations(request.clone()).await).await?;
        Ok(from_proto::listed(answer.conversations, &answer.next_cursor, from_proto::conversation)?)
    }

    /// Changes what is noted about a conversation, by settings such as `model=gpt-5.5` or `metadata.owner=ann`: all of
    /// them, or none.
    pub async fn set_conversation(&self, who: &str, settings: Vec<String>) -> Result<Conversation, Error> {
        let request = pb::SetConversationRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            settings,
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).set_conversation(request.clone()).await
            })
            .await?;
        Ok(read(answer.conversation)?)
    }

    /// Closes a conversation and opens a fresh one under its key, which is returned.
    pub async fn reset_conversation(&self, who: &str, keep_metadata: bool) -> Result<Conversation, Error> {
        let request = pb::ResetConversationRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            keep_metadata,
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).reset_conversation(request.clone()).await
            })
            .await?;
        Ok(read(answer.conversation)?)
    }

    /// Closes a conversation: archived, or removed. All of it stays readable until a rule of retention deletes it.
    pub async fn close_conversation(&self, who: &str, why: CloseReason) -> Result<Conversation, Error> {
        let request = pb::CloseConversationRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            reason: to_proto::close_reason(why).into(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                Service::new(channel).close_conversation(request.clone()).await
            })
            .await?;
        Ok(read(answer.conversation)?)
    }

    /// Takes the closing of a conversation back, unless another one has its key by now.
    pub async fn reopen_conversation(&self, who: &str) -> Result<Conversation, Error> {
        let request =
            pb::ReopenConversationRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer = self
            .ask(async |channel| Service::new(channel).reopen_conversation(request.clone()).await)
            .await?;
        Ok(read(answer.conversation)?)
    }
}

fn read(conversation: Option<pb::Conversation>) -> Result<Conversation, InvalidField> {
    let conversation = from_proto::required(conversation, "conversation")?;
    from_proto::conversation(conversation).map_err(|e| e.within("conversation"))
}
