//! Whole lives of sessions.

use ostler_domain::{
    Kind,
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
