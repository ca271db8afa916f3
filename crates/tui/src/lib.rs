//! The live screen: `ostler top`.
//!
//! It has no rules and no record of its own: what it shows comes from the daemon, in the words of `ostler-screen`, and what
//! is typed becomes a question to the daemon. `state` is all that it knows, `update` turns a message into a changed state
//! and effects, `draw` turns a state into a picture; all three are pure. Only `shell` has a terminal and a client.
#![forbid(unsafe_code)]

mod draft;
mod draw;
mod message;
mod rate;
mod shell;
mod state;
mod story;
#[cfg(test)]
mod testing;
mod update;

pub use shell::{Ended, Settings, run};
