//! `ostler-bench`: measures Ostler beside the raw limit, fills stores, tortures daemons. Started by `cargo xtask`.
//!
//! A benchmark is no test: nothing here fails because a machine is slow. Both sides of every ratio are taken in
//! turn within one run, because only then does their ratio mean anything.
#![forbid(unsafe_code)]

mod attack;
mod fill;
mod marks;
mod report;
mod rig;
mod torture;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

/// Whatever went wrong: it is shown and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(name = "ostler-bench", about = "Measures Ostler, fills stores, tortures daemons")]
enum Command {
    /// Measures, and rewrites the measured parts of the results' page.
    Run(marks::Args),
    /// Makes a realistic store of any size.
    Fill(fill::Args),
    /// Kills the daemon again and again under load, and then counts.
    Torture(torture::Args),
    /// Has a program try to leave its own sandbox, and writes down what came of it.
    Attack(attack::Args),
    /// Puts a daemon under a steady load, once, for whoever wants to look at it with other tools.
    Load {
        #[arg(long)]
        ostler: PathBuf,
        #[arg(long)]
        dir: PathBuf,
        #[arg(long, default_value_t = 500)]
        sessions: u64,
        #[arg(long, default_value_t = 20.0)]
        per_second: f64,
    },
    /// A process that a benchmark starts.
    #[command(hide = true, subcommand)]
    Internal(Internal),
}

#[derive(clap::Subcommand)]
enum Internal {
    /// Plays the keepers of all live sessions of a home, with agents that never tire.
    Feed(rig::feed::Args),
    /// Fills a home's write-ahead log and dies by SIGKILL.
    DieWithFullWal { home: PathBuf },
    /// Serves a home's live sessions to whoever watches, and says at the end when each event was published.
    Fan { home: PathBuf },
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Run(args) => marks::run(&args),
        Command::Fill(args) => fill::run(&args),
        Command::Torture(args) => torture::run(&args),
        Command::Attack(args) => attack::run(&args),
        Command::Load { ostler, dir, sessions, per_second } => {
            marks::load(&ostler, &dir, sessions, per_second)
        }
        Command::Internal(Internal::Feed(args)) => rig::feed::run(&args),
        Command::Internal(Internal::DieWithFullWal { home }) => rig::wal::fill_and_die(&home),
        Command::Internal(Internal::Fan { home }) => rig::fan::serve(&home),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::complain(&*error);
            ExitCode::FAILURE
        }
    }
}
