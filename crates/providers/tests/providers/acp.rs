//! Agents that speak ACP: five recorded ones, and what no recording has.

use ostler_domain::{
    Message, MessageId,
    event::StopReason,
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
    pin(&all("acp", "", "acp:any"));
}

impl Scene {
    fn open(begin: Begin) -> Self {
        Self::of("acp:any", begin)
    }

    fn ready(&mut self) {
        let asked = self.said(&json!({"id": "open", "result": able()}));
        self.said(&json!({"id": asked[0]["id"], "result": {"sessionId": "s1"}}));
        assert!(matches!(self.reports()[..], [Report::Ready { .. }]));
    }

    fn prompt(&mut self) -> Value {
        let id: MessageId = "msg_00000000000000000000000001".parse().unwrap();
        let message = Message { id, text: "hello".into(), mode: Mode::Followup };
        self.ask(&AgentRequest::Prompt(message)).unwrap()
    }
}

fn able() -> Value {
    json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}})
}

fn update(update: &Value) -> Value {
    json!({"method": "session/update", "params": {"update": update}})
}

#[test]
fn a_conversation_that_the_agent_lost_begins_anew_and_says_so() {
    let mut scene =
        Scene::open(Begin::Resume { provider_id: "gone".into(), interrupted: None, seed: String::new() });
    let asked = scene.said(&json!({"id": "open", "result": able()}));
    assert_eq!(asked[0]["method"], "session/load");
    assert_eq!(asked[0]["params"]["sessionId"], "gone");
    // What is told again of before is not new.
    scene.said(&update(&json!({"sessionUpdate": "tool_call", "toolCallId": "1", "rawInput": {"a": 1}})));
    let error = json!({"code": -32002, "message": "no session gone"});
    let asked = scene.said(&json!({"id": asked[0]["id"], "error": error}));
    assert_eq!(asked[0]["method"], "session/new");
    scene.said(&json!({"id": asked[0]["id"], "result": {"sessionId": "new"}}));
    let [Report::ContextReset { why }, Report::Ready { provider_id: Some(id), .. }] = scene.reports()[..]
    else {
        panic!("{:?}", scene.reports())
    };
    assert_eq!((why.as_str(), id.as_str()), ("no session gone", "new"));
}

#[test]
fn an_agent_that_wants_a_login_fails_at_once() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.said(&json!({"id": "open", "error": {"code": -32000, "message": "log in first"}}));
    assert!(matches!(scene.reports()[..], [Report::AuthFailed(_)]));
}

#[test]
fn an_agent_that_opens_nothing_says_at_once_that_it_cannot_work() {
    let error = json!({"code": -32603, "message": "no model is configured"});
    let cannot = |scene: &Scene| matches!(scene.reports()[..], [Report::CannotStart(_)]);
    let mut scene = Scene::open(Begin::Fresh);
    scene.said(&json!({"id": "open", "error": error}));
    assert!(cannot(&scene));
    let mut scene = Scene::open(Begin::Fresh);
    let asked = scene.said(&json!({"id": "open", "result": able()}));
    scene.said(&json!({"id": asked[0]["id"], "error": error}));
    assert!(cannot(&scene));
    let mut scene = Scene::open(Begin::Fresh);
    scene.said(&json!({"id": "open", "result": {"protocolVersion": 99}}));
    assert!(cannot(&scene));
}

#[test]
fn leave_is_given_by_kind_and_an_interrupt_withdraws_the_question() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    let prompt = scene.prompt();
    let asks = |id: u64| {
        let call = json!({"toolCallId": format!("c{id}"), "kind": "execute", "title": "ls", "rawInput": {"command": "ls"}});
        let options = json!([{"optionId": "x", "kind": "allow_always"}, {"optionId": "y", "kind": "allow_once"},
            {"optionId": "n", "kind": "reject_once"}]);
        json!({"id": id, "method": "session/request_permission", "params": {"toolCall": call, "options": options}})
    };
    let answer =
        |ask: &str, allow| AgentRequest::Answer { ask: ask.into(), allow, message: "because".into() };
    scene.said(&asks(0));
    let yes = scene.ask(&answer("0", true)).unwrap();
    assert_eq!(yes["result"]["outcome"]["optionId"], "y");
    assert_eq!(scene.ask(&answer("0", true)), None, "it was answered");
    scene.said(&asks(1));
    let no = scene.ask(&answer("1", false)).unwrap();
    assert_eq!(no["result"]["outcome"]["optionId"], "n");
    assert_eq!(no["result"]["outcome"]["_meta"]["message"], "because");
    scene.said(&asks(2));
    assert_eq!(scene.ask(&AgentRequest::Interrupt).unwrap()["method"], "session/cancel");
    assert!(matches!(scene.reports().last(), Some(Report::ApprovalWithdrawn { ask }) if ask == "2"));
    scene.said(&json!({"id": prompt["id"], "result": {"stopReason": "cancelled"}}));
    let last = scene.reports().pop().cloned();
    assert_eq!(last, Some(Report::TurnEnded { stop_reason: StopReason::Interrupted }));
}

#[test]
fn what_is_announced_waits_to_hear_whether_it_must_ask() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    let call =
        |kind: &str| json!({"toolCallId": "c1", "kind": kind, "title": "t", "locations": [{"path": "src"}]});
    for (kind, must_ask) in [("read", true), ("search", false)] {
        scene.said(&json!({"id": 5, "method": "_ostler/announce", "params": {"toolCall": call(kind)}}));
        let announced = scene.reports().last().cloned().cloned();
        let Some(Report::ToolAnnounced { ask, action, .. }) = announced else { panic!("{announced:?}") };
        assert_eq!(action, ostler_domain::event::Action::Read { paths: vec!["src".to_owned()] });
        let proceed = AgentRequest::Proceed { ask, must_ask };
        let told = scene.ask(&proceed).unwrap();
        assert_eq!((&told["id"], &told["result"]), (&json!(5), &json!({"mustAsk": must_ask})));
        assert_eq!(scene.ask(&proceed), None, "it was told");
    }
}

#[test]
fn a_failure_is_told_by_the_message_of_the_server() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    let prompt = scene.prompt();
    let said = r#"{"error":{"code":404,"message":"no such model","status":"NOT_FOUND"}}"#;
    scene.said(&json!({"id": prompt["id"], "error": {"code": 500, "message": said}}));
    let is_plain = |report: &&Report| matches!(report, Report::Error(said) if said == "no such model");
    assert!(scene.reports().iter().any(is_plain), "{:?}", scene.reports());
}

#[test]
fn what_an_agent_may_not_ask_is_refused_and_only_who_knows_a_nudge_is_nudged() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    assert_eq!(scene.ask(&AgentRequest::Nudge), None, "it would print that it does not know this");
    let mut scene = Scene::open(Begin::Fresh);
    let mut able = able();
    able["agentCapabilities"]["_meta"] = json!({"_ostler/ping": true});
    let asked = scene.said(&json!({"id": "open", "result": able}));
    scene.said(&json!({"id": asked[0]["id"], "result": {"sessionId": "s1"}}));
    let refused = scene.said(&json!({"id": 7, "method": "fs/read_text_file", "params": {}}));
    assert_eq!((&refused[0]["id"], &refused[0]["error"]["code"]), (&json!(7), &json!(-32601)));
    let nudge = scene.ask(&AgentRequest::Nudge).unwrap();
    scene.said(&json!({"id": nudge["id"], "error": {"code": -32601, "message": "?"}}));
    assert!(matches!(scene.reports().last(), Some(Report::Alive)));
}

#[test]
fn text_that_is_withdrawn_is_no_answer() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    let prompt = scene.prompt();
    let chunk = |message: &str, text: &str| {
        let content = json!({"type": "text", "text": text});
        update(&json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": content}))
    };
    scene.said(&chunk("m1", "half an ans"));
    scene.said(&json!({"method": "_ostler/withdrawn", "params": {"messageId": "m1"}}));
    let waiting = json!({"reason": "busy", "rateLimit": true, "retryAfterMs": 1500});
    scene.said(&json!({"method": "_ostler/waiting", "params": waiting}));
    scene.said(&chunk("m2", "the answer"));
    scene.said(&json!({"id": prompt["id"], "result": {"stopReason": "end_turn"}}));
    let told = scene.reports().into_iter().filter_map(|report| match report {
        Report::Completion(text) => Some(text.text.clone()),
        // How long the agent waits is not when the limit ends.
        Report::RateLimited { until, .. } => Some(format!("limited, until {until:?}")),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["limited, until None", "the answer"]);
}

#[test]
fn a_command_that_ended_with_a_fault_failed_though_its_call_is_called_completed() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    scene.prompt();
    for code in [0, 1] {
        let (id, input) = (code.to_string(), json!({"command": "x"}));
        let output = json!({"output": "", "metadata": {"exit": code}});
        scene.said(&update(
            &json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "sh", "rawInput": input}),
        ));
        scene.said(&update(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "rawOutput": output}),
        ));
    }
    let reports = scene.reports();
    let results = reports.iter().filter_map(|report| match report {
        Report::ToolResult(result) => Some((result.success, result.exit)),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [(true, Some(0)), (false, Some(1))]);
}

#[test]
fn a_command_that_was_ended_without_a_code_failed_and_says_why() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    scene.prompt();
    let said = "(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>";
    let output = json!({"output": said, "metadata": {"output": said, "exit": null, "truncated": false}});
    let input = json!({"command": "sleep 20"});
    scene.said(&update(
        &json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "sh", "rawInput": input}),
    ));
    scene.said(&update(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "rawOutput": output}),
    ));
    let result = scene.reports().into_iter().find_map(|report| match report {
        Report::ToolResult(result) => Some(result.clone()),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!((result.success, result.exit), (false, None));
    assert_eq!(result.output, "(no output)\n\nUser aborted the command");
}

#[test]
fn a_picture_is_told_once_however_often_it_is_said() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    scene.prompt();
    let picture = json!([{"type": "content", "content": {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}}]);
    scene.said(&update(
        &json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "shot", "rawInput": {"a": 1}}),
    ));
    scene.said(&update(
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "content": picture.clone()}),
    ));
    scene.said(&update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed",
        "content": picture, "rawOutput": {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}})));
    scene.said(&update(&json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "image", "data": "d29ybGQ=", "mimeType": "image/png"}})));
    let reports = scene.reports();
    let pictures: Vec<_> = reports
        .iter()
        .filter_map(|report| match report {
            Report::Image(shown) => Some((shown.tool_id.as_deref(), shown.image.data())),
            _ => None,
        })
        .collect();
    assert_eq!(pictures, [(Some("1"), Some(&b"hello"[..])), (None, Some(&b"world"[..]))]);
    let place = |is: &dyn Fn(&Report) -> bool| reports.iter().position(|report| is(report)).unwrap();
    let image = place(&|report| matches!(report, Report::Image(_)));
    let result = place(&|report| matches!(report, Report::ToolResult(result) if result.output.is_empty()));
    assert!(image < result, "before the result that it is in");
}

#[test]
fn a_turn_that_was_told_to_end_and_answers_nothing_was_interrupted_whatever_it_is_called() {
    let ended = |says_something: bool, is_cancelled: bool| {
        let mut scene = Scene::open(Begin::Fresh);
        scene.ready();
        let prompt = scene.prompt();
        if is_cancelled {
            scene.ask(&AgentRequest::Interrupt).unwrap();
        }
        if says_something {
            let content = json!({"type": "text", "text": "the answer"});
            scene.said(&update(&json!({"sessionUpdate": "agent_message_chunk", "content": content})));
        }
        scene.said(&json!({"id": prompt["id"], "result": {"stopReason": "end_turn"}}));
        match scene.reports().last() {
            Some(Report::TurnEnded { stop_reason }) => *stop_reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended(false, true), StopReason::Interrupted, "opencode 1.18.33");
    assert_eq!(ended(true, true), StopReason::Completed, "it was done before it heard of it");
    assert_eq!(ended(false, false), StopReason::Completed);
}

#[test]
fn words_go_into_the_turn_of_an_agent_that_hears_them_or_begin_one_of_their_own() {
    let mut scene = Scene::open(Begin::Fresh);
    let able = json!({"protocolVersion": 1, "agentCapabilities": {"_meta": {"_ostler/steer": true}}});
    let asked = scene.said(&json!({"id": "open", "result": able}));
    scene.said(&json!({"id": asked[0]["id"], "result": {"sessionId": "s1"}}));
    let words = |n: u8| {
        let id: MessageId = format!("msg_0000000000000000000000000{n}").parse().unwrap();
        Message { id, text: format!("words {n}"), mode: Mode::Steer }
    };
    let prompted = scene.prompt();
    let steered = scene.ask(&AgentRequest::Steer(words(2))).unwrap();
    assert_eq!(
        (&steered["method"], &steered["params"]["prompt"][0]["text"]),
        (&json!("_ostler/steer"), &json!("words 2"))
    );
    let started = |scene: &Scene| -> Vec<Vec<MessageId>> {
        let started = scene.reports().into_iter().filter_map(|report| match report {
            Report::TurnStarted { messages } => Some(messages.clone()),
            _ => None,
        });
        started.collect()
    };
    assert_eq!(started(&scene).len(), 1, "it has not heard it yet");
    scene.said(&json!({"id": steered["id"], "result": {}}));
    assert_eq!(started(&scene)[1], [words(2).id]);
    // It lets go of the turn before its model reads the next.
    let unread = scene.ask(&AgentRequest::Steer(words(4))).unwrap();
    let again =
        scene.said(&json!({"id": unread["id"], "error": {"code": -32603, "message": "the turn ended"}}));
    assert_eq!(again, Vec::<serde_json::Value>::new(), "it is nobody's turn to say it again");
    let is_unread =
        |report: &&&Report| matches!(report, Report::Unread { messages } if *messages == [words(4).id]);
    assert_eq!(scene.reports().iter().filter(is_unread).count(), 1);
    // The turn ends a moment before the next words come.
    let late = scene.ask(&AgentRequest::Steer(words(3))).unwrap();
    scene.said(&json!({"id": prompted["id"], "result": {"stopReason": "end_turn"}}));
    let again =
        scene.said(&json!({"id": late["id"], "error": {"code": -32603, "message": "no turn is open"}}));
    assert_eq!(
        (&again[0]["method"], &again[0]["params"]["prompt"]),
        (&json!("session/prompt"), &late["params"]["prompt"])
    );
    assert_eq!(started(&scene)[2], [words(3).id]);
    assert!(!scene.reports().iter().any(|report| matches!(report, Report::Error(_))), "nothing failed");
}

#[test]
fn an_update_that_nobody_knows_is_kept_and_decoration_is_not() {
    let mut scene = Scene::open(Begin::Fresh);
    scene.ready();
    scene.prompt();
    let opaque =
        |scene: &Scene| scene.reports().iter().filter(|one| matches!(one, Report::Opaque(_))).count();
    for kind in ["plan", "available_commands_update", "current_mode_update", "user_message_chunk"] {
        scene.said(&update(&json!({"sessionUpdate": kind})));
    }
    assert_eq!(opaque(&scene), 0);
    scene.said(&update(&json!({"sessionUpdate": "hologram", "content": "x"})));
    assert_eq!(opaque(&scene), 1);
}
