//! Whole lives of sessions.

use ostler_domain::{
    Event, Kind,
    session::{Attention, Outcome, Sandbox, Status},
};
use ostler_testkit::{TestHome, numbers, scenario};
use serde_json::json;

use crate::OSTLER;

#[tokio::test]
async fn a_session_runs_and_is_recorded() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let steps = vec![
        json!({"think": "hm"}),
        scenario::say("hello"),
        json!({"run": ["sh", "-c", "echo out; exit 3"]}),
        scenario::say("bye"),
    ];
    let mut wanted = ostler_client::CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(steps));
    wanted.ends_with_turn = true;
    let created = client.create_session(wanted).await.unwrap();
    let view = home.ended(&created.id.to_string()).await;
    assert_eq!(
        (view.outcome, view.status, view.sandbox),
        (Some(Outcome::Done), Status::Stopped, Sandbox::On)
    );
    let events = home.events(&client, created.id).await;
    numbers::assert_gapless(&events, "the session");
    let kinds: Vec<Kind> = events.iter().map(|event| event.event.kind()).collect();
    assert_eq!(
        kinds,
        [
            Kind::SessionCreated,
            Kind::MessageAccepted,
            Kind::SessionStarting,
            Kind::SessionSpawned,
            Kind::SessionStarted,
            Kind::MessageSent,
            Kind::MessageDelivered,
            Kind::TurnStarted,
            Kind::MessageSeen,
            Kind::AgentThinking,
            Kind::AgentCompletion,
            Kind::AgentToolCall,
            Kind::AgentToolResult,
            Kind::AgentCompletion,
            Kind::TurnEnded,
            Kind::MessageAnswered,
            Kind::SessionStopRequested,
            Kind::SessionStopped,
        ]
    );
}

/// Whoever died for want of memory is told about with the limit, what was used, by whom, and what would help.
#[tokio::test]
async fn who_takes_too_much_memory_is_told_about_with_what_would_help() {
    let home = TestHome::started(OSTLER).await;
    assert!(home.run(&["campaign", "set", "shop", "limits.memory=64MiB"]).status.success());
    let client = home.client().await;
    // Takes its time about it, so that whoever looks sees it.
    let hungry = "my @x; for (1..12) { push @x, q(x) x (20 << 20); sleep 1 }";
    let created = home
        .session(&client, &scenario::of(vec![json!({"run": ["perl", "-e", hungry]}), json!({"exit": 7})]))
        .await;
    let view = home.ended(&created.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Oom), "{view:?}");
    let obituary = view.obituary.unwrap();
    let memory = obituary.memory.clone().unwrap();
    assert_eq!(memory.limit_bytes, Some(64 << 20), "{obituary:?}");
    assert!(memory.used_bytes.is_none_or(|used| used >= 60 << 20), "{obituary:?}");
    let largest = memory.largest.unwrap();
    assert!(largest.name == "perl" && largest.bytes > 20 << 20, "{largest:?}");
    let shown = home.run(&["show", &created.id.to_string()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("the memory limit of its campaign"), "{shown}");
    assert!(shown.contains("largest process: perl"), "{shown}");
    assert!(shown.contains("ostler campaign set shop limits.memory=128MiB"), "{shown}");
    let listed = home.run(&["ls"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("64.0 MiB limit"), "{listed}");
}

/// A campaign's own word on rate limits counts before the machine's.
#[tokio::test]
async fn a_campaign_says_whether_its_sessions_go_on_after_a_rate_limit() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let goes_on = async || {
        let created = home.session(&client, "hello").await;
        let events = home.events(&client, created.id).await;
        let begun = events.into_iter().find_map(|recorded| match recorded.event {
            Event::SessionCreated(created) => Some(created.config.resumes_after_limit),
            _ => None,
        });
        begun.unwrap()
    };
    assert!(goes_on().await, "as the machine does by itself");
    assert!(home.run(&["campaign", "set", "shop", "resume_after_rate_limit=off"]).status.success());
    assert!(!goes_on().await);
    assert!(home.run(&["campaign", "set", "shop", "resume_after_rate_limit="]).status.success());
    assert!(goes_on().await);
}

#[tokio::test]
async fn the_worked_example_adds_up() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let usage = |input, output| json!({"usage": {"input": input, "output": output}});
    let steps = vec![
        json!({"think": "what is to do"}),
        usage(500, 0),
        json!({"run": ["true"]}),
        usage(0, 200),
        scenario::say("done"),
        usage(100, 1500),
    ];
    let created = home.session(&client, &scenario::of(steps)).await;
    let view = home
        .reaches(&created.id.to_string(), "idleness", |view| {
            view.attention == Some(Attention::Idle) && view.turns == 1
        })
        .await;
    assert_eq!((view.usage.input, view.usage.output), (600, 1700));
}
