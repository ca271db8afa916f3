//! What a project's people tell every agent reaches its model, also where the program is not let to read the project's
//! settings.

use std::fs;

use ostler_domain::session::Approve;
use serde_json::json;

use super::stage::{Agent, Stage};

const RULE: &str = "Every function of this shop is named after a fish.";

pub(super) async fn reach_the_model(agent: Agent, file: &str) {
    let stage = Stage::new(agent).await;
    fs::write(stage.home.campaign_dir().join(file), format!("# Rules\n\n{RULE}\n")).unwrap();
    let session = stage.begin(Approve::All, &json!([{"text": "Understood."}])).await;
    stage.turns(session, 1).await;
    let seen = stage.model.seen();
    let heard = seen.iter().any(|seen| seen.body.to_string().contains(RULE));
    assert!(heard, "the model is told what {file} says: {:#?}", seen.last().map(|seen| &seen.body));
    stage.client().await.stop_session(&session.to_string(), true).await.unwrap();
    stage.ended(session).await;
}
