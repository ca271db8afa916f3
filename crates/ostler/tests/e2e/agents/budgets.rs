//! What a used-up budget does to real agents that nobody watches: they say what was paid for, and make no further call.

use ostler_domain::{
    Budget, SessionId,
    budget::WhenUsedUp,
    session::{Approve, Outcome},
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
