//! Requests. An enum that is not set asks for the default.

use std::collections::BTreeMap;

use ostler_domain::{
    Budget, Secret, Time,
    budget::Amount,
    conversation::{ChatType, Inbound, ThreadId},
    limits::{CALLER_KEY_BYTES, CALLER_KEYS},
    price::Dollars,
    provider::CallerKeys,
    session::WatchdogLimits,
    worktree::Wanted,
};

use super::{
    Result, duration, event_filter, id, optional_id, optional_time, required_time, session_filter, text,
};
use crate::{
    InvalidField,
    enums::{from, or_default},
    pb,
    request::{
        AddCampaign, AnswerApproval, CreateSession, GetUsage, ListEvents, MessagePlace, Place, ResumeSession,
        SendMessage,
    },
};

pub fn add_campaign(request: pb::AddCampaignRequest) -> Result<AddCampaign> {
    Ok(AddCampaign { path: text(request.path, "path")?, name: optional_id(request.name, "name")? })
}

pub fn create_session(request: pb::CreateSessionRequest) -> Result<CreateSession> {
    let when_used_up = or_default(request.on_budget, "on_budget", from::on_budget)?;
    let amount = Amount {
        tokens: (request.max_tokens > 0).then_some(request.max_tokens),
        dollars: request.max_micro_usd.map(Dollars),
    };
    let budget = (amount != Amount::default()).then(|| Budget::new(amount, when_used_up));
    Ok(CreateSession {
        campaign: text(request.campaign, "campaign")?,
        provider: request.provider,
        model: request.model,
        name: request.name.map(|name| id(&name, "name")).transpose()?,
        initial_message: request.initial_message,
        budget,
        when_used_up,
        timeout: request.timeout.map(|span| duration(span, "timeout")).transpose()?,
        restart: or_default(request.restart_policy, "restart_policy", from::restart_policy)?,
        approve: or_default(request.approve, "approve", from::approve)?,
        ends_with_turn: request.ends_with_turn,
        environment: request.environment,
        provider_config: request.provider_config,
        ticket: request.ticket,
        spawned_by: optional_id(request.spawned_by, "spawned_by")?,
        watchdogs: watchdogs(request.watchdogs.unwrap_or_default()).map_err(|e| e.within("watchdogs"))?,
        priority: or_default(request.priority, "priority", from::priority)?,
        timeout_counts_waiting: request.timeout_counts_waiting,
        agent: request.agent,
        key: optional_id(request.key, "key")?,
        worktree: request.worktree.map(|pb::WantedWorktree { branch }| Wanted { branch }),
        auth_profile: optional_id(request.auth_profile, "auth_profile")?,
    })
}

/// Keys that the caller brings.
pub fn caller_keys(keys: BTreeMap<String, String>) -> Result<CallerKeys> {
    if keys.len() > CALLER_KEYS {
        return Err(InvalidField::new("keys", format!("at most {CALLER_KEYS} are taken")));
    }
    let keys = keys.into_iter().map(|(variable, key)| (variable, Secret::new(key)));
    let keys: CallerKeys = keys.collect();
    if keys.iter().any(|(_, key)| key.reveal().len() > CALLER_KEY_BYTES) {
        return Err(InvalidField::new("keys", format!("a key has at most {CALLER_KEY_BYTES} bytes")));
    }
    Ok(keys)
}

fn watchdogs(limits: pb::WatchdogLimits) -> Result<WatchdogLimits> {
    let default = WatchdogLimits::default();
    let micros = |span: Option<prost_types::Duration>, field: &str, default: u64| match span {
        None => Ok(default),
        Some(span) => u64::try_from(duration(span, field)?.as_micros())
            .map_err(|_| InvalidField::new(field, "longer than anyone can wait")),
    };
    Ok(WatchdogLimits {
        start_us: micros(limits.start, "start", default.start_us)?,
        first_output_us: micros(limits.first_output, "first_output", default.first_output_us)?,
        silent_us: micros(limits.silent, "silent", default.silent_us)?,
        tool_us: micros(limits.tool, "tool", default.tool_us)?,
        retries_us: micros(limits.retries, "retries", default.retries_us)?,
        rung_us: micros(limits.rung, "rung", default.rung_us)?,
    })
}

pub fn send_message(request: pb::SendMessageRequest) -> Result<SendMessage> {
    Ok(SendMessage {
        who: text(request.who, "who")?,
        text: text(request.text, "text")?,
        mode: (request.mode != 0).then(|| from::mode(request.mode, "mode")).transpose()?,
        key: optional_id(request.key, "key")?,
        idempotency_key: request.idempotency_key,
        inbound: request.inbound.map(inbound).transpose().map_err(|e| e.within("inbound"))?,
    })
}

fn inbound(inbound: pb::Inbound) -> Result<Inbound> {
    let chat_type = inbound.chat_type.map(|text| {
        ChatType::parse(&text)
            .ok_or_else(|| InvalidField::new("chat_type", format_args!("expected dm, group or channel")))
    });
    Ok(Inbound {
        channel: inbound.channel,
        to: inbound.to,
        account_id: inbound.account_id,
        thread_id: inbound.thread_id.map(ThreadId::Text),
        from: inbound.from,
        surface: inbound.surface,
        chat_type: chat_type.transpose()?,
    })
}

pub fn message_place(place: Option<pb::move_message_request::Place>) -> MessagePlace {
    match place {
        None => MessagePlace::First,
        Some(pb::move_message_request::Place::Before(id)) => MessagePlace::Before(id),
        Some(pb::move_message_request::Place::To(who)) => MessagePlace::To(who),
    }
}

pub fn resume_session(request: pb::ResumeSessionRequest) -> Result<ResumeSession> {
    Ok(ResumeSession {
        who: text(request.who, "who")?,
        max_tokens: request.max_tokens,
        max_dollars: request.max_micro_usd.map(Dollars),
        tape_bytes: request.tape_bytes,
    })
}

pub fn answer_approval(request: pb::AnswerApprovalRequest) -> Result<AnswerApproval> {
    Ok(AnswerApproval {
        approval: text(request.approval, "approval")?,
        allow: request.allow,
        message: request.message,
        always: request.always,
    })
}

pub fn list_events(request: pb::ListEventsRequest) -> Result<ListEvents> {
    use pb::list_events_request::Position;
    let from = match request.position {
        None => Place::After(0),
        Some(Position::After(seq)) => Place::After(seq),
        Some(Position::Before(0)) => Place::End,
        Some(Position::Before(seq)) => Place::Before(seq),
    };
    let filter = event_filter(request.filter.unwrap_or_default()).map_err(|e| e.within("filter"))?;
    Ok(ListEvents { filter, from, limit: request.limit })
}

/// When the day of who asks began.
pub fn get_today(request: pb::GetTodayRequest) -> Result<Time> {
    required_time(request.midnight, "midnight")
}

pub fn get_usage(request: pb::GetUsageRequest) -> Result<GetUsage> {
    Ok(GetUsage {
        filter: session_filter(request.filter.unwrap_or_default()).map_err(|e| e.within("filter"))?,
        since: optional_time(request.since, "since")?,
        until: optional_time(request.until, "until")?,
        by: if request.by == 0 { None } else { Some(from::usage_by(request.by, "by")?) },
        limit: request.limit,
    })
}
