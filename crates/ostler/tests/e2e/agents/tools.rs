//! Ostler's own tools in the hands of each agent's model: what it does with them is in the record.

use ostler_client::AddTicket;
use ostler_domain::{
    Event,
    ask::OutputKind,
    call::StepStarted,
    session::{Approve, Outcome},
};
use serde_json::json;

use super::stage::{Agent, Stage, results};

/// A step, an output, a ticket read and the end, without anybody being asked.
pub(super) async fn use_them(agent: Agent) {
    let stage = Stage::new(agent).await;
    let client = stage.client().await;
    let wanted = AddTicket {
        campaign: "shop".to_owned(),
        intent: "Paint the door green".to_owned(),
        external: Some("gh:shop#7".to_owned()),
        ..AddTicket::default()
    };
    client.add_ticket(wanted).await.unwrap();
    let tool =
        |name: &str, arguments: serde_json::Value| json!({"ostler": {"name": name, "arguments": arguments}});
    let session = stage
        .begin_with(
            Approve::Policy,
            &json!([
                tool("step", json!({"name": "paint", "mark": "start", "note": "first coat"})),
                tool("output", json!({"name": "report", "value": "docs/r.md", "kind": "path"})),
                tool("ticket", json!({})),
                tool("done", json!({"note": "all green"})),
                {"text": "Finished."},
            ]),
            |wanted| wanted.ticket = Some("gh:shop#7".to_owned()),
        )
        .await;
    let view = stage.ended(session).await;
    let events = stage.events(session).await;
    let results = results(&events);
    assert_eq!(view.outcome, Some(Outcome::Done), "{results:?}");
    let has = |is_it: &dyn Fn(&Event) -> bool| events.iter().any(|recorded| is_it(&recorded.event));
    let step = StepStarted { name: "paint".to_owned(), note: "first coat".to_owned() };
    assert!(has(&|event| *event == Event::StepStarted(step.clone())), "{results:?}");
    assert!(
        has(&|event| matches!(event, Event::OutputAdded(output)
            if output.kind == OutputKind::Path && output.value == "docs/r.md")),
        "{results:?}"
    );
    assert!(
        has(&|event| matches!(event, Event::DoneReported(done) if done.note == "all green")),
        "{results:?}"
    );
    assert!(!has(&|event| matches!(event, Event::ApprovalRequested(_))), "nobody is asked");
    assert!(results.len() == 4 && results.iter().all(|result| result.success), "{results:?}");
    let read =
        stage.model.seen().iter().any(|seen| seen.body.to_string().contains("gh:shop#7 · task · running"));
    assert!(read, "its model reads the ticket: {results:?}");
}

/// Switched off, its model does not hear of them.
pub(super) async fn not_where_they_are_switched_off(mut agent: Agent) {
    agent.config.push_str("\ntools = false\n");
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"text": "Hello."}])).await;
    stage.turns(session, 1).await;
    let offered: String = stage.model.seen().iter().map(|seen| seen.body["tools"].to_string()).collect();
    assert!(offered.contains("description") && !offered.contains("ostler"), "{offered}");
}
