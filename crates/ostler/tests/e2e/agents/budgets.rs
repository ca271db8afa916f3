//! What a used-up budget does to real agents, whether somebody watches or not: they say what was paid for, and make no
//! further call.

use ostler_domain::{
    Budget, Event, SessionId,
    budget::WhenUsedUp,
    session::{Approve, Attention, Outcome, View},
};
use serde_json::{Value, json};

use super::stage::{Agent, Stage, completions};

/// Each of the model's answers takes more; what an agent asks for beside, such as a title, does not.
const BUDGET: Budget = Budget { tokens: Some(500), dollars: None, when_used_up: WhenUsedUp::Stop };

async fn begin(stage: &Stage, steps: &Value) -> SessionId {
    let unwatched = |wanted: &mut ostler_client::CreateSession| {
        wanted.budget = Some(BUDGET);
        wanted.ends_with_turn = true;
    };
    stage.begin_with(Approve::All, steps, unwatched).await
}

/// The call that uses up the budget brings the answer, which is said before the session ends.
pub(super) async fn last_call(agent: Agent) {
    let stage = Stage::new(agent).await;
    let little = json!({"input": 10, "output": 2});
    let steps = json!([{"text": "All is done.", "usage": {"input": 600, "output": 40}, "aside": little}]);
    // Once may be luck.
    for _ in 0..3 {
        let session = begin(&stage, &steps).await;
        let view = stage.ended(session).await;
        assert_eq!(view.outcome, Some(Outcome::Budget), "{}", view.evidence);
        assert_eq!(completions(&stage.events(session).await), ["All is done."], "{}", view.evidence);
    }
}

/// The same where a person is asked: it is said while they are, and the session is held all along.
pub(super) async fn last_call_asked_for(agent: Agent) {
    let stage = Stage::new(agent).await;
    let little = json!({"input": 10, "output": 2});
    let steps = json!([{"text": "All is done.", "usage": {"input": 600, "output": 40}, "aside": little}]);
    for _ in 0..3 {
        let session = begin_watched(&stage, &steps).await;
        stage.sees(session, "the end of its turn", |event| matches!(event, Event::TurnEnded(_))).await;
        assert_eq!(completions(&stage.events(session).await), ["All is done."]);
        stage.reaches(session, "the hold", is_held).await;
        let raised = stage.home.run(&["resume", &session.to_string(), "--budget", "9000"]);
        assert!(raised.status.success(), "{raised:?}");
        stage.turns(session, 1).await;
    }
}

/// The call that it wants next waits for whoever allows more, and begins then.
pub(super) async fn call_asked_for(agent: Agent) {
    let stage = Stage::new(agent).await;
    let little = json!({"input": 10, "output": 2});
    let steps = json!([
        {"text": "Look.", "shell": "echo made > made.txt",
            "usage": {"input": 600, "output": 40}, "aside": little},
        {"text": "Made.", "usage": {"input": 700, "output": 40}},
    ]);
    let session = begin_watched(&stage, &steps).await;
    stage.reaches(session, "the hold", is_held).await;
    let stands_still =
        |event: &Event| matches!(event, Event::WatchdogFired(fired) if fired.watchdog.is_of_a_budget());
    stage.sees(session, "it to stand still", stands_still).await;
    assert_eq!(stage.file("made.txt").as_deref(), Some("made\n"), "its command was not cut short");
    assert!(!completions(&stage.events(session).await).contains(&"Made.".to_owned()));
    let raised = stage.home.run(&["resume", &session.to_string(), "--budget", "9000"]);
    assert!(raised.status.success(), "{raised:?}");
    let view = stage.turns(session, 1).await;
    assert_eq!(view.last_completion.as_deref(), Some("Made."), "{}", view.evidence);
    assert_eq!(view.usage.budgeted(), stage.model.sent().budgeted());
}

async fn begin_watched(stage: &Stage, steps: &Value) -> SessionId {
    let watched = |wanted: &mut ostler_client::CreateSession| {
        wanted.budget = Some(Budget { when_used_up: WhenUsedUp::Hold, ..BUDGET });
    };
    stage.begin_with(Approve::All, steps, watched).await
}

fn is_held(view: &View) -> bool {
    view.attention == Some(Attention::BudgetHold)
}

/// What its call asked for is done, and the next call does not begin.
pub(super) async fn call_beyond(agent: Agent) {
    let stage = Stage::new(agent).await;
    let little = json!({"input": 10, "output": 2});
    let steps = json!([
        {"text": "Look.", "shell": "sleep 1; echo made > made.txt",
            "usage": {"input": 600, "output": 40}, "aside": little},
        {"text": "Made.", "usage": {"input": 700, "output": 40}},
    ]);
    let session = begin(&stage, &steps).await;
    let view = stage.ended(session).await;
    assert_eq!(view.outcome, Some(Outcome::Budget), "{}", view.evidence);
    assert_eq!(stage.file("made.txt").as_deref(), Some("made\n"), "its command was not cut short");
    assert!(!completions(&stage.events(session).await).contains(&"Made.".to_owned()));
    assert_eq!(view.usage.budgeted(), stage.model.sent().budgeted());
}
