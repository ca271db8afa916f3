//! `provider test --ask` with the real programs: what it says of them is what they do.

use ostler_domain::provider::trial::COMMAND;
use serde_json::{Value, json};

use super::stage::{Agent, Stage};

/// One that answers, runs the command it is told to run, and asks for leave before.
pub(super) async fn says_what_works(mut agent: Agent) {
    if let Some(model) = agent.model {
        agent.config.push_str(&format!("\nmodel = \"{model}\"\n"));
    }
    let stage = Stage::new(agent).await;
    stage.model.answer_others(&json!([
        {"shell": COMMAND, "usage": {"input": 1000, "cached": 400, "output": 50}},
        {"text": "ready", "usage": {"input": 1200, "cached": 1000, "output": 20}},
    ]));
    let output =
        stage.home.run(&["provider", "test", stage.agent.provider, "-C", "shop", "--ask", "-o", "json"]);
    assert!(output.status.success(), "{output:?}");
    let tried: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&tried["ok"], &tried["net_mode"]), (&json!(true), &json!("provider")), "{tried}");
    let asked = &tried["asked"];
    assert_eq!((&asked["tool_call"], &asked["approval"]), (&json!("yes"), &json!("yes")), "{tried}");
    assert!(asked["answer"].as_str().is_some_and(|answer| answer.contains("ready")), "{tried}");
    assert!(asked["answered_ms"].as_u64().is_some_and(|took| took < 60_000), "{tried}");
    let sent = serde_json::to_value(stage.model.sent()).unwrap();
    assert_eq!(asked["wire"], sent, "{tried}");
    if stage.agent.reports_all {
        assert_eq!(asked["report"], sent, "{tried}");
    }
    assert!(tried["key"].as_str().is_some_and(|key| key.starts_with("the file ")), "{tried}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains(super::stage::KEY), "never the key");
    // It leaves nothing behind, and is in no list.
    assert!(!std::path::Path::new("/tmp/ostler-trial").exists());
    let listed = stage.home.run(&["ls", "-a", "-o", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["sessions"], json!([]), "{listed}");
}
