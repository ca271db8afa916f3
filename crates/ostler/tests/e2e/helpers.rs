//! What agents have of the world outside their sessions: helpers, words for those they may speak to, and their own past.

use ostler_client::CreateSession;
use ostler_domain::{
    Budget, Event, Policy, Reason, Recorded,
    ask::OutputKind,
    policy::NetMode,
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
async fn a_helper_is_spoken_to_by_the_name_that_it_was_given() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let script = "ostler spawn tester 'look around' && ostler send tester hello 2>&1";
    let parent = client.create_session(named("lead", vec![shell(script)])).await.unwrap();
    home.reaches(&parent.id.to_string(), "its turn to end", is_idle).await;
    let said = outputs(&home.events(&client, parent.id).await).concat();
    assert!(!said.contains("error:"), "{said}");
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
async fn what_is_asked_for_while_no_daemon_runs_is_done_also_by_who_was_done_then() {
    for (name, last) in [("done", "ostler done -m x"), ("gone", "kill -9 $PPID")] {
        let home = TestHome::started(OSTLER).await;
        let client = home.client().await;
        let asks = "ostler spawn tester hello; ostler send tester 'and you'; touch asked";
        let script = format!("while [ ! -e go ]; do sleep 0.05; done; {asks}; {last}");
        let parent = client.create_session(named(name, vec![shell(&script)])).await.unwrap();
        home.reaches(&parent.id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await;
        home.kill_daemon();
        std::fs::write(home.campaign_dir().join("go"), "").unwrap();
        wait::until("it to have asked", wait::PATIENCE, || home.campaign_dir().join("asked").exists());
        let client = home.start().await;
        home.ended(&parent.id.to_string()).await;
        let filter = SessionFilter { spawned_by: Some(parent.id), ..SessionFilter::default() };
        let helpers = client.sessions(&filter, Page::of(10, None)).await.unwrap().rows;
        let events = home.events(&client, parent.id).await;
        let count = |is: fn(&Event) -> bool| events.iter().filter(|recorded| is(&recorded.event)).count();
        assert_eq!(helpers.len(), 1, "{name}: {events:#?}");
        let asked = count(|event| matches!(event, Event::Asked(_)));
        assert_eq!((asked, count(|event| matches!(event, Event::AskSettled(_)))), (2, 2), "{name}");
        assert!(events.last().is_some_and(|last| !matches!(last.event, Event::AskSettled(_))), "{name}");
    }
}

#[tokio::test]
async fn what_is_asked_for_while_no_daemon_runs_is_done_in_its_order() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let names = ["one", "two", "three", "four"];
    let asks: String = names
        .iter()
        .map(|name| format!("ostler spawn {name} hello; ostler send {name} 'and you'; "))
        .collect();
    let script = format!("while [ ! -e go ]; do sleep 0.05; done; {asks} touch asked");
    let parent = client.create_session(named("lead", vec![shell(&script)])).await.unwrap();
    home.reaches(&parent.id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await;
    home.kill_daemon();
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    wait::until("it to have asked", wait::PATIENCE, || home.campaign_dir().join("asked").exists());
    let client = home.start().await;
    let settled = async || {
        let events = home.events(&client, parent.id).await;
        let settled = events.into_iter().filter_map(|recorded| match recorded.event {
            Event::AskSettled(settled) => Some((settled.message.is_some(), settled.refused)),
            _ => None,
        });
        settled.collect::<Vec<_>>()
    };
    tokio::time::timeout(wait::PATIENCE, async {
        while settled().await.len() < 2 * names.len() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("all that was asked for to be done");
    let expected: Vec<_> = names.iter().flat_map(|_| [(false, None), (true, None)]).collect();
    assert_eq!(settled().await, expected, "each is told something after it was started");
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
async fn a_peer_is_one_of_its_own_campaign_whoever_else_has_its_name() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = home.path().join("site");
    std::fs::create_dir_all(&dir).unwrap();
    assert!(home.run(&["campaign", "add", dir.to_str().unwrap()]).status.success());
    let mut elsewhere = named("other", vec![scenario::say("elsewhere")]);
    elsewhere.campaign = "site".to_owned();
    let elsewhere = client.create_session(elsewhere).await.unwrap();
    home.reaches(&elsewhere.id.to_string(), "its turn to end", is_idle).await;
    // The one here has ended: the only one of this name that lives is the stranger's.
    let here = client.create_session(named("other", vec![scenario::say("here")])).await.unwrap();
    home.reaches(&here.id.to_string(), "its turn to end", is_idle).await;
    client.stop_session(&here.id.to_string(), false).await.unwrap();
    home.ended(&here.id.to_string()).await;
    client.set_campaign("shop", vec!["peers+=other".to_owned()]).await.unwrap();
    let asker =
        client.create_session(named("polite", vec![shell("ostler send other hello 2>&1")])).await.unwrap();
    home.reaches(&asker.id.to_string(), "its turn to end", is_idle).await;
    let said = outputs(&home.events(&client, asker.id).await).concat();
    assert!(!said.contains("error:"), "{said}");
    let woken = home.reaches("shop/other", "the message", |view| view.turns == 1 && view.id != here.id).await;
    assert_eq!(woken.continues, Some(here.id));
    assert_eq!(client.session(&elsewhere.id.to_string()).await.unwrap().turns, 1);
}

fn policy_of(events: &[Recorded]) -> Policy {
    let created = events.iter().find_map(|recorded| match &recorded.event {
        Event::SessionCreated(created) => Some(created.policy.clone()),
        _ => None,
    });
    created.unwrap()
}

#[tokio::test]
async fn a_helper_has_no_right_that_its_asker_lacks() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let task = scenario::of(vec![scenario::say("tested")]);
    std::fs::write(home.campaign_dir().join("task"), &task).unwrap();
    client.set_campaign("shop", vec!["env+=OLD".to_owned(), "hide+=*.plan".to_owned()]).await.unwrap();
    let script = "until test -e go; do sleep 0.05; done; ostler spawn tester \"$(cat task)\"";
    let lead = client.create_session(named("lead", vec![shell(script)])).await.unwrap();
    // What a person grants the campaign now is not the lead's, and what is taken from it now is nobody's helper's.
    let changed = ["env+=NEW", "net.mode=open", "hide-=*.plan", "hide+=*.key2"].map(str::to_owned);
    client.set_campaign("shop", changed.to_vec()).await.unwrap();
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    home.reaches(&lead.id.to_string(), "its turn to end", is_idle).await;
    let helper = helper(&home, &lead, "tester").await;
    let first = home.ended(&helper.id.to_string()).await;
    let of_lead = policy_of(&home.events(&client, lead.id).await);
    let narrowed = policy_of(&home.events(&client, first.id).await);
    assert_eq!(narrowed.env, ["OLD"]);
    assert_eq!(narrowed.hide, ["*.key2", "*.plan"]);
    assert_eq!(narrowed.net_mode, Some(NetMode::None), "the lead's own program has no network");
    assert!(narrowed.is_within(&of_lead));
    // Whoever goes on with it has no more.
    let next = client.restart_session(&first.id.to_string()).await.unwrap();
    assert_eq!(policy_of(&home.events(&client, next.id).await), narrowed);
}

#[tokio::test]
async fn an_agent_chooses_no_provider_that_nobody_chose_for_its_campaign() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let script =
        "ostler spawn tester hello -p openai-api -m m 2>&1; ostler spawn tester hello -p script 2>&1";
    let lead = client.create_session(named("lead", vec![shell(script)])).await.unwrap();
    home.reaches(&lead.id.to_string(), "its turn to end", is_idle).await;
    let said = outputs(&home.events(&client, lead.id).await).concat();
    assert!(said.contains("agents of shop do not choose openai-api"), "{said}");
    let helper = helper(&home, &lead, "tester").await;
    assert_eq!(helper.provider, "script");
    // A person who registers an agent of it chooses it; what is in the way then is something else.
    let with_it = vec!["provider=openai-api".to_owned(), "model=m".to_owned()];
    client.add_agent("shop", &"coder".parse().unwrap(), with_it).await.unwrap();
    let script = "ostler spawn tester2 hello -p openai-api -m m 2>&1";
    let lead = client.create_session(named("second", vec![shell(script)])).await.unwrap();
    home.reaches(&lead.id.to_string(), "its turn to end", is_idle).await;
    let said = outputs(&home.events(&client, lead.id).await).concat();
    assert!(!said.contains("do not choose"), "{said}");
}

fn uses(output: u64) -> serde_json::Value {
    json!({"usage": {"output": output}})
}

/// A lead with a budget of so many tokens, who runs a script; the prompts of helpers are in files.
async fn lead(home: &TestHome, tokens: u64, script: &str) -> View {
    let mut wanted = named("lead", vec![shell(script), scenario::say("led")]);
    wanted.budget = Some(Budget { tokens: Some(tokens), ..Budget::default() });
    home.client().await.create_session(wanted).await.unwrap()
}

async fn helper(home: &TestHome, of: &View, worker: &str) -> View {
    let client = home.client().await;
    let filter = SessionFilter { spawned_by: Some(of.id), ..SessionFilter::default() };
    let key = format!(":subagent:{worker}:");
    for helper in client.sessions(&filter, Page::of(50, None)).await.unwrap().rows {
        if client.conversation(&helper.conversation.to_string()).await.unwrap().key.as_str().contains(&key) {
            return helper;
        }
    }
    panic!("there is no helper {worker}");
}

#[tokio::test]
async fn helpers_divide_one_budget_however_many_there_are() {
    let home = TestHome::started(OSTLER).await;
    let task = scenario::of(vec![shell("until [ -e end ]; do sleep 0.05; done"), uses(50)]);
    std::fs::write(home.campaign_dir().join("task"), task).unwrap();
    let wants = "spawn() { ostler spawn $1 \"$(cat task)\" $2 $3 2>&1; }; spawn a; spawn b; spawn c --budget 10k; \
                 touch given; spawn d; true";
    let lead = lead(&home, 900, wants).await;
    // What the third one wanted was more than there was: all of it is given, and the lead waits.
    let held = |view: &View| view.attention == Some(Attention::BudgetHold);
    let view = home.reaches(&lead.id.to_string(), "all to be given", held).await;
    assert!(view.evidence.contains("of which its helpers hold 900 tokens"), "{}", view.evidence);
    let mut given = Vec::new();
    for worker in ["a", "b", "c"] {
        given.push(helper(&home, &lead, worker).await.budget.unwrap().tokens.unwrap());
    }
    assert_eq!(given, [100, 100, 700], "equal parts for nine, and the rest");
    // What they left of it is the lead's again: it goes on by itself, and can ask for another.
    std::fs::write(home.campaign_dir().join("end"), "").unwrap();
    let view = home.reaches(&lead.id.to_string(), "its turn to end", is_idle).await;
    assert_eq!(view.last_completion.as_deref(), Some("led"));
    let client = home.client().await;
    let fourth = home.ended(&helper(&home, &lead, "d").await.id.to_string()).await;
    assert!(fourth.budget.unwrap().tokens.unwrap() < 900, "{:?}", fourth.budget);
    let charged = |events: Vec<Recorded>| {
        events.into_iter().rev().find_map(|recorded| match recorded.event {
            Event::HelpersCharged(lent) => Some((lent.tokens, lent.held_tokens)),
            _ => None,
        })
    };
    tokio::time::timeout(wait::PATIENCE, async {
        while charged(home.events(&client, lead.id).await) != Some((200, 0)) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("what four helpers used is the lead's to account for");
}

#[tokio::test]
async fn what_helpers_use_is_charged_to_whoever_asked_for_them_at_any_depth() {
    let home = TestHome::started(OSTLER).await;
    let grandchild = scenario::of(vec![uses(300)]);
    let child =
        scenario::of(vec![shell("ostler spawn deep \"$(cat grandchild)\" --budget 300; sleep 1"), uses(100)]);
    std::fs::write(home.campaign_dir().join("grandchild"), grandchild).unwrap();
    std::fs::write(home.campaign_dir().join("child"), child).unwrap();
    let script = "ostler spawn one \"$(cat child)\" --budget 600 2>&1; until [ -e go ]; do sleep 0.05; done; \
                  ostler spawn two \"$(cat grandchild)\" --budget 1k 2>&1; true";
    let lead = lead(&home, 1_000, script).await;
    home.reaches(&lead.id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await;
    let client = home.client().await;
    let one = async {
        loop {
            let filter = SessionFilter { spawned_by: Some(lead.id), ..SessionFilter::default() };
            if let Some(one) = client.sessions(&filter, Page::of(1, None)).await.unwrap().rows.pop() {
                return one;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let one = tokio::time::timeout(wait::PATIENCE, one).await.expect("nobody was asked for");
    home.ended(&one.id.to_string()).await;
    home.ended(&helper(&home, &one, "deep").await.id.to_string()).await;
    let charged = async {
        while !home.events(&client, lead.id).await.iter().any(|recorded| {
            matches!(&recorded.event, Event::HelpersCharged(lent) if (lent.tokens, lent.held_tokens) == (400, 0))
        }) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(wait::PATIENCE, charged).await.expect("both are charged");
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    home.reaches(&lead.id.to_string(), "its turn to end", is_idle).await;
    let two = helper(&home, &lead, "two").await;
    assert_eq!(two.budget.unwrap().tokens, Some(600), "what is left of 1000");
}

#[tokio::test]
async fn a_helper_has_no_more_time_than_whoever_asked_for_it() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    std::fs::write(home.campaign_dir().join("task"), scenario::of(vec![shell("sleep 600")])).unwrap();
    let mut wanted = named("lead", vec![shell("ostler spawn slow \"$(cat task)\"; sleep 600")]);
    wanted.timeout = Some(std::time::Duration::from_secs(4));
    let lead = client.create_session(wanted).await.unwrap();
    assert_eq!(home.ended(&lead.id.to_string()).await.outcome, Some(Outcome::Timeout));
    let slow = helper(&home, &lead, "slow").await;
    assert_eq!(home.ended(&slow.id.to_string()).await.outcome, Some(Outcome::Timeout));
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

#[tokio::test]
async fn helpers_have_helpers_three_deep_and_no_deeper() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let asks = |worker: &str, task: &str| {
        scenario::of(vec![shell(&format!(
            "ostler spawn {worker} \"$(cat {task})\" > said-{worker} 2>&1; true"
        ))])
    };
    for (task, prompt) in [
        ("t0", "hello".to_owned()),
        ("t1", asks("d", "t0")),
        ("t2", asks("c", "t1")),
        ("t3", asks("b", "t2")),
    ] {
        std::fs::write(home.campaign_dir().join(task), prompt).unwrap();
    }
    let script = "ostler spawn a \"$(cat t3)\"";
    client.create_session(named("lead", vec![shell(script)])).await.unwrap();
    let said = home.campaign_dir().join("said-d");
    wait::until("the fourth to be asked for", wait::PATIENCE, || {
        std::fs::read_to_string(&said).is_ok_and(|said| said.contains("helpers have helpers to a depth of 3"))
    });
    for worker in ["b", "c"] {
        let said = std::fs::read_to_string(home.campaign_dir().join(format!("said-{worker}"))).unwrap();
        assert!(!said.contains("error"), "{worker}: {said}");
    }
}
