//! Providers as somebody meets them who has just installed Ostler.

use std::{fs, process::Output};

use ostler_testkit::TestHome;
use serde_json::Value;

use crate::OSTLER;

/// Nothing is installed here, whatever is on this machine.
const NOTHING: &str = "[providers.claude-code]\nprogram = \"/nowhere/claude\"\n[providers.codex]\n\
    program = \"/nowhere/codex\"\n[providers.openclaw]\nprogram = \"/nowhere/openclaw\"\n";

fn home(config: &str) -> TestHome {
    let home = TestHome::new(OSTLER);
    fs::write(home.home.config_toml(), config).unwrap();
    assert!(run(&home, &["campaign", "add", ".", "--name", "shop"]).status.success());
    home
}

/// Without the keys of whoever runs the tests.
fn run(home: &TestHome, args: &[&str]) -> Output {
    let mut command = home.command(args);
    command.env_remove("ANTHROPIC_API_KEY").env_remove("OPENAI_API_KEY").output().unwrap()
}

fn refused(output: &Output, code: i32, reason: &str) -> Value {
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{err}");
    let said: Value = serde_json::from_str(err.lines().last().unwrap_or_default()).unwrap();
    assert_eq!(said["error"]["reason"], reason, "{err}");
    said["error"].clone()
}

fn provider(home: &TestHome, args: &[&str]) -> Value {
    let all: Vec<&str> = ["run", "-d", "-o", "json"].iter().chain(args).copied().collect();
    let output = run(home, &all);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["provider"].clone()
}

#[test]
fn whoever_names_none_gets_the_only_one_that_is_ready_and_never_the_script() {
    let home = home(NOTHING);
    let said = refused(&run(&home, &["run", "-d", "hi", "-o", "json"]), 6, "PROVIDER_MISSING");
    let why = said["why"].as_str().unwrap();
    for lacks in ["claude-code lacks its program", "codex lacks its program", "openai-api lacks a key"] {
        assert!(why.contains(lacks), "{why}");
    }
    let hints = said["hint"].to_string();
    assert!(hints.contains("npm install") && hints.contains("-p script"), "{hints}");
    assert_eq!(provider(&home, &["-p", "script", "hi"]), "script", "whoever names it gets it");

    // One that is ready, but for a model that whoever asks may name.
    let api = format!("{NOTHING}[providers.openai-api]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    fs::write(home.home.config_toml(), &api).unwrap();
    let said = refused(&run(&home, &["run", "-d", "hi", "-o", "json"]), 6, "PROVIDER_MISSING");
    assert!(said["why"].as_str().unwrap().contains("openai-api lacks the name of its model"), "{said}");
    assert_eq!(provider(&home, &["-m", "small", "hi"]), "openai-api");
    fs::write(home.home.config_toml(), format!("{api}model = \"small\"\n")).unwrap();
    assert_eq!(provider(&home, &["hi"]), "openai-api");

    // Several: which, is for a person to say.
    let two = format!("{api}model = \"small\"\n[providers.\"acp:mine\"]\nprogram = \"/bin/true\"\n");
    fs::write(home.home.config_toml(), &two).unwrap();
    let said = refused(&run(&home, &["run", "-d", "hi", "-o", "json"]), 2, "INVALID_ARGUMENT");
    assert_eq!(said["why"], "there are openai-api, acp:mine");

    // The machine's, and before it the campaign's, with the campaign's model.
    fs::write(home.home.config_toml(), format!("provider = \"openai-api\"\n{two}")).unwrap();
    assert_eq!(provider(&home, &["hi"]), "openai-api");
    assert!(run(&home, &["campaign", "set", "shop", "provider=script", "model=tale"]).status.success());
    assert_eq!(provider(&home, &["hi"]), "script");
}
