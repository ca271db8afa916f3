//! Pages that are followed.

use std::io::BufRead;

use ostler_client::{CreateMission, CreateSession};
use ostler_domain::session::Approve;
use ostler_testkit::scenario;
use serde_json::json;

use super::{Open, connect};

/// Follows a stream line by line until one is what is waited for, and says which it was.
fn follow(open: &Open, path: &str, headers: &str, is_it: impl Fn(&str) -> bool) -> Option<String> {
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n{headers}", open.host);
    connect(&open.host, &head, "").lines().map_while(Result::ok).find(|line| is_it(line))
}

#[tokio::test]
async fn a_dashboard_page_leaves_with_its_login() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let browser = client.tokens().await.unwrap().into_iter().find(|token| token.is_browser).unwrap().id;
    let head =
        format!("GET /live?page=/&after=0 HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\n", open.host, open.cookie);
    let mut lines = connect(&open.host, &head, "").lines();
    assert!(lines.any(|line| line.unwrap() == "event: main"));
    client.revoke_token(&browser).await.unwrap();
    let rest: Result<Vec<String>, _> = lines.collect();
    assert!(rest.is_ok(), "it went on: {rest:?}");
}

#[tokio::test]
async fn what_stands_above_a_page_is_about_everybody() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let quiet = open.home.session(&client, &scenario::of(vec![json!({"hang": true})])).await;
    let after = client.status().await.unwrap().last_seq;
    let path = format!("/live?page=/sessions/{}&after={after}", quiet.id);
    let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\n", open.host, open.cookie);
    let mut lines = connect(&open.host, &head, "").lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "event: counts"));
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = Approve::Ask;
    wanted.initial_message =
        Some(scenario::of(vec![json!({"ask": {"tool": "run", "input": "git push"}}), scenario::say("x")]));
    let begun = std::time::Instant::now();
    client.create_session(wanted).await.unwrap();
    assert!(lines.any(|line| line.starts_with("data: (1) ")), "the title says who waits");
    // A page in which nothing happens is made anew every fifteen seconds: this was not that.
    assert!(begun.elapsed() < std::time::Duration::from_secs(12), "{:?}", begun.elapsed());
}

/// Uses something each second, for as long as anybody looks.
fn spender() -> String {
    let call = json!({"usage": {"input": 1000, "output": 100}});
    scenario::of(vec![json!({"repeat": 600, "every_ms": 1000, "steps": [call]})])
}

#[tokio::test]
async fn what_others_do_makes_no_page_any_younger() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let quiet = open.home.session(&client, &scenario::of(vec![json!({"hang": true})])).await;
    open.home.session(&client, &spender()).await;
    let path = format!("/live?page=/sessions/{}&after=0", quiet.id);
    let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\n", open.host, open.cookie);
    let mut lines = connect(&open.host, &head, "").lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "event: main"));
    assert!(lines.any(|line| line == "event: main"), "its age grows");
}

#[tokio::test]
async fn what_its_members_use_is_on_a_mission_s_page_at_once() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let plan = format!(
        "name = \"spends\"\nobjective = \"Spend\"\nstrategy = \"parallel\"\n[[agents]]\nname = \"a\"\nprovider = \"script\"\ntask = '''\n```scenario\n{}\n```\n'''\n",
        spender()
    );
    let wanted =
        CreateMission { campaign: "shop".to_owned(), plan, starts: true, ..CreateMission::default() };
    let mission = client.create_mission(wanted).await.unwrap().id;
    let path = format!("/live?page=/missions/{mission}&after=0");
    let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\n", open.host, open.cookie);
    let begun = std::time::Instant::now();
    let lines = connect(&open.host, &head, "").lines().map_while(Result::ok);
    let made = lines.filter(|line| line == "event: main").take(6).count();
    assert_eq!(made, 6);
    // A page in which nothing happens is made anew every fifteen seconds: six times were not that.
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_page_that_comes_back_late_says_how_much_it_missed() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let steps = vec![scenario::count("line", 200, 0)];
    let session = open.home.session(&client, &scenario::of(steps)).await;
    open.home.reaches(&session.id.to_string(), "its turn to end", |view| view.turns == 1).await;
    let cookie = format!("cookie: {}\r\nlast-event-id: 1\r\n", open.cookie);
    let behind = follow(&open, "/live?page=/sessions", &cookie, |line| line == "event: behind");
    assert!(behind.is_some());
    let head = format!("GET /live?page=/sessions HTTP/1.1\r\nhost: {}\r\n{cookie}", open.host);
    let lines: Vec<String> = connect(&open.host, &head, "")
        .lines()
        .map_while(Result::ok)
        .take_while(|line| line != "event: main")
        .collect();
    let missed = lines.iter().skip_while(|line| *line != "event: behind").nth(1).unwrap();
    let missed: u64 = missed.strip_prefix("data: ").unwrap().parse().unwrap();
    assert!(missed > 200, "{missed}");
    assert!(lines.contains(&"event: level".to_owned()), "{lines:?}");
}

#[tokio::test]
async fn text_that_an_agent_is_writing_is_typed_out() {
    let open = Open::new().await;
    let client = open.home.client().await;
    let steps = vec![json!({"repeat": 200, "every_ms": 50, "steps": [{"delta": "piece {i} "}]})];
    let session = open.home.session(&client, &scenario::of(steps)).await;
    let path = format!("/live?page=/sessions/{}&after=0", session.id);
    let cookie = format!("cookie: {}\r\n", open.cookie);
    let typed = follow(&open, &path, &cookie, |line| line.starts_with("data: \"piece "));
    assert!(typed.is_some());
}
