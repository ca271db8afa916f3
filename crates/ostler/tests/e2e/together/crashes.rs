//! The daemon is killed at random moments of missions of thirty agents.

use std::{collections::BTreeMap, fs, thread, time::Duration};

use ostler_testkit::{Seed, TestHome, numbers, scenario, wait};
use serde_json::{Value, json};

use crate::missions::{SOON, agent, assignment, json_of, ok, plan, shell, until, with_campaign};

const AGENTS: usize = 30;
const KILLS: u64 = 8;

fn name(n: usize) -> String {
    format!("m{n:02}")
}

/// An agent that leaves a line each time it runs.
fn member(n: usize, more: &str) -> String {
    let name = name(n);
    agent(&name, more, vec![shell(&format!("echo {name} >> ran")), scenario::say(&format!("{name} is done"))])
}

async fn survives(strategy: &str, agents: Vec<String>, status: &str) -> (TestHome, Value) {
    let mut seed = Seed::announced(strategy);
    let home = with_campaign();
    let head = format!(
        "objective = \"Live on\"\nstrategy = \"{strategy}\"\nname = \"live\"\n[defaults]\nretries = 0\n[limits]\nconcurrency = 8"
    );
    plan(&home, "plan.toml", &head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    for _ in 0..KILLS {
        thread::sleep(Duration::from_millis(20 + seed.below(500)));
        home.kill_daemon();
        // The next command starts another.
        ok(&home, &["mission", "ls", "-a"]);
    }
    let whole = until(&home, "live", status);
    nothing_is_lost_or_doubled(&home, &whole).await;
    (home, whole)
}

async fn nothing_is_lost_or_doubled(home: &TestHome, whole: &Value) {
    let log = ok(home, &["mission", "logs", "live", "-o", "jsonl"]);
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    let mut last = 0;
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let seq = event["seq"].as_u64().unwrap();
        assert!(seq > last, "{log}");
        last = seq;
        if let Some(id) = event["body"]["assignment"].as_str() {
            *counts.entry((id.to_owned(), event["kind"].as_str().unwrap().to_owned())).or_default() += 1;
        }
    }
    let ran = fs::read_to_string(home.campaign_dir().join("ran")).unwrap_or_default();
    let client = home.client().await;
    let assignments = whole["assignments"].as_array().unwrap();
    assert_eq!(assignments.len(), AGENTS);
    for one in assignments {
        let (id, name) = (one["id"].as_str().unwrap(), one["name"].as_str().unwrap());
        let count = |kind: &str| counts.get(&(id.to_owned(), kind.to_owned())).copied().unwrap_or_default();
        let runs = u32::from(one["status"] != "skipped");
        assert_eq!((count("ASSIGNMENT_STARTED"), count("ASSIGNMENT_ENDED")), (runs, 1), "{name}: {whole}");
        assert_eq!(ran.lines().filter(|line| *line == name).count(), runs as usize, "{name}: {ran}");
        if runs == 0 {
            continue;
        }
        let session = one["session"].as_str().unwrap().parse().unwrap();
        let events = home.events(&client, session).await;
        numbers::assert_gapless(&events, name);
        let said = format!("{name} is done");
        let said = events.iter().filter(|recorded| {
            matches!(&recorded.event, ostler_domain::Event::AgentCompletion(text) if text.text == said)
        });
        assert_eq!(said.count() as u32, u32::from(one["status"] == "completed"), "{name}");
    }
    // What the record adds up to is what is shown.
    let (state, _) = client.mission_state("live").await.unwrap();
    let shown: Vec<&str> = assignments.iter().map(|one| one["status"].as_str().unwrap()).collect();
    let replayed: Vec<&str> = (0..AGENTS).map(|place| state.status_of(place).as_str()).collect();
    assert_eq!(replayed, shown);
}

#[tokio::test]
async fn a_parallel_mission_of_thirty_outlives_any_daemon() {
    survives("parallel", (0..AGENTS).map(|n| member(n, "")).collect(), "completed").await;
}

#[tokio::test]
async fn a_sequential_mission_of_thirty_outlives_any_daemon() {
    let (_, whole) = survives("sequential", (0..AGENTS).map(|n| member(n, "")).collect(), "completed").await;
    let moments: Vec<(&str, &str)> = whole["assignments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["started"].as_str().unwrap(), one["ended"].as_str().unwrap()))
        .collect();
    assert!(moments.windows(2).all(|pair| pair[1].0 >= pair[0].1), "{moments:?}");
}

#[tokio::test]
async fn a_pipeline_of_thirty_outlives_any_daemon() {
    let agents = (0..AGENTS).map(|n| member(n, &format!("stage = {}", 1 + n / 6))).collect();
    survives("pipeline", agents, "completed").await;
}

#[tokio::test]
async fn an_adaptive_mission_of_thirty_outlives_any_daemon() {
    // Three fail in any case; what needs one of them is skipped.
    let agents = (0..AGENTS).map(|n| {
        let needs = if n < 6 { String::new() } else { format!("needs = [\"{}\"]", name(n - 6)) };
        if n % 6 == 5 && n < 18 {
            let dies = format!("echo {} >> ran; kill -9 $PPID", name(n));
            return agent(
                &name(n),
                if n == 5 { "" } else { "on_dep_failure = \"run\"\nneeds = [\"m05\"]" },
                vec![shell(&dies)],
            );
        }
        member(n, &needs)
    });
    let (_, whole) = survives("adaptive", agents.collect(), "partial").await;
    let of = |wanted: &str| {
        let all = whole["assignments"].as_array().unwrap().iter();
        all.filter(|one| one["status"] == wanted).map(|one| one["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("failed"), [json!("m05"), json!("m11"), json!("m17")]);
    assert_eq!(of("skipped"), [json!("m23"), json!("m29")]);
}

/// A mission whose one member has failed, and is tried again in a moment: nothing of it lives meanwhile.
fn between_two_tries(home: &TestHome, name: &str) {
    let work = vec![scenario::say("done")];
    let check = format!("echo looked >> {name}.looks; test -e {name}.ok");
    let more = format!("retries = 1\ncomplete_when = {{ check = \"{check}\" }}");
    let head = format!("objective = \"Again\"\nname = \"{name}\"");
    plan(home, "plan.toml", &head, &[agent("a", &more, work)]);
    ok(home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("it waits for its next try", SOON, || {
        let wait = assignment(&json_of(home, &["mission", "show", name]), "a")["wait"].clone();
        wait.as_str().is_some_and(|wait| wait.contains("for its next try"))
    });
}

#[test]
fn a_daemon_that_dies_between_two_tries_is_started_again_without_any_command() {
    let home = with_campaign();
    let looks = || fs::read_to_string(home.campaign_dir().join("again.looks")).unwrap().lines().count();
    between_two_tries(&home, "again");
    assert_eq!(looks(), 1);
    home.kill_daemon();
    fs::write(home.campaign_dir().join("again.ok"), "").unwrap();
    wait::until("there is another daemon", SOON, || home.daemon().is_some());
    wait::until("it is tried again", SOON, || looks() == 2);
    until(&home, "again", "completed");
    // Whoever stops the daemon means it, also while something waits.
    between_two_tries(&home, "later");
    ok(&home, &["daemon", "stop"]);
    thread::sleep(Duration::from_secs(2));
    assert!(home.daemon().is_none(), "somebody has started it again");
}
