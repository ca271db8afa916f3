//! A write-ahead log as full as it gets, and nobody left to empty it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use ostler_domain::{Event, Time, home::Home, limits::CHECKPOINT_PAGES, session::State};
use ostler_store::{Bulk, Commit, Options, Paths, SessionCommit, Store, Urgency};
use rustix::process::{Signal, getpid, kill_process};

use super::wall_us;
use crate::{
    Outcome,
    fill::{History, Size},
};

/// A page and its header in the write-ahead log.
const FRAME_BYTES: u64 = 8192 + 24;

/// Fills the write-ahead log of a home to just below a checkpoint, in another process, which then dies.
pub(crate) fn left_full(home: &Home) -> Outcome<u64> {
    // Closing it in an orderly way removes the old log: the new one's size says how full it is.
    drop(Store::open(&Paths::below(home.state()), &Options { search: false })?);
    let root = home.state().parent().ok_or("a home has a root")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["internal", "die-with-full-wal"]).arg(root).stdin(Stdio::null());
    // It dies by a signal: only the log that it leaves says whether it did its work.
    command.status()?;
    let bytes = fs::metadata(wal(home))?.len();
    if bytes < least() {
        return Err(format!("the write-ahead log has only {bytes} bytes").into());
    }
    Ok(bytes)
}

fn wal(home: &Home) -> std::path::PathBuf {
    home.state().join("ostler.db-wal")
}

/// A few transactions below the size at which the writer checkpoints.
fn least() -> u64 {
    u64::from(CHECKPOINT_PAGES - 300) * FRAME_BYTES
}

/// `internal die-with-full-wal`.
pub(crate) fn fill_and_die(root: &Path) -> Outcome<()> {
    let home = Home::at(root);
    let store = Store::open(&Paths::below(home.state()), &Options { search: false })?.store;
    // Not the seed of the home itself: no id may come twice.
    let seed = u64::try_from(wall_us()).unwrap_or(2);
    for item in History::new(Size { sessions: u64::MAX >> 20, events: 0 }, seed) {
        let (node_events, session) = match item {
            // Campaigns of these names are there already, and so are daemons.
            Bulk::Node(_, event) if matches!(*event, Event::CampaignAdded(_) | Event::DaemonStarted(_)) => {
                continue;
            }
            Bulk::Node(at, event) => (vec![(at, *event)], None),
            Bulk::Session(events) => (Vec::new(), Some(life(events)?)),
        };
        let has_followers = session.as_ref().is_some_and(|session| session.view.restart.is_some());
        store.commit_blocking(Commit { urgency: Urgency::Control, node_events, session, request: None })?;
        // A promise to restart is kept first: the daemon that comes would keep it.
        if !has_followers && fs::metadata(wal(&home)).is_ok_and(|wal| wal.len() >= least()) {
            kill_process(getpid(), Signal::KILL)?;
        }
    }
    Ok(())
}

fn life(events: Vec<(Time, Event)>) -> Outcome<SessionCommit> {
    let state = State::replay(events.iter().map(|(at, event)| (*at, event)))
        .ok_or("a life begins with its creation")?;
    let view = state.view();
    Ok(SessionCommit {
        id: view.id,
        expected_seq: 0,
        events,
        recorded: None,
        view: view.into(),
        tape: None,
        outbox: Vec::new(),
        outbox_done: None,
        snapshot: None,
    })
}
