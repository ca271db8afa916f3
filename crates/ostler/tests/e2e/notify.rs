//! `ostler notify`: a phone, a desktop and a terminal are told, by rules of when, and a link answers one approval.

use std::{fs, os::unix::fs::PermissionsExt};

use ostler_client::{AnswerApproval, Client, CreateSession};
use ostler_domain::session::{Approve, Attention, View};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::{
    OSTLER,
    exec::OnTerminal,
    http::{Answer, ask},
    missions::{agent, json_of, ok, plan, refused, said},
    notices::Ear,
};

fn ear() -> Ear {
    Ear::open("127.0.0.1:0".parse().unwrap(), &[])
}

fn leave(input: &str) -> Value {
    json!({"ask": {"tool": "run", "input": input}})
}

async fn begin(client: &Client, name: &str, steps: Vec<Value>) -> View {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.approve = Approve::Policy;
    wanted.name = Some(name.parse().unwrap());
    wanted.initial_message = Some(scenario::of(steps));
    client.create_session(wanted).await.unwrap()
}

async fn asks(home: &TestHome, session: &View) -> String {
    let asks = |view: &View| view.attention == Some(Attention::WaitingApproval);
    let view = home.reaches(&session.id.to_string(), "a question", asks).await;
    view.approvals_open[0].to_string()
}

async fn allow(client: &Client, approval: String) {
    let allow = AnswerApproval { approval, allow: true, always: false, message: String::new() };
    client.answer_approval(allow).await.unwrap();
}

/// A browser that followed the link of a notice.
struct Card {
    host: String,
    cookie: String,
    csrf: String,
}

impl Card {
    fn follow(link: &str) -> Result<Card, Answer> {
        let (host, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let answer = ask(host, &format!("GET /{path}"), &[("host", host)], "");
        if answer.status != 200 {
            return Err(answer);
        }
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let mut card = Card { host: host.to_owned(), cookie, csrf: String::new() };
        let (_, rest) = answer.body.split_once("content=\"0;url=").unwrap();
        let page = card.get(rest.split('"').next().unwrap());
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.body.contains("make deploy") && page.body.contains("night-watch"), "{}", page.body);
        let (_, after) = page.body.split_once("name=\"csrf\" content=\"").unwrap();
        card.csrf = after.split('"').next().unwrap().to_owned();
        Ok(card)
    }

    fn get(&self, path: &str) -> Answer {
        ask(&self.host, &format!("GET {path}"), &[("host", &self.host), ("cookie", &self.cookie)], "")
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let origin = format!("http://{}", self.host);
        let headers = [
            ("host", self.host.as_str()),
            ("cookie", &self.cookie),
            ("origin", &origin),
            ("content-type", "application/json"),
            ("x-ostler-csrf", &self.csrf),
        ];
        ask(&self.host, &format!("POST {path}"), &headers, body)
    }
}

#[tokio::test]
async fn a_link_on_the_phone_answers_that_approval_once_and_nothing_else() {
    let phone = ear();
    let home = TestHome::new(OSTLER);
    home.configure("[http]\nlisten = \"127.0.0.1:0\"\n");
    home.begin().await;
    let client = home.client().await;
    // Whoever opened it finds the next daemon's at the same port.
    client.open_http("").await.unwrap();
    // Added while the daemon runs.
    let url = format!("http://{}/my-topic", phone.address);
    let token = home.path().join("token");
    fs::write(&token, "tk_1\n").unwrap();
    ok(
        &home,
        &[
            "notify",
            "add",
            "ntfy",
            &url,
            "--name",
            "phone",
            "--link",
            "--token-file",
            token.to_str().unwrap(),
        ],
    );
    let session = begin(&client, "night-watch", vec![leave("make deploy"), scenario::say("went on")]).await;
    let approval = asks(&home, &session).await;
    let heard = phone.wait_for(1)[0].clone();
    assert!(heard.head.starts_with("POST /my-topic "), "{}", heard.head);
    assert_eq!(heard.header("Title"), "night-watch asks for leave");
    assert_eq!((heard.header("Priority"), heard.header("authorization")), ("high", "Bearer tk_1"));
    let text = heard.body.as_str().unwrap();
    assert!(text.contains("night-watch asks to use run") && !text.contains("deploy"), "{text}");

    // The link outlives the daemon that made it.
    let link = heard.header("Click").to_owned();
    assert!(heard.header("Actions").contains(&link));
    home.kill_daemon();
    let client = home.start().await;
    let host = link.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    wait::until("the door to stand open again", wait::PATIENCE, || {
        std::net::TcpStream::connect(&host).is_ok()
    });
    let card = Card::follow(&link).unwrap();
    assert_eq!(Card::follow(&link).err().map(|answer| answer.status), Some(403), "it works once");

    // Whoever lists who may come in hears how little that is.
    let tokens = json_of(&home, &["api", "token", "ls"]);
    let browser = tokens["tokens"].as_array().unwrap().iter().find(|row| row["name"] == "phone").unwrap();
    assert_eq!(browser["approval"], json!(approval), "{tokens}");
    let listed = home.run(&["api", "token", "ls"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = listed.lines().find(|line| line.contains("phone")).unwrap();
    let short = &approval[approval.len() - 5..];
    assert!(line.contains(&format!("answer {}", short.to_lowercase())), "{listed}");

    let other = begin(&client, "other", vec![leave("make other")]).await;
    let others = asks(&home, &other).await;
    for path in ["/", "/sessions", "/v1/sessions", "/v1/events", "/v1/approvals", "/live", "/metrics"] {
        assert_eq!(card.get(path).status, 403, "{path}");
    }
    assert_eq!(card.get(&format!("/approvals/{others}")).status, 403);
    let elsewhere = card.get("/").body;
    assert!(elsewhere.contains("this link opened one approval, and nothing else.</p>"), "{elsewhere}");
    let yes = json!({"allow": true}).to_string();
    assert_eq!(card.post(&format!("/v1/approvals/{others}/answer"), &yes).status, 403);
    assert_eq!(card.post("/v1/halt", "{}").status, 403);
    let always = json!({"allow": true, "always": true}).to_string();
    assert_eq!(card.post(&format!("/v1/approvals/{approval}/answer"), &always).status, 403, "no rule either");
    let answered = card.post(&format!("/v1/approvals/{approval}/answer"), &yes);
    assert_eq!(answered.status, 200, "{answered:?}");
    let rest = |view: &View| view.approvals_open.is_empty();
    home.reaches(&session.id.to_string(), "the answer", rest).await;
    let row = client.approval(&approval).await.unwrap();
    assert!(row.answer.as_ref().unwrap().by.0.ends_with("(phone)"), "{row:?}");
    let page = card.get(&format!("/approvals/{approval}"));
    assert!(page.body.contains("(phone), ") && !page.body.contains("data-allow"), "{}", page.body);
}

#[tokio::test]
async fn an_approval_overtakes_what_must_last_and_a_session_is_told_of_once_a_minute() {
    let phone = ear();
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    ok(&home, &["notify", "add", "ntfy", &format!("http://{}/t", phone.address)]);
    let failing = begin(&client, "failing", vec![json!({"exit": 3})]).await;
    home.ended(&failing.id.to_string()).await;
    let busy = begin(&client, "busy", vec![leave("make one"), leave("make two"), scenario::say("on")]).await;
    let first = asks(&home, &busy).await;
    let title = |heard: &crate::notices::Heard| heard.header("Title").to_owned();
    assert_eq!(title(&phone.wait_for(1)[0]), "busy asks for leave", "the failure has not lasted yet");
    allow(&client, first.clone()).await;
    let again = |view: &View| view.approvals_open.first().is_some_and(|open| open.to_string() != first);
    home.reaches(&busy.id.to_string(), "the second question", again).await;
    let last = begin(&client, "last", vec![leave("make three")]).await;
    asks(&home, &last).await;
    let heard = phone.wait_for(3);
    let mut titles: Vec<String> = heard.iter().skip(1).map(title).collect();
    titles.sort();
    assert_eq!(titles, ["failing failed", "last asks for leave"], "busy was told of a moment ago");
}

#[tokio::test]
async fn a_mission_that_is_over_is_told() {
    let phone = ear();
    let home = TestHome::started(OSTLER).await;
    ok(&home, &["notify", "add", "ntfy", &format!("http://{}/t", phone.address), "--on", "mission_done"]);
    plan(
        &home,
        "plan.toml",
        "objective = \"Release it\"\nname = \"release\"\n",
        &[agent("one", "", said("one"))],
    );
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let heard = phone.wait_for(1);
    let text = heard[0].body.as_str().unwrap();
    assert!(text.starts_with("mission release is over (completed): ostler mission report "), "{text}");
}

#[tokio::test]
async fn the_desktop_is_told_unless_somebody_looks_there() {
    let phone = ear();
    let home = TestHome::new(OSTLER);
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let shown = home.path().join("shown");
    let program = bin.join("notify-send");
    fs::write(&program, format!("#!/bin/sh\nprintf '%s|' \"$@\" >> {0}\necho >> {0}\n", shown.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let started = home.command(&["daemon", "start"]).env("PATH", path).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    let client = home.client().await;
    ok(&home, &["notify", "add", "desktop"]);
    ok(&home, &["notify", "add", "ntfy", &format!("http://{}/t", phone.address)]);
    let shown = || fs::read_to_string(&shown).unwrap_or_default();
    ok(&home, &["notify", "test", "desktop"]);
    assert!(shown().contains("this is a test of desktop"), "{}", shown());

    // Whoever looks touches the file now and then: from the future, so that this does not depend on how fast we are.
    let looks = fs::File::create(home.home.looked_at()).unwrap();
    looks.set_modified(std::time::SystemTime::now()).unwrap();
    let seen = begin(&client, "seen", vec![leave("make one")]).await;
    asks(&home, &seen).await;
    phone.wait_for(1);
    fs::remove_file(home.home.looked_at()).unwrap();
    let unseen = begin(&client, "unseen", vec![leave("make two")]).await;
    asks(&home, &unseen).await;
    wait::until("the desktop to be told", wait::PATIENCE, || shown().contains("unseen asks for leave"));
    assert!(!shown().contains("|seen asks"), "{}", shown());
    assert!(shown().contains("--urgency=critical"), "{}", shown());
}

#[tokio::test]
async fn channels_are_listed_tried_and_taken_back_and_comments_stay() {
    let phone = ear();
    let home = TestHome::new(OSTLER);
    let before = "# mine\n[[hooks]]\n# ring\non = \"failed\"\nrun = [\"true\"]\n";
    home.configure(before);
    home.begin().await;
    let url = format!("http://{}/t", phone.address);
    ok(&home, &["notify", "add", "ntfy", &url, "--name", "phone", "--on", "approval,failed", "--details"]);
    ok(&home, &["notify", "add", "terminal"]);
    let listed = json_of(&home, &["notify", "ls"]);
    let rows = listed["channels"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hook-1", "phone", "terminal"]);
    assert_eq!((&rows[1]["on"], &rows[1]["details"]), (&json!(["approval", "failed"]), &json!(true)));
    let (code, words) = refused(&home, &["notify", "add", "ntfy", &url, "--name", "phone"]);
    assert!(code != Some(0) && words.contains("phone is told already"), "{words}");
    let (code, words) = refused(&home, &["notify", "add", "ntfy", "https://ntfy.example/"]);
    assert!(code != Some(0) && words.contains("topic is missing"), "{words}");

    let (code, words) = refused(&home, &["notify", "test", "terminal"]);
    assert!(code != Some(0) && words.contains("there is no terminal here"), "{words}");
    ok(&home, &["notify", "test", "phone"]);
    assert!(phone.heard()[0].body.as_str().unwrap().contains("this is a test of phone"));
    ok(&home, &["notify", "add", "hook", "--name", "gone", "--", "/no/such/program"]);
    let (code, words) = refused(&home, &["notify", "test", "gone"]);
    assert!(code != Some(0) && words.contains("cannot be started"), "{words}");
    let (_, words) = refused(&home, &["notify", "test", "phnoe"]);
    assert!(words.contains("ostler notify test phone"), "{words}");

    for name in ["gone", "terminal", "phone"] {
        ok(&home, &["notify", "rm", name]);
    }
    let text = fs::read_to_string(home.home.config_toml()).unwrap();
    assert!(text.contains("# mine") && text.contains("# ring") && !text.contains("[[notify]]"), "{text}");
}

#[test]
fn a_terminal_that_nobody_looks_at_rings() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    ok(&home, &["notify", "add", "terminal", "--on", "approval"]);
    let started = |name: &str| {
        let said = scenario::of(vec![scenario::say("ready")]);
        ok(&home, &["run", "-p", "script", "-d", "--keep", "-q", "--name", name, &said])
    };
    let asks = |who: &str| ok(&home, &["send", who, &scenario::of(vec![leave("make deploy")])]);
    let on_terminal = |args: &[&str]| {
        let mut command = home.command(args);
        command.env_remove("TMUX");
        OnTerminal::begin(command)
    };
    started("night-watch");
    let mut attached = on_terminal(&["attach", "night-watch"]);
    attached.until_shown("a message, Enter sends it");
    asks("night-watch");
    attached.until_shown("\u{1b}]9;night-watch asks to use run: ostler approval show ");
    assert!(!attached.shown.contains("\u{1b}]9;night-watch asks to use run: make"), "{:?}", attached.shown);
    attached.child.kill().unwrap();
    attached.child.wait().unwrap();

    started("day-watch");
    let mut top = on_terminal(&["top"]);
    top.until_shown("day-watch");
    asks("day-watch");
    top.until_shown("\u{1b}]9;day-watch asks to use run: ostler approval show ");
    top.child.kill().unwrap();
    top.child.wait().unwrap();

    // A channel that is added while it runs rings in a moment, for whoever asks from then on.
    ok(&home, &["notify", "rm", "terminal"]);
    let mut top = on_terminal(&["top"]);
    top.until_shown("day-watch");
    ok(&home, &["notify", "add", "terminal", "--on", "approval"]);
    let mut watches = 0;
    wait::until("the new channel to ring", wait::PATIENCE, || {
        watches += 1;
        let name = format!("dawn-{watches}");
        started(&name);
        asks(&name);
        top.has_shown("\u{1b}]9;dawn-")
    });
    // What it leaves for the daemon, that somebody looks, is nobody else's to read. Its pictures are taken off it meanwhile.
    top.type_in("j");
    wait::until("it to say that somebody looks", wait::PATIENCE, || {
        top.has_shown("never") || home.home.looked_at().exists()
    });
    let looked = fs::metadata(home.home.looked_at()).unwrap().permissions().mode() & 0o777;
    assert_eq!(looked, 0o600);
    top.child.kill().unwrap();
    top.child.wait().unwrap();
}

#[tokio::test]
async fn a_daemon_that_comes_back_by_itself_has_what_the_last_one_was_told_with() {
    let ear = ear();
    let home = TestHome::new(OSTLER);
    home.begin().await;
    let client = home.client().await;
    // Its keeper was started by a daemon that knew of no secret.
    begin(&client, "night-watch", vec![json!({"hang": true})]).await;
    let restarted = home.command(&["daemon", "restart"]).env("NIGHT_SECRET", "s3cret").output().unwrap();
    assert!(restarted.status.success(), "{restarted:?}");
    let url = format!("http://{}/hook", ear.address);
    ok(&home, &["notify", "add", "webhook", &url, "--secret-env", "NIGHT_SECRET"]);
    ok(&home, &["notify", "test", "webhook"]);
    let adopted = |view: &View| view.attention == Some(Attention::Working);
    home.reaches("night-watch", "a daemon that knows it again", adopted).await;
    let before = home.daemon().map(|daemon| daemon.pid);
    home.kill_daemon();
    wait::until("the keeper to start another", wait::PATIENCE, || {
        home.daemon().is_some_and(|daemon| Some(daemon.pid) != before)
    });
    ok(&home, &["notify", "test", "webhook"]);
    assert_eq!(ear.wait_for(2).len(), 2);
    let log = fs::read_to_string(home.home.state().join("daemon.log")).unwrap_or_default();
    assert!(!log.contains("s3cret"));
}

#[tokio::test]
async fn who_cannot_be_told_is_said_not_to_be() {
    let ear = ear();
    let home = TestHome::new(OSTLER);
    home.begin().await;
    let url = format!("http://{}/hook", ear.address);
    ok(&home, &["notify", "add", "webhook", &url, "--secret-env", "NIGHT_SECRET"]);
    let listed = || {
        let listed = home.run(&["notify", "ls"]);
        String::from_utf8(listed.stderr).unwrap()
    };
    let why = "webhook is not told: NIGHT_SECRET is not set in the environment of the daemon";
    assert!(listed().contains(why), "{}", listed());
    let doctor = String::from_utf8(home.run(&["doctor", "--quick"]).stdout).unwrap();
    assert!(doctor.contains("NIGHT_SECRET is not set"), "{doctor}");
    assert_eq!(json_of(&home, &["notify", "ls"])["channels"][0]["untold"], why[21..]);
    let restarted = home.command(&["daemon", "restart"]).env("NIGHT_SECRET", "s3cret").output().unwrap();
    assert!(restarted.status.success(), "{restarted:?}");
    assert!(!listed().contains("is not told"), "{}", listed());
}
