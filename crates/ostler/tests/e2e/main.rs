//! The daemon as its users meet it: the real binary, real keepers and agents, through the library and the CLI.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod again;
mod agents;
mod api;
mod approvals;
mod bad_input;
mod calls;
mod ci;
mod claude;
mod cli;
mod clients;
mod clocks;
mod config;
mod control;
mod conversations;
mod copies;
mod crash;
mod emergency;
mod exchange;
mod exec;
mod exec_streams;
mod fail_closed;
mod faults;
mod fleet;
mod git;
mod grants;
mod handoff;
mod helpers;
mod hidden;
mod history;
mod io_errors;
mod life;
mod lists;
mod login;
mod many;
mod messages;
mod model;
mod money;
mod network;
mod nodes;
mod notices;
mod observability;
mod providers;
mod reboot;
mod retention;
mod screens;
mod service;
mod tapes;
mod telemetry;
mod tickets;
mod torture;
mod transcripts;
mod versions;
mod words;

/// The program under test.
const OSTLER: &str = env!("CARGO_BIN_EXE_ostler");
