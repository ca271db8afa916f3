//! `cargo xtask`: the project's own tools, one file per verb. A new verb is a module and a line in [`VERBS`].
//!
//! A verb that needs crates of the workspace, or must run optimised, is a program of its own that is started from
//! here (`cargo run --release -p …`): `cargo xtask` itself has no dependencies and is built in a moment.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it talks to whoever started it in a terminal"
)]

mod attack_report;
mod bench;
mod cargo;
mod dist;
mod errors;
mod fill;
mod peers;
mod pictures;
mod program;
mod recording;
mod test;
mod torture;

use std::{env, process::ExitCode};

/// A tool.
struct Verb {
    name: &'static str,
    options: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const VERBS: &[Verb] = &[
    Verb {
        name: "test",
        options: "[--list] [--only STEP]…",
        about: "everything that must hold before a change is done; what CI runs",
        run: test::run,
    },
    Verb {
        name: "dist",
        options: "[--quick]",
        about: "builds what is handed out, into target/dist: a static program, and a package for Debian and Ubuntu",
        run: dist::run,
    },
    Verb {
        name: "torture",
        options: "[--rounds N] [--seed S] [--sessions K] [--record]",
        about: "kills the daemon again and again under load, and then counts; --record writes bench/RESULTS.md",
        run: torture::run,
    },
    Verb {
        name: "fill",
        options: "--home DIR [--sessions N] [--events M] [--seed S]",
        about: "makes a realistic store of any size",
        run: fill::run,
    },
    Verb {
        name: "errors",
        options: "",
        about: "writes docs/errors.md from the code that gives the errors",
        run: errors::run,
    },
    Verb {
        name: "bench",
        options: "[P1] [P2] … [--rounds N] [--sessions N]",
        about: "measures beside the raw limit and other programs, and rewrites bench/RESULTS.md",
        run: bench::run,
    },
    Verb {
        name: "attack-report",
        options: "[--from FILE]",
        about: "attacks the sandbox and writes docs/attack-report.md",
        run: attack_report::run,
    },
    Verb {
        name: "recording",
        options: "",
        about: "plays docs/demo.txt in a terminal and draws docs/demo.svg",
        run: recording::run,
    },
    Verb {
        name: "pictures",
        options: "",
        about: "takes docs/dashboard-*.png and docs/top.svg of the demo's mission, in a real browser and a terminal",
        run: pictures::run,
    },
];

/// Why a verb did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense: exit code 2.
    Usage(String),
    /// It was tried and did not succeed: exit code 1.
    Failed(String),
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some((name, options)) = args.split_first().filter(|(name, _)| !is_help(name)) else {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    };
    let ran = match VERBS.iter().find(|verb| verb.name == name) {
        Some(_) if options.iter().any(|option| is_help(option)) => {
            print!("{}", usage());
            Ok(())
        }
        Some(verb) => (verb.run)(options),
        None => Err(Failure::Usage(format!("there is no verb \"{name}\""))),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(why)) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(why)) => {
            eprintln!("xtask: {why}\n\n{}", usage());
            ExitCode::from(2)
        }
    }
}

fn is_help(word: &str) -> bool {
    matches!(word, "help" | "-h" | "--help")
}

fn usage() -> String {
    let verbs =
        VERBS.iter().map(|Verb { name, options, about, .. }| format!("  {name} {options}\n      {about}\n"));
    format!("cargo xtask VERB [OPTIONS]\n\n{}", verbs.collect::<String>())
}
