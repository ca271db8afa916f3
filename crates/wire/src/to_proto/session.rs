//! Sessions, and what is said to and asked by them.

use ostler_domain::{
    Budget, Hint, Usage,
    approval::Applied,
    chain::Chain,
    event::{Leftover, Process},
    price::{Cost, Dollars},
    query::{Scope, SessionFilter},
    reboot::LostSession,
    session::{AgentRef, Doing, Obituary, OutOfMemory, Restart, RestartRefusal, View},
    worktree::Worktree,
};

use super::time;
use crate::{
    enums::to,
    pb,
    reply::{AnswerGiven, Answered, Approval, Delivery, Sent, Taken},
};

pub fn lost_session(lost: &LostSession) -> pb::LostSession {
    pb::LostSession {
        session: Some(view(&lost.session)),
        restarted_time: Some(time(lost.restarted_at)),
        free: lost.price.is_free,
        tokens: lost.price.tokens,
        micro_usd: lost.price.cost.map(|Dollars(micros)| micros),
        on_plan: lost.price.is_on_plan,
    }
}

pub fn view(view: &View) -> pb::Session {
    pb::Session {
        id: view.id.to_string(),
        campaign_id: view.campaign.to_string(),
        conversation_id: view.conversation.to_string(),
        name: view.name.to_string(),
        agent: view.agent.as_ref().map(agent_ref),
        provider: view.provider.clone(),
        model: view.model.clone(),
        status: to::status(view.status).into(),
        phase: to::phase(view.phase).into(),
        attention: view.attention.map(|attention| to::attention(attention).into()),
        attention_since: Some(time(view.attention_since)),
        evidence: view.evidence.clone(),
        outcome: view.outcome.map(|outcome| to::outcome(outcome).into()),
        obituary: view.obituary.as_ref().map(obituary),
        restart: view.restart.as_ref().map(restart),
        desired: to::desired(view.desired).into(),
        sandbox: view.sandbox.as_str().to_owned(),
        working_dir: view.working_dir.clone(),
        branch: view.branch.clone(),
        worktree: view.worktree.as_ref().map(worktree),
        ticket: view.ticket.clone(),
        mission: view.mission.map(super::membership),
        ticket_id: view.ticket_id.map(|id| id.to_string()),
        continues: view.continues.map(String::from),
        chain_id: view.chain.to_string(),
        spawned_by: view.spawned_by.map(String::from),
        restart_count: view.restart_count,
        restart_policy: to::restart_policy(view.restart_policy).into(),
        provider_id: view.provider_id.clone(),
        process: view.process.as_ref().map(process),
        doing: view.doing.as_ref().map(doing),
        turns: view.turns,
        usage: Some(usage(view.usage)),
        cost: Some(cost(&view.cost)),
        budget: view.budget.map(budget),
        messages_waiting: view.messages_waiting,
        open_approval_ids: view.approvals_open.iter().map(ToString::to_string).collect(),
        denied: view.denied,
        redacted: view.redacted,
        last_completion: view.last_completion.clone(),
        created_time: Some(time(view.created_at)),
        started_time: view.started_at.map(time),
        ended_time: view.ended_at.map(time),
        last_activity_time: view.last_activity_at.map(time),
        updated_time: Some(time(view.updated_at)),
        limited_until: view.limited_until.map(time),
        context: view.context.map(|context| pb::ContextUse { used: context.used, window: context.window }),
        session_seq: view.session_seq,
        priority: to::priority(view.priority).into(),
        imported: view.imported.as_ref().map(super::history_origin),
        compactions: view.compactions,
        auth_profile: view.auth_profile.clone().map(String::from),
        continued_by: view.continued_by.map(String::from),
        restart_refused: view.restart_refused.as_ref().map(restart_refused),
    }
}

pub fn usage(usage: Usage) -> pb::Usage {
    let Usage { input, cache_read, cache_write, output, reasoning } = usage;
    pb::Usage { input, cache_read, cache_write, output, reasoning }
}

pub fn budget(budget: Budget) -> pb::Budget {
    pb::Budget {
        max_tokens: budget.tokens.unwrap_or(0),
        on_budget: to::on_budget(budget.when_used_up).into(),
        max_micro_usd: budget.dollars.map(|dollars| dollars.0),
    }
}

pub fn cost(cost: &Cost) -> pb::Cost {
    pb::Cost {
        micro_usd: cost.paid.0,
        plan_micro_usd: cost.plan.0,
        unpriced: cost
            .unpriced
            .iter()
            .map(|(model, tokens)| pb::UnpricedUsage { model: model.clone(), usage: Some(usage(*tokens)) })
            .collect(),
        plan_unpriced: Some(usage(cost.plan_unpriced)),
    }
}

fn cure(cure: &Hint) -> pb::Cure {
    pb::Cure { command: cure.command.clone(), effect: cure.effect.clone() }
}

pub fn obituary(obituary: &Obituary) -> pb::Obituary {
    pb::Obituary {
        sentence: obituary.sentence.clone(),
        exit_code: obituary.exit_code,
        signal: obituary.signal,
        rule: obituary.rule.map(|rule| to::stop_rule(rule).into()),
        by: obituary.by.clone(),
        oom: obituary.oom,
        last: obituary.last.clone(),
        leftovers: obituary.leftovers.iter().map(leftover).collect(),
        cures: obituary.cures.iter().map(cure).collect(),
        memory: obituary.memory.as_ref().map(out_of_memory),
    }
}

fn out_of_memory(memory: &OutOfMemory) -> pb::OutOfMemory {
    pb::OutOfMemory {
        limit_bytes: memory.limit_bytes,
        used_bytes: memory.used_bytes,
        largest: memory
            .largest
            .as_ref()
            .map(|largest| pb::LargestProcess { name: largest.name.clone(), bytes: largest.bytes }),
        oom_kills: memory.oom_kills,
    }
}

/// Carries the wall-clock time of a restart only: the boot clock beside it means nothing to anyone but the daemon.
pub fn restart(restart: &Restart) -> pb::RestartPlan {
    use pb::restart_plan::Plan;
    let plan = match restart {
        Restart::At(deadline) => Plan::RestartTime(time(deadline.wall())),
        Restart::Quarantined { short_lives } => {
            Plan::Quarantine(pb::Quarantine { short_lives: *short_lives })
        }
    };
    pb::RestartPlan { plan: Some(plan) }
}

fn restart_refused(refused: &RestartRefusal) -> pb::RestartRefusal {
    pb::RestartRefusal {
        since: Some(time(refused.since)),
        reason: refused.reason.clone(),
        why: refused.why.clone(),
        cures: refused.cures.iter().map(cure).collect(),
    }
}

pub fn process(process: &Process) -> pb::Process {
    pb::Process { pid: process.pid, start_time: process.start_time }
}

fn leftover(leftover: &Leftover) -> pb::Leftover {
    pb::Leftover { pid: leftover.pid, name: leftover.name.clone() }
}

fn doing(doing: &Doing) -> pb::Doing {
    pb::Doing { text: doing.text.clone(), since: Some(time(doing.since)) }
}

fn agent_ref(agent: &AgentRef) -> pb::SessionAgent {
    pb::SessionAgent { id: agent.id.to_string(), name: agent.name.to_string(), role: agent.role.to_string() }
}

/// One, or several with commas between them: a daemon that knows only one finds nothing by it, and not too much.
fn listed<T: ToString>(values: &[T]) -> Option<String> {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    (!values.is_empty()).then(|| values.join(","))
}

pub fn session_filter(filter: &SessionFilter) -> pb::SessionFilter {
    let (scope, failed_since) = match filter.scope {
        Scope::All => (pb::SessionScope::All, None),
        Scope::Current { failed_since } => (pb::SessionScope::Current, Some(failed_since)),
        Scope::NotEnded => (pb::SessionScope::NotEnded, None),
    };
    pb::SessionFilter {
        scope: scope.into(),
        failed_since: failed_since.map(time),
        campaign: listed(&filter.campaigns),
        conversation: filter.conversation.map(String::from),
        chain: listed(&filter.chains),
        continues: filter.continues.map(String::from),
        spawned_by: filter.spawned_by.map(String::from),
        name: filter.name.clone(),
        name_begins: filter.name_begins.clone(),
        agent: listed(&filter.agents),
        role: listed(&filter.roles),
        branch: listed(&filter.branches),
        provider: listed(&filter.providers),
        model: listed(&filter.models),
        ticket: listed(&filter.tickets),
        mission: listed(&filter.missions),
        statuses: filter.statuses.iter().map(|status| to::status(*status).into()).collect(),
        attention: filter.attention.iter().map(|attention| to::attention(*attention).into()).collect(),
        outcomes: filter.outcomes.iter().map(|outcome| to::outcome(*outcome).into()).collect(),
        since: filter.since.map(time),
        until: filter.until.map(time),
        min_micro_usd: filter.min_cost.map(|cost| cost.0),
    }
}

pub fn taken(taken: &Taken) -> pb::SendMessageResponse {
    match taken {
        Taken::Sent(taken) => sent(taken),
        Taken::Reset(opened) => pb::SendMessageResponse {
            opened_conversation: Some(opened.to_string()),
            ..pb::SendMessageResponse::default()
        },
    }
}

fn sent(sent: &Sent) -> pb::SendMessageResponse {
    pb::SendMessageResponse {
        message_id: sent.message.to_string(),
        receipt: to::receipt(sent.receipt).into(),
        session: Some(view(&sent.session)),
        woke: sent.woke,
        mode: to::mode(sent.mode).into(),
        opened_conversation: sent.opened.map(|id| id.to_string()),
        why: sent.why.clone(),
        dropped_messages: sent.dropped.iter().map(ToString::to_string).collect(),
        rule: sent.rule.clone(),
    }
}

pub fn delivery(delivery: &Delivery) -> pb::Message {
    pb::Message {
        id: delivery.message.id.to_string(),
        conversation_id: delivery.conversation.to_string(),
        session_id: delivery.session.to_string(),
        text: delivery.message.text.clone(),
        mode: to::mode(delivery.message.mode).into(),
        receipt: to::receipt(delivery.receipt).into(),
        by: delivery.by.0.clone(),
        accepted_time: Some(time(delivery.accepted)),
        receipt_time: Some(time(delivery.receipt_at)),
        turn: delivery.turn,
        why: delivery.why.clone(),
        rule: delivery.rule.clone(),
        idempotency_key: delivery.key.clone(),
    }
}

pub fn approval(approval: &Approval) -> pb::Approval {
    pb::Approval {
        id: approval.id.to_string(),
        session_id: approval.session.to_string(),
        tool: approval.tool.clone(),
        input: approval.input.clone(),
        asked_time: Some(time(approval.asked)),
        answer: approval.answer.as_ref().map(answered),
        asks: approval.asks.clone(),
        why: approval.why.clone(),
        deadline_time: approval.deadline.map(time),
        kind: to::ask_kind(approval.kind).into(),
    }
}

pub fn answer_given(given: &AnswerGiven) -> pb::AnswerApprovalResponse {
    pb::AnswerApprovalResponse {
        approval: Some(approval(&given.approval)),
        rules: given.rules.iter().map(applied).collect(),
    }
}

fn applied(rule: &Applied) -> pb::AppliedRule {
    pb::AppliedRule { number: rule.number, text: rule.text.clone() }
}

fn answered(answered: &Answered) -> pb::ApprovalAnswer {
    pb::ApprovalAnswer {
        answer: to::answer(answered.answer).into(),
        by: answered.by.0.clone(),
        message: answered.message.clone(),
        answered_time: Some(time(answered.at)),
        rules: answered.rules.iter().map(applied).collect(),
    }
}

pub(super) fn worktree(tree: &Worktree) -> pb::SessionWorktree {
    pb::SessionWorktree {
        path: tree.path.clone(),
        branch: tree.branch.clone(),
        base: tree.base.clone(),
        from: tree.from.clone(),
        told: tree.told.clone(),
    }
}

pub fn chain(chain: &Chain) -> pb::GetChainResponse {
    let Chain { sessions, helpers, session_count, helper_count, sum } = chain;
    pb::GetChainResponse {
        sessions: sessions.iter().map(view).collect(),
        helpers: helpers.iter().map(view).collect(),
        usage: Some(usage(sum.usage)),
        cost: Some(cost(&sum.cost)),
        time_us: u64::try_from(sum.time.as_micros()).unwrap_or(u64::MAX),
        session_count: *session_count,
        helper_count: *helper_count,
    }
}
