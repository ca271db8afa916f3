//! Sessions: starting them, talking to them, ending them; their messages and their questions.

use ostler_domain::{
    Name,
    budget::Amount,
    chain::Chain,
    handoff::Wish,
    query::{Listed, Page, SessionFilter},
    reboot::LostSession,
};
use ostler_wire::{
    InvalidField, REPLY_BYTES, from_proto,
    pb::{self, session_service_client::SessionServiceClient},
    reply::{AnswerGiven, Approval, Delivery, NativeCommand, Taken},
    request::{AnswerApproval, CreateSession, MessagePlace, ResumeSession, SendMessage},
    to_proto,
};
use tonic::transport::Channel;

use crate::{Client, Error, Session};

fn service(channel: Channel) -> SessionServiceClient<Channel> {
    SessionServiceClient::new(channel).max_decoding_message_size(REPLY_BYTES)
}

impl Client {
    /// Creates a session and starts its agent. Returns when it is recorded; watch for `SESSION_STARTED`.
    pub async fn create_session(&self, request: CreateSession) -> Result<Session, Error> {
        let mut request = to_proto::create_session(request, self.request_id());
        request.keys = to_proto::caller_keys(&self.keys);
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).create_session(request.clone()).await
            })
            .await?;
        Ok(read(answer.session)?)
    }

    /// Returns a session. A name or a conversation means its live session, else its last one.
    pub async fn session(&self, who: &str) -> Result<Session, Error> {
        self.session_near(who, None).await
    }

    /// The same. Where several campaigns have the name, the one that the path `near` lies in is meant.
    pub async fn session_near(&self, who: &str, near: Option<&str>) -> Result<Session, Error> {
        let request = pb::GetSessionRequest { who: who.to_owned(), near: near.map(str::to_owned) };
        let answer = self.ask(async |channel| service(channel).get_session(request.clone()).await).await?;
        Ok(read(answer.session)?)
    }

    /// Lists sessions, those that changed last first.
    pub async fn sessions(&self, filter: &SessionFilter, page: Page) -> Result<Listed<Session>, Error> {
        let request = pb::ListSessionsRequest {
            filter: Some(to_proto::session_filter(filter)),
            limit: page.limit,
            cursor: to_proto::cursor(page.cursor),
        };
        let answer = self.ask(async |channel| service(channel).list_sessions(request.clone()).await).await?;
        Ok(from_proto::listed(answer.sessions, &answer.next_cursor, from_proto::view)?)
    }

    /// Returns the lives joined with a session by restarts and hand-offs, the oldest first.
    pub async fn chain(&self, who: &str) -> Result<Vec<Session>, Error> {
        let request = pb::GetChainRequest { who: who.to_owned(), with_helpers: false };
        let answer = self.ask(async |channel| service(channel).get_chain(request.clone()).await).await?;
        Ok(from_proto::chain(answer)?.sessions)
    }

    /// The same with everybody who helped, at whatever depth, and what all of them took together.
    pub async fn whole_chain(&self, who: &str) -> Result<Chain, Error> {
        let request = pb::GetChainRequest { who: who.to_owned(), with_helpers: true };
        let answer = self.ask(async |channel| service(channel).get_chain(request.clone()).await).await?;
        Ok(from_proto::chain(answer)?)
    }

    /// Lists the sessions that were lost with the machine, while nobody has said what becomes of them, the oldest first.
    /// [`restart_session`](Self::restart_session) goes on with one.
    pub async fn lost_sessions(&self) -> Result<Vec<LostSession>, Error> {
        let request = pb::ListLostSessionsRequest {};
        let answer = self.ask(async |channel| service(channel).list_lost_sessions(request).await).await?;
        Ok(answer.lost.into_iter().map(from_proto::lost_session).collect::<Result<_, _>>()?)
    }

    /// Says that the sessions that were lost with the machine are to stay as they are. Returns how many they were.
    pub async fn leave_lost_sessions(&self) -> Result<u64, Error> {
        let request = pb::LeaveLostSessionsRequest { request_id: self.request_id().to_string() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).leave_lost_sessions(request.clone()).await
            })
            .await?;
        Ok(answer.sessions)
    }

    /// Says something to a conversation. It is durable when this returns; a conversation without a live session is
    /// woken with a new one.
    pub async fn send_message(&self, request: SendMessage) -> Result<Taken, Error> {
        let mut request = to_proto::send_message(request, self.request_id());
        request.keys = to_proto::caller_keys(&self.keys);
        let answer = self
            .ask_as(&request.request_id, async |channel| service(channel).send_message(request.clone()).await)
            .await?;
        Ok(from_proto::taken(answer)?)
    }

    /// Ends a session and has another one go on with its work, which is returned: `to` is a provider, `PROVIDER/MODEL`,
    /// `agent:NAME`, or nothing for a fresh session like this one.
    pub async fn hand_off(&self, who: &str, to: &str, wish: Wish) -> Result<Session, Error> {
        let Wish { note, done, decided, open, .. } = wish;
        let request = pb::HandoffRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            to: to.to_owned(),
            note,
            done,
            decided,
            open,
            keys: to_proto::caller_keys(&self.keys),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| service(channel).handoff(request.clone()).await)
            .await?;
        Ok(read(answer.session)?)
    }

    /// Ends a session in an orderly way, or `now`. Returns when it is asked; watch for `SESSION_STOPPED`.
    pub async fn stop_session(&self, who: &str, now: bool) -> Result<Session, Error> {
        self.end(pb::StopSessionRequest { who: who.to_owned(), now, ..Default::default() }).await
    }

    /// Ends a session in an orderly way because its work is done.
    pub async fn end_session(&self, who: &str) -> Result<Session, Error> {
        self.end(pb::StopSessionRequest { who: who.to_owned(), done: true, ..Default::default() }).await
    }

    /// The same, because a person says so, whatever became of its last turn.
    pub async fn finish_session(&self, who: &str) -> Result<Session, Error> {
        let (done, said) = (true, true);
        self.end(pb::StopSessionRequest { who: who.to_owned(), done, said, ..Default::default() }).await
    }

    async fn end(&self, request: pb::StopSessionRequest) -> Result<Session, Error> {
        let request = pb::StopSessionRequest { request_id: self.request_id().to_string(), ..request };
        let answer = self
            .ask_as(&request.request_id, async |channel| service(channel).stop_session(request.clone()).await)
            .await?;
        Ok(read(answer.session)?)
    }

    /// Freezes a session's processes where they stand.
    pub async fn pause_session(&self, who: &str) -> Result<Session, Error> {
        let request =
            pb::PauseSessionRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).pause_session(request.clone()).await
            })
            .await?;
        Ok(read(answer.session)?)
    }

    /// Lets a session go on that was paused or held, and raises the limit that held it.
    pub async fn resume_session(&self, request: ResumeSession) -> Result<Session, Error> {
        let mut request = to_proto::resume_session(request, self.request_id());
        request.keys = to_proto::caller_keys(&self.keys);
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).resume_session(request.clone()).await
            })
            .await?;
        Ok(read(answer.session)?)
    }

    /// Ends the turn that is open. The session stays; watch for `TURN_ENDED`.
    pub async fn interrupt_session(&self, who: &str) -> Result<Session, Error> {
        let request =
            pb::InterruptSessionRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).interrupt_session(request.clone()).await
            })
            .await?;
        Ok(read(answer.session)?)
    }

    /// Replaces a session, live or ended, by a new one in the same conversation, and returns the new one.
    pub async fn restart_session(&self, who: &str) -> Result<Session, Error> {
        self.restart_with_model(who, None).await
    }

    /// The same, going on with another model where one is named.
    pub async fn restart_with_model(&self, who: &str, model: Option<&str>) -> Result<Session, Error> {
        self.restart_with(who, model, Amount::default()).await
    }

    /// The same, allowing it this much from now on, what the session before it used included. What is not said is what
    /// that one left of its budget.
    pub async fn restart_with(
        &self,
        who: &str,
        model: Option<&str>,
        budget: Amount,
    ) -> Result<Session, Error> {
        let request = pb::RestartSessionRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            keys: to_proto::caller_keys(&self.keys),
            model: model.map(str::to_owned),
            max_tokens: budget.tokens,
            max_micro_usd: budget.dollars.map(|dollars| dollars.0),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).restart_session(request.clone()).await
            })
            .await?;
        Ok(read(answer.session)?)
    }

    /// Has a session go on with another model. False beside it: from the conversation's next session on, because its agent
    /// cannot change it while it lives.
    pub async fn set_model(&self, who: &str, model: &str) -> Result<(Session, bool), Error> {
        let request = pb::SetModelRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            model: model.to_owned(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| service(channel).set_model(request.clone()).await)
            .await?;
        Ok((read(answer.session)?, answer.now))
    }

    /// Begins a new conversation as a copy of another one's, and returns its first session. `at` is the last turn that both
    /// have: its number, or a checkpoint of the session's ticket.
    pub async fn fork_session(
        &self,
        who: &str,
        name: Option<&Name>,
        at: Option<&str>,
    ) -> Result<Session, Error> {
        let request = pb::ForkSessionRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            name: name.map(ToString::to_string),
            keys: to_proto::caller_keys(&self.keys),
            at: at.map(str::to_owned),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| service(channel).fork_session(request.clone()).await)
            .await?;
        Ok(read(answer.session)?)
    }

    /// Has a copy of a session answer a question, without tools, and returns the copy: what it has said when it has ended
    /// is the answer. It may use `budget`; where that says nothing, what Ostler gives by itself.
    pub async fn ask_session(&self, who: &str, question: &str, budget: Amount) -> Result<Session, Error> {
        let request = pb::AskSessionRequest {
            request_id: self.request_id().to_string(),
            who: who.to_owned(),
            question: question.to_owned(),
            max_tokens: budget.tokens,
            max_micro_usd: budget.dollars.map(|dollars| dollars.0),
            keys: to_proto::caller_keys(&self.keys),
        };
        let answer = self.ask(async |channel| service(channel).ask_session(request.clone()).await).await?;
        Ok(read(answer.session)?)
    }

    /// How the provider's own program goes on with a conversation, without Ostler.
    pub async fn native_command(&self, who: &str) -> Result<NativeCommand, Error> {
        let request = pb::GetNativeCommandRequest { who: who.to_owned() };
        let answer =
            self.ask(async |channel| service(channel).get_native_command(request.clone()).await).await?;
        Ok(from_proto::native_command(answer))
    }

    /// Lists what was said to a conversation, the newest first.
    pub async fn messages(&self, who: &str, page: Page) -> Result<Listed<Delivery>, Error> {
        let (limit, cursor) = (page.limit, to_proto::cursor(page.cursor));
        self.listed_messages(pb::ListMessagesRequest { who: who.to_owned(), limit, cursor, waiting: false })
            .await
    }

    /// Lists what waits to be told to a conversation, in the order in which it will be.
    pub async fn messages_in_order(&self, who: &str) -> Result<Vec<Delivery>, Error> {
        let (who, waiting) = (who.to_owned(), true);
        let request = pb::ListMessagesRequest { who, waiting, ..pb::ListMessagesRequest::default() };
        Ok(self.listed_messages(request).await?.rows)
    }

    async fn listed_messages(&self, request: pb::ListMessagesRequest) -> Result<Listed<Delivery>, Error> {
        let answer = self.ask(async |channel| service(channel).list_messages(request.clone()).await).await?;
        Ok(from_proto::listed(answer.messages, &answer.next_cursor, from_proto::delivery)?)
    }

    /// Returns a message by its id or a unique part of it.
    pub async fn message(&self, message: &str) -> Result<Delivery, Error> {
        let request = pb::GetMessageRequest { message: message.to_owned() };
        let answer = self.ask(async |channel| service(channel).get_message(request.clone()).await).await?;
        delivery(answer.message)
    }

    /// Takes back a message that waits.
    pub async fn cancel_message(&self, message: &str) -> Result<Delivery, Error> {
        let request = pb::CancelMessageRequest {
            request_id: self.request_id().to_string(),
            message: message.to_owned(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).cancel_message(request.clone()).await
            })
            .await?;
        delivery(answer.message)
    }

    /// Takes back all messages of a conversation that wait, and returns them.
    pub async fn clear_messages(&self, who: &str) -> Result<Vec<Delivery>, Error> {
        let request =
            pb::ClearMessagesRequest { request_id: self.request_id().to_string(), who: who.to_owned() };
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).clear_messages(request.clone()).await
            })
            .await?;
        Ok(from_proto::listed(answer.messages, "", from_proto::delivery)?.rows)
    }

    /// Changes what a message says while it waits.
    pub async fn edit_message(&self, message: &str, text: &str) -> Result<Delivery, Error> {
        let request = pb::EditMessageRequest {
            request_id: self.request_id().to_string(),
            message: message.to_owned(),
            text: text.to_owned(),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| service(channel).edit_message(request.clone()).await)
            .await?;
        delivery(answer.message)
    }

    /// Has a message that waits be told before others, or to another conversation, where it is another message.
    pub async fn move_message(&self, message: &str, place: MessagePlace) -> Result<Delivery, Error> {
        let request = pb::MoveMessageRequest {
            request_id: self.request_id().to_string(),
            message: message.to_owned(),
            place: to_proto::message_place(place),
            keys: to_proto::caller_keys(&self.keys),
        };
        let answer = self
            .ask_as(&request.request_id, async |channel| service(channel).move_message(request.clone()).await)
            .await?;
        delivery(answer.message)
    }

    /// Lists agents' questions, the newest first.
    pub async fn approvals(&self, only_open: bool, page: Page) -> Result<Listed<Approval>, Error> {
        let (limit, cursor) = (page.limit, to_proto::cursor(page.cursor));
        let request = pb::ListApprovalsRequest { only_open, limit, cursor };
        let answer = self.ask(async |channel| service(channel).list_approvals(request.clone()).await).await?;
        Ok(from_proto::listed(answer.approvals, &answer.next_cursor, from_proto::approval)?)
    }

    /// Returns a question by its id or a unique part of it.
    pub async fn approval(&self, approval: &str) -> Result<Approval, Error> {
        let request = pb::GetApprovalRequest { approval: approval.to_owned() };
        let answer = self.ask(async |channel| service(channel).get_approval(request.clone()).await).await?;
        Ok(read_approval(answer.approval)?)
    }

    /// Answers a question, and says which rules allow the same from now on where that was asked for.
    pub async fn answer_approval(&self, request: AnswerApproval) -> Result<AnswerGiven, Error> {
        let request = to_proto::answer_approval(request, self.request_id());
        let answer = self
            .ask_as(&request.request_id, async |channel| {
                service(channel).answer_approval(request.clone()).await
            })
            .await?;
        Ok(from_proto::answer_given(answer)?)
    }
}

fn read(session: Option<pb::Session>) -> Result<Session, InvalidField> {
    let session = from_proto::required(session, "session")?;
    from_proto::view(session).map_err(|e| e.within("session"))
}

fn read_approval(approval: Option<pb::Approval>) -> Result<Approval, InvalidField> {
    let approval = from_proto::required(approval, "approval")?;
    from_proto::approval(approval).map_err(|e| e.within("approval"))
}

fn delivery(message: Option<pb::Message>) -> Result<Delivery, Error> {
    let message = from_proto::required(message, "message")?;
    Ok(from_proto::delivery(message).map_err(|e| e.within("message"))?)
}
