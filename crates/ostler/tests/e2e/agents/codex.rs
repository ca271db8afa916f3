//! OpenAI's Codex CLI.

use std::fs;

use ostler_testkit::programs;

use super::{budgets, census, hygiene, instructions, limits, stage::Agent, suite, talk, tools, trial};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("codex", who)?;
    Some(Agent {
        provider: "codex",
        model: Some("gpt-5.5"),
        config: format!("program = \"{}\"", program.display()),
        settings: &[],
        adds_version: false,
        reports_all: true,
        says_context: true,
        shows_output: true,
        process: "codex app-server",
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
async fn the_agent_dies_beside_its_turn_and_goes_on() {
    if let Some(agent) = agent("the_agent_dies_beside_its_turn_and_goes_on") {
        suite::agent_dies_beside_its_turn(agent).await;
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
        suite::model_change(agent, true).await;
    }
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
async fn its_model_has_ostlers_tools() {
    if let Some(agent) = agent("its_model_has_ostlers_tools") {
        // Of models that it knows to search for tools, it would only say that there are some.
        tools::use_them(Agent { model: Some("some-model"), ..agent }).await;
    }
}

#[tokio::test]
async fn its_model_does_not_hear_of_tools_that_are_switched_off() {
    if let Some(agent) = agent("its_model_does_not_hear_of_tools_that_are_switched_off") {
        tools::not_where_they_are_switched_off(agent).await;
    }
}

#[tokio::test]
async fn what_is_said_into_a_turn_is_heard_in_it() {
    if let Some(agent) = agent("what_is_said_into_a_turn_is_heard_in_it") {
        talk::steer(agent).await;
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
    if let (Some(agent), Some(program)) = (agent(who), programs::find("codex", who)) {
        hygiene::the_program_alone_would_run_it(agent, |native| {
            let state = native.home.join(".codex");
            fs::create_dir_all(&state).unwrap();
            let config = format!(
                "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\n\
                 base_url = \"{}\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n\
                 [projects.\"{}\"]\ntrust_level = \"trusted\"\n",
                native.model,
                native.campaign.display()
            );
            fs::write(state.join("config.toml"), config).unwrap();
            let mut command = native.command(&program);
            command.args(["exec", "--skip-git-repo-check", "-s", "danger-full-access", &native.prompt]);
            command.env("FAKE_KEY", native.key()).env("CODEX_HOME", &state);
            command
        })
        .await;
    }
}

#[tokio::test]
async fn the_project_s_instructions_reach_the_model() {
    if let Some(agent) = agent("the_project_s_instructions_reach_the_model") {
        instructions::reach_the_model(agent, "AGENTS.md").await;
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
async fn what_is_said_into_a_turn_that_a_stop_ends_waits_for_who_goes_on() {
    if let Some(agent) = agent("what_is_said_into_a_turn_that_a_stop_ends_waits_for_who_goes_on") {
        talk::steer_and_stop(agent).await;
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
