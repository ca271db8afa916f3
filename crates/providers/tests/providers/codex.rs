//! `codex app-server`.

use ostler_domain::{
    Message, MessageId,
    message::Mode,
    session::{AgentRequest, Begin, Report},
};
use serde_json::{Value, json};

use crate::{
    recording::{all, pin},
    scene::Scene,
};

#[test]
fn recordings_come_to_what_they_came_to() {
    pin(&all("codex", "app-server-", "codex"));
}

fn message(n: u8) -> Message {
    let id: MessageId = format!("msg_0000000000000000000000000{n}").parse().unwrap();
    Message { id, text: format!("words {n}"), mode: Mode::Steer }
}

#[test]
fn words_for_a_turn_that_has_just_ended_begin_one_of_their_own() {
    let mut scene = Scene::of("codex", Begin::Fresh);
    let asked = scene.said(&json!({"id": "open", "result": {}}));
    scene.said(&json!({"id": asked[1]["id"], "result": {"thread": {"id": "t"}, "model": "m"}}));
    scene.ask(&AgentRequest::Prompt(message(1))).unwrap();
    let turn = |method: &str, id: &str| json!({"method": method, "params": {"threadId": "t", "turn": {"id": id, "status": "completed"}}});
    scene.said(&turn("turn/started", "u1"));
    let steer: Value = scene.ask(&AgentRequest::Steer(message(2))).unwrap();
    scene.said(&turn("turn/completed", "u1"));
    let error = json!({"code": -32600, "message": "no active turn to steer"});
    let again = scene.said(&json!({"id": steer["id"], "error": error}));
    assert_eq!(again[0]["method"], "turn/start");
    assert_eq!(again[0]["params"]["input"], steer["params"]["input"]);
    scene.said(&turn("turn/started", "u2"));
    let started: Vec<_> = scene
        .reports()
        .into_iter()
        .filter_map(|report| match report {
            Report::TurnStarted { messages } => Some(messages.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(started, [vec![message(1).id], vec![message(2).id]]);
    assert!(!scene.reports().iter().any(|report| matches!(report, Report::Error(_))), "nothing failed");
}

#[test]
fn why_something_is_denied_is_said_into_the_turn_before_the_answer() {
    let mut scene = Scene::of("codex", Begin::Fresh);
    let asked = scene.said(&json!({"id": "open", "result": {}}));
    scene.said(&json!({"id": asked[1]["id"], "result": {"thread": {"id": "t"}, "model": "m"}}));
    scene.ask(&AgentRequest::Prompt(message(1))).unwrap();
    scene.said(&json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u1"}}}));
    let ask = |id: u8| {
        json!({"id": id, "method": "item/commandExecution/requestApproval",
            "params": {"threadId": "t", "turnId": "u1", "itemId": format!("call_{id}"), "command": "make deploy"}})
    };
    scene.said(&ask(0));
    let answer = |ask: &str, allow, message: &str| AgentRequest::Answer {
        ask: ask.into(),
        allow,
        message: message.into(),
    };
    let lines = scene.ask_all(&answer("0", false, "use staging"));
    assert_eq!((lines.len(), &lines[0]["method"]), (2, &json!("turn/steer")), "{lines:?}");
    assert!(lines[0]["params"]["input"][0]["text"].as_str().unwrap().contains("use staging"), "{lines:?}");
    assert_eq!(lines[1], json!({"id": 0, "result": {"decision": "decline"}}));
    scene.said(&ask(1));
    assert_eq!(scene.ask_all(&answer("1", true, "")), [json!({"id": 1, "result": {"decision": "accept"}})]);
}

#[test]
fn an_agent_that_opens_nothing_says_at_once_that_it_cannot_work() {
    let error = json!({"code": -32600, "message": "No models are available with these settings."});
    let mut scene = Scene::of("codex", Begin::Fresh);
    let asked = scene.said(&json!({"id": "open", "result": {}}));
    scene.said(&json!({"id": asked[1]["id"], "error": error}));
    assert!(
        matches!(&scene.reports()[..], [Report::CannotStart(said)] if said.starts_with("No models")),
        "{:?}",
        scene.reports()
    );
    let mut scene = Scene::of("codex", Begin::Fresh);
    scene.said(&json!({"id": "open", "error": error}));
    assert!(matches!(scene.reports()[..], [Report::CannotStart(_)]));
}
