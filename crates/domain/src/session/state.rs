//! What a session's events add up to.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Attention, Begin, Created, Desired, Ended, Holds, Intake, Ledger, Link, OpenApproval, OpenTurn, Phase,
    RateLimit, Stall, StopRequested, Waiting, project::Doing,
};
use crate::{
    Budget, Now, Time, Usage,
    ask::Asked,
    budget::{Lent, Used, WhenUsedUp},
    event::{Asks, BudgetReached, By, ContextMeasured, Process, StopReason},
    gateway::Allowance,
    handoff::{HandoffRequested, Pack},
    message::Summary,
    price::{Cost, PriceBook},
    text::sentence,
    time::{BootId, Deadline},
};

/// Snapshots are read by the version that made them only: another one may fold events differently.
const SNAPSHOT_FORM: &str = concat!("state of ", env!("CARGO_PKG_VERSION"));

/// Everything that is known of one session. Changed by [`State::apply`] only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(super) created: Created,
    pub(super) created_at: Time,
    pub(super) phase: Phase,
    /// When the phase last changed.
    pub(super) phase_since: Time,
    pub(super) attempt: u32,
    pub(super) process: Option<Process>,
    pub(super) boot: Option<BootId>,
    pub(super) provider_id: Option<String>,
    /// A turn was run under that id.
    pub(super) is_bound: bool,
    /// The agent could not go on with what was said before.
    pub(super) lost_context: Option<String>,
    /// How full the context is, as the agent last said.
    #[serde(default)]
    pub(super) context: Option<ContextMeasured>,
    /// How often its context was compacted.
    #[serde(default)]
    pub(super) compactions: u32,
    /// Asked for since it was created.
    pub(super) chosen_model: Option<String>,
    /// What the model's server said when it did not accept the agent.
    pub(super) auth_failure: Option<String>,
    /// When the login that it was lent ends.
    #[serde(default)]
    pub(super) lent_until: Option<Time>,
    pub(super) model: Option<String>,
    pub(super) deadline: Option<Deadline>,
    pub(super) timeout_left_us: Option<u64>,
    pub(super) started_at: Option<Time>,
    pub(super) turn: Option<OpenTurn>,
    pub(super) turns: u32,
    pub(super) messages: Vec<Waiting>,
    /// When the next message may be delivered, should nothing more come.
    #[serde(default)]
    pub(super) quiet_until: Option<Deadline>,
    /// What was dropped, and the agent has not been told.
    #[serde(default)]
    pub(super) dropped: Summary,
    pub(super) approvals: Vec<OpenApproval>,
    /// What the agent left running beside its turns.
    pub(super) background: Vec<String>,
    pub(super) rate_limit: Option<RateLimit>,
    /// Since when every model call of the turn has failed.
    pub(super) failing_since: Option<Time>,
    /// The last turn failed of a rate limit.
    pub(super) failed_of_limit: bool,
    /// What went wrong last in the turn, as the agent or the model's server said it.
    pub(super) trouble: Option<String>,
    /// The last turn came to nothing, and none has begun since.
    pub(super) turn_failure: Option<String>,
    /// The process ended within a turn, or while something ran beside its turns.
    pub(super) cut_short: bool,
    pub(super) desired: Desired,
    pub(super) desired_since: Time,
    /// Who paused it, and what a person is asked by that.
    #[serde(default)]
    pub(super) paused_by: Option<By>,
    #[serde(default)]
    pub(super) pause_asks: Option<Asks>,
    pub(super) holds: Holds,
    pub(super) held_since: Time,
    pub(super) stall: Option<Stall>,
    pub(super) intake: Intake,
    /// How large the tape may become, when a person raised that.
    pub(super) tape_bytes: Option<u64>,
    pub(super) budget: Option<Budget>,
    pub(super) budget_warned: bool,
    /// Which budget was used up, in words.
    pub(super) over_budget: Option<String>,
    /// Its calls go through a gateway, which holds them at the end of an allowance.
    #[serde(default)]
    pub(super) holds_calls: bool,
    /// It ends of a used-up budget when its open turn does: what it has paid for is still to be said.
    #[serde(default)]
    pub(super) ends_of_budget: bool,
    /// A used-up budget holds it, and its tree stands still when its open turn is over, for the same reason.
    #[serde(default)]
    pub(super) settles: bool,
    /// What its helpers took of its budget.
    #[serde(default)]
    pub(super) helpers: Lent,
    pub(super) usage: Usage,
    pub(super) cost: Cost,
    pub(super) ledger: Ledger,
    pub(super) stop: Option<StopRequested>,
    pub(super) ended: Option<Ended>,
    /// What it did last, and when it began with that; when it ended, where the result is in.
    pub(super) doing: Option<Doing>,
    /// Whether that went well, where its result is in.
    #[serde(default)]
    pub(super) went_well: Option<bool>,
    pub(super) last_activity_at: Option<Time>,
    /// The last completed text: what `run` prints.
    pub(super) last_completion: Option<String>,
    pub(super) idle_since: Time,
    pub(super) denied: u32,
    /// How often something stands blotted out in what is recorded of it.
    #[serde(default)]
    pub(super) redacted: u32,
    /// Steps that the agent has begun and not ended.
    pub(super) steps: Vec<String>,
    /// The agent has said that its work is done.
    pub(super) done: bool,
    /// Its work is to go on in another session.
    #[serde(default)]
    pub(super) handoff: Option<HandoffRequested>,
    /// What it asked for outside of itself, and is not done yet.
    #[serde(default)]
    pub(super) asks: Vec<Asked>,
    /// What it was handed when it began.
    #[serde(default)]
    pub(super) handed: Option<Box<Pack>>,
    pub(super) session_seq: u64,
    pub(super) updated_at: Time,
}

impl State {
    /// Whether the model's server did not take the agent's key or login.
    pub fn is_refused(&self) -> bool {
        self.auth_failure.is_some()
    }

    pub fn created(&self) -> &Created {
        &self.created
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn is_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The agent said that its work is done.
    pub fn has_said_done(&self) -> bool {
        self.done
    }

    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    pub fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// The boot of the machine in which the process was started.
    pub fn boot(&self) -> Option<&BootId> {
        self.boot.as_ref()
    }

    pub fn deadline(&self) -> Option<&Deadline> {
        self.deadline.as_ref()
    }

    pub fn turn(&self) -> Option<&OpenTurn> {
        self.turn.as_ref()
    }

    pub fn approvals(&self) -> &[OpenApproval] {
        &self.approvals
    }

    /// The provider's own id for the dialogue, once a turn has shown that it exists.
    pub fn bound_id(&self) -> Option<&str> {
        self.provider_id.as_deref().filter(|_| self.is_bound)
    }

    /// The model that the conversation's next session begins with, where anybody has said one.
    pub fn next_model(&self) -> Option<&str> {
        self.chosen_model.as_deref().or(self.created.config.model.as_deref())
    }

    /// Why the agent could not go on with what was said before.
    pub fn lost_context(&self) -> Option<&str> {
        self.lost_context.as_deref()
    }

    pub fn background(&self) -> &[String] {
        &self.background
    }

    /// What its agent asked for outside of it, and nobody has answered.
    pub fn asks(&self) -> &[Asked] {
        &self.asks
    }

    /// Says whether nothing of it is under way: no turn, nothing that it is to hear or runs beside its turns, and nothing
    /// that it asked for and may still be refused.
    pub(super) fn has_nothing_left(&self) -> bool {
        self.turn().is_none()
            && self.messages.is_empty()
            && self.background.is_empty()
            && self.asks.is_empty()
    }

    pub fn rate_limit(&self) -> Option<&RateLimit> {
        self.rate_limit.as_ref()
    }

    pub fn holds(&self) -> &Holds {
        &self.holds
    }

    pub fn stall(&self) -> Option<&Stall> {
        self.stall.as_ref()
    }

    pub fn stop(&self) -> Option<&StopRequested> {
        self.stop.as_ref()
    }

    pub fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// What was used, as budgets count it.
    pub fn used(&self, prices: &PriceBook) -> Used {
        Used::of(&self.usage, &self.cost, prices)
    }

    /// How much of its time is left; none where it may take as long as it likes.
    pub fn time_left(&self, now: &Now) -> Option<Duration> {
        let paused = self.timeout_left_us.map(Duration::from_micros);
        self.deadline.as_ref().map(|deadline| deadline.remaining(now)).or(paused)
    }

    /// How far calls may go by the session's own budget, without what its helpers took of it, and with the prices that were
    /// missing before.
    pub fn allowance(&self, prices: &PriceBook) -> Allowance {
        let known = self
            .cost
            .unpriced
            .keys()
            .filter_map(|model| prices.quote(model).map(|quote| (model.clone(), quote.price)));
        let lent = self.helpers.charged();
        let own = self.budget.map(|budget| Budget::new(budget.amount().left(&lent), budget.when_used_up));
        let own = own.map(|budget| budget.allowance()).unwrap_or_default();
        let is_asked_for = self.holds.of_budget().is_some();
        // Nothing that is still wanted may begin, whatever the gateway has counted.
        let tokens = if self.ends_of_budget || is_asked_for { Some(0) } else { own.tokens };
        Allowance { prices: known.collect(), tokens, is_asked_for, ..own }
    }

    /// The model that calls are made with, as far as anybody has said.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref().or(self.created.config.model.as_deref())
    }

    pub fn desired(&self) -> Desired {
        self.desired
    }

    /// The state in a form that a later start may begin with instead of folding all events. It is a copy, never
    /// the truth: one that cannot be read is thrown away.
    pub fn snapshot(&self) -> String {
        // Plain structs with string keys: serializing them cannot fail.
        serde_json::to_string(&(SNAPSHOT_FORM, self)).unwrap_or_default()
    }

    /// Reads a snapshot; none when it was made by another version.
    pub fn from_snapshot(text: &str) -> Option<Self> {
        let (form, state) = serde_json::from_str::<(String, State)>(text).ok()?;
        (form == SNAPSHOT_FORM).then_some(state)
    }

    /// Number of events applied: the `session_seq` of the last one.
    pub fn session_seq(&self) -> u64 {
        self.session_seq
    }

    /// The provider's own id for the dialogue, which it has not been seen to keep yet.
    pub fn claimed_id(&self) -> Option<&str> {
        self.provider_id.as_deref()
    }

    /// What the agent that goes on with this session is told first: that it was interrupted, and of what. None where it
    /// was not.
    pub fn interruption(&self) -> Option<String> {
        let before = match &self.created.begin {
            // Nobody has been told yet.
            Begin::Resume { interrupted, .. } if self.turns == 0 => interrupted.clone(),
            _ => None,
        };
        let ended = self.ended.as_ref().filter(|_| self.cut_short);
        ended
            .map(|ended| {
                let beside = match self.background.as_slice() {
                    [] => String::new(),
                    tasks => format!(" What you had running beside it is gone: {}.", tasks.join(", ")),
                };
                format!(
                    "You were interrupted in the middle of your work. {}{beside}",
                    ended.obituary.sentence
                )
            })
            .or(before)
    }

    /// What an agent is told that is to go on with a turn that failed; none where the last one did not.
    pub fn failed_turn_words(&self) -> Option<String> {
        let why = self.turn_failure.as_ref()?;
        Some(format!(
            "Your last turn failed: {} See what you have done already, and go on where you were stopped.",
            sentence(why)
        ))
    }

    /// Says whether it ended with the login that it was lent, and goes on with a renewed one by itself.
    pub fn goes_on_with_a_renewed_login(&self) -> bool {
        self.ended.as_ref().is_some_and(Ended::goes_on_with_a_renewed_login)
    }

    /// Says whether the next session of the conversation would have anything to do without a person's word.
    pub(super) fn leaves_work(&self) -> bool {
        self.cut_short || !self.background.is_empty() || self.undelivered().next().is_some()
    }

    /// Says whether the process ended within a turn, or while something ran beside its turns.
    pub fn was_cut_short(&self) -> bool {
        self.cut_short
    }

    /// Short lives in a row up to the end of this one: 0 when this one was long enough to be good.
    pub fn short_lives(&self) -> u32 {
        let with_the_machine = self.ended.as_ref().is_some_and(|ended| ended.machine_restarted.is_some());
        super::restart::short_lives(self, self.updated_at, with_the_machine)
    }

    /// When the session goes on by itself: its turn failed of a rate limit whose end was said.
    pub fn limit_ends(&self) -> Option<Time> {
        let until = self.rate_limit.as_ref()?.until?;
        self.waits_for_limit().then_some(until)
    }

    pub(super) fn waits_for_limit(&self) -> bool {
        self.phase == Phase::Live
            && self.turn.is_none()
            && self.failed_of_limit
            // Whoever has said something meanwhile has it go on.
            && self.messages.is_empty()
            && self.goes_on_after(StopReason::Error).is_some()
    }

    /// When a turn that ends so now is gone on with, without anybody's doing.
    pub(super) fn goes_on_after(&self, stop_reason: StopReason) -> Option<Time> {
        let resumes = self.created.config.resumes_after_limit && stop_reason == StopReason::Error;
        self.rate_limit.as_ref().filter(|_| resumes)?.until
    }

    /// When its process is no longer kept for a next message; none while it has something to do, or waits for somebody.
    pub fn idles_until(&self) -> Option<Time> {
        let limit = Duration::from_micros(self.created.config.idle_stop_us?);
        self.idles_since().map(|since| since.plus(limit))
    }

    /// Since when its process is there for a next message alone; none for one that is to be kept whatever happens.
    pub fn idles_since(&self) -> Option<Time> {
        self.created.config.idle_stop_us?;
        self.has_done_all().then(|| self.idle_since.max(self.phase_since))
    }

    /// Says whether it lives and has done all that was asked of it.
    pub(super) fn has_done_all(&self) -> bool {
        self.phase == Phase::Live
            && self.attention(Link::Attached) == Some(Attention::Idle)
            && self.messages.is_empty()
    }

    /// Says whether it ends where a budget is used up, because nobody is there to be asked.
    pub(super) fn stops_at(&self, reached: &BudgetReached) -> bool {
        let own = self.budget.map(|budget| budget.when_used_up).filter(|_| reached.campaign.is_none());
        own.unwrap_or(self.created.config.when_used_up) == WhenUsedUp::Stop
    }

    /// Says whether an open turn costs nothing more to end: a call that it still makes waits at the gateway.
    pub(super) fn has_a_turn_to_end(&self) -> bool {
        self.phase == Phase::Live && self.turn.is_some() && self.holds_calls
    }

    /// Says whether the process tree is to stand still.
    pub fn is_frozen(&self) -> bool {
        let is_held = self.holds.of_budget().is_some() && !self.settles;
        self.desired == Desired::Pause || is_held || self.holds.halt.is_some()
    }
}
