//! Words within a turn: a person's into it, an agent's to a person, and those of the helpers that an agent has.

use std::time::Duration;

use ostler_client::SendMessage;
use ostler_domain::{
    Event, MessageId, Mode, Recorded, SessionId,
    event::{Answer, AskKind, UsageSource},
    session::{Approve, Attention, Outcome},
};
use ostler_testkit::wait;
use serde_json::json;

use super::stage::{Agent, Stage, said, script};

/// What is said into an open turn is read in it, and begins none of its own.
pub(super) async fn steer(agent: Agent) {
    let stage = Stage::new(agent).await;
    steer_on(&stage).await;
}

/// The same for a stage on which more is to happen.
pub(super) async fn steer_on(stage: &Stage) -> SessionId {
    let until_go = "touch begun; while [ ! -e go ]; do sleep 0.05; done";
    let steps = json!([
        {"text": "Wait.", "shell": until_go, "usage": {"input": 100, "output": 5}},
        {"text": "Done."},
    ]);
    let session = stage.begin(Approve::All, &steps).await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("begun").is_some());
    stage.sees(session, "the call", |event| matches!(event, Event::AgentToolCall(_))).await;
    let message = SendMessage {
        who: session.to_string(),
        text: "Mind the heron.".to_owned(),
        mode: Some(Mode::Steer),
        ..SendMessage::default()
    };
    let sent = stage.client().await.send_message(message).await.unwrap().sent().unwrap();
    let id = sent.message;
    stage
        .sees(
            session,
            "the words on their way while the turn is open",
            |event| matches!(event, Event::MessageDelivered(delivered) if delivered.id == id),
        )
        .await;
    assert!(!receipts(&stage.events(session).await, id).is_empty(), "it is sent at once");
    std::fs::write(stage.home.campaign_dir().join("go"), "").unwrap();
    let view = stage.turns(session, 1).await;
    let events = stage.events(session).await;
    let began = events.iter().filter(|recorded| matches!(recorded.event, Event::TurnStarted(_))).count();
    assert_eq!(began, 1, "it begins no turn of its own");
    let heard = stage.model.seen().last().unwrap().body.to_string();
    assert!(heard.contains("Mind the heron."), "its model reads it in the same turn: {heard}");
    assert_eq!(receipts(&events, id), ["accepted", "sent", "delivered", "seen", "answered"]);
    assert_eq!(view.usage, stage.model.sent());
    session
}

/// What is said into a turn that is interrupted before the model has read it is read in the next one, and no receipt says
/// anything else.
pub(super) async fn steer_and_interrupt(agent: Agent) {
    let stage = Stage::new(agent).await;
    let steps = json!([
        {"text": "Wait.", "shell": "touch begun; sleep 6543", "usage": {"input": 100, "output": 5}},
        {"text": "Done."},
    ]);
    let session = stage.begin(Approve::All, &steps).await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("begun").is_some());
    stage.sees(session, "the call", |event| matches!(event, Event::AgentToolCall(_))).await;
    let message = SendMessage {
        who: session.to_string(),
        text: "Mind the heron.".to_owned(),
        mode: Some(Mode::Steer),
        ..SendMessage::default()
    };
    let client = stage.client().await;
    let id = client.send_message(message).await.unwrap().sent().unwrap().message;
    let is_delivered =
        |event: &Event| matches!(event, Event::MessageDelivered(delivered) if delivered.id == id);
    stage.sees(session, "the words on their way", is_delivered).await;
    // It has answered that it took them, which is not that its model has read them.
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.interrupt_session(&session.to_string()).await.unwrap();
    stage.turns(session, 2).await;
    let heard = stage.model.seen().last().unwrap().body.to_string();
    assert!(heard.contains("Mind the heron."), "its model reads it: {heard}");
    let events = stage.events(session).await;
    let receipts = receipts(&events, id);
    assert_eq!(receipts[..3], ["accepted", "sent", "delivered"], "{receipts:?}");
    assert_eq!(receipts[receipts.len() - 2..], ["seen", "answered"], "{receipts:?}");
    assert_eq!(receipts.iter().filter(|receipt| **receipt == "answered").count(), 1, "{receipts:?}");
    let place =
        |is_it: &dyn Fn(&Event) -> bool| events.iter().position(|recorded| is_it(&recorded.event)).unwrap();
    let interrupted = place(&|event| matches!(event, Event::TurnEnded(_)));
    let seen = place(&|event| matches!(event, Event::MessageSeen(seen) if seen.id == id));
    assert!(interrupted < seen, "nobody had read it before: {receipts:?}");
}

/// What is said into a turn that a stop ends before the model has read it waits for who goes on.
pub(super) async fn steer_and_stop(agent: Agent) {
    let stage = Stage::new(agent).await;
    let steps = json!([
        {"text": "Wait.", "shell": "touch begun; sleep 6543", "usage": {"input": 100, "output": 5}},
        {"text": "Done."},
    ]);
    let session = stage.begin(Approve::All, &steps).await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("begun").is_some());
    stage.sees(session, "the call", |event| matches!(event, Event::AgentToolCall(_))).await;
    let message = SendMessage {
        who: session.to_string(),
        text: "Mind the heron.".to_owned(),
        mode: Some(Mode::Steer),
        ..SendMessage::default()
    };
    let client = stage.client().await;
    let id = client.send_message(message).await.unwrap().sent().unwrap().message;
    let is_delivered =
        |event: &Event| matches!(event, Event::MessageDelivered(delivered) if delivered.id == id);
    stage.sees(session, "the words on their way", is_delivered).await;
    // It has answered that it took them, which is not that its model has read them.
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.stop_session(&session.to_string(), false).await.unwrap();
    let view = stage.ended(session).await;
    assert_eq!(view.outcome, Some(Outcome::Stopped), "{}", view.evidence);
    let events = stage.events(session).await;
    assert_eq!(receipts(&events, id), ["accepted", "sent", "delivered", "returned"]);
    let resumed = stage.home.run(&["resume", &session.to_string()]);
    assert!(resumed.status.success(), "{resumed:?}");
    let is_heard = || stage.model.seen().last().unwrap().body.to_string().contains("Mind the heron.");
    wait::until("the model to read it", Duration::from_secs(120), is_heard);
    assert!(
        stage.model.seen().last().unwrap().body.to_string().contains("sleep 6543"),
        "it has kept its turn"
    );
}

/// What became of a message, in its order.
fn receipts(events: &[Recorded], id: MessageId) -> Vec<&'static str> {
    let receipt = |recorded: &Recorded| match &recorded.event {
        Event::MessageAccepted(accepted) if accepted.message.id == id => Some("accepted"),
        Event::MessageSent(sent) if sent.id == id => Some("sent"),
        Event::MessageDelivered(delivered) if delivered.id == id => Some("delivered"),
        Event::MessageSeen(seen) if seen.id == id => Some("seen"),
        Event::MessageAnswered(answered) if answered.id == id => Some("answered"),
        Event::MessageUnknown(unknown) if unknown.id == id => Some("unknown"),
        Event::MessageReturned(returned) if returned.id == id => Some("returned"),
        _ => None,
    };
    events.iter().filter_map(receipt).collect()
}

/// A question of the agent waits for a person, and what that one sends is the answer.
pub(super) async fn question(agent: Agent) {
    let stage = Stage::new(agent).await;
    let colours = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
    let asked = json!({"questions": [
        {"question": "Which colour is the door?", "header": "Door", "multiSelect": false, "options": colours},
    ]});
    let steps = json!([
        {"tools": [{"name": "AskUserQuestion", "arguments": asked}], "usage": {"input": 100, "output": 5}},
        {"text": "Painted.", "usage": {"input": 200, "output": 6}},
    ]);
    // Nobody's leave is wanted for it, so no rule and no mode answers it.
    for (turn, approve) in [Approve::All, Approve::Policy].into_iter().enumerate() {
        let session = stage.begin(approve, &steps).await;
        let waits = |view: &ostler_domain::session::View| view.attention == Some(Attention::WaitingInput);
        let view = stage.reaches(session, "the question", waits).await;
        assert!(view.evidence.contains("Which colour is the door?"), "{}", view.evidence);
        let listed = stage.home.run(&["approval"]);
        let listed =
            String::from_utf8_lossy(&listed.stdout).into_owned() + &String::from_utf8_lossy(&listed.stderr);
        assert!(listed.contains("Which colour is the door?") && listed.contains("ostler send "), "{listed}");
        let answered = stage.home.run(&["send", &session.to_string(), "Neither: green"]);
        assert!(answered.status.success(), "{answered:?}");
        let view = stage.turns(session, 1).await;
        assert_eq!(view.last_completion.as_deref(), Some("Painted."), "{approve:?}");
        let heard = stage.model.seen().last().unwrap().body["messages"].to_string();
        assert!(heard.contains("Neither: green"), "its model reads the answer: {heard}");
        let events = stage.events(session).await;
        let kinds: Vec<_> = events
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::ApprovalRequested(request) => Some(request.kind),
                _ => None,
            })
            .collect();
        assert_eq!(kinds, [AskKind::Question]);
        let given = events.iter().find_map(|recorded| match &recorded.event {
            Event::ApprovalAnswered(given) => Some((given.answer, given.message.clone())),
            _ => None,
        });
        assert_eq!(given, Some((Answer::Allowed, "Neither: green".to_owned())));
        assert_eq!(stage.model.seen().len(), 2 * (turn + 1), "two calls for each");
    }
}

/// What a helper of the agent's own does is marked as that helper's, and its tokens are counted once.
pub(super) async fn subagent(agent: Agent) {
    let stage = Stage::new(agent).await;
    let task = script(&json!([
        {"text": "I look.", "shell": "echo counted > counted.txt", "usage": {"input": 300, "cached": 100, "output": 30}},
        {"text": "There are two.", "usage": {"input": 400, "cached": 300, "output": 40}},
    ]));
    let arguments = json!({"description": "count them", "prompt": task, "subagent_type": "general-purpose",
        "run_in_background": false});
    let session = stage
        .begin(
            Approve::All,
            &json!([
                {"tools": [{"name": "Agent", "arguments": arguments}], "usage": {"input": 1000, "output": 10}},
                {"text": "Two, says the helper.", "usage": {"input": 1100, "cached": 1000, "output": 20}},
            ]),
        )
        .await;
    let view = stage.turns(session, 1).await;
    assert_eq!(stage.file("counted.txt").as_deref(), Some("counted\n"));
    let events = stage.events(session).await;
    let calls: Vec<_> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::AgentToolCall(call) => Some(call.clone()),
            _ => None,
        })
        .collect();
    let helper = calls.iter().find(|call| call.subagent.is_none()).expect("the call that starts the helper");
    let own: Vec<_> = calls.iter().filter(|call| call.subagent.is_some()).collect();
    assert_eq!((calls.len(), own.len()), (2, 1), "{calls:#?}");
    assert_eq!(own[0].subagent.as_deref(), Some(helper.tool_id.as_str()));
    assert!(own[0].input.contains("counted.txt"), "{own:?}");
    assert_eq!(view.last_completion.as_deref(), Some("Two, says the helper."));
    let marked = events.iter().any(|recorded| {
        matches!(&recorded.event, Event::AgentToolResult(result)
            if result.subagent.as_deref() == Some(helper.tool_id.as_str()) && result.success)
    });
    assert!(marked, "the result is the helper's too");
    let sent = stage.model.sent();
    assert_eq!(sent.output, 100, "four calls: {:#?}", stage.model.seen().len());
    assert_eq!(view.usage, sent, "each token once");
    assert_eq!((said(&events, UsageSource::Wire), said(&events, UsageSource::Report)), (sent, sent));
}
