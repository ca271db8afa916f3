//! Gemini CLI, over the Agent Client Protocol. Version 0.61 does not always find its own conversations again ("No previous
//! sessions found for this project"), so that its memory is not put to the test.

use ostler_testkit::programs;

use super::{stage::Agent, suite};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("gemini", who)?;
    Some(Agent {
        provider: "acp:gemini",
        model: None,
        config: format!(
            "program = \"{}\"\nargs = [\"--acp\", \"--model\", \"gemini-2.5-flash\"]\n\
             [providers.\"acp:gemini\".env]\nGOOGLE_GEMINI_BASE_URL = \"{{base_url}}\"\n\
             GEMINI_API_KEY = \"{{key}}\"\nGEMINI_CLI_NO_RELAUNCH = \"true\"\n",
            program.display()
        ),
        settings: &[],
        reports_all: false,
        shows_output: false,
        process: "gemini.js --acp",
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
async fn a_429_and_a_500() {
    if let Some(agent) = agent("a_429_and_a_500") {
        suite::failures(agent).await;
    }
}
