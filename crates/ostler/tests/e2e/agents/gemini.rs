//! Gemini CLI, over the Agent Client Protocol.

use ostler_testkit::programs;

use super::{budgets, census, hygiene, instructions, limits, stage::Agent, suite, trial};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("gemini", who)?;
    Some(Agent {
        provider: "acp:gemini",
        model: None,
        config: format!("program = \"{}\"\nmodel = \"gemini-2.5-flash\"\n", program.display()),
        settings: &[],
        adds_version: false,
        reports_all: false,
        says_context: false,
        shows_output: false,
        process: "gemini.js --acp",
        finds_itself: false,
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
async fn the_agent_dies_and_is_resumed() {
    if let Some(agent) = agent("the_agent_dies_and_is_resumed") {
        suite::agent_dies(agent).await;
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
    if let (Some(agent), Some(program)) = (agent(who), programs::find("gemini", who)) {
        hygiene::the_program_alone_would_run_it(agent, |native| {
            let settings = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},
                "privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}"#;
            std::fs::create_dir_all(native.home.join(".gemini")).unwrap();
            std::fs::write(native.home.join(".gemini/settings.json"), settings).unwrap();
            let mut command = native.command(&program);
            command.args(["--yolo", "--model", "gemini-2.5-flash", "-p", &native.prompt]);
            command.env("GOOGLE_GEMINI_BASE_URL", &native.model).env("GEMINI_API_KEY", native.key());
            command.env("GEMINI_CLI_NO_RELAUNCH", "true").env("GEMINI_CLI_TRUST_WORKSPACE", "true");
            command
        })
        .await;
    }
}

#[tokio::test]
async fn the_agent_dies_in_a_turn_and_its_next_one_is_told() {
    if let Some(agent) = agent("the_agent_dies_in_a_turn_and_its_next_one_is_told") {
        suite::agent_dies_in_a_turn_and_may_forget(agent).await;
    }
}

#[tokio::test]
async fn a_person_is_asked_where_only_a_title_is_shown() {
    if let Some(agent) = agent("a_person_is_asked_where_only_a_title_is_shown") {
        suite::rules_do_not_guess(agent).await;
    }
}

#[tokio::test]
async fn the_project_s_instructions_reach_the_model() {
    if let Some(agent) = agent("the_project_s_instructions_reach_the_model") {
        instructions::reach_the_model(agent, "GEMINI.md").await;
    }
}

#[tokio::test]
async fn a_trial_says_what_works() {
    if let Some(agent) = agent("a_trial_says_what_works") {
        trial::says_what_works(agent).await;
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
