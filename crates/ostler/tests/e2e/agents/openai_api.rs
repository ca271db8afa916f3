//! The agent of our own.

use super::{stage::Agent, suite};

fn agent() -> Agent {
    Agent {
        provider: "openai-api",
        model: Some("fake-model"),
        config: String::new(),
        settings: &[],
        reports_all: true,
        shows_output: true,
        process: "internal agent",
    }
}

#[tokio::test]
async fn two_turns_and_a_file() {
    suite::two_turns(agent()).await;
}

#[tokio::test]
async fn an_approval_allowed_and_denied() {
    suite::approvals(agent()).await;
}

#[tokio::test]
async fn a_rule_answers() {
    suite::rules(agent()).await;
}

#[tokio::test]
async fn an_interrupt_ends_the_command() {
    suite::interrupt(agent()).await;
}

#[tokio::test]
async fn the_daemon_dies_in_mid_turn() {
    suite::daemon_dies(agent()).await;
}

#[tokio::test]
async fn the_agent_dies_and_is_resumed() {
    suite::agent_dies(agent()).await;
}

#[tokio::test]
async fn a_429_and_a_500() {
    suite::failures(agent()).await;
}

#[tokio::test]
async fn a_wrong_key_fails_fast() {
    suite::wrong_key(agent()).await;
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    suite::fork(agent()).await;
}

#[tokio::test]
async fn another_model_while_it_lives() {
    suite::model_change(agent(), true).await;
}

/// The same over the Responses API.
fn over_responses() -> Agent {
    Agent { settings: &[("wire", "responses")], ..agent() }
}

#[tokio::test]
async fn two_turns_and_a_file_over_responses() {
    suite::two_turns(over_responses()).await;
}

#[tokio::test]
async fn a_429_and_a_500_over_responses() {
    suite::failures(over_responses()).await;
}
