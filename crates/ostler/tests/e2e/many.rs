//! More sessions than there is room for: all are accepted, and worked off in order.

use std::{fs, process::Stdio, time::Duration};

use ostler_client::{Client, CreateSession, ListEvents, Place, Received, query::EventFilter};
use ostler_domain::{
    Kind,
    admission::Priority,
    limits::GIVES_WAY_AFTER,
    query::{Page, Scope, SessionFilter},
    session::{Attention, Outcome, Status, StopRule, View},
};
use ostler_testkit::{TestHome, scenario};
use serde_json::json;

use crate::{OSTLER, exec::OnTerminal};

async fn home_with(config: &str) -> TestHome {
    let home = TestHome::new(OSTLER);
    fs::create_dir_all(home.home.config()).unwrap();
    fs::write(home.home.config_toml(), config).unwrap();
    home.begin().await;
    home
}

/// A session that works for a long time.
async fn busy(client: &Client, name: &str, priority: Priority) -> View {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.name = Some(name.parse().unwrap());
    wanted.priority = priority;
    wanted.initial_message = Some(scenario::of(vec![json!({ "sleep_ms": 600_000 })]));
    client.create_session(wanted).await.unwrap()
}

async fn waits(home: &TestHome, name: &str, says: &str) {
    home.reaches(name, says, |view| view.status == Status::Created && view.evidence == says).await;
}

async fn works(home: &TestHome, name: &str) {
    home.reaches(name, "its work", |view| view.status == Status::Working).await;
}

#[tokio::test]
async fn who_is_beyond_the_limit_waits_in_a_line_that_outlives_the_daemon() {
    let home = home_with("[limits]\nsessions = 2\n").await;
    let client = home.client().await;
    for (name, priority) in [
        ("one", Priority::Normal),
        ("two", Priority::Normal),
        ("three", Priority::Normal),
        ("four", Priority::Low),
        ("five", Priority::High),
    ] {
        busy(&client, name, priority).await;
    }
    works(&home, "one").await;
    works(&home, "two").await;
    let line = async || {
        waits(&home, "five", "waits for a slot (2 of 2; 1st in line)").await;
        waits(&home, "three", "waits for a slot (2 of 2; 2nd in line)").await;
        waits(&home, "four", "waits for a slot (2 of 2; 3rd in line)").await;
    };
    line().await;
    let shown = String::from_utf8(home.run(&["ls"]).stdout).unwrap();
    assert!(shown.contains("CREATED") && shown.contains("waits for a slot (2 of 2; 1st in line)"), "{shown}");
    let shown = String::from_utf8(home.run(&["show", "four"]).stdout).unwrap();
    assert!(shown.contains("waits for a slot (2 of 2; 3rd in line)"), "{shown}");
    // Who waits to start has no keeper.
    let told = |args: &[&str]| String::from_utf8(home.run(args).stdout).unwrap();
    let keepers = || {
        let (doctor, metrics) = (told(&["doctor", "--quick"]), told(&["metrics"]));
        assert!(doctor.contains("2 of 2 answer"), "{doctor}");
        assert!(metrics.contains("\nostler_keepers 2\n"), "{metrics}");
    };
    keepers();
    home.kill_daemon();
    home.start().await;
    line().await;
    works(&home, "one").await;
    keepers();
    let log = told(&["daemon", "logs"]);
    let found: Vec<&str> = log.lines().filter(|line| line.contains("sessions found again")).collect();
    assert!(found.last().is_some_and(|line| line.contains("count=2")), "{found:?}");
    // Only those that have a process go on without it.
    let stopped = told(&["daemon", "stop"]);
    assert!(stopped.contains("; 2 sessions go on without it"), "{stopped}");
    let client = home.start().await;
    line().await;
    works(&home, "one").await;
    // A slot that is freed is the next one's.
    client.stop_session("one", true).await.unwrap();
    works(&home, "five").await;
    waits(&home, "three", "waits for a slot (2 of 2; 1st in line)").await;
    // Who is paused before it starts takes nobody's place, and has its own again later.
    client.pause_session("three").await.unwrap();
    waits(&home, "four", "waits for a slot (2 of 2; 1st in line)").await;
    client
        .resume_session(ostler_client::ResumeSession { who: "three".to_owned(), ..Default::default() })
        .await
        .unwrap();
    waits(&home, "four", "waits for a slot (2 of 2; 2nd in line)").await;
    // Paused and idle ones keep what they have.
    client.pause_session("five").await.unwrap();
    waits(&home, "three", "waits for a slot (2 of 2; 1st in line)").await;
    // Whoever is ended in the line leaves it; and more room is taken as soon as it is given.
    client.stop_session("three", false).await.unwrap();
    waits(&home, "four", "waits for a slot (2 of 2; 1st in line)").await;
    fs::write(home.home.config_toml(), "[limits]\nsessions = 3\n").unwrap();
    works(&home, "four").await;
    let status = client.status().await.unwrap();
    assert_eq!((status.waiting_sessions, status.live_sessions), (0, 3));
}

#[tokio::test]
async fn campaigns_and_providers_have_slots_of_their_own() {
    let home = home_with("[providers.script]\nsessions = 2\n").await;
    let client = home.client().await;
    let set = home.run(&["campaign", "set", "shop", "limits.sessions=1"]);
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    busy(&client, "one", Priority::Normal).await;
    busy(&client, "two", Priority::Normal).await;
    works(&home, "one").await;
    waits(&home, "two", "waits for a slot in shop (1 of 1; 1st in line)").await;
    assert!(home.run(&["campaign", "set", "shop", "limits.sessions="]).status.success());
    works(&home, "two").await;
    busy(&client, "three", Priority::Normal).await;
    waits(&home, "three", "waits for a slot of script (2 of 2; 1st in line)").await;
}

#[tokio::test]
async fn short_of_memory_or_disk_nothing_new_starts_and_the_rest_goes_on() {
    let home = home_with("[limits]\nfree_memory = \"1024TiB\"\n").await;
    let client = home.client().await;
    busy(&client, "one", Priority::Normal).await;
    busy(&client, "two", Priority::Normal).await;
    works(&home, "one").await;
    let wait = |what: &'static str| {
        move |view: &View| view.status == Status::Created && view.evidence.starts_with(what)
    };
    home.reaches("two", "memory to be short", wait("waits for memory (")).await;
    fs::write(home.home.config_toml(), "[limits]\nfree_disk = \"1024TiB\"\n").unwrap();
    home.reaches("two", "the disk to be short", wait("waits for disk space (")).await;
    works(&home, "one").await;
    let footer = String::from_utf8(home.run(&["ls"]).stderr).unwrap();
    assert!(footer.contains("nothing new starts (ostler du)"), "{footer}");
    let doctor = String::from_utf8(home.run(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("nothing new starts") && doctor.contains("ostler du"), "{doctor}");
    fs::write(home.home.config_toml(), "").unwrap();
    works(&home, "two").await;
}

#[tokio::test]
async fn an_idle_session_ends_done_and_the_next_message_wakes_it() {
    let home = home_with("idle_stop = \"1s\"\n").await;
    let client = home.client().await;
    let created = home.session(&client, "hello").await;
    let view = home.ended(&created.id.to_string()).await;
    let rule = view.obituary.as_ref().and_then(|obituary| obituary.rule);
    assert_eq!((view.outcome, rule), (Some(Outcome::Done), Some(StopRule::Idle)));
    let sent = client.send_message(ostler_client::SendMessage {
        who: created.name.to_string(),
        text: "again".to_owned(),
        ..Default::default()
    });
    let sent = sent.await.unwrap().sent().unwrap();
    assert!(sent.woke);
    assert_eq!(sent.session.continues, Some(created.id));
    home.ended(&sent.session.id.to_string()).await;
    // A campaign's word counts before the machine's.
    assert!(home.run(&["campaign", "set", "shop", "idle_stop=never"]).status.success());
    let kept = home.session(&client, "hello").await;
    home.reaches(&kept.id.to_string(), "idleness", |view| view.attention == Some(Attention::Idle)).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(client.session(&kept.id.to_string()).await.unwrap().outcome, None);
}

#[tokio::test]
async fn idle_sessions_give_their_slots_to_those_that_wait() {
    let home = home_with("[limits]\nsessions = 2\n").await;
    let client = home.client().await;
    let names: Vec<String> = (0..6).map(|n| format!("agent-{n}")).collect();
    for name in &names {
        let run = home.run(&["run", "-d", "-q", "-p", "script", "--name", name, "hello"]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let all = async || {
        let every = SessionFilter { scope: Scope::All, ..SessionFilter::default() };
        client.sessions(&every, Page::of(100, None)).await.unwrap().rows
    };
    while all().await.iter().any(|view| view.turns == 0 || view.attention == Some(Attention::Working)) {
        assert!(tokio::time::Instant::now() < deadline, "not worked off: {:?}", all().await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // As many ended as others needed their slots; the last two are kept for a next message as ever.
    let rows = all().await;
    let (ended, kept): (Vec<&View>, Vec<&View>) = rows.iter().partition(|view| view.outcome.is_some());
    assert_eq!((ended.len(), kept.len()), (4, 2));
    for view in &ended {
        let rule = view.obituary.as_ref().and_then(|obituary| obituary.rule);
        assert_eq!((view.outcome, rule), (Some(Outcome::Done), Some(StopRule::GaveWay)));
        assert!(view.evidence.contains("gave its slot to one that waits"), "{}", view.evidence);
    }
    // One that gave way is woken by a message, which waits for a slot like everybody else.
    let sent = client.send_message(ostler_client::SendMessage {
        who: ended[0].name.to_string(),
        text: "again".to_owned(),
        ..Default::default()
    });
    let woken = sent.await.unwrap().sent().unwrap();
    assert!(woken.woke);
    assert_eq!(woken.session.continues, Some(ended[0].id));
    home.reaches(&woken.session.id.to_string(), "its turn", |view| view.turns == 1).await;
}

#[tokio::test]
async fn who_is_to_be_kept_does_not_give_way() {
    let home = home_with("idle_stop = \"never\"\n[limits]\nsessions = 1\n").await;
    let client = home.client().await;
    let kept = home.session(&client, "hello").await;
    home.reaches(&kept.id.to_string(), "idleness", |view| view.attention == Some(Attention::Idle)).await;
    busy(&client, "two", Priority::Normal).await;
    tokio::time::sleep(GIVES_WAY_AFTER + Duration::from_secs(3)).await;
    waits(&home, "two", "waits for a slot (1 of 1; 1st in line)").await;
    assert_eq!(client.session(&kept.id.to_string()).await.unwrap().outcome, None);
}

#[tokio::test]
async fn two_hundred_at_once_are_accepted_and_worked_off() {
    const MANY: usize = 200;
    const SLOTS: usize = 25;
    let home = home_with(&format!("idle_stop = \"1s\"\n[limits]\nsessions = {SLOTS}\n")).await;
    let client = home.client().await;
    let mut starting: Vec<_> = (0..MANY)
        .map(|n| {
            let name = format!("agent-{n}");
            let mut command = home.command(&["run", "-d", "-q", "-p", "script", "--name", &name, "hello"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for run in &mut starting {
        assert!(run.wait().unwrap().success());
    }
    let count = async |filter: SessionFilter| {
        client.sessions(&filter, Page::of(1_000, None)).await.unwrap().rows.len()
    };
    let deadline = tokio::time::Instant::now() + Duration::from_secs(180);
    let unended = || SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
    loop {
        let rows = client.sessions(&unended(), Page::of(1_000, None)).await.unwrap().rows;
        if rows.is_empty() {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{} have not ended", rows.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A list is read while others write; the log has the order.
    let kinds = vec![Kind::SessionStarting, Kind::SessionStopped, Kind::SessionFailed];
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let page = ListEvents { filter, from: Place::After(0), limit: 1_000 };
    let (mut running, mut seen) = (0_usize, 0);
    for received in client.events(&page).await.unwrap().events {
        let Received::Known(recorded) = received else { continue };
        match recorded.event.kind() {
            Kind::SessionStarting => running += 1,
            _ => running -= 1,
        }
        seen += 1;
        assert!(running <= SLOTS, "{running} run at once");
    }
    assert_eq!(seen, MANY * 2);
    let done = SessionFilter { outcomes: vec![Outcome::Done], ..SessionFilter::default() };
    assert_eq!(count(done).await, MANY);
}

/// What a command said, and its exit code.
fn said(home: &TestHome, args: &[&str]) -> (String, i32) {
    let output = home.run(args);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (text, output.status.code().unwrap())
}

#[tokio::test]
async fn many_are_stopped_paused_and_resumed_by_what_they_have_in_common() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    for name in ["one", "two"] {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.name = Some(name.parse().unwrap());
        wanted.initial_message = Some("hello".to_owned());
        client.create_session(wanted).await.unwrap();
        let is_idle = |view: &View| view.attention == Some(Attention::Idle) && view.turns == 1;
        home.reaches(name, "idleness", is_idle).await;
    }
    busy(&client, "busy", Priority::Normal).await;
    works(&home, "busy").await;
    // Nobody is there to ask, so nothing is done without a word for it.
    let (text, code) = said(&home, &["stop", "--attention", "idle"]);
    assert!(code == 2 && text.contains("2 sessions fit") && text.contains("-y"), "{code}: {text}");
    let (text, code) = said(&home, &["stop", "--attention", "idle", "--dry-run"]);
    assert!(
        code == 0 && text.contains("2 sessions would be stopped") && text.contains("two"),
        "{code}: {text}"
    );
    // Nobody has been idle for two hours.
    let (text, code) = said(&home, &["stop", "--attention", "idle", "--since", "2h", "-y"]);
    assert!(code == 0 && text.contains("No session fits."), "{code}: {text}");
    let (text, code) = said(&home, &["stop", "one", "--attention", "idle", "-y"]);
    assert!(code == 2 && text.contains("not both"), "{code}: {text}");
    let (text, code) = said(&home, &["pause", "-C", "shop", "--status", "WORKING", "-y"]);
    assert!(code == 0 && text.contains("busy"), "{code}: {text}");
    home.reaches("busy", "its pause", |view| view.attention == Some(Attention::Paused)).await;
    let (text, code) = said(&home, &["resume", "--attention", "paused", "-y"]);
    assert!(code == 0 && text.contains("busy") && !text.contains("two"), "{code}: {text}");
    works(&home, "busy").await;
    let (text, code) = said(&home, &["stop", "--attention", "idle", "--since", "0s", "-y"]);
    assert!(code == 0 && text.contains("one") && text.contains("two"), "{code}: {text}");
    assert_eq!(client.session("one").await.unwrap().outcome, Some(Outcome::Stopped));
    works(&home, "busy").await;
}

#[tokio::test]
async fn who_no_longer_fits_when_many_are_confirmed_is_left_alone() {
    let home = home_with("").await;
    let client = home.client().await;
    let mut ids = Vec::new();
    for name in ["one", "two", "three"] {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.name = Some(name.parse().unwrap());
        wanted.initial_message = Some("hello".to_owned());
        ids.push(client.create_session(wanted).await.unwrap().id.to_string());
    }
    // Before it is started, too, it is about nothing.
    let is_idle = |view: &View| view.attention == Some(Attention::Idle) && view.status == Status::Running;
    for id in &ids {
        // Between its start and its first turn it is idle, too.
        home.reaches(id, "rest after its turn", |view| view.turns == 1 && is_idle(view)).await;
    }
    let mut person = OnTerminal::start(&home, &["stop", "--attention", "idle"]);
    person.until_shown("stop 3 sessions? [y/N]");
    // Meanwhile one has something to do, and another one comes to rest.
    let work = scenario::of(vec![json!({ "sleep_ms": 600_000 })]);
    assert_eq!(said(&home, &["send", &ids[1], &work]).1, 0);
    works(&home, "two").await;
    let late = client.create_session(CreateSession::new("shop", "script")).await.unwrap().id.to_string();
    home.reaches(&late, "rest", is_idle).await;
    person.type_in("y\n");
    person.until_shown("1 session no longer fits and stays as it is: two");
    assert_eq!(person.child.wait().unwrap().code(), Some(0));
    for (id, has_ended) in [(&ids[0], true), (&ids[1], false), (&ids[2], true), (&late, false)] {
        assert_eq!(client.session(id).await.unwrap().outcome.is_some(), has_ended, "{id}");
    }
    let mut person = OnTerminal::start(&home, &["stop", "--attention", "working"]);
    person.until_shown("stop 1 session? [y/N]");
    client.interrupt_session(&ids[1]).await.unwrap();
    home.reaches(&ids[1], "rest", is_idle).await;
    person.type_in("y\n");
    person.until_shown("nothing was changed");
    assert_eq!(person.child.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_program_reads_an_empty_list_where_nobody_fits() {
    let home = home_with("").await;
    for verb in ["stop", "pause", "resume", "kill", "interrupt"] {
        for more in ["-y", "--dry-run"] {
            let (out, code) = said(&home, &[verb, "--attention", "paused", more, "-o", "json"]);
            assert_eq!(
                (out.as_str(), code),
                ("{\"sessions\":[],\"next_cursor\":null}\n", 0),
                "{verb} {more}"
            );
        }
        let (out, code) = said(&home, &[verb, "--attention", "paused", "-y", "-o", "jsonl"]);
        assert_eq!((out.as_str(), code), ("", 0), "{verb}");
    }
}

#[tokio::test]
async fn what_would_be_resumed_are_those_that_nobody_has_gone_on_with() {
    let home = home_with("").await;
    let client = home.client().await;
    for name in ["one", "two"] {
        assert_eq!(
            said(&home, &["run", "-q", "-p", "script", "--name", name, r#"{"steps":[{"exit":3}]}"#]).1,
            10
        );
    }
    let would = |args: &[&str]| -> usize {
        let (out, code) = said(&home, &[&["resume", "--dry-run", "-o", "json"], args].concat());
        assert_eq!(code, 0, "{out}");
        let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
        listed["sessions"].as_array().unwrap().len()
    };
    assert_eq!(would(&["--outcome", "crashed"]), 2);
    let first = client.session("two").await.unwrap();
    client.restart_session("two").await.unwrap();
    home.reaches("two", "rest", |view| view.id != first.id && view.outcome.is_none()).await;
    assert_eq!(would(&["--outcome", "crashed"]), 1, "somebody has gone on with the other one");
    assert_eq!(would(&["one", "one"]), 1, "one that is named twice is one");
    // It finds, as in every list, and changes no model.
    assert_eq!(would(&["--outcome", "crashed", "--model", "opus"]), 0);
    assert_eq!(would(&["--outcome", "crashed", "--model", "script"]), 1);
    let (told, code) = said(&home, &["resume", "one", "--model", "opus"]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("ostler restart one --model opus"), "{told}");
    let (out, code) = said(&home, &["resume", "--outcome", "crashed", "-y", "-o", "json"]);
    assert_eq!(code, 0, "{out}");
    let done: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(done["sessions"].as_array().unwrap().len(), 1, "{done}");
}

#[tokio::test]
async fn what_takes_the_space_is_told_by_what_and_whose_it_is() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let steps =
        vec![json!({"run": ["sh", "-c", "head -c 4000000 /dev/zero > ~/large"]}), scenario::say("done")];
    let created = home.session(&client, &scenario::of(steps)).await;
    home.reaches(&created.id.to_string(), "its turn", |view| {
        view.turns == 1 && view.attention == Some(Attention::Idle)
    })
    .await;
    let output = home.run(&["du", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let session = &told["sessions"][0];
    assert_eq!(session["session"], created.id.to_string());
    assert!(session["home_bytes"].as_u64().unwrap() >= 4_000_000, "{told}");
    assert!(session["tape_bytes"].as_u64().unwrap() > 0, "{told}");
    assert_eq!(told["campaigns"][0]["campaign"], "shop");
    let parts = told["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["bytes"].as_u64().unwrap()).sum();
    assert_eq!(told["total_bytes"].as_u64().unwrap(), sum);
    for part in ["database", "tapes", "homes", "logs"] {
        assert!(parts.iter().any(|known| known["part"] == part), "{part} is not in {told}");
    }
    assert!(told["free_bytes"].as_u64().unwrap() > 0);
    let (text, code) = said(&home, &["du"]);
    assert!(code == 0 && text.contains("homes") && text.contains("in all"), "{text}");
}

#[tokio::test]
async fn who_waits_for_an_answer_waits_no_longer_than_said() {
    let home = home_with("[limits]\nsessions = 1\n").await;
    let client = home.client().await;
    busy(&client, "one", Priority::Normal).await;
    works(&home, "one").await;
    let run = home.run(&["run", "-p", "script", "--timeout", "1", "--name", "late", "hello", "-o", "json"]);
    let told: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((run.status.code(), &told["outcome"]), (Some(12), &json!("timeout")), "{told}");
    let obituary = told["obituary"].as_str().unwrap();
    assert!(obituary.contains("passed before it could start"), "{obituary}");
    // Whoever does not wait has the limit for the work alone.
    let run = home.run(&["run", "-p", "script", "--timeout", "1s", "--name", "later", "-d", "hello"]);
    assert!(run.status.success());
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(client.session("later").await.unwrap().outcome, None);

    let mut open = home.command(&["run", "-p", "script", "--timeout", "300ms", "-"]);
    let mut open = open.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pipe = open.stdin.take();
    let ended = open.wait_with_output().unwrap();
    drop(pipe);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("standard input did not end within 300 ms [TIMED_OUT, exit 8]"), "{said}");
    assert_eq!(ended.status.code(), Some(8));
}
