//! `ostler version --check`: whether everything of Ostler that runs or is installed on this machine is this version. Nobody
//! elsewhere is asked: whether there is a newer one is known to whoever installed this one.

use std::{collections::BTreeMap, path::Path, time::Duration};

use ostler_client::NodeStatus;
use ostler_domain::{Hint, home::DaemonFile};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::VersionForm;
use crate::{
    app::{App, daemon_file, person_home},
    commands::service,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    screen::{field, next_steps},
    words,
};

/// A program that says no version within this time says none.
const SAYS_WITHIN: Duration = Duration::from_secs(2);

/// What was found.
struct Found {
    /// The daemon that runs, if one does.
    daemon: Option<Daemon>,
    /// What a service manager would start.
    services: Vec<Installed>,
    /// How many keepers of each version live.
    keepers: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Daemon {
    version: String,
    pid: u32,
    /// The file that it was started from is another one by now, or gone.
    is_replaced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Installed {
    unit: String,
    program: String,
    /// None where it cannot be run, or does not say.
    version: Option<String>,
}

#[derive(Serialize)]
struct Form<'a> {
    #[serde(flatten)]
    own: VersionForm<'a>,
    program: String,
    ok: bool,
    daemon: &'a Option<Daemon>,
    services: &'a [Installed],
    keepers: &'a BTreeMap<String, u64>,
    next: Vec<&'a Hint>,
}

#[derive(Deserialize)]
struct Said {
    version: String,
}

pub(super) async fn run(app: &App) -> Result<u8, Failure> {
    let version = app.program.version;
    let found = find(app).await?;
    let next = found.next(version);
    let is_ok = next.is_empty();
    let ui = &app.ui;
    if ui.is_json() {
        ui.json(&Form {
            own: VersionForm::new(version, app.program.commit),
            program: app.program.path.to_string_lossy().into_owned(),
            ok: is_ok,
            daemon: &found.daemon,
            services: &found.services,
            keepers: &found.keepers,
            next: next.iter().collect(),
        })?;
    } else {
        let this = Line::of(super::words(version, app.program.commit).trim_start_matches("ostler "));
        let path = words::path(&app.program.path.to_string_lossy(), person_home().as_deref());
        ui.fields(&[vec![field("ostler", this.faint(format!("   {path}")))], found.lines(version)].concat())?;
        let steps: Vec<_> = next.iter().map(|hint| (hint.command.clone(), hint.effect.as_str())).collect();
        ui.fields(&next_steps(&steps))?;
    }
    Ok(if is_ok { exit_code::OK } else { exit_code::WRONG_STATE })
}

async fn find(app: &App) -> Result<Found, Failure> {
    let home = app.home()?;
    let status = match app.running_client().await {
        Ok(client) => client.status().await.ok(),
        Err(_) => None,
    };
    let mut services = Vec::new();
    for (unit, program) in service::installed(app)? {
        let is_this = program.canonicalize().ok() == app.program.path.canonicalize().ok();
        let version = match is_this {
            true => Some(app.program.version.to_owned()),
            false => version_of(&program).await,
        };
        let [unit, program] = [unit, program].map(|path| path.to_string_lossy().into_owned());
        services.push(Installed { unit, program, version });
    }
    let daemon = status.as_ref().map(|status| Daemon::of(status, daemon_file(&home).as_ref()));
    Ok(Found { daemon, services, keepers: status.map(|status| status.keeper_versions).unwrap_or_default() })
}

/// The version that a program says it is.
async fn version_of(program: &Path) -> Option<String> {
    let asked = tokio::process::Command::new(program)
        .args(["version", "-o", "json"])
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let said = timeout(SAYS_WITHIN, asked).await.ok()?.ok()?;
    serde_json::from_slice::<Said>(&said.stdout).ok().map(|said| said.version)
}

fn hint(command: &str, effect: &str) -> Hint {
    Hint { command: command.to_owned(), effect: effect.to_owned() }
}

impl Daemon {
    fn of(status: &NodeStatus, file: Option<&DaemonFile>) -> Self {
        let running = std::fs::read_link(format!("/proc/{}/exe", status.pid)).ok();
        // The kernel says `… (deleted)` of a file that another one has taken the place of.
        let is_gone = running.is_some_and(|running| !running.exists());
        let is_replaced = is_gone && file.is_none_or(|file| file.pid == status.pid);
        Self { version: status.version.clone(), pid: status.pid, is_replaced }
    }
}

impl Found {
    /// What would make everything this version; nothing where it is. Keepers are as old as their sessions, and go on.
    fn next(&self, version: &str) -> Vec<Hint> {
        let mut next = Vec::new();
        let of_service = |one: &&Installed| one.version.as_deref() != Some(version);
        if let Some(service) = self.services.iter().find(of_service) {
            let command = match service.unit.starts_with("/etc/") {
                true => "sudo ostler service install --system --user NAME",
                false => "ostler service install",
            };
            next.push(hint(command, "has the service start this program"));
        }
        if self.daemon.as_ref().is_some_and(|daemon| daemon.version != version || daemon.is_replaced) {
            next.push(hint("ostler daemon restart", "has this program be the daemon; agents go on"));
        }
        next
    }

    fn lines(&self, version: &str) -> Vec<Line> {
        let tone = |is_this: bool| if is_this { Tone::Good } else { Tone::Warn };
        let mut lines = vec![match &self.daemon {
            Some(daemon) => {
                let line = Line::toned(tone(daemon.version == version), &daemon.version);
                let line = line.plain(format!(", pid {}", daemon.pid));
                field(
                    "daemon",
                    match daemon.is_replaced {
                        true => line.with(Tone::Warn, "; its program has been replaced since it started"),
                        false => line,
                    },
                )
            }
            None => field("daemon", Line::new().faint("none runs")),
        }];
        for Installed { unit, program, version: found } in &self.services {
            let is_this = found.as_deref() == Some(version);
            let words = found.as_deref().unwrap_or("no version, or cannot be run");
            let line = Line::toned(tone(is_this), words).plain(format!(", {program}"));
            lines.push(field("service", line.faint(format!("   {unit}"))));
        }
        let of_version = |(found, count): (&String, &u64)| {
            let keepers = words::plural(*count, "keeper", "keepers");
            match found == version {
                true => Line::toned(Tone::Good, found).plain(format!(", {keepers}")),
                false => Line::of(found).plain(format!(", {keepers}")).faint(" as old as their sessions"),
            }
        };
        lines.extend(self.keepers.iter().map(|kept| field("keepers", of_version(kept))));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Look;

    fn found(daemon: &str, service: Option<&str>) -> Found {
        Found {
            daemon: Some(Daemon { version: daemon.to_owned(), pid: 4121, is_replaced: false }),
            services: vec![Installed {
                unit: "/home/ann/.config/systemd/user/ostler.service".to_owned(),
                program: "/usr/bin/ostler".to_owned(),
                version: service.map(str::to_owned),
            }],
            keepers: BTreeMap::from([("0.1.0".to_owned(), 2), ("0.2.0".to_owned(), 1)]),
        }
    }

    #[test]
    fn what_is_of_another_version_is_named_with_its_cure() {
        let next = |found: &Found| -> Vec<String> {
            found.next("0.2.0").into_iter().map(|hint| hint.command).collect()
        };
        assert!(next(&found("0.2.0", Some("0.2.0"))).is_empty(), "older keepers go on");
        assert_eq!(next(&found("0.1.0", Some("0.2.0"))), ["ostler daemon restart"]);
        assert_eq!(next(&found("0.2.0", None)), ["ostler service install"]);
        let mut replaced = found("0.2.0", Some("0.2.0"));
        replaced.daemon = replaced.daemon.map(|daemon| Daemon { is_replaced: true, ..daemon });
        assert_eq!(next(&replaced), ["ostler daemon restart"]);
        let none = Found { daemon: None, services: Vec::new(), keepers: BTreeMap::new() };
        assert!(next(&none).is_empty());
        let look = Look::plain(None);
        let shown = |found: &Found| {
            found.lines("0.2.0").iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(format!("{}\n\n{}", shown(&found("0.1.0", None)), shown(&none)));
    }
}
