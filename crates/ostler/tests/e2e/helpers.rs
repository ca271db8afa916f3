//! What agents have of the world outside their sessions: helpers, words for those they may speak to, and their own past.

use ostler_client::CreateSession;
use ostler_domain::{
    Event, Reason, Recorded,
    ask::OutputKind,
    query::{Page, SessionFilter},
    session::{Attention, Outcome, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::json;

use crate::OSTLER;

fn shell(script: &str) -> serde_json::Value {
    json!({"run": ["sh", "-c", script]})
}

fn outputs(events: &[Recorded]) -> Vec<String> {
    let results = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AgentToolResult(result) => Some(result.output.clone()),
        _ => None,
    });
    results.collect()
}

fn named(name: &str, steps: Vec<serde_json::Value>) -> CreateSession {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.name = Some(name.parse().unwrap());
    wanted.initial_message = Some(scenario::of(steps));
    wanted
}

fn is_idle(view: &View) -> bool {
    view.turns >= 1 && view.attention == Some(Attention::Idle)
}

#[tokio::test]
async fn an_agent_starts_a_helper_and_hears_of_it() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let task = scenario::of(vec![scenario::say("tested")]);
    std::fs::write(home.campaign_dir().join("task"), &task).unwrap();
    let script = "ostler --json spawn tester \"$(cat task)\" && ostler output report docs/r.md --kind path";
    let parent = client.create_session(named("lead", vec![shell(script)])).await.unwrap();
    home.reaches(&parent.id.to_string(), "its turn to end", is_idle).await;
    let filter = SessionFilter { spawned_by: Some(parent.id), ..SessionFilter::default() };
    let helpers = client.sessions(&filter, Page::of(10, None)).await.unwrap().rows;
    let [helper] = helpers.as_slice() else { panic!("{helpers:?}") };
    let helper = home.ended(&helper.id.to_string()).await;
    assert_eq!((helper.outcome, helper.last_completion.as_deref()), (Some(Outcome::Done), Some("tested")));
    let conversation = client.conversation(&helper.conversation.to_string()).await.unwrap();
    assert!(conversation.key.as_str().starts_with("agent:lead:subagent:tester:"), "{}", conversation.key);
    assert_eq!(conversation.spawned_by, Some(parent.id));
    let events = home.events(&client, parent.id).await;
    assert!(outputs(&events)[0].contains(&helper.id.to_string()), "{:?}", outputs(&events));
    let report = events.iter().find_map(|recorded| match &recorded.event {
        Event::OutputAdded(output) => Some((output.name.as_str(), output.kind, output.value.as_str())),
        _ => None,
    });
    assert_eq!(report, Some(("report", OutputKind::Path, "docs/r.md")));
}

#[tokio::test]
async fn a_helper_that_is_asked_for_while_no_daemon_runs_is_started_once() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let script = "while [ ! -e go ]; do sleep 0.05; done; ostler spawn tester hello; touch asked";
    let parent = client.create_session(named("lead", vec![shell(script)])).await.unwrap();
    home.reaches(&parent.id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await;
    home.kill_daemon();
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    wait::until("it to have asked", wait::PATIENCE, || home.campaign_dir().join("asked").exists());
    for _ in 0..3 {
        home.start().await;
        home.kill_daemon();
    }
    let client = home.start().await;
    home.reaches(&parent.id.to_string(), "its turn to end", is_idle).await;
    let filter = SessionFilter { spawned_by: Some(parent.id), ..SessionFilter::default() };
    let count = || async { client.sessions(&filter, Page::of(10, None)).await.unwrap().rows.len() };
    tokio::time::timeout(wait::PATIENCE, async {
        while count().await == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("nobody was started");
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(count().await, 1);
}

#[tokio::test]
async fn nobody_speaks_to_strangers_or_learns_whether_there_are_any() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let secret = vec![scenario::say("the password is tulip")];
    let other = client.create_session(named("other", secret)).await.unwrap();
    home.reaches(&other.id.to_string(), "its turn to end", is_idle).await;
    let script = "for who in other nobody ses_01ARZ3NDEKTSV4RRFFQ69G5FAV; do ostler send $who hello 2>&1; done; \
                  ostler search tulip 2>&1; ostler resume other 2>&1; ostler transcript show other 2>&1; true";
    let curious = client.create_session(named("curious", vec![shell(script)])).await.unwrap();
    home.reaches(&curious.id.to_string(), "its turn to end", is_idle).await;
    let said = outputs(&home.events(&client, curious.id).await).concat();
    assert!(!said.contains("password"), "{said}");
    let answers: Vec<&str> = said.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(answers.len() >= 4, "{said}");
    assert!(answers[..3].iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let heard = client.session(&other.id.to_string()).await.unwrap();
    assert_eq!(heard.turns, 1, "nothing was said to it");
    // A policy lets it.
    client.set_campaign("shop", vec!["peers+=other".to_owned()]).await.unwrap();
    let asker =
        client.create_session(named("polite", vec![shell("ostler send other hello 2>&1")])).await.unwrap();
    home.reaches(&asker.id.to_string(), "its turn to end", is_idle).await;
    home.reaches(&other.id.to_string(), "the message", |view| view.turns == 2).await;
}

#[tokio::test]
async fn helpers_are_few_and_have_few_helpers_of_their_own() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.set_campaign("shop", vec!["limits.helpers=1".to_owned()]).await.unwrap();
    let wait = scenario::of(vec![shell("sleep 30")]);
    std::fs::write(home.campaign_dir().join("task"), wait).unwrap();
    let script = "ostler spawn one \"$(cat task)\" && ostler spawn two \"$(cat task)\" 2>&1; true";
    let lead = client.create_session(named("lead", vec![shell(script)])).await.unwrap();
    home.reaches(&lead.id.to_string(), "its turn to end", is_idle).await;
    let said = outputs(&home.events(&client, lead.id).await).concat();
    assert!(said.contains("helpers are at work already"), "{said}");
    let refused = client.set_campaign("shop", vec!["peers+=two words".to_owned()]).await.unwrap_err();
    assert_eq!(refused.to_refusal().reason, Reason::InvalidArgument);
}
