//! The model of a session, called through its gateway: the key is outside, what a call took is recorded from the wire,
//! and a budget holds with no daemon.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use ostler_client::CreateSession;
use ostler_domain::{
    Budget, Event, Reason, Recorded, SessionId, Usage,
    event::{UsageRecorded, UsageSource},
    session::{Attention, Outcome, Phase},
};
use ostler_testkit::{TestHome, scenario, skip, wait};
use serde_json::{Value, json};

use crate::OSTLER;

const KEY: &str = "sk-the-real-key-of-this-test";

/// A model that answers each call with the same usage, and remembers what it was asked.
pub(crate) struct Model {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Model {
    pub(crate) fn start() -> Model {
        Self::start_with("claude-sonnet-5")
    }

    /// One that calls itself so.
    pub(crate) fn start_with(name: &'static str) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let remembered = heads.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let heads = remembered.clone();
                thread::spawn(move || answer(stream.unwrap(), &heads, name));
            }
        });
        Model { port, heads }
    }

    pub(crate) fn calls(&self) -> usize {
        self.heads.lock().unwrap().len()
    }

    /// The keys that it was shown, in the order of the calls.
    fn keys(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        let key = |head: &String| {
            head.lines()
                .find_map(|line| line.strip_prefix("authorization: Bearer "))
                .unwrap_or_default()
                .to_owned()
        };
        heads.iter().map(key).collect()
    }
}

fn answer(mut stream: TcpStream, heads: &Mutex<Vec<String>>, name: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    // All of it: a connection closed with something unread takes along what was written.
    let mut body = [0; 2];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    let call = {
        let mut heads = heads.lock().unwrap();
        heads.push(String::from_utf8(head).unwrap());
        heads.len()
    };
    let body = json!({
        "id": format!("msg_{call}"), "model": name,
        "usage": {"input_tokens": 50, "cache_read_input_tokens": 7, "output_tokens": 10},
    });
    let body = body.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
}

/// A home whose scripted agents have a model.
pub(crate) async fn home(model: &Model) -> Option<TestHome> {
    if !std::path::Path::new("/bin/bash").exists() {
        skip::lacking("calls to the model need bash");
        return None;
    }
    let home = TestHome::started(OSTLER).await;
    let key = home.path().join("key");
    fs::write(&key, format!("{KEY}\n")).unwrap();
    let config = format!(
        "[providers.script]\nbase_url = \"http://127.0.0.1:{}/base\"\napi_key_file = \"{}\"\n",
        model.port,
        key.display()
    );
    home.configure(&config);
    assert!(home.run(&["campaign", "set", "shop", "net.mode=provider"]).status.success());
    Some(home)
}

/// One call to the model, by hand, and whatever there is to be seen of keys.
pub(crate) fn call() -> Value {
    let script = "exec 3<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:} && \
        printf 'POST /v1/messages HTTP/1.1\\r\\nx-api-key: dummy\\r\\nContent-Length: 2\\r\\n\\r\\n{}' >&3 && cat <&3; env";
    json!({"run": ["bash", "-c", script]})
}

pub(crate) fn used(events: &[Recorded]) -> Vec<UsageRecorded> {
    let used = events.iter().filter_map(|recorded| match &recorded.event {
        Event::UsageRecorded(used) => Some(used.clone()),
        _ => None,
    });
    used.collect()
}

fn tape(home: &TestHome, session: SessionId) -> Vec<u8> {
    let dir = home.home.state().join("sessions").join(session.to_string());
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.filter_map(|path| fs::read(path).ok()).flatten().collect()
}

#[tokio::test]
async fn the_key_is_outside_and_what_a_call_took_is_recorded_once_from_the_wire() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let client = home.client().await;
    let mut wanted = CreateSession::new("shop", "script");
    // Should it get inside by another way, it is blotted out.
    fs::write(home.campaign_dir().join("found"), KEY).unwrap();
    let leak = json!({"read": "found"});
    // What the agent reports without a name is what the wire has seen.
    let report = json!({"usage": {"input": 50, "cache_read": 7, "output": 10}});
    wanted.initial_message = Some(scenario::of(vec![call(), report, leak]));
    wanted.ends_with_turn = true;
    let session = client.create_session(wanted).await.unwrap().id;
    let view = home.ended(&session.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Done), "{view:?}");

    let heads = model.heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(heads[0].starts_with("POST /base/v1/messages HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains(&format!("authorization: Bearer {KEY}\r\n")), "{heads:?}");
    assert!(!heads[0].contains("dummy"), "{heads:?}");

    let events = home.events(&client, session).await;
    let usage = Usage { input: 50, cache_read: 7, output: 10, ..Usage::default() };
    let recorded = used(&events);
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert_eq!((recorded[0].source, recorded[0].usage), (UsageSource::Wire, usage));
    assert_eq!(
        (recorded[0].call.as_deref(), recorded[0].model.as_deref()),
        (Some("msg_1"), Some("claude-sonnet-5"))
    );
    assert_eq!((recorded[1].source, recorded[1].usage), (UsageSource::Report, Usage::default()));
    assert_eq!(recorded[1].said(), usage);
    assert_eq!(view.usage, usage, "once, though both have told of it");

    let cost: Value =
        serde_json::from_slice(&home.run(&["cost", "--by", "model", "-o", "json"]).stdout).unwrap();
    // 50, 7 and 10 tokens at 2, 0.2 and 10 dollars a million.
    assert_eq!(cost["rows"][0]["name"], "claude-sonnet-5", "{cost}");
    assert_eq!((&cost["total"]["cost"], &cost["total"]["calls"]), (&json!("0.000201"), &json!(1)), "{cost}");
    let cost: Value =
        serde_json::from_slice(&home.run(&["cost", "--by", "agent", "-o", "json"]).stdout).unwrap();
    assert_eq!(cost["rows"][0]["name"], view.name.to_string(), "{cost}");
    let audit = home.run(&["usage", "audit", &session.to_string(), "-o", "json"]);
    let audit: Value = serde_json::from_slice(&audit.stdout).unwrap();
    let models = audit["sessions"][0]["models"].as_array().unwrap();
    let verdicts: Vec<_> = models.iter().map(|model| (&model["model"], &model["verdict"])).collect();
    let is = [(&json!("claude-sonnet-5"), &json!("wire_only")), (&json!("script"), &json!("report_only"))];
    assert_eq!(verdicts, is, "the script calls its model by another name: {audit}");

    let outputs: Vec<String> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::AgentToolResult(result) => Some(result.output.clone()),
            _ => None,
        })
        .collect();
    assert!(outputs[0].contains("HTTP/1.1 200 OK") && outputs[0].contains("msg_1"), "{outputs:?}");
    assert!(!outputs[0].contains("sk-the"), "not in its environment: {outputs:?}");
    let tape = tape(&home, session);
    assert!(
        !tape.is_empty() && !tape.windows(KEY.len()).any(|window| window == KEY.as_bytes()),
        "on the tape"
    );
}

#[tokio::test]
async fn a_budget_holds_with_no_daemon_and_the_held_call_goes_on_when_more_is_allowed() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let client = home.client().await;
    let mut wanted = CreateSession::new("shop", "script");
    let wait_for =
        |file: &str| json!({"run": ["bash", "-c", format!("until [ -e {file} ]; do sleep 0.02; done")]});
    wanted.initial_message = Some(scenario::of(vec![wait_for("go"), call(), call(), call()]));
    wanted.ends_with_turn = true;
    wanted.budget = Some(Budget { tokens: Some(100), ..Budget::default() });
    let session = client.create_session(wanted).await.unwrap().id;
    home.reaches(&session.to_string(), "a tool that runs", |view| view.attention == Some(Attention::Working))
        .await;

    let keeper = home.keeper(session).unwrap();
    home.kill_daemon();
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    wait::until("two calls", wait::PATIENCE, || model.calls() == 2);
    // The gateway holds the third by itself; the daemon finds that out when it is back, and holds the session.
    let client = home.start().await;
    let view = home
        .reaches(&session.to_string(), "held", |view| view.attention == Some(Attention::BudgetHold))
        .await;
    assert_eq!(view.usage.budgeted(), 120);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(model.calls(), 2, "no third call came through");
    assert_eq!(home.keeper(session).map(|now| now.pid), Some(keeper.pid));

    let resumed = home.run(&["resume", &session.to_string(), "--budget", "1000"]);
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(home.ended(&session.to_string()).await.outcome, Some(Outcome::Done));
    assert_eq!(model.calls(), 3);
    assert_eq!(used(&home.events(&client, session).await).len(), 3);
}

#[tokio::test]
async fn a_session_whose_key_is_gone_is_not_ended_to_go_on_without_it() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let client = home.client().await;
    let session = home.session(&client, "hello").await.id.to_string();
    home.reaches(&session, "its turn to end", |view| {
        view.turns == 1 && view.attention == Some(Attention::Idle)
    })
    .await;
    // It was there when the session was asked for, and is gone when it is to be started again.
    let key = fs::read(home.path().join("key")).unwrap();
    fs::remove_file(home.path().join("key")).unwrap();
    let refused = client.restart_session(&session).await.unwrap_err().to_refusal();
    assert_eq!(refused.reason, Reason::ProviderAuth, "{refused:?}");
    assert_eq!(client.session(&session).await.unwrap().outcome, None, "nothing was ended for it");
    client.stop_session(&session, false).await.unwrap();
    home.ended(&session).await;
    let sent = home.run(&["send", &session, "and now"]);
    let said = String::from_utf8_lossy(&sent.stderr);
    assert_eq!(sent.status.code(), Some(6), "{said}");
    assert!(said.contains("the key of script is missing"), "{said}");
    fs::write(home.path().join("key"), key).unwrap();
    assert!(home.run(&["send", &session, "and now"]).status.success());
}

/// The variable in which callers of these tests have their key.
const VARIABLE: &str = "OSTLER_E2E_MODEL_KEY";

/// All files below a directory that have the key in them.
fn files_with_the_key(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_with_the_key(&entry.path()));
        } else if kind.is_file()
            && fs::read(entry.path()).unwrap().windows(KEY.len()).any(|window| window == KEY.as_bytes())
        {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test]
async fn what_cannot_call_its_model_is_refused_before_it_starts() {
    let home = TestHome::started(OSTLER).await;
    fs::create_dir_all(home.home.config()).unwrap();
    let gone = home.path().join("gone");
    let refused = |section: &str, run: &[&str]| {
        fs::write(home.home.config_toml(), section).unwrap();
        let refused = home.run(run);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(6), "{section}: {words}");
        assert!(words.contains("try: ostler "), "{words}");
        words
    };
    let script = "[providers.script]\nbase_url = \"http://127.0.0.1:9\"\n";
    let file = format!("{script}api_key_file = \"{}\"\n", gone.display());
    let words = refused(&file, &["run", "-d", "-p", "script", "hello"]);
    assert!(words.contains("PROVIDER_AUTH") && words.contains("gone cannot be read"), "{words}");
    let command = format!("{script}api_key_command = \"echo no luck >&2; exit 3\"\n");
    let words = refused(&command, &["run", "-d", "-p", "script", "hello"]);
    assert!(words.contains("PROVIDER_AUTH") && words.contains("exit 3"), "{words}");
    let nameless = "[providers.openai-api]\nbase_url = \"http://127.0.0.1:9\"\n";
    let words = refused(nameless, &["run", "-d", "-p", "openai-api", "hello"]);
    assert!(words.contains("no model is named for openai-api"), "{words}");
    let listed = String::from_utf8(home.run(&["ls", "-a", "-o", "json"]).stdout).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap()["sessions"], json!([]), "nothing was started");
}

#[tokio::test]
async fn a_caller_s_key_goes_with_the_request_is_in_no_file_and_is_gone_with_the_daemon() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    fs::remove_file(home.path().join("key")).unwrap();
    let url = format!("http://127.0.0.1:{}/base", model.port);
    home.configure(&format!("[providers.script]\nbase_url = \"{url}\"\napi_key_env = \"{VARIABLE}\"\n"));

    // Nobody has it: nothing is started.
    let refused = home.run(&["run", "-d", "hello"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(6), "{words}");
    assert!(words.contains("[PROVIDER_AUTH, exit 6]") && words.contains(VARIABLE), "{words}");

    // The daemon runs already, and without it.
    let prompt = scenario::of(vec![call()]);
    let run = ["run", "-d", "--restart", "on-failure", &prompt];
    let started = home.command(&run).env(VARIABLE, KEY).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    let session: SessionId = String::from_utf8(started.stdout).unwrap().trim().parse().unwrap();
    let rests = |view: &ostler_client::Session| view.turns == 1 && view.attention == Some(Attention::Idle);
    home.reaches(&session.to_string(), "its turn to end", rests).await;
    let shown = format!("authorization: Bearer {KEY}\r\n");
    assert!(model.heads.lock().unwrap()[0].contains(&shown));

    // A restart of the agent has it still, from the daemon's memory.
    home.client().await.restart_session(&session.to_string()).await.unwrap();
    let next = home.client().await.chain(&session.to_string()).await.unwrap().pop().unwrap().id;
    home.reaches(&next.to_string(), "it to be live", |view| view.phase == Phase::Live).await;

    // The keeper holds it while daemons come and go.
    home.kill_daemon();
    let client = home.start().await;
    let say = |text: String| ostler_client::SendMessage {
        who: next.to_string(),
        text,
        ..ostler_client::SendMessage::default()
    };
    client.send_message(say(scenario::of(vec![call()]))).await.unwrap();
    wait::until("a second call", wait::PATIENCE, || model.calls() == 2);
    assert!(model.heads.lock().unwrap()[1].contains(&shown));

    // An agent that is started anew by the new daemon has none: the key is nowhere.
    for process in home.session_processes(next) {
        process.kill();
    }
    assert_eq!(home.ended(&next.to_string()).await.outcome, Some(Outcome::Crashed));
    let last = loop {
        let chain = client.chain(&session.to_string()).await.unwrap();
        if chain.len() > 2 {
            break home.ended(&chain[2].id.to_string()).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let obituary = last.obituary.unwrap();
    assert_eq!(last.outcome, Some(Outcome::FailedStart));
    let sentence = &obituary.sentence;
    assert!(sentence.contains("PROVIDER_AUTH") && !sentence.contains("ostler config"), "{sentence}");
    assert!(obituary.cures.iter().any(|cure| cure.command.starts_with("ostler config")), "{obituary:?}");
    assert_eq!(last.restart, None, "the next one would have none either");
    assert_eq!(files_with_the_key(home.path()), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn a_command_that_says_a_key_is_run_once_for_each_start() {
    let model = Model::start();
    let Some(home) = home(&model).await else { return };
    let runs = home.path().join("runs");
    let url = format!("http://127.0.0.1:{}/base", model.port);
    home.configure(&format!(
        "[providers.script]\nbase_url = \"{url}\"\napi_key_command = \"echo run >> {}; echo {KEY}\"\n",
        runs.display()
    ));
    let count = || fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let started = home.run(&["run", "-d", "-q", "-p", "script", &scenario::of(vec![call()])]);
    assert!(started.status.success(), "{started:?}");
    let session = String::from_utf8(started.stdout).unwrap().trim().to_owned();
    wait::until("a call", wait::PATIENCE, || model.calls() == 1);
    let shown = format!("authorization: Bearer {KEY}\r\n");
    assert!(model.heads.lock().unwrap()[0].contains(&shown));
    assert_eq!(count(), 1);
    home.client().await.restart_session(&session).await.unwrap();
    let next = home.client().await.chain(&session).await.unwrap().pop().unwrap().id;
    home.reaches(&next.to_string(), "it to be live", |view| view.phase == Phase::Live).await;
    assert_eq!(count(), 2, "another start, another look");
}

#[tokio::test]
async fn each_account_s_sessions_are_paid_for_by_its_own_key_at_its_own_server() {
    let (usual, elsewhere) = (Model::start(), Model::start());
    let Some(home) = home(&usual).await else { return };
    let file = |name: &str| {
        let path = home.path().join(name);
        fs::write(&path, format!("sk-of-{name}\n")).unwrap();
        path.display().to_string()
    };
    let set = |key: &str, value: &str| {
        let set = home.run(&["config", "set", &format!("providers.script.profiles.{key}"), value]);
        assert!(set.status.success(), "{set:?}");
    };
    set("work.api_key_file", &file("work"));
    set("far.base_url", &format!("http://127.0.0.1:{}/base", elsewhere.port));
    set("far.api_key_file", &file("far"));
    let prompt = scenario::of(vec![call()]);
    let run = |more: &[&str]| {
        let args: Vec<&str> =
            ["run", "-o", "json"].iter().chain(more).copied().chain([prompt.as_str()]).collect();
        home.run(&args)
    };
    let by_script = |profile: &str| {
        let run = run(&["-p", "script", "--auth-profile", profile]);
        assert!(run.status.success(), "{run:?}");
        let told: Value = serde_json::from_slice(&run.stdout).unwrap();
        told["session"].as_str().unwrap().to_owned()
    };
    let id = by_script("work");
    by_script("far");
    assert_eq!((usual.keys(), elsewhere.keys()), (vec!["sk-of-work".into()], vec!["sk-of-far".into()]));
    assert!(run(&["-p", "script"]).status.success());
    assert_eq!(usual.keys()[1], KEY, "who names none has the usual one");
    let client = home.client().await;
    assert_eq!(client.session(&id).await.unwrap().auth_profile.unwrap().as_str(), "work");

    // An agent's sessions, and one conversation's among them.
    let add = ["agent", "add", "-C", "shop", "api", "--provider", "script", "--auth-profile", "work"];
    assert!(home.run(&add).status.success());
    assert!(run(&["-C", "shop", "--agent", "api"]).status.success());
    assert_eq!(usual.keys()[2], "sk-of-work");
    let talk =
        client.conversations(&Default::default(), ostler_domain::query::Page::of(50, None)).await.unwrap();
    let talk = talk.rows.into_iter().find(|talk| talk.agent.is_some()).unwrap();
    let far = home.run(&["conversation", "set", &talk.id.to_string(), "auth_profile=far"]);
    assert!(far.status.success(), "{far:?}");
    assert!(run(&["-C", "shop", "--agent", "api"]).status.success());
    assert_eq!(elsewhere.calls(), 2);

    let unknown = run(&["-p", "script", "--auth-profile", "nobody"]);
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(!unknown.status.success() && said.contains("there are far, work"), "{said}");
    let shown = String::from_utf8(home.run(&["provider", "show", "script"]).stdout).unwrap();
    assert!(shown.contains("work") && shown.contains("far") && !shown.contains("sk-of"), "{shown}");
}
