//! Killing, with signal 9: the daemon, and one agent.

use std::time::Duration;

use ostler_client::{Client, reply::NodeStatus};
use ostler_domain::{Refusal, SessionId, event::Process, home::Home};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use tokio::time::{Instant, sleep};

use super::{place::Place, stage::Stage};
use crate::{app::App, commands::start_time, failure::Failure, output::Line, words};

/// How long keepers have to bring a new daemon up before the demo does it itself.
const BY_KEEPERS_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// How many agents were at work when the daemon died, and how many the next one had.
pub(super) struct Adopted {
    pub(super) before: u64,
    pub(super) after: u64,
}

/// Kills the daemon, and waits until another has taken up all that lives.
pub(super) async fn daemon(
    app: &App,
    place: &Place,
    client: &Client,
    sessions: &[SessionId],
    stage: &Stage<'_>,
) -> Result<Adopted, Failure> {
    let NodeStatus { pid, live_sessions: before, .. } = client.status().await?;
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let killed = process.is_some_and(|process| kill_process(process, Signal::KILL).is_ok());
    if !killed {
        return Err(Refusal::internal(format!("the daemon (pid {pid}) cannot be killed")).into());
    }
    let dead = Instant::now();
    let said = place.lines_on_tape(sessions);
    stage.loud(Line::of(format!(
        "kill -9 the daemon (pid {pid}); {} without it",
        words::plural(before, "agent goes on", "agents go on")
    )))?;
    let (next, by_itself) = back(app, place.home(), pid, dead).await?;
    let away = dead.elapsed();
    let meanwhile = place.lines_on_tape(sessions).saturating_sub(said);
    let status = loop {
        let status = next.status().await?;
        if status.detached_sessions == 0 {
            break status;
        }
        sleep(LOOK).await;
    };
    let who = if by_itself { "by itself" } else { "started by the demo" };
    stage.loud(Line::joined([
        Line::of(format!("daemon back after {} (pid {}, {who})", words::took(away), status.pid)),
        Line::of(readopted(status.live_sessions, before)),
        Line::of(format!("they said {} meanwhile", words::plural(meanwhile, "line", "lines"))),
    ]))?;
    Ok(Adopted { before, after: status.live_sessions })
}

/// `2 of 3 agents re-adopted, 1 had ended meanwhile`: who ended its work in that second is not lost.
fn readopted(now: u64, before: u64) -> String {
    match before.saturating_sub(now) {
        0 => format!("{now} of {before} agents re-adopted"),
        ended => format!("{now} of {before} agents re-adopted, {ended} had ended meanwhile"),
    }
}

/// Waits until another daemon answers; keepers start one by themselves. The killed one may still be connected to
/// while its last threads end, so that it answers is what counts.
async fn back(app: &App, home: &Home, killed: u32, dead: Instant) -> Result<(Client, bool), Failure> {
    while dead.elapsed() < BY_KEEPERS_WITHIN {
        if let Ok(client) = Client::connect(home).await
            && client.status().await.is_ok_and(|status| status.pid != killed)
        {
            return Ok((client, true));
        }
        sleep(LOOK).await;
    }
    Ok((Client::connect_or_start(home, &app.program.path).await?, false))
}

/// Kills an agent's process. A number alone might be somebody else's by now.
pub(super) fn agent(process: &Process) -> Result<(), Failure> {
    let cannot = |why: String| {
        Failure::from(
            Refusal::internal(format!("the agent (pid {}) cannot be killed", process.pid)).because(why),
        )
    };
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| cannot("that is no process".to_owned()))?;
    let held = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| cannot(error.to_string()))?;
    if start_time(process.pid) != Some(process.start_time) {
        return Err(cannot("it has ended by itself".to_owned()));
    }
    pidfd_send_signal(held, Signal::KILL).map_err(|error| cannot(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_ended_is_not_counted_as_lost() {
        assert_eq!(readopted(3, 3), "3 of 3 agents re-adopted");
        assert_eq!(readopted(2, 3), "2 of 3 agents re-adopted, 1 had ended meanwhile");
    }

    #[test]
    fn a_process_is_known_by_its_start_time() {
        let pid = std::process::id();
        let start_time = start_time(pid).unwrap();
        assert!(agent(&Process { pid, start_time: start_time + 1 }).is_err(), "this one is not killed");
    }
}
