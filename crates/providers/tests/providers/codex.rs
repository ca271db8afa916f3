//! `codex app-server`.

use ostler_domain::{
    Message, MessageId,
    event::AskKind,
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
fn words_for_a_turn_are_read_when_it_says_so_and_wait_again_when_it_drops_them() {
    let mut scene = Scene::of("codex", Begin::Fresh);
    let asked = scene.said(&json!({"id": "open", "result": {}}));
    scene.said(&json!({"id": asked[1]["id"], "result": {"thread": {"id": "t"}, "model": "m"}}));
    let turn = |method: &str, id: &str, status: &str| json!({"method": method, "params": {"threadId": "t", "turn": {"id": id, "status": status}}});
    let read = |name: &str| {
        json!({"method": "item/completed", "params": {"threadId": "t", "turnId": "u1",
            "item": {"type": "userMessage", "id": "i", "clientId": name, "content": [{"type": "text", "text": "said otherwise"}]}}})
    };
    let told = |scene: &Scene| -> Vec<(&'static str, Vec<MessageId>)> {
        let told = scene.reports().into_iter().filter_map(|report| match report {
            Report::TurnStarted { messages } => Some(("read", messages.clone())),
            Report::Unread { messages } => Some(("unread", messages.clone())),
            Report::Unclear { messages } => Some(("unclear", messages.clone())),
            Report::TurnEnded { .. } => Some(("ended", Vec::new())),
            _ => None,
        });
        told.collect()
    };
    scene.ask(&AgentRequest::Prompt(message(1))).unwrap();
    scene.said(&turn("turn/started", "u1", "inProgress"));
    let mut steer = |n: u8, answer: Value| {
        let asked = scene.ask(&AgentRequest::Steer(message(n))).unwrap();
        assert_eq!(asked["params"]["clientUserMessageId"], message(n).id.to_string());
        scene.said(&json!({"id": asked["id"], "result": answer}));
    };
    steer(2, json!({"turnId": "u1"}));
    steer(3, json!({"turnId": "u1"}));
    assert_eq!(told(&scene).len(), 1, "it has taken them, and its model has not read them");
    scene.said(&read(&message(2).id.to_string()));
    scene.said(&turn("turn/completed", "u1", "interrupted"));
    let expected = [
        ("read", vec![message(1).id]),
        ("read", vec![message(2).id]),
        ("unread", vec![message(3).id]),
        ("ended", vec![]),
    ];
    assert_eq!(told(&scene), expected);

    // Words that it does not take wait for the turn to end; what it took and never showed, nobody can know.
    scene.ask(&AgentRequest::Prompt(message(4))).unwrap();
    scene.said(&turn("turn/started", "u2", "inProgress"));
    let refused = scene.ask(&AgentRequest::Steer(message(5))).unwrap();
    scene.said(&json!({"id": refused["id"], "error": {"code": -32600, "message": "not now"}}));
    let taken = scene.ask(&AgentRequest::Steer(message(6))).unwrap();
    scene.said(&json!({"id": taken["id"], "result": {"turnId": "u2"}}));
    scene.said(&turn("turn/completed", "u2", "completed"));
    let expected = [
        ("read", vec![message(4).id]),
        ("unread", vec![message(5).id]),
        ("unclear", vec![message(6).id]),
        ("ended", vec![]),
    ];
    assert_eq!(told(&scene)[4..], expected);
}

#[test]
fn what_it_said_last_is_its_answer_when_it_is_ended_before_it_says_so() {
    let mut scene = Scene::of("codex", Begin::Fresh);
    let asked = scene.said(&json!({"id": "open", "result": {}}));
    scene.said(&json!({"id": asked[1]["id"], "result": {"thread": {"id": "t"}, "model": "m"}}));
    scene.ask(&AgentRequest::Prompt(message(1))).unwrap();
    scene.said(&json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u1"}}}));
    let item = json!({"type": "agentMessage", "id": "i", "text": "All is done."});
    scene.said(
        &json!({"method": "item/completed", "params": {"threadId": "t", "turnId": "u1", "item": item}}),
    );
    let answers = |scene: &Scene| {
        scene.reports().into_iter().filter(|report| matches!(report, Report::Completion(_))).count()
    };
    assert_eq!(answers(&scene), 0);
    scene.ask(&AgentRequest::End).unwrap();
    assert_eq!(answers(&scene), 1);
    scene.said(&json!({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u1", "status": "completed"}}}));
    assert_eq!(answers(&scene), 1, "once");
}

#[test]
fn its_input_is_closed_when_its_turn_and_what_ran_beside_it_have_ended() {
    let seconds = |scene: &Scene| scene.ends_within().as_secs();
    let command = |method: &str| {
        let item = json!({"type": "commandExecution", "id": "i", "command": "sleep 20"});
        json!({"method": method, "params": {"threadId": "t", "turnId": "u1", "item": item}})
    };
    let ended = |status: &str| json!({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u1", "status": status}}});

    let mut scene = at_work();
    scene.said(&command("item/started"));
    let asked = scene.ask(&AgentRequest::End).unwrap();
    assert_eq!((&asked["method"], seconds(&scene)), (&json!("turn/interrupt"), 2));
    let cleans = scene.said(&ended("interrupted"));
    assert_eq!((&cleans[0]["method"], seconds(&scene)), (&json!("thread/backgroundTerminals/clean"), 3));
    scene.said(&json!({"id": cleans[0]["id"], "result": {}}));
    assert_eq!((seconds(&scene), scene.ask(&AgentRequest::End)), (0, None), "it is at rest");

    let mut scene = at_work();
    scene.said(&command("item/started"));
    scene.said(&ended("completed"));
    let asked = scene.ask(&AgentRequest::End).unwrap();
    assert_eq!((&asked["method"], seconds(&scene)), (&json!("thread/backgroundTerminals/clean"), 3));
    scene.said(&json!({"id": asked["id"], "result": {}}));
    scene.said(&command("item/completed"));
    assert_eq!(seconds(&scene), 0);
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

/// A session with a thread and an open turn.
fn at_work() -> Scene {
    let mut scene = Scene::of("codex", Begin::Fresh);
    let asked = scene.said(&json!({"id": "open", "result": {}}));
    scene.said(&json!({"id": asked[1]["id"], "result": {"thread": {"id": "t"}, "model": "m"}}));
    scene.ask(&AgentRequest::Prompt(message(1))).unwrap();
    scene.said(&json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u1"}}}));
    scene
}

#[test]
fn a_question_of_its_model_waits_for_a_person_s_words() {
    let mut scene = at_work();
    let choices = json!([{"label": "red", "description": ""}, {"label": "blue", "description": ""}]);
    let questions = json!([
        {"id": "q1", "header": "Colour", "question": "Which colour?", "options": choices},
        {"id": "q2", "header": "Name", "question": "Which name?"},
    ]);
    let params =
        json!({"threadId": "t", "turnId": "u1", "itemId": "i", "isBlocking": true, "questions": questions});
    scene.said(&json!({"id": 7, "method": "item/tool/requestUserInput", "params": params}));
    let asked = scene.reports().last().map(|report| (*report).clone());
    let Some(Report::ApprovalAsked { ask, kind, input, .. }) = asked else { panic!("{asked:?}") };
    assert_eq!((kind, input.as_str()), (AskKind::Question, "Which colour? (red | blue)\nWhich name?"));
    let message = "blue\nAda".to_owned();
    let answer: Value = scene.ask(&AgentRequest::Answer { ask, allow: true, message }).unwrap();
    assert_eq!(
        answer,
        json!({"id": 7, "result": {"answers": {"q1": {"answers": ["blue"]}, "q2": {"answers": ["Ada"]}}}})
    );
}

#[test]
fn another_model_is_that_of_the_turns_to_come() {
    let mut scene = at_work();
    let asked: Value = scene.ask(&AgentRequest::Model("gpt-next".into())).unwrap();
    assert_eq!(
        (&asked["method"], &asked["params"]),
        (&json!("thread/settings/update"), &json!({"threadId": "t", "model": "gpt-next"}))
    );
    scene.said(&json!({"id": asked["id"], "result": {}}));
    let mut model_of_turn = |turn: &str, total: u64| {
        let used = json!({"inputTokens": total, "outputTokens": 0, "totalTokens": total});
        let usage = json!({"last": used, "total": used});
        let params = json!({"threadId": "t", "turnId": turn, "tokenUsage": usage});
        scene.said(&json!({"method": "thread/tokenUsage/updated", "params": params}));
        scene.said(&json!({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": turn, "status": "completed"}}}));
        let mut models = scene.reports().into_iter().filter_map(|report| match report {
            Report::Usage(call) => call.model.clone(),
            _ => None,
        });
        let model = models.next_back();
        scene.said(&json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u2"}}}));
        model
    };
    assert_eq!(model_of_turn("u1", 10).as_deref(), Some("m"));
    assert_eq!(model_of_turn("u2", 20).as_deref(), Some("gpt-next"));
}

#[test]
fn a_conversation_is_made_smaller_when_it_is_told_so() {
    let mut scene = at_work();
    scene.said(&json!({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u1", "status": "completed"}}}));
    let smaller = Message { text: "/compact\n".into(), ..message(2) };
    let asked: Value = scene.ask(&AgentRequest::Prompt(smaller)).unwrap();
    assert_eq!(
        (&asked["method"], &asked["params"]),
        (&json!("thread/compact/start"), &json!({"threadId": "t"}))
    );
    scene.said(&json!({"id": asked["id"], "result": {}}));
    scene.said(&json!({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u2"}}}));
    let mut started = scene.reports().into_iter().filter_map(|report| match report {
        Report::TurnStarted { messages } => Some(messages.clone()),
        _ => None,
    });
    assert_eq!(started.next_back(), Some(vec![message(2).id]));
}

#[test]
fn a_notification_that_nobody_knows_is_kept_and_one_of_another_thread_is_not() {
    let mut scene = at_work();
    let before = scene.reports().len();
    for (method, thread) in
        [("warning", "t"), ("item/reasoning/textDelta", "t"), ("thread/teleported", "other")]
    {
        scene.said(&json!({"method": method, "params": {"threadId": thread}}));
    }
    assert_eq!(scene.reports().len(), before);
    scene.said(&json!({"method": "thread/teleported", "params": {"threadId": "t"}}));
    scene.said(&json!({"method": "world/ended", "params": {}}));
    assert!(matches!(&scene.reports()[before..], [Report::Opaque(one), Report::Opaque(other)]
            if one.text.contains("teleported") && other.text.contains("world/ended")));
}
