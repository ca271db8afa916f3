//! Claude Code, at its limits; what it does otherwise is in `claude.rs` above.

use ostler_testkit::programs;

use super::{census, limits, native, stage::Agent, tools};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("claude", who)?;
    Some(Agent {
        provider: "claude-code",
        model: Some("claude-sonnet-5"),
        config: format!("program = \"{}\"", program.display()),
        settings: &[],
        adds_version: true,
        reports_all: true,
        says_context: true,
        shows_output: true,
        process: "claude",
        finds_itself: true,
    })
}

#[tokio::test]
async fn a_silent_stream_is_interrupted() {
    if let Some(agent) = agent("a_silent_stream_is_interrupted") {
        limits::silent_stream(agent).await;
    }
}

#[tokio::test]
async fn endless_retries_are_interrupted() {
    if let Some(agent) = agent("endless_retries_are_interrupted") {
        limits::endless_retries(agent).await;
    }
}

#[tokio::test]
async fn a_tool_that_hangs_is_ended() {
    if let Some(agent) = agent("a_tool_that_hangs_is_ended") {
        limits::hung_tool(agent).await;
    }
}

#[tokio::test]
async fn a_rate_limit_is_told_as_it_was_said() {
    if let Some(agent) = agent("a_rate_limit_is_told_as_it_was_said") {
        limits::rate_limits(agent).await;
    }
}

#[tokio::test]
async fn a_full_context_is_called_that() {
    if let Some(agent) = agent("a_full_context_is_called_that") {
        limits::context_full(agent).await;
    }
}

#[tokio::test]
async fn a_refused_key_ends_it_at_once() {
    if let Some(agent) = agent("a_refused_key_ends_it_at_once") {
        limits::refused_key(agent).await;
    }
}

#[tokio::test]
async fn nobody_is_left_after_any_end() {
    if let Some(agent) = agent("nobody_is_left_after_any_end") {
        census::nobody_is_left(agent).await;
    }
}

#[tokio::test]
async fn its_own_program_goes_on_alone() {
    let who = "its_own_program_goes_on_alone";
    if let (Some(agent), Some(program)) = (agent(who), programs::find("claude", who)) {
        native::goes_on_alone(agent, &program, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY").await;
    }
}

#[tokio::test]
async fn its_model_has_ostlers_tools() {
    if let Some(agent) = agent("its_model_has_ostlers_tools") {
        tools::use_them(agent).await;
    }
}

#[tokio::test]
async fn its_model_does_not_hear_of_tools_that_are_switched_off() {
    if let Some(agent) = agent("its_model_does_not_hear_of_tools_that_are_switched_off") {
        tools::not_where_they_are_switched_off(agent).await;
    }
}
