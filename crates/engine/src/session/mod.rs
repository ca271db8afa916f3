//! One actor for each session that has not ended: it alone changes that session.
//!
//! ```text
//!   keeper ──frames──► link ┐                       ┌─► outbox, freeze, stop ──► keeper
//!   tape ────records──► intake ├─► decide ─► commit ─┤
//!   people ──requests──► inbox ┘   (pure)   (durable) └─► answers, watchers
//! ```
//!
//! Everything to the right of the commit happens only after it is durable. Several commits may be under way; they
//! become durable in order. If one fails, the actor forgets what it thought and begins again from the store.

mod actor;
mod asking;
mod commits;
mod guarding;
mod intake;
mod keeping;
mod settling;
mod spending;
mod telling;
mod timers;

pub(crate) use actor::{Actor, Command, Handle};
