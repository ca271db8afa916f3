//! What programs read: the JSON forms of `-o json` and `-o jsonl`. Fields are only ever added.

mod message;

use ostler_client::{Agent, Approval, Campaign, Conversation, Received, Session, reply::NodeStatus};
use ostler_domain::{
    Budget, ConversationId, Time, Usage,
    approval::Applied,
    conversation::Notes,
    event::ContextMeasured,
    history::Origin,
    session::{Obituary, Restart},
    worktree::Worktree,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{screen::money::CostForm, words::rfc3339};

pub(crate) use self::message::MessageForm;

/// A session.
#[derive(Debug, Serialize)]
pub(crate) struct SessionForm {
    pub(crate) id: String,
    short: String,
    name: String,
    campaign: String,
    campaign_id: String,
    conversation: String,
    provider: String,
    model: Option<String>,
    status: &'static str,
    attention: Option<&'static str>,
    attention_since: String,
    evidence: String,
    limited_until: Option<String>,
    now: Option<DoingForm>,
    outcome: Option<&'static str>,
    obituary: Option<Obituary>,
    restart: Option<RestartForm>,
    desired: &'static str,
    sandbox: &'static str,
    working_dir: String,
    branch: Option<String>,
    worktree: Option<WorktreeForm>,
    ticket: Option<String>,
    ticket_id: Option<String>,
    mission: Option<MembershipForm>,
    continues: Option<String>,
    chain: String,
    spawned_by: Option<String>,
    restart_count: u32,
    restart_policy: &'static str,
    provider_id: Option<String>,
    pid: Option<u32>,
    turns: u32,
    usage: Usage,
    context: Option<ContextMeasured>,
    cost: CostForm,
    budget: Option<Budget>,
    messages_waiting: u32,
    approvals: Vec<String>,
    denied: u32,
    last_completion: Option<String>,
    created: String,
    started: Option<String>,
    ended: Option<String>,
    last_activity: Option<String>,
    updated: String,
    session_seq: u64,
    imported: Option<Origin>,
}

/// A git work tree of a session's own.
#[derive(Debug, Serialize)]
pub(crate) struct WorktreeForm {
    path: String,
    branch: String,
    /// The commit that it was made from.
    base: String,
    /// The branch that the campaign had checked out then.
    from: Option<String>,
}

impl WorktreeForm {
    pub(crate) fn new(tree: &Worktree) -> Self {
        Self {
            path: tree.path.clone(),
            branch: tree.branch.clone(),
            base: tree.base.clone(),
            from: tree.from.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
struct DoingForm {
    text: String,
    since: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum RestartForm {
    At(String),
    Quarantined { short_lives: u32 },
}

impl SessionForm {
    pub(crate) fn new(session: &Session, campaign: &str) -> Self {
        let text = |time: Option<Time>| time.map(rfc3339);
        Self {
            id: session.id.to_string(),
            short: session.id.short(),
            name: session.name.to_string(),
            campaign: campaign.to_owned(),
            campaign_id: session.campaign.to_string(),
            conversation: session.conversation.to_string(),
            provider: session.provider.clone(),
            model: session.model.clone(),
            status: session.status.as_str(),
            attention: session.attention.map(|attention| attention.as_str()),
            attention_since: rfc3339(session.attention_since),
            evidence: session.evidence.clone(),
            limited_until: text(session.limited_until),
            now: session
                .doing
                .as_ref()
                .map(|doing| DoingForm { text: doing.text.clone(), since: rfc3339(doing.since) }),
            outcome: session.outcome.map(|outcome| outcome.as_str()),
            obituary: session.obituary.clone(),
            restart: session.restart.as_ref().map(|restart| match restart {
                Restart::At(deadline) => RestartForm::At(rfc3339(deadline.wall())),
                Restart::Quarantined { short_lives } => {
                    RestartForm::Quarantined { short_lives: *short_lives }
                }
            }),
            desired: session.desired.as_str(),
            sandbox: session.sandbox.as_str(),
            working_dir: session.working_dir.clone(),
            branch: session.branch.clone(),
            worktree: session.worktree.as_ref().map(WorktreeForm::new),
            ticket: session.ticket.clone(),
            ticket_id: session.ticket_id.map(|id| id.to_string()),
            mission: session.mission.map(|of| MembershipForm {
                id: of.mission.to_string(),
                assignment: of.assignment.to_string(),
                attempt: of.attempt,
            }),
            continues: session.continues.map(|id| id.to_string()),
            chain: session.chain.to_string(),
            spawned_by: session.spawned_by.map(|id| id.to_string()),
            restart_count: session.restart_count,
            restart_policy: session.restart_policy.as_str(),
            provider_id: session.provider_id.clone(),
            pid: session.process.as_ref().map(|process| process.pid),
            turns: session.turns,
            usage: session.usage,
            context: session.context,
            cost: CostForm::new(&session.cost),
            budget: session.budget,
            messages_waiting: session.messages_waiting,
            approvals: session.approvals_open.iter().map(ToString::to_string).collect(),
            denied: session.denied,
            last_completion: session.last_completion.clone(),
            created: rfc3339(session.created_at),
            started: text(session.started_at),
            ended: text(session.ended_at),
            last_activity: text(session.last_activity_at),
            updated: rfc3339(session.updated_at),
            session_seq: session.session_seq,
            imported: session.imported.clone(),
        }
    }
}

/// An event: one line of `events -o jsonl`.
/// A session's part in a mission.
#[derive(Debug, Serialize)]
struct MembershipForm {
    id: String,
    assignment: String,
    attempt: u32,
}

#[derive(Serialize)]
pub(crate) struct EventForm<'a> {
    seq: u64,
    session: Option<String>,
    session_seq: Option<u64>,
    time: String,
    kind: &'a str,
    body: Box<RawValue>,
}

impl<'a> EventForm<'a> {
    pub(crate) fn new(received: &'a Received) -> Self {
        let (session_seq, body) = match received {
            Received::Known(event) => (event.session_seq, event.event.body()),
            Received::Unknown(event) => (event.session_seq, event.body.clone()),
        };
        Self {
            seq: received.seq(),
            session: received.session().map(|id| id.to_string()),
            session_seq,
            time: rfc3339(received.time()),
            kind: received.kind(),
            body: RawValue::from_string(body).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct CampaignForm {
    id: String,
    name: String,
    path: String,
    added: String,
    policy: Vec<PolicyForm>,
    tracked_hidden: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwatched: Option<String>,
}

/// One key of a campaign's policy, its value, and who says so.
#[derive(Serialize)]
struct PolicyForm {
    key: &'static str,
    value: String,
    origin: &'static str,
}

impl CampaignForm {
    pub(crate) fn new(campaign: &Campaign) -> Self {
        Self {
            id: campaign.id.to_string(),
            name: campaign.name.to_string(),
            path: campaign.root.path.clone(),
            added: rfc3339(campaign.added),
            tracked_hidden: campaign.tracked_hidden.clone(),
            unwatched: campaign.unwatched.clone(),
            policy: campaign
                .policy
                .lines()
                .into_iter()
                .map(|line| PolicyForm { key: line.key, value: line.value, origin: line.origin.as_str() })
                .collect(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct AgentForm {
    id: String,
    name: String,
    role: String,
    campaign: String,
    address: String,
    provider: Option<String>,
    model: Option<String>,
    auth_profile: Option<String>,
    system_prompt: Option<String>,
    budget: Option<String>,
    added: String,
}

impl AgentForm {
    pub(crate) fn new(agent: &Agent, campaign: &str) -> Self {
        let Agent { profile, .. } = agent;
        Self {
            id: agent.id.to_string(),
            name: agent.name.to_string(),
            role: profile.role.to_string(),
            campaign: campaign.to_string(),
            address: agent.address(campaign),
            provider: profile.provider.clone(),
            model: profile.model.clone(),
            auth_profile: profile.auth_profile.as_ref().map(ToString::to_string),
            system_prompt: profile.system_prompt.clone(),
            budget: profile.budget.map(|amount| amount.to_string()),
            added: rfc3339(agent.added),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct ConversationForm<'a> {
    id: String,
    name: String,
    key: String,
    campaign: String,
    agent: Option<String>,
    opened: String,
    active: String,
    closed: Option<String>,
    close_reason: Option<&'static str>,
    forked_from: Option<String>,
    spawned_by: Option<String>,
    replaces: Option<String>,
    #[serde(flatten)]
    notes: &'a Notes,
}

impl<'a> ConversationForm<'a> {
    pub(crate) fn new(conversation: &'a Conversation, campaign: &str) -> Self {
        let id = |id: Option<ConversationId>| id.map(|id| id.to_string());
        Self {
            id: conversation.id.to_string(),
            name: conversation.name.to_string(),
            key: conversation.key.to_string(),
            campaign: campaign.to_owned(),
            agent: conversation.agent.map(|id| id.to_string()),
            opened: rfc3339(conversation.opened),
            active: rfc3339(conversation.active),
            closed: conversation.closed.map(|closed| rfc3339(closed.at)),
            close_reason: conversation.closed.map(|closed| closed.why.as_str()),
            forked_from: id(conversation.forked_from),
            spawned_by: conversation.spawned_by.map(|id| id.to_string()),
            replaces: id(conversation.replaces),
            notes: &conversation.notes,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct ApprovalForm {
    id: String,
    session: String,
    /// Whose question it is, in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    tool: String,
    input: String,
    /// In one line.
    asks: String,
    kind: ostler_domain::event::AskKind,
    why: String,
    asked: String,
    deadline: Option<String>,
    answer: Option<AnswerForm>,
    /// With `allow --always`: what allows the same from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    always: Option<Vec<Applied>>,
}

#[derive(Serialize)]
struct AnswerForm {
    answer: ostler_domain::event::Answer,
    by: String,
    message: String,
    answered: String,
    rules: Vec<Applied>,
}

impl ApprovalForm {
    pub(crate) fn new(approval: &Approval) -> Self {
        Self {
            id: approval.id.to_string(),
            session: approval.session.to_string(),
            agent: None,
            tool: approval.tool.clone(),
            input: approval.input.clone(),
            asks: approval.asks.clone(),
            kind: approval.kind,
            why: approval.why.clone(),
            asked: rfc3339(approval.asked),
            deadline: approval.deadline.map(rfc3339),
            always: None,
            answer: approval.answer.as_ref().map(|answered| AnswerForm {
                answer: answered.answer,
                by: answered.by.0.clone(),
                message: answered.message.clone(),
                answered: rfc3339(answered.at),
                rules: answered.rules.clone(),
            }),
        }
    }

    pub(crate) fn of_agent(self, agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..self }
    }

    pub(crate) fn with_rules(self, rules: &[Applied]) -> Self {
        Self { always: (!rules.is_empty()).then(|| rules.to_vec()), ..self }
    }
}

/// `daemon status -o json`.
#[derive(Serialize)]
pub(crate) struct StatusForm {
    pid: u32,
    version: String,
    node: String,
    epoch: u64,
    started: String,
    state_dir: String,
    live_sessions: u64,
    detached_sessions: u64,
    halt: Option<HaltForm>,
    drain: Option<DrainForm>,
    store: StoreForm,
    last_seq: u64,
    schema_version: u32,
    memory_held_by: String,
    machine_restart: Option<MachineRestartForm>,
}

#[derive(Serialize)]
struct MachineRestartForm {
    restarted: String,
    lost_sessions: u64,
}

#[derive(Serialize)]
pub(crate) struct HaltForm {
    freeze: bool,
    by: String,
    why: String,
    since: String,
}

impl HaltForm {
    pub(crate) fn new(halt: &ostler_client::reply::HaltState) -> Self {
        Self { freeze: halt.freeze, by: halt.by.0.clone(), why: halt.why.clone(), since: rfc3339(halt.since) }
    }
}

#[derive(Serialize)]
pub(crate) struct DrainForm {
    by: String,
    why: String,
    since: String,
}

impl DrainForm {
    pub(crate) fn new(drain: &ostler_client::reply::DrainState) -> Self {
        Self { by: drain.by.0.clone(), why: drain.why.clone(), since: rfc3339(drain.since) }
    }
}

#[derive(Serialize)]
struct StoreForm {
    database_bytes: u64,
    search_bytes: u64,
}

impl StatusForm {
    pub(crate) fn new(status: &NodeStatus) -> Self {
        Self {
            pid: status.pid,
            version: status.version.clone(),
            node: status.node.to_string(),
            epoch: status.epoch,
            started: rfc3339(status.started),
            state_dir: status.state_dir.clone(),
            live_sessions: status.live_sessions,
            detached_sessions: status.detached_sessions,
            halt: status.halt.as_ref().map(HaltForm::new),
            drain: status.drain.as_ref().map(DrainForm::new),
            store: StoreForm {
                database_bytes: status.store.database_bytes,
                search_bytes: status.store.search_bytes,
            },
            last_seq: status.last_seq,
            schema_version: status.schema_version,
            memory_held_by: status.memory_held_by.clone(),
            machine_restart: status.machine_restart.map(|restart| MachineRestartForm {
                restarted: rfc3339(restart.at),
                lost_sessions: restart.lost,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_client::UnknownEvent;
    use ostler_domain::{Event, Recorded, event::Text};

    use super::*;
    use crate::{
        output::to_json,
        testing::{self, NOW},
    };

    /// What programs may rely on: changing a line of these snapshots breaks somebody's script.
    #[test]
    fn lists_of_sessions_are_pinned() {
        let fleet = testing::fleet();
        let sessions = vec![SessionForm::new(&fleet[0], "shop"), SessionForm::new(&fleet[6], "shop")];
        let form = crate::listing::Object { name: "sessions", rows: sessions, next_cursor: Some(17) };
        assert_snapshot!(serde_json::to_string_pretty(&form).unwrap());
    }

    #[test]
    fn events_are_pinned() {
        let session = Some(testing::fleet()[0].id);
        let event = Event::AgentCompletion(Text::from("done\u{1b}[2J".to_owned()));
        let known = Recorded { seq: 7, session, session_seq: Some(3), time: NOW, event };
        let (kind, body) = ("AGENT_DREAM".to_owned(), r#"{"of":"sheep"}"#.to_owned());
        let unknown = UnknownEvent { seq: 8, session: None, session_seq: None, time: NOW, kind, body };
        let lines = [Received::Known(Box::new(known)), Received::Unknown(unknown)];
        assert_snapshot!(
            lines.iter().map(|event| to_json(&EventForm::new(event))).collect::<Vec<_>>().join("\n")
        );
    }

    #[test]
    fn campaigns_are_pinned() {
        assert_snapshot!(to_json(&CampaignForm::new(&testing::campaign())));
    }
}
