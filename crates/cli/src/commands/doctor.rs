//! `ostler doctor`: what works on this machine, what does not, and what cures it.

use std::path::Path;

use clap::Args;
use ostler_client::{Client, Home, NodeStatus};
use ostler_domain::{
    limits::PAGE_MOST,
    query::Page,
    readiness::{Readiness, Trial},
};
use serde::Serialize;

use super::trial;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Column, Line, Table, Tone},
    screen, words,
};

/// Below this much free space the store is at risk, where no daemon says how much it keeps free.
const FREE_LEAST: u64 = 1 << 30;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    verdict: Verdict,
    about: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn new(verdict: Verdict, about: &'static str, text: impl Into<String>) -> Self {
        Self { verdict, about, text: text.into(), fix: None }
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.verdict != Verdict::Ok
    }

    pub(super) fn cure(&self) -> &str {
        self.fix.as_deref().unwrap_or_default()
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

#[derive(Serialize)]
struct DoctorForm {
    ok: bool,
    findings: Vec<Finding>,
}

pub(crate) async fn run(app: &App, _: DoctorArgs) -> Result<u8, Failure> {
    let home = app.home()?;
    let mut findings = Vec::new();
    let mut least = FREE_LEAST;
    match app.client().await {
        Ok(client) => {
            let status = client.status().await?;
            least = status.disk.map_or(least, |disk| disk.least);
            findings.extend(daemon(app.program.version, &status));
            findings.extend(campaigns(&client).await?);
        }
        Err(Failure::Refused(refusal)) => {
            let why = refusal.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            let fix = refusal.hints.first().map(|hint| hint.command.clone()).unwrap_or_default();
            findings
                .push(Finding::new(Verdict::Fail, "daemon", format!("{}{why}", refusal.message)).fix(fix));
        }
        Err(failure) => return Err(failure),
    }
    findings.push(disk(&home, least));
    findings.push(sandbox(&trial::try_sandbox(&app.program.path)));
    findings.push(Finding::new(Verdict::Ok, "script", "built in, needs no key"));
    findings.push(git());
    findings.extend(logout());
    say(app, findings)
}

fn daemon(version: &str, status: &NodeStatus) -> Vec<Finding> {
    let up = words::span(words::now().since(status.started));
    let sessions = words::plural(status.live_sessions, "session", "sessions");
    let text = format!(
        "{}, pid {}, up {up} · {sessions} · schema {}",
        status.version, status.pid, status.schema_version
    );
    let mut findings = vec![if status.version == version {
        Finding::new(Verdict::Ok, "daemon", text)
    } else {
        Finding::new(Verdict::Warn, "daemon", format!("{text}; this program is {version}"))
            .fix("ostler daemon restart")
    }];
    let attached = status.live_sessions - status.detached_sessions.min(status.live_sessions);
    findings.push(if status.detached_sessions == 0 {
        Finding::new(Verdict::Ok, "keepers", format!("{attached} of {} answer", status.live_sessions))
    } else {
        Finding::new(Verdict::Warn, "keepers", format!("{attached} of {} answer", status.live_sessions))
            .fix("ostler ls --attention detached")
    });
    let held = match status.memory_held_by.as_str() {
        "" => None,
        "keeper" => {
            Some("the keeper adds up what a session takes, once a second, and ends it above its limit")
        }
        _ => Some("the kernel holds sessions to their limits"),
    };
    findings.extend(
        held.map(|held| Finding::new(Verdict::Ok, "memory", format!("{held} ({})", status.memory_held_by))),
    );
    if let Some(halt) = &status.halt {
        let word = if halt.freeze { "frozen" } else { "halted" };
        findings.push(
            Finding::new(Verdict::Warn, "halt", format!("all agents are {word}, by {}", halt.by.0))
                .fix("ostler halt --release"),
        );
    }
    if let Some(drain) = &status.drain {
        findings
            .push(Finding::new(Verdict::Warn, "drain", words::drained(drain)).fix("ostler node drain --end"));
    }
    findings
}

/// What is wrong with campaigns that the sandbox cannot help.
async fn campaigns(client: &Client) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let listed = client.campaigns(Page::of(PAGE_MOST, None)).await?.rows;
    for campaign in listed {
        let campaign = client.campaign(&campaign.id.to_string()).await?;
        if let Some(warning) = screen::campaign::tracked(&campaign) {
            let first = campaign.tracked_hidden.first().cloned().unwrap_or_default();
            let finding = Finding::new(Verdict::Warn, "hidden", format!("{}: {warning}", campaign.name));
            findings.push(finding.fix(format!("git rm --cached {first}, and a new secret in it")));
        }
    }
    Ok(findings)
}

fn sandbox(readiness: &Readiness) -> Finding {
    match &readiness.trial {
        Trial::Ran { .. } => Finding::new(Verdict::Ok, "sandbox", trial::words(readiness)),
        Trial::Refused { hint, .. } => {
            let finding = Finding::new(Verdict::Fail, "sandbox", trial::words(readiness));
            if hint.is_empty() { finding } else { finding.fix(hint) }
        }
    }
}

fn disk(home: &Home, least: u64) -> Finding {
    let state = home.state();
    match rustix::fs::statvfs(state) {
        Ok(facts) => {
            let free = facts.f_bavail.saturating_mul(facts.f_frsize);
            let text = format!("{} free in {}", words::bytes(free), state.display());
            if facts.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
                Finding::new(Verdict::Fail, "disk", format!("{} is mounted read-only", state.display()))
            } else if free < least {
                let text = format!("only {text}, {} stay free: nothing new starts", words::bytes(least));
                Finding::new(Verdict::Warn, "disk", text).fix("ostler du")
            } else {
                Finding::new(Verdict::Ok, "disk", text)
            }
        }
        Err(error) => {
            Finding::new(Verdict::Fail, "disk", format!("{} cannot be looked at: {error}", state.display()))
        }
    }
}

/// Agents commit: without an identity no commit of theirs works.
fn git() -> Finding {
    let asked = std::process::Command::new("git").args(["config", "--get", "user.email"]).output();
    match asked {
        Err(_) => Finding::new(Verdict::Warn, "git", "not installed; agents cannot commit"),
        Ok(output) if output.status.success() => Finding::new(Verdict::Ok, "git", "identity set"),
        Ok(_) => Finding::new(Verdict::Warn, "git", "no identity: commits of agents fail")
            .fix("git config --global user.email you@example.org"),
    }
}

/// Whether agents outlive the login, where a login manager would end them.
pub(super) fn logout() -> Option<Finding> {
    logout_below(Path::new("/"), &std::env::var("USER").ok()?)
}

/// `root` is the root of the file system. Nobody's login ends what root runs as a service of the machine.
fn logout_below(root: &Path, user: &str) -> Option<Finding> {
    let is_systemd = root.join("run/systemd/system").exists();
    if !is_systemd || user.is_empty() || user == "root" {
        return None;
    }
    Some(if root.join("var/lib/systemd/linger").join(user).exists() {
        Finding::new(Verdict::Ok, "logout", "agents go on when you log out")
    } else {
        Finding::new(Verdict::Warn, "logout", "agents may end when you log out: lingering is off")
            .fix("loginctl enable-linger")
    })
}

fn say(app: &App, findings: Vec<Finding>) -> Result<u8, Failure> {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (failures, warnings) = (count(Verdict::Fail), count(Verdict::Warn));
    let code = if failures == 0 { exit_code::OK } else { exit_code::FAILURE };
    if app.ui.is_json() {
        app.ui.json(&DoctorForm { ok: failures == 0, findings })?;
        return Ok(code);
    }
    app.ui.data_lines(&table(&findings).lines(app.ui.out_look()))?;
    let parts = [(failures, "failure", "failures"), (warnings, "warning", "warnings")];
    let parts = parts
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, many)| Line::of(words::plural(n, one, many)));
    let summary = Line::joined(parts);
    app.ui.remark(&if summary.is_empty() { Line::of("all is well") } else { summary });
    Ok(code)
}

fn table(findings: &[Finding]) -> Table {
    let columns = [Column::new(""), Column::new(""), Column::new("").gives_way_to(90), Column::new("")];
    let mut table = Table::new(columns).with_heads(false);
    for finding in findings {
        let (tone, word) = match finding.verdict {
            Verdict::Ok => (Tone::Good, "ok"),
            Verdict::Warn => (Tone::Warn, "warn"),
            Verdict::Fail => (Tone::Bad, "FAIL"),
        };
        let fix = finding
            .fix
            .as_deref()
            .map(|fix| Line::new().faint("fix: ").with(Tone::Accent, fix))
            .unwrap_or_default();
        table.row(vec![
            Line::toned(tone, word).padded(5),
            Line::of(finding.about).padded(9),
            Line::of(&finding.text),
            fix,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Look;

    #[test]
    fn lingering_is_looked_for_where_systemd_runs() {
        let machine = tempfile::tempdir().unwrap();
        let finding = |user| logout_below(machine.path(), user);
        assert!(finding("ann").is_none(), "nobody ends agents here");
        std::fs::create_dir_all(machine.path().join("run/systemd/system")).unwrap();
        let off = finding("ann").unwrap();
        assert_eq!(off.verdict, Verdict::Warn);
        assert_eq!(off.fix.as_deref(), Some("loginctl enable-linger"));
        assert!(finding("root").is_none());
        let lingering = machine.path().join("var/lib/systemd/linger");
        std::fs::create_dir_all(&lingering).unwrap();
        std::fs::write(lingering.join("ann"), "").unwrap();
        assert_eq!(finding("ann").unwrap().verdict, Verdict::Ok);
        assert_eq!(finding("bob").unwrap().verdict, Verdict::Warn);
    }

    #[test]
    fn verdicts_have_words_and_cures() {
        let findings = [
            Finding::new(Verdict::Ok, "daemon", "0.1.0, pid 4121, up 2h"),
            Finding::new(Verdict::Warn, "logout", "agents may end when you log out")
                .fix("loginctl enable-linger"),
            Finding::new(Verdict::Fail, "disk", "mounted read-only"),
        ];
        let look = Look::plain(Some(100));
        let text: Vec<_> = table(&findings).lines(&look).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(text.join("\n"));
        insta::assert_snapshot!(crate::testing::in_all_looks(|look| table(&findings).lines(look)));
    }
}
