//! The benchmarks, by the numbers of their goals.

mod p1;
mod p10;
mod p11;
mod p12;
mod p13;
mod p14;
mod p15;
mod p16;
mod p2;
mod p3;
mod p5;
mod p6;
mod p7;
mod p8;
mod p9;

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_domain::home::Home;

use crate::{
    Outcome,
    fill::{self, Size},
    report::{Machine, Page, Section, print, say},
    rig::load::Load,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which ones; all without a name
    names: Vec<String>,
    /// The program to measure, built for speed
    #[arg(long)]
    ostler: PathBuf,
    /// Where to write; on the disk that is to be measured
    #[arg(long)]
    dir: PathBuf,
    /// The page whose measured parts are rewritten
    #[arg(long)]
    results: Option<PathBuf>,
    /// Rounds of each, both sides in turn
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Sessions of the large store
    #[arg(long, default_value_t = 1_000_000)]
    sessions: u64,
    /// Agents of the wide mission
    #[arg(long, default_value_t = 200)]
    agents: usize,
    /// Assignments of the large mission
    #[arg(long, default_value_t = 10_000)]
    assignments: usize,
}

/// What the benchmarks share.
pub(crate) struct Bench {
    pub(crate) ostler: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) rounds: usize,
    sessions: u64,
    pub(crate) agents: usize,
    pub(crate) assignments: usize,
    /// Measured once for all that are about it.
    pub(crate) full_load: std::cell::OnceCell<Vec<Load>>,
}

struct Mark {
    name: &'static str,
    about: &'static str,
    measure: fn(&Bench) -> Outcome<Section>,
}

const MARKS: &[Mark] = &[
    Mark { name: "P1", about: "end-to-end ingest of a backlog", measure: p1::measure },
    Mark { name: "P2", about: "latency of control records and of tape events", measure: p2::measure },
    Mark { name: "P3", about: "bytes written for an event", measure: p3::measure },
    Mark { name: "P5", about: "a sandboxed session's start", measure: p5::measure },
    Mark { name: "P6", about: "asking for a session", measure: p6::measure },
    Mark { name: "P7", about: "a list of sessions, as people ask for it", measure: p7::measure },
    Mark { name: "P8", about: "the daemon's start", measure: p8::measure },
    Mark { name: "P9", about: "the daemon's share of a core under load", measure: p9::measure },
    Mark { name: "P10", about: "one daemon and many who watch", measure: p10::measure },
    Mark { name: "P11", about: "questions to a long history", measure: p11::measure },
    Mark { name: "P12", about: "memory", measure: p12::measure },
    Mark { name: "P13", about: "many idle sandboxed sessions", measure: p13::measure },
    Mark { name: "P14", about: "the memory of work", measure: p14::measure },
    Mark { name: "P15", about: "missions", measure: p15::measure },
    Mark { name: "P16", about: "whoever looks by a browser", measure: p16::measure },
];

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let known = |name: &String| MARKS.iter().any(|mark| mark.name.eq_ignore_ascii_case(name));
    if let Some(unknown) = args.names.iter().find(|name| !known(name)) {
        let names: Vec<&str> = MARKS.iter().map(|mark| mark.name).collect();
        return Err(format!("there is no benchmark {unknown}; there are {}", names.join(", ")).into());
    }
    fs::create_dir_all(&args.dir)?;
    let bench = Bench {
        ostler: args.ostler.canonicalize()?,
        dir: args.dir.canonicalize()?,
        rounds: args.rounds,
        sessions: args.sessions,
        agents: args.agents,
        assignments: args.assignments,
        full_load: Default::default(),
    };
    let is_asked = |mark: &&Mark| {
        args.names.is_empty() || args.names.iter().any(|name| mark.name.eq_ignore_ascii_case(name))
    };
    for mark in MARKS.iter().filter(is_asked) {
        say(&format!("{}: {}", mark.name, mark.about));
        let machine = Machine::now(&bench.dir);
        let section = (mark.measure)(&bench)?;
        print(&format!("\n{}: {}\n{}\n\n{}", mark.name, mark.about, machine.write(), section.write()));
        for missed in section.missed() {
            print(&format!("missed: {missed}"));
        }
        if let Some(results) = &args.results {
            Page::at(results.clone()).put(&section, &machine)?;
        }
    }
    Ok(())
}

/// One load, and what it did.
pub(crate) fn load(ostler: &Path, dir: &Path, sessions: u64, per_second: f64) -> Outcome<()> {
    let load = runtime()?.block_on(Load::of_feeder(ostler, dir, sessions, per_second))?;
    print(&format!("{load:#?}"));
    Ok(())
}

impl Bench {
    /// A home with a million sessions; made once and kept.
    pub(crate) fn large_home(&self) -> Outcome<Home> {
        self.home_of(self.sessions)
    }

    /// A home with this many sessions; made once and kept, until what a fill makes has changed.
    pub(crate) fn home_of(&self, sessions: u64) -> Outcome<Home> {
        let root = self.dir.join(format!("filled-{sessions}"));
        let (home, done) = (Home::at(&root), root.join("filled"));
        if fs::read_to_string(&done).ok().as_deref() != Some(fill::CONTENT) {
            // What an interrupted or an older fill left is of no use.
            if root.exists() {
                fs::remove_dir_all(&root)?;
            }
            say(&format!("  filling a store with {sessions} sessions"));
            fill::fill(&root, Size { sessions, events: 0 }, 1)?;
            fs::write(done, fill::CONTENT)?;
        }
        Ok(home)
    }

    pub(crate) fn large_sessions(&self) -> u64 {
        self.sessions
    }
}

/// A runtime as the daemon has it.
pub(crate) fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
