//! Servers that fail, and people who interrupt.

use std::{
    fs,
    time::{Duration, Instant},
};

use ostler_testkit::{Proc, wait};
use serde_json::json;

use crate::editor::{Place, script};

#[test]
fn what_passes_is_waited_out_and_told() {
    for (step, tries) in [
        (json!({"status": 429, "headers": {"retry-after": "1"}, "times": 1, "text": "recovered"}), 2),
        (json!({"status": 500, "times": 2, "text": "recovered"}), 3),
        (json!({"cut": 3, "chunks": 10, "times": 1, "text": "recovered"}), 2),
        (json!({"cut": 3, "cut_clean": true, "chunks": 10, "times": 1, "text": "recovered"}), 2),
    ] {
        let place = Place::new();
        let mut editor = place.open(&[]);
        let answer = editor.turn(&script(json!([step])));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{step}");
        assert_eq!(place.model.seen().len(), tries, "{step}");
        let waits = editor.extras("waiting");
        assert_eq!(waits.len(), tries - 1, "{step}");
        assert_eq!(waits[0]["rateLimit"], step["status"] == 429);
        // What streamed of a reply that was cut is withdrawn by its name.
        let withdrawn: Vec<_> =
            editor.extras("withdrawn").iter().map(|said| said["messageId"].clone()).collect();
        let kept: String = editor
            .updates("agent_message_chunk")
            .iter()
            .filter(|chunk| !withdrawn.contains(&chunk["messageId"]))
            .filter_map(|chunk| chunk["content"]["text"].as_str())
            .collect();
        assert_eq!(kept, "recovered", "{step}");
    }
}

#[test]
fn what_does_not_pass_ends_the_turn_and_not_the_agent() {
    let quota = json!({"error": {"message": "You exceeded your quota", "type": "insufficient_quota"}});
    let place = Place::new();
    let mut editor = place.open(&[]);
    for (step, code, words) in [
        (
            json!({"status": 401, "body": {"error": {"message": "Incorrect API key"}}}),
            -32000,
            "Incorrect API key",
        ),
        (json!({"status": 429, "body": quota}), -32603, "quota"),
        (json!({"status": 404, "body": "nothing here"}), -32603, "404"),
        (json!({"failed": {"code": "invalid_prompt", "message": "no"}}), -32603, "invalid_prompt"),
    ] {
        let before = place.model.seen().len();
        let answer = editor.turn(&script(json!([step])));
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
        assert_eq!(place.model.seen().len(), before + 1, "{step} was tried again");
    }
    editor.turn("still there?");
    assert!(editor.text().starts_with("fake reply"));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    let mut editor = place.open(&["base_url=http://127.0.0.1:9/v1", "idle_seconds=5"]);
    let id = editor.prompt("hello");
    let told = editor.until("the first wait", |said| said["method"] == "_ostler/waiting");
    assert!(told["params"]["reason"].as_str().unwrap().contains("127.0.0.1:9"), "{told}");
    // A wait is broken off like anything else.
    editor.cancel();
    assert_eq!(editor.answer_to(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_silent_server_counts_as_cut() {
    let place = Place::new();
    let mut editor = place.open(&["idle_seconds=1"]);
    let id = editor.prompt(&script(json!([{"hang": 2, "text": "never ends"}])));
    let told = editor.until("the first wait", |said| said["method"] == "_ostler/waiting");
    assert!(told["params"]["reason"].as_str().unwrap().contains("silent for 1 s"), "{told}");
    editor.cancel();
    editor.answer_to(id);
}

#[test]
fn a_cancel_closes_the_call_to_the_model() {
    let place = Place::new();
    let mut editor = place.open(&[]);
    let id = editor.prompt(&script(json!([{"hang": 4, "chunks": 10, "text": "starts and then stalls"}])));
    editor
        .until("the first words", |said| said["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let begun = Instant::now();
    editor.cancel();
    assert_eq!(editor.answer_to(id)["result"]["stopReason"], "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let estimated = &editor.updates("usage_update")[0]["_meta"]["ostler"];
    assert_eq!(estimated["estimated"], json!(true));
    assert!(estimated["call"]["input"].as_u64() > Some(0), "the question was read: {estimated}");
    editor.turn("and now?");
    assert!(editor.text().contains("and now?"));
}

#[test]
fn a_cancel_ends_the_command_and_all_that_it_started() {
    let place = Place::new();
    let mut editor = place.open(&["approve=all"]);
    let id = editor.prompt(&script(json!([
        {"shell": ["setsid sleep 300 & echo $! > pid; sleep 300", "echo never"]}, {"text": "never"},
    ])));
    let file = place.root().join("pid");
    wait::until("the command to run", wait::PATIENCE, || {
        fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let sleeper = Proc::of(fs::read_to_string(&file).unwrap().trim().parse().unwrap()).unwrap();
    editor.cancel();
    assert_eq!(editor.answer_to(id)["result"]["stopReason"], "cancelled");
    wait::until("the command's child to be gone", wait::PATIENCE, || !sleeper.is_alive());
    assert_eq!(editor.results(), [("failed".into(), "cancelled by the user".into())]);
    // The model is told, for each of its calls.
    editor.turn("what happened?");
    let messages = place.model.seen().last().unwrap().body["messages"].as_array().unwrap().clone();
    let told: Vec<_> =
        messages.iter().filter(|message| message["role"] == "tool").map(|m| m["content"].clone()).collect();
    assert_eq!(told, ["cancelled by the user", "cancelled by the user"]);
}

#[test]
fn the_end_of_input_ends_the_agent_in_mid_turn() {
    let place = Place::new();
    let mut editor = place.open(&["approve=all"]);
    editor.prompt(&script(json!([{"shell": "echo $$ > pid; sleep 300"}])));
    let file = place.root().join("pid");
    wait::until("the command to run", wait::PATIENCE, || {
        fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let command = Proc::of(fs::read_to_string(&file).unwrap().trim().parse().unwrap()).unwrap();
    assert_eq!(editor.close(), Some(0));
    wait::until("the command to be gone", wait::PATIENCE, || !command.is_alive());
}

#[test]
fn a_context_that_overflows_is_made_smaller() {
    let place = Place::new();
    fs::write(place.root().join("long"), "x\n".repeat(1000)).unwrap();
    let mut editor = place.open(&["approve=all", "context_window=4000"]);
    let read = json!({"tools": [{"name": "read_file", "arguments": {"path": "long"}}], "usage": {"input": 500, "output": 9}});
    let again = json!({"tools": [{"name": "read_file", "arguments": {"path": "long", "limit": 10}}], "usage": {"input": 3600, "output": 9}});
    let answer =
        editor.turn(&script(json!([read, again, {"text": "done", "usage": {"input": 900, "output": 3}}])));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let last = place.model.seen().last().unwrap().body.to_string();
    assert!(last.contains("[output dropped to save room]"), "{last}");
    assert_eq!(editor.extras("compacted").len(), 1);
    // And when the server is the first to notice, a summary takes the place of it all.
    let overflow = json!({"status": 400, "times": 1, "text": "went on", "body": {"error": {"code": "context_length_exceeded", "message": "too long"}}});
    let answer = editor.turn(&script(json!([overflow])));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let seen = place.model.seen();
    let summary = &seen[seen.len() - 2].body;
    assert!(summary.get("tools").is_none() && summary.to_string().contains("Summarise"), "{summary}");
    assert_eq!(seen[seen.len() - 1].body["messages"].as_array().unwrap().len(), 3);
}
