//! OpenClaw's gateway. Its recordings were made by a client that numbered its requests; ours names them, and its
//! runs are called by the ids of our messages.

use std::collections::HashMap;

use ostler_domain::session::{Begin, Report};
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
