//! Nonsense from people and from agents: each gets a clear error or event, and nothing else suffers.

use std::fs;

use ostler_client::{AddCampaign, CreateSession, Error, SendMessage};
use ostler_domain::{
    Event, Kind, Reason,
    session::{Attention, Outcome},
};
use ostler_testkit::{TestHome, numbers, scenario};
use serde_json::json;

use crate::OSTLER;

fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> Reason {
    result.unwrap_err().to_refusal().reason
}

#[tokio::test]
async fn what_does_not_exist_is_said_not_to() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    assert_eq!(
        reason(client.create_session(CreateSession::new("nowhere", "script")).await),
        Reason::CampaignUnknown
    );
    assert_eq!(
        reason(client.create_session(CreateSession::new("/nowhere", "script")).await),
        Reason::CampaignUnknown
    );
    assert_eq!(
        reason(client.create_session(CreateSession::new("shop", "levitate")).await),
        Reason::ProviderUnknown
    );
    for who in
        ["zzzzz", "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "../../etc", "a\u{1b}[2Jb", &"x".repeat(10_000)]
    {
        let refused = reason(client.session(who).await);
        assert!(
            matches!(refused, Reason::SessionUnknown | Reason::InvalidArgument | Reason::CampaignUnknown),
            "{who:?}: {refused:?}"
        );
    }
    let refusal = client.session("a\u{1b}[2Jb").await.unwrap_err().to_refusal();
    assert!(!refusal.message.contains('\u{1b}'), "an escape sequence came back: {:?}", refusal.message);
}

#[tokio::test]
async fn names_that_fit_several_are_not_guessed() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let mut ids = vec![];
    for _ in 0..3 {
        ids.push(client.create_session(CreateSession::new("shop", "script")).await.unwrap().id.to_string());
    }
    // ULIDs of the same moment share their beginning.
    let refusal = client.session(&ids[0][..10]).await.unwrap_err().to_refusal();
    assert_eq!(refusal.reason, Reason::Ambiguous);
    assert_eq!(
        client.session(&ids[1][ids[1].len() - 5..].to_lowercase()).await.unwrap().id.to_string(),
        ids[1]
    );
    let mut named = CreateSession::new("shop", "script");
    named.name = Some("mine".parse().unwrap());
    client.create_session(named.clone()).await.unwrap();
    assert_eq!(reason(client.create_session(named).await), Reason::NameTaken);
}

#[tokio::test]
async fn only_one_s_own_project_becomes_a_campaign() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let add = |path: String| client.add_campaign(AddCampaign { path, name: None });
    let file = home.path().join("file");
    fs::write(&file, "x").unwrap();
    let gone = home.path().join("gone").display().to_string();
    let state = home.home.state().display().to_string();
    let user_home = std::env::var("HOME").unwrap();
    for path in ["/".to_owned(), "/etc".to_owned(), gone, file.display().to_string(), state, user_home] {
        assert_eq!(reason(add(path.clone()).await), Reason::CampaignRoot, "{path}");
    }
    assert_eq!(reason(add("relative".to_owned()).await), Reason::InvalidArgument);
    // Replaced behind our back: refused, and said why.
    let dir = home.campaign_dir();
    fs::rename(&dir, home.path().join("moved")).unwrap();
    fs::create_dir(&dir).unwrap();
    assert_eq!(
        reason(client.create_session(CreateSession::new("shop", "script")).await),
        Reason::CampaignMoved
    );
    fs::remove_dir(&dir).unwrap();
    assert_eq!(
        reason(client.create_session(CreateSession::new("shop", "script")).await),
        Reason::CampaignRoot
    );
}

#[tokio::test]
async fn requests_have_limits() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = home.session(&client, "hello").await.id.to_string();
    let say =
        |text: String| client.send_message(SendMessage { who: id.clone(), text, ..SendMessage::default() });
    assert_eq!(reason(say("x".repeat(3 * 1024 * 1024)).await), Reason::TooLarge);
    assert!(say("x".repeat(40 * 1024 * 1024)).await.is_err());
    assert_eq!(reason(say("  \n".to_owned()).await), Reason::InvalidArgument);
    let mut reserved = CreateSession::new("shop", "script");
    reserved.environment.insert("OSTLER_SESSION_ID".into(), "x".into());
    assert_eq!(reason(client.create_session(reserved).await), Reason::InvalidArgument);
    // The daemon bears it.
    say("still there?".to_owned()).await.unwrap();
}

#[tokio::test]
async fn an_agent_may_print_anything() {
    let home = TestHome::started_unconfined(OSTLER).await;
    let client = home.client().await;
    let bystander = home.session(&client, &scenario::of(vec![scenario::count("tick", 100, 10)])).await.id;
    let deep = format!("{{\"type\":\"say\",\"text\":{}", "[".repeat(200_000));
    let steps = vec![
        json!({"stdout_raw": "garbage\n"}),
        json!({"stdout_raw": "nul \u{0} and escape \u{1b}[2J\n"}),
        json!({"stdout_raw": "{\"type\":\"levitate\"}\n"}),
        json!({"stdout_raw": deep + "\n"}),
        json!({"run": ["sh", "-c", r"printf '\377\376 not utf8\n' > /proc/$PPID/fd/1"]}),
        json!({"stderr": "a warning"}),
        json!({"flood_bytes": 3_000_000}),
        scenario::say("after all that"),
        json!({"stdout_raw": "no end of line"}),
        json!({"exit": 0}),
    ];
    let id = home.session(&client, &scenario::of(steps)).await.id;
    let view = home.ended(&id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Crashed));
    let events = home.events(&client, id).await;
    numbers::assert_gapless(&events, "the garbage session");
    let count = |kind: Kind| events.iter().filter(|event| event.event.kind() == kind).count();
    assert!(count(Kind::Opaque) >= 4 + 3_000_000 / 1024, "{}", count(Kind::Opaque));
    assert_eq!((count(Kind::AgentStderr), count(Kind::AgentCompletion), count(Kind::Partial)), (1, 1, 1));
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.event, Event::Opaque(raw) if raw.text.contains("not utf8")))
    );
    home.reaches(&bystander.to_string(), "the bystander to finish", |view| {
        view.attention == Some(Attention::Idle)
    })
    .await;
    numbers::assert_complete(
        &numbers::counted(&home.events(&client, bystander).await, "tick"),
        100,
        "the bystander",
    );
}

#[tokio::test]
async fn a_line_without_end_is_oversize_and_the_stream_goes_on() {
    let home = TestHome::started_unconfined(OSTLER).await;
    let client = home.client().await;
    // 40 MiB in one line, above the parse limit of 32 MiB.
    let steps = vec![
        json!({"run": ["sh", "-c", "head -c 41943040 /dev/zero | tr '\\0' x > /proc/$PPID/fd/1; echo > /proc/$PPID/fd/1"]}),
        scenario::say("after"),
    ];
    let id = home.session(&client, &scenario::of(steps)).await.id;
    home.reaches(&id.to_string(), "the turn to end", |view| {
        view.attention == Some(Attention::Idle) && view.turns == 1
    })
    .await;
    let events = home.events(&client, id).await;
    let oversize: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::Oversize(raw) => Some(raw.bytes),
            _ => None,
        })
        .collect();
    assert_eq!(oversize, [41_943_040]);
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.event, Event::AgentCompletion(text) if text.text == "after"))
    );
}

#[tokio::test]
async fn a_wrong_scenario_names_its_line() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = home.session(&client, "{\"steps\":[\n {\"say\":\"a\"},\n {\"sya\":\"b\"}\n]}").await.id;
    home.reaches(&id.to_string(), "the turn to end", |view| {
        view.attention == Some(Attention::TurnFailed) && view.turns == 1
    })
    .await;
    let events = home.events(&client, id).await;
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.event, Event::AgentError(text) if text.text.contains("line 3")))
    );
}

#[tokio::test]
async fn asking_for_what_holds_changes_nothing() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let who = home.session(&client, "hello").await.id.to_string();
    home.reaches(&who, "idleness", |view| view.attention == Some(Attention::Idle) && view.turns == 1).await;
    client.pause_session(&who).await.unwrap();
    let once = client.session(&who).await.unwrap().session_seq;
    client.pause_session(&who).await.unwrap();
    assert_eq!(client.session(&who).await.unwrap().session_seq, once);
    client.stop_session(&who, true).await.unwrap();
    home.ended(&who).await;
    client.stop_session(&who, true).await.unwrap();
}
