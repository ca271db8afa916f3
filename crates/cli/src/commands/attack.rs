//! `ostler sandbox check --attack`: really tries to leave the sandbox, in every way that is known, and says which
//! attempts got through. The program itself makes them, in a process of its own.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use ostler_domain::{Refusal, attack::Finding};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Format, Line},
    screen::{
        attack::{Tally, progress, report, verdict},
        next_steps,
    },
};

/// Whom root stands in for an ordinary user with: distributions leave this range unused.
const NOBODYS_UID: u32 = 60_999;

/// As whom the attempts are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attacker {
    Root,
    User(Option<u32>),
}

impl Attacker {
    fn words(self) -> String {
        match self {
            Attacker::Root => "as root".to_owned(),
            Attacker::User(None) => "as you".to_owned(),
            Attacker::User(Some(uid)) => format!("as an ordinary user (uid {uid})"),
        }
    }
}

/// Root's half and an ordinary user's; of the two only the latter where this is one.
fn attackers() -> Vec<Attacker> {
    if rustix::process::geteuid().is_root() {
        vec![Attacker::Root, Attacker::User(Some(NOBODYS_UID))]
    } else {
        vec![Attacker::User(None)]
    }
}

#[derive(Serialize)]
struct AttackForm<'a> {
    ok: bool,
    runs: Vec<RunForm<'a>>,
}

#[derive(Serialize)]
struct RunForm<'a> {
    #[serde(rename = "as")]
    by: &'static str,
    stopped: usize,
    got_through: usize,
    failed: usize,
    untried: usize,
    controls: usize,
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct FindingForm<'a> {
    #[serde(rename = "as")]
    by: &'static str,
    #[serde(flatten)]
    finding: &'a Finding,
}

struct Run {
    by: Attacker,
    findings: Vec<Finding>,
    took: Duration,
}

impl Run {
    fn by(&self) -> &'static str {
        match self.by {
            Attacker::Root => "root",
            Attacker::User(_) => "user",
        }
    }

    fn form(&self) -> RunForm<'_> {
        let tally = Tally::of(&self.findings);
        RunForm {
            by: self.by(),
            stopped: tally.stopped,
            got_through: tally.got_through,
            failed: tally.failed,
            untried: tally.untried,
            controls: tally.works,
            findings: &self.findings,
        }
    }
}

pub(crate) fn run(app: &App, names: &[String]) -> Result<u8, Failure> {
    let mut runs = Vec::new();
    for by in attackers() {
        let run = attack(app, by, names)?;
        if !app.ui.is_json() {
            app.ui.data_lines(&report(&run.findings, app.ui.out_look()))?;
            app.ui.data(&verdict(&run.findings, &run.by.words(), run.took))?;
            app.ui.data(&Line::new())?;
            app.ui.flush()?;
        }
        runs.push(run);
    }
    let tally = Tally::of(runs.iter().flat_map(|run| &run.findings));
    match app.ui.format() {
        Some(Format::Json) => {
            app.ui.json(&AttackForm { ok: tally.held(), runs: runs.iter().map(Run::form).collect() })?
        }
        Some(Format::Jsonl) => {
            for run in &runs {
                let forms = run.findings.iter().map(|finding| FindingForm { by: run.by(), finding });
                forms.into_iter().try_for_each(|form| app.ui.json(&form))?;
            }
        }
        _ if tally.held() => {}
        _ => app.ui.data_lines(&next_steps(&[(
            "ostler sandbox check --attack -o json".to_owned(),
            "the whole report, for whoever is to repair it",
        )]))?,
    }
    Ok(exit(tally))
}

const fn exit(tally: Tally) -> u8 {
    match (tally.got_through, tally.failed) {
        (0, 0) => exit_code::OK,
        (0, _) => exit_code::PARTLY,
        _ => exit_code::FAILURE,
    }
}

fn attack(app: &App, by: Attacker, names: &[String]) -> Result<Run, Failure> {
    let program = &app.program.path;
    let began = Instant::now();
    let mut suite = Command::new(program);
    suite.args(["internal", "attack-suite"]).args(names).current_dir("/");
    suite.stdin(Stdio::null()).stdout(Stdio::piped());
    if let Attacker::User(Some(uid)) = by {
        suite.uid(uid).gid(uid).env_remove("HOME");
    }
    let not_run = |why: String| {
        let refusal = Refusal::internal(format!("the attempts {} cannot be made", by.words())).because(why);
        match by {
            Attacker::User(Some(_)) => refusal
                .hint("install -m 755 ostler /usr/local/bin/ostler", "a place where everybody may run it"),
            _ => refusal,
        }
    };
    let mut child =
        suite.spawn().map_err(|error| not_run(format!("{} cannot be run: {error}", program.display())))?;
    let mut findings: Vec<Finding> = Vec::new();
    let stdout = child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
    app.ui.show_meanwhile(Line::of(format!("{} · ", by.words())).append(progress(&findings)));
    for line in stdout {
        let line = line.map_err(|error| not_run(error.to_string()))?;
        let finding = serde_json::from_str(&line)
            .map_err(|_| not_run(format!("it says what is no finding: {}", line)))?;
        findings.push(finding);
        app.ui.show_meanwhile(Line::of(format!("{} · ", by.words())).append(progress(&findings)));
    }
    let status = child.wait().map_err(|error| not_run(error.to_string()))?;
    app.ui.clear_transient();
    match findings.last() {
        None if status.code() == Some(2) => {
            Err(Failure::usage(format!("there are no attempts called {}", names.join(", "))))
        }
        None => Err(not_run(format!("they ended with {status}")).into()),
        Some(last) if last.left > 0 => {
            Err(not_run(format!("they ended with {status}, {} before the end", last.left)).into())
        }
        Some(_) => Ok(Run { by, findings, took: began.elapsed() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gets_through_is_a_failure_whatever_else_there_is() {
        let tally = |got_through, failed| Tally { got_through, failed, stopped: 200, ..Tally::default() };
        assert_eq!(exit(tally(0, 0)), 0);
        assert_eq!(exit(tally(0, 2)), 9);
        assert_eq!(exit(tally(1, 0)), 1);
        assert_eq!(exit(tally(1, 2)), 1);
    }
}
