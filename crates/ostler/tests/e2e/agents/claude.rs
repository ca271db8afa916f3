//! Claude Code, at its limits; what it does otherwise is in `claude.rs` above.

use ostler_testkit::programs;
use serde_json::json;

use super::{
    budgets, census, hygiene, instructions, leave, limits, native, stage::Agent, talk, tools, trial,
};

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

#[tokio::test]
async fn what_it_would_read_unasked_is_asked_for_where_a_rule_or_a_person_wants_it() {
    if let Some(agent) = agent("what_it_would_read_unasked_is_asked_for_where_a_rule_or_a_person_wants_it") {
        leave::reading(
            agent,
            false,
            |path| json!({"tools": [{"name": "Read", "arguments": {"file_path": path}}]}),
        )
        .await;
    }
}

#[tokio::test]
async fn what_it_would_run_unasked_is_asked_for_where_a_rule_or_a_person_wants_it() {
    if let Some(agent) = agent("what_it_would_run_unasked_is_asked_for_where_a_rule_or_a_person_wants_it") {
        leave::running(agent).await;
    }
}

#[tokio::test]
async fn what_is_said_into_a_turn_is_heard_in_it() {
    if let Some(agent) = agent("what_is_said_into_a_turn_is_heard_in_it") {
        talk::steer(agent).await;
    }
}

#[tokio::test]
async fn a_question_waits_for_a_person() {
    if let Some(agent) = agent("a_question_waits_for_a_person") {
        talk::question(agent).await;
    }
}

#[tokio::test]
async fn what_a_helper_does_is_marked_and_counted_once() {
    if let Some(agent) = agent("what_a_helper_does_is_marked_and_counted_once") {
        talk::subagent(agent).await;
    }
}

#[tokio::test]
async fn a_trial_says_what_works() {
    if let Some(agent) = agent("a_trial_says_what_works") {
        trial::says_what_works(agent).await;
    }
}

#[tokio::test]
async fn nothing_of_the_project_is_run() {
    if let Some(agent) = agent("nothing_of_the_project_is_run") {
        hygiene::nothing_of_the_project_is_run(agent).await;
    }
}

#[tokio::test]
async fn alone_it_would_run_what_the_project_says() {
    let who = "alone_it_would_run_what_the_project_says";
    if let (Some(agent), Some(program)) = (agent(who), programs::find("claude", who)) {
        hygiene::the_program_alone_would_run_it(agent, |native| {
            let mut command = native.command(&program);
            command.args(["-p", &native.prompt, "--model", "claude-sonnet-5"]);
            command.env("ANTHROPIC_BASE_URL", &native.model).env("ANTHROPIC_API_KEY", native.key());
            command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            command
        })
        .await;
    }
}

#[tokio::test]
async fn the_project_s_instructions_reach_the_model() {
    if let Some(agent) = agent("the_project_s_instructions_reach_the_model") {
        instructions::reach_the_model(agent, "CLAUDE.md").await;
    }
}

#[tokio::test]
async fn what_the_last_call_of_a_budget_brought_is_said() {
    if let Some(agent) = agent("what_the_last_call_of_a_budget_brought_is_said") {
        budgets::last_call(agent).await;
    }
}

#[tokio::test]
async fn no_call_goes_beyond_the_budget() {
    if let Some(agent) = agent("no_call_goes_beyond_the_budget") {
        budgets::call_beyond(agent).await;
    }
}

#[tokio::test]
async fn what_is_said_into_a_turn_that_is_interrupted_is_read_in_the_next() {
    if let Some(agent) = agent("what_is_said_into_a_turn_that_is_interrupted_is_read_in_the_next") {
        talk::steer_and_interrupt(agent).await;
    }
}

#[tokio::test]
async fn what_the_last_call_of_a_budget_brought_is_said_while_a_person_is_asked() {
    if let Some(agent) = agent("what_the_last_call_of_a_budget_brought_is_said_while_a_person_is_asked") {
        budgets::last_call_asked_for(agent).await;
    }
}

#[tokio::test]
async fn a_call_beyond_the_budget_begins_when_a_person_allows_it() {
    if let Some(agent) = agent("a_call_beyond_the_budget_begins_when_a_person_allows_it") {
        budgets::call_asked_for(agent).await;
    }
}

#[tokio::test]
async fn what_is_said_into_a_turn_that_a_stop_ends_waits_for_who_goes_on() {
    if let Some(agent) = agent("what_is_said_into_a_turn_that_a_stop_ends_waits_for_who_goes_on") {
        talk::steer_and_stop(agent).await;
    }
}
