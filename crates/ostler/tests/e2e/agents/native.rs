//! Going on without Ostler: the provider's own program takes up what a session left.

use std::process::{Command, Stdio};

use ostler_domain::{Reason, session::Approve};
use serde_json::json;

use super::stage::{Agent, KEY, Stage, script};

/// Runs the command that `resume --native` prints, and looks whether the model is told what had been said.
pub(super) async fn goes_on_alone(agent: Agent, program: &std::path::Path, url: &str, key: &str) {
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"text": "The tulips are yellow."}])).await;
    stage.turns(session, 1).await;
    let client = stage.client().await;
    let who = session.to_string();
    let refused = client.native_command(&who).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::ConversationBusy, "while it lives nobody else writes");
    client.stop_session(&who, false).await.unwrap();
    stage.ended(session).await;

    let native = client.native_command(&who).await.unwrap();
    let output = Command::new(program)
        .args(&native.words[1..])
        .args(["-p", &script(&json!([{"text": "Alone."}]))])
        .current_dir(&native.working_dir)
        .envs(&native.env)
        .env(url, stage.model.origin())
        .env(key, KEY)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Alone."), "{said} {}", String::from_utf8_lossy(&output.stderr));
    let last = stage.model.seen().pop().unwrap().body.to_string();
    assert!(last.contains("The tulips are yellow."), "it remembers: {last}");
}
