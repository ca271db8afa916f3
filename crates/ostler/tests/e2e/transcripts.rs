//! Transcripts: written beside the log, never twice and never short, whatever happens to the daemon.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Stdio, time::Duration};

use ostler_client::{AddCampaign, Client, CreateSession, SendMessage};
use ostler_domain::{
    ConversationId,
    conversation::Key,
    session::{Attention, View},
    transcript::{Difference, Line, Message, Verified},
};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

fn file(home: &TestHome, id: ConversationId, name: &str) -> PathBuf {
    home.home.state().join("conversations").join(id.to_string()).join(name)
}

/// What the daemon says that the transcript is.
async fn told(client: &Client, who: &str) -> String {
    let mut lines = client.transcript(who).await.unwrap();
    let mut text = String::new();
    while let Some(line) = lines.next().await {
        text.push_str(std::str::from_utf8(&line.unwrap()).unwrap());
        text.push('\n');
    }
    text
}

/// Waits until the file says the same, and returns that.
async fn written(home: &TestHome, client: &Client, view: &View, name: &str) -> String {
    let path = file(home, view.conversation, name);
    let whole = told(client, &view.id.to_string()).await;
    wait::until("the transcript to be written", wait::PATIENCE, || {
        fs::read_to_string(&path).is_ok_and(|text| text == whole)
    });
    whole
}

async fn verified(client: &Client, who: Option<&str>, rebuild: bool) -> Vec<Verified> {
    let mut answers = client.verify_transcripts(who, rebuild).await.unwrap();
    let mut all = Vec::new();
    while let Some(answer) = answers.next().await {
        all.push(answer.unwrap());
    }
    all
}

fn is_idle(view: &View) -> bool {
    view.attention == Some(Attention::Idle) && view.turns == 1
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn turn() -> String {
    scenario::of(vec![
        json!({"think": "hm"}),
        scenario::say("I look."),
        json!({"run": ["sh", "-c", "echo se''en; exit 3"]}),
        json!({"usage": {"input": 500, "cache_read": 40, "output": 200}}),
        scenario::say("Looked <b>."),
    ])
}

#[tokio::test]
async fn a_conversation_of_two_sessions_is_one_file_for_its_owner_alone() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let first = home.session(&client, &turn()).await;
    home.reaches(&first.id.to_string(), "its turn to end", is_idle).await;
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let text = scenario::of(vec![scenario::say("again")]);
    let say = SendMessage { who: first.conversation.to_string(), text, ..SendMessage::default() };
    let second = client.send_message(say).await.unwrap().sent().unwrap().session;
    assert_eq!(second.conversation, first.conversation);
    home.reaches(&second.id.to_string(), "its turn to end", is_idle).await;
    let text = written(&home, &client, &second, "transcript.jsonl").await;

    let all = lines(&text);
    assert_eq!((&all[0]["type"], &all[0]["version"]), (&json!("session"), &json!(3)));
    assert_eq!(all[0]["cwd"], home.campaign_dir().display().to_string());
    let roles: Vec<_> = all.iter().filter_map(|line| line["message"]["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant", "user", "assistant"]);
    let used: u64 = all.iter().filter_map(|line| line["message"]["usage"]["totalTokens"].as_u64()).sum();
    assert_eq!(used, 740);
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = file(&home, first.conversation, "transcript.jsonl");
    assert_eq!((mode(&path), mode(&path.parent().unwrap().to_owned())), (0o600, 0o700));

    // For people, and for programs.
    let out = |args: &[&str]| {
        let output = home.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let id = first.id.to_string();
    assert_eq!(out(&["transcript", "export", &id]), text);
    let markdown = out(&["transcript", "export", &id, "--markdown"]);
    assert!(markdown.contains("<details>") && markdown.contains("Looked &lt;b>."), "{markdown}");
    let title = format!("Transcript of shop/{}", first.name);
    assert!(markdown.starts_with(&format!("## {}\n", title.replace('_', "\\_"))), "{markdown}");
    let page = home.path().join("page.html");
    out(&["transcript", "export", &id, "--file", page.to_str().unwrap()]);
    let page_text = fs::read_to_string(&page).unwrap();
    assert!(page_text.starts_with("<!doctype html>") && page_text.trim_end().ends_with("</html>"));
    assert!(page_text.contains(&format!("<title>{title}</title>")), "{title}");
    assert!(page_text.contains("Looked &lt;b&gt;.") && !page_text.contains("<script"));
    assert_eq!(mode(&page), 0o600);
    let shown = out(&["transcript", "show", &first.conversation.to_string()]);
    assert!(
        shown.contains("failed (exit 3)") && shown.contains("again") && !shown.contains("seen"),
        "{shown}"
    );
    let one = out(&["transcript", "show", &id, "--turn", "1", "--tools"]);
    assert!(one.contains("seen") && !one.contains("again"), "{one}");
    let last = out(&["transcript", "show", &first.conversation.to_string(), "--turn", "1"]);
    assert!(last.contains("again") && !last.contains("I look"), "{last}");
    let none = home.run(&["transcript", "show", &id, "--turn", "7"]);
    assert_eq!(none.status.code(), Some(2));
}

/// What somebody else said in the agent's name is where it was said, whether a session lived then or not.
#[tokio::test]
async fn what_was_delivered_elsewhere_is_in_the_transcript() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let first = home.session(&client, &turn()).await;
    home.reaches(&first.id.to_string(), "its turn to end", is_idle).await;
    let who = first.conversation.to_string();
    let append = |more: &[&str]| {
        let output = home.run(&[&["transcript", "append", &who], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    append(&["while it lives", "--to", "user:U1", "--media", "https://example.org/a.png"]);
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    append(&["while nobody does"]);
    let text = scenario::of(vec![scenario::say("again")]);
    let say = SendMessage { who: who.clone(), text, ..SendMessage::default() };
    let second = client.send_message(say).await.unwrap().sent().unwrap().session;
    home.reaches(&second.id.to_string(), "its turn to end", is_idle).await;
    append(&["behind all"]);
    let text = written(&home, &client, &second, "transcript.jsonl").await;
    let all = lines(&text);
    let said: Vec<_> = all
        .iter()
        .filter(|line| line["message"]["role"] == "assistant")
        .filter_map(|line| line["message"]["content"].as_array()?.last()?["text"].as_str())
        .collect();
    assert_eq!(
        said[said.len() - 4..],
        ["https://example.org/a.png", "while nobody does", "again", "behind all"]
    );
    let mirrored: Vec<_> = all.iter().filter(|line| line["message"]["model"] == "delivery-mirror").collect();
    assert_eq!((mirrored.len(), &mirrored[0]["ostler"]["to"]), (3, &json!("user:U1")));
    assert!(mirrored.iter().all(|line| line["message"]["usage"]["totalTokens"] == 0));
    let used: u64 = all.iter().filter_map(|line| line["message"]["usage"]["totalTokens"].as_u64()).sum();
    assert_eq!(used, 740);
    assert!(verified(&client, Some(&who), false).await.iter().all(|verified| verified.difference.is_none()));
    let refused = home.run(&["transcript", "append", &who, ""]);
    assert_eq!(refused.status.code(), Some(2), "nothing was delivered");
}

#[tokio::test]
async fn a_topic_has_a_file_of_its_own() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"api".parse().unwrap(), Vec::new()).await.unwrap();
    let mut wanted = CreateSession::new("shop", "script");
    wanted.agent = Some("api".to_owned());
    wanted.key = Some("agent:api:telegram:group:-1:topic:a/7".parse::<Key>().unwrap());
    wanted.initial_message = Some("hello".to_owned());
    let view = client.create_session(wanted).await.unwrap();
    home.reaches(&view.id.to_string(), "its turn to end", is_idle).await;
    written(&home, &client, &view, "transcript-topic-a%2F7.jsonl").await;
}

#[tokio::test]
async fn a_file_that_is_changed_or_gone_is_found_and_made_anew() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = home.session(&client, &turn()).await;
    home.reaches(&view.id.to_string(), "its turn to end", is_idle).await;
    let whole = written(&home, &client, &view, "transcript.jsonl").await;
    let path = file(&home, view.conversation, "transcript.jsonl");
    let who = view.id.to_string();
    assert_eq!(verified(&client, Some(&who), false).await[0].difference, None);

    fs::write(&path, whole.replacen("I look", "I lied", 1)).unwrap();
    let found = verified(&client, None, false).await.pop().unwrap();
    let Some(Difference::Line { number, expected, found: said }) = &found.difference else {
        panic!("{found:?}");
    };
    assert_eq!(*number, found.lines + 1);
    assert!(expected.contains("I look") && said.contains("I lied"), "{found:?}");
    let told = home.run(&["transcript", "verify", "--all"]);
    assert_eq!(told.status.code(), Some(1));
    assert!(verified(&client, Some(&who), true).await[0].rebuilt);
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);

    fs::remove_file(&path).unwrap();
    assert_eq!(verified(&client, Some(&who), false).await[0].difference, Some(Difference::Missing));
    // The next daemon looks by itself; also at one that lost its end.
    for torn in [None, Some(&whole[..whole.len() - 10])] {
        home.kill_daemon();
        if let Some(torn) = torn {
            fs::write(&path, torn).unwrap();
        }
        home.start().await;
        wait::until("the file to be mended", wait::PATIENCE, || {
            fs::read_to_string(&path).is_ok_and(|text| text.starts_with(&whole))
        });
    }
}

/// A daemon that dies at any of its writes has neither doubled a line nor left one out when the next one has caught up.
#[tokio::test]
async fn no_line_is_doubled_or_missing_whichever_write_the_daemon_dies_at() {
    for pass in 1..=9 {
        let home = TestHome::new(OSTLER);
        let dir = home.campaign_dir();
        let mut daemon = home
            .command(&["daemon", "run"])
            .env("OSTLER_FAULT", format!("transcript:{pass}"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = wait_for_client(&home).await;
        let name = Some("shop".parse().unwrap());
        client.add_campaign(AddCampaign { path: dir.display().to_string(), name }).await.unwrap();
        let mut wanted = CreateSession::new("shop", "script");
        wanted.initial_message = Some(scenario::of(vec![scenario::count("tick", 25, 100)]));
        wanted.ends_with_turn = true;
        let view = client.create_session(wanted).await.unwrap();
        wait::until("the daemon to die at the fault", wait::PATIENCE, || {
            daemon.try_wait().unwrap().is_some()
        });
        let client = home.start().await;
        home.ended(&view.id.to_string()).await;
        let text = written(&home, &client, &view, "transcript.jsonl").await;
        let said: Vec<String> = text
            .lines()
            .filter_map(|line| match serde_json::from_str(line).unwrap() {
                Line::Message { message: Message::Assistant { content, .. }, .. } => Some(content),
                _ => None,
            })
            .flatten()
            .map(|block| serde_json::to_value(block).unwrap()["text"].as_str().unwrap().to_owned())
            .collect();
        let expected: Vec<String> = (1..=25).map(|n| format!("tick {n}")).collect();
        assert_eq!(said, expected, "fault at pass {pass}");
        assert_eq!(verified(&client, None, false).await[0].difference, None, "fault at pass {pass}");
    }
}

async fn wait_for_client(home: &TestHome) -> Client {
    let deadline = tokio::time::Instant::now() + wait::PATIENCE;
    loop {
        match Client::connect(&home.home).await {
            Ok(client) => return client,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
