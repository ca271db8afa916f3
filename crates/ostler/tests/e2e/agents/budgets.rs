//! What a used-up budget does to real agents: the call that uses it up may be the last of its work, or not.

use ostler_domain::{
    Budget, Event, Kind, SessionId,
    budget::WhenUsedUp,
    session::{Approve, Attention, Outcome},
};
use serde_json::{Value, json};

use super::stage::{Agent, Stage, completions};

/// Each of the model's answers takes more.
const TOKENS: u64 = 500;

async fn begin(stage: &Stage, when_used_up: WhenUsedUp, ends_with_turn: bool, steps: &Value) -> SessionId {
    let with_a_budget = |wanted: &mut ostler_client::CreateSession| {
        wanted.budget = Some(Budget { tokens: Some(TOKENS), dollars: None, when_used_up });
        wanted.ends_with_turn = ends_with_turn;
    };
    stage.begin_with(Approve::All, steps, with_a_budget).await
}

async fn kinds(stage: &Stage, session: SessionId) -> Vec<Kind> {
    stage.events(session).await.iter().map(|recorded| recorded.event.kind()).collect()
}

/// The call that uses up the budget is the last of its turn: the answer is there, whoever watches.
pub(super) async fn last_call(agent: Agent) {
    let stage = Stage::new(agent).await;
    let steps = json!([{"text": "All is done.", "usage": {"input": 600, "output": 40}}]);
    for when_used_up in [WhenUsedUp::Stop, WhenUsedUp::Stop, WhenUsedUp::Hold, WhenUsedUp::Stop] {
        let session = begin(&stage, when_used_up, true, &steps).await;
        let view = stage.ended(session).await;
        let events = stage.events(session).await;
        let told = format!("{when_used_up:?}: {}", view.evidence);
        assert_eq!(view.outcome, Some(Outcome::Done), "{told}");
        assert_eq!(completions(&events), ["All is done."], "{told}");
        let kinds = kinds(&stage, session).await;
        assert!(kinds.contains(&Kind::BudgetExceeded) && !kinds.contains(&Kind::SessionHeld), "{told}");
    }
}

/// The work wants another call: that one is held, and what was begun before is brought to its end.
pub(super) async fn call_beyond(agent: Agent) {
    let stage = Stage::new(agent).await;
    let steps = |file: &str| {
        json!([
            {"text": "Look.", "shell": format!("sleep 1; echo made > {file}"), "usage": {"input": 600, "output": 40}},
            {"text": "Made.", "usage": {"input": 700, "output": 40}},
        ])
    };
    let session = begin(&stage, WhenUsedUp::Stop, true, &steps("one.txt")).await;
    let view = stage.ended(session).await;
    assert_eq!(view.outcome, Some(Outcome::Budget), "{}", view.evidence);
    assert_eq!(stage.file("one.txt").as_deref(), Some("made\n"), "its command was not cut short");
    let calls = stage.model.seen().len();
    assert_eq!(view.usage.budgeted(), stage.model.sent().budgeted());

    let session = begin(&stage, WhenUsedUp::Hold, true, &steps("two.txt")).await;
    let is_held = |view: &ostler_domain::session::View| view.attention == Some(Attention::BudgetHold);
    let view = stage.reaches(session, "a budget that holds", is_held).await;
    assert_eq!(stage.file("two.txt").as_deref(), Some("made\n"));
    assert!(view.evidence.contains("of 500 tokens used"), "{}", view.evidence);
    assert_eq!(stage.model.seen().len(), 2 * calls, "no call went beyond it");
    let resumed = stage.home.run(&["resume", &session.to_string(), "--budget", "100k"]);
    assert!(resumed.status.success(), "{resumed:?}");
    let view = stage.ended(session).await;
    assert_eq!(view.outcome, Some(Outcome::Done), "{}", view.evidence);
    assert_eq!(view.last_completion.as_deref(), Some("Made."));
    let events = stage.events(session).await;
    let held: Vec<u32> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::CallsHeld(calls) => Some(calls.held),
            _ => None,
        })
        .collect();
    assert_eq!(held.first(), Some(&1), "{held:?}");
}

/// A session that stays has done what it was told: it is idle, and the next message is what would use more.
pub(super) async fn stays(agent: Agent) {
    let stage = Stage::new(agent).await;
    let steps = json!([{"text": "All is done.", "usage": {"input": 600, "output": 40}}]);
    let session = begin(&stage, WhenUsedUp::Hold, false, &steps).await;
    stage.turns(session, 1).await;
    let calls = stage.model.seen().len();
    let view =
        stage.say(session, &json!([{"text": "And more.", "usage": {"input": 600, "output": 40}}])).await;
    assert_eq!(view.attention, Some(Attention::BudgetHold), "{}", view.evidence);
    let resumed = stage.home.run(&["resume", &session.to_string(), "--budget", "100k"]);
    assert!(resumed.status.success(), "{resumed:?}");
    stage.turns(session, 2).await;
    assert_eq!(completions(&stage.events(session).await), ["All is done.", "And more."]);
    assert!(stage.model.seen().len() > calls);
}
