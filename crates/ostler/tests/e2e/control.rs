//! What people do to sessions: pause, interrupt, stop, kill, budgets, timeouts, approvals, messages.

use std::time::Duration;

use ostler_client::{AnswerApproval, CreateSession, ResumeSession, SendMessage};
use ostler_domain::{
    Budget, Event, Kind, Reason, Receipt,
    budget::WhenUsedUp,
    session::{Attention, Outcome, Restart, RestartPolicy, Status, View},
};
use ostler_testkit::{TestHome, numbers, scenario, wait};
use serde_json::json;

use crate::OSTLER;

fn wanted(prompt: &str) -> CreateSession {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(prompt.to_owned());
    wanted
}

fn counting(n: u64) -> String {
    scenario::of(vec![scenario::count("tick", n, 10)])
}

fn is_working(view: &View) -> bool {
    view.attention == Some(Attention::Working) && view.last_completion.is_some()
}

#[tokio::test]
async fn a_paused_tree_stands_still_and_goes_on() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = client.create_session(wanted(&counting(200))).await.unwrap().id;
    let who = id.to_string();
    home.reaches(&who, "work", is_working).await;
    let paused = client.pause_session(&who).await.unwrap();
    assert_eq!((paused.attention, paused.status), (Some(Attention::Paused), Status::Running));
    let last = || async { client.session(&who).await.unwrap().session_seq };
    // What was under way may still come; then nothing does.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = last().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(last().await, before, "a paused agent went on");
    // The pause outlives the daemon.
    home.kill_daemon();
    let client = home.start().await;
    let view =
        home.reaches(&who, "the pause to be known", |view| view.attention == Some(Attention::Paused)).await;
    assert_eq!(view.session_seq, before);
    client.resume_session(ResumeSession { who: who.clone(), ..ResumeSession::default() }).await.unwrap();
    home.reaches(&who, "the turn to end", |view| view.attention == Some(Attention::Idle)).await;
    let events = home.events(&client, id).await;
    numbers::assert_complete(&numbers::counted(&events, "tick"), 200, "the paused session");
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_what_waits_follows() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = client.create_session(wanted(&counting(100_000))).await.unwrap().id;
    let who = id.to_string();
    home.reaches(&who, "work", is_working).await;
    let sent = client
        .send_message(SendMessage { who: who.clone(), text: "and then?".into(), ..SendMessage::default() })
        .await
        .unwrap()
        .sent()
        .unwrap();
    assert_eq!((sent.receipt, sent.woke), (Receipt::Accepted, false));
    client.interrupt_session(&who).await.unwrap();
    home.reaches(&who, "the second turn to end", |view| {
        view.turns == 2 && view.attention == Some(Attention::Idle)
    })
    .await;
    let delivery = client.message(&sent.message.to_string()).await.unwrap();
    assert_eq!(delivery.receipt, Receipt::Answered);
    client.stop_session(&who, false).await.unwrap();
    assert_eq!(home.ended(&who).await.outcome, Some(Outcome::Stopped));
    // A message wakes the conversation in a new session that continues the old one.
    let sent = client
        .send_message(SendMessage { who: who.clone(), text: "again".into(), ..SendMessage::default() })
        .await
        .unwrap()
        .sent()
        .unwrap();
    assert!(sent.woke);
    assert_eq!((sent.session.continues, sent.session.chain, sent.session.restart_count), (Some(id), id, 1));
}

#[tokio::test]
async fn a_kill_takes_the_whole_tree_without_the_ladder() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let steps = vec![scenario::say("now"), json!({"run": ["sh", "-c", "setsid sleep 300 & sleep 300"]})];
    let id = client.create_session(wanted(&scenario::of(steps))).await.unwrap().id;
    let who = id.to_string();
    wait::until("the tree to grow", wait::PATIENCE, || home.session_processes(id).len() >= 4);
    client.stop_session(&who, true).await.unwrap();
    let view = home.ended(&who).await;
    assert_eq!((view.outcome, view.status), (Some(Outcome::Killed), Status::Stopped));
    wait::until("the tree to be gone", Duration::from_secs(2), || home.session_processes(id).is_empty());
}

#[tokio::test]
async fn a_time_limit_ends_a_session() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let session = CreateSession { timeout: Some(Duration::from_millis(300)), ..wanted(&counting(100_000)) };
    let id = client.create_session(session).await.unwrap().id;
    let view = home.ended(&id.to_string()).await;
    assert_eq!((view.outcome, view.status), (Some(Outcome::Timeout), Status::Stopped));
    assert!(view.obituary.unwrap().sentence.contains("time limit"));
}

#[tokio::test]
async fn a_used_up_budget_holds_until_it_is_raised() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let step =
        json!({"repeat": 40, "every_ms": 20, "steps": [{"usage": {"output": 100}}, {"say": "tick {i}"}]});
    let budget = Some(Budget { tokens: Some(1_000), dollars: None, when_used_up: WhenUsedUp::Hold });
    let id = client
        .create_session(CreateSession { budget, ..wanted(&scenario::of(vec![step.clone()])) })
        .await
        .unwrap()
        .id;
    let who = id.to_string();
    let held = home.reaches(&who, "the hold", |view| view.attention == Some(Attention::BudgetHold)).await;
    assert!(held.usage.output >= 1_000 && held.usage.output < 4_000, "{:?}", held.usage);
    assert!(
        client.resume_session(ResumeSession { who: who.clone(), ..ResumeSession::default() }).await.is_err()
    );
    client
        .resume_session(ResumeSession {
            who: who.clone(),
            max_tokens: Some(10_000),
            ..ResumeSession::default()
        })
        .await
        .unwrap();
    let done = home.reaches(&who, "the turn to end", |view| view.attention == Some(Attention::Idle)).await;
    assert_eq!(done.usage.output, 4_000);
    let kinds: Vec<Kind> = home.events(&client, id).await.iter().map(|event| event.event.kind()).collect();
    assert!(kinds.contains(&Kind::BudgetWarned) && kinds.contains(&Kind::BudgetExceeded));

    let budget = Some(Budget { tokens: Some(1_000), dollars: None, when_used_up: WhenUsedUp::Stop });
    let id = client
        .create_session(CreateSession { budget, ..wanted(&scenario::of(vec![step])) })
        .await
        .unwrap()
        .id;
    assert_eq!(home.ended(&id.to_string()).await.outcome, Some(Outcome::Budget));
}

#[tokio::test]
async fn an_approval_waits_for_a_person() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let steps = vec![json!({"ask": {"tool": "run", "input": "make deploy"}}), scenario::say("went on")];
    let id = client.create_session(wanted(&scenario::of(steps))).await.unwrap().id;
    let who = id.to_string();
    let view =
        home.reaches(&who, "the question", |view| view.attention == Some(Attention::WaitingApproval)).await;
    let approval = view.approvals_open[0];
    let answer = AnswerApproval {
        approval: approval.short(),
        allow: false,
        always: false,
        message: "not on a Sunday".into(),
    };
    client.answer_approval(answer.clone()).await.unwrap();
    let view = home.reaches(&who, "the turn to end", |view| view.attention == Some(Attention::Idle)).await;
    assert_eq!((view.last_completion.as_deref(), view.denied), (Some("went on"), 1));
    assert!(client.answer_approval(answer).await.is_err(), "an answered approval was answered again");
}

#[tokio::test]
async fn a_crash_is_restarted_by_policy_and_ends_in_quarantine() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let prompt = scenario::of(vec![scenario::say("now"), json!({"exit": 3})]);
    let session = CreateSession { restart: RestartPolicy::OnFailure, ..wanted(&prompt) };
    let first = client.create_session(session).await.unwrap();
    let crashed = home.ended(&first.id.to_string()).await;
    assert_eq!((crashed.outcome, crashed.status), (Some(Outcome::Crashed), Status::Failed));
    let obituary = crashed.obituary.unwrap();
    assert_eq!((obituary.exit_code, obituary.signal), (Some(3), None));
    // The prompt was seen, so it is not said again: the next one is told that it was interrupted, and goes on.
    let chain = wait_for_chain(&home, &first.id.to_string(), 2).await;
    assert_eq!((chain[1].continues, chain[1].restart_count), (Some(first.id), 1));
    // Each life is told to crash again, until the fifth short one in a row ends in quarantine.
    let mut last = chain[1].id;
    for life in 2..=5 {
        client
            .send_message(SendMessage {
                who: last.to_string(),
                text: prompt.clone(),
                ..SendMessage::default()
            })
            .await
            .unwrap()
            .sent()
            .unwrap();
        let ended = home.ended(&last.to_string()).await;
        match ended.restart {
            Some(Restart::At(_)) if life < 5 => {
                last = wait_for_chain(&home, &first.id.to_string(), life + 1).await[life].id
            }
            Some(Restart::Quarantined { short_lives: 5 }) if life == 5 => {}
            other => panic!("life {life}: {other:?}"),
        }
    }
    let refused = client
        .send_message(SendMessage { who: last.to_string(), text: "go on".into(), ..SendMessage::default() })
        .await;
    let refusal = refused.unwrap_err().to_refusal();
    assert_eq!(refusal.reason, Reason::Quarantined);
    assert_eq!(refusal.why.unwrap().matches("exit code 3").count(), 3, "the last three obituaries");
    // A person may start it anew.
    let anew = client.restart_session(&last.to_string()).await.unwrap();
    assert_eq!((anew.continues, anew.restart_count), (Some(last), 5));
}

fn said(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn who_is_stopped_while_something_keeps_it_from_going_on_stays_as_it_is() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let waits = json!({"run": ["sh", "-c", "touch began; while [ ! -e go ]; do sleep 0.05; done"]});
    let prompt = scenario::of(vec![waits, json!({"exit": 3})]);
    let session = CreateSession { restart: RestartPolicy::OnFailure, ..wanted(&prompt) };
    let who = client.create_session(session).await.unwrap().id.to_string();
    let (dir, elsewhere) = (home.campaign_dir(), home.path().join("elsewhere"));
    wait::until("the tool to run", wait::PATIENCE, || dir.join("began").exists());
    std::fs::rename(&dir, &elsewhere).unwrap();
    std::fs::write(elsewhere.join("go"), "").unwrap();
    home.reaches(&who, "a refused restart", |view| view.restart_refused.is_some()).await;
    said(&home, &["stop", &who]);
    assert!(client.session(&who).await.unwrap().restart_refused.is_none());
    std::fs::rename(&elsewhere, &dir).unwrap();
    // A new daemon would take up what waits before anything else.
    home.kill_daemon();
    let client = home.start().await;
    let other = home.session(&client, &scenario::of(vec![scenario::say("meanwhile")])).await;
    home.reaches(&other.id.to_string(), "its answer", |view| view.last_completion.is_some()).await;
    assert_eq!(client.session(&who).await.unwrap().continued_by, None);
    said(&home, &["resume", &who]);
    assert!(client.session(&who).await.unwrap().continued_by.is_some(), "a person may still go on with it");
}

#[tokio::test]
async fn a_restart_that_is_refused_is_said_and_kept_when_nothing_is_in_the_way_any_more() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let waits = json!({"run": ["sh", "-c", "touch began; until test -e go; do sleep 0.05; done"]});
    let prompt = scenario::of(vec![waits, json!({"exit": 3})]);
    let session = CreateSession { restart: RestartPolicy::OnFailure, ..wanted(&prompt) };
    let first = client.create_session(session).await.unwrap();
    let who = first.id.to_string();
    let (dir, elsewhere) = (home.campaign_dir(), home.path().join("elsewhere"));
    wait::until("the tool to run", wait::PATIENCE, || dir.join("began").exists());
    std::fs::rename(&dir, &elsewhere).unwrap();
    std::fs::write(elsewhere.join("go"), "").unwrap();

    let is_refused = |view: &View| view.restart_refused.is_some();
    let refused = home.reaches(&who, "a refused restart", is_refused).await;
    assert_eq!((refused.status, refused.continued_by), (Status::Failed, None));
    let refusal = refused.restart_refused.unwrap();
    assert_eq!(refusal.reason, Reason::CampaignRoot.as_str(), "{refusal:?}");
    let listed = said(&home, &["ls"]);
    assert!(listed.contains("cannot go on · ") && listed.contains("1 cannot go on"), "{listed}");
    assert!(!listed.contains("replaced"), "{listed}");
    let shown = said(&home, &["show", &who]);
    assert!(shown.contains("cannot go on: ") && shown.contains("tried again"), "{shown}");
    let form = said(&home, &["show", &who, "--json"]);
    assert!(
        form.contains(r#""reason":"CAMPAIGN_ROOT""#) && form.contains(r#""continued_by":null"#),
        "{form}"
    );

    // The next daemon knows it too, and so does one where something else is in the way.
    home.kill_daemon();
    home.start().await;
    home.reaches(&who, "the same refusal", is_refused).await;
    said(&home, &["halt", "-m", "lunch"]);
    home.reaches(&who, "the halt to be in the way", |view| {
        view.restart_refused.as_ref().is_some_and(|refusal| refusal.reason == Reason::Halted.as_str())
    })
    .await;
    std::fs::rename(&elsewhere, &dir).unwrap();
    said(&home, &["halt", "--release"]);

    let chain = wait_for_chain(&home, &who, 2).await;
    let gone_on = home.client().await.session(&who).await.unwrap();
    assert_eq!((gone_on.continued_by, gone_on.restart_refused), (Some(chain[1].id), None));
    let shown = said(&home, &["show", &who]);
    assert!(shown.contains("goes on with it") && !shown.contains("cannot go on"), "{shown}");
    let told = said(&home, &["events", "--kind", "RESTART_REFUSED", "-o", "jsonl"]);
    let whys: Vec<_> = told.lines().map(|line| line.split_once(r#""why""#).map(|(_, why)| why)).collect();
    assert!(whys.windows(2).all(|pair| pair[0] != pair[1]), "only what is news is recorded: {told}");
}

#[tokio::test]
async fn partial_text_travels_beside_the_log() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = client.create_session(wanted("hello")).await.unwrap().id;
    home.reaches(&id.to_string(), "idleness", |view| view.attention == Some(Attention::Idle)).await;
    let mut deltas = client.deltas(&id.to_string()).await.unwrap();
    let steps = vec![json!({"delta": "hel"}), json!({"delta": "lo"}), scenario::say("hello")];
    client
        .send_message(SendMessage {
            who: id.to_string(),
            text: scenario::of(steps),
            ..SendMessage::default()
        })
        .await
        .unwrap()
        .sent()
        .unwrap();
    let mut live = String::new();
    while live != "hello" {
        live += &deltas.next().await.unwrap().unwrap().text;
    }
    home.reaches(&id.to_string(), "the second turn", |view| {
        view.turns == 2 && view.attention == Some(Attention::Idle)
    })
    .await;
    let said = home.events(&client, id).await;
    let said: Vec<_> = said.iter().filter(|event| event.event.kind() == Kind::AgentCompletion).collect();
    assert_eq!(said.len(), 2, "partial text was stored as events");
}

async fn wait_for_chain(home: &TestHome, who: &str, length: usize) -> Vec<View> {
    let client = home.client().await;
    let deadline = tokio::time::Instant::now() + wait::PATIENCE;
    loop {
        let chain = client.chain(who).await.unwrap();
        if chain.len() >= length {
            return chain;
        }
        assert!(tokio::time::Instant::now() < deadline, "the chain has only {}", chain.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_person_s_restart_replaces_the_process() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let first = client.create_session(wanted("hello")).await.unwrap();
    home.reaches(&first.id.to_string(), "idleness", |view| view.attention == Some(Attention::Idle)).await;
    let second = client.restart_session(&first.id.to_string()).await.unwrap();
    assert_eq!((second.continues, second.name.clone()), (Some(first.id), first.name.clone()));
    assert_eq!(home.ended(&first.id.to_string()).await.outcome, Some(Outcome::Stopped));
    // The name means the one that lives.
    assert_eq!(client.session(first.name.as_str()).await.unwrap().id, second.id);
}

#[tokio::test]
async fn a_watchdog_finds_a_silent_agent() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut session = wanted(&scenario::of(vec![scenario::say("now"), json!({"hang": true})]));
    session.watchdogs.silent_us = 200_000;
    session.watchdogs.rung_us = 100_000;
    let id = client.create_session(session).await.unwrap().id;
    let view =
        home.reaches(&id.to_string(), "the stall", |view| view.attention == Some(Attention::Stalled)).await;
    assert_eq!(view.status, Status::Running);
    wait_for_events(&home, id, |events| {
        events.iter().filter(|event| event.kind() == Kind::WatchdogFired).count() == 3
    })
    .await;
    client.stop_session(&id.to_string(), true).await.unwrap();
    home.ended(&id.to_string()).await;
}

async fn wait_for_events(home: &TestHome, id: ostler_domain::SessionId, holds: impl Fn(&[Event]) -> bool) {
    let client = home.client().await;
    let deadline = tokio::time::Instant::now() + wait::PATIENCE;
    loop {
        let events: Vec<Event> =
            home.events(&client, id).await.into_iter().map(|recorded| recorded.event).collect();
        if holds(&events) {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited too long for events; last: {:?}",
            events.last()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_halt_kills_all_at_once_and_holds_until_released() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut ids = vec![];
    for _ in 0..5 {
        ids.push(client.create_session(wanted(&counting(100_000))).await.unwrap().id);
    }
    for id in &ids {
        home.reaches(&id.to_string(), "work", is_working).await;
    }
    let begun = std::time::Instant::now();
    assert_eq!(client.halt(false, "something smells").await.unwrap().sessions, 5);
    wait::until("all trees to be gone", Duration::from_secs(1), || {
        ids.iter().all(|id| home.session_processes(*id).is_empty())
    });
    assert!(begun.elapsed() < Duration::from_secs(1));
    let held = client.create_session(wanted("hello")).await.unwrap();
    home.kill_daemon();
    let client = home.start().await;
    assert!(client.status().await.unwrap().halt.is_some(), "the halt did not survive");
    let view =
        home.reaches(&held.id.to_string(), "being held", |view| view.evidence.contains("halted")).await;
    assert_eq!(view.status, Status::Created);
    assert!(
        client
            .send_message(SendMessage {
                who: ids[0].to_string(),
                text: "go".into(),
                ..SendMessage::default()
            })
            .await
            .is_err()
    );
    client.release_halt().await.unwrap();
    home.reaches(&held.id.to_string(), "idleness", |view| view.attention == Some(Attention::Idle)).await;
}

#[tokio::test]
async fn a_halt_can_freeze_instead() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = client.create_session(wanted(&counting(100))).await.unwrap().id;
    home.reaches(&id.to_string(), "work", is_working).await;
    client.halt(true, "").await.unwrap();
    let view = client.session(&id.to_string()).await.unwrap();
    assert_eq!(view.attention, Some(Attention::Paused));
    client.release_halt().await.unwrap();
    home.reaches(&id.to_string(), "the turn to end", |view| view.attention == Some(Attention::Idle)).await;
    let events = home.events(&client, id).await;
    numbers::assert_complete(&numbers::counted(&events, "tick"), 100, "the frozen session");
}

#[tokio::test]
async fn a_daemon_that_stops_leaves_its_sessions_alone_unless_asked() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = client.create_session(wanted(&counting(300))).await.unwrap().id;
    home.reaches(&id.to_string(), "work", is_working).await;
    client.stop_daemon(false).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    assert!(!home.session_processes(id).is_empty());
    // Nobody starts another after an orderly stop.
    std::thread::sleep(Duration::from_millis(700));
    assert!(home.daemon().is_none(), "a keeper started a daemon after an orderly stop");
    let client = home.start().await;
    home.reaches(&id.to_string(), "the turn to end", |view| view.attention == Some(Attention::Idle)).await;
    numbers::assert_complete(&numbers::counted(&home.events(&client, id).await, "tick"), 300, "the session");
    client.stop_daemon(true).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    wait::until("the agent to be gone", wait::PATIENCE, || home.session_processes(id).is_empty());
}

#[tokio::test]
async fn a_kill_reaches_an_agent_that_is_only_just_starting() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    for _ in 0..40 {
        let id = client.create_session(wanted(&scenario::of(vec![json!({"hang": true})]))).await.unwrap().id;
        client.stop_session(&id.to_string(), true).await.unwrap();
        let view = home.ended(&id.to_string()).await;
        assert_eq!(view.outcome, Some(Outcome::Killed));
        assert!(home.session_processes(id).is_empty());
    }
}
