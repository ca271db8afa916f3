//! P7: how long a list takes, from the key to the prompt, beside the least that a process takes and other tools' lists.

use std::{fs, path::Path, process::Command};

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, say},
    rig::{
        daemon::Daemon,
        peers::{self, pueue::Pueue, tmux::Tmux},
        timed::timed,
    },
};

/// Of each, in a round, and of pueue, which takes its time.
const TIMES: usize = 30;
const SLOW_TIMES: usize = 5;
const TASKS: u64 = 10_000;
const PANES: u32 = 20;
const FILES: u32 = 200;

/// Medians of the rounds.
#[derive(Default)]
struct Lists {
    ours: Vec<f64>,
    current: Vec<f64>,
    nothing: Vec<f64>,
    git: Vec<f64>,
    pueue: Vec<f64>,
    tmux: Vec<f64>,
}

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let runtime = runtime()?;
    let home = bench.large_home()?;
    let ready = |client: ostler_client::Client| async move { client.status().await };
    let (daemon, _) = runtime.block_on(Daemon::answering(&bench.ostler, &home, ready))?;
    let ls = |words: &[&str]| {
        let mut command = Command::new(&bench.ostler);
        command.arg("ls").args(words).env_remove("OSTLER_HOME").envs(home.variables());
        timed(&mut command)
    };
    let repository = Repository::make(&bench.dir)?;
    let tmux = Tmux::with_sessions(&bench.dir, PANES)?;
    let pueue = Pueue::with_finished(&bench.dir, TASKS)?;
    let mut lists = Lists::default();
    for round in 1..=bench.rounds {
        let mut took = Lists::default();
        for _ in 0..TIMES {
            took.nothing.push(timed(&mut Command::new("/bin/true"))?);
            took.ours.push(ls(&["-a"])?);
            took.current.push(ls(&[])?);
            if let Ok(repository) = &repository {
                took.git.push(repository.status()?);
            }
            if let Ok(tmux) = &tmux {
                took.tmux.push(tmux.list()?);
            }
        }
        if let Ok(pueue) = &pueue {
            took.pueue = (0..SLOW_TIMES).map(|_| pueue.status()).collect::<Outcome<_>>()?;
        }
        lists.add(took);
        say(&format!(
            "  round {round}: ls {:.2} ms, /bin/true {:.2}, git status {:.2}, tmux ls {:.2}, pueue status {:.0}",
            lists.ours[round - 1],
            lists.nothing[round - 1],
            lists.git[round - 1],
            lists.tmux[round - 1],
            lists.pueue[round - 1]
        ));
    }
    runtime.block_on(daemon.stop())?;
    let sample = |values: &[f64]| Sample::new(Unit::Milliseconds, values.iter().copied());
    let ours = || sample(&lists.ours);
    let peer = |is_there: Result<(), String>, values: &[f64]| is_there.map(|()| sample(values));
    let count = bench.large_sessions();
    let versions = [
        peers::version("git", "--version"),
        peers::version("tmux", "-V"),
        peers::version("pueue", "--version"),
    ];
    Ok(Section {
        name: "P7",
        rows: vec![
            Row::new(
                format!(
                    "`ostler ls -a` (50 rows), {count} sessions stored; raw is /bin/true; medians of {TIMES}"
                ),
                ours(),
                Goal::RatioAtMost(4.0),
            )
            .beside(sample(&lists.nothing)),
            Row::new(format!("raw is `git status` ({FILES} files)"), ours(), Goal::RatioAtMost(1.2))
                .beside_peer(peer(repository.map(|_| ()), &lists.git)),
            Row::new(
                format!("raw is `pueue status` ({TASKS} finished tasks; medians of {SLOW_TIMES})"),
                ours(),
                Goal::RatioAtMost(0.01),
            )
            .beside_peer(peer(pueue.map(|_| ()), &lists.pueue)),
            Row::new(format!("raw is `tmux ls` ({PANES} sessions)"), ours(), Goal::Shown)
                .beside_peer(peer(tmux.map(|_| ()), &lists.tmux)),
            Row::new(
                "`ostler ls`: those that live, and failures of a day; raw is /bin/true",
                sample(&lists.current),
                Goal::Shown,
            )
            .beside(sample(&lists.nothing)),
        ],
        notes: vec![format!("Beside {}.", versions.into_iter().flatten().collect::<Vec<_>>().join(", "))],
    })
}

impl Lists {
    fn add(&mut self, round: Lists) {
        let pairs = [
            (&mut self.ours, round.ours),
            (&mut self.current, round.current),
            (&mut self.nothing, round.nothing),
            (&mut self.git, round.git),
            (&mut self.pueue, round.pueue),
            (&mut self.tmux, round.tmux),
        ];
        for (all, values) in pairs {
            all.push(Sample::new(Unit::Milliseconds, values).median());
        }
    }
}

/// A small repository in which nothing has changed.
struct Repository {
    dir: tempfile::TempDir,
}

impl Repository {
    fn make(dir: &Path) -> Outcome<Result<Self, String>> {
        if let Err(why) = peers::version("git", "--version") {
            return Ok(Err(why));
        }
        let repository = Self { dir: tempfile::Builder::new().prefix("git-").tempdir_in(dir)? };
        for n in 0..FILES {
            fs::write(repository.dir.path().join(format!("file-{n}.rs")), format!("fn number_{n}() {{}}\n"))?;
        }
        for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
            timed(repository.git().args(words))?;
        }
        Ok(Ok(repository))
    }

    fn status(&self) -> Outcome<f64> {
        timed(self.git().arg("status"))
    }

    fn git(&self) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=Ann", "-c", "user.email=ann@shop.example"])
            .current_dir(self.dir.path());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }
}
