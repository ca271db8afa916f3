//! opencode, over the Agent Client Protocol: configuration alone, where its model is and what it is called.

use std::time::Duration;

use ostler_domain::{Event, session::Approve};
use ostler_testkit::programs;
use serde_json::json;

use super::{
    budgets, census, hygiene, instructions, leave, limits,
    stage::{Agent, Stage},
    suite, tools, trial,
};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("opencode", who)?;
    Some(Agent {
        provider: "acp:opencode",
        model: None,
        config: format!("program = \"{}\"\nmodel = \"fake-model\"\n", program.display()),
        settings: &[],
        adds_version: false,
        reports_all: false,
        // Only of models whose window it knows.
        says_context: false,
        shows_output: true,
        process: "opencode acp",
        finds_itself: true,
    })
}

#[tokio::test]
async fn two_turns_and_a_file() {
    if let Some(agent) = agent("two_turns_and_a_file") {
        suite::two_turns(agent).await;
    }
}

#[tokio::test]
async fn it_fetches_nothing_that_nobody_asked_for() {
    let Some(agent) = agent("it_fetches_nothing_that_nobody_asked_for") else { return };
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"text": "Hello."}])).await;
    stage.turns(session, 1).await;
    // It would do so beside its first turn.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let events = stage.events(session).await;
    let asked = |event: &Event| matches!(event, Event::Denied(_) | Event::Network(_));
    let asked: Vec<_> = events.iter().filter(|recorded| asked(&recorded.event)).collect();
    assert!(asked.is_empty(), "{asked:#?}");
}

#[tokio::test]
async fn what_it_reads_is_asked_for() {
    if let Some(agent) = agent("what_it_reads_is_asked_for") {
        leave::reading(
            agent,
            true,
            |path| json!({"tools": [{"name": "read", "arguments": {"filePath": path}}]}),
        )
        .await;
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

#[tokio::test]
async fn a_silent_stream_is_interrupted() {
    if let Some(agent) = agent("a_silent_stream_is_interrupted") {
        limits::silent_stream(agent).await;
    }
}

#[tokio::test]
async fn the_model_has_one_name_on_both_sides() {
    if let Some(agent) = agent("the_model_has_one_name_on_both_sides") {
        suite::audit(agent).await;
    }
}

#[tokio::test]
async fn a_tool_that_hangs_is_ended() {
    if let Some(agent) = agent("a_tool_that_hangs_is_ended") {
        limits::hung_tool(agent).await;
    }
}

#[tokio::test]
async fn a_full_context_is_made_smaller_by_itself() {
    if let Some(agent) = agent("a_full_context_is_made_smaller_by_itself") {
        limits::context_compacted(agent).await;
    }
}

#[tokio::test]
async fn nobody_is_left_after_any_end() {
    if let Some(agent) = agent("nobody_is_left_after_any_end") {
        census::nobody_is_left(agent).await;
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
async fn a_trial_says_what_works() {
    if let Some(agent) = agent("a_trial_says_what_works") {
        trial::says_what_works(agent).await;
    }
}

/// Its 1.18.33 was seen to load both of the planted plug-ins where it could read `.opencode`, whatever it was told.
#[tokio::test]
async fn nothing_of_the_project_is_run() {
    if let Some(agent) = agent("nothing_of_the_project_is_run") {
        hygiene::nothing_of_the_project_is_run(agent).await;
    }
}

#[tokio::test]
async fn the_project_s_instructions_reach_the_model() {
    if let Some(agent) = agent("the_project_s_instructions_reach_the_model") {
        instructions::reach_the_model(agent, "AGENTS.md").await;
    }
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    if let Some(agent) = agent("a_fork_goes_its_own_way") {
        suite::fork(agent).await;
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
