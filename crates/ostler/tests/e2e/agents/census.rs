//! After every way to end a session no process of it is left: not the agent, not what it started, not its keeper.

use std::time::Duration;

use ostler_domain::{
    Budget, SessionId,
    budget::WhenUsedUp,
    session::{Approve, Outcome},
};
use ostler_testkit::wait;
use serde_json::{Value, json};

use super::stage::{Agent, Stage};

/// A command that starts another in a session of its own, as daemons do, and waits. Where the agent lets it go on in the
/// background and asks its model again, that one has no answer: the turn stays open.
fn steps() -> Value {
    let command = "setsid sleep 7654 & touch begun-$OSTLER_SESSION_ID; sleep 7653";
    json!([{"text": "Wait.", "shell": command, "usage": {"input": 10, "output": 5}}, {"text": "Never.", "hang": 1}])
}

const WAYS: &[(&str, Outcome)] = &[
    ("stop", Outcome::Stopped),
    ("stop --now", Outcome::Killed),
    ("kill", Outcome::Killed),
    ("interrupt", Outcome::Stopped),
    ("timeout", Outcome::Timeout),
    ("budget", Outcome::Budget),
    ("crash", Outcome::Crashed),
    ("daemon killed", Outcome::Stopped),
    ("halt", Outcome::Killed),
];

pub(super) async fn nobody_is_left(agent: Agent) {
    nobody_is_left_after(agent, |_| true).await;
}

/// The same for some ways only: an agent that takes long to start is not put through all.
pub(super) async fn nobody_is_left_after(agent: Agent, is_tried: impl Fn(&str) -> bool) {
    let stage = Stage::new(agent).await;
    for (how, outcome) in WAYS.iter().copied().filter(|(how, _)| is_tried(how)) {
        let session = begun(&stage, how).await;
        ends(&stage, session, how, outcome).await;
    }
}

/// A session whose command runs, so that there is something to be left.
async fn begun(stage: &Stage, how: &str) -> SessionId {
    // From when it is ready; some take long to run their first command on a busy machine, and then have more time.
    let mut limit = Duration::from_secs(15);
    loop {
        let session = begin(stage, how, limit).await;
        // A budget may end it before its tool runs.
        if how == "budget" {
            return session;
        }
        let began = || stage.file(&format!("begun-{session}")).is_some();
        let what = format!("the command to run that {how} is to end");
        let over = stage.reaches(session, &what, |view| began() || view.outcome == Some(Outcome::Timeout));
        over.await;
        if began() {
            return session;
        }
        limit *= 2;
    }
}

/// One of these ways for a session that is put through something else before: one that takes long to start.
pub(super) async fn nobody_is_left_of(stage: &Stage, session: SessionId, how: &str) {
    let (_, outcome) = WAYS.iter().find(|(way, _)| *way == how).expect("a way to end");
    ends(stage, session, how, *outcome).await;
}

async fn ends(stage: &Stage, session: SessionId, how: &str, outcome: Outcome) {
    end(stage, session, how);
    let view = stage.ended(session).await;
    assert_eq!(view.outcome, Some(outcome), "{how}: {}", view.evidence);
    let look = || stage.home.census(session);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !look().is_empty() {
        assert!(std::time::Instant::now() < deadline, "after {how} there is still: {:?}", look());
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn begin(stage: &Stage, how: &str, limit: Duration) -> SessionId {
    stage
        .begin_with(Approve::All, &steps(), |wanted| {
            if how == "timeout" {
                wanted.timeout = Some(limit);
            }
            if how == "budget" {
                let when_used_up = WhenUsedUp::Stop;
                wanted.budget = Some(Budget { tokens: Some(1), dollars: None, when_used_up });
            }
        })
        .await
}

fn end(stage: &Stage, session: SessionId, how: &str) {
    let id = session.to_string();
    let run = |args: &[&str]| {
        let ran = stage.home.run(args);
        assert!(ran.status.success(), "{how}: {ran:?}");
    };
    match how {
        "stop" => run(&["stop", &id]),
        "stop --now" => run(&["stop", "--now", &id]),
        "kill" => run(&["kill", &id]),
        "interrupt" => {
            run(&["interrupt", &id]);
            run(&["stop", &id]);
        }
        "crash" => drop(stage.process(session).expect("the agent's process").kill()),
        "daemon killed" => {
            stage.home.kill_daemon();
            // The keeper and this command both start one, and the slower of the two is refused.
            wait::until("the next daemon to stop it", Duration::from_secs(60), || {
                stage.home.run(&["stop", &id]).status.success()
            });
        }
        "halt" => run(&["halt"]),
        _ => {}
    }
}
