//! Messages that wait: how they are told, what gives way, and what people do to them before they are delivered.

use std::process::Stdio;

use ostler_client::{
    Client, CreateSession, Delivery, ListEvents, MessagePlace, Place, SendMessage, reply::Sent,
};
use ostler_domain::{
    Event, Kind, Mode, Reason, Receipt,
    conversation::{CloseReason, Inbound},
    query::{EventFilter, Page},
    session::{Attention, Outcome, View},
};
use ostler_testkit::{TestHome, scenario};
use serde_json::{Value, json};

use crate::OSTLER;

/// A session in the middle of a turn that ends when the campaign has the file `go`.
async fn busy(home: &TestHome, client: &Client) -> View {
    let wait = json!({"run": ["sh", "-c", "until [ -e go ]; do sleep 0.02; done"]});
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(vec![wait, scenario::say("done")]));
    let id = client.create_session(wanted).await.unwrap().id;
    home.reaches(&id.to_string(), "work", |view| view.attention == Some(Attention::Working)).await
}

fn let_go(home: &TestHome) {
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
}

async fn say(client: &Client, view: &View, text: &str, mode: Option<Mode>) -> Sent {
    let request =
        SendMessage { who: view.id.to_string(), text: text.to_owned(), mode, ..SendMessage::default() };
    client.send_message(request).await.unwrap().sent().unwrap()
}

async fn idle(home: &TestHome, view: &View, turns: u32) {
    let is_idle = |view: &View| view.turns == turns && view.attention == Some(Attention::Idle);
    home.reaches(&view.id.to_string(), "its last turn to end", is_idle).await;
}

async fn message(client: &Client, sent: &Sent) -> Delivery {
    client.message(&sent.message.to_string()).await.unwrap()
}

async fn answers(home: &TestHome, client: &Client, view: &View) -> Vec<String> {
    let said = home.events(client, view.id).await.into_iter().filter_map(|recorded| match recorded.event {
        Event::AgentCompletion(text) => Some(text.text),
        _ => None,
    });
    said.collect()
}

/// What the program prints, and its exit code.
fn ostler(home: &TestHome, args: &[&str]) -> (String, Option<i32>) {
    let output = home.run(args);
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

async fn set(client: &Client, view: &View, settings: &[&str]) {
    let settings = settings.iter().map(|text| (*text).to_owned()).collect();
    client.set_conversation(&view.conversation.to_string(), settings).await.unwrap();
}

#[tokio::test]
async fn collected_messages_are_one_turn_and_each_has_its_receipt() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    set(&client, &view, &["queue_mode=collect"]).await;
    let (one, two) = (say(&client, &view, "one", None).await, say(&client, &view, "two", None).await);
    assert_eq!((one.mode, one.receipt), (Mode::Collect, Receipt::Accepted));
    let_go(&home);
    idle(&home, &view, 2).await;
    for sent in [&one, &two] {
        let delivery = message(&client, sent).await;
        assert_eq!((delivery.receipt, delivery.turn), (Receipt::Answered, Some(2)));
        assert_eq!(delivery.message.mode, Mode::Collect);
    }
    let said = answers(&home, &client, &view).await;
    assert!(said.iter().any(|text| text.contains("--- 1 --- one --- 2 --- two")), "{said:?}");
}

#[tokio::test]
async fn an_interrupt_is_said_now_and_before_what_waits() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    let later = say(&client, &view, "later", None).await;
    let now = say(&client, &view, "now", Some(Mode::Interrupt)).await;
    assert_eq!(now.mode, Mode::Interrupt);
    // Nobody let the first turn go on: it was ended.
    idle(&home, &view, 3).await;
    assert_eq!((message(&client, &now).await.turn, message(&client, &later).await.turn), (Some(2), Some(3)));
}

#[tokio::test]
async fn what_gives_way_is_told_to_the_sender_and_stays_readable() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    set(&client, &view, &["queue_cap=2", "queue_drop=summarize"]).await;
    let first = say(&client, &view, "the first of three\nand more of it", None).await;
    say(&client, &view, "second", None).await;
    let third = say(&client, &view, "third", None).await;
    assert_eq!((third.receipt, third.dropped), (Receipt::Accepted, vec![first.message]));
    let dropped = message(&client, &first).await;
    assert_eq!(dropped.receipt, Receipt::Dropped);
    assert_eq!(dropped.message.text, "the first of three\nand more of it");
    assert!(dropped.why.unwrap().contains("queue_cap=2"));
    set(&client, &view, &["queue_drop=new"]).await;
    let fourth = say(&client, &view, "fourth", None).await;
    assert_eq!((fourth.receipt, fourth.dropped.len()), (Receipt::Dropped, 0));
    assert!(fourth.why.unwrap().contains("queue_drop=new"));
    let_go(&home);
    idle(&home, &view, 3).await;
    let said = answers(&home, &client, &view).await.join("\n");
    assert!(said.contains("1 message was dropped because too many waited"), "{said}");
    assert!(said.contains("- the first of three second") && !said.contains("fourth"), "{said}");
}

#[tokio::test]
async fn whoever_sends_hears_that_it_gave_way_meanwhile() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    set(&client, &view, &["queue_cap=1", "queue_drop=old"]).await;
    client.pause_session(&view.id.to_string()).await.unwrap();
    let sender = home.command(&["send", &view.id.to_string(), "the first"]).stderr(Stdio::piped()).spawn();
    let sender = sender.unwrap();
    home.reaches(&view.id.to_string(), "it to wait", |view| view.messages_waiting == 1).await;
    say(&client, &view, "the second", None).await;
    let out = sender.wait_with_output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("this message was dropped: ") && said.contains("queue_cap=1"), "{said}");
}

#[tokio::test]
async fn a_burst_waits_until_it_is_quiet() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    let_go(&home);
    idle(&home, &view, 1).await;
    set(&client, &view, &["queue_mode=collect", "queue_debounce_ms=400"]).await;
    let mut burst = Vec::new();
    for n in 0..4 {
        burst.push(say(&client, &view, &format!("part {n}"), None).await);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    idle(&home, &view, 2).await;
    for sent in &burst {
        assert_eq!(message(&client, sent).await.turn, Some(2), "all of it is one turn");
    }
}

#[tokio::test]
async fn what_waits_is_changed_moved_and_taken_back_until_it_is_sent() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    let mut sent = Vec::new();
    for text in ["one", "two", "three", "four"] {
        sent.push(say(&client, &view, text, None).await.message.to_string());
    }
    client.cancel_message(&sent[0]).await.unwrap();
    let long = "long ".repeat(400);
    client.edit_message(&sent[1], &long).await.unwrap();
    client.move_message(&sent[3], MessagePlace::First).await.unwrap();
    assert_eq!(client.message(&sent[1]).await.unwrap().message.text, long, "all of it");
    let who = view.id.to_string();
    let (listed, code) = ostler(&home, &["message", "ls", &who, "-o", "json"]);
    assert_eq!(code, Some(0));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let order: Vec<_> = listed["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["id"].clone(), row["place"].clone()))
        .collect();
    let expected = [(3, 1), (1, 2), (2, 3)].map(|(n, place): (usize, u32)| (json!(sent[n]), json!(place)));
    assert_eq!(order, expected, "in the order in which they are told");
    let again = client.cancel_message(&sent[0]).await.unwrap_err().to_refusal();
    assert_eq!(again.reason, Reason::WrongState);
    let_go(&home);
    idle(&home, &view, 4).await;
    let turn = async |id: &String| client.message(id).await.unwrap().turn;
    assert_eq!(
        [turn(&sent[0]).await, turn(&sent[3]).await, turn(&sent[1]).await, turn(&sent[2]).await],
        [None, Some(2), Some(3), Some(4)]
    );
    let cancelled = client.message(&sent[0]).await.unwrap();
    assert_eq!((cancelled.receipt, cancelled.message.text.as_str()), (Receipt::Cancelled, "one"));
    for late in [
        client.cancel_message(&sent[3]).await.unwrap_err(),
        client.edit_message(&sent[3], "x").await.unwrap_err(),
        client.move_message(&sent[3], MessagePlace::First).await.unwrap_err(),
    ] {
        let refusal = late.to_refusal();
        assert_eq!((refusal.reason, refusal.why.as_deref()), (Reason::WrongState, Some("it is answered")));
    }
}

#[tokio::test]
async fn a_message_is_moved_to_somebody_else_or_taken_back_with_all_others() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let (view, other) = (busy(&home, &client).await, busy(&home, &client).await);
    let wrong = say(&client, &view, "for the other", None).await;
    let left = [say(&client, &view, "a", None).await, say(&client, &view, "b", None).await];
    let place = MessagePlace::To(other.id.to_string());
    let there = client.move_message(&wrong.message.to_string(), place).await.unwrap();
    assert_eq!((there.session, there.message.text.as_str()), (other.id, "for the other"));
    let gone = message(&client, &wrong).await;
    assert_eq!(gone.receipt, Receipt::Cancelled);
    assert!(gone.why.unwrap().contains(&there.message.id.short()));
    let cleared = client.clear_messages(&view.id.to_string()).await.unwrap();
    assert_eq!(cleared.len(), 2);
    for sent in &left {
        assert_eq!(message(&client, sent).await.receipt, Receipt::Cancelled);
    }
    let_go(&home);
    idle(&home, &other, 2).await;
    assert_eq!(client.message(&there.message.id.to_string()).await.unwrap().receipt, Receipt::Answered);
}

#[tokio::test]
async fn a_closed_conversation_cancels_what_it_never_told() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    let sent = say(&client, &view, "never", None).await;
    let who = view.conversation.to_string();
    client.close_conversation(&who, CloseReason::Archived).await.unwrap();
    let delivery = message(&client, &sent).await;
    assert_eq!(delivery.receipt, Receipt::Cancelled);
    assert!(delivery.why.unwrap().contains("closed"));
    // Nor is it told when the conversation goes on.
    let_go(&home);
    client.reopen_conversation(&who).await.unwrap();
    let woken = say(&client, &view, "go on", None).await.session;
    home.reaches(&woken.id.to_string(), "its turn", |view| view.attention == Some(Attention::Idle)).await;
    assert_eq!(message(&client, &sent).await.receipt, Receipt::Cancelled);
}

#[tokio::test]
async fn what_a_session_never_told_is_taken_back_after_its_end() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    let (kept, gone) = (say(&client, &view, "kept", None).await, say(&client, &view, "gone", None).await);
    client.stop_session(&view.id.to_string(), true).await.unwrap();
    home.ended(&view.id.to_string()).await;
    let_go(&home);
    client.cancel_message(&gone.message.to_string()).await.unwrap();
    let edit = client.edit_message(&kept.message.to_string(), "x").await.unwrap_err().to_refusal();
    assert_eq!(edit.reason, Reason::WrongState);
    let woken = client.restart_session(&view.id.to_string()).await.unwrap();
    idle(&home, &woken, 2).await;
    assert_eq!(message(&client, &kept).await.receipt, Receipt::Answered);
    assert_eq!(message(&client, &gone).await.receipt, Receipt::Cancelled);
}

#[tokio::test]
async fn the_same_name_is_the_same_message() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = busy(&home, &client).await;
    let named = |text: &str| SendMessage {
        who: view.id.to_string(),
        text: text.to_owned(),
        idempotency_key: Some("ticket-7".to_owned()),
        ..SendMessage::default()
    };
    let asked: Vec<_> = (0..10)
        .map(|_| {
            let (client, request) = (client.clone(), named("once"));
            tokio::spawn(async move { client.send_message(request).await })
        })
        .collect();
    let mut ids = std::collections::HashSet::new();
    for asked in asked {
        ids.insert(asked.await.unwrap().unwrap().sent().unwrap().message);
    }
    assert_eq!(ids.len(), 1);
    let refused = client.send_message(named("something else")).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::RequestConflict);
    let listed = client.messages(&view.id.to_string(), Page::of(50, None)).await.unwrap().rows;
    assert_eq!(listed.len(), 2, "the prompt, and one");
    assert_eq!(listed[0].key.as_deref(), Some("ticket-7"));
    let_go(&home);
}

#[tokio::test]
async fn said_again_it_is_answered_as_it_was() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = client.create_session(CreateSession::new("shop", "script")).await.unwrap();
    let said = scenario::of(vec![scenario::say("forty-two")]);
    for _ in 0..2 {
        let args =
            ["send", &view.id.to_string(), &said, "--id", "k1", "--wait", "--timeout", "30s", "--json"];
        let (out, code) = ostler(&home, &args);
        let sent: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (code, &sent["receipt"], &sent["answer"]),
            (Some(0), &json!("answered"), &json!("forty-two"))
        );
    }
    let (out, _) = ostler(&home, &["send", &view.id.to_string(), &said, "--id", "k1", "--json"]);
    assert!(out.contains("\"receipt\":\"answered\""), "{out}");
    // A conversation is known by the end of its id, as lists show it.
    let short = view.conversation.short();
    assert_eq!(client.session(&short).await.unwrap().id, view.id);
}

#[tokio::test]
async fn the_send_policy_decides_and_is_recorded() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"api".parse().unwrap(), vec![]).await.unwrap();
    let rules =
        ["send.rule+=deny channel=discord chat_type=group", "send.rule+=allow key_prefix=agent:api:slack"];
    assert_eq!(ostler(&home, &["campaign", "set", "shop", rules[0], rules[1]]).1, Some(0));
    let to = |key: &str| SendMessage {
        who: "api".to_owned(),
        text: "hello".to_owned(),
        key: Some(key.parse().unwrap()),
        ..SendMessage::default()
    };
    let denied = client.send_message(to("agent:api:discord:group:g1")).await.unwrap_err().to_refusal();
    assert_eq!(denied.reason, Reason::PermissionDenied);
    assert_eq!(denied.why.as_deref(), Some("send.rule 1: deny channel=discord chat_type=group"));
    assert_eq!(ostler(&home, &["send", "api-discord-group-g1", "hello"]).1, Some(5));
    let filter = EventFilter { kinds: vec![Kind::Denied], ..EventFilter::default() };
    let page = client.events(&ListEvents { filter, from: Place::After(0), limit: 0 }).await.unwrap();
    assert_eq!(page.events.len(), 2);
    let sent = client.send_message(to("agent:api:slack:dm:u1")).await.unwrap().sent().unwrap();
    assert_eq!(sent.rule.as_deref(), Some("send.rule 2: allow key_prefix=agent:api:slack"));
    let tested = ostler(&home, &["policy", "test", "send", "api-discord-group-g1", "-o", "json"]).0;
    let tested: Value = serde_json::from_str(&tested).unwrap();
    assert_eq!((tested["verdict"].as_str(), tested["by"].as_str()), (Some("denied"), Some("send.rule 1")));
    // What a session begins with is said too, whether its conversation is open or not.
    let begin = |key: &str| {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.agent = Some("api".to_owned());
        wanted.key = Some(key.parse().unwrap());
        wanted.initial_message = Some("hello".to_owned());
        wanted
    };
    for key in ["agent:api:discord:group:g1", "agent:api:discord:group:new"] {
        let denied = client.create_session(begin(key)).await.unwrap_err().to_refusal();
        assert_eq!(denied.reason, Reason::PermissionDenied, "{key}");
        assert_eq!(denied.why.as_deref(), Some("send.rule 1: deny channel=discord chat_type=group"));
    }
    let begun = client.create_session(begin("agent:api:slack:dm:u2")).await.unwrap();
    let first = client.messages(&begun.id.to_string(), Page::of(1, None)).await.unwrap().rows;
    assert_eq!(first[0].rule.as_deref(), Some("send.rule 2: allow key_prefix=agent:api:slack"));
    // The conversation's own word comes first.
    let allowed = ["conversation", "set", "api-discord-group-g1", "send_policy=allow"];
    assert_eq!(ostler(&home, &allowed).1, Some(0));
    let sent = client.send_message(to("agent:api:discord:group:g1")).await.unwrap().sent().unwrap();
    assert_eq!(sent.rule.as_deref(), Some("the conversation's send_policy=allow"));
}

#[tokio::test]
async fn where_a_message_came_from_is_where_answers_go_and_a_group_wants_a_mention() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"api".parse().unwrap(), vec![]).await.unwrap();
    let from = |text: &str, to: &str| SendMessage {
        who: "api".to_owned(),
        text: text.to_owned(),
        key: Some("agent:api:slack:group:g1".parse().unwrap()),
        inbound: Some(Inbound {
            channel: Some("Slack".to_owned()),
            to: Some(to.to_owned()),
            from: Some("ann".to_owned()),
            ..Inbound::default()
        }),
        ..SendMessage::default()
    };
    let sent = client.send_message(from("hello", "g1")).await.unwrap().sent().unwrap();
    idle(&home, &sent.session, 1).await;
    let who = sent.session.conversation.to_string();
    let entry = client.conversation(&who).await.unwrap().notes.entry;
    assert_eq!((entry.last_channel.as_deref(), entry.last_to.as_deref()), (Some("slack"), Some("g1")));
    assert_eq!(entry.origin.unwrap().from.as_deref(), Some("ann"));
    client.set_conversation(&who, vec!["group_activation=mention".to_owned()]).await.unwrap();
    let unheard = client.send_message(from("who is there?", "g2")).await.unwrap().sent().unwrap();
    assert_eq!(unheard.receipt, Receipt::Dropped);
    assert!(unheard.why.unwrap().contains("@api"));
    let heard = client.send_message(from("@API, you?", "g2")).await.unwrap().sent().unwrap();
    assert_eq!(heard.receipt, Receipt::Accepted);
    idle(&home, &sent.session, 2).await;
    let entry = client.conversation(&who).await.unwrap().notes.entry;
    assert_eq!(entry.last_to.as_deref(), Some("g2"));
    // When it first hears something there, it is told where it is; once.
    assert_eq!(entry.group_activation_needs_system_intro, Some(false));
    let told = client.message(&heard.message.to_string()).await.unwrap().message.text;
    assert!(told.starts_with("[You are in the group on slack.") && told.ends_with("@API, you?"), "{told}");
    // What does not wake it is dropped, and stays readable.
    client.stop_session(&sent.session.id.to_string(), false).await.unwrap();
    home.ended(&sent.session.id.to_string()).await;
    let named = SendMessage { idempotency_key: Some("chat-7".to_owned()), ..from("anybody?", "g2") };
    let unheard = client.send_message(named.clone()).await.unwrap().sent().unwrap();
    assert_eq!((unheard.receipt, unheard.woke), (Receipt::Dropped, false));
    assert_eq!(client.send_message(named).await.unwrap().sent().unwrap().message, unheard.message, "once");
    let row = client.message(&unheard.message.to_string()).await.unwrap();
    assert_eq!((row.message.text.as_str(), row.receipt), ("anybody?", Receipt::Dropped));
    assert!(row.why.unwrap().contains("@api"));
    let asleep = sent.session.id.to_string();
    assert!(ostler(&home, &["message", "ls", "--all", &asleep]).0.contains("anybody?"));
    assert_eq!(client.session(&sent.session.id.to_string()).await.unwrap().outcome, Some(Outcome::Stopped));
    ostler(&home, &["db", "reindex"]);
    assert_eq!(client.message(&unheard.message.to_string()).await.unwrap().receipt, Receipt::Dropped);
    // And it can be asked before.
    for (text, verdict) in [(None, "partly"), (Some("anybody?"), "denied"), (Some("@api?"), "allowed")] {
        let mut asked = vec!["policy", "test", "send", &who, "-o", "json"];
        text.iter().for_each(|text| asked.extend(["--text", text]));
        let tested: Value = serde_json::from_str(&ostler(&home, &asked).0).unwrap();
        assert_eq!(
            (tested["verdict"].as_str(), &tested["by"]),
            (Some(verdict), &json!("group_activation")),
            "{tested}"
        );
    }
}
