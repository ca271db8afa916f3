//! `ostler db`: looks after the store.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use ostler_client::{
    Incoming,
    reply::{CheckNews, Finding, Progress, Severity},
};
use serde::Serialize;

use crate::{
    app::{App, absolute},
    consent::DryRun,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Look for damage, changing nothing; exit 1 when there is some
    Check {
        /// Read every event and blob too
        #[arg(long)]
        full: bool,
    },
    /// Rebuild everything derived from the log
    Reindex,
    /// Give room back to the disk that the database does not use; needs as much again while it works
    Vacuum {
        #[command(flatten)]
        dry: DryRun,
    },
    /// Copy the store while it is in use
    Backup {
        /// A directory that does not exist yet
        #[arg(value_name = "DEST")]
        destination: String,
    },
}

#[derive(Serialize)]
struct CheckForm {
    ok: bool,
    findings: Vec<FindingForm>,
}

#[derive(Serialize)]
struct FindingForm {
    severity: &'static str,
    place: String,
    message: String,
}

#[derive(Serialize)]
struct VacuumForm {
    done: bool,
    bytes_before: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct DoneForm {
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
}

pub(crate) async fn run(app: &App, args: DbArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb {
        Verb::Check { full } => check(app, client.check_store(full).await?).await,
        Verb::Reindex => {
            work(app, client.reindex_store().await?).await?;
            done(app, "reindexed: everything derived is made anew from the log", None)
        }
        Verb::Vacuum { dry } => {
            let bytes = client.status().await?.store.database_bytes;
            let deed = format!("write the database anew, which has {}", words::bytes(bytes));
            let form = VacuumForm { done: false, bytes_before: bytes, bytes };
            match dry.said(&app.ui, &deed, &form)? {
                true => Ok(exit_code::OK),
                false => vacuum(app, client.vacuum_store().await?).await,
            }
        }
        Verb::Backup { destination } => {
            let destination = absolute(&destination)?;
            work(app, client.backup_store(&destination).await?).await?;
            done(app, &format!("copied to {destination}"), Some(destination.clone()))
        }
    }
}

async fn vacuum(app: &App, mut answers: Incoming<Progress>) -> Result<u8, Failure> {
    app.ui.show_meanwhile(Line::new().faint("writing the database anew …"));
    let mut last = None;
    while let Some(progress) = answers.next().await {
        last = Some(progress?);
    }
    let (before, after) = last.map_or((0, 0), |progress| (progress.total, progress.done));
    if app.ui.is_json() {
        app.ui.json(&VacuumForm { done: true, bytes_before: before, bytes: after })?;
    } else {
        let words = format!("the database has {}, and had {}", words::bytes(after), words::bytes(before));
        app.ui.data(&Line::toned(Tone::Good, "✓ ").plain(words))?;
    }
    Ok(exit_code::OK)
}

fn done(app: &App, words: &str, destination: Option<String>) -> Result<u8, Failure> {
    if app.ui.is_json() {
        app.ui.json(&DoneForm { done: true, destination })?;
    } else {
        app.ui.data(&Line::toned(Tone::Good, "✓ ").plain(words))?;
    }
    Ok(exit_code::OK)
}

async fn work(app: &App, mut answers: Incoming<Progress>) -> Result<(), Failure> {
    let mut reporter = Reporter::new(app);
    while let Some(progress) = answers.next().await {
        reporter.report(&progress?);
    }
    Ok(())
}

async fn check(app: &App, mut answers: Incoming<CheckNews>) -> Result<u8, Failure> {
    let mut reporter = Reporter::new(app);
    let mut findings = Vec::new();
    while let Some(news) = answers.next().await {
        match news? {
            CheckNews::Progress(progress) => reporter.report(&progress),
            CheckNews::Finding(finding) => {
                if !app.ui.is_json() {
                    app.ui.data(&line(&finding))?;
                }
                findings.push(finding);
            }
        }
    }
    let bad = findings.iter().filter(|finding| finding.severity > Severity::Note).count() as u64;
    if app.ui.is_json() {
        let form = |finding: Finding| FindingForm {
            severity: word(finding.severity),
            place: finding.place,
            message: finding.message,
        };
        app.ui.json(&CheckForm { ok: bad == 0, findings: findings.into_iter().map(form).collect() })?;
    } else if bad == 0 {
        app.ui.data(&Line::toned(Tone::Good, "✓ ").plain("nothing is damaged"))?;
    } else {
        app.ui.data(&Line::toned(Tone::Bad, "✗ ").plain(words::plural(
            bad,
            "thing is not as it should be",
            "things are not as they should be",
        )))?;
        if findings.iter().any(|finding| finding.severity == Severity::Repairable) {
            app.ui.remark(
                &Line::of("  ")
                    .with(Tone::Accent, "ostler db reindex")
                    .faint("   makes what is derived anew from the log"),
            );
        }
    }
    Ok(if bad == 0 { exit_code::OK } else { exit_code::FAILURE })
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Repairable => "repairable",
        Severity::Damage => "damage",
    }
}

fn line(finding: &Finding) -> Line {
    let tone = match finding.severity {
        Severity::Note => Tone::Faint,
        Severity::Repairable => Tone::Warn,
        Severity::Damage => Tone::Bad,
    };
    Line::toned(tone, word(finding.severity))
        .padded(11)
        .plain(&finding.place)
        .plain(": ")
        .plain(&finding.message)
}

/// How often a log, which is no terminal, is told how far the work has come: quick work is over before that.
const TELL_A_LOG_EVERY: Duration = Duration::from_secs(5);

/// Shows how far work has come: on a terminal in place, else a line now and then.
struct Reporter<'a> {
    app: &'a App,
    told: Instant,
}

impl<'a> Reporter<'a> {
    fn new(app: &'a App) -> Self {
        Self { app, told: Instant::now() }
    }

    fn report(&mut self, progress: &Progress) {
        let ui = &self.app.ui;
        let far = match progress.total {
            0 if progress.done == 0 => String::new(),
            0 => format!("  {}", words::number(progress.done)),
            total => format!("  {} of {}", words::number(progress.done), words::number(total)),
        };
        let line = Line::new().faint(format!("{}{far}", progress.step));
        if ui.terminals().stderr_is_terminal {
            ui.show_meanwhile(line);
        } else if self.told.elapsed() > TELL_A_LOG_EVERY {
            ui.remark(&line);
            self.told = Instant::now();
        }
    }
}
