//! Recordings of real agent programs, replayed: what each line comes to is pinned, and it is the same however often the
//! dialogue's state is saved and restored on the way.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod acp;
mod claude;
mod codex;
mod fuzzed;
mod history;
mod openclaw;
mod recording;
mod scene;
mod states;
