//! Tapes as people see them.

use std::{fs, path::PathBuf};

use ostler_domain::{Reason, session::Attention};
use ostler_testkit::{TestHome, scenario};
use serde_json::{Value, json};

use crate::OSTLER;

async fn ended(home: &TestHome, letters: usize) -> String {
    let client = home.client().await;
    let long = "x".repeat(letters);
    let said = vec![scenario::say("first"), scenario::say(&long), scenario::say("last")];
    let session = home.session(&client, &scenario::of(said)).await;
    let who = session.id.to_string();
    home.reaches(&who, "its turn to end", |view| view.turns == 1 && view.attention == Some(Attention::Idle))
        .await;
    client.stop_session(&who, false).await.unwrap();
    home.ended(&who).await;
    who
}

fn records(home: &TestHome, args: &[&str]) -> Vec<Value> {
    let output = home.run(args);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn everything_that_crossed_the_border_is_there_in_its_order() {
    let home = TestHome::started(OSTLER).await;
    let who = ended(&home, 200_000).await;

    let all = records(&home, &["tape", &who, "-o", "jsonl"]);
    let streams: Vec<_> = all.iter().filter_map(|record| record["stream"].as_str()).collect();
    assert!(
        streams.contains(&"out") && streams.contains(&"in") && streams.contains(&"keeper"),
        "{streams:?}"
    );
    let offsets: Vec<_> = all.iter().filter_map(|record| record["offset"].as_u64()).collect();
    assert!(offsets.is_sorted() && offsets[0] == 0, "{offsets:?}");
    let told = all
        .iter()
        .find(|record| record["stream"] == "in" && record["text"].as_str().unwrap().contains("first"));
    assert!(told.unwrap()["input_no"].is_u64(), "{told:?}");

    // The bytes alone are whole lines of JSON again, the long one too.
    let raw = home.run(&["tape", &who, "--raw", "--stream", "out"]);
    let lines: Vec<Value> = String::from_utf8(raw.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.iter().any(|line| line.to_string().len() > 200_000));

    let later = records(&home, &["tape", &who, "-o", "jsonl", "--after", &offsets[2].to_string()]);
    assert_eq!(later, all[2..]);
    let nothing = home.run(&["tape", &who, "--stream", "net"]);
    assert!(nothing.status.success() && nothing.stdout.is_empty());
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("nothing of that"));
    assert_eq!(home.run(&["tape", &who, "--json"]).status.code(), Some(2));
}

#[tokio::test]
async fn what_is_damaged_is_said_and_the_rest_is_shown() {
    let home = TestHome::started(OSTLER).await;
    // So short that nobody compresses it meanwhile.
    let who = ended(&home, 500).await;
    let dir = home.home.state().join("sessions").join(&who);
    let tape: PathBuf = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("tape.0"))
        .unwrap();
    let mut bytes = fs::read(&tape).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&tape, &bytes).unwrap();

    let output = home.run(&["tape", &who, "-o", "jsonl"]);
    assert_ne!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("damaged_from") && text.contains("first") && text.contains("last"),
        "{}",
        &text[..500]
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("the tape is damaged"));
}

#[tokio::test]
async fn who_keeps_nothing_is_not_gone_on_with_elsewhere() {
    let home = TestHome::started(OSTLER).await;
    let who = ended(&home, 1).await;
    let refused = home.client().await.native_command(&who).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::WrongState, "{refused:?}");
    let output = home.run(&["resume", &who, "--native", "--json"]);
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["reason"], json!("WRONG_STATE"), "{error}");
}
