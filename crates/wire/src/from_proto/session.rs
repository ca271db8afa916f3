//! Sessions, and what is said to and asked by them.

use std::{fmt::Display, str::FromStr, time::Duration};

use ostler_domain::{
    Budget, ConversationId, Hint, Message, Now, Usage,
    approval::Applied,
    chain::{Chain, Sum},
    event::{By, ContextMeasured, Leftover, Process},
    limits::FILTER_WORDS,
    price::{Cost, Dollars},
    query::{Scope, SessionFilter, words},
    reboot::{GoingOn, LostSession},
    session::{
        AgentRef, Doing, LargestProcess, Obituary, OutOfMemory, Restart, RestartRefusal, Sandbox, View,
    },
    time::{BootId, Deadline},
    worktree::Worktree,
};

use super::{Result, id, optional_id, optional_time, required, required_time, text, time};
use crate::{
    InvalidField,
    enums::{from, or_default},
    pb,
    reply::{AnswerGiven, Answered, Approval, Delivery, Sent, Taken},
};

pub fn lost_session(lost: pb::LostSession) -> Result<LostSession> {
    Ok(LostSession {
        session: view(required(lost.session, "session")?).map_err(|e| e.within("session"))?,
        restarted_at: required_time(lost.restarted_time, "restarted_time")?,
        price: GoingOn {
            is_free: lost.free,
            tokens: lost.tokens,
            cost: lost.micro_usd.map(Dollars),
            is_on_plan: lost.on_plan,
        },
    })
}

fn agent_ref(agent: pb::SessionAgent) -> Result<AgentRef> {
    Ok(AgentRef { id: id(&agent.id, "id")?, name: id(&agent.name, "name")?, role: id(&agent.role, "role")? })
}

pub fn view(session: pb::Session) -> Result<View> {
    Ok(View {
        id: id(&session.id, "id")?,
        campaign: id(&session.campaign_id, "campaign_id")?,
        conversation: id(&session.conversation_id, "conversation_id")?,
        name: id(&session.name, "name")?,
        agent: session.agent.map(agent_ref).transpose().map_err(|e| e.within("agent"))?,
        provider: text(session.provider, "provider")?,
        model: session.model,
        status: from::status(session.status, "status")?,
        phase: from::phase(session.phase, "phase")?,
        attention: session.attention.map(|number| from::attention(number, "attention")).transpose()?,
        attention_since: required_time(session.attention_since, "attention_since")?,
        evidence: session.evidence,
        outcome: session.outcome.map(|number| from::outcome(number, "outcome")).transpose()?,
        obituary: session.obituary.map(obituary).transpose().map_err(|e| e.within("obituary"))?,
        restart: session.restart.map(restart).transpose().map_err(|e| e.within("restart"))?,
        desired: from::desired(session.desired, "desired")?,
        sandbox: sandbox(&session.sandbox)?,
        working_dir: text(session.working_dir, "working_dir")?,
        branch: session.branch,
        worktree: session.worktree.map(worktree).transpose().map_err(|e| e.within("worktree"))?,
        ticket: session.ticket,
        ticket_id: optional_id(session.ticket_id, "ticket_id")?,
        mission: session.mission.map(super::membership).transpose().map_err(|e| e.within("mission"))?,
        continues: optional_id(session.continues, "continues")?,
        chain: id(&session.chain_id, "chain_id")?,
        spawned_by: optional_id(session.spawned_by, "spawned_by")?,
        restart_count: session.restart_count,
        restart_policy: from::restart_policy(session.restart_policy, "restart_policy")?,
        provider_id: session.provider_id,
        process: session.process.map(process),
        doing: session.doing.map(doing).transpose().map_err(|e| e.within("doing"))?,
        turns: session.turns,
        usage: usage(required(session.usage, "usage")?),
        cost: session.cost.map(cost).unwrap_or_default(),
        budget: session.budget.map(budget).transpose().map_err(|e| e.within("budget"))?,
        messages_waiting: session.messages_waiting,
        approvals_open: session
            .open_approval_ids
            .iter()
            .map(|approval| id(approval, "open_approval_ids"))
            .collect::<Result<_>>()?,
        denied: session.denied,
        redacted: session.redacted,
        last_completion: session.last_completion,
        created_at: required_time(session.created_time, "created_time")?,
        started_at: optional_time(session.started_time, "started_time")?,
        ended_at: optional_time(session.ended_time, "ended_time")?,
        last_activity_at: optional_time(session.last_activity_time, "last_activity_time")?,
        updated_at: required_time(session.updated_time, "updated_time")?,
        limited_until: optional_time(session.limited_until, "limited_until")?,
        context: session
            .context
            .map(|context| ContextMeasured { used: context.used, window: context.window }),
        session_seq: session.session_seq,
        priority: or_default(session.priority, "priority", from::priority)?,
        imported: session
            .imported
            .map(super::history_origin)
            .transpose()
            .map_err(|e| e.within("imported"))?,
        compactions: session.compactions,
        auth_profile: optional_id(session.auth_profile, "auth_profile")?,
        continued_by: optional_id(session.continued_by, "continued_by")?,
        restart_refused: session
            .restart_refused
            .map(restart_refused)
            .transpose()
            .map_err(|e| e.within("restart_refused"))?,
    })
}

pub fn usage(usage: pb::Usage) -> Usage {
    let pb::Usage { input, cache_read, cache_write, output, reasoning } = usage;
    Usage { input, cache_read, cache_write, output, reasoning }
}

pub fn budget(budget: pb::Budget) -> Result<Budget> {
    Ok(Budget {
        tokens: (budget.max_tokens > 0).then_some(budget.max_tokens),
        dollars: budget.max_micro_usd.map(Dollars),
        when_used_up: from::on_budget(budget.on_budget, "on_budget")?,
    })
}

pub fn cost(cost: pb::Cost) -> Cost {
    Cost {
        paid: Dollars(cost.micro_usd),
        plan: Dollars(cost.plan_micro_usd),
        unpriced: cost
            .unpriced
            .into_iter()
            .map(|of| (of.model, of.usage.map(usage).unwrap_or_default()))
            .collect(),
        plan_unpriced: cost.plan_unpriced.map(usage).unwrap_or_default(),
    }
}

fn cure(cure: pb::Cure) -> Hint {
    Hint { command: cure.command, effect: cure.effect }
}

pub fn obituary(obituary: pb::Obituary) -> Result<Obituary> {
    Ok(Obituary {
        sentence: obituary.sentence,
        exit_code: obituary.exit_code,
        signal: obituary.signal,
        rule: obituary.rule.map(|number| from::stop_rule(number, "rule")).transpose()?,
        by: obituary.by,
        oom: obituary.oom,
        last: obituary.last,
        leftovers: obituary.leftovers.into_iter().map(leftover).collect(),
        cures: obituary.cures.into_iter().map(cure).collect(),
        memory: obituary.memory.map(out_of_memory),
    })
}

fn out_of_memory(memory: pb::OutOfMemory) -> OutOfMemory {
    OutOfMemory {
        limit_bytes: memory.limit_bytes,
        used_bytes: memory.used_bytes,
        largest: memory.largest.map(|largest| LargestProcess { name: largest.name, bytes: largest.bytes }),
        oom_kills: memory.oom_kills,
    }
}

/// Reads what follows an end. Its deadline knows the wall clock only: it belongs to no boot of this machine.
pub fn restart(plan: pb::RestartPlan) -> Result<Restart> {
    use pb::restart_plan::Plan;
    match required(plan.plan, "plan")? {
        Plan::RestartTime(at) => {
            let wall = time(at, "restart_time")?;
            let nowhere = Now { wall, since_boot: Duration::ZERO, boot: BootId::default() };
            Ok(Restart::At(Deadline::after(&nowhere, Duration::ZERO)))
        }
        Plan::Quarantine(quarantine) => Ok(Restart::Quarantined { short_lives: quarantine.short_lives }),
    }
}

fn restart_refused(refused: pb::RestartRefusal) -> Result<RestartRefusal> {
    Ok(RestartRefusal {
        since: required_time(refused.since, "since")?,
        reason: refused.reason,
        why: refused.why,
        cures: refused.cures.into_iter().map(cure).collect(),
    })
}

fn sandbox(word: &str) -> Result<Sandbox> {
    let known = [Sandbox::On, Sandbox::Off];
    known
        .into_iter()
        .find(|sandbox| sandbox.as_str() == word)
        .ok_or_else(|| InvalidField::new("sandbox", format_args!("\"{word}\" is not known to this version")))
}

pub fn process(process: pb::Process) -> Process {
    Process { pid: process.pid, start_time: process.start_time }
}

fn leftover(leftover: pb::Leftover) -> Leftover {
    Leftover { pid: leftover.pid, name: leftover.name }
}

fn doing(doing: pb::Doing) -> Result<Doing> {
    Ok(Doing { text: doing.text, since: required_time(doing.since, "since")? })
}

/// The words of a list. One that says nothing would find everything.
fn listed(text: Option<String>, field: &str) -> Result<Vec<String>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let words: Vec<String> = words(&text).map(str::to_owned).collect();
    match words.len() {
        0 => Err(InvalidField::new(field, "names nothing")),
        1..=FILTER_WORDS => Ok(words),
        many => Err(InvalidField::new(field, format_args!("names {many}, and {FILTER_WORDS} is the most"))),
    }
}

fn ids<T: FromStr<Err: Display>>(text: Option<String>, field: &str) -> Result<Vec<T>> {
    listed(text, field)?.iter().map(|word| id(word, field)).collect()
}

pub fn session_filter(filter: pb::SessionFilter) -> Result<SessionFilter> {
    let scope = match pb::SessionScope::try_from(filter.scope) {
        Ok(pb::SessionScope::Unspecified | pb::SessionScope::All) => Scope::All,
        Ok(pb::SessionScope::Current) => {
            Scope::Current { failed_since: required_time(filter.failed_since, "failed_since")? }
        }
        Ok(pb::SessionScope::NotEnded) => Scope::NotEnded,
        Err(_) => {
            return Err(InvalidField::new(
                "scope",
                format_args!("{} is not known to this version", filter.scope),
            ));
        }
    };
    Ok(SessionFilter {
        scope,
        campaigns: ids(filter.campaign, "campaign")?,
        conversation: optional_id(filter.conversation, "conversation")?,
        chains: ids(filter.chain, "chain")?,
        continues: optional_id(filter.continues, "continues")?,
        spawned_by: optional_id(filter.spawned_by, "spawned_by")?,
        name: filter.name,
        name_begins: filter.name_begins,
        agents: listed(filter.agent, "agent")?,
        roles: listed(filter.role, "role")?,
        branches: listed(filter.branch, "branch")?,
        providers: listed(filter.provider, "provider")?,
        models: listed(filter.model, "model")?,
        tickets: listed(filter.ticket, "ticket")?,
        missions: ids(filter.mission, "mission")?,
        statuses: filter
            .statuses
            .into_iter()
            .map(|number| from::status(number, "statuses"))
            .collect::<Result<_>>()?,
        attention: filter
            .attention
            .into_iter()
            .map(|number| from::attention(number, "attention"))
            .collect::<Result<_>>()?,
        outcomes: filter
            .outcomes
            .into_iter()
            .map(|number| from::outcome(number, "outcomes"))
            .collect::<Result<_>>()?,
        since: optional_time(filter.since, "since")?,
        until: optional_time(filter.until, "until")?,
        min_cost: filter.min_micro_usd.map(Dollars),
    })
}

pub fn taken(taken: pb::SendMessageResponse) -> Result<Taken> {
    let opened = optional_id(taken.opened_conversation.clone(), "opened_conversation")?;
    match opened {
        Some(opened) if taken.message_id.is_empty() => Ok(Taken::Reset(opened)),
        opened => Ok(Taken::Sent(Box::new(sent(taken, opened)?))),
    }
}

fn sent(sent: pb::SendMessageResponse, opened: Option<ConversationId>) -> Result<Sent> {
    Ok(Sent {
        message: id(&sent.message_id, "message_id")?,
        receipt: from::receipt(sent.receipt, "receipt")?,
        session: view(required(sent.session, "session")?).map_err(|e| e.within("session"))?,
        woke: sent.woke,
        mode: or_default(sent.mode, "mode", from::mode)?,
        opened,
        why: sent.why,
        dropped: sent
            .dropped_messages
            .iter()
            .map(|dropped| id(dropped, "dropped_messages"))
            .collect::<Result<_>>()?,
        rule: sent.rule,
    })
}

pub fn delivery(message: pb::Message) -> Result<Delivery> {
    Ok(Delivery {
        message: Message {
            id: id(&message.id, "id")?,
            text: message.text,
            mode: from::mode(message.mode, "mode")?,
        },
        conversation: id(&message.conversation_id, "conversation_id")?,
        session: id(&message.session_id, "session_id")?,
        receipt: from::receipt(message.receipt, "receipt")?,
        by: By(message.by),
        accepted: required_time(message.accepted_time, "accepted_time")?,
        receipt_at: required_time(message.receipt_time, "receipt_time")?,
        turn: message.turn,
        why: message.why,
        rule: message.rule,
        key: message.idempotency_key,
    })
}

pub fn approval(approval: pb::Approval) -> Result<Approval> {
    Ok(Approval {
        id: id(&approval.id, "id")?,
        session: id(&approval.session_id, "session_id")?,
        tool: approval.tool,
        input: approval.input,
        asked: required_time(approval.asked_time, "asked_time")?,
        answer: approval.answer.map(answered).transpose().map_err(|e| e.within("answer"))?,
        asks: approval.asks,
        why: approval.why,
        deadline: optional_time(approval.deadline_time, "deadline_time")?,
        kind: or_default(approval.kind, "kind", from::ask_kind)?,
    })
}

pub fn answer_given(given: pb::AnswerApprovalResponse) -> Result<AnswerGiven> {
    let asked = required(given.approval, "approval")?;
    Ok(AnswerGiven {
        approval: approval(asked).map_err(|e| e.within("approval"))?,
        rules: given.rules.into_iter().map(applied).collect(),
    })
}

fn applied(rule: pb::AppliedRule) -> Applied {
    Applied { number: rule.number, text: rule.text }
}

fn answered(answered: pb::ApprovalAnswer) -> Result<Answered> {
    Ok(Answered {
        answer: from::answer(answered.answer, "answer")?,
        by: By(answered.by),
        message: answered.message,
        at: required_time(answered.answered_time, "answered_time")?,
        rules: answered.rules.into_iter().map(applied).collect(),
    })
}

pub(super) fn worktree(tree: pb::SessionWorktree) -> Result<Worktree> {
    Ok(Worktree {
        path: text(tree.path, "path")?,
        branch: text(tree.branch, "branch")?,
        base: text(tree.base, "base")?,
        from: tree.from,
        told: tree.told,
    })
}

pub fn chain(answer: pb::GetChainResponse) -> Result<Chain> {
    Ok(Chain {
        sessions: answer.sessions.into_iter().map(view).collect::<Result<_>>()?,
        helpers: answer.helpers.into_iter().map(view).collect::<Result<_>>()?,
        session_count: answer.session_count,
        helper_count: answer.helper_count,
        sum: Sum {
            usage: answer.usage.map(usage).unwrap_or_default(),
            cost: answer.cost.map(cost).unwrap_or_default(),
            time: Duration::from_micros(answer.time_us),
        },
    })
}
