//! The agent of our own.

use ostler_domain::session::{Approve, Attention};
use serde_json::json;

use super::{
    budgets, census, hygiene, instructions, leave, limits,
    stage::{Agent, Stage},
    suite, talk, tools, trial,
};

fn agent() -> Agent {
    Agent {
        provider: "openai-api",
        model: Some("fake-model"),
        config: String::new(),
        settings: &[],
        adds_version: false,
        reports_all: true,
        says_context: true,
        shows_output: true,
        process: "internal agent",
        finds_itself: true,
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
async fn what_it_reads_is_asked_for_where_a_rule_or_a_person_wants_it() {
    leave::reading(agent(), false, |path| {
        json!({"tools": [{"name": "read_file", "arguments": {"path": path.file_name().unwrap().to_str()}}]})
    })
    .await;
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
async fn a_limit_past_the_time_limit_has_an_exit_code_of_its_own() {
    limits::limited_past_the_timeout(agent()).await;
}

#[tokio::test]
async fn the_agent_dies_in_a_turn_and_goes_on() {
    suite::agent_dies_in_a_turn(agent()).await;
}

#[tokio::test]
async fn who_is_limited_again_and_again_is_not_interrupted() {
    limits::limited_again_and_again(agent()).await;
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

#[tokio::test]
async fn what_was_cut_takes_nothing_from_other_calls() {
    suite::cut_answers(agent()).await;
}

#[tokio::test]
async fn what_was_cut_or_interrupted_is_counted_of_a_server_with_one_name_for_all() {
    suite::cut_answers_of_one_name(agent()).await;
}

#[tokio::test]
async fn what_was_cut_takes_nothing_from_other_calls_over_responses() {
    suite::cut_answers(over_responses()).await;
}

#[tokio::test]
async fn a_web_page_is_no_model_and_costs_nothing() {
    let stage = Stage::new(agent()).await;
    let session = stage.begin(Approve::All, &json!([{"page": "<html>hello</html>"}])).await;
    let view = stage
        .reaches(session, "the turn to fail", |view| view.attention == Some(Attention::TurnFailed))
        .await;
    assert!(view.usage.is_zero(), "{view:#?}");
    let events = format!("{:?}", stage.events(session).await);
    assert!(events.contains("answered with a web page"), "{events}");
    assert_eq!(stage.model.seen().len(), 1, "it is not asked again");
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

#[tokio::test]
async fn a_silent_stream_is_interrupted() {
    limits::silent_stream(agent()).await;
}

#[tokio::test]
async fn endless_retries_are_interrupted() {
    limits::endless_retries(agent()).await;
}

#[tokio::test]
async fn a_tool_that_hangs_is_ended() {
    limits::hung_tool(agent()).await;
}

#[tokio::test]
async fn a_rate_limit_is_told_as_it_was_said() {
    limits::rate_limits(agent()).await;
}

#[tokio::test]
async fn a_full_context_is_called_that() {
    limits::context_full(agent()).await;
}

#[tokio::test]
async fn a_refused_key_ends_it_at_once() {
    limits::refused_key(agent()).await;
}

#[tokio::test]
async fn nobody_is_left_after_any_end() {
    census::nobody_is_left(agent()).await;
}

#[tokio::test]
async fn a_turn_that_failed_of_a_limit_goes_on_when_it_ends() {
    limits::timed_resume(agent(), true).await;
}

#[tokio::test]
async fn and_does_not_where_that_is_switched_off() {
    limits::timed_resume(agent(), false).await;
}

#[tokio::test]
async fn its_model_has_ostlers_tools() {
    tools::use_them(agent()).await;
}

#[tokio::test]
async fn its_model_does_not_hear_of_tools_that_are_switched_off() {
    tools::not_where_they_are_switched_off(agent()).await;
}

#[tokio::test]
async fn a_trial_says_what_works() {
    trial::says_what_works(agent()).await;
}

#[tokio::test]
async fn nothing_of_the_project_is_run() {
    hygiene::nothing_of_the_project_is_run(agent()).await;
}

#[tokio::test]
async fn the_project_s_instructions_reach_the_model() {
    instructions::reach_the_model(agent(), "AGENTS.md").await;
}

#[tokio::test]
async fn words_go_into_the_open_turn() {
    talk::steer(agent()).await;
}

#[tokio::test]
async fn what_the_last_call_of_a_budget_brought_is_said() {
    budgets::last_call(agent()).await;
}

#[tokio::test]
async fn no_call_goes_beyond_the_budget() {
    budgets::call_beyond(agent()).await;
}

#[tokio::test]
async fn what_is_said_into_a_turn_that_is_interrupted_is_read_in_the_next() {
    talk::steer_and_interrupt(agent()).await;
}

#[tokio::test]
async fn what_the_last_call_of_a_budget_brought_is_said_while_a_person_is_asked() {
    budgets::last_call_asked_for(agent()).await;
}

#[tokio::test]
async fn a_call_beyond_the_budget_begins_when_a_person_allows_it() {
    budgets::call_asked_for(agent()).await;
}
