//! Requests. Those that change something carry the caller's request id, so that asking twice does it once.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    RequestId, conversation::Inbound, provider::CallerKeys, session::WatchdogLimits, worktree::Wanted,
};

use super::{duration, event_filter, session_filter, time};
use crate::{
    enums::to,
    pb,
    request::{
        AddCampaign, AnswerApproval, CreateSession, GetUsage, ListEvents, MessagePlace, Place, ResumeSession,
        SendMessage,
    },
};

pub fn add_campaign(request: AddCampaign, id: RequestId) -> pb::AddCampaignRequest {
    pb::AddCampaignRequest {
        request_id: id.to_string(),
        path: request.path,
        name: request.name.map(String::from),
    }
}

pub fn create_session(request: CreateSession, id: RequestId) -> pb::CreateSessionRequest {
    let when_used_up = request.budget.map_or(request.when_used_up, |budget| budget.when_used_up);
    pb::CreateSessionRequest {
        request_id: id.to_string(),
        campaign: request.campaign,
        provider: request.provider,
        model: request.model,
        name: request.name.map(String::from),
        initial_message: request.initial_message,
        max_tokens: request.budget.and_then(|budget| budget.tokens).unwrap_or(0),
        max_micro_usd: request.budget.and_then(|budget| budget.dollars).map(|dollars| dollars.0),
        on_budget: to::on_budget(when_used_up).into(),
        timeout: request.timeout.map(duration),
        restart_policy: to::restart_policy(request.restart).into(),
        approve: to::approve(request.approve).into(),
        ends_with_turn: request.ends_with_turn,
        environment: request.environment,
        provider_config: request.provider_config,
        ticket: request.ticket,
        spawned_by: request.spawned_by.map(String::from),
        watchdogs: Some(watchdogs(request.watchdogs)),
        keys: BTreeMap::new(),
        priority: to::priority(request.priority).into(),
        timeout_counts_waiting: request.timeout_counts_waiting,
        agent: request.agent,
        key: request.key.map(String::from),
        worktree: request.worktree.map(|Wanted { branch }| pb::WantedWorktree { branch }),
        auth_profile: request.auth_profile.map(String::from),
    }
}

/// Keys that the caller brings, for the field of a request. What is sent is not recorded by whoever receives it.
pub fn caller_keys(keys: &CallerKeys) -> BTreeMap<String, String> {
    keys.iter().map(|(variable, key)| (variable.to_owned(), key.reveal().to_owned())).collect()
}

fn watchdogs(limits: WatchdogLimits) -> pb::WatchdogLimits {
    let span = |micros| Some(duration(Duration::from_micros(micros)));
    pb::WatchdogLimits {
        start: span(limits.start_us),
        first_output: span(limits.first_output_us),
        silent: span(limits.silent_us),
        tool: span(limits.tool_us),
        retries: span(limits.retries_us),
        rung: span(limits.rung_us),
    }
}

pub fn send_message(request: SendMessage, id: RequestId) -> pb::SendMessageRequest {
    pb::SendMessageRequest {
        request_id: id.to_string(),
        who: request.who,
        text: request.text,
        mode: request.mode.map_or(0, |mode| to::mode(mode).into()),
        key: request.key.map(String::from),
        keys: BTreeMap::new(),
        idempotency_key: request.idempotency_key,
        inbound: request.inbound.map(inbound),
    }
}

fn inbound(inbound: Inbound) -> pb::Inbound {
    pb::Inbound {
        channel: inbound.channel,
        to: inbound.to,
        account_id: inbound.account_id,
        thread_id: inbound.thread_id.map(|id| id.to_string()),
        from: inbound.from,
        surface: inbound.surface,
        chat_type: inbound.chat_type.map(|chat| chat.as_str().to_owned()),
    }
}

pub fn message_place(place: MessagePlace) -> Option<pb::move_message_request::Place> {
    match place {
        MessagePlace::First => None,
        MessagePlace::Before(id) => Some(pb::move_message_request::Place::Before(id)),
        MessagePlace::To(who) => Some(pb::move_message_request::Place::To(who)),
    }
}

pub fn resume_session(request: ResumeSession, id: RequestId) -> pb::ResumeSessionRequest {
    pb::ResumeSessionRequest {
        request_id: id.to_string(),
        who: request.who,
        max_tokens: request.max_tokens,
        max_micro_usd: request.max_dollars.map(|dollars| dollars.0),
        tape_bytes: request.tape_bytes,
        keys: BTreeMap::new(),
    }
}

pub fn answer_approval(request: AnswerApproval, id: RequestId) -> pb::AnswerApprovalRequest {
    pb::AnswerApprovalRequest {
        request_id: id.to_string(),
        approval: request.approval,
        allow: request.allow,
        message: request.message,
        always: request.always,
    }
}

pub fn list_events(request: &ListEvents) -> pb::ListEventsRequest {
    use pb::list_events_request::Position;
    let position = match request.from {
        Place::After(seq) => Position::After(seq),
        Place::Before(seq) => Position::Before(seq),
        Place::End => Position::Before(0),
    };
    pb::ListEventsRequest {
        filter: Some(event_filter(&request.filter)),
        position: Some(position),
        limit: request.limit,
    }
}

pub fn get_usage(request: &GetUsage) -> pb::GetUsageRequest {
    pb::GetUsageRequest {
        filter: Some(session_filter(&request.filter)),
        since: request.since.map(time),
        until: request.until.map(time),
        by: request.by.map_or(pb::UsageBy::Unspecified, to::usage_by).into(),
        limit: request.limit,
    }
}
