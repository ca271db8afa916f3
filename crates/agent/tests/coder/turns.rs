//! Turns that go well.

use std::fs;

use ostler_testkit::wait;
use serde_json::json;

use crate::editor::{Place, script};

#[test]
fn a_tool_writes_a_file_and_the_next_turn_remembers() {
    for wire in ["wire=chat", "wire=responses"] {
        let place = Place::new();
        let mut editor = place.open(&[wire, "approve=all", "key_env=TEST_KEY"]);
        let answer = editor.turn(&script(json!([
            {"reasoning": "I should look.", "text": "Let me write.", "usage": {"input": 1000, "cached": 400, "output": 50, "reasoning": 10},
             "tools": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "hello"}}]},
            {"text": "All done.", "usage": {"input": 1200, "cached": 1000, "output": 20}},
        ])));
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{wire}");
        assert_eq!(fs::read_to_string(place.root().join("a.txt")).unwrap(), "hello");
        assert_eq!(editor.text(), "Let me write.All done.");
        assert_eq!(editor.results(), [("completed".into(), "5 bytes written to a.txt".into())]);
        let spent: Vec<_> = editor
            .updates("usage_update")
            .iter()
            .map(|update| update["_meta"]["ostler"]["call"].clone())
            .collect();
        assert_eq!(
            spent,
            [
                json!({"input": 600, "cache_read": 400, "cache_write": 0, "output": 50, "reasoning": 10}),
                json!({"input": 200, "cache_read": 1000, "cache_write": 0, "output": 20, "reasoning": 0}),
            ]
        );
        assert_eq!(answer["result"]["usage"]["totalTokens"], place.model.sent().total());

        editor.turn("and now?");
        assert_eq!(editor.text(), "fake reply to: and now?");
        let seen = place.model.seen();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|seen| seen.headers["authorization"] == "Bearer a-dummy"));
        let last = seen[2].body.to_string();
        assert!(last.contains("All done.") && last.contains("5 bytes written"), "{last}");
        assert_eq!(editor.close(), Some(0));
    }
}

#[test]
fn every_tool_works_and_commands_do_not_see_the_key() {
    let place = Place::new();
    fs::write(place.root().join("a.rs"), "fn main() {}\n").unwrap();
    let mut editor = place.open(&["approve=all", "key_env=TEST_KEY"]);
    let tool = |name: &str, arguments: serde_json::Value| json!({"name": name, "arguments": arguments});
    editor.turn(&script(json!([
        {"tools": [
            tool("list_dir", json!({})),
            tool("search", json!({"pattern": "main"})),
            tool("edit_file", json!({"path": "a.rs", "old_text": "main", "new_text": "start"})),
            tool("read_file", json!({"path": "a.rs"})),
            tool("run_command", json!({"command": "pwd; echo key=$TEST_KEY; exit 3"})),
            tool("read_file", json!({"path": "../../etc/passwd"})),
            tool("no_such_tool", json!({})),
        ]},
        {"text": "done"},
    ])));
    let results = editor.results();
    let outputs: Vec<_> = results.iter().map(|(_, output)| output.as_str()).collect();
    assert_eq!(
        outputs[..4],
        ["a.rs  13", "a.rs:1: fn main() {}", "1 replaced in a.rs", "     1\tfn start() {}\n"]
    );
    assert_eq!(outputs[4], format!("exit status 3\n{}\nkey=\n", place.root().display()));
    assert!(outputs[5].contains("outside") && outputs[6].contains("no tool"));
    let failed: Vec<_> = results.iter().map(|(status, _)| status == "failed").collect();
    assert_eq!(failed, [false, false, false, false, true, true, true]);
    // One answer for each call, in order, in the next request.
    let messages = place.model.seen()[1].body["messages"].as_array().unwrap().clone();
    assert_eq!(messages.iter().filter(|message| message["role"] == "tool").count(), 7);
}

#[test]
fn changes_are_asked_for_and_answers_are_heeded() {
    let place = Place::new();
    let mut editor = place.open(&[]);
    let id = editor.prompt(&script(json!([
        {"tools": [{"name": "run_command", "arguments": {"command": "touch yes"}}, {"name": "write_file", "arguments": {"path": "no", "content": ""}}]},
        {"text": "done"},
    ])));
    for (allow, message) in [(true, ""), (false, "leave that file alone")] {
        let asked = editor.until("a question", |said| said["method"] == "session/request_permission");
        let option = asked["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .find(|option| option["kind"] == if allow { "allow_once" } else { "reject_once" });
        let outcome = json!({"outcome": "selected", "optionId": option.unwrap()["optionId"], "_meta": {"message": message}});
        editor.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}}));
    }
    editor.answer_to(id);
    assert_eq!(editor.results()[1], ("failed".into(), "denied: leave that file alone".into()));
    assert!(place.root().join("yes").exists() && !place.root().join("no").exists());
}

#[test]
fn a_conversation_goes_on_after_a_kill() {
    let place = Place::new();
    let mut editor = place.open(&["approve=all"]);
    editor.turn("remember the word heron");
    let session = editor.session.clone();
    editor.prompt(&script(json!([{"tools": [{"name": "run_command", "arguments": {"command": "sleep 300 & echo $! > pid; wait"}}]}])));
    let pid = place.root().join("pid");
    wait::until("the command to run", wait::PATIENCE, || {
        fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'))
    });
    editor.kill();
    let sleeper = fs::read_to_string(&pid).unwrap().trim().to_owned();
    std::process::Command::new("kill").arg(sleeper).status().unwrap();

    let mut editor = place.start(&["approve=all"]);
    let gone =
        editor.ask("session/load", json!({"sessionId": "nobody", "cwd": place.root(), "mcpServers": []}));
    assert_eq!(gone["error"]["code"], -32002);
    let loaded =
        editor.ask("session/load", json!({"sessionId": session, "cwd": place.root(), "mcpServers": []}));
    assert_eq!(loaded["result"]["models"]["currentModelId"], "fake-model");
    let told: Vec<_> =
        editor.updates("user_message_chunk").iter().map(|update| update["content"]["text"].clone()).collect();
    assert_eq!(told[0], "remember the word heron");
    assert_eq!(editor.results(), [("failed".into(), "interrupted: the agent was ended".into())]);
    editor.session = session;
    editor.turn("which word?");
    let last = place.model.seen().last().unwrap().body.to_string();
    assert!(last.contains("heron") && last.contains("interrupted"), "{last}");
}

#[test]
fn another_model_is_asked_once_it_is_set() {
    let place = Place::new();
    let mut editor = place.open(&["approve=all"]);
    let session = editor.session.clone();
    editor.ask("session/set_model", json!({"sessionId": session, "modelId": "other"}));
    editor.turn("hello");
    assert_eq!(place.model.seen()[0].body["model"], "other");
    assert_eq!(editor.updates("usage_update")[0]["_meta"]["ostler"]["model"], "other");
}

#[test]
fn a_model_that_is_set_within_a_turn_is_that_of_the_next() {
    let place = Place::new();
    let mut editor = place.open(&["approve=all"]);
    let session = editor.session.clone();
    let turn = editor.prompt(&script(json!([{"shell": "sleep 1"}, {"text": "done"}])));
    editor.until("the tool to run", |said| said["params"]["update"]["sessionUpdate"] == "tool_call");
    let set = editor.ask("session/set_model", json!({"sessionId": session, "modelId": "other"}));
    assert!(set.get("error").is_none(), "{set}");
    editor.answer_to(turn);
    editor.turn("hello");
    let models: Vec<_> = place.model.seen().iter().map(|seen| seen.body["model"].clone()).collect();
    assert_eq!(models, ["fake-model", "fake-model", "other"]);
}
