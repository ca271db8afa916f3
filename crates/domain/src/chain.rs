//! A chain with everybody who helped it, and what all of them took together.

use std::time::Duration;

use crate::{SessionId, Time, Usage, price::Cost, session::View};

/// The sessions that one work went through, and their helpers, at whatever depth.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chain {
    /// Those joined by handoff, crash and restart, oldest first: the newest of them, where they are many.
    pub sessions: Vec<View>,
    /// Oldest first: the first of them, where they are many.
    pub helpers: Vec<View>,
    /// How many there are in all.
    pub session_count: u64,
    pub helper_count: u64,
    pub sum: Sum,
}

/// What sessions took, each counted once. Times overlap where several work at once, and are added all the same.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sum {
    pub usage: Usage,
    pub cost: Cost,
    pub time: Duration,
}

impl Sum {
    pub fn of<'a>(sessions: impl IntoIterator<Item = &'a View>, now: Time) -> Sum {
        let mut sum = Sum::default();
        for session in sessions {
            sum.usage += session.usage;
            sum.cost += &session.cost;
            sum.time += session.ended_at.unwrap_or(now).since(session.created_at);
        }
        sum
    }
}

impl Chain {
    /// From everybody who belongs to a chain, oldest first; at most so many of each sort are kept.
    pub fn of(chain: SessionId, all: Vec<View>, now: Time, most: usize) -> Chain {
        let sum = Sum::of(&all, now);
        let (mut sessions, mut helpers): (Vec<View>, Vec<View>) =
            all.into_iter().partition(|view| view.chain == chain);
        let (session_count, helper_count) = (sessions.len() as u64, helpers.len() as u64);
        sessions.drain(..sessions.len().saturating_sub(most));
        helpers.truncate(most);
        Chain { sessions, helpers, session_count, helper_count, sum }
    }
}
