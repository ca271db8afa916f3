//! opencode, over the Agent Client Protocol: configuration alone. Not put to the test yet: silence and a tool that hangs,
//! which are found and not always interrupted, a context that is full, and the census.

use ostler_testkit::programs;
use serde_json::json;

use super::{limits, stage::Agent, suite};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("opencode", who)?;
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model",
        "permission": {"bash": "ask", "edit": "ask"},
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{base_url}", "apiKey": "{key}"},
            "models": {"fake-model": {"tool_call": true, "limit": {"context": 120_000, "output": 8192}}},
        }},
    });
    Some(Agent {
        provider: "acp:opencode",
        model: None,
        config: format!(
            "program = \"{}\"\n[providers.\"acp:opencode\".env]\nOPENCODE_CONFIG_CONTENT = '{config}'\n\
             OPENCODE_DISABLE_AUTOUPDATE = \"1\"\nOPENCODE_DISABLE_MODELS_FETCH = \"1\"\n\
             OPENCODE_DISABLE_LSP_DOWNLOAD = \"1\"\nOPENCODE_DISABLE_DEFAULT_PLUGINS = \"1\"\n",
            program.display()
        ),
        settings: &[],
        adds_version: false,
        reports_all: false,
        shows_output: true,
        process: "opencode acp",
    })
}

#[tokio::test]
async fn two_turns_and_a_file() {
    if let Some(agent) = agent("two_turns_and_a_file") {
        suite::two_turns(agent).await;
    }
}

#[tokio::test]
async fn an_approval_allowed_and_denied() {
    if let Some(agent) = agent("an_approval_allowed_and_denied") {
        suite::approvals(agent).await;
    }
}

#[tokio::test]
async fn a_rule_answers() {
    if let Some(agent) = agent("a_rule_answers") {
        suite::rules(agent).await;
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_command() {
    if let Some(agent) = agent("an_interrupt_ends_the_command") {
        suite::interrupt(agent).await;
    }
}

#[tokio::test]
async fn the_daemon_dies_in_mid_turn() {
    if let Some(agent) = agent("the_daemon_dies_in_mid_turn") {
        suite::daemon_dies(agent).await;
    }
}

#[tokio::test]
async fn the_agent_dies_and_is_resumed() {
    if let Some(agent) = agent("the_agent_dies_and_is_resumed") {
        suite::agent_dies(agent).await;
    }
}

#[tokio::test]
async fn the_agent_dies_in_a_turn_and_goes_on() {
    if let Some(agent) = agent("the_agent_dies_in_a_turn_and_goes_on") {
        suite::agent_dies_in_a_turn(agent).await;
    }
}

#[tokio::test]
async fn a_429_and_a_500() {
    if let Some(agent) = agent("a_429_and_a_500") {
        suite::failures(agent).await;
    }
}

#[tokio::test]
async fn endless_retries_are_interrupted() {
    if let Some(agent) = agent("endless_retries_are_interrupted") {
        limits::endless_retries(agent).await;
    }
}

#[tokio::test]
async fn a_rate_limit_is_told_as_it_was_said() {
    if let Some(agent) = agent("a_rate_limit_is_told_as_it_was_said") {
        limits::rate_limits(agent).await;
    }
}

#[tokio::test]
async fn a_refused_key_ends_it_at_once() {
    if let Some(agent) = agent("a_refused_key_ends_it_at_once") {
        limits::refused_key(agent).await;
    }
}
