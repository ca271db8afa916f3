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
mod dashboard;
mod emergency;
mod exchange;
mod exec;
mod exec_streams;
mod fail_closed;
mod faults;
mod first_minutes;
mod fleet;
mod git;
mod grants;
mod handoff;
mod helpers;
mod hidden;
mod history;
mod http;
mod hub;
mod io_errors;
mod life;
mod lists;
mod login;
mod many;
mod messages;
mod missions;
mod model;
mod money;
mod network;
mod nodes;
mod notices;
mod notify;
mod observability;
mod providers;
mod reboot;
mod retention;
mod screens;
mod service;
mod tapes;
mod telemetry;
mod tickets;
mod together;
mod top;
mod torture;
mod transcripts;
mod versions;
mod words;
mod worktrees;

/// The program under test.
const OSTLER: &str = env!("CARGO_BIN_EXE_ostler");
