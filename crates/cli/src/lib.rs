//! The `ostler` command line.
//!
//! [`main`] parses, dispatches to one file per command in `commands/`, and turns what comes back into words and an
//! exit code. Commands ask the daemon through `ostler-client` and show what they learn with the pure functions of
//! `screen/`; only `output/` writes. No runtime exists until a command needs the daemon.
#![forbid(unsafe_code)]

mod app;
mod args;
mod bell;
mod commands;
mod complete;
mod consent;
mod demo;
#[cfg(test)]
mod errors_page;
pub mod exit_code;
mod failure;
mod filters;
mod form;
mod held_file;
mod input;
mod keys;
mod last;
mod listing;
mod nodes;
mod output;
mod package;
mod parse;
mod questions;
mod reboot;
mod screen;
mod signals;
mod terminal;
#[cfg(test)]
mod testing;
mod typing;
mod worktree_form;

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use ostler_domain::{Refusal, event::PERSON_VARIABLE, node::Node};

use ostler_screen::words;
use output::{Terminals, Ui};

/// What the program knows about itself.
#[derive(Debug, Clone)]
pub struct Program {
    pub version: &'static str,
    /// The commit it was built from and that one's day, where that is known: `abc1234 2026-11-16`.
    pub commit: Option<&'static str>,
    /// Its own executable, from which daemons are started.
    pub path: PathBuf,
}

impl Program {
    /// The version with its commit, where that is known.
    fn shown_version(&self) -> &'static str {
        match self.commit {
            // Made once, and shown until the end.
            Some(commit) => format!("{} ({commit})", self.version).leak(),
            None => self.version,
        }
    }
}

/// `ostler internal relay [PERSON]`: speaks for this machine's daemon on standard input and output, to who came by SSH. Who that
/// says to be is in what the process is started with, where the daemon reads it; what this machine's SSH was told to put there
/// is believed before that.
pub fn relay(program: &Program, person: Option<&str>) -> ExitCode {
    if let Some(person) = person.filter(|_| std::env::var_os(PERSON_VARIABLE).is_none()) {
        let again = std::process::Command::new(&program.path)
            .args(["internal", "relay"])
            .env(PERSON_VARIABLE, person)
            .exec();
        let failed = Refusal::internal(format!("{} cannot be run: {again}", program.path.display()));
        return ended(Err(failed.into()));
    }
    let served = ostler_client::home()
        .map_err(failure::Failure::from)
        .and_then(|home| Ok(ostler_client::serve_relay(&home, &program.path)?));
    ended(served)
}

/// `ostler internal package`: writes what a package has beside the program below a directory.
pub fn package(program: &Program, root: &Path) -> ExitCode {
    ended(package::write(root, program))
}

/// The end of a program that people do not start themselves.
fn ended(outcome: Result<(), failure::Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // One line: who started it shows the last that it hears.
            let refusal = failure.to_refusal();
            let why = refusal.why.map(|why| format!(": {why}")).unwrap_or_default();
            let line = ostler_domain::text::one_line(&format!("{}{why}", refusal.message), 400);
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Runs the command that the arguments (the program's name first) ask for.
pub fn main(args: impl Iterator<Item = OsString>, program: Program) -> ExitCode {
    complete::answer_the_shell(program.version);
    let shown = program.shown_version();
    let args: Vec<OsString> = args.collect();
    let terminals = Terminals::find();
    let code = match args::parse(&args, shown) {
        Ok(cli) => {
            let elsewhere = cli.node().filter(|node| ![Node::HERE, Node::ALL].contains(&node.as_str()));
            // What a name stands for is said by a file of this machine's; without a home there is none.
            let home = ostler_client::home().ok();
            let program_there =
                elsewhere.as_ref().zip(home).and_then(|(node, home)| nodes::program_there(&home, node));
            let ui = Ui::new(terminals.about(elsewhere, program_there), cli.ui_options());
            let app = app::App::new(ui, program, cli.node(), cli.path);
            let verb = args::plain_words(&args).next().unwrap_or("ls");
            let began = std::time::Instant::now();
            let outcome = commands::run(&app, cli.command, verb);
            let typed: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
            let code = app.ui.finish(outcome.map_err(|failure| failure.in_the_words_of(&typed)));
            let took = words::took(began.elapsed());
            app.ui.detail(&output::Line::new().faint(format!("exit {code} after {took}")));
            code
        }
        Err(error) => args::explain(&error, &args, terminals),
    };
    ExitCode::from(code)
}
