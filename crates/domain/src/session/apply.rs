//! [`State::apply`]: total, and the only thing that changes a state.

use super::{
    Created, Desired, Holds, Intake, Ledger, OpenApproval, OpenCall, OpenTurn, Phase, RateLimit, Stall,
    State, WatchdogRung, project::Doing, redacted::blots_in,
};
use crate::{
    Time, Usage,
    budget::Lent,
    event::{Answer, Event, StopReason, ToolResult, UsageSource},
    message::Summary,
    price::Cost,
};

impl State {
    /// The state right after a session's first event.
    pub fn new(created: Created, at: Time) -> Self {
        let budget = created.config.budget;
        let deadline = created.config.deadline.clone();
        Self {
            created,
            created_at: at,
            phase: Phase::Created,
            phase_since: at,
            attempt: 0,
            process: None,
            boot: None,
            provider_id: None,
            is_bound: false,
            lost_context: None,
            context: None,
            compactions: 0,
            chosen_model: None,
            auth_failure: None,
            lent_until: None,
            model: None,
            deadline,
            timeout_left_us: None,
            started_at: None,
            turn: None,
            turns: 0,
            messages: Vec::new(),
            quiet_until: None,
            dropped: Summary::default(),
            approvals: Vec::new(),
            background: Vec::new(),
            rate_limit: None,
            failing_since: None,
            failed_of_limit: false,
            trouble: None,
            turn_failure: None,
            cut_short: false,
            desired: Desired::Run,
            desired_since: at,
            paused_by: None,
            pause_asks: None,
            holds: Holds::default(),
            held_since: at,
            stall: None,
            intake: Intake::Open,
            tape_bytes: None,
            budget,
            budget_warned: false,
            over_budget: None,
            holds_calls: false,
            ends_of_budget: false,
            settles: false,
            helpers: Lent::default(),
            usage: Usage::default(),
            cost: Cost::default(),
            ledger: Ledger::default(),
            stop: None,
            ended: None,
            doing: None,
            went_well: None,
            last_activity_at: None,
            last_completion: None,
            idle_since: at,
            denied: 0,
            redacted: 0,
            steps: Vec::new(),
            done: false,
            handoff: None,
            asks: Vec::new(),
            handed: None,
            session_seq: 1,
            updated_at: at,
        }
    }

    /// Folds a session's events, the first of which creates it.
    pub fn replay<'a>(events: impl IntoIterator<Item = (Time, &'a Event)>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut state = match events.next()? {
            (at, Event::SessionCreated(created)) => State::new((**created).clone(), at),
            _ => return None,
        };
        for (at, event) in events {
            state.apply(at, event);
        }
        Some(state)
    }

    /// Takes one event in. Never fails; an event that does not fit changes nothing but the count. After its
    /// end a session never changes again.
    pub fn apply(&mut self, at: Time, event: &Event) {
        if self.is_ended() {
            return;
        }
        self.session_seq += 1;
        self.updated_at = at;
        self.redacted = self.redacted.saturating_add(blots_in(event));
        match event {
            Event::SessionStarting(starting) => {
                self.attempt = starting.attempt;
                self.enter(Phase::Starting, at);
            }
            Event::SessionSpawned(spawned) => {
                self.process = Some(spawned.agent.clone());
                self.boot = Some(spawned.boot.clone());
                self.holds_calls = spawned.holds_calls;
            }
            Event::LoginLent(lent) => self.lent_until = Some(lent.until),
            Event::SessionStarted(started) => {
                self.provider_id.clone_from(&started.provider_id);
                self.model.clone_from(&started.model);
                self.deadline.clone_from(&started.deadline);
                self.started_at = Some(at);
                self.idle_since = at;
                self.enter(Phase::Live, at);
            }
            Event::ProviderBound(bound) => {
                self.provider_id = Some(bound.provider_id.clone());
                self.is_bound = true;
                if bound.model.is_some() {
                    self.model.clone_from(&bound.model);
                }
            }
            Event::ProviderAuthFailed(said) => {
                self.last_activity_at = Some(at);
                self.auth_failure = Some(crate::text::one_line(&said.text, 300));
            }
            Event::ModelChanged(changed) => {
                self.chosen_model = Some(changed.model.clone());
                if !changed.at_next_session {
                    self.model = Some(changed.model.clone());
                }
            }
            Event::ContextReset(reset) => {
                self.lost_context = Some(reset.why.clone());
                self.context = None;
            }
            Event::ContextMeasured(measured) => self.context = Some(*measured),
            Event::BackgroundChanged(changed) => {
                self.last_activity_at = Some(at);
                if changed.tasks.is_empty() {
                    self.idle_since = at;
                }
                self.background.clone_from(&changed.tasks);
            }
            Event::RateLimited(limited) => {
                self.last_activity_at = Some(at);
                self.mark_output();
                self.trouble = Some(limited.what.clone());
                let (what, until) = (limited.what.clone(), limited.until);
                self.rate_limit = Some(RateLimit { what, until, since: at });
            }
            Event::SessionStopRequested(stop) => {
                self.desired = Desired::Stop;
                self.desired_since = at;
                self.stop = Some(stop.clone());
                self.enter(Phase::Stopping, at);
            }
            Event::SessionStopped(ended) | Event::SessionFailed(ended) => {
                self.ended = Some(ended.clone());
                // What it left running beside its turns ended with it.
                self.cut_short |= !self.background.is_empty();
                self.turn = None;
                self.approvals.clear();
                self.enter(Phase::Ended, at);
            }
            Event::SessionPaused(paused) => {
                self.desired = Desired::Pause;
                self.desired_since = at;
                self.paused_by = Some(paused.by.clone());
                self.pause_asks.clone_from(&paused.asks);
                self.timeout_left_us = paused.timeout_left_us;
                self.deadline = None;
                for open in &mut self.approvals {
                    open.deadline = None;
                    open.left_us = paused.approvals_left_us.get(&open.id).copied();
                }
            }
            Event::SessionResumed(resumed) => {
                self.desired = Desired::Run;
                self.desired_since = at;
                (self.paused_by, self.pause_asks) = (None, None);
                self.deadline.clone_from(&resumed.deadline);
                self.timeout_left_us = None;
                for open in &mut self.approvals {
                    open.deadline = resumed.approval_deadlines.get(&open.id).cloned();
                    open.left_us = None;
                }
            }
            Event::SessionHeld(held) => self.hold_by(held, at),
            Event::SessionReleased(released) => self.let_go_of(released.hold),
            Event::SessionStalled(stalled) => {
                self.stall = Some(Stall { watchdog: stalled.watchdog, since: at, rung: WatchdogRung::Nudge });
            }
            Event::SessionRecovered(_) => self.stall = None,
            Event::WatchdogFired(fired) => {
                if let (WatchdogRung::Interrupt, Some(turn)) = (fired.rung, &mut self.turn) {
                    turn.interrupted_by = Some(fired.watchdog);
                }
                if let Some(stall) = &mut self.stall {
                    stall.rung = fired.rung;
                }
                self.settles &= !fired.watchdog.is_of_a_budget();
            }
            Event::IntakeChanged(changed) => {
                self.intake = [Intake::Open, Intake::Throttled, Intake::DiskFull, Intake::TapeLimit]
                    .into_iter()
                    .find(|intake| intake.as_str() == changed.intake)
                    .unwrap_or(self.intake);
            }
            Event::TapeLimitRaised(raised) => self.tape_bytes = Some(raised.bytes),
            Event::TurnStarted(turn) => {
                self.turns = turn.turn;
                self.rate_limit = None;
                self.failing_since = None;
                self.failed_of_limit = false;
                self.turn_failure = None;
                self.turn = Some(OpenTurn {
                    number: turn.turn,
                    started: at,
                    said_something: false,
                    open_calls: Vec::new(),
                    interrupted_by: None,
                });
                self.doing = None;
            }
            Event::TurnEnded(ended) => {
                self.end_doing(ended.stop_reason);
                self.turn = None;
                self.settles = false;
                self.stall = None;
                self.failing_since = None;
                self.trouble = None;
                // One that is told to end its turn because its session ends was not done either.
                self.cut_short = match ended.stop_reason {
                    StopReason::ProcessEnded => true,
                    StopReason::Interrupted => self.stop.is_some(),
                    StopReason::Completed | StopReason::Error => false,
                };
                self.turn_failure = ended.failure().map(str::to_owned);
                self.failed_of_limit = ended.stop_reason == StopReason::Error && self.rate_limit.is_some();
                // A turn that failed of a limit does not end the limit; nor does one that we end.
                if ended.stop_reason != StopReason::Error && self.stop.is_none() {
                    self.rate_limit = None;
                }
                self.idle_since = at;
            }
            Event::AgentThinking(text) => self.did(at, Doing::thinking(&text.text, at)),
            Event::AgentToolCall(call) => {
                let doing = Doing::tool(call, at);
                if let Some(turn) = &mut self.turn {
                    let open = OpenCall { tool_id: call.tool_id.clone(), doing: doing.clone() };
                    turn.open_calls.push(open);
                }
                self.did(at, doing);
            }
            Event::AgentToolResult(result) => {
                self.last_activity_at = Some(at);
                self.rate_limit = None;
                self.failing_since = None;
                self.has_result(at, result);
            }
            Event::AgentCompletion(text) => {
                self.did(at, Doing::saying(&text.text, at));
                if text.subagent.is_none() {
                    self.last_completion = Some(text.text.clone());
                }
            }
            Event::AgentRetrying(retrying) => {
                self.last_activity_at = Some(at);
                self.trouble = Some(retrying.why.clone());
                self.failing_since.get_or_insert(at);
                self.mark_output();
            }
            Event::AgentError(said) => {
                self.last_activity_at = Some(at);
                self.trouble = Some(said.text.clone());
                self.mark_output();
            }
            Event::ContextCompacted(_) => {
                self.compactions = self.compactions.saturating_add(1);
                self.last_activity_at = Some(at);
                self.mark_output();
            }
            Event::AgentStatus(_)
            | Event::AgentStderr(_)
            | Event::Opaque(_)
            | Event::Oversize(_)
            | Event::Partial(_) => {
                self.last_activity_at = Some(at);
                self.mark_output();
            }
            Event::UsageRecorded(recorded) => {
                if !recorded.cut || !recorded.usage.is_zero() {
                    self.usage += recorded.usage;
                    let model = self.model.as_deref().or(self.created.config.model.as_deref());
                    self.cost.add(recorded, model);
                }
                let call = recorded.call.as_deref();
                if recorded.cut {
                    self.ledger.book_cut(call);
                } else if recorded.source != UsageSource::History {
                    self.ledger.book(recorded.source, call, recorded.said());
                }
            }
            Event::StepStarted(step) => {
                self.steps.push(step.name.clone());
                self.did(at, Doing::step(&step.name, at));
            }
            Event::StepEnded(ended) => {
                self.steps.retain(|open| *open != ended.name);
                self.last_activity_at = Some(at);
            }
            Event::DoneReported(_) => {
                self.done = true;
                self.last_activity_at = Some(at);
            }
            Event::HandoffRequested(requested) => {
                self.handoff = Some((**requested).clone());
                self.last_activity_at = Some(at);
            }
            Event::Asked(asked) => {
                self.asks.push((**asked).clone());
                self.last_activity_at = Some(at);
            }
            Event::AskSettled(settled) => self.asks.retain(|asked| asked.at != settled.at),
            Event::OutputAdded(_) | Event::ImageRecorded(_) => self.last_activity_at = Some(at),
            Event::HandoffPacked(pack) => self.handed = Some(pack.clone()),
            Event::Denied(_) => self.denied += 1,
            Event::BudgetWarned(_) => self.budget_warned = true,
            Event::BudgetChanged(changed) => {
                self.budget = changed.budget;
                self.budget_warned = false;
                self.ends_of_budget = false;
            }
            Event::MessageAccepted(_)
            | Event::MessageSent(_)
            | Event::MessageDelivered(_)
            | Event::MessageSeen(_)
            | Event::MessageAnswered(_)
            | Event::MessageUnknown(_)
            | Event::MessageReturned(_)
            | Event::MessageDropped(_)
            | Event::MessageCancelled(_)
            | Event::MessageEdited(_)
            | Event::MessageMoved(_) => self.apply_to_inbox(event),
            Event::ApprovalRequested(asked) => {
                self.last_activity_at = Some(at);
                self.mark_output();
                self.approvals.push(OpenApproval {
                    id: asked.id,
                    ask: asked.ask.clone(),
                    tool: asked.tool.clone(),
                    input: asked.input.clone(),
                    asks: asked.asks(),
                    kind: asked.kind,
                    asked: at,
                    deadline: asked.deadline.clone(),
                    left_us: None,
                });
            }
            Event::ApprovalAnswered(answered) => {
                self.approvals.retain(|open| open.id != answered.id);
                self.denied += u32::from(answered.answer == Answer::Denied);
            }
            Event::HelpersCharged(lent) => self.helpers = lent.clone(),
            Event::BudgetExceeded(reached) => {
                self.over_budget = Some(reached.sentence());
                self.ends_of_budget = self.stops_at(reached) && self.has_a_turn_to_end();
            }
            Event::InterruptRequested(_)
            | Event::LeftoversEnded(_)
            | Event::TapeDamaged(_)
            | Event::Tamper(_)
            | Event::Network(_)
            | Event::HiddenTracked(_)
            | Event::HistoryRead(_)
            | Event::Unreadable(_)
            | Event::SessionCreated(_)
            | Event::DaemonStarted(_)
            | Event::DaemonStopped(_)
            | Event::CampaignAdded(_)
            | Event::CampaignRemoved(_)
            | Event::CampaignPolicyChanged(_)
            | Event::CampaignRelinked(_)
            | Event::Drained(_)
            | Event::DrainEnded(_)
            | Event::ConversationOpened(_)
            | Event::AgentAdded(_)
            | Event::AgentChanged(_)
            | Event::AgentRemoved(_)
            | Event::ConversationChanged(_)
            | Event::ConversationClosed(_)
            | Event::ConversationReopened(_)
            | Event::CommitsSeen(_)
            | Event::SnapshotTaken(_)
            | Event::DeliveryMirrored(_)
            | Event::Rewound(_)
            | Event::WorktreeMade(_)
            | Event::WorktreeRemoved(_)
            | Event::SessionArchived(_)
            | Event::SessionRestored(_)
            | Event::DeletionMarked(_)
            | Event::SessionDeleted(_)
            | Event::RetentionHeld(_)
            | Event::MessageUnheard(_)
            | Event::Halted(_)
            | Event::HaltReleased(_)
            | Event::TicketAdded(_)
            | Event::TicketChanged(_)
            | Event::TicketMoved(_)
            | Event::TicketLinked(_)
            | Event::TicketOutputAdded(_)
            | Event::TicketCheckpointMade(_)
            | Event::TicketStep(_)
            | Event::MissionCreated(_)
            | Event::MissionStarted(_)
            | Event::MissionPaused(_)
            | Event::MissionResumed(_)
            | Event::MissionHeld(_)
            | Event::MissionReleased(_)
            | Event::MissionBudgetWarned(_)
            | Event::MissionBudgetChanged(_)
            | Event::MissionStopRequested(_)
            | Event::MissionEnded(_)
            | Event::AssignmentsReady(_)
            | Event::AssignmentStarted(_)
            | Event::AssignmentMoved(_)
            | Event::AssignmentCheckStarted(_)
            | Event::AssignmentRetried(_)
            | Event::AssignmentEnded(_)
            | Event::AssignmentsReopened(_)
            | Event::AssignmentsAdded(_)
            | Event::AssignmentsRemoved(_)
            | Event::AssignmentNudged(_)
            | Event::AssignmentBegan(_)
            | Event::AssignmentUnstuck(_)
            | Event::CollisionForecast(_)
            | Event::MergeStarted(_)
            | Event::MergeChecked(_)
            | Event::MergeMoving(_)
            | Event::MergeEnded(_)
            | Event::MissionArchived(_)
            | Event::LostLeft(_)
            | Event::RestartRefused(_) => {}
        }
    }

    fn enter(&mut self, phase: Phase, at: Time) {
        self.phase = phase;
        self.phase_since = at;
    }

    fn did(&mut self, at: Time, doing: Doing) {
        self.last_activity_at = Some(at);
        self.rate_limit = None;
        self.failing_since = None;
        self.doing = Some(doing);
        self.went_well = None;
        self.mark_output();
    }

    /// A call is over. Outside of turns nobody knows which.
    fn has_result(&mut self, at: Time, result: &ToolResult) {
        let Some(turn) = &mut self.turn else {
            self.doing = None;
            return;
        };
        if let Some(OpenCall { doing, .. }) = turn.close(&result.tool_id) {
            self.doing = Some(Doing { since: at, ..doing });
            self.went_well = Some(result.success);
        }
    }

    /// What was under way when the process ended is what its obituary tells; otherwise it is over with its turn.
    fn end_doing(&mut self, reason: StopReason) {
        self.doing = self.now_doing().filter(|_| reason == StopReason::ProcessEnded);
        self.went_well = None;
    }

    fn mark_output(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.said_something = true;
        }
    }
}
