//! Commits under way: what was submitted to the writer and is not durable yet, in order.

use std::{collections::VecDeque, sync::Arc};

use ostler_domain::{
    Event, Refusal, Time,
    denied::Denied,
    session::{Effect, View},
};
use ostler_store::{CommitError, Committed, OutboxRow};
use tokio::sync::oneshot;

/// What is to become true at once, and what follows when it has.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) events: Vec<(Time, Event)>,
    pub(super) outbox: Vec<OutboxRow>,
    pub(super) effects: Vec<Effect>,
    pub(super) replies: Vec<Reply>,
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.outbox.is_empty()
    }
}

/// Someone who waits for a commit.
pub(super) type Reply = oneshot::Sender<Result<View, Refusal>>;

/// A commit that the writer has not answered.
pub(super) struct InFlight {
    pub(super) answer: oneshot::Receiver<Result<Committed, CommitError>>,
    pub(super) outbox: Vec<OutboxRow>,
    pub(super) effects: Vec<Effect>,
    pub(super) replies: Vec<Reply>,
    pub(super) view: Arc<View>,
    /// How far the tape was taken in.
    pub(super) tape_offset: u64,
    /// Whether it says what model calls took.
    pub(super) spends: bool,
    /// What a rule of ours did not let the agent do.
    pub(super) denied: Vec<Denied>,
    /// The last turn that ended in it.
    pub(super) turn_over: Option<u32>,
}

/// The row of commits under way.
#[derive(Default)]
pub(super) struct Commits {
    row: VecDeque<InFlight>,
}

impl Commits {
    pub(super) fn push(&mut self, commit: InFlight) {
        self.row.push_back(commit);
    }

    pub(super) fn len(&self) -> usize {
        self.row.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// The oldest commit and its answer, when it has come. Never resolves while there is none. Safe to drop
    /// half way: nothing is taken before the answer is there.
    pub(super) async fn next(&mut self) -> (Result<Committed, CommitError>, InFlight) {
        let Some(first) = self.row.front_mut() else { return std::future::pending().await };
        let answer = (&mut first.answer).await.unwrap_or(Err(CommitError::Closed));
        match self.row.pop_front() {
            Some(first) => (answer, first),
            None => std::future::pending().await,
        }
    }

    /// Everything under way, oldest first, once all answers are in.
    pub(super) async fn settle(&mut self) -> Vec<(Result<Committed, CommitError>, InFlight)> {
        let mut settled = Vec::new();
        while !self.is_empty() {
            settled.push(self.next().await);
        }
        settled
    }
}
