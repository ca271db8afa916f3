//! The tape through its public face: what is written is read, whatever happens in between.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod append;
mod damage;
mod fuzzed;
mod golden;
mod lines;
mod support;
