//! The promises of the pure core, tried with random histories.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod admission;
mod answers;
mod any;
mod approvals;
mod asks;
mod exchange;
mod failed_turns;
mod fuzzed;
mod idle;
mod life;
mod missions;
mod models_and_forks;
mod money;
mod promises;
mod queues;
mod reboot;
mod retention;
mod transcripts;
