//! A real keeper with real agents, `/bin/sh` scripts, through its files and its socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod calls;
mod daemon;
mod disk;
mod ending;
mod freeze;
mod input;
mod output;
mod sandbox;
mod start;
mod stop;
mod support;
