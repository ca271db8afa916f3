//! The machine restarts under its sessions: it is said, what was lost is shown with its price, and goes on or is left.

use std::process::Child;

use ostler_client::Client;
use ostler_domain::{
    Event, SessionId,
    session::{Attention, Begin, Outcome, Status, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{OSTLER, exec::OnTerminal, missions};

const NOTICE: &str = "This machine restarted ";

/// A session that works for longer than any test.
async fn working(home: &TestHome, client: &Client) -> SessionId {
    let call = json!({"usage": {"input": 1_000, "cache_read": 99_000}});
    let id = home.session(client, &scenario::of(vec![call, scenario::count("tick", 100_000, 10)])).await.id;
    home.reaches(&id.to_string(), "work", |view| view.last_completion.is_some()).await;
    id
}

async fn idle(home: &TestHome, client: &Client) -> SessionId {
    let id = home.session(client, "hello").await.id;
    let is_idle = |view: &View| view.attention == Some(Attention::Idle) && view.turns == 1;
    home.reaches(&id.to_string(), "idleness", is_idle).await;
    id
}

/// All of a machine ends, and a daemon of its next boot starts. `last` is what everybody hears from the machine.
async fn reboot(home: &TestHome, last: Signal) -> Child {
    home.client().await.stop_daemon(false).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    for (keeper, _) in home.keepers() {
        keeper.signal(last);
        wait::until("a keeper to be gone", wait::PATIENCE, || !keeper.is_alive());
    }
    let mut daemon = home.command(&["daemon", "run", "--background"]);
    let daemon = daemon.env("OSTLER_CLOCK", "0,the-next-boot").spawn().unwrap();
    wait::until("the daemon", wait::PATIENCE, || home.daemon().is_some());
    daemon
}

fn stderr(home: &TestHome, args: &[&str]) -> String {
    String::from_utf8(home.run(args).stderr).unwrap()
}

fn lost(home: &TestHome) -> Vec<Value> {
    let shown = home.run(&["resume", "--lost", "--dry-run", "--json"]);
    assert!(shown.status.success(), "{shown:?}");
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    shown["lost"].as_array().unwrap().clone()
}

async fn next(client: &Client, id: SessionId) -> Option<View> {
    let chain = client.chain(&id.to_string()).await.unwrap();
    chain.into_iter().find(|view| view.continues == Some(id))
}

/// The session that goes on with one by itself.
async fn gone_on(client: &Client, id: SessionId) -> SessionId {
    let deadline = std::time::Instant::now() + wait::PATIENCE;
    loop {
        if let Some(next) = next(client, id).await {
            return next.id;
        }
        assert!(std::time::Instant::now() < deadline, "nobody goes on with {id}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Whoever was found lost first goes on first: which of two has begun, and which waits.
async fn one_begun(client: &Client, two: [SessionId; 2]) -> (SessionId, SessionId) {
    let deadline = std::time::Instant::now() + wait::PATIENCE;
    loop {
        for (n, id) in two.into_iter().enumerate() {
            if client.session(&id.to_string()).await.unwrap().status != Status::Created {
                return (id, two[1 - n]);
            }
        }
        assert!(std::time::Instant::now() < deadline, "neither has begun");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// The scripted agent has no memory: it is told what was said, that it was interrupted, and by what.
async fn is_told(home: &TestHome, id: SessionId) {
    let answered = |view: &View| view.last_completion.as_ref().is_some_and(|text| text.contains("You said"));
    let view = home.reaches(&id.to_string(), "an answer", answered).await;
    assert!(view.last_completion.unwrap().contains("You have worked on this before"));
    let events = home.events(&home.client().await, id).await;
    let Event::SessionCreated(created) = &events[0].event else { panic!("{:?}", events[0]) };
    let Begin::Reseed { seed, .. } = &created.begin else { panic!("{:?}", created.begin) };
    assert!(seed.contains("You were interrupted in the middle of your work"), "{seed}");
    assert!(seed.contains("the machine restarted"), "{seed}");
}

fn end(home: &TestHome, mut daemon: Child) {
    home.kill_daemon();
    daemon.wait().unwrap();
}

#[tokio::test]
async fn what_the_machine_took_along_is_told_priced_and_gone_on_with() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    assert!(home.run(&["price", "set", "script", "input=3", "output=15"]).status.success());
    let (busy, resting, over) =
        (working(&home, &client).await, idle(&home, &client).await, idle(&home, &client).await);
    client.stop_session(&over.to_string(), false).await.unwrap();
    home.ended(&over.to_string()).await;
    assert!(!stderr(&home, &["ls"]).contains(NOTICE));
    let daemon = reboot(&home, Signal::KILL).await;

    // Whoever comes first is told, once; `ls` says it until there is an answer.
    let mut first = OnTerminal::start(&home, &["campaign", "ls"]);
    first.until_shown(NOTICE);
    first.until_shown("2 sessions were lost with it; nothing recorded is missing.");
    first.until_shown("ostler resume --lost");
    first.child.wait().unwrap();
    let mut second = OnTerminal::start(&home, &["campaign", "ls"]);
    second.until_shown("shop");
    second.child.wait().unwrap();
    assert!(!second.shows(NOTICE), "said once");
    let said = stderr(&home, &["ls"]);
    assert!(said.contains(NOTICE) && said.contains("2 sessions were lost"), "{said}");
    let view = client_view(&home, busy).await;
    assert_eq!(view.outcome, Some(Outcome::Lost));
    assert!(view.obituary.unwrap().sentence.contains("the machine restarted"));

    let listed = lost(&home);
    assert_eq!(listed.len(), 2, "{listed:?}");
    let price = |id: SessionId| {
        let of = |row: &&Value| row["session"]["id"] == json!(id.to_string());
        let row = listed.iter().find(of).unwrap();
        (row["free"].clone(), row["tokens"].clone(), row["price"].clone())
    };
    assert_eq!(price(busy), (json!(false), json!(100_000), json!("0.30")));
    assert_eq!(price(resting), (json!(true), json!(null), json!(null)), "nobody asks it anything");
    let shown = String::from_utf8(home.run(&["resume", "--lost", "--dry-run"]).stdout).unwrap();
    assert!(shown.contains("$0.30") && shown.contains("nothing") && shown.contains("tick"), "{shown}");

    // Without anybody to ask, nothing is done; at a terminal the answer counts.
    let refused = home.run(&["resume", "--lost"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("ostler resume --lost -y"));
    let mut asked = OnTerminal::start(&home, &["resume", "--lost"]);
    asked.until_shown("go on with 2 sessions (about $0.30)?");
    asked.type_in("n\r");
    asked.until_shown("nothing was changed");
    asked.child.wait().unwrap();
    assert_eq!(lost(&home).len(), 2);
    let mut asked = OnTerminal::start(&home, &["resume", "--lost"]);
    asked.until_shown("go on with 2 sessions");
    asked.type_in("y\r");
    asked.until_shown("goes on");
    assert_eq!(asked.child.wait().unwrap().code(), Some(0));

    let client = home.client().await;
    let went_on = next(&client, busy).await.unwrap();
    is_told(&home, went_on.id).await;
    let rested = next(&client, resting).await.unwrap();
    home.reaches(&rested.id.to_string(), "idleness", |view| view.attention == Some(Attention::Idle)).await;
    assert_eq!(next(&client, over).await, None);
    assert_eq!(lost(&home), Vec::<Value>::new());
    assert!(!stderr(&home, &["ls"]).contains(NOTICE));
    end(&home, daemon);
}

async fn client_view(home: &TestHome, id: SessionId) -> View {
    home.client().await.session(&id.to_string()).await.unwrap()
}

#[tokio::test]
async fn a_shutdown_in_good_order_is_no_wish_of_anybody_and_may_be_left_at_that() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let busy = working(&home, &client).await;
    let daemon = reboot(&home, Signal::TERM).await;
    let view = home.ended(&busy.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Lost), "{:?}", view.obituary);
    assert!(view.obituary.unwrap().sentence.contains("the machine was shut down"));
    assert_eq!(lost(&home).len(), 1);

    let left = home.run(&["resume", "--lost", "--leave"]);
    assert!(String::from_utf8_lossy(&left.stdout).starts_with("1 lost session stays as it is"), "{left:?}");
    assert_eq!(lost(&home), Vec::<Value>::new());
    assert!(!stderr(&home, &["ls"]).contains(NOTICE));
    let told = String::from_utf8(home.run(&["events", "--kind", "LOST_LEFT", "-o", "jsonl"]).stdout).unwrap();
    assert!(told.contains(&busy.to_string()), "{told}");
    // Left is not forbidden.
    let gone_on = home.run(&["resume", &busy.to_string()]);
    assert!(gone_on.status.success(), "{gone_on:?}");
    end(&home, daemon);
}

#[tokio::test]
async fn sessions_go_on_by_themselves_in_line_where_the_machine_s_owner_says_so() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let (first, second, paused) =
        (working(&home, &client).await, working(&home, &client).await, idle(&home, &client).await);
    client.pause_session(&paused.to_string()).await.unwrap();
    home.configure("on_reboot = \"resume\"\n[limits]\nsessions = 1\n");
    let daemon = reboot(&home, Signal::KILL).await;
    for id in [first, second, paused] {
        home.ended(&id.to_string()).await;
    }
    let client = home.client().await;
    let next_of = [gone_on(&client, first).await, gone_on(&client, second).await];
    let (begun, waiting) = one_begun(&client, next_of).await;
    is_told(&home, begun).await;
    let view = client.session(&waiting.to_string()).await.unwrap();
    assert_eq!(view.status, Status::Created, "there is room for one: {}", view.evidence);
    client.stop_session(&begun.to_string(), true).await.unwrap();
    is_told(&home, waiting).await;
    // Whom a person had paused waits for a person.
    assert_eq!(next(&client, paused).await, None);
    let listed = lost(&home);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["session"]["id"], json!(paused.to_string()));
    assert!(stderr(&home, &["ls"]).contains("1 session was lost"));
    end(&home, daemon);
}

#[tokio::test]
async fn whoever_cannot_go_on_by_itself_waits_for_a_person_at_once() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let busy = working(&home, &client).await;
    home.configure("on_reboot = \"resume\"\n");
    let (dir, elsewhere) = (home.campaign_dir(), home.path().join("elsewhere"));
    std::fs::rename(&dir, &elsewhere).unwrap();
    let daemon = reboot(&home, Signal::KILL).await;
    let refused = |view: &View| view.restart_refused.is_some();
    home.reaches(&busy.to_string(), "a refused restart", refused).await;
    assert_eq!(lost(&home).len(), 1);
    assert!(stderr(&home, &["ls"]).contains("1 cannot go on"));
    std::fs::rename(&elsewhere, &dir).unwrap();
    let client = home.client().await;
    gone_on(&client, busy).await;
    assert_eq!(lost(&home), Vec::<Value>::new());
    end(&home, daemon);
}

#[tokio::test]
async fn nobody_is_told_where_the_machine_s_owner_wants_it_so() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let busy = working(&home, &client).await;
    home.configure("on_reboot = \"leave\"\n");
    let daemon = reboot(&home, Signal::KILL).await;
    home.ended(&busy.to_string()).await;
    assert!(!stderr(&home, &["ls"]).contains(NOTICE));
    assert_eq!(lost(&home).len(), 1, "whoever asks is shown");
    end(&home, daemon);
}

/// A mission that was in the middle of its second assignment, and its sessions' traces in a file.
fn at_work_in_a_mission(home: &TestHome, more: &str) {
    let ran = |name: &str| missions::shell(&format!("echo {name} >> ran"));
    let waits = missions::shell("until test -e go; do sleep 0.05; done");
    let agents = [
        missions::agent("before", "", vec![ran("before"), scenario::say("before")]),
        missions::agent("within", "", vec![ran("within"), waits, scenario::say("within")]),
        missions::agent("after", "", vec![ran("after"), scenario::say("after")]),
    ];
    missions::plan(
        home,
        "plan.toml",
        &format!("objective = \"x\"\nname = \"team\"\nstrategy = \"sequential\"\n{more}"),
        &agents,
    );
    missions::ok(home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("the second works", wait::PATIENCE, || traces(home) == ["before", "within"]);
}

fn traces(home: &TestHome) -> Vec<String> {
    let ran = std::fs::read_to_string(home.campaign_dir().join("ran")).unwrap_or_default();
    ran.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_mission_tries_again_what_the_machine_took_along_and_nothing_else() {
    for (on_reboot, attempt) in [("ask", 2), ("resume", 1)] {
        let home = TestHome::started(OSTLER).await;
        home.configure(&format!("on_reboot = \"{on_reboot}\"\n"));
        at_work_in_a_mission(&home, "");
        let before = missions::assignment(&missions::json_of(&home, &["mission", "show", "team"]), "within");
        let daemon = reboot(&home, Signal::KILL).await;
        std::fs::write(home.campaign_dir().join("go"), "").unwrap();
        // The mission answers for it: nobody is asked.
        assert_eq!(
            (lost(&home), stderr(&home, &["ls"]).contains(NOTICE)),
            (Vec::new(), false),
            "{on_reboot}"
        );
        let whole = missions::until(&home, "team", "completed");
        let within = missions::assignment(&whole, "within");
        assert_eq!(within["attempt"], attempt, "{whole}");
        assert_eq!(missions::assignment(&whole, "before")["attempt"], 1, "{whole}");
        assert_eq!(traces(&home), ["before", "within", "within", "after"], "{on_reboot}");
        let client = home.client().await;
        let chain = client.chain(within["session"].as_str().unwrap()).await.unwrap();
        assert_eq!((chain.len(), json!(chain[0].id.to_string())), (2, before["session"].clone()));
        assert_eq!(lost(&home), Vec::<Value>::new());
        end(&home, daemon);
    }
}

#[tokio::test]
async fn a_mission_that_was_paused_when_the_machine_went_waits_and_goes_on() {
    let home = TestHome::started(OSTLER).await;
    at_work_in_a_mission(&home, "");
    missions::ok(&home, &["mission", "pause", "team", "-m", "an update of the kernel"]);
    let daemon = reboot(&home, Signal::TERM).await;
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    let whole = missions::json_of(&home, &["mission", "show", "team"]);
    assert_eq!((&whole["status"], lost(&home)), (&json!("paused"), Vec::new()), "{whole}");
    assert!(whole["wait"].as_str().unwrap().contains("an update of the kernel"), "{whole}");
    missions::ok(&home, &["mission", "resume", "team", "-y"]);
    missions::until(&home, "team", "completed");
    assert_eq!(traces(&home), ["before", "within", "within", "after"]);
    end(&home, daemon);
}

#[tokio::test]
async fn a_mission_that_tries_nothing_again_says_what_the_machine_took_along_and_what_to_do() {
    let home = TestHome::started(OSTLER).await;
    at_work_in_a_mission(&home, "[defaults]\nretries = 0");
    let daemon = reboot(&home, Signal::KILL).await;
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    let whole = missions::until(&home, "team", "partial");
    let within = missions::assignment(&whole, "within");
    assert!(within["why"].as_str().unwrap().contains("the machine restarted"), "{whole}");
    assert_eq!(missions::assignment(&whole, "after")["status"], "skipped", "{whole}");
    assert!(stderr(&home, &["mission", "show", "team"]).contains("ostler mission retry team"));
    missions::ok(&home, &["mission", "retry", "team", "-y"]);
    let whole = missions::until(&home, "team", "completed");
    assert_eq!(traces(&home), ["before", "within", "within", "after"]);
    let chain = missions::assignment(&whole, "within")["session"].as_str().unwrap().to_owned();
    assert_eq!(home.client().await.chain(&chain).await.unwrap().len(), 2, "it went on where it was");
    end(&home, daemon);
}
