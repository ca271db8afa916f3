//! The promises of the pure core, tried with random histories.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod any;
mod approvals;
mod fuzzed;
mod life;
mod models_and_forks;
mod money;
mod promises;
