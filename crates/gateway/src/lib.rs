//! The gateway: the one way out of a sandbox that has a network of its own. A proxy in a process of its own, started by
//! the keeper when somebody inside connects, and gone when nobody has for a while.
//!
//! ```text
//! agent ── 127.0.0.1 inside ──▶ listener on 0 ─┐
//! keeper ── order, then end of file, on 1 ─────┼─▶ gateway ──▶ a public address that the rules allow
//! keeper ◀── one line of JSON per connection ──┘             or the model's one upstream, with its key
//! ```
//! `rules` decides, everything else carries. One thread for each connection; what passes through the proxy is counted and
//! not looked at, but for the first words: a proxy's request, and the name in a TLS greeting. `model` serves the
//! provider's base URL at our own address, and `meter` reads along what it takes.

#![forbid(unsafe_code)]

mod connection;
mod get;
mod hello;
mod meter;
mod model;
mod post;
mod purse;
mod report;
mod request;
mod rules;
mod serve;
pub mod socket;
mod timed;
mod tunnel;
mod untrusted;

use std::{io::Write, process::ExitCode};

pub use get::get;
pub use post::post;
pub use timed::Timed;
pub use untrusted::{MADE_WITH, is_an_authority};

/// `ostler internal gateway`: only a keeper starts it.
pub fn run() -> ExitCode {
    match serve::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(format_args!("the gateway failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Into the keeper's log. Never what an agent says.
fn log(arguments: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{arguments}");
}
