//! The server as a client of the protocol meets it, with a session socket that is played.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    path::Path,
    sync::mpsc,
    thread,
};

use ostler_domain::{
    call::{Call, CallLine, Reply, StepMark, denied},
    limits::CALL_TEXT_BYTES,
};
use ostler_inside::SessionSocket;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

/// A keeper that answers every call with the next of these, or leaves it on the tape.
fn keeper(path: &Path, replies: Vec<Option<Reply>>) -> mpsc::Receiver<Call> {
    let listener = UnixListener::bind(path).unwrap();
    let (heard, calls) = mpsc::channel();
    thread::spawn(move || {
        for reply in replies {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "token");
            heard.send(Call::parse(lines.next().unwrap().unwrap().as_bytes()).unwrap()).unwrap();
            let taped = Reply::Taped { daemon: reply.is_some() };
            for reply in [Some(taped), reply].into_iter().flatten() {
                let line = serde_json::to_string(&CallLine { call: 7, reply }).unwrap();
                writeln!(&stream, "{line}").unwrap();
            }
        }
    });
    calls
}

struct Client {
    lines: tokio::io::Lines<tokio::io::BufReader<ReadHalf<DuplexStream>>>,
    to: WriteHalf<DuplexStream>,
    asked: u64,
}

impl Client {
    async fn new(socket: SessionSocket) -> Self {
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        tokio::spawn(async move {
            let _ = ostler_mcp::serve(socket, "9.9.9", tokio::io::split(theirs)).await;
        });
        let (from, to) = tokio::io::split(ours);
        let mut client = Self { lines: tokio::io::BufReader::new(from).lines(), to, asked: 0 };
        let info = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let hello = client.ask("initialize", info).await;
        assert_eq!(hello["result"]["serverInfo"], json!({"name": "ostler", "version": "9.9.9"}));
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
        client.write(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn write(&mut self, message: Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.write(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.lines.next_line().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["id"], id);
        answer
    }

    async fn tool(&mut self, name: &str, arguments: Value) -> (bool, String) {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments})).await;
        let result = &answer["result"];
        let is_error = result["isError"].as_bool().unwrap_or(false);
        (!is_error, result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    }
}

fn socket(path: &Path) -> SessionSocket {
    SessionSocket::new(path.to_owned(), "token".to_owned())
}

#[tokio::test]
async fn tools_are_calls_of_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let calls = keeper(&path, vec![Some(Reply::Ok {}), Some(Reply::Refused(denied())), None, None]);
    let mut client = Client::new(socket(&path)).await;
    assert_eq!(client.tool("step", json!({"name": "build", "mark": "start"})).await, (true, "ok".to_owned()));
    let build = Call::Step { name: "build".to_owned(), mark: StepMark::Start, note: String::new() };
    assert_eq!(calls.recv().unwrap(), build);
    let (ok, text) = client.tool("send", json!({"to": "stranger", "text": "hi"})).await;
    assert!(!ok && text.starts_with("an agent may speak for its own session only"), "{text}");
    let (ok, text) = client.tool("done", json!({})).await;
    assert!(ok && text.contains("the daemon is away"), "it is on the tape: {text}");
    let (ok, text) = client.tool("search", json!({"text": "x"})).await;
    assert!(!ok && text.contains("the daemon is away"), "{text}");
}

#[tokio::test]
async fn mistakes_are_told_to_the_model_and_do_not_reach_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let mut client = Client::new(socket(&path)).await;
    for (name, arguments, why) in [
        ("stop", json!({}), "there is no tool"),
        ("note", json!({"text": "x".repeat(CALL_TEXT_BYTES + 1)}), "at most"),
        ("step", json!({"name": "build"}), "mark"),
    ] {
        let (ok, text) = client.tool(name, arguments).await;
        assert!(!ok && text.contains(why), "{name}: {text}");
    }
    let (ok, text) = client.tool("note", json!({"text": "hello"})).await;
    assert!(!ok && text.contains("the session socket does not answer"), "{text}");
}

/// What a client puts before its model with every call: about four bytes a token.
#[tokio::test]
async fn the_list_of_tools_is_short() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::new(socket(&dir.path().join("s"))).await;
    let listed = client.ask("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["step", "note", "output", "spawn", "send", "assign", "search", "ticket", "show", "handoff", "done"]
    );
    assert!(listed.to_string().len() <= 3_000, "{} bytes", listed.to_string().len());
}
