//! The words that people see: projections of the facts, never stored as truth.

use serde::{Deserialize, Serialize};

use super::{
    AgentRef, Desired, Outcome, Phase, Restart, RestartRefusal, Sandbox, State,
    open::{OpenCall, Place},
};
use crate::{
    CampaignId, ConversationId, Name, SessionId, TicketId, Time, Usage,
    admission::Priority,
    event::{AskKind, AsksAbout, By, ContextMeasured, Process, ToolCall},
    history,
    mission::Membership,
    price::Cost,
    text::one_line,
    worktree::Worktree,
};

/// How the evidence of a session begins that has work, and no turn open.
const BACKGROUND: &str = "in the background: ";

/// The status on the wire and in `ostler ls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Created,
    Starting,
    Running,
    Working,
    Stopping,
    Stopped,
    Failed,
}

impl Status {
    pub const ALL: &'static [Status] = &[
        Status::Created,
        Status::Starting,
        Status::Running,
        Status::Working,
        Status::Stopping,
        Status::Stopped,
        Status::Failed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Created => "CREATED",
            Status::Starting => "STARTING",
            Status::Running => "RUNNING",
            Status::Working => "WORKING",
            Status::Stopping => "STOPPING",
            Status::Stopped => "STOPPED",
            Status::Failed => "FAILED",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }
}

/// What a live session is about, the most pressing first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    Detached,
    Paused,
    BudgetHold,
    WaitingApproval,
    WaitingInput,
    RateLimited,
    Stalled,
    Working,
    /// The last turn came to nothing, and nobody has said anything since.
    TurnFailed,
    Idle,
}

impl Attention {
    pub const ALL: &'static [Attention] = &[
        Attention::Detached,
        Attention::Paused,
        Attention::BudgetHold,
        Attention::WaitingApproval,
        Attention::WaitingInput,
        Attention::RateLimited,
        Attention::Stalled,
        Attention::Working,
        Attention::TurnFailed,
        Attention::Idle,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Attention::Detached => "detached",
            Attention::Paused => "paused",
            Attention::BudgetHold => "budget_hold",
            Attention::WaitingApproval => "waiting_approval",
            Attention::WaitingInput => "waiting_input",
            Attention::RateLimited => "rate_limited",
            Attention::Stalled => "stalled",
            Attention::Working => "working",
            Attention::TurnFailed => "turn_failed",
            Attention::Idle => "idle",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|attention| attention.as_str() == text)
    }

    /// Says whether a person is needed.
    pub const fn needs_you(self) -> bool {
        matches!(
            self,
            Attention::BudgetHold
                | Attention::WaitingApproval
                | Attention::WaitingInput
                | Attention::Stalled
                | Attention::TurnFailed
        )
    }
}

/// Whether the daemon is connected to the keeper. Known only while the daemon runs, so it is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Attached,
    Detached,
}

/// What the agent does now, or did last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    pub text: String,
    pub since: Time,
}

impl Doing {
    const MOST: usize = 100;

    pub(super) fn thinking(text: &str, since: Time) -> Self {
        Self { text: format!("think: {}", one_line(text, Self::MOST)), since }
    }

    pub(super) fn saying(text: &str, since: Time) -> Self {
        Self { text: format!("“{}”", one_line(text, Self::MOST)), since }
    }

    pub(super) fn step(name: &str, since: Time) -> Self {
        Self { text: format!("step: {}", one_line(name, Self::MOST)), since }
    }

    pub(super) fn tool(call: &ToolCall, since: Time) -> Self {
        Self { text: one_line(&format!("{}: {}", call.tool, call.summary), Self::MOST), since }
    }
}

/// Everything listed about a session. Its stored form is the derived row's JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    pub id: SessionId,
    pub campaign: CampaignId,
    pub conversation: ConversationId,
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    pub provider: String,
    pub model: Option<String>,
    pub status: Status,
    pub phase: Phase,
    pub attention: Option<Attention>,
    pub attention_since: Time,
    /// The facts behind status and attention, in words.
    pub evidence: String,
    /// When the limit ends that the model's server has set, as it said; none where it did not, or has set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<Time>,
    pub outcome: Option<Outcome>,
    pub obituary: Option<super::Obituary>,
    pub restart: Option<Restart>,
    pub desired: Desired,
    pub sandbox: Sandbox,
    pub working_dir: String,
    /// The branch that was checked out there when it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The work tree that it has of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    pub ticket: Option<String>,
    /// The ticket itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket_id: Option<TicketId>,
    /// The assignment of a mission that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mission: Option<Membership>,
    pub continues: Option<SessionId>,
    pub chain: SessionId,
    pub spawned_by: Option<SessionId>,
    pub restart_count: u32,
    pub restart_policy: super::RestartPolicy,
    pub provider_id: Option<String>,
    pub process: Option<Process>,
    pub doing: Option<Doing>,
    pub turns: u32,
    pub usage: Usage,
    /// How full the context of the main dialogue is; none where the agent has not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextMeasured>,
    #[serde(default)]
    pub cost: Cost,
    pub budget: Option<crate::Budget>,
    pub messages_waiting: u32,
    pub approvals_open: Vec<crate::ApprovalId>,
    pub denied: u32,
    /// How often something that looked like a secret stands blotted out in what is recorded of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u32,
    pub last_completion: Option<String>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub last_activity_at: Option<Time>,
    pub updated_at: Time,
    pub session_seq: u64,
    /// How pressing it is that it starts.
    #[serde(default, skip_serializing_if = "Priority::is_usual")]
    pub priority: Priority,
    /// It ran outside of Ostler and is only read; none for one that Ostler runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<history::Origin>,
    /// How often its agent has compacted its context.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compactions: u32,
    /// Which of its provider's accounts pays for it; none for the one that the provider's own section says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_profile: Option<Name>,
    /// The session that goes on with it. The record knows it, not its own events: they are over before there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_by: Option<SessionId>,
    /// What keeps it from going on by itself, as the record knows it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_refused: Option<RestartRefusal>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it like this")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How much of the last completion a row keeps; the event has it whole.
const COMPLETION_IN_ROW: usize = 2 * 1024;

impl View {
    /// Whether it starts, and nothing but its agent is waited for.
    pub fn is_getting_ready(&self) -> bool {
        self.status == Status::Starting && !is_kept(self.attention)
    }

    /// The row as shown while the daemon has no connection to the keeper.
    pub fn detached(&mut self) {
        if !matches!(self.phase, Phase::Starting | Phase::Live | Phase::Stopping) {
            return;
        }
        self.attention = Some(Attention::Detached);
        self.evidence = "the keeper is not connected yet".to_owned();
        if self.status == Status::Working {
            self.status = Status::Running;
        }
    }

    /// It has ended, and another session has its work by itself, or is about to.
    pub fn goes_on(&self) -> bool {
        self.outcome == Some(Outcome::Handoff) || matches!(self.restart, Some(Restart::At(_)))
    }

    /// What it still has running, where no turn is open and nothing else is to be said of it.
    pub fn background(&self) -> Option<&str> {
        let is_working = self.attention == Some(Attention::Working);
        self.evidence.strip_prefix(BACKGROUND).filter(|_| is_working)
    }
}

/// Whether something else than the agent is why a session stands still that starts.
fn is_kept(attention: Option<Attention>) -> bool {
    attention.is_some_and(|attention| attention == Attention::Paused || attention.needs_you())
}

impl State {
    pub fn status(&self, link: Link) -> Status {
        match self.phase {
            Phase::Created => Status::Created,
            Phase::Starting => Status::Starting,
            Phase::Live if self.attention(link) == Some(Attention::Working) => Status::Working,
            Phase::Live => Status::Running,
            Phase::Stopping => Status::Stopping,
            Phase::Ended if self.outcome().is_some_and(Outcome::is_failure) => Status::Failed,
            Phase::Ended => Status::Stopped,
        }
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.ended.as_ref().map(|ended| ended.outcome)
    }

    /// The first of these that is true.
    pub fn attention(&self, link: Link) -> Option<Attention> {
        if !matches!(self.phase, Phase::Starting | Phase::Live | Phase::Stopping) {
            return None;
        }
        Some(if link == Link::Detached {
            Attention::Detached
        } else if self.holds.halt.is_some() || self.holds.disk.is_some() {
            Attention::Paused
        } else if self.desired == Desired::Pause {
            match self.pause_asks.as_ref().map(|asks| asks.about) {
                None => Attention::Paused,
                Some(AsksAbout::Budget) => Attention::BudgetHold,
                Some(AsksAbout::Progress) => Attention::Stalled,
            }
        } else if self.holds.of_budget().is_some() {
            Attention::BudgetHold
        } else if self.approvals.iter().any(|open| open.kind == AskKind::Leave) {
            Attention::WaitingApproval
        } else if !self.approvals.is_empty() {
            Attention::WaitingInput
        } else if self.rate_limit.is_some() && (self.turn_failure.is_none() || self.waits_for_limit()) {
            Attention::RateLimited
        } else if self.stall.is_some() {
            Attention::Stalled
        } else if self.turn.is_some() || !self.background.is_empty() {
            Attention::Working
        } else if self.turn_failure.is_some() {
            Attention::TurnFailed
        } else {
            Attention::Idle
        })
    }

    fn attention_since(&self) -> Time {
        match self.attention(Link::Attached) {
            Some(Attention::Paused) if self.desired == Desired::Pause => self.desired_since,
            Some(Attention::BudgetHold | Attention::Stalled) if self.pause_asks.is_some() => {
                self.desired_since
            }
            Some(Attention::Paused | Attention::BudgetHold) => self.held_since,
            Some(Attention::WaitingApproval | Attention::WaitingInput) => {
                self.approvals.first().map_or(self.phase_since, |open| open.asked)
            }
            Some(Attention::RateLimited) => {
                self.rate_limit.as_ref().map_or(self.phase_since, |limit| limit.since)
            }
            Some(Attention::Stalled) => self.stall.as_ref().map_or(self.phase_since, |stall| stall.since),
            Some(Attention::Working) => self.turn.as_ref().map_or(self.idle_since, |turn| turn.started),
            Some(Attention::TurnFailed | Attention::Idle) => self.idle_since.max(self.phase_since),
            _ => self.phase_since,
        }
    }

    /// Why it stands still, where nothing but a wish keeps it.
    fn pause_words(&self) -> String {
        match (&self.pause_asks, self.paused_by.as_ref().and_then(By::mission)) {
            (Some(asks), _) => one_line(&asks.words, 300),
            (None, Some(mission)) => format!("paused with the mission {mission}"),
            (None, None) => "paused by a person".to_owned(),
        }
    }

    fn evidence(&self) -> String {
        match self.phase {
            Phase::Created => match (self.holds.halt.as_ref().or(self.holds.of_budget()), self.desired) {
                (Some(reason), _) => reason.clone(),
                (None, Desired::Pause) => "paused before it started".to_owned(),
                (None, _) => "waits to be started".to_owned(),
            },
            Phase::Starting if !is_kept(self.attention(Link::Attached)) => {
                format!("attempt {}; the agent has not said that it is ready", self.attempt)
            }
            Phase::Stopping => {
                self.stop.as_ref().map_or_else(String::new, |stop| format!("asked by {}", stop.by.0))
            }
            Phase::Ended => {
                self.ended.as_ref().map_or_else(String::new, |ended| ended.obituary.sentence.clone())
            }
            Phase::Starting | Phase::Live => match self.attention(Link::Attached) {
                Some(Attention::Paused) => match (&self.holds.halt, &self.holds.disk) {
                    (Some(reason), _) | (None, Some(reason)) => reason.clone(),
                    (None, None) => self.pause_words(),
                },
                Some(Attention::BudgetHold | Attention::Stalled) if self.pause_asks.is_some() => {
                    self.pause_words()
                }
                Some(Attention::BudgetHold) => self.holds.of_budget().cloned().unwrap_or_default(),
                Some(Attention::WaitingApproval | Attention::WaitingInput) => self
                    .approvals
                    .first()
                    .map_or_else(String::new, |open| one_line(&open.words(), Doing::MOST)),
                Some(Attention::RateLimited) => self.rate_limit.as_ref().map_or_else(String::new, |limit| {
                    format!("the model's server limits it: {}", one_line(&limit.what, Doing::MOST))
                }),
                Some(Attention::Stalled) => self.stall.as_ref().map_or_else(String::new, |stall| {
                    format!("watchdog {} fired, no output since", stall.watchdog.as_str())
                }),
                Some(Attention::Working) if self.turn.is_none() => {
                    one_line(&format!("{BACKGROUND}{}", self.background.join(", ")), Doing::MOST)
                }
                Some(Attention::Working) => {
                    self.now_doing().map_or_else(|| "a turn is open".to_owned(), |doing| doing.text)
                }
                Some(Attention::TurnFailed) => self.turn_failure.clone().unwrap_or_default(),
                _ => "no turn is open".to_owned(),
            },
        }
    }

    /// The newest call that has no result; where there is none, what it did last, and that it is over where it is.
    pub(super) fn now_doing(&self) -> Option<Doing> {
        if let Some(open) = self.open_call() {
            return Some(open.doing.clone());
        }
        let doing = self.doing.as_ref()?;
        Some(match self.went_well {
            None => doing.clone(),
            Some(true) => Doing { text: format!("after {}", doing.text), ..*doing },
            Some(false) => Doing { text: format!("after {}, which failed", doing.text), ..*doing },
        })
    }

    pub(super) fn open_call(&self) -> Option<&OpenCall> {
        self.turn.as_ref()?.open_calls.last()
    }

    /// The row of this session, as an attached daemon knows it.
    pub fn view(&self) -> View {
        let created = &self.created;
        View {
            id: created.id,
            campaign: created.campaign,
            conversation: created.conversation,
            name: created.name.clone(),
            agent: created.agent.clone(),
            provider: created.config.provider.clone(),
            model: self.model.clone().or_else(|| created.config.model.clone()),
            status: self.status(Link::Attached),
            phase: self.phase,
            attention: self.attention(Link::Attached),
            attention_since: self.attention_since(),
            evidence: self.evidence(),
            limited_until: self
                .rate_limit
                .as_ref()
                .filter(|_| self.phase == Phase::Live)
                .and_then(|limit| limit.until),
            outcome: self.outcome(),
            obituary: self.ended.as_ref().map(|ended| ended.obituary.clone()),
            restart: self.ended.as_ref().and_then(|ended| ended.restart.clone()),
            desired: self.desired,
            sandbox: created.sandbox,
            working_dir: created.config.working_dir.clone(),
            branch: created.config.branch.clone(),
            worktree: created.config.worktree.clone(),
            ticket: created.config.ticket.clone(),
            ticket_id: created.config.ticket_id,
            mission: created.config.mission,
            continues: created.continues,
            chain: created.chain,
            spawned_by: created.spawned_by,
            restart_count: created.restart_count,
            restart_policy: created.config.restart,
            provider_id: self.provider_id.clone(),
            process: self.process.clone().filter(|_| !self.is_ended()),
            doing: self.now_doing(),
            turns: self.turns,
            context: self.context,
            usage: self.usage,
            cost: self.cost.clone(),
            budget: self.budget,
            messages_waiting: u32::try_from(
                self.messages.iter().filter(|waiting| waiting.place < Place::Delivered).count(),
            )
            .unwrap_or(u32::MAX),
            approvals_open: self.approvals.iter().map(|open| open.id).collect(),
            denied: self.denied,
            redacted: self.redacted,
            last_completion: self
                .last_completion
                .as_deref()
                .map(|text| crate::text::head(text, COMPLETION_IN_ROW).to_owned()),
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.is_ended().then_some(self.phase_since),
            last_activity_at: self.last_activity_at,
            updated_at: self.updated_at,
            session_seq: self.session_seq,
            priority: created.config.priority,
            imported: created.imported.clone(),
            compactions: self.compactions,
            auth_profile: created.config.auth_profile.clone(),
            continued_by: None,
            restart_refused: None,
        }
    }
}
