//! The lookout: waits beside a daemon on which something waits that no keeper stands for, and starts another when it dies.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::Instant;

use ostler_domain::limits::LOOKOUT_GIVES_UP;
use rustix::process::setsid;

use crate::keeper::jitter;
use crate::link::{Due, Link};
use crate::spawn::{is_answering, spawn_daemon};

/// Hears the daemon on descriptor 0: a byte is a bye, and the end without one its death.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let Some(daemon_json) = args.first().map(Path::new) else { return ExitCode::FAILURE };
    // Whoever ends the daemon's group does not mean this one.
    let _ = setsid();
    match hear() {
        Ok(0) => {}
        Ok(_) => return ExitCode::SUCCESS,
        Err(_) => return ExitCode::FAILURE,
    }
    let died = Instant::now();
    let mut link = Link::new(None, died);
    link.lost(false, died, jitter());
    let mut daemons: Vec<Child> = Vec::new();
    // Without its file there is nothing left to look after.
    while died.elapsed() < LOOKOUT_GIVES_UP && daemon_json.exists() {
        if let Some(at) = link.wake_at() {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
        }
        if is_answering(daemon_json) {
            return ExitCode::SUCCESS;
        }
        if link.due(Instant::now(), jitter) == Some(Due::StartDaemon)
            // The daemon that it was started by is the one that has died: its own environment is that one's.
            && let Ok(Some(daemon)) = spawn_daemon(daemon_json, &[])
        {
            daemons.push(daemon);
        }
        daemons.retain_mut(|daemon| matches!(daemon.try_wait(), Ok(None)));
    }
    ExitCode::FAILURE
}

fn hear() -> io::Result<usize> {
    let mut word = [0];
    loop {
        match io::stdin().read(&mut word) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            heard => return heard,
        }
    }
}
