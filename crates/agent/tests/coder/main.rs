//! The agent as a program, spoken to as Ostler does, with a model server of the testkit.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod bridge;
mod editor;
mod failures;
mod turns;
