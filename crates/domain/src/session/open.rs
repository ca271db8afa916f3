//! What is open in a session: its turn, what is asked, limits, messages on their way, stalls.

use serde::{Deserialize, Serialize};

use super::{Doing, Watchdog, WatchdogRung};
use crate::{
    ApprovalId, Message, MessageId, Time, event::AskKind, message::Summary, text::one_line, time::Deadline,
};

/// A turn that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTurn {
    pub number: u32,
    pub started: Time,
    pub said_something: bool,
    /// Calls without a result, in the order in which they were made.
    pub open_calls: Vec<OpenCall>,
    /// The watchdog that has it interrupted.
    #[serde(default)]
    pub interrupted_by: Option<Watchdog>,
}

impl OpenTurn {
    /// Forgets a call whose result is in.
    pub(super) fn close(&mut self, tool_id: &str) -> Option<OpenCall> {
        let place = self.open_calls.iter().position(|call| call.tool_id == tool_id)?;
        Some(self.open_calls.remove(place))
    }
}

/// A call of a tool that has no result yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    pub tool_id: String,
    pub doing: Doing,
}

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenApproval {
    pub id: ApprovalId,
    pub ask: String,
    pub tool: String,
    pub input: String,
    /// What it asks for, in one line.
    pub asks: String,
    #[serde(default)]
    pub kind: AskKind,
    pub asked: Time,
    /// When it is denied; none while the session is paused.
    #[serde(default)]
    pub deadline: Option<Deadline>,
    /// What was left of its time when the session was paused.
    #[serde(default)]
    pub left_us: Option<u64>,
}

impl OpenApproval {
    /// What is asked, in a few words.
    pub fn words(&self) -> String {
        match self.kind {
            AskKind::Leave => self.asks.clone(),
            AskKind::Question => one_line(&self.input, ASKED),
        }
    }
}

/// How much of a question is shown beside others.
const ASKED: usize = 100;

/// The model's server wants fewer calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    pub what: String,
    pub until: Option<Time>,
    pub since: Time,
}

/// A message on its way to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub message: Message,
    pub place: Place,
    /// The message in whose prompt it is said.
    #[serde(default)]
    pub with: Option<MessageId>,
    /// What its prompt tells of messages that were dropped.
    #[serde(default)]
    pub tells: Summary,
}

/// Where a message on its way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Place {
    Inbox,
    Outbox,
    Delivered,
    Seen,
}

/// A session that makes no progress, and what was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    pub watchdog: Watchdog,
    pub since: Time,
    pub rung: WatchdogRung,
}
