//! Somebody who is not looking is told: by a hook, by a webhook, and across the daemon's death.

use std::{
    collections::VecDeque,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use ostler_client::{AnswerApproval, Client, CreateSession};
use ostler_domain::{
    budget::WhenUsedUp,
    session::{Approve, Attention, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::{OSTLER, money::waits_for};

/// An address that is told, and what it heard.
pub(crate) struct Ear {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    /// What it answers next; 204 when nothing is left.
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) head: String,
    /// JSON, or a text.
    pub(crate) body: Value,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }
}

/// An address where nobody listens yet.
fn silent() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Ear {
    pub(crate) fn open(address: SocketAddr, statuses: &[u16]) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let ear = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::default(),
            statuses: Arc::new(Mutex::new(statuses.iter().copied().collect())),
        };
        let (heard, statuses) = (ear.heard.clone(), ear.statuses.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(said) = read(&stream) {
                    heard.lock().unwrap().push(said);
                    let status = statuses.lock().unwrap().pop_front().unwrap_or(204);
                    let _ = write!(&stream, "HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
                }
            }
        });
        ear
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn wait_for(&self, count: usize) -> Vec<Heard> {
        wait::until("the webhook to be told", wait::PATIENCE, || self.heard().len() >= count);
        self.heard()
    }
}

fn read(mut stream: &TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
        if body.len() >= length {
            return Some(Heard {
                head: head.to_owned(),
                body: serde_json::from_str(body).unwrap_or_else(|_| json!(body)),
            });
        }
    }
}

/// A daemon that tells this address; `HERE` in further settings is the home.
async fn told(address: SocketAddr, more: &str) -> TestHome {
    let home = TestHome::new(OSTLER);
    let more = more.replace("HERE", &home.path().display().to_string());
    let secret = home.path().join("secret");
    fs::write(&secret, "rosebud\n").unwrap();
    let webhook =
        format!("[webhook]\nurl = \"http://{address}/tell\"\nsecret_file = \"{}\"\n{more}", secret.display());
    home.configure(&webhook);
    home.begin().await;
    home
}

async fn begin(client: &Client, steps: Vec<Value>) -> View {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = Approve::Policy;
    wanted.name = Some("night-watch".parse().unwrap());
    wanted.initial_message = Some(scenario::of(steps));
    client.create_session(wanted).await.unwrap()
}

#[tokio::test]
async fn an_approval_at_night_reaches_somebody() {
    let ear = Ear::open("127.0.0.1:0".parse().unwrap(), &[500]);
    let hook = "[[hooks]]\non = [\"approval\", \"failed\"]\ndetails = true\n\
                run = [\"sh\", \"-c\", \"cat >> HERE/page; echo >> HERE/page; echo rang twice\"]\n";
    let home = told(ear.address, hook).await;
    let page = home.path().join("page");
    let client = home.client().await;
    let ask = |input: &str| json!({"ask": {"tool": "run", "input": input}});
    // The first is answered by a rule: nobody needs to hear of it.
    let session = begin(&client, vec![ask("git status"), ask("make deploy"), scenario::say("went on")]).await;
    let asks = |view: &View| view.attention == Some(Attention::WaitingApproval);
    let open = home.reaches(&session.id.to_string(), "the question", asks).await.approvals_open[0];

    let heard = ear.wait_for(2);
    assert_eq!(heard[0].body, heard[1].body, "said again as it was");
    let notice = &heard[1].body;
    assert_eq!(
        (&notice["on"], &notice["agent"], &notice["tool"]),
        (&json!("approval"), &json!("night-watch"), &json!("run"))
    );
    assert_eq!((&notice["approval"], &notice["campaign"]), (&json!(open.to_string()), &json!("shop")));
    assert!(!notice.to_string().contains("deploy"), "{notice}");
    assert_eq!(heard[1].header("ostler-notice"), notice["id"].as_str().unwrap());
    let signature = heard[1].header("ostler-signature");
    let (time, code) = signature.split_once(",v1=").unwrap();
    assert!(time.starts_with("t=") && code.len() == 64, "{signature}");

    wait::until("the hook to be told", wait::PATIENCE, || {
        fs::read_to_string(&page).is_ok_and(|text| text.ends_with("}\n"))
    });
    let written: Value = serde_json::from_str(&fs::read_to_string(&page).unwrap()).unwrap();
    assert_eq!(written["id"], notice["id"]);
    assert_eq!(written["details"]["text"], "run: make deploy");
    assert_eq!(written["details"]["why"], "no rule allows make deploy");
    wait::until("what it printed to be in the daemon's log", wait::PATIENCE, || {
        fs::read_to_string(home.home.state().join("daemon.log")).is_ok_and(|log| log.contains("rang twice"))
    });
    let allow =
        AnswerApproval { approval: open.to_string(), allow: true, always: false, message: String::new() };
    client.answer_approval(allow).await.unwrap();
}

#[tokio::test]
async fn a_daemon_that_dies_before_it_could_tell_tells_later_and_once() {
    let address = silent();
    let home = told(address, "on = \"failed\"\n").await;
    let client = home.client().await;
    let fails = || vec![scenario::say("now"), json!({"exit": 3})];
    let first = begin(&client, fails()).await;
    home.ended(&first.id.to_string()).await;
    home.kill_daemon();
    let ear = Ear::open(address, &[]);
    let client = home.start().await;
    let heard = ear.wait_for(1);
    assert_eq!(
        (&heard[0].body["on"], &heard[0].body["session"]),
        (&json!("failed"), &json!(first.id.to_string()))
    );
    assert!(heard[0].body["text"].as_str().unwrap().starts_with("night-watch failed (crashed)"));
    // What was heard is not said again by the next daemon: the next notice is the second.
    wait::until("the place to be remembered", wait::PATIENCE, || {
        fs::read_to_string(home.home.state().join("daemon.log"))
            .is_ok_and(|log| log.contains("the webhook was told"))
    });
    drop(client);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    home.kill_daemon();
    let client = home.start().await;
    let second = begin(&client, fails()).await;
    home.ended(&second.id.to_string()).await;
    let heard = ear.wait_for(2);
    let sessions: Vec<_> = heard.iter().map(|heard| heard.body["session"].clone()).collect();
    assert_eq!(sessions, [json!(first.id.to_string()), json!(second.id.to_string())]);
}

#[tokio::test]
async fn a_detached_session_whose_turn_failed_is_told_of_and_needs_somebody_also_after_a_restart() {
    let ear = Ear::open("127.0.0.1:0".parse().unwrap(), &[]);
    let home = told(ear.address, "on = \"failed\"\ndetails = true\n").await;
    let wrong = "{\"steps\":[\n {\"sya\":\"b\"}\n]}";
    let run = home.run(&["run", "-d", "-q", "-p", "script", "--name", "night-watch", wrong]);
    assert!(run.status.success(), "{run:?}");
    let id = String::from_utf8(run.stdout).unwrap().trim().to_owned();
    let notice = ear.wait_for(1)[0].body.clone();
    assert!(
        notice["text"].as_str().unwrap().starts_with("night-watch's turn failed: ostler show "),
        "{notice}"
    );
    assert!(notice["details"]["text"].as_str().unwrap().contains("mistake in line 2"), "{notice}");

    home.kill_daemon();
    let client = home.start().await;
    home.reaches(&id, "the failure", |view| view.attention == Some(Attention::TurnFailed)).await;
    let listed = String::from_utf8(home.run(&["ls", "--needs-me"]).stdout).unwrap();
    let row = listed.lines().find(|line| line.contains("night-watch")).unwrap_or_else(|| panic!("{listed}"));
    assert!(row.starts_with('!') && row.contains("turn_failed"), "{listed}");
    let shown = String::from_utf8(home.run(&["show", &id]).stdout).unwrap();
    assert!(shown.contains("mistake in line 2") && shown.contains("ostler send "), "{shown}");

    // Whoever answers it has seen it.
    client
        .send_message(ostler_client::SendMessage {
            who: id.clone(),
            text: scenario::of(vec![scenario::say("better")]),
            ..ostler_client::SendMessage::default()
        })
        .await
        .unwrap();
    home.reaches(&id, "a good turn", |view| view.attention == Some(Attention::Idle)).await;
    // A daemon that was killed before it had noted that it told somebody tells it again, and nothing else.
    assert!(ear.heard().iter().all(|told| told.body["text"] == notice["text"]), "{:?}", ear.heard());
}

#[tokio::test]
async fn a_campaign_s_budget_is_told_of_once_however_many_sessions_run_into_it() {
    let ear = Ear::open("127.0.0.1:0".parse().unwrap(), &[]);
    let home = told(ear.address, "").await;
    let client = home.client().await;
    assert!(home.run(&["campaign", "set", "shop", "budget=1000"]).status.success());
    let start = async |name: &str, steps: Vec<Value>| {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.name = Some(name.parse().unwrap());
        wanted.when_used_up = WhenUsedUp::Hold;
        wanted.initial_message = Some(scenario::of(steps));
        client.create_session(wanted).await.unwrap()
    };
    for name in ["one", "two", "three"] {
        start(name, vec![waits_for("go"), json!({"usage": {"input": 600}}), waits_for("never")]).await;
    }
    std::fs::write(home.campaign_dir().join("go"), "").unwrap();
    for name in ["one", "two", "three"] {
        home.reaches(name, "the hold", |view| view.attention == Some(Attention::BudgetHold)).await;
    }
    // What is told next was due after all of these, and of a session that nothing was told of within this minute.
    assert!(home.run(&["campaign", "set", "shop", "budget=9000"]).status.success());
    let fails = start("last", vec![json!({"exit": 3})]).await;
    let is_of_last =
        |heard: &Heard| heard.body["session"] == fails.id.to_string() && heard.body["on"] == "failed";
    wait::until("the failure to be told", wait::PATIENCE, || ear.heard().iter().any(is_of_last));
    let budgets: Vec<Heard> = ear.heard().into_iter().filter(|heard| heard.body["on"] == "budget").collect();
    assert_eq!(budgets.len(), 1, "{budgets:?}");
}
