//! `ostler demo`: three scripted agents at work, the daemon killed with -9 among them, and every line that they said
//! accounted for afterwards. Everything happens in a directory of its own, which is removed.

mod account;
mod agents;
mod escape;
mod finale;
mod place;
mod stage;

use std::time::Duration;

use ostler_client::{
    AddCampaign, Campaign, Client, CreateSession, Session, Watched, query::EventFilter, reply::NodeStatus,
};
use ostler_domain::{Event, Reason, Refusal, SessionId, home::Home, readiness::Trial};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{
    app::App,
    commands::{trial, with_runtime},
    exit_code,
    failure::Failure,
    output::Line,
    signals::Signals,
    words,
};
use place::Place;
use stage::Stage;

/// When the daemon is killed: in the middle of the agents' work.
const KILL_AFTER: Duration = Duration::from_millis(2_500);
/// How long keepers have to bring a new daemon up before the demo does it itself.
const BY_KEEPERS_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// The demo takes a quarter of this. More means that something hangs.
const LONGEST: Duration = Duration::from_secs(60);

pub(crate) fn run(app: &App, keep: bool) -> Result<u8, Failure> {
    let place = Place::make()?;
    let outcome = with_runtime(async {
        let mut signals = Signals::catch()?;
        let outcome = tokio::select! {
            outcome = timeout(LONGEST, play(app, &place)) => outcome.unwrap_or_else(|_| {
                let message = format!("the demo did not end within {}", words::span(LONGEST));
                Err(Refusal::new(Reason::TimedOut, message).into())
            }),
            asked = signals.next() => Ok(asked.exit_code()),
        };
        app.ui.flush()?;
        if keep {
            place.say_kept(&app.ui)?;
        } else {
            place.clean(&app.program.path).await;
        }
        outcome
    });
    if outcome.as_ref().is_ok_and(|code| *code == exit_code::OK) && !app.ui.is_json() {
        finale::say_next(&app.ui)?;
    }
    outcome
}

async fn play(app: &App, place: &Place) -> Result<u8, Failure> {
    let mut stage = Stage::new(&app.ui);
    let readiness = trial::try_sandbox(&app.program.path);
    stage.open(place, &readiness)?;
    place.make_repository();
    let is_confined = matches!(readiness.trial, Trial::Ran { .. });
    if !is_confined {
        // Only here: these agents do nothing but what is written in this program.
        place.run_unconfined()?;
    }
    let client = Client::connect_or_start(place.home(), &app.program.path).await?;
    let path = place.repository().display().to_string();
    let campaign = client.add_campaign(AddCampaign { path, name: None }).await?;
    let sessions = start(&client, &campaign).await?;
    stage.meet(&sessions)?;
    watch(app, place, &client, &sessions, &mut stage).await?;
    let account = account::take(&client, &sessions).await?;
    stage.account(&account)?;
    let stopped = if is_confined { Some(escape::play(&client, &campaign, &stage).await?) } else { None };
    finale::play(app, &client, &campaign, &stage, &account, stopped).await
}

async fn start(client: &Client, campaign: &Campaign) -> Result<Vec<Session>, Failure> {
    let mut sessions = Vec::new();
    for agent in agents::ALL {
        let request = CreateSession {
            name: agent.name.parse().ok(),
            initial_message: Some(agent.scenario()),
            ends_with_turn: true,
            ..CreateSession::new(campaign.id.to_string(), "script")
        };
        sessions.push(client.create_session(request).await?);
    }
    Ok(sessions)
}

/// Who had ended before the daemon was back needs none.
fn readopted(now: u64, before: u64) -> String {
    match before.saturating_sub(now) {
        0 => format!("{now} of {before} agents re-adopted"),
        ended => format!("{now} of {before} agents re-adopted, {ended} had ended meanwhile"),
    }
}

/// Shows what the agents do until all have ended, and kills the daemon on the way.
async fn watch(
    app: &App,
    place: &Place,
    client: &Client,
    sessions: &[Session],
    stage: &mut Stage<'_>,
) -> Result<(), Failure> {
    let mut watch = client.watch(EventFilter::default(), Some(0)).await?;
    let mut working: Vec<SessionId> = sessions.iter().map(|session| session.id).collect();
    let kill_at = Instant::now() + KILL_AFTER;
    let mut killed = false;
    while !working.is_empty() {
        tokio::select! {
            item = watch.next() => match item {
                Some(Ok(Watched::Event(event))) => {
                    if matches!(event.event, Event::SessionStopped(_) | Event::SessionFailed(_)) {
                        working.retain(|id| Some(*id) != event.session);
                    }
                    stage.show(*event)?;
                }
                Some(Ok(Watched::Unknown(_) | Watched::Reconnected)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(Refusal::new(Reason::DaemonUnreachable, "the daemon is gone").into()),
            },
            () = sleep_until(kill_at), if !killed => {
                killed = true;
                kill_the_daemon(app, place, client, sessions, stage).await?;
            }
        }
    }
    Ok(())
}

async fn kill_the_daemon(
    app: &App,
    place: &Place,
    client: &Client,
    sessions: &[Session],
    stage: &Stage<'_>,
) -> Result<(), Failure> {
    let NodeStatus { pid, live_sessions: alive, .. } = client.status().await?;
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let killed = process.is_some_and(|process| kill_process(process, Signal::KILL).is_ok());
    if !killed {
        return Err(Refusal::internal(format!("the daemon (pid {pid}) cannot be killed")).into());
    }
    let dead = Instant::now();
    let before = place.lines_on_tape(sessions);
    stage.loud(Line::of(format!(
        "kill -9 the daemon (pid {pid}); {} without it",
        words::plural(alive, "agent goes on", "agents go on")
    )))?;
    let (next, by_keeper) = back(app, place.home(), pid, dead).await?;
    let away = dead.elapsed();
    let meanwhile = place.lines_on_tape(sessions).saturating_sub(before);
    let status = loop {
        let status = next.status().await?;
        if status.detached_sessions == 0 {
            break status;
        }
        sleep(LOOK).await;
    };
    let who = if by_keeper { "started by a keeper" } else { "started by the demo" };
    stage.loud(Line::joined([
        Line::of(format!("daemon back after {} (pid {}, {who})", words::took(away), status.pid)),
        Line::of(readopted(status.live_sessions, alive)),
        Line::of(format!("they said {} meanwhile", words::plural(meanwhile, "line", "lines"))),
    ]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_ended_is_not_counted_as_lost() {
        assert_eq!(readopted(3, 3), "3 of 3 agents re-adopted");
        assert_eq!(readopted(2, 3), "2 of 3 agents re-adopted, 1 had ended meanwhile");
    }
}
