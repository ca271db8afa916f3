//! OpenAI's Codex CLI.

use ostler_testkit::programs;

use super::{stage::Agent, suite};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("codex", who)?;
    Some(Agent {
        provider: "codex",
        model: Some("gpt-5.5"),
        config: format!("program = \"{}\"", program.display()),
        settings: &[],
        reports_all: true,
        shows_output: true,
        process: "codex app-server",
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
async fn a_429_and_a_500() {
    if let Some(agent) = agent("a_429_and_a_500") {
        suite::failures(agent).await;
    }
}

#[tokio::test]
async fn a_wrong_key_fails_fast() {
    if let Some(agent) = agent("a_wrong_key_fails_fast") {
        suite::wrong_key(agent).await;
    }
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    if let Some(agent) = agent("a_fork_goes_its_own_way") {
        suite::fork(agent).await;
    }
}

#[tokio::test]
async fn another_model_from_the_next_session_on() {
    if let Some(agent) = agent("another_model_from_the_next_session_on") {
        suite::model_change(agent, false).await;
    }
}
