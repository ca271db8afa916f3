//! OpenClaw's gateway. Its recordings were made by a client that numbered its requests; ours names them, and its
//! runs are called by the ids of our messages.

use std::collections::HashMap;

use ostler_domain::{
    Message, MessageId, Mode,
    session::{AgentRequest, Begin, Report},
};
use serde_json::{Value, json};

use crate::{
    recording::{Recording, all, pin},
    scene::Scene,
};

#[test]
fn recordings_come_to_what_they_came_to() {
    pin(&recordings());
}

pub(crate) fn recordings() -> Vec<Recording> {
    all("openclaw", "gateway-", "openclaw").into_iter().map(as_ours).collect()
}

fn as_ours(recording: Recording) -> Recording {
    let key = recording.messages().find_map(|frame| Some(frame["params"]["sessionKey"].as_str()?.to_owned()));
    let key = key.expect("every recording has a turn");
    let mut names: HashMap<String, String> = HashMap::new();
    let mut runs: Vec<(String, String)> = Vec::new();
    recording.adapted(move |frame, input_no| {
        let id = frame["id"].as_str().unwrap_or_default().to_owned();
        let tag = match frame["method"].as_str() {
            Some(method) => {
                names.insert(id, name(method, input_no));
                if let Some(run) = frame["params"]["idempotencyKey"].as_str() {
                    runs.push((format!("\"{run}"), format!("\"msg_{input_no:026}")));
                }
                Some(tag(method, frame, input_no, &key))
            }
            None => {
                if let Some(name) = names.get(&id) {
                    frame["id"] = json!(name);
                }
                None
            }
        };
        let text = runs.iter().fold(frame.to_string(), |text, (run, message)| text.replace(run, message));
        *frame = serde_json::from_str(&text).unwrap();
        tag
    })
}

fn name(method: &str, input_no: u64) -> String {
    match method {
        "connect" => "connect".to_owned(),
        "sessions.create" => "create".to_owned(),
        "sessions.messages.subscribe" => "subscribe".to_owned(),
        _ => format!("in-{input_no}"),
    }
}

fn tag(method: &str, frame: &Value, input_no: u64, key: &str) -> String {
    match method {
        "connect" => format!("open:{}", json!({"key": key, "token": "t", "permission": "guarded"})),
        "chat.send" => format!("prompt:msg_{input_no:026}"),
        "chat.abort" | "sessions.abort" => "interrupt".to_owned(),
        "exec.approval.resolve" => format!("answer:{}", frame["params"]["id"].as_str().unwrap_or_default()),
        _ => String::new(),
    }
}

#[test]
fn a_gateway_that_lets_nobody_in_says_at_once_that_it_cannot_work() {
    let mut scene = Scene::of("openclaw", Begin::Fresh);
    let asked = scene.said(&json!({"type": "event", "event": "connect.challenge", "payload": {}}));
    let error = json!({"code": "INVALID_REQUEST", "message": "no such protocol"});
    scene.said(&json!({"type": "res", "id": asked[0]["id"], "ok": false, "error": error}));
    assert!(
        matches!(&scene.reports()[..], [Report::CannotStart(said)] if said.contains("no such protocol")),
        "{:?}",
        scene.reports()
    );
}

#[test]
fn how_much_its_model_thinks_is_said_when_its_session_is_made() {
    let created = |config: &[(&str, &str)]| {
        let mut scene = Scene::with("openclaw", Begin::Fresh, config);
        let asked = scene.said(&json!({"type": "event", "event": "connect.challenge", "payload": {}}));
        let made = scene.said(&json!({"type": "res", "id": asked[0]["id"], "ok": true, "payload": {}}));
        made[0]["params"].clone()
    };
    assert_eq!(created(&[("thinking", "high")])["thinkingLevel"], "high");
    assert!(created(&[]).get("thinkingLevel").is_none());
    let provider = ostler_providers::registry::find("openclaw").unwrap();
    assert_eq!(provider.thinking("minimal"), Some(("thinking", "minimal".to_owned())));
    assert_eq!(provider.thinking("stream"), None);
}

#[test]
fn a_prompt_that_was_taken_is_a_turn_and_one_behind_it_is_not_yet() {
    let mut scene = Scene::of("openclaw", Begin::Fresh);
    let mut send = |id: &str| -> Vec<Report> {
        let id: MessageId = id.parse().unwrap();
        let message = Message { id, text: "go".into(), mode: Mode::Followup };
        let sent = scene.ask(&AgentRequest::Prompt(message)).unwrap();
        let before = scene.reports().len();
        let payload = json!({"runId": sent["params"]["idempotencyKey"], "status": "started"});
        scene.said(&json!({"type": "res", "id": sent["id"], "ok": true, "payload": payload}));
        scene.reports()[before..].iter().map(|report| (*report).clone()).collect()
    };
    let first: MessageId = "msg_00000000000000000000000001".parse().unwrap();
    let began = send("msg_00000000000000000000000001");
    assert!(
        matches!(&began[..], [Report::TurnStarted { messages }, Report::Bound { .. }] if *messages == [first])
    );
    assert_eq!(send("msg_00000000000000000000000002"), [], "it waits in line");
}

/// The opening of a session that is gone on with, up to what is said of it the first and the second time.
fn resumed(found: &Value, working: &Value) -> Vec<Report> {
    let begin = Begin::Resume { provider_id: "agent:main:old".into(), interrupted: None, seed: "s".into() };
    let mut scene = Scene::of("openclaw", begin);
    let mut asked = scene.said(&json!({"type": "event", "event": "connect.challenge", "payload": {}}));
    let mut methods = Vec::new();
    let mut described = [found, working].into_iter();
    while let Some(request) = asked.pop() {
        let method = request["method"].as_str().unwrap().to_owned();
        let payload = match method.as_str() {
            "sessions.describe" => json!({"session": described.next().unwrap()}),
            _ => json!({}),
        };
        methods.push(method);
        asked
            .extend(scene.said(&json!({"type": "res", "id": request["id"], "ok": true, "payload": payload})));
    }
    let order = ["connect", "sessions.describe", "sessions.create", "sessions.messages.subscribe"];
    assert_eq!(methods[..4], order, "it is asked before one is made in its place");
    scene.reports().into_iter().cloned().collect()
}

#[test]
fn a_session_that_is_gone_is_told_before_an_empty_one_is_in_its_place() {
    let reports = resumed(&Value::Null, &json!({"key": "agent:main:old", "activeRunIds": []}));
    let [Report::ContextReset { why }, Report::Ready { provider_id, .. }] = &reports[..] else {
        panic!("{reports:?}")
    };
    assert_eq!(why, "openclaw has no record of agent:main:old any more");
    assert_eq!(provider_id.as_deref(), Some("agent:main:old"));
    let there = json!({"key": "agent:main:old", "hasActiveRun": false});
    assert!(matches!(&resumed(&there, &there)[..], [Report::Ready { .. }]), "nothing is lost");
}

#[test]
fn what_it_goes_on_with_by_itself_is_the_open_turn() {
    let there = json!({"key": "agent:main:old", "hasActiveRun": true, "activeRunIds": ["run-7"]});
    let reports = resumed(&there, &there);
    assert!(
        matches!(&reports[..], [Report::TurnStarted { messages }, Report::Bound { .. }, Report::Ready { .. }] if messages.is_empty()),
        "{reports:?}"
    );
}

#[test]
fn an_event_that_nobody_knows_is_kept_and_one_about_screens_is_not() {
    let mut scene = Scene::of("openclaw", Begin::Fresh);
    for event in ["tick", "presence", "talk.mode"] {
        scene.said(&json!({"type": "event", "event": event, "payload": {}}));
    }
    assert_eq!(scene.reports().len(), 0);
    scene.said(&json!({"type": "event", "event": "sessions.teleported", "payload": {"to": "mars"}}));
    assert!(matches!(&scene.reports()[..], [Report::Opaque(raw)] if raw.text.contains("mars")));
}
