//! Sessions, events, campaigns, agents, conversations, approvals, and how the daemon is.

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
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{money::CostForm, rfc3339, shape};

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionForm {
    pub id: String,
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
    #[schemars(with = "Option<shape::Obituary>")]
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
    #[schemars(with = "shape::Usage")]
    usage: Usage,
    #[schemars(with = "Option<shape::Context>")]
    context: Option<ContextMeasured>,
    cost: CostForm,
    #[schemars(with = "Option<shape::Budget>")]
    budget: Option<Budget>,
    messages_waiting: u32,
    approvals: Vec<String>,
    denied: u32,
    redacted: u32,
    last_completion: Option<String>,
    created: String,
    started: Option<String>,
    ended: Option<String>,
    last_activity: Option<String>,
    updated: String,
    session_seq: u64,
    #[schemars(with = "Option<shape::Origin>")]
    imported: Option<Origin>,
    compactions: u32,
    auth_profile: Option<String>,
}

/// A git work tree of a session's own.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Worktree")]
pub struct WorktreeForm {
    path: String,
    branch: String,
    /// The commit that it was made from.
    base: String,
    /// The branch that the campaign had checked out then.
    from: Option<String>,
}

impl WorktreeForm {
    pub fn new(tree: &Worktree) -> Self {
        Self {
            path: tree.path.clone(),
            branch: tree.branch.clone(),
            base: tree.base.clone(),
            from: tree.from.clone(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Doing")]
struct DoingForm {
    text: String,
    since: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Restart")]
enum RestartForm {
    At(String),
    Quarantined { short_lives: u32 },
}

impl SessionForm {
    pub fn new(session: &Session, campaign: &str) -> Self {
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
            redacted: session.redacted,
            last_completion: session.last_completion.clone(),
            created: rfc3339(session.created_at),
            started: text(session.started_at),
            ended: text(session.ended_at),
            last_activity: text(session.last_activity_at),
            updated: rfc3339(session.updated_at),
            session_seq: session.session_seq,
            imported: session.imported.clone(),
            compactions: session.compactions,
            auth_profile: session.auth_profile.as_ref().map(ToString::to_string),
        }
    }
}

/// A session's part in a mission.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Membership")]
struct MembershipForm {
    id: String,
    assignment: String,
    attempt: u32,
}

/// An event: one line of `events -o jsonl`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventForm<'a> {
    seq: u64,
    session: Option<String>,
    session_seq: Option<u64>,
    time: String,
    kind: &'a str,
    #[schemars(with = "shape::Body")]
    body: Box<RawValue>,
}

impl<'a> EventForm<'a> {
    pub fn new(received: &'a Received) -> Self {
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

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Campaign")]
pub struct CampaignForm {
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
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Policy")]
struct PolicyForm {
    key: &'static str,
    value: String,
    origin: &'static str,
}

impl CampaignForm {
    pub fn new(campaign: &Campaign) -> Self {
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

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub struct AgentForm {
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
    pub fn new(agent: &Agent, campaign: &str) -> Self {
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
            budget: profile.budgets(),
            added: rfc3339(agent.added),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Conversation")]
pub struct ConversationForm<'a> {
    id: String,
    name: String,
    label: Option<&'a str>,
    key: String,
    campaign: String,
    agent: Option<String>,
    opened: String,
    active: String,
    closed: Option<String>,
    close_reason: Option<&'static str>,
    forked_from: Option<String>,
    forked_at: Option<TurnForm>,
    spawned_by: Option<String>,
    replaces: Option<String>,
    #[serde(flatten)]
    #[schemars(with = "shape::Notes")]
    notes: &'a Notes,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Turn")]
struct TurnForm {
    session: String,
    turn: u32,
}

impl<'a> ConversationForm<'a> {
    pub fn new(conversation: &'a Conversation, campaign: &str) -> Self {
        let id = |id: Option<ConversationId>| id.map(|id| id.to_string());
        Self {
            id: conversation.id.to_string(),
            name: conversation.name.to_string(),
            label: conversation.notes.entry.label.as_deref(),
            key: conversation.key.to_string(),
            campaign: campaign.to_owned(),
            agent: conversation.agent.map(|id| id.to_string()),
            opened: rfc3339(conversation.opened),
            active: rfc3339(conversation.active),
            closed: conversation.closed.map(|closed| rfc3339(closed.at)),
            close_reason: conversation.closed.map(|closed| closed.why.as_str()),
            forked_from: id(conversation.forked_from),
            forked_at: conversation
                .forked_at
                .map(|at| TurnForm { session: at.session.to_string(), turn: at.turn }),
            spawned_by: conversation.spawned_by.map(|id| id.to_string()),
            replaces: id(conversation.replaces),
            notes: &conversation.notes,
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub struct ApprovalForm {
    id: String,
    session: String,
    /// Whose question it is, in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    tool: String,
    input: String,
    /// In one line.
    asks: String,
    #[schemars(with = "shape::AskKind")]
    kind: ostler_domain::event::AskKind,
    why: String,
    asked: String,
    deadline: Option<String>,
    answer: Option<AnswerForm>,
    /// With `allow --always`: what allows the same from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<shape::Rule>>")]
    always: Option<Vec<Applied>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
struct AnswerForm {
    #[schemars(with = "shape::Answer")]
    answer: ostler_domain::event::Answer,
    by: String,
    message: String,
    answered: String,
    #[schemars(with = "Vec<shape::Rule>")]
    rules: Vec<Applied>,
}

impl ApprovalForm {
    pub fn new(approval: &Approval) -> Self {
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

    pub fn of_agent(self, agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..self }
    }

    pub fn with_rules(self, rules: &[Applied]) -> Self {
        Self { always: (!rules.is_empty()).then(|| rules.to_vec()), ..self }
    }
}

/// `daemon status -o json`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Status")]
pub struct StatusForm {
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

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MachineRestart")]
struct MachineRestartForm {
    restarted: String,
    lost_sessions: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Halt")]
pub struct HaltForm {
    freeze: bool,
    by: String,
    why: String,
    since: String,
}

impl HaltForm {
    pub fn new(halt: &ostler_client::reply::HaltState) -> Self {
        Self { freeze: halt.freeze, by: halt.by.0.clone(), why: halt.why.clone(), since: rfc3339(halt.since) }
    }
}

/// A halt that was asked for, or ended.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Halted")]
pub struct HaltedForm {
    pub halt: Option<HaltForm>,
    pub sessions: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Drain")]
pub struct DrainForm {
    by: String,
    why: String,
    since: String,
}

impl DrainForm {
    pub fn new(drain: &ostler_client::reply::DrainState) -> Self {
        Self { by: drain.by.0.clone(), why: drain.why.clone(), since: rfc3339(drain.since) }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Store")]
struct StoreForm {
    database_bytes: u64,
    search_bytes: u64,
}

impl StatusForm {
    pub fn new(status: &NodeStatus) -> Self {
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
