//! The other side of the protocol.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use ostler_testkit::FakeOpenai;
use serde_json::{Value, json};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory to work in, a home, and the model.
pub(crate) struct Place {
    pub(crate) model: FakeOpenai,
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { model: FakeOpenai::start(), dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(place.root()).unwrap();
        place
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Starts the agent with a new conversation.
    pub(crate) fn open(&self, settings: &[&str]) -> Editor {
        let mut editor = self.start(settings);
        let opened = editor.ask("session/new", json!({"cwd": self.root(), "mcpServers": []}));
        editor.session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
        editor
    }

    pub(crate) fn start(&self, settings: &[&str]) -> Editor {
        let mut editor = Editor::start(&self.home(), &self.model.base_url(), settings);
        let ready = editor.ask("initialize", json!({"protocolVersion": 1}));
        assert_eq!(ready["result"]["protocolVersion"], 1);
        editor
    }
}

/// A running agent.
pub(crate) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    pub(crate) session: String,
    next: u64,
    /// Everything that was said since the last prompt.
    pub(crate) said: Vec<Value>,
}

impl Editor {
    fn start(home: &Path, base_url: &str, settings: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_agent-under-test"))
            .arg(format!("base_url={base_url}"))
            .arg("model=fake-model")
            .args(settings)
            .env("HOME", home)
            .env("TEST_KEY", "a-dummy")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines() {
                let value = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, session: String::new(), next: 0, said: Vec::new() }
    }

    pub(crate) fn write(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer_to(id)
    }

    /// Sends a prompt and returns its number.
    pub(crate) fn prompt(&mut self, text: &str) -> u64 {
        self.said.clear();
        let prompt = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.request("session/prompt", prompt)
    }

    /// A whole turn: what it was answered with.
    pub(crate) fn turn(&mut self, text: &str) -> Value {
        let id = self.prompt(text);
        self.answer_to(id)
    }

    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        self.until("an answer", |said| said["id"] == id && said.get("method").is_none())
    }

    pub(crate) fn cancel(&mut self) {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": self.session}});
        self.write(&cancel);
    }

    /// Reads until something is said; keeps all of it.
    pub(crate) fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(said) = self.lines.recv_timeout(left) else {
                panic!("waited too long for {what}; said so far: {:#?}", self.said)
            };
            self.said.push(said.clone());
            if is_it(&said) {
                return said;
            }
        }
    }

    /// The updates of a kind since the last prompt.
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        self.said
            .iter()
            .map(|said| &said["params"]["update"])
            .filter(|update| update["sessionUpdate"] == kind)
            .cloned()
            .collect()
    }

    /// The notifications of a kind that only Ostler knows.
    pub(crate) fn extras(&self, method: &str) -> Vec<Value> {
        let method = format!("_ostler/{method}");
        self.said
            .iter()
            .filter(|said| said["method"] == method.as_str())
            .map(|said| said["params"].clone())
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        self.updates("agent_message_chunk")
            .iter()
            .filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    /// Status and output of each tool that ended.
    pub(crate) fn results(&self) -> Vec<(String, String)> {
        self.updates("tool_call_update")
            .iter()
            .filter(|update| update["status"] != "in_progress")
            .map(|update| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (text(&update["status"]), text(&update["rawOutput"]["output"]))
            })
            .collect()
    }

    /// Ends the input and says how the agent went.
    pub(crate) fn close(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A prompt that carries its script.
pub(crate) fn script(steps: Value) -> String {
    format!("@@fake {steps}")
}
