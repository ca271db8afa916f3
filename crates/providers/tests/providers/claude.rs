//! The dialogue of Claude Code, where recordings do not reach.

use ostler_domain::{
    Message, MessageId, Mode, Time,
    session::{AgentRequest, Begin, Report},
};
use serde_json::json;

use crate::scene::Scene;

fn at_work() -> (Scene, Message) {
    let mut scene = Scene::of("claude-code", Begin::Fresh);
    scene.said(&json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m"}));
    let id = MessageId::new(Time::from_micros(1), 7);
    (scene, Message { id, text: "Mind the heron.".to_owned(), mode: Mode::Steer })
}

fn result() -> serde_json::Value {
    json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
        "terminal_reason": "aborted_tools", "user_message_uuids": []})
}

#[test]
fn its_turn_is_ended_before_it_is_and_lets_go_of_what_it_had_not_read() {
    let (mut scene, words) = at_work();
    let said = scene.ask(&AgentRequest::Steer(words.clone())).unwrap();
    let asked = scene.ask(&AgentRequest::End).unwrap();
    assert_eq!(asked["request"], json!({"subtype": "interrupt", "cancel_queued": true}));
    assert_eq!(scene.ends_within().as_secs(), 2);
    scene.said(&json!({"type": "command_lifecycle", "command_uuid": said["uuid"], "state": "cancelled"}));
    let parts = scene.said(&result());
    assert_eq!(parts[0]["request"]["subtype"], "end_session", "what runs beside its turns ends with it");
    assert_eq!(scene.ends_within().as_secs(), 3);
    let is_unread =
        |report: &&Report| matches!(report, Report::Unread { messages } if *messages == [words.id]);
    assert!(scene.reports().iter().any(is_unread), "{:?}", scene.reports());
    let id = &parts[0]["request_id"];
    scene.said(&json!({"type": "control_response", "response": {"subtype": "success", "request_id": id}}));
    assert_eq!(scene.ends_within().as_secs(), 0);
}

#[test]
fn at_rest_it_is_told_to_end_at_once() {
    let (mut scene, _) = at_work();
    scene.said(&result());
    assert_eq!(scene.ask(&AgentRequest::End).unwrap()["request"]["subtype"], "end_session");
    assert_eq!(scene.ends_within().as_secs(), 0);
}
