//! Why a session ended: one plain sentence and the facts behind it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ExitFacts, How, OpenCall, OutOfMemory, Outcome, Phase, State, StopRequested, StopRule};
use crate::{
    Hint, Time,
    event::{By, Leftover},
    text::sentence,
    time::Deadline,
};

/// The last event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub outcome: Outcome,
    pub obituary: Obituary,
    /// What follows: a new session, quarantine, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// When the machine came back that took it along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_restarted: Option<Time>,
}

impl Ended {
    pub(crate) fn goes_on_with_a_renewed_login(&self) -> bool {
        self.obituary.rule == Some(StopRule::ProviderAuth) && matches!(self.restart, Some(Restart::At(_)))
    }
}

/// What the restart policy decided at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// A session that goes on with this one starts then.
    At(Deadline),
    /// Too many short lives in a row: nothing starts until a person says so.
    Quarantined { short_lives: u32 },
}

/// Why a session that was to go on in another one by itself has not. It is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartRefusal {
    pub since: Time,
    /// The stable word of the refusal.
    pub reason: String,
    pub why: String,
    /// What would let it go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cures: Vec<Hint>,
}

/// One plain sentence, and the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obituary {
    pub sentence: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The rule of ours that ended it, and who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<StopRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default)]
    pub oom: bool,
    /// What was seen of its memory, where it was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<OutOfMemory>,
    /// What the agent was last seen doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Processes that outlived the agent and were ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<Leftover>,
    /// What would let the next one start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cures: Vec<Hint>,
}

/// The outcome that a way out means, given what was known (design: a process that ends unasked).
pub(super) fn outcome(state: &State, exit: &ExitFacts, with_the_machine: bool) -> Outcome {
    if exit.is_out_of_memory() {
        return Outcome::Oom;
    }
    if let Some(stop) = wished(state, exit) {
        return match stop.rule {
            // It had begun to work: which turn it was says nothing of the key.
            StopRule::ProviderAuth if state.turns > 0 => Outcome::TurnFailed,
            // It has ended in an orderly way, and its work is not done.
            StopRule::TurnEnded if state.turn_failure.is_some() => Outcome::TurnFailed,
            rule => rule.outcome(),
        };
    }
    if with_the_machine {
        return Outcome::Lost;
    }
    if exit.asked.is_some() {
        return Outcome::Stopped;
    }
    match &exit.how {
        How::NeverStarted { .. } => Outcome::FailedStart,
        How::Lost { .. } => Outcome::Lost,
        How::Exited { .. } | How::Signaled { .. } if state.phase < Phase::Live => Outcome::FailedStart,
        How::Exited { code: 0 } if state.turn.is_none() || state.done => Outcome::Done,
        How::Exited { .. } | How::Signaled { .. } => Outcome::Crashed,
    }
}

/// The wish that ended it: as recorded, or as the keeper heard it when the record could not be written to.
fn wished<'a>(state: &'a State, exit: &'a ExitFacts) -> Option<&'a StopRequested> {
    state.stop.as_ref().or(exit.wish.as_ref())
}

pub(super) fn write(
    state: &State,
    exit: &ExitFacts,
    outcome: Outcome,
    outlived_login: bool,
    now: Time,
) -> Obituary {
    let (exit_code, signal) = match exit.how {
        // Ostler ended it for what was said: the signal was ours, and says nothing of why.
        How::Signaled { .. } if said_why(state, exit) => (None, None),
        How::Exited { code } => (Some(code), None),
        How::Signaled { signal } => (None, Some(signal)),
        How::NeverStarted { .. } | How::Lost { .. } => (None, None),
    };
    Obituary {
        sentence: if outlived_login && outcome != Outcome::Oom {
            "Ended by Ostler: the login that it was lent has ended.".to_owned()
        } else {
            words(state, exit, outcome)
        },
        exit_code,
        signal,
        rule: wished(state, exit).map(|stop| stop.rule),
        by: wished(state, exit).map(|stop| stop.by.0.clone()).or_else(|| exit.asked.clone()),
        oom: exit.oom,
        memory: exit.memory.as_deref().cloned(),
        last: last(state, exit, now),
        leftovers: exit.leftovers.clone(),
        cures: match &exit.how {
            How::NeverStarted { cures, .. } => cures.clone(),
            // Nothing is wrong with where the login came from.
            _ if outlived_login => Vec::new(),
            _ => exit.cures.clone(),
        },
    }
}

/// What it was at, and how far that had come.
fn last(state: &State, exit: &ExitFacts, now: Time) -> Option<String> {
    // Of whoever was lost it is known when that was seen, not when it was.
    let when = |said: &str, since: Time| match exit.how {
        How::Lost { .. } => String::new(),
        _ => format!(", {said} {} before the end", brief(now.since(since))),
    };
    if let Some(OpenCall { doing, .. }) = state.open_call() {
        return Some(format!("{}{}, no result", doing.text, when("started", doing.since)));
    }
    let doing = state.doing.as_ref()?;
    Some(match state.went_well {
        None => doing.text.clone(),
        Some(true) => format!("{}{}", doing.text, when("done", doing.since)),
        Some(false) => format!("{}{}", doing.text, when("failed", doing.since)),
    })
}

/// `40 ms`, `58 s`, `12 min`: one unit is enough.
fn brief(span: Duration) -> String {
    match span.as_secs() {
        0 => format!("{} ms", span.as_millis()),
        s if s < 120 => format!("{s} s"),
        s if s < 7_200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    }
}

/// Whether the agent, or the model's server through it, said why it cannot go on.
fn said_why(state: &State, exit: &ExitFacts) -> bool {
    let rule = wished(state, exit).map(|stop| stop.rule);
    matches!(rule, Some(StopRule::CannotStart | StopRule::ProviderAuth))
}

/// What it took to end it, where a closed input was not enough.
fn insisted(rung: &str) -> String {
    match rung {
        "close_input" => String::new(),
        "kill" => " (it had to be killed)".to_owned(),
        rung => format!(" (it took {rung})"),
    }
}

fn words(state: &State, exit: &ExitFacts, outcome: Outcome) -> String {
    if outcome == Outcome::Oom {
        let who = if exit.asked.is_some() { "Ostler" } else { "The kernel" };
        let memory = exit.memory.as_deref().cloned().unwrap_or_default();
        return format!("{who} ended the agent: {}.", memory.words());
    }
    let rung = exit.rung.as_deref().map(insisted).unwrap_or_default();
    if let Some(stop) = wished(state, exit) {
        let by = &stop.by.0;
        return match stop.rule {
            StopRule::Stop => format!("Stopped in an orderly way, asked by {by}{rung}."),
            StopRule::Restart => format!("Stopped to be replaced by a new session, asked by {by}{rung}."),
            StopRule::Handoff if stop.by == By::session(state.created().id) => {
                format!("Its work was handed to another session, asked by its own agent{rung}.")
            }
            StopRule::Handoff => format!("Its work was handed to another session, asked by {by}{rung}."),
            StopRule::Reset => format!("Stopped because its conversation was closed, asked by {by}{rung}."),
            StopRule::Kill => format!("Killed, asked by {by}."),
            StopRule::Halt => format!("Killed by a halt of all agents, asked by {by}."),
            StopRule::TurnEnded if outcome == Outcome::TurnFailed => {
                let why = sentence(state.turn_failure.as_deref().unwrap_or_default());
                format!("Its turn failed: {why} The agent was stopped in an orderly way{rung}.")
            }
            StopRule::TurnEnded => {
                format!("The turn ended and the agent was stopped in an orderly way{rung}.")
            }
            StopRule::Done if stop.by != By::ostler() => {
                format!("Its work is done, said {by}; the agent was stopped in an orderly way{rung}.")
            }
            StopRule::Done => {
                format!("The agent said that its work is done, and was stopped in an orderly way{rung}.")
            }
            StopRule::Idle => {
                let idle = state.phase_since.since(state.idle_since);
                let is_over = |limit: u64| idle >= Duration::from_micros(limit);
                let is_limit = state.deadline().is_some_and(|deadline| deadline.wall() <= state.phase_since)
                    && !state.created.config.idle_stop_us.is_some_and(is_over);
                let why = match is_limit {
                    true => format!(
                        "Idle when its time limit of {} passed",
                        span(state.created.config.timeout_us)
                    ),
                    false => format!("Idle for {}", span(state.created.config.idle_stop_us)),
                };
                format!("{why}: the agent was stopped in an orderly way{rung}; the next message wakes it.")
            }
            StopRule::GaveWay => format!(
                "Idle, it gave its slot to one that waits: the agent was stopped in an orderly way{rung}; the \
                 next message wakes it."
            ),
            StopRule::Timeout => {
                let limited =
                    if state.rate_limit.is_some() { " while the model's server limited it" } else { "" };
                let limit = span(state.created.config.timeout_us);
                let waiting = if state.attempt == 0 { " before it could start" } else { "" };
                format!("Stopped because its time limit of {limit} passed{waiting}{limited}{rung}.")
            }
            StopRule::Budget => {
                let why = state.over_budget.as_deref().unwrap_or("its budget was used up");
                format!("Stopped because {why}{rung}.")
            }
            StopRule::ProviderAuth => {
                let said = state.auth_failure.as_deref().unwrap_or("the key or login is not accepted");
                format!("Ended by Ostler: the model's server refused the agent: {}", sentence(said))
            }
            StopRule::CannotStart => {
                let said = state.trouble.as_deref().unwrap_or("it did not say why");
                format!("The agent said at its start that it cannot work: {}", sentence(said))
            }
            StopRule::StartWatchdog => {
                format!(
                    "Ended by Ostler: not ready within {}.",
                    span(Some(state.created.config.watchdogs.start_us))
                )
            }
            StopRule::StallWatchdog => {
                "Ended by Ostler to start it anew: it made no progress and did not react.".to_owned()
            }
        };
    }
    if outcome == Outcome::Lost && exit.shut_down {
        return "Lost: the machine was shut down while it ran.".to_owned();
    }
    if let Some(asked) = &exit.asked {
        return format!("Stopped by its keeper: {asked}{rung}.");
    }
    let when = match (&state.phase, &state.turn) {
        (Phase::Created | Phase::Starting, _) => " before it was ready",
        (_, Some(_)) => " in the middle of a turn",
        _ => "",
    };
    match &exit.how {
        How::NeverStarted { stage, message, .. } => {
            format!("The agent could not be started ({stage}): {}", sentence(message))
        }
        How::Lost { reason } => format!("Lost: {}", sentence(reason)),
        How::Exited { code: 0 } if outcome == Outcome::Done => {
            "The agent ended by itself with exit code 0, its work done.".to_owned()
        }
        How::Exited { code } => format!("The agent ended by itself with exit code {code}{when}."),
        How::Signaled { signal } => {
            format!(
                "The agent was ended by signal {signal}{}{when}; Ostler did not send it.",
                signal_name(*signal)
            )
        }
    }
}

fn span(micros: Option<u64>) -> String {
    // What is left of a limit is a little less than was asked for.
    let seconds = micros.unwrap_or(0).saturating_add(500_000) / 1_000_000;
    match seconds {
        0 => format!("{} ms", micros.unwrap_or(0) / 1_000),
        s if s % 3_600 == 0 => format!("{} h", s / 3_600),
        s if s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_took_to_end_it_is_said_in_words() {
        assert_eq!(insisted("close_input"), "");
        assert_eq!(insisted("signal 15"), " (it took signal 15)");
        assert_eq!(insisted("kill"), " (it had to be killed)");
    }

    #[test]
    fn spans_are_told_as_they_were_asked_for() {
        let told =
            [2_000_000, 1_999_400, 60_000_000, 59_999_990, 7_200_000_000, 400_000].map(|us| span(Some(us)));
        assert_eq!(told, ["2 s", "2 s", "1 min", "1 min", "2 h", "400 ms"]);
    }
}
