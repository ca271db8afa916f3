//! The daemon's log: standard error in the foreground, `daemon.log` in the background.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Mutex,
};

use ostler_domain::{Refusal, home::Home};
use tracing_subscriber::EnvFilter;

use super::Place;

/// Above this the log of the last daemons is set aside when a new one starts.
const LOG_BYTES: u64 = 16 * 1024 * 1024;

pub(super) fn start(place: Place, home: &Home) -> Result<(), Refusal> {
    let filter = EnvFilter::try_from_env("OSTLER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(false)
        // A line that cannot be written is lost, and nothing else: to complain about it on standard error, whose reader
        // may be long gone, would end the thread that has something to say.
        .log_internal_errors(false);
    match place {
        Place::Foreground => builder.with_writer(io::stderr).init(),
        Place::Background => {
            let file = open(&home.daemon_log()).map_err(|error| {
                Refusal::internal("the daemon's log cannot be opened").because(error.to_string())
            })?;
            builder.with_writer(Mutex::new(file)).init();
        }
    }
    Ok(())
}

/// Lets go of the starter, which has heard all that it waits for: what nobody reads any more must not be written to.
pub(super) fn let_go_of_starter(place: Place) {
    if place == Place::Background
        && let Ok(null) = OpenOptions::new().write(true).open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Says why the daemon did not start, where somebody will look: the starter reads standard error, people the log.
pub(super) fn last_words(place: Place, refusal: &Refusal, exit: u8) {
    let line = format!("refused {}", serde_json::to_string(refusal).unwrap_or_default());
    match place {
        Place::Foreground => {
            let mut text = format!("error: {} [{}, exit {exit}]\n", refusal.message, refusal.reason);
            if let Some(why) = &refusal.why {
                text += &format!("  why: {why}\n");
            }
            for hint in &refusal.hints {
                text += &format!("  try: {}   {}\n", hint.command, hint.effect);
            }
            let _ = io::stderr().write_all(text.as_bytes());
        }
        Place::Background => {
            let _ = writeln!(io::stderr(), "{line}");
            if let Ok(home) = Home::resolve(|name| std::env::var(name).ok())
                && let Ok(mut file) = open(&home.daemon_log())
            {
                let _ = writeln!(file, "{line}");
            }
        }
    }
}

fn open(path: &Path) -> io::Result<fs::File> {
    if fs::metadata(path).is_ok_and(|found| found.len() > LOG_BYTES) {
        let _ = fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
