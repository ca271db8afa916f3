//! One mission with two real agent programs.

use std::fs;

use ostler_testkit::{FakeOpenai, TestHome, programs};
use serde_json::{Value, json};

use crate::{
    OSTLER,
    missions::{assignment, json_of, ok, plan},
};

fn member(name: &str, provider: &str, model: &str, more: &str, steps: &Value) -> String {
    format!(
        "[[agents]]\nname = \"{name}\"\nprovider = \"{provider}\"\nmodel = \"{model}\"\n{more}\ntask = '''\n@@fake {steps}\n'''\n"
    )
}

#[tokio::test]
async fn two_real_agents_do_one_mission() {
    let who = "two_real_agents_do_one_mission";
    let (Some(claude), Some(codex)) = (programs::find("claude", who), programs::find("codex", who)) else {
        return;
    };
    let (home, model) = (TestHome::new(OSTLER), FakeOpenai::start());
    fs::create_dir_all(home.home.config()).unwrap();
    let key = home.path().join("key");
    fs::write(&key, "sk-dummy-of-a-test\n").unwrap();
    let section = |name: &str, url: &str, program: &std::path::Path| {
        let (key, program) = (key.display(), program.display());
        format!(
            "[providers.{name}]\nbase_url = \"{url}\"\napi_key_file = \"{key}\"\nprogram = \"{program}\"\n"
        )
    };
    let config =
        section("claude-code", &model.origin(), &claude) + &section("codex", &model.base_url(), &codex);
    fs::write(home.home.config_toml(), config).unwrap();
    home.begin().await;

    let build = json!([
        {"text": "Writing.", "shell": "echo built > built.txt && ostler output where built.txt --kind path", "usage": {"input": 900, "output": 30}},
        {"text": "It is built.", "usage": {"input": 1000, "output": 10}},
    ]);
    let review = json!([
        {"text": "Looking.", "shell": "cat built.txt > reviewed.txt", "usage": {"input": 800, "output": 20}},
        {"text": "It is fine.", "usage": {"input": 850, "output": 5}},
    ]);
    let head = "objective = \"Build and review\"\nstrategy = \"pipeline\"\nname = \"two\"\n[defaults]\napprove = \"all\"\n";
    let agents = [
        member("build", "claude-code", "claude-sonnet-5", "stage = 1", &build),
        member("review", "codex", "gpt-5.5", "stage = 2", &review),
    ];
    plan(&home, "plan.toml", head, &agents);
    let out = ok(&home, &["mission", "start", "plan.toml"]);
    assert!(out.contains("2 of 2 completed"), "{out}");
    assert_eq!(fs::read_to_string(home.campaign_dir().join("reviewed.txt")).unwrap(), "built\n");
    let whole = json_of(&home, &["mission", "show", "two"]);
    let session = |name: &str| {
        let id = assignment(&whole, name)["session"].as_str().unwrap().to_owned();
        json_of(&home, &["show", &id])
    };
    assert_eq!(session("build")["provider"], "claude-code");
    let review = session("review");
    assert_eq!(review["provider"], "codex");
    // The second was told what the first had come to.
    let log = ok(&home, &["events", "--session", review["id"].as_str().unwrap(), "-o", "jsonl"]);
    assert!(log.contains("It is built.") && log.contains("where (path): built.txt"), "{log}");
    let sent = model.sent();
    assert_eq!(
        whole["usage"]["output"],
        json!(sent.output),
        "what is shown is what the server sent: {whole}"
    );
}
