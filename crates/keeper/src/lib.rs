//! The keeper: the small process that owns one session. It holds the lock, writes the tape, feeds the agent's
//! input, applies the stop ladder and writes the exit record, and it outlives the daemon.
//!
//! ```text
//! daemon ── document on 0, status on 1, log on 2 ──▶ keeper ──▶ warden ──▶ init, pid 1 of a sandbox ──▶ agent
//!    └───────────── frames on `ctl` ─────────────────┘   └────▶ init ──▶ launch, which becomes an agent without one
//! ```
//! One thread, one epoll loop; nothing that an agent prints is ever parsed here.

#![forbid(unsafe_code)]

mod agent;
mod bucket;
mod calls;
mod cgroup;
mod clock;
mod command;
mod ctl;
mod emergency;
mod ending;
mod feed;
mod gateway;
mod init;
mod intake;
mod keeper;
mod ladder;
mod launch;
mod lifeline;
mod link;
mod log;
mod lookout;
mod memory;
mod poller;
mod process;
mod recorder;
mod redact;
mod signals;
mod spawn;
mod splitter;
mod startup;
mod stopping;
mod tree;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use ostler_tape::launch::EXIT_REFUSED;

/// `ostler internal keeper`: keeps the session that the document on descriptor 0 describes.
pub fn run() -> ExitCode {
    let Ok(ready) = startup::start() else { return ExitCode::from(EXIT_REFUSED) };
    match keeper::Keeper::start(ready) {
        Ok(keeper) => match keeper.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                log::line(format_args!("the keeper failed: {error}"));
                ExitCode::FAILURE
            }
        },
        Err(still_born) => {
            still_born.bury();
            ExitCode::FAILURE
        }
    }
}

/// `ostler internal halt`: stops every agent of a home where no daemon does.
pub fn halt(args: &[OsString]) -> ExitCode {
    emergency::run(args)
}

/// `ostler internal command`: runs a command in a sandbox for its caller.
pub fn command(args: &[OsString]) -> ExitCode {
    command::run(args)
}

/// `ostler internal terminal-guard`: only a command with a terminal of its own starts it.
pub fn guard_terminal() -> ExitCode {
    command::guard_terminal()
}

/// `ostler internal lookout`: starts another daemon when the one on descriptor 0 dies.
pub fn look_out(args: &[OsString]) -> ExitCode {
    lookout::run(args)
}

/// `ostler internal init`: only a keeper starts it.
pub fn init() -> ExitCode {
    init::run()
}

/// `ostler internal launch`: only an init starts it.
pub fn launch(args: &[OsString]) -> ExitCode {
    launch::run(args)
}
