//! What a model's server may do to an agent: say nothing, fail for ever, want patience, refuse its key, have no room. And
//! what an agent's own tool may do: never end.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use ostler_client::CreateSession;
use ostler_domain::{
    Event, Recorded, SessionId, Time,
    event::StopReason,
    notice::Occasion,
    session::{Approve, Attention, Outcome, View, Watchdog, WatchdogRung},
};
use ostler_testkit::wait;
use serde_json::{Value, json};

use super::stage::{Agent, Stage, completions, script};

const SECOND: u64 = 1_000_000;
/// What every agent's full context is called.
const NO_LONGER_FITS: &str = "no longer fits into the model's context";

/// A stream that opens and says nothing: the turn is interrupted, and the session goes on.
pub(super) async fn silent_stream(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session =
        stage.begin_with(Approve::All, &json!([{"text": "never said", "hang": 0}]), impatient).await;
    interrupted(&stage, session, &[Watchdog::FirstOutput, Watchdog::Silent]).await;
    let events = stage.events(session).await;
    let complains =
        |event: &Event| matches!(event, Event::AgentStderr(raw) if raw.text.contains("_ostler/ping"));
    assert!(!events.iter().any(|recorded| complains(&recorded.event)), "it was asked what it does not know");
    stage.say(session, &json!([{"text": "Still here."}])).await;
    stage.turns(session, 2).await;
    assert_eq!(completions(&stage.events(session).await), ["Still here."]);
}

/// A stream that says nothing, a command that never ends and a conversation that no longer fits, one after the other: for an
/// agent that takes long to start.
pub(super) async fn all_at_once(stage: &Stage, session: SessionId) {
    let turns = |events: &[Recorded]| {
        events.iter().filter(|recorded| matches!(recorded.event, Event::TurnEnded(_))).count()
    };
    let ended = async |wanted: usize| {
        let deadline = Instant::now() + Duration::from_secs(120);
        while turns(&stage.events(session).await) < wanted {
            assert!(
                Instant::now() < deadline,
                "turn {wanted} does not end: {:#?}",
                stage.events(session).await
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let before = turns(&stage.events(session).await);
    stage.say(session, &json!([{"text": "never said", "hang": 0}])).await;
    stalls(stage, session, &[Watchdog::FirstOutput, Watchdog::Silent]).await;
    ended(before + 1).await;
    stage.say(session, &json!([{"text": "Wait.", "shell": "sleep 6543"}, {"text": "Never."}])).await;
    stalls(stage, session, &[Watchdog::Tool]).await;
    ended(before + 2).await;
    wait::until("the command to be gone", Duration::from_secs(30), || {
        !stage.commands(session).iter().any(|command| command.contains("6543"))
    });
    stage.say(session, &json!([{"status": 400, "body": no_room()}])).await;
    let says_so =
        |event: &Event| matches!(event, Event::AgentError(error) if error.text.contains(NO_LONGER_FITS));
    stage.sees(session, "an error that says what is full", says_so).await;
    ended(before + 3).await;
}

/// A server that fails for ever: agents say so each time, and that is no progress.
pub(super) async fn endless_retries(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage
        .begin_with(Approve::All, &json!([{"status": 500}]), |wanted| {
            wanted.watchdogs.retries_us = 2 * SECOND;
            wanted.watchdogs.rung_us = SECOND;
        })
        .await;
    stalls(&stage, session, &[Watchdog::Retries]).await;
    ends_turn(&stage, session).await;
    let events = stage.events(session).await;
    let tried = events.iter().any(|recorded| matches!(&recorded.event, Event::AgentRetrying(_)));
    assert!(tried, "that calls fail is told");
    let has_failed = |view: &View| view.attention == Some(Attention::TurnFailed);
    let view = stage.reaches(session, "a turn that is shown as failed", has_failed).await;
    // Some give up by themselves and say why; the others are interrupted, with their own words for it.
    let says_why =
        ["500", "interrupted by the retries watchdog: "].iter().any(|why| view.evidence.contains(why));
    assert!(says_why, "{}", view.evidence);
}

/// A command that never ends is ended with its turn.
pub(super) async fn hung_tool(agent: Agent) {
    let stage = Stage::new(agent).await;
    let steps = json!([{"text": "Wait.", "shell": "touch begun; sleep 6543"}, {"text": "Never."}]);
    let session = stage
        .begin_with(Approve::All, &steps, |wanted| {
            wanted.watchdogs.tool_us = 3 * SECOND;
            wanted.watchdogs.rung_us = SECOND;
        })
        .await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("begun").is_some());
    interrupted(&stage, session, &[Watchdog::Tool]).await;
    wait::until("the command to be gone", Duration::from_secs(30), || {
        !stage.commands(session).iter().any(|command| command.contains("6543"))
    });
}

/// A limit is shown with the end that the server said, or with the word that it said none.
pub(super) async fn rate_limits(agent: Agent) {
    let stage = Stage::new(agent).await;
    let said = json!([{"status": 429, "headers": {"retry-after": "3"}, "times": 1, "text": "after it"}]);
    let before = Instant::now();
    let session = stage.begin(Approve::All, &said).await;
    stage.turns(session, 1).await;
    let limits = limits(&stage.events(session).await);
    // The agent may have told of it first; the wire then says more.
    let (at, until) = *limits.last().expect("the limit is told");
    let span = until.expect("the server said when it ends").since(at);
    assert!(
        span <= Duration::from_secs(3) && span > Duration::from_secs(1),
        "{span:?} {:?}",
        before.elapsed()
    );
    let known = limits.len();
    stage.say(session, &json!([{"status": 429, "times": 1, "text": "after that"}])).await;
    // Some agents try again by themselves, some give up.
    stage.reaches(session, "a second turn that has ended", |view| view.turns == 2 && is_at_rest(view)).await;
    let limits = self::limits(&stage.events(session).await);
    assert!(limits.len() > known, "{limits:?}");
    assert!(limits[known..].iter().all(|(_, until)| until.is_none()), "nobody said: {limits:?}");
}

/// A server that limits an agent again and again, each time with an end: nobody interrupts who waits as it was told to.
pub(super) async fn limited_again_and_again(agent: Agent) {
    let stage = Stage::new(agent).await;
    let said = json!([{"status": 429, "headers": {"retry-after": "2"}, "times": 4, "text": "after all"}]);
    let session = stage
        .begin_with(Approve::All, &said, |wanted| {
            wanted.watchdogs.retries_us = 4 * SECOND;
            wanted.watchdogs.first_output_us = 4 * SECOND;
            wanted.watchdogs.silent_us = 4 * SECOND;
            wanted.watchdogs.rung_us = SECOND;
        })
        .await;
    let has_said = |view: &View| view.last_completion.as_deref() == Some("after all");
    stage.reaches(session, "the end of all limits", |view| has_said(view) && is_at_rest(view)).await;
    let events = stage.events(session).await;
    let fired = |event: &Event| matches!(event, Event::WatchdogFired(_) | Event::SessionStalled(_));
    let fired: Vec<_> = events.iter().filter(|recorded| fired(&recorded.event)).collect();
    assert!(fired.is_empty(), "{fired:#?}");
}

/// A limit that outlasts the time that a run has: it has an exit code of its own, and meanwhile its end is shown.
pub(super) async fn limited_past_the_timeout(agent: Agent) {
    let stage = Stage::new(agent).await;
    let headers = json!({"x-ratelimit-reset-requests": "1h0m0s", "x-ratelimit-remaining-requests": "0"});
    let prompt = script(&json!([{"status": 429, "headers": headers}]));
    let mut args = vec!["run", "-p", stage.agent.provider, "--name", "patient", "--timeout", "6s"];
    args.extend(stage.agent.model.iter().flat_map(|model| ["-m", *model]));
    args.push(&prompt);
    let waiting = stage.home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let home = &stage.home;
    let limited =
        |view: &View| view.attention == Some(Attention::RateLimited) && view.limited_until.is_some();
    wait::until("the session", wait::PATIENCE, || home.run(&["show", "patient"]).status.success());
    home.reaches("patient", "the limit", limited).await;
    for words in [&["ls"][..], &["show", "patient"]] {
        let shown = String::from_utf8(home.run(words).stdout).unwrap();
        assert!(shown.contains("rate_limited until ") && shown.contains("(reported)"), "{shown}");
    }
    let ended = tokio::task::spawn_blocking(|| waiting.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(14), "{said}");
    assert!(said.contains("while the model's server limited it"), "{said}");
}

/// What a server says whose model has no room for the conversation.
fn no_room() -> Value {
    let message = "This model's maximum context length is 128000 tokens. However, your messages resulted in \
        250000 tokens: prompt is too long";
    json!({"type": "error", "error":
        {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded", "status": "INVALID_ARGUMENT"}})
}

/// An agent that makes a conversation smaller by itself goes on with its turn: nobody has to do anything.
pub(super) async fn context_compacted(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"status": 400, "body": no_room()}])).await;
    stage.turns(session, 1).await;
    let seen = stage.model.seen();
    assert!(seen.iter().any(|seen| seen.status == 400), "there was no room");
    assert_eq!(seen.last().unwrap().status, 200, "and then there was");
    let ended = |event: &Event| matches!(event, Event::TurnEnded(ended) if ended.stop_reason == StopReason::Completed);
    stage.sees(session, "a turn that was completed", ended).await;
}

/// A conversation that no longer fits is called that, whatever the server and the agent call it.
pub(super) async fn context_full(agent: Agent) {
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"status": 400, "body": no_room()}])).await;
    stage
        .sees(
            session,
            "an error that says what is full",
            |event| matches!(event, Event::AgentError(error) if error.text.contains(NO_LONGER_FITS)),
        )
        .await;
    ends_turn(&stage, session).await;
}

/// A key that is not accepted ends the session at once, also where the agent itself would try for minutes.
pub(super) async fn refused_key(agent: Agent) {
    let stage = Stage::new(agent).await;
    let refusal = json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}});
    let session = stage.begin(Approve::All, &json!([{"status": 401, "body": refusal}])).await;
    let view = stage.ended(session).await;
    assert_eq!(view.outcome, Some(Outcome::TurnFailed), "{view:#?}");
    assert!(view.evidence.contains("401"), "{}", view.evidence);
    let asked = stage.model.seen().iter().filter(|seen| seen.status == 401).count();
    assert!(asked <= 4, "it was not asked again and again: {asked}");
    let events = stage.events(session).await;
    let told = events.iter().filter(|recorded| Occasion::of(&recorded.event).is_some());
    assert_eq!(told.count(), 1, "hooks are told once: {events:#?}");
}

/// A turn that failed of a limit goes on when the limit ends, unless that is switched off.
pub(super) async fn timed_resume(agent: Agent, is_on: bool) {
    let stage = match is_on {
        true => Stage::new(agent).await,
        false => Stage::with(agent, "[limits]\nresume_after_rate_limit = false\n").await,
    };
    let session = stage.begin(Approve::All, &limited(1)).await;
    let failed =
        |event: &Event| matches!(event, Event::TurnEnded(ended) if ended.stop_reason == StopReason::Error);
    stage.sees(session, "a turn that failed of the limit", failed).await;
    if is_on {
        let view = stage.turns(session, 2).await;
        let said = view.last_completion.unwrap_or_default();
        assert!(said.contains("rate limit has ended"), "it was told to go on: {said}");
    } else {
        tokio::time::sleep(Duration::from_secs(4)).await;
        let view = stage.reaches(session, "the row", |_| true).await;
        assert_eq!((view.turns, view.attention), (1, Some(Attention::TurnFailed)), "{view:#?}");
        assert!(view.evidence.contains("429"), "{}", view.evidence);
    }
}

/// Watchdogs that wake soon, and not while an agent prepares its work: OpenClaw says nothing for some seconds.
pub(super) fn impatient(wanted: &mut CreateSession) {
    wanted.watchdogs.first_output_us = 15 * SECOND;
    wanted.watchdogs.silent_us = 15 * SECOND;
    wanted.watchdogs.tool_us = 3 * SECOND;
    wanted.watchdogs.rung_us = SECOND;
}

fn is_at_rest(view: &View) -> bool {
    matches!(view.attention, Some(Attention::Idle | Attention::RateLimited | Attention::TurnFailed))
        && view.doing.is_none()
}

fn limited(seconds: u32) -> Value {
    json!([{"status": 429, "headers": {"retry-after": seconds.to_string()}}])
}

/// Waits until a watchdog has found the session stalled.
async fn stalls(stage: &Stage, session: SessionId, watchdogs: &[Watchdog]) {
    let is_it = |event: &Event| matches!(event, Event::SessionStalled(stalled) if watchdogs.contains(&stalled.watchdog));
    stage.sees(session, "a session that is found stalled", is_it).await;
}

/// The same, and until its turn was interrupted for it.
async fn interrupted(stage: &Stage, session: SessionId, watchdogs: &[Watchdog]) {
    stalls(stage, session, watchdogs).await;
    let interrupts =
        |event: &Event| matches!(event, Event::WatchdogFired(fired) if fired.rung == WatchdogRung::Interrupt);
    stage.sees(session, "an interrupt by the watchdog", interrupts).await;
    ends_turn(stage, session).await;
}

async fn ends_turn(stage: &Stage, session: SessionId) {
    stage.sees(session, "the end of the turn", |event| matches!(event, Event::TurnEnded(_))).await;
}

fn limits(events: &[Recorded]) -> Vec<(Time, Option<Time>)> {
    let limits = events.iter().filter_map(|recorded| match &recorded.event {
        Event::RateLimited(limited) => Some((recorded.time, limited.until)),
        _ => None,
    });
    limits.collect()
}
