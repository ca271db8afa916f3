//! [`decide`]: turns a request or a report into what happened and what to do about it.
//!
//! Asking for what already holds is never an error: clients retry. A report that comes late describes a state
//! that was left already, and changes nothing.

mod approval;
mod call;
mod ending;
mod inbox;
mod money;
mod refusal;
mod report;
mod request;

use super::{
    AgentRequest, Begin, Context, Created, Decision, Effect, Input, Intake, Phase, State, StopRequested,
    StopRule, Watchdog, WatchdogRung,
};
use crate::{
    Message, Refusal, Time,
    denied::Denied,
    event::{
        By, ContextReset, Event, Held, IntakeChanged, LoginLent, MessageAccepted, MessageMark, Released,
        Spawned, Stalled, Starting, Tamper, TapeDamaged, UsageSource, WatchdogFired,
    },
    limits::GIVES_WAY_AFTER,
    message::Said,
    session::{Hold, RestartPolicy},
};

/// The first events of a session: that it exists, and what it was told.
pub fn create<S: Into<Said>>(created: Created, messages: Vec<S>, by: &By) -> Vec<Event> {
    let conversation = created.conversation;
    let reset = match &created.begin {
        Begin::Reseed { why, .. } => Some(Event::ContextReset(ContextReset { why: why.clone() })),
        Begin::Fresh | Begin::Resume { .. } | Begin::Fork { .. } => None,
    };
    let accepted = messages
        .into_iter()
        .map(|said| Event::MessageAccepted(MessageAccepted::said(said.into(), conversation, by.clone())));
    std::iter::once(Event::SessionCreated(Box::new(created))).chain(reset).chain(accepted).collect()
}

/// Decides what follows from an input in a state. Total: no input in any state panics.
pub fn decide(state: &State, input: Input, context: &Context) -> Result<Decision, Refusal> {
    let mut draft =
        Draft { state: std::borrow::Cow::Borrowed(state), context, decision: Decision::default() };
    match input {
        Input::Request(request, by) => request::decide(&mut draft, request, by)?,
        _ if state.is_ended() => {}
        Input::Report(report) => report::decide(&mut draft, report),
        Input::Spawned(spawn) => {
            draft.record(Event::SessionSpawned(Spawned {
                agent: spawn.agent,
                boot: context.now.boot.clone(),
                holds_calls: spawn.holds_calls,
            }));
        }
        Input::Lent { until } => draft.record(Event::LoginLent(LoginLent { until })),
        Input::InputTaped { tag } => {
            if let Some(id) = AgentRequest::prompted(&tag) {
                for id in state.said_with(id) {
                    draft.record(Event::MessageDelivered(MessageMark { id, turn: None }));
                }
            }
        }
        Input::Intake(intake) => draft.intake(intake),
        Input::Tampered { names } => draft.record(Event::Tamper(Tamper { names })),
        Input::Network(network) => draft.record(match Denied::of_network(&network) {
            Some(denied) => Event::Denied(denied),
            None => Event::Network(network),
        }),
        Input::Wire(call) => money::used(&mut draft, UsageSource::Wire, call),
        Input::CutShort { model, call } => money::cut_short(&mut draft, model, call),
        Input::Refused(refused) => refusal::decide(&mut draft, &refused),
        Input::LimitEnded => refusal::limit_ended(&mut draft),
        Input::Quiet => draft.deliver(),
        Input::Call { at, call } => call::decide(&mut draft, at, call),
        Input::Served { at, reply } => call::settled(&mut draft, at, reply),
        Input::Denied(denied) => draft.record(Event::Denied(denied)),
        Input::TapeDamaged { from, to } => draft.record(Event::TapeDamaged(TapeDamaged { from, to })),
        Input::Exited(exit) => ending::decide(&mut draft, &exit),
        Input::Watchdog(watchdog) => draft.watchdog(watchdog),
        Input::TimedOut => {
            // What was asked of it is done: a limit of the work has nothing to end. Whoever waits for it with a limit of
            // their own may be checking the work meanwhile.
            let is_awaited = state.created().config.deadline.is_some();
            let rule = if state.has_done_all() && !is_awaited { StopRule::Idle } else { StopRule::Timeout };
            draft.stop(rule, By::ostler());
        }
        Input::IdledOut => {
            // It may have been told something meanwhile.
            if state.idles_until().is_some_and(|until| until <= context.now.wall) {
                draft.stop(StopRule::Idle, By::ostler());
            }
        }
        Input::GiveWay => {
            let is_long_idle = |since: Time| since.plus(GIVES_WAY_AFTER) <= context.now.wall;
            if state.idles_since().is_some_and(is_long_idle) {
                draft.stop(StopRule::GaveWay, By::ostler());
            }
        }
        Input::ApprovalsDue => approval::time_out(&mut draft),
        Input::Campaign(used) => money::shared(&mut draft, Hold::CampaignBudget, &used),
        Input::Agent(used) => money::shared(&mut draft, Hold::AgentBudget, &used),
        Input::Helpers(lent) => money::helpers(&mut draft, lent),
    }
    Ok(draft.decision)
}

/// What may not have been done when the daemon died after a commit. The keeper bears hearing it twice.
pub fn effects_to_repeat(state: &State) -> Vec<Effect> {
    match (state.phase(), state.stop()) {
        (Phase::Stopping, Some(stop)) => vec![Effect::Stop(stop.rule, stop.by.clone())],
        (Phase::Starting | Phase::Live, _) => {
            let raised = state.tape_bytes.map(Effect::RaiseTapeLimit);
            let allowed = state.budget.map(|budget| Effect::Allow(budget.allowance()));
            let asks = state.asks.iter().map(|asked| Effect::Ask { at: asked.at, ask: asked.ask.clone() });
            let frozen = [Effect::Freeze(state.is_frozen())];
            raised.into_iter().chain(allowed).chain(frozen).chain(asks).collect()
        }
        (Phase::Created | Phase::Stopping | Phase::Ended, _) => Vec::new(),
    }
}

/// A decision in the making: each recorded event is applied at once, so that what follows sees it. The state is
/// copied only when something changes and is looked at again.
struct Draft<'a> {
    state: std::borrow::Cow<'a, State>,
    context: &'a Context,
    decision: Decision,
}

impl Draft<'_> {
    fn record(&mut self, event: Event) {
        self.state.to_mut().apply(self.context.now.wall, &event);
        self.decision.events.push(event);
    }

    /// Records an event after which nothing more is decided: the hot path, which copies no state.
    fn record_last(&mut self, event: Event) {
        self.decision.events.push(event);
    }

    fn effect(&mut self, effect: Effect) {
        self.decision.effects.push(effect);
    }

    fn start(&mut self) {
        if self.state.is_frozen() {
            return;
        }
        let attempt = self.state.attempt.saturating_add(1);
        self.record(Event::SessionStarting(Starting { attempt }));
        self.effect(Effect::Spawn { attempt });
    }

    /// Ends a session whose agent has said that it is done, once nothing is open.
    fn end_if_done(&mut self) {
        let state = &self.state;
        let asked_by = state.handoff().map(|requested| requested.by.clone());
        let has_said_all = state.turn().is_none() && state.asks.is_empty();
        if let Some(by) = asked_by.filter(|_| state.phase() == Phase::Live && has_said_all) {
            // What runs beside its turns would only write to what another one works on.
            return self.stop(StopRule::Handoff, by);
        }
        if state.done && state.phase() == Phase::Live && state.has_nothing_left() {
            self.stop(StopRule::Done, By::ostler());
        }
    }

    /// The first message to an agent that lost its memory tells it what had been said; to one that was interrupted, that
    /// it was.
    fn seeded(&self, message: Message) -> Message {
        let is_lost = self.state.lost_context().is_some();
        let first = match &self.state.created().begin {
            _ if self.state.turns > 0 => None,
            Begin::Reseed { seed, .. } | Begin::Fork { seed, .. } | Begin::Resume { seed, .. }
                if is_lost && !seed.is_empty() =>
            {
                Some(seed)
            }
            Begin::Resume { interrupted, .. } => interrupted.as_ref(),
            Begin::Fresh | Begin::Fork { .. } | Begin::Reseed { .. } => None,
        };
        // Who it is, is told to an agent that does not remember it.
        let begins = matches!(self.state.created().begin, Begin::Fresh | Begin::Reseed { .. }) || is_lost;
        let own = self.state.created().config.system_prompt.as_ref();
        let own = own.filter(|_| begins && self.state.turns == 0);
        // Where it works is not where it was: that concerns whoever remembers it, too.
        let tree = self.state.created().config.worktree.as_ref().and_then(|tree| tree.told.as_ref());
        let tree = tree.filter(|_| self.state.turns == 0);
        let parts: Vec<&str> = own
            .into_iter()
            .chain(tree)
            .chain(first)
            .map(String::as_str)
            .chain([message.text.as_str()])
            .collect();
        Message { text: parts.join("\n\n"), ..message }
    }

    fn stop(&mut self, rule: StopRule, by: By) {
        let overrides = match (self.state.phase(), self.state.stop()) {
            (Phase::Ended, _) => return,
            (Phase::Stopping, Some(current)) => rule.ladder() > current.rule.ladder(),
            _ => true,
        };
        if !overrides {
            return;
        }
        let was = self.state.phase();
        // An orderly end needs a process that can run; a kill thaws by itself.
        if self.state.is_frozen() && was > Phase::Created && rule.ladder() == super::Ladder::Orderly {
            self.effect(Effect::Freeze(false));
        }
        self.record(Event::SessionStopRequested(StopRequested { rule, by: by.clone() }));
        if was == Phase::Live && rule.ladder() == super::Ladder::Orderly {
            self.effect(Effect::Tell(AgentRequest::End));
        }
        if was == Phase::Created {
            ending::without_a_process(self);
        } else {
            self.effect(Effect::Stop(rule, by));
        }
    }

    fn hold(&mut self, hold: Hold, reason: String) {
        let was_frozen = self.state.is_frozen();
        let is_budget = matches!(hold, Hold::Budget | Hold::CampaignBudget | Hold::AgentBudget);
        let may_settle = self.state.settles || self.state.holds().of_budget().is_none();
        let settles = is_budget && may_settle && self.state.has_a_turn_to_end();
        self.record(Event::SessionHeld(Held { hold, reason, settles }));
        if settles {
            self.effect(Effect::Allow(self.state.allowance(&self.context.prices)));
        }
        self.refreeze(was_frozen);
    }

    /// A turn that a budget holds has said what was paid for, and waits for more.
    fn has_settled(&mut self, watchdog: Watchdog) {
        let was_frozen = self.state.is_frozen();
        self.record(Event::WatchdogFired(WatchdogFired { watchdog, rung: WatchdogRung::Park }));
        self.refreeze(was_frozen);
    }

    fn release(&mut self, hold: Hold) {
        let was_frozen = self.state.is_frozen();
        self.record(Event::SessionReleased(Released { hold }));
        self.refreeze(was_frozen);
    }

    /// Freezes or thaws the tree when that changed, and there is one.
    fn refreeze(&mut self, was_frozen: bool) {
        let frozen = self.state.is_frozen();
        if frozen != was_frozen && matches!(self.state.phase(), Phase::Starting | Phase::Live) {
            self.effect(Effect::Freeze(frozen));
        }
    }

    fn intake(&mut self, intake: Intake) {
        if intake == self.state.intake {
            return;
        }
        self.record(Event::IntakeChanged(IntakeChanged { intake: intake.as_str().to_owned() }));
        let held = self.state.holds().disk.is_some();
        match intake {
            Intake::DiskFull => {
                self.hold(Hold::Disk, "the disk is full: recording and input wait for space".to_owned())
            }
            Intake::TapeLimit => {
                self.hold(Hold::Disk, "the tape reached its limit: raise it to go on".to_owned())
            }
            Intake::Open | Intake::Throttled if held => {
                self.release(Hold::Disk);
                self.deliver();
            }
            Intake::Open | Intake::Throttled => {}
        }
    }

    fn watchdog(&mut self, watchdog: Watchdog) {
        // The timer may have fired for a state that was left meanwhile.
        let now = self.context.now.wall;
        let is_meant = |awake: Watchdog| {
            // Whoever has heard a piece of an answer, which is no event, waits for silence instead.
            awake == watchdog || (awake, watchdog) == (Watchdog::FirstOutput, Watchdog::Silent)
        };
        if self.state.watchdog().is_none_or(|(awake, _)| !is_meant(awake))
            || self.state.watchdogs_sleep_until(now).is_some()
        {
            return;
        }
        match watchdog {
            Watchdog::Start => return self.stop(StopRule::StartWatchdog, By::ostler()),
            Watchdog::Budget | Watchdog::BudgetTool if self.state.ends_of_budget => {
                return self.stop(StopRule::Budget, By::ostler());
            }
            Watchdog::Budget | Watchdog::BudgetTool => return self.has_settled(watchdog),
            Watchdog::FirstOutput | Watchdog::Silent | Watchdog::Tool | Watchdog::Retries => {}
        }
        let fired = |rung| Event::WatchdogFired(WatchdogFired { watchdog, rung });
        match self.state.stall().map(|stall| stall.rung) {
            None => {
                let evidence = match watchdog {
                    Watchdog::Retries => {
                        "every model call has failed for longer than the retries limit".to_owned()
                    }
                    _ => format!("nothing was heard for longer than the {} limit", watchdog.as_str()),
                };
                self.record(Event::SessionStalled(Stalled { watchdog, evidence }));
                self.record(fired(WatchdogRung::Nudge));
                self.effect(Effect::Tell(AgentRequest::Nudge));
            }
            Some(WatchdogRung::Nudge) => {
                self.record(fired(WatchdogRung::Interrupt));
                self.effect(Effect::Tell(AgentRequest::Interrupt));
            }
            Some(WatchdogRung::Interrupt) if self.state.created().config.restart != RestartPolicy::Never => {
                self.record(fired(WatchdogRung::Restart));
                self.stop(StopRule::StallWatchdog, By::ostler());
            }
            Some(WatchdogRung::Interrupt | WatchdogRung::Restart) => self.record(fired(WatchdogRung::Park)),
            Some(WatchdogRung::Park) => {}
        }
    }
}
