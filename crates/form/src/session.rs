//! A session.

use ostler_client::Session;
use ostler_domain::{
    Budget, Hint, Time, Usage,
    event::ContextMeasured,
    history::Origin,
    session::{Obituary, Restart},
    worktree::Worktree,
};
use schemars::JsonSchema;
use serde::Serialize;

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
    /// The session that goes on with it.
    continued_by: Option<String>,
    /// What keeps it from going on by itself.
    restart_refused: Option<RestartRefusedForm>,
}

/// Why a session that was to go on by itself has not. It is tried again.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RestartRefused")]
struct RestartRefusedForm {
    since: String,
    /// The stable word of the refusal.
    reason: String,
    why: String,
    #[schemars(with = "Vec<shape::Cure>")]
    cures: Vec<Hint>,
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
            continued_by: session.continued_by.map(|id| id.to_string()),
            restart_refused: session.restart_refused.as_ref().map(|refused| RestartRefusedForm {
                since: rfc3339(refused.since),
                reason: refused.reason.clone(),
                why: refused.why.clone(),
                cures: refused.cures.clone(),
            }),
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
