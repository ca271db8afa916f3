//! OpenClaw. Its gateway takes half a minute to start, so that one session is put through all that others have a session
//! each for.

use std::time::Duration;

use ostler_domain::{
    Event,
    event::{Answer, StopReason, UsageSource},
    session::{Approve, Outcome},
};
use ostler_testkit::{numbers, programs, wait};
use serde_json::json;

use super::{
    census, hygiene, instructions, limits,
    stage::{Agent, KEY, Stage, completions, results, said},
    talk, tools, trial,
};

fn agent(who: &str) -> Option<Agent> {
    let program = programs::find("openclaw", who)?;
    Some(Agent {
        provider: "openclaw",
        model: Some("fake-model"),
        config: format!("program = \"{}\"", program.display()),
        settings: &[],
        adds_version: false,
        reports_all: true,
        says_context: true,
        shows_output: true,
        process: "openclaw",
        finds_itself: true,
    })
}

/// A file, two turns, an interrupt, a server that fails, a daemon that dies, and in the end the agent itself.
#[tokio::test]
async fn a_whole_life_and_the_one_after() {
    let Some(agent) = agent("a_whole_life_and_the_one_after") else { return };
    let stage = Stage::new(agent).await;
    let session = stage
        .begin(Approve::All, &json!([
            {"text": "Let me look.", "shell": "echo hi > hello.txt && cat hello.txt", "usage": {"input": 1000, "cached": 400, "output": 50}},
            {"text": "All done.", "usage": {"input": 1200, "cached": 1000, "output": 20}},
        ]))
        .await;
    stage.turns(session, 1).await;
    assert_eq!(stage.file("hello.txt").as_deref(), Some("hi\n"));
    stage
        .say(
            session,
            &json!([{"text": "The word is heron.", "usage": {"input": 1300, "cached": 1200, "output": 7}}]),
        )
        .await;
    let view = stage.turns(session, 2).await;
    let events = stage.events(session).await;
    numbers::assert_gapless(&events, "the session");
    assert_eq!(completions(&events), ["Let me look.", "All done.", "The word is heron."]);
    assert!(results(&events).iter().all(|result| result.success && result.output.contains("hi")));
    let sent = stage.model.sent();
    assert_eq!(view.usage, sent, "what is shown is what the server sent");
    assert!(view.context.is_some_and(|context| context.used >= 1_000), "{:?}", view.context);
    assert_eq!(said(&events, UsageSource::Wire), sent);
    assert_eq!(said(&events, UsageSource::Report), sent);
    assert!(stage.model.seen().iter().all(|seen| seen.headers["authorization"] == format!("Bearer {KEY}")));

    // A server that wants patience, and one that fails.
    stage
        .say(
            session,
            &json!([{"status": 429, "headers": {"retry-after": "1"}, "times": 1, "text": "after 429"}]),
        )
        .await;
    stage.turns(session, 3).await;
    stage.say(session, &json!([{"status": 500, "times": 1, "text": "after 500"}])).await;
    stage.turns(session, 4).await;
    let told = completions(&stage.events(session).await);
    assert_eq!(told[3..], ["after 429", "after 500"]);

    // An interrupt ends the command that runs.
    stage.say(session, &json!([{"shell": "echo started > started.txt; sleep 600"}, {"text": "never"}])).await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("started.txt").is_some());
    stage.client().await.interrupt_session(&session.to_string()).await.unwrap();
    stage.turns(session, 5).await;
    let last_end = stage.events(session).await.iter().rev().find_map(|recorded| match &recorded.event {
        Event::TurnEnded(ended) => Some(ended.stop_reason),
        _ => None,
    });
    assert_eq!(last_end, Some(StopReason::Interrupted));

    // The daemon dies in mid-turn, and the next one finds the agent at work.
    let wait_for_go = "echo 1 > one.txt; while [ ! -e go ]; do sleep 0.05; done; echo 2 > two.txt";
    stage.say(session, &json!([{"text": "Wait.", "shell": wait_for_go}, {"text": "Through."}])).await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("one.txt").is_some());
    let process = stage.process(session).expect("the agent's process");
    stage.home.kill_daemon();
    std::fs::write(stage.home.campaign_dir().join("go"), "").unwrap();
    wait::until("the agent to go on alone", Duration::from_secs(60), || stage.file("two.txt").is_some());
    stage.turns(session, 6).await;
    assert!(process.is_alive(), "it is the same process");
    let events = stage.events(session).await;
    numbers::assert_gapless(&events, "the session");
    assert_eq!(completions(&events).last().map(String::as_str), Some("Through."));

    // The agent dies within a turn; the next session knows what was said, and is told that it was interrupted.
    stage.say(session, &json!([{"shell": "touch doomed; sleep 6543"}, {"text": "never"}])).await;
    wait::until("the command to run", Duration::from_secs(120), || stage.file("doomed").is_some());
    process.kill();
    let view = stage.home.ended(&session.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Crashed), "{view:#?}");
    let next = stage.say(session, &json!([{"text": "Still heron."}])).await;
    assert_eq!(next.continues, Some(session));
    stage
        .reaches(next.id, "the answer", |view| view.last_completion.as_deref() == Some("Still heron."))
        .await;
    let asked = stage.model.seen().last().unwrap().body.to_string();
    assert!(asked.contains("The word is heron."), "the model is told what was said before");
    assert!(asked.contains("You were interrupted"), "and that it was interrupted: {asked}");
    census::nobody_is_left_of(&stage, next.id, "stop --now").await;
}

#[tokio::test]
async fn an_approval_allowed_and_denied() {
    if let Some(agent) = agent("an_approval_allowed_and_denied") {
        super::suite::approvals(agent).await;
    }
}

#[tokio::test]
async fn a_rate_limit_is_told_as_it_was_said() {
    if let Some(agent) = agent("a_rate_limit_is_told_as_it_was_said") {
        limits::rate_limits(agent).await;
    }
}

#[tokio::test]
async fn endless_retries_are_interrupted() {
    if let Some(agent) = agent("endless_retries_are_interrupted") {
        limits::endless_retries(agent).await;
    }
}

#[tokio::test]
async fn a_refused_key_ends_it_at_once() {
    if let Some(agent) = agent("a_refused_key_ends_it_at_once") {
        limits::refused_key(agent).await;
    }
}

#[tokio::test]
async fn nobody_is_left_after_the_hardest_ends() {
    if let Some(agent) = agent("nobody_is_left_after_the_hardest_ends") {
        let ways = ["stop", "budget", "crash", "halt"];
        census::nobody_is_left_after(agent, |how| ways.contains(&how)).await;
    }
}

/// The other ends; what is left of the nine follows on something else that is tested here.
#[tokio::test]
async fn nobody_is_left_after_an_interrupt_and_a_timeout() {
    if let Some(agent) = agent("nobody_is_left_after_an_interrupt_and_a_timeout") {
        census::nobody_is_left_after(agent, |how| ["interrupt", "timeout"].contains(&how)).await;
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

/// Words into an open turn, another model while it lives, and a project full of what would run code.
#[tokio::test]
async fn it_hears_within_a_turn_changes_its_model_and_runs_nothing_of_the_project() {
    let who = "it_hears_within_a_turn_changes_its_model_and_runs_nothing_of_the_project";
    let Some(agent) = agent(who) else { return };
    let stage = Stage::new(agent).await;
    hygiene::plant(&stage.home.campaign_dir());
    let session = talk::steer_on(&stage).await;
    let (_, now) = stage.client().await.set_model(&session.to_string(), "another-model").await.unwrap();
    assert!(now, "while it lives");
    stage.say(session, &json!([{"text": "With another."}])).await;
    let view = stage.turns(session, 2).await;
    assert_eq!(stage.model.seen().last().unwrap().body["model"], "another-model");
    assert_eq!(view.model.as_deref(), Some("another-model"), "{view:#?}");
    assert_eq!(view.last_completion.as_deref(), Some("With another."));
    census::nobody_is_left_of(&stage, session, "kill").await;
    hygiene::nothing_was_run(&stage);
}

/// Rules that answer, and what a server and a tool may do to it.
#[tokio::test]
async fn rules_answer_and_watchdogs_wake() {
    let Some(agent) = agent("rules_answer_and_watchdogs_wake") else { return };
    let stage = Stage::new(agent).await;
    let rules = ["deny run touch denied.txt", "allow run touch *", "allow run sleep *"];
    let rules = rules.map(|rule| format!("approve.rule+={rule}")).to_vec();
    stage.client().await.set_campaign("shop", rules).await.unwrap();
    let steps = json!([{"shell": "touch allowed.txt"}, {"shell": "touch denied.txt"}, {"text": "Done."}]);
    let session = stage.begin_with(Approve::Policy, &steps, limits::impatient).await;
    stage.turns(session, 1).await;
    assert!(stage.file("allowed.txt").is_some() && stage.file("denied.txt").is_none());
    let events = stage.events(session).await;
    let answered = events.iter().filter_map(|recorded| match &recorded.event {
        Event::ApprovalAnswered(answered) => Some((answered.answer, answered.rules[0].number)),
        _ => None,
    });
    assert_eq!(answered.collect::<Vec<_>>(), [(Answer::Allowed, Some(2)), (Answer::Denied, Some(1))]);
    limits::all_at_once(&stage, session).await;
    census::nobody_is_left_of(&stage, session, "daemon killed").await;
}

/// What the gateway kept of the session is deleted: the next one is told what was said, and that is recorded.
#[tokio::test]
async fn a_record_that_is_gone_is_told_and_its_words_are_not_lost() {
    let Some(agent) = agent("a_record_that_is_gone_is_told_and_its_words_are_not_lost") else { return };
    let stage = Stage::new(agent).await;
    let session = stage.begin(Approve::All, &json!([{"text": "The word is heron."}])).await;
    let view = stage.turns(session, 1).await;
    stage.client().await.stop_session(&session.to_string(), false).await.unwrap();
    stage.ended(session).await;
    let kept = stage.home.home.state().join("homes").join(view.conversation.to_string()).join(".openclaw");
    std::fs::remove_dir_all(&kept).unwrap();
    let next = stage.say(session, &json!([{"text": "Still heron."}])).await;
    stage
        .reaches(next.id, "the answer", |view| view.last_completion.as_deref() == Some("Still heron."))
        .await;
    let resets = stage.events(next.id).await.into_iter().filter_map(|recorded| match recorded.event {
        Event::ContextReset(reset) => Some(reset.why),
        _ => None,
    });
    let resets: Vec<String> = resets.collect();
    assert!(matches!(&resets[..], [why] if why.contains("has no record of")), "{resets:?}");
    let asked = stage.model.seen().last().unwrap().body.to_string();
    assert!(asked.contains("You said: The word is heron."), "the model is told what was said: {asked}");
    stage.client().await.stop_session(&next.id.to_string(), true).await.unwrap();
    stage.ended(next.id).await;
}

#[tokio::test]
async fn a_trial_says_what_works() {
    if let Some(agent) = agent("a_trial_says_what_works") {
        trial::says_what_works(agent).await;
    }
}

#[tokio::test]
async fn the_project_s_instructions_reach_the_model() {
    if let Some(agent) = agent("the_project_s_instructions_reach_the_model") {
        instructions::reach_the_model(agent, "AGENTS.md").await;
    }
}
