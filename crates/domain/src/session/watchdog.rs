//! Watchdogs: what may take how long, and the bounded ladder of what is done when it takes longer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Phase, State};
use crate::{
    Time,
    limits::{BUDGET_SETTLES, BUDGET_TOOL_ENDS},
};

/// What a session is taking too long for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watchdog {
    /// To become ready.
    Start,
    /// To say a first word in a turn.
    FirstOutput,
    /// To say another.
    Silent,
    /// To finish a tool call.
    Tool,
    /// To make a model call that does not fail.
    Retries,
    /// To end the turn in which a budget was used up.
    Budget,
    /// The same, while a tool of it is under way.
    BudgetTool,
}

impl Watchdog {
    /// Whether any output is the progress that it waits for. Who tries again and again says so each time, and so do some
    /// whose tool still runs.
    pub const fn heeds_output(self) -> bool {
        !matches!(self, Watchdog::Retries | Watchdog::BudgetTool)
    }

    /// Whether what is logged counts too. Who starts may have nothing else to say for long; in a turn it is no work.
    pub const fn heeds_log(self) -> bool {
        matches!(self, Watchdog::Start)
    }

    /// Whether it waits for the end of a turn that may use nothing more.
    pub const fn is_of_a_budget(self) -> bool {
        matches!(self, Watchdog::Budget | Watchdog::BudgetTool)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Watchdog::Start => "start",
            Watchdog::FirstOutput => "first_output",
            Watchdog::Silent => "silent",
            Watchdog::Tool => "tool",
            Watchdog::Retries => "retries",
            Watchdog::Budget => "budget",
            Watchdog::BudgetTool => "budget_tool",
        }
    }
}

/// What is done about it, from mild to final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchdogRung {
    /// The agent is asked for a sign of life.
    Nudge,
    /// The turn is interrupted.
    Interrupt,
    /// The process is replaced, where the restart policy allows it.
    Restart,
    /// Nothing more is tried; a person is needed.
    Park,
}

impl State {
    /// The watchdog that is awake now, and how long it waits from the last sign of progress. None while a
    /// person is asked, the tree is frozen, or the ladder has come to its end.
    pub fn watchdog(&self) -> Option<(Watchdog, Duration)> {
        let limits = &self.created().config.watchdogs;
        let of = |watchdog, micros| Some((watchdog, Duration::from_micros(micros)));
        let settles = self.settles && !self.is_frozen();
        if (self.ends_of_budget || settles) && self.phase() == Phase::Live {
            return Some(match self.runs_a_tool() {
                true => (Watchdog::BudgetTool, BUDGET_TOOL_ENDS),
                false => (Watchdog::Budget, BUDGET_SETTLES),
            });
        }
        if self.is_frozen() || !self.approvals().is_empty() || self.holds().disk.is_some() {
            return None;
        }
        match self.phase() {
            Phase::Starting => of(Watchdog::Start, limits.start_us),
            Phase::Live => {
                let turn = self.turn()?;
                match self.stall() {
                    Some(stall) if stall.rung == WatchdogRung::Park => None,
                    Some(stall) => of(stall.watchdog, limits.rung_us),
                    None if self.failing_since.is_some() => of(Watchdog::Retries, limits.retries_us),
                    None if !turn.said_something => of(Watchdog::FirstOutput, limits.first_output_us),
                    None if !turn.open_calls.is_empty() => of(Watchdog::Tool, limits.tool_us),
                    None => of(Watchdog::Silent, limits.silent_us),
                }
            }
            Phase::Created | Phase::Stopping | Phase::Ended => None,
        }
    }

    /// Says whether a command of its turn is under way, and not kept waiting for leave.
    fn runs_a_tool(&self) -> bool {
        self.turn().is_some_and(|turn| !turn.open_calls.is_empty()) && self.approvals().is_empty()
    }

    /// Until when every watchdog sleeps: an agent that waits for the end of a limit, which was said, does what it should,
    /// however often it is told so.
    pub fn watchdogs_sleep_until(&self, now: Time) -> Option<Time> {
        let sleeps = self.phase() == Phase::Live && !self.ends_of_budget && !self.settles;
        self.rate_limit()?.until.filter(|until| *until > now && sleeps)
    }
}
