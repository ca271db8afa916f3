//! Budgets in dollars, of sessions and of campaigns, held by gateways with and without a daemon.

use std::{fs, time::Duration};

use ostler_client::{
    Client, CreateSession, ListEvents, Place,
    query::{EventFilter, Page, SessionFilter},
};
use ostler_domain::{
    Budget, Event, Kind, Reason, SessionId,
    budget::WhenUsedUp,
    price::Dollars,
    session::{Attention, Outcome, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::{
    OSTLER,
    exec::OnTerminal,
    model::{Model, call, home, used},
};

/// 50, 7 and 10 tokens at 2, 0.2 and 10 dollars a million.
const CALL: Dollars = Dollars(201);

pub(crate) fn waits_for(file: &str) -> Value {
    json!({"run": ["bash", "-c", format!("until [ -e {file} ]; do sleep 0.02; done")]})
}

async fn begin(client: &Client, steps: Vec<Value>, dollars: Option<u64>, when_used_up: WhenUsedUp) -> View {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(steps));
    wanted.ends_with_turn = true;
    wanted.when_used_up = when_used_up;
    wanted.budget =
        dollars.map(|micros| Budget { tokens: None, dollars: Some(Dollars(micros)), when_used_up });
    client.create_session(wanted).await.unwrap()
}

fn set(home: &TestHome, budget: &str) {
    let set = home.run(&["campaign", "set", "shop", &format!("budget={budget}")]);
    assert!(set.status.success(), "{set:?}");
}

async fn held(home: &TestHome, id: SessionId) -> View {
    let is_held = |view: &View| view.attention == Some(Attention::BudgetHold);
    home.reaches(&id.to_string(), "a budget that holds", is_held).await
}

#[tokio::test]
async fn dollars_hold_with_no_daemon_and_the_held_call_goes_on_when_more_is_allowed() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let client = home.client().await;
    let steps = vec![waits_for("go"), call(), call(), call()];
    let id = begin(&client, steps, Some(400), WhenUsedUp::Hold).await.id;
    home.reaches(&id.to_string(), "a tool that runs", |view| view.attention == Some(Attention::Working))
        .await;
    home.kill_daemon();
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    wait::until("two calls", wait::PATIENCE, || model.calls() == 2);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(model.calls(), 2, "the gateway holds the third by itself");
    let client = home.start().await;
    let view = held(&home, id).await;
    assert_eq!(view.cost.paid, Dollars(2 * CALL.0));
    assert!(view.evidence.contains("$0.0004 of $0.0004 used"), "{}", view.evidence);
    let costs: Vec<_> = used(&home.events(&client, id).await).iter().map(|used| used.cost).collect();
    assert_eq!(costs, [Some(CALL), Some(CALL)], "what a call cost is recorded with it");
    let told = home.run(&["send", "--wait", &id.to_string(), "and more"]);
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(11), "nobody waits for what waits for them: {said}");
    assert!(said.contains("--budget 0.000804usd"), "{said}");
    let resumed = home.run(&["resume", &id.to_string(), "--budget", "1usd"]);
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(home.ended(&id.to_string()).await.outcome, Some(Outcome::Done));
    assert_eq!(model.calls(), 3);

    // Another price changes nothing about what was paid.
    let priced = home.run(&["price", "set", "claude-sonnet-5", "input=1000", "output=1000"]);
    assert!(priced.status.success(), "{priced:?}");
    let cost: Value = serde_json::from_slice(&home.run(&["cost", "-o", "json"]).stdout).unwrap();
    assert_eq!(cost["total"]["cost"], "0.000603", "{cost}");
    let listed = String::from_utf8(home.run(&["ls", "-a"]).stdout).unwrap();
    assert!(listed.contains("COST") && listed.contains("$0.0006"), "{listed}");
}

#[tokio::test]
async fn without_a_person_dollars_end_the_run_with_exit_11() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let prompt = scenario::of(vec![call(), call(), call()]);
    let run = home.run(&["run", "-p", "script", "--budget", "0.0004usd", "-o", "json", &prompt]);
    assert_eq!(run.status.code(), Some(11), "{run:?}");
    let told: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&told["outcome"], &told["cost"]["amount"]), (&json!("budget"), &json!("0.000402")), "{told}");
    assert_eq!(told["cost"]["source"], "wire", "{told}");
    assert!(told["obituary"].as_str().unwrap().contains("budget of 0.0004usd was used up"), "{told}");
    assert_eq!(model.calls(), 2);
    let id = told["session"].as_str().unwrap();
    let again = home.run(&["run", "-p", "script", "--budget", "0.0004usd", &prompt]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(again.status.code(), Some(11), "{said}");
    assert!(said.contains("ostler resume ") && said.contains(" --budget 0.000804usd"), "the cure: {said}");
    // A new process is no new budget.
    let cure = "ostler resume ";
    for again in [&["send", id, "go on"][..], &["resume", id], &["restart", id]] {
        let refused = home.run(again);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(4), "{said}");
        assert!(said.contains("OVER_BUDGET") && said.contains(cure) && said.contains("--budget"), "{said}");
    }
    assert_eq!(model.calls(), 4);
    let too_little = home.run(&["resume", id, "--budget", "0.0004usd"]);
    assert_eq!(too_little.status.code(), Some(4), "{too_little:?}");
    let resumed = home.run(&["resume", id, "--budget", "0.001usd", "-o", "json"]);
    assert!(resumed.status.success(), "{resumed:?}");
    let sessions: Value = serde_json::from_slice(&home.run(&["ls", "-a", "-o", "json"]).stdout).unwrap();
    let sessions = sessions["sessions"].as_array().unwrap();
    let next = sessions.iter().find(|session| session["continues"] == id).expect("a session that goes on");
    assert_eq!(next["budget"]["dollars"], Dollars(1000 - 2 * CALL.0).decimal(), "what is left: {next}");
}

#[tokio::test]
async fn a_message_wakes_what_a_campaign_s_budget_ended_once_that_is_raised() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    set(&home, "0.0004usd/day");
    let client = home.client().await;
    let session = begin(&client, vec![call(), call(), call()], None, WhenUsedUp::Stop).await;
    let id = session.id.to_string();
    assert_eq!(home.ended(&id).await.outcome, Some(Outcome::Budget));
    let refused = home.run(&["send", &id, "go on"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("ostler campaign set shop budget="), "{said}");
    set(&home, "5usd/day");
    let sent = home.run(&["send", &id, "go on"]);
    assert!(sent.status.success(), "{sent:?}");
}

#[tokio::test]
async fn a_campaign_s_dollars_are_shared_by_its_sessions_and_hold_with_no_daemon() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    // Ten calls.
    set(&home, "0.00201usd/day");
    let client = home.client().await;
    let steps = || {
        let calls = (0..12).map(|_| call());
        std::iter::once(waits_for("go")).chain(calls).collect::<Vec<_>>()
    };
    let first = begin(&client, steps(), None, WhenUsedUp::Hold).await.id;
    let second = begin(&client, steps(), None, WhenUsedUp::Hold).await.id;
    for id in [first, second] {
        home.reaches(&id.to_string(), "a tool that runs", |view| {
            view.attention == Some(Attention::Working) && view.doing.is_some()
        })
        .await;
    }
    // Their shares have been given out by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    home.kill_daemon();
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    wait::until("ten calls", wait::PATIENCE, || model.calls() >= 10);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!((10..=11).contains(&model.calls()), "each share ends within one call: {}", model.calls());
    let client = home.start().await;
    let views = [held(&home, first).await, held(&home, second).await];
    for view in &views {
        assert!(view.evidence.contains("campaign shop: "), "{}", view.evidence);
        assert!(view.evidence.contains("used today (UTC)"), "{}", view.evidence);
    }
    let calls = model.calls();
    assert!(calls <= 11, "{calls}");

    // Nothing new is started, and the cure is said.
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(vec![call()]));
    let refused = client.create_session(wanted).await.unwrap_err();
    assert_eq!(refused.to_refusal().reason, Reason::OverBudget, "{refused}");
    let run = home.run(&["run", "-p", "script", "hello"]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(4), "{said}");
    assert!(said.contains("ostler campaign set shop budget=AMOUNT/day"), "{said}");
    let resumed = home.run(&["resume", &first.to_string(), "--budget", "5usd"]);
    assert_eq!(resumed.status.code(), Some(4), "the session's own budget is not what holds it: {resumed:?}");

    let kinds = vec![Kind::BudgetWarned];
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let warned = client.events(&ListEvents { filter, from: Place::After(0), limit: 100 }).await.unwrap();
    let warned = warned.events;
    assert_eq!(warned.len(), 1, "once: {warned:?}");

    set(&home, "5usd/day");
    for id in [first, second] {
        assert_eq!(home.ended(&id.to_string()).await.outcome, Some(Outcome::Done));
    }
    assert_eq!(model.calls(), 24);
    let listed = home.run(&["ls", "-a"]);
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(said.contains("today (UTC) $0.0048 of $5.00"), "{said}");
}

#[tokio::test]
async fn an_agent_s_dollars_are_those_of_all_its_sessions_and_their_helpers() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let client = home.client().await;
    // Five calls, of which four are eighty percent.
    let budget = vec!["provider=script".to_owned(), "budget=0.001usd/day".to_owned()];
    let agent = client.add_agent("shop", &"api".parse().unwrap(), budget).await.unwrap();
    let of_agent = |key: &str, steps: Vec<Value>| {
        let mut wanted = CreateSession::new("shop", "");
        wanted.agent = Some("api".to_owned());
        wanted.key = Some(key.parse().unwrap());
        wanted.initial_message = Some(scenario::of(steps));
        wanted.ends_with_turn = true;
        wanted
    };
    fs::write(home.campaign_dir().join("task"), scenario::of(vec![call(), call()])).unwrap();
    let asks = json!({"run": ["bash", "-c", "ostler spawn tester \"$(cat task)\""]});
    let first = client.create_session(of_agent("one", vec![call(), call(), asks])).await.unwrap();
    assert_eq!(home.ended(&first.id.to_string()).await.outcome, Some(Outcome::Done));
    let helped = SessionFilter { spawned_by: Some(first.id), ..SessionFilter::default() };
    let helper = client.sessions(&helped, Page::of(1, None)).await.unwrap().rows.remove(0);
    assert_eq!(home.ended(&helper.id.to_string()).await.outcome, Some(Outcome::Done));
    assert_eq!(model.calls(), 4);
    let (_, used) = client.agent_with_use("api").await.unwrap();
    assert_eq!(used.unwrap().dollars, Dollars(4 * CALL.0), "with its helper's");

    let second = client.create_session(of_agent("two", vec![call(), call(), call()])).await.unwrap().id;
    let view = held(&home, second).await;
    assert!(
        view.evidence.contains("agent api: ") && view.evidence.contains("today (UTC)"),
        "{}",
        view.evidence
    );
    assert_eq!(model.calls(), 5, "one more fits, and not two");
    let kinds = vec![Kind::BudgetWarned];
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let warned =
        client.events(&ListEvents { filter, from: Place::After(0), limit: 100 }).await.unwrap().events;
    let told = format!("{warned:?}");
    assert!(warned.len() == 1 && told.contains(&agent.id.to_string()), "once, and whose it is: {told}");
    // Others of the campaign go on; the agent itself starts nothing, and the cure is said.
    let other = begin(&client, vec![call()], None, WhenUsedUp::Hold).await;
    assert_eq!(home.ended(&other.id.to_string()).await.outcome, Some(Outcome::Done));
    let refused = home.run(&["run", "--agent", "api", "--key", "three", "hello"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("ostler agent set shop/api budget=AMOUNT/day"), "{said}");
    let shown = String::from_utf8(home.run(&["agent", "show", "api"]).stdout).unwrap();
    assert!(shown.contains("today (UTC), used up"), "{shown}");
    let cost = String::from_utf8(home.run(&["cost"]).stderr).unwrap();
    assert!(cost.contains("budget shop/api"), "{cost}");
    let raised = home.run(&["agent", "set", "api", "budget=1usd/day"]);
    assert!(raised.status.success(), "{raised:?}");
    assert_eq!(home.ended(&second.to_string()).await.outcome, Some(Outcome::Done));
    assert_eq!(model.calls(), 8);
}

#[tokio::test]
async fn a_campaign_s_used_up_budget_ends_what_nobody_watches() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    set(&home, "100");
    let client = home.client().await;
    let steps = vec![call(), call(), call(), waits_for("never")];
    let id = begin(&client, steps, None, WhenUsedUp::Stop).await.id;
    let view = home.ended(&id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Budget), "{view:?}");
    assert!(view.evidence.contains("its campaign's budget of 100 was used up"), "{}", view.evidence);
    assert_eq!(model.calls(), 2);
}

#[tokio::test]
async fn a_model_without_a_price_is_refused_or_held_until_it_has_one() {
    let model = Model::start_with("new-model");
    let Some(home) = home(&model).await else { return };
    let named = home.run(&["run", "-p", "script", "-m", "new-model", "--budget", "2usd", "hello"]);
    let said = String::from_utf8_lossy(&named.stderr).into_owned();
    assert_eq!(named.status.code(), Some(4), "{said}");
    assert!(said.contains("PRICE_UNKNOWN") && said.contains("ostler price set new-model input="), "{said}");
    assert_eq!(model.calls(), 0);

    // One that nobody named beforehand is seen at its first call.
    let client = home.client().await;
    let id = begin(&client, vec![call(), call()], Some(1_000_000), WhenUsedUp::Hold).await.id;
    let view = held(&home, id).await;
    assert!(view.evidence.contains("ostler price set new-model"), "{}", view.evidence);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(model.calls(), 1, "the gateway holds what it cannot count");
    let resumed = home.run(&["resume", &id.to_string(), "--budget", "5usd"]);
    assert_eq!(resumed.status.code(), Some(4), "more dollars do not help: {resumed:?}");
    assert!(home.run(&["price", "set", "new-model", "input=1", "output=1"]).status.success());
    let resumed = home.run(&["resume", &id.to_string()]);
    assert!(resumed.status.success(), "{resumed:?}");
    let view = home.ended(&id.to_string()).await;
    assert_eq!((view.outcome, model.calls()), (Some(Outcome::Done), 2));
    let events = home.events(&client, id).await;
    assert!(events.iter().any(|recorded| {
        matches!(&recorded.event, Event::BudgetExceeded(reached) if reached.unpriced.as_deref() == Some("new-model"))
    }));
    let cost: Value = serde_json::from_slice(&home.run(&["cost", "-o", "json"]).stdout).unwrap();
    assert_eq!(cost["total"]["is_known"], true, "what had no price has one now: {cost}");
    let shown: Value =
        serde_json::from_slice(&home.run(&["show", &id.to_string(), "-o", "json"]).stdout).unwrap();
    assert_eq!(shown["cost"]["amount"], cost["total"]["cost"], "one answer, whoever is asked: {shown}");
    assert_eq!(shown["cost"]["is_known"], true, "{shown}");
    let listed = String::from_utf8(home.run(&["ls", "-a"]).stdout).unwrap();
    assert!(listed.contains("$0.0001") && !listed.contains('?'), "{listed}");
}

#[tokio::test]
async fn whom_a_campaign_s_budget_holds_for_want_of_a_price_goes_on_when_it_is_set() {
    const SOON: Duration = Duration::from_secs(20);
    let model = Model::start_with("new-model");
    let Some(home) = home(&model).await else { return };
    assert!(home.run(&["campaign", "set", "shop", "budget=5usd/day"]).status.success());
    let client = home.client().await;
    let id = begin(&client, vec![call(), call()], None, WhenUsedUp::Hold).await.id;
    let view = held(&home, id).await;
    assert!(view.evidence.contains("new-model"), "{}", view.evidence);
    assert!(home.run(&["price", "set", "new-model", "input=1", "output=1"]).status.success());
    let set = std::time::Instant::now();
    let view = home.ended(&id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Done), "{view:?}");
    assert!(set.elapsed() < SOON, "it was held for {:?} more", set.elapsed());
}

#[tokio::test]
async fn a_network_that_leads_to_no_model_is_refused() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    for mode in ["none", "host"] {
        assert!(home.run(&["campaign", "set", "shop", &format!("net.mode={mode}")]).status.success());
        let run = home.run(&["run", "-p", "script", "hello"]);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(5), "{said}");
        assert!(said.contains("MODEL_UNREACHABLE") && said.contains("net.mode=provider"), "{said}");
    }
}

#[tokio::test]
async fn who_is_held_ends_its_turn_when_it_goes_on_and_a_copy_has_the_raised_budget() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let client = home.client().await;
    let steps = vec![call(), call(), waits_for("never")];
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(steps));
    let (dollars, when_used_up) = (Some(Dollars(200)), WhenUsedUp::Hold);
    wanted.budget = Some(Budget { tokens: None, dollars, when_used_up });
    let id = client.create_session(wanted).await.unwrap().id;
    held(&home, id).await;
    let interrupted = home.run(&["interrupt", &id.to_string()]);
    let said = String::from_utf8(interrupted.stdout).unwrap();
    assert!(said.contains("is held at its budget") && said.contains("--budget"), "{said}");
    assert!(home.run(&["resume", &id.to_string(), "--budget", "3usd"]).status.success());
    home.reaches(&id.to_string(), "its turn to end", |view| view.attention == Some(Attention::Idle)).await;
    let ended = home.events(&client, id).await.into_iter().find_map(|recorded| match recorded.event {
        Event::TurnEnded(ended) => Some(ended.stop_reason),
        _ => None,
    });
    assert_eq!(ended, Some(ostler_domain::event::StopReason::Interrupted));
    let copied = home.run(&["fork", &id.to_string(), "-o", "json"]);
    let copy: Value = serde_json::from_slice(&copied.stdout).unwrap();
    assert_eq!(copy["budget"]["dollars"], "3.00", "{copy}");
}

#[tokio::test]
async fn whoever_runs_is_asked_for_more_and_whoever_waits_is_told_who_could_allow_it() {
    let home = TestHome::started(OSTLER).await;
    let uses = |input: u64| json!({"usage": {"input": input}});
    let steps = scenario::of(vec![
        uses(600),
        json!({"sleep_ms": 200}),
        uses(900),
        json!({"sleep_ms": 200}),
        scenario::say("went on"),
    ]);
    let run = ["run", "-C", "shop", "--name", "dear", "--budget", "500", &steps];
    let mut person = OnTerminal::start(&home, &run);
    person.until_shown("[r]aise to 1200  [s]top  [d]etach");
    let waited = home.run(&["wait", "dear", "--timeout", "300ms"]);
    let said = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert!(waited.status.code() == Some(8) && said.contains("600 of 500 tokens used"), "{said}");
    assert!(said.contains("ostler resume ") && said.contains(" --budget 1200"), "{said}");
    person.type_in("r\n");
    person.until_shown("[r]aise to 3k");
    // Whoever else raises it answers too.
    assert!(home.run(&["resume", "dear", "--budget", "9k"]).status.success());
    person.until_shown("went on");
    assert!(person.child.wait().unwrap().success(), "{}", person.shown);
}

#[tokio::test]
async fn a_last_call_that_uses_up_the_budget_asks_a_person_and_stops_without_one() {
    let home = TestHome::started(OSTLER).await;
    let steps = scenario::of(vec![json!({"usage": {"input": 600}}), scenario::say("all is done")]);
    let run = ["run", "-C", "shop", "--budget", "500", "--name"];
    for name in ["first", "second", "third"] {
        let ended = home.run(&[&run[..], &[name, &steps]].concat());
        assert_eq!(ended.status.code(), Some(11), "{ended:?}");
        let mut person =
            OnTerminal::start(&home, &[&run[..], &[&format!("{name}-watched"), &steps]].concat());
        person.until_shown("[r]aise to 1200  [s]top  [d]etach");
        person.type_in("r\n");
        person.until_shown("all is done");
        assert!(person.child.wait().unwrap().success(), "{}", person.shown);
    }
}

#[tokio::test]
async fn whoever_attaches_is_told_what_lets_a_held_session_go_on() {
    let home = TestHome::started(OSTLER).await;
    let uses = |input: u64| json!({"usage": {"input": input}});
    let steps = scenario::of(vec![uses(600), waits_for("never")]);
    assert!(
        home.run(&["run", "-d", "-C", "shop", "--name", "dear", "--budget", "500", &steps]).status.success()
    );
    let cure = home.reaches("dear", "the hold", |view| view.attention == Some(Attention::BudgetHold)).await;
    let cure = format!("ostler resume {} --budget 1200", cure.id.short());
    let mut later = OnTerminal::start(&home, &["attach", "dear"]);
    later.until_shown(&cure);
    later.child.kill().unwrap();
    later.child.wait().unwrap();

    // A campaign's, which comes while somebody looks.
    let steps = scenario::of(vec![waits_for("go"), uses(600), waits_for("never")]);
    assert!(home.run(&["run", "-d", "-C", "shop", "--name", "other", &steps]).status.success());
    let mut present = OnTerminal::start(&home, &["attach", "other"]);
    present.until_shown("Ctrl-C leaves");
    set(&home, "700");
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    present.until_shown("ostler campaign set shop budget=AMOUNT/PERIOD");
    present.child.kill().unwrap();
    present.child.wait().unwrap();
}

#[tokio::test]
async fn an_audit_looks_at_sessions_that_called_a_model_however_many_others_came_since() {
    let home = TestHome::started(OSTLER).await;
    let run = |name: &str, steps: Vec<Value>| {
        let ran = home.run(&["run", "-C", "shop", "--name", name, &scenario::of(steps)]);
        assert!(ran.status.success(), "{ran:?}");
    };
    run("thinker", vec![json!({"usage": {"input": 600}}), scenario::say("done")]);
    for n in 0..3 {
        run(&format!("idler-{n}"), vec![scenario::say("done")]);
    }
    let audit = home.run(&["usage", "audit", "--limit", "2", "-o", "json"]);
    let told: Value = serde_json::from_slice(&audit.stdout).unwrap();
    let names: Vec<_> = told["sessions"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["thinker"], "{told}");
}

#[tokio::test]
async fn who_goes_on_in_a_conversation_has_what_is_left_by_run_as_by_send() {
    let home = TestHome::started(OSTLER).await;
    let added = home.run(&["agent", "add", "-C", "shop", "api", "-p", "script", "--budget", "500"]);
    assert!(added.status.success(), "{added:?}");
    let uses = |input: u64| {
        let steps =
            vec![json!({"usage": {"input": input}}), json!({"sleep_ms": 1_500}), scenario::say("done")];
        scenario::of(steps)
    };
    let run = |more: &[&str]| home.run(&[&["run", "-C", "shop", "--agent", "api"][..], more].concat());
    assert_eq!(run(&[&uses(200)]).status.code(), Some(0));
    let budget = |session: &Value| session["budget"]["tokens"].clone();
    let ran = run(&["-o", "json", &uses(400)]);
    assert_eq!(ran.status.code(), Some(11), "{ran:?}");
    let shown: Value = serde_json::from_slice(&home.run(&["show", "api", "-o", "json"]).stdout).unwrap();
    assert_eq!(budget(&shown), json!(300), "what the first had left: {shown}");
    for refused in [run(&[&uses(1)]), home.run(&["send", "api", &uses(1)])] {
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(4), "{said}");
        assert!(said.contains("OVER_BUDGET") && said.contains("--budget"), "{said}");
    }
    assert_eq!(run(&["--budget", "5k", &uses(1)]).status.code(), Some(0), "a person gives it its own");
    assert_eq!(
        run(&["--key", "other", &uses(400)]).status.code(),
        Some(0),
        "another conversation has its own"
    );
}
