//! A restart of the machine: which sessions were lost with it, who goes on by itself, and what going on would cost.

use std::time::Duration;

use serde::Deserialize;

use crate::{
    Now, Time, Usage,
    price::{Dollars, PriceBook},
    session::{Desired, ExitFacts, How, Restart, State, View},
    time::Deadline,
};

/// How long a new session that was promised may take to be there, before its predecessor counts as lost all the same.
const PROMISED_WITHIN: Duration = Duration::from_secs(60);

/// What becomes of sessions that were lost with the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnReboot {
    /// A person is told of them, and asked.
    #[default]
    Ask,
    /// They go on by themselves, as far as there is room.
    Resume,
    /// Nobody is told.
    Leave,
}

impl OnReboot {
    pub const fn as_str(self) -> &'static str {
        match self {
            OnReboot::Ask => "ask",
            OnReboot::Resume => "resume",
            OnReboot::Leave => "leave",
        }
    }
}

/// When the machine came back that took a session along; none where it did not. Whoever was asked to end before is not
/// lost: its end was wanted.
pub(crate) fn taken_along(state: &State, exit: &ExitFacts, now: &Now) -> Option<Time> {
    let is_wanted = state.stop().is_some() || exit.wish.is_some();
    let is_gone = exit.shut_down || matches!(exit.how, How::Lost { .. });
    let is_other_boot = state.boot().is_some_and(|boot| *boot != now.boot);
    (is_gone && is_other_boot && !is_wanted).then(|| now.wall.minus(now.since_boot))
}

/// When a session that was lost with the machine goes on by itself. One that a person had paused does not.
pub(crate) fn goes_on(state: &State, on_reboot: OnReboot, now: &Now) -> Option<Restart> {
    let may = on_reboot == OnReboot::Resume && state.desired() == Desired::Run;
    may.then(|| Restart::At(Deadline::after(now, Duration::ZERO)))
}

/// Says whether somebody has yet to say what becomes of a lost session: not while one that continues it is on its way.
pub fn awaits_a_word(lost: &View, now: Time) -> bool {
    match &lost.restart {
        _ if lost.restart_refused.is_some() => true,
        Some(Restart::At(deadline)) => deadline.wall().plus(PROMISED_WITHIN) < now,
        Some(Restart::Quarantined { .. }) | None => true,
    }
}

/// The last restart of the machine that cost sessions, while nobody has said what becomes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineRestart {
    pub at: Time,
    /// Sessions that were lost and are not answered for.
    pub lost: u64,
}

/// A session that was lost with the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct LostSession {
    pub session: View,
    pub restarted_at: Time,
    pub price: GoingOn,
}

/// What it costs to go on, before the agent does anything new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GoingOn {
    /// It was at rest, and nothing waits for it: its model is not called.
    pub is_free: bool,
    /// Tokens that its model reads again, where a call has told how many they are.
    pub tokens: Option<u64>,
    /// What they cost at the price of uncached input: whatever was cached is gone by now. None where the model has no price.
    pub cost: Option<Dollars>,
    /// A subscription covers it.
    pub is_on_plan: bool,
}

impl GoingOn {
    /// From the last call of a session's own model.
    pub fn of(state: &State, last_call: Option<&Usage>, is_on_plan: bool, prices: &PriceBook) -> Self {
        let has_something_to_do = state.was_cut_short()
            || state.failed_turn_words().is_some()
            || state.undelivered().next().is_some();
        if !has_something_to_do {
            return Self { is_free: true, is_on_plan, ..Self::default() };
        }
        let tokens = last_call.map(Usage::total);
        let model = state.view().model;
        let quote = model.as_deref().and_then(|model| prices.quote(model));
        let cost = tokens
            .zip(quote)
            .map(|(tokens, quote)| quote.price.of(&Usage { input: tokens, ..Usage::default() }));
        Self { is_free: false, tokens, cost, is_on_plan }
    }
}
