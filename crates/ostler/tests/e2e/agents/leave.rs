//! What an agent would do unasked, where a rule or a person has a word in it.

use std::{fs, path::Path};

use ostler_domain::{
    Event, Recorded,
    event::Answer,
    session::{Approve, View},
};
use serde_json::{Value, json};

use super::stage::{Agent, Stage, results};

/// A command that only looks.
pub(super) async fn running(agent: Agent) {
    let stage = Stage::new(agent).await;
    let rules = ["approve.rule+=deny run cat *"].map(str::to_owned).to_vec();
    stage.client().await.set_campaign("shop", rules).await.unwrap();
    fs::write(stage.home.campaign_dir().join("open.txt"), "a heron\n").unwrap();
    let steps = json!([{"shell": "ls open.txt"}, {"shell": "cat open.txt"}, {"text": "so be it"}]);
    let session = stage.begin(Approve::Policy, &steps).await;
    stage.turns(session, 1).await;
    let events = stage.events(session).await;
    let ran: Vec<_> =
        results(&events).iter().map(|result| (result.success, result.output.contains("rule 1"))).collect();
    assert_eq!(ran, [(true, false), (false, true)], "{events:#?}");
    assert_eq!(answers(&events), [(Answer::Denied, Some(1))]);
}

/// `read` makes the step in which the agent's own tool reads a file.
pub(super) async fn reading(agent: Agent, asks_for_all: bool, read: impl Fn(&Path) -> Value) {
    let stage = Stage::new(agent).await;
    let file = |name: &str| stage.home.campaign_dir().join(name);
    for name in ["open.txt", "closed.txt"] {
        fs::write(file(name), "a heron\n").unwrap();
    }
    let rules = ["approve.rule+=deny read closed.txt"].map(str::to_owned).to_vec();
    stage.client().await.set_campaign("shop", rules).await.unwrap();
    let steps = json!([read(&file("open.txt")), read(&file("closed.txt")), {"text": "so be it"}]);
    let session = stage.begin(Approve::Policy, &steps).await;
    stage.turns(session, 1).await;
    let events = stage.events(session).await;
    let read_back: Vec<_> =
        results(&events).iter().map(|result| (result.success, result.output.contains("a heron"))).collect();
    assert_eq!(read_back, [(true, true), (false, false)], "{events:#?}");
    let answers_of =
        |answer: Answer| answers(&events).into_iter().filter(|(given, _)| *given == answer).collect();
    let (denied, allowed): (Vec<_>, Vec<_>) = (answers_of(Answer::Denied), answers_of(Answer::Allowed));
    assert_eq!(denied, [(Answer::Denied, Some(1))]);
    // Who cannot be told to ask only then is allowed the rest by what is built in.
    assert_eq!(allowed.len(), usize::from(asks_for_all));

    // A person answers everything, once.
    let session = stage.begin(Approve::Ask, &json!([read(&file("open.txt")), {"text": "so be it"}])).await;
    stage.answer(session, true).await;
    let is_over =
        |view: &View| view.turns == 1 && view.approvals_open.is_empty() && view.last_completion.is_some();
    stage.reaches(session, "the turn's end", is_over).await;
    let events = stage.events(session).await;
    assert_eq!(answers(&events), [(Answer::Allowed, None)]);
    assert!(results(&events)[0].output.contains("a heron"), "{events:#?}");
}

/// How each request was answered, and by which rule.
fn answers(events: &[Recorded]) -> Vec<(Answer, Option<u32>)> {
    let answers = events.iter().filter_map(|recorded| match &recorded.event {
        Event::ApprovalAnswered(answered) => {
            Some((answered.answer, answered.rules.first().and_then(|rule| rule.number)))
        }
        _ => None,
    });
    answers.collect()
}
