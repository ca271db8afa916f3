//! SessionService.

use ostler_domain::{
    Receipt,
    budget::Amount,
    chain::Chain,
    handoff::Wish,
    query::{Listed, Page},
    session::WatchdogLimits,
};
use ostler_engine::{Addressee, Answer, MessagePlace, MessageRow, NewFork, NewSession, Raised, Sent, Words};
use ostler_wire::{
    from_proto,
    pb::{self, session_service_server::SessionService},
    reply, request as wish, to_proto,
};
use tonic::{Request, Response, Status, async_trait};

use super::{change, change_with_keys, invalid, refused};
use crate::{Served, rows};

/// Answers with a session alone.
macro_rules! answer {
    ($response:ident, $view:expr) => {
        Ok(Response::new(pb::$response { session: Some(to_proto::view(&$view)) }))
    };
}

/// Who asks for a change that may start an agent, under which id, and with which keys.
macro_rules! keyed {
    ($request:ident) => {
        change_with_keys(&mut $request, |inner| &inner.request_id, |inner| &mut inner.keys)?
    };
}

#[async_trait]
impl SessionService for Served {
    async fn create_session(
        &self,
        mut request: Request<pb::CreateSessionRequest>,
    ) -> Result<Response<pb::CreateSessionResponse>, Status> {
        let change = keyed!(request);
        let wanted = from_proto::create_session(request.into_inner()).map_err(invalid)?;
        let view = self.engine.create_session(new_session(wanted), change).await.map_err(refused)?;
        answer!(CreateSessionResponse, view)
    }

    async fn get_session(
        &self,
        request: Request<pb::GetSessionRequest>,
    ) -> Result<Response<pb::GetSessionResponse>, Status> {
        let pb::GetSessionRequest { who, near } = request.get_ref();
        let view = self.engine.session_near(who, near.as_deref()).await.map_err(refused)?;
        answer!(GetSessionResponse, view)
    }

    async fn list_sessions(
        &self,
        request: Request<pb::ListSessionsRequest>,
    ) -> Result<Response<pb::ListSessionsResponse>, Status> {
        let pb::ListSessionsRequest { filter, limit, cursor } = request.into_inner();
        let filter = self.session_filter(filter).await?;
        let page = from_proto::page(limit, &cursor).map_err(invalid)?;
        let listed = self.engine.sessions(filter, page).await.map_err(refused)?;
        Ok(Response::new(pb::ListSessionsResponse {
            sessions: listed.rows.iter().map(to_proto::view).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn get_chain(
        &self,
        request: Request<pb::GetChainRequest>,
    ) -> Result<Response<pb::GetChainResponse>, Status> {
        let pb::GetChainRequest { who, with_helpers } = request.get_ref();
        if *with_helpers {
            let chain = self.engine.whole_chain(who).await.map_err(refused)?;
            return Ok(Response::new(to_proto::chain(&chain)));
        }
        let sessions = self.engine.chain(who).await.map_err(refused)?;
        Ok(Response::new(to_proto::chain(&Chain { sessions, ..Chain::default() })))
    }

    async fn list_lost_sessions(
        &self,
        _request: Request<pb::ListLostSessionsRequest>,
    ) -> Result<Response<pb::ListLostSessionsResponse>, Status> {
        let lost = self.engine.lost().await.map_err(refused)?;
        let lost = lost.iter().map(to_proto::lost_session).collect();
        Ok(Response::new(pb::ListLostSessionsResponse { lost }))
    }

    async fn leave_lost_sessions(
        &self,
        request: Request<pb::LeaveLostSessionsRequest>,
    ) -> Result<Response<pb::LeaveLostSessionsResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let sessions = self.engine.leave_lost(change).await.map_err(refused)?;
        Ok(Response::new(pb::LeaveLostSessionsResponse { sessions }))
    }

    async fn send_message(
        &self,
        mut request: Request<pb::SendMessageRequest>,
    ) -> Result<Response<pb::SendMessageResponse>, Status> {
        let change = keyed!(request);
        let wanted = from_proto::send_message(request.into_inner()).map_err(invalid)?;
        let to = Addressee { who: wanted.who, key: wanted.key };
        let words = Words {
            text: wanted.text,
            mode: wanted.mode,
            key: wanted.idempotency_key,
            inbound: wanted.inbound,
        };
        let sent = self.engine.send(&to, &words, change).await.map_err(refused)?;
        Ok(Response::new(to_proto::taken(&self.taken(sent).await?)))
    }

    async fn handoff(
        &self,
        mut request: Request<pb::HandoffRequest>,
    ) -> Result<Response<pb::HandoffResponse>, Status> {
        let change = keyed!(request);
        let pb::HandoffRequest { who, to, note, done, decided, open, .. } = request.into_inner();
        let wish = Wish { note, done, decided, open, ..Wish::default() };
        let view = self.engine.hand_off(&who, &to, wish, change).await.map_err(refused)?;
        answer!(HandoffResponse, view)
    }

    async fn stop_session(
        &self,
        request: Request<pb::StopSessionRequest>,
    ) -> Result<Response<pb::StopSessionResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let wanted = request.into_inner();
        let ended = match (wanted.done, wanted.said) {
            (true, true) => self.engine.finish(&wanted.who, change).await,
            (true, false) => self.engine.end(&wanted.who, change).await,
            (false, _) => self.engine.stop(&wanted.who, wanted.now, change).await,
        };
        let view = ended.map_err(refused)?;
        answer!(StopSessionResponse, view)
    }

    async fn pause_session(
        &self,
        request: Request<pb::PauseSessionRequest>,
    ) -> Result<Response<pb::PauseSessionResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let view = self.engine.pause(&request.get_ref().who, change).await.map_err(refused)?;
        answer!(PauseSessionResponse, view)
    }

    async fn resume_session(
        &self,
        mut request: Request<pb::ResumeSessionRequest>,
    ) -> Result<Response<pb::ResumeSessionResponse>, Status> {
        let change = keyed!(request);
        let wanted = from_proto::resume_session(request.into_inner()).map_err(invalid)?;
        let raised = Raised { tokens: wanted.max_tokens, dollars: wanted.max_dollars };
        let view =
            self.engine.resume(&wanted.who, raised, wanted.tape_bytes, change).await.map_err(refused)?;
        answer!(ResumeSessionResponse, view)
    }

    async fn interrupt_session(
        &self,
        request: Request<pb::InterruptSessionRequest>,
    ) -> Result<Response<pb::InterruptSessionResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let view = self.engine.interrupt(&request.get_ref().who, change).await.map_err(refused)?;
        answer!(InterruptSessionResponse, view)
    }

    async fn restart_session(
        &self,
        mut request: Request<pb::RestartSessionRequest>,
    ) -> Result<Response<pb::RestartSessionResponse>, Status> {
        let change = keyed!(request);
        let wanted = request.into_inner();
        let raised = Raised {
            tokens: wanted.max_tokens,
            dollars: wanted.max_micro_usd.map(ostler_domain::price::Dollars),
        };
        let view = self.engine.restart(&wanted.who, wanted.model, raised, change).await.map_err(refused)?;
        answer!(RestartSessionResponse, view)
    }

    async fn set_model(
        &self,
        request: Request<pb::SetModelRequest>,
    ) -> Result<Response<pb::SetModelResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let wanted = request.into_inner();
        let (view, now) = self.engine.set_model(&wanted.who, &wanted.model, change).await.map_err(refused)?;
        Ok(Response::new(pb::SetModelResponse { session: Some(to_proto::view(&view)), now }))
    }

    async fn fork_session(
        &self,
        mut request: Request<pb::ForkSessionRequest>,
    ) -> Result<Response<pb::ForkSessionResponse>, Status> {
        let change = keyed!(request);
        let wanted = request.into_inner();
        let name = wanted.name.map(|name| from_proto::id(&name, "name")).transpose().map_err(invalid)?;
        let copy = NewFork { name, at: wanted.at };
        let view = self.engine.fork(&wanted.who, copy, change).await.map_err(refused)?;
        answer!(ForkSessionResponse, view)
    }

    async fn ask_session(
        &self,
        mut request: Request<pb::AskSessionRequest>,
    ) -> Result<Response<pb::AskSessionResponse>, Status> {
        let change = keyed!(request);
        let pb::AskSessionRequest { who, question, max_tokens, max_micro_usd, .. } = request.into_inner();
        let dollars = max_micro_usd.map(ostler_domain::price::Dollars);
        let amount = Amount { tokens: max_tokens, dollars };
        let amount = (amount != Amount::default()).then_some(amount);
        let view = self.engine.ask_copy(&who, &question, amount, change).await.map_err(refused)?;
        answer!(AskSessionResponse, view)
    }

    async fn get_native_command(
        &self,
        request: Request<pb::GetNativeCommandRequest>,
    ) -> Result<Response<pb::GetNativeCommandResponse>, Status> {
        let native = self.engine.native(&request.get_ref().who).await.map_err(refused)?;
        Ok(Response::new(to_proto::native_command(reply::NativeCommand {
            working_dir: native.working_dir,
            env: native.command.env.into_iter().collect(),
            words: native.command.words,
        })))
    }

    async fn list_messages(
        &self,
        request: Request<pb::ListMessagesRequest>,
    ) -> Result<Response<pb::ListMessagesResponse>, Status> {
        let pb::ListMessagesRequest { who, limit, cursor, waiting } = request.into_inner();
        let listed = if waiting {
            let rows = self.engine.messages_in_order(&who).await.map_err(refused)?;
            Listed { rows, next_cursor: None }
        } else {
            let page = from_proto::page(limit, &cursor).map_err(invalid)?;
            self.engine.messages(&who, page).await.map_err(refused)?
        };
        Ok(Response::new(pb::ListMessagesResponse {
            messages: listed.rows.into_iter().map(|row| to_proto::delivery(&rows::delivery(row))).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn get_message(
        &self,
        request: Request<pb::GetMessageRequest>,
    ) -> Result<Response<pb::GetMessageResponse>, Status> {
        let row = self.engine.message(&request.get_ref().message).await.map_err(refused)?;
        let message = Some(self.whole(row).await?);
        Ok(Response::new(pb::GetMessageResponse { message }))
    }

    async fn cancel_message(
        &self,
        request: Request<pb::CancelMessageRequest>,
    ) -> Result<Response<pb::CancelMessageResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let row = self.engine.cancel_message(&request.get_ref().message, change).await.map_err(refused)?;
        let message = Some(self.whole(row).await?);
        Ok(Response::new(pb::CancelMessageResponse { message }))
    }

    async fn clear_messages(
        &self,
        request: Request<pb::ClearMessagesRequest>,
    ) -> Result<Response<pb::ClearMessagesResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let rows = self.engine.clear_messages(&request.get_ref().who, change).await.map_err(refused)?;
        let messages = rows.into_iter().map(|row| to_proto::delivery(&rows::delivery(row))).collect();
        Ok(Response::new(pb::ClearMessagesResponse { messages }))
    }

    async fn edit_message(
        &self,
        request: Request<pb::EditMessageRequest>,
    ) -> Result<Response<pb::EditMessageResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let pb::EditMessageRequest { message, text, .. } = request.into_inner();
        let row = self.engine.edit_message(&message, &text, change).await.map_err(refused)?;
        let message = Some(self.whole(row).await?);
        Ok(Response::new(pb::EditMessageResponse { message }))
    }

    async fn move_message(
        &self,
        mut request: Request<pb::MoveMessageRequest>,
    ) -> Result<Response<pb::MoveMessageResponse>, Status> {
        let change = keyed!(request);
        let pb::MoveMessageRequest { message, place, .. } = request.into_inner();
        let place = match from_proto::message_place(place) {
            wish::MessagePlace::First => MessagePlace::First,
            wish::MessagePlace::Before(other) => MessagePlace::Before(other),
            wish::MessagePlace::To(who) => MessagePlace::To(Addressee { who, key: None }),
        };
        let row = self.engine.move_message(&message, place, change).await.map_err(refused)?;
        let message = Some(self.whole(row).await?);
        Ok(Response::new(pb::MoveMessageResponse { message }))
    }

    async fn list_approvals(
        &self,
        request: Request<pb::ListApprovalsRequest>,
    ) -> Result<Response<pb::ListApprovalsResponse>, Status> {
        let pb::ListApprovalsRequest { only_open, limit, cursor } = request.into_inner();
        let page: Page = from_proto::page(limit, &cursor).map_err(invalid)?;
        let listed = self.engine.approvals(only_open, page).await.map_err(refused)?;
        Ok(Response::new(pb::ListApprovalsResponse {
            approvals: listed.rows.into_iter().map(|row| to_proto::approval(&rows::approval(row))).collect(),
            next_cursor: to_proto::cursor(listed.next_cursor),
        }))
    }

    async fn get_approval(
        &self,
        request: Request<pb::GetApprovalRequest>,
    ) -> Result<Response<pb::GetApprovalResponse>, Status> {
        let row = self.engine.approval(&request.get_ref().approval).await.map_err(refused)?;
        Ok(Response::new(pb::GetApprovalResponse {
            approval: Some(to_proto::approval(&rows::approval(row))),
        }))
    }

    async fn answer_approval(
        &self,
        request: Request<pb::AnswerApprovalRequest>,
    ) -> Result<Response<pb::AnswerApprovalResponse>, Status> {
        let change = change(&request, &request.get_ref().request_id)?;
        let wanted = from_proto::answer_approval(request.into_inner()).map_err(invalid)?;
        let answer = Answer { allow: wanted.allow, always: wanted.always, message: wanted.message.clone() };
        let (row, rules) = self.engine.answer(&wanted.approval, answer, change).await.map_err(refused)?;
        let given = reply::AnswerGiven { approval: rows::approval(row), rules };
        Ok(Response::new(to_proto::answer_given(&given)))
    }
}

impl Served {
    /// What became of something said, as it stands.
    async fn taken(&self, sent: Sent) -> Result<reply::Taken, Status> {
        let (heard, opened) = match (sent.heard, sent.opened) {
            (Some(heard), opened) => (heard, opened),
            (None, Some(opened)) => return Ok(reply::Taken::Reset(opened)),
            (None, None) => return Err(Status::internal("a message was neither heard nor a reset")),
        };
        let row = self.engine.message(&heard.message.to_string()).await.map_err(refused)?;
        let dropped = self.engine.dropped_for(heard.message).await.map_err(refused)?;
        Ok(reply::Taken::Sent(Box::new(reply::Sent {
            message: heard.message,
            // What it has been since is told by its events.
            receipt: if row.receipt == Receipt::Dropped { row.receipt } else { Receipt::Accepted },
            session: heard.session,
            woke: heard.woke,
            mode: heard.mode,
            opened,
            why: row.why,
            dropped,
            rule: row.rule,
        })))
    }

    /// A message with all of its text.
    async fn whole(&self, row: MessageRow) -> Result<pb::Message, Status> {
        let text = self.engine.message_text(&row).await.map_err(refused)?;
        Ok(to_proto::delivery(&rows::delivery(MessageRow { head: text, ..row })))
    }
}

fn new_session(wanted: wish::CreateSession) -> NewSession {
    let watchdogs = (wanted.watchdogs != WatchdogLimits::default()).then_some(wanted.watchdogs);
    NewSession {
        campaign: wanted.campaign,
        provider: wanted.provider,
        model: wanted.model,
        name: wanted.name,
        prompt: wanted.initial_message,
        budget: wanted.budget,
        when_used_up: wanted.when_used_up,
        timeout: wanted.timeout,
        timeout_counts_waiting: wanted.timeout_counts_waiting,
        restart: wanted.restart,
        approve: wanted.approve,
        ends_with_turn: wanted.ends_with_turn,
        environment: wanted.environment,
        provider_config: wanted.provider_config,
        ticket: wanted.ticket,
        spawned_by: wanted.spawned_by,
        watchdogs,
        priority: wanted.priority,
        agent: wanted.agent,
        key: wanted.key,
        worktree: wanted.worktree,
        auth_profile: wanted.auth_profile,
        ..NewSession::default()
    }
}
