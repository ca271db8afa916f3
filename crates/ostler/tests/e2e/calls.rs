//! The session socket as agents meet it: `ostler` inside a sandbox speaks for its own session, also while no daemon
//! lives, and for nobody else.

use std::time::Duration;

use ostler_client::{AddTicket, CreateSession};
use ostler_domain::{
    Event, Recorded,
    call::{DoneReported, StepEnded, StepStarted},
    denied::DeniedKind,
    session::Outcome,
};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::json;

use crate::OSTLER;

fn shell(script: &str) -> serde_json::Value {
    json!({"run": ["sh", "-c", script]})
}

/// What its tools printed, in order.
fn outputs(events: &[Recorded]) -> Vec<String> {
    let results = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AgentToolResult(result) => Some(result.output.clone()),
        _ => None,
    });
    results.collect()
}

fn denied(events: &[Recorded]) -> Vec<(DeniedKind, String)> {
    let denied = events.iter().filter_map(|recorded| match &recorded.event {
        Event::Denied(denied) => Some((denied.kind, denied.target.clone())),
        _ => None,
    });
    denied.collect()
}

#[tokio::test]
async fn an_agent_tells_of_its_work_and_ends_it() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let script = "ostler step build start -m first && ostler note 'half way' && ostler step build end \
                  && ostler --json show && ostler done -m 'all green' && echo && echo said";
    let session = home.session(&client, &scenario::of(vec![shell(script)])).await;
    let view = home.ended(&session.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Done), "{view:?}");
    let events = home.events(&client, session.id).await;
    let told: Vec<&Event> = events
        .iter()
        .map(|recorded| &recorded.event)
        .filter(|event| {
            matches!(
                event,
                Event::StepStarted(_) | Event::StepEnded(_) | Event::AgentStatus(_) | Event::DoneReported(_)
            )
        })
        .collect();
    let build = || "build".to_owned();
    let status = ostler_domain::event::Text { text: "half way".to_owned(), subagent: None };
    assert_eq!(
        told,
        [
            &Event::StepStarted(StepStarted { name: build(), note: "first".to_owned() }),
            &Event::AgentStatus(status),
            &Event::StepEnded(StepEnded { name: build(), success: true, note: String::new() }),
            &Event::DoneReported(DoneReported { note: "all green".to_owned() }),
        ]
    );
    let output = outputs(&events).concat();
    assert!(output.contains(&session.id.to_string()) && output.ends_with("said\n"), "{output}");
    assert_eq!(view.denied, 0);
    let socket = home.home.session_dir(&session.id).join("session.sock");
    assert!(!socket.exists(), "the door is gone with the session");
}

#[tokio::test]
async fn what_is_said_while_no_daemon_lives_is_recorded_once() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let gone = home.campaign_dir().join("gone");
    let script = "until test -e gone; do sleep 0.05; done; ostler step dark start; echo $?; ostler note alone; \
                  ostler step dark end; ostler done; echo $?";
    let session = home.session(&client, &scenario::of(vec![shell(script)])).await;
    home.reaches(&session.id.to_string(), "the turn", |view| view.turns == 1).await;
    home.kill_daemon();
    std::fs::write(&gone, "").unwrap();
    let view = home.ended(&session.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Done), "{view:?}");
    let client = home.client().await;
    let events = home.events(&client, session.id).await;
    let count = |wanted: fn(&Event) -> bool| events.iter().filter(|recorded| wanted(&recorded.event)).count();
    assert_eq!(count(|event| matches!(event, Event::StepStarted(_))), 1);
    assert_eq!(count(|event| matches!(event, Event::AgentStatus(_))), 1);
    assert_eq!(count(|event| matches!(event, Event::StepEnded(_))), 1);
    assert_eq!(count(|event| matches!(event, Event::DoneReported(_))), 1);
    let output = outputs(&events).concat();
    assert!(output.starts_with("0\n") && output.contains("\n0\n"), "{output}");
}

#[tokio::test]
async fn what_an_agent_cannot_say_of_its_words_is_refused() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let flags = ["--key x", "--mode interrupt", "--id k9", "--channel slack", "--wait"];
    let script: String =
        flags.iter().map(|flag| format!("ostler send w1 hello {flag} 2>&1; echo $?; ")).collect();
    let session = home.session(&client, &scenario::of(vec![shell(&script)])).await;
    home.reaches(&session.id.to_string(), "the turn's end", |view| view.turns == 1).await;
    let output = outputs(&wait_for_output(&home, &client, session.id).await).concat();
    assert_eq!(output.matches("takes WHO and words, and no flag").count(), flags.len(), "{output}");
    assert_eq!(output.lines().filter(|line| *line == "2").count(), flags.len(), "{output}");
}

#[tokio::test]
async fn nobody_else_is_spoken_for() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let other = home.session(&client, &scenario::of(vec![json!({"sleep_ms": 60_000})])).await;
    let script = format!(
        "ostler show {}; echo $?; ostler show ses_01KA0000000000000000000000; echo $?; ostler ls; echo $?; \
         ostler stop {}; echo $?; ostler campaign set shop net.mode=open; echo $?; ostler version",
        other.id, other.id
    );
    let session = home.session(&client, &scenario::of(vec![shell(&script)])).await;
    home.reaches(&session.id.to_string(), "the turn's end", |view| view.turns == 1 && view.denied == 5).await;
    let events = wait_for_output(&home, &client, session.id).await;
    let output = outputs(&events).concat();
    let (out, err): (Vec<&str>, Vec<&str>) =
        output.lines().partition(|line| line.parse::<u8>().is_ok() || line.starts_with("ostler "));
    assert_eq!(&out[..5], ["5"; 5], "{output}");
    assert!(out[5].starts_with("ostler "), "{output}");
    let complaints: Vec<_> = err.iter().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(complaints.len(), 5);
    assert!(complaints.iter().all(|complaint| *complaint == complaints[0]), "one answer for all: {output}");
    let wanted: Vec<_> = [
        format!("show {}", other.id),
        "show ses_01KA0000000000000000000000".to_owned(),
        "ls".to_owned(),
        "stop".to_owned(),
        "campaign".to_owned(),
    ]
    .map(|target| (DeniedKind::Call, target))
    .to_vec();
    assert_eq!(denied(&events), wanted);
    let other = client.session(&other.id.to_string()).await.unwrap();
    assert_eq!(other.outcome, None, "the other one goes on");
    let logs = home.run(&["logs", &session.id.to_string()]);
    let logs = String::from_utf8_lossy(&logs.stdout).into_owned();
    assert!(logs.contains("denied  call stop"), "{logs}");
}

async fn wait_for_output(
    home: &TestHome,
    client: &ostler_client::Client,
    session: ostler_domain::SessionId,
) -> Vec<Recorded> {
    let deadline = tokio::time::Instant::now() + wait::PATIENCE;
    loop {
        let events = home.events(client, session).await;
        if !outputs(&events).is_empty() {
            return events;
        }
        assert!(tokio::time::Instant::now() < deadline, "waited too long for the output");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_token_is_nowhere_but_in_the_sandbox() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    // Printed, told, encoded and half: the last is what a test can know it by.
    let script = "echo \"$OSTLER_TOKEN\"; ostler note \"$OSTLER_TOKEN\"; printf %s \"$OSTLER_TOKEN\" | base64 -w0; \
                  printf '\\n%.16s\\n' \"$OSTLER_TOKEN\"; ostler done";
    let session = home.session(&client, &scenario::of(vec![shell(script)])).await;
    home.ended(&session.id.to_string()).await;
    let events = home.events(&client, session.id).await;
    let output = outputs(&events).concat();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "*".repeat(64), "{output}");
    assert!(lines[1].matches('*').count() >= 84, "{output}");
    let half = lines[2];
    assert!(half.len() == 16 && !half.contains('*'), "{output}");
    let found = files_with(home.home.state(), half.as_bytes());
    // The half itself was printed; nothing longer is anywhere.
    for (path, bytes) in found {
        for at in memory_find(&bytes, half.as_bytes()) {
            let next = bytes.get(at + 16).copied().unwrap_or_default();
            assert!(!next.is_ascii_hexdigit(), "the token is in {}", path.display());
        }
    }
    let taken = home.run(&["daemon", "logs"]);
    assert!(!String::from_utf8_lossy(&taken.stdout).contains(half));
}

fn memory_find(bytes: &[u8], needle: &[u8]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(needle.len())).filter(|at| bytes[*at..].starts_with(needle)).collect()
}

fn files_with(dir: &std::path::Path, needle: &[u8]) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if let Ok(bytes) = std::fs::read(&path)
            && !memory_find(&bytes, needle).is_empty()
        {
            found.push((path, bytes));
        }
    }
    found
}

#[tokio::test]
async fn reserved_names_are_ours_and_compat_adds_others() {
    let home = TestHome::started(OSTLER).await;
    for (compat, names, not) in [
        ("obey", "OBEY_SESSION_ID OBEY_CAMPAIGN_DIR OBEY_DAEMON_SOCKET", "GT_SESSION_UUID"),
        ("gastown", "GT_SESSION_UUID", "OBEY_SESSION_ID"),
        ("", "OSTLER_SESSION_ID", "GT_SESSION_UUID"),
    ] {
        let set = home.run(&["campaign", "set", "shop", &format!("compat={compat}")]);
        assert!(set.status.success(), "{set:?}");
        let client = home.client().await;
        let script = format!(
            "for name in OSTLER_SESSION_ID OSTLER_CAMPAIGN OSTLER_CAMPAIGN_DIR OSTLER_PROVIDER OSTLER_SOCKET \
             OSTLER_TOKEN {names} {not}; do eval \"test -n \\\"\\$$name\\\"\" && echo $name; done; ostler done"
        );
        let session = home.session(&client, &scenario::of(vec![shell(&script)])).await;
        home.ended(&session.id.to_string()).await;
        let output = outputs(&home.events(&client, session.id).await).concat();
        let has = |name: &str| output.lines().any(|line| line == name);
        for name in ["OSTLER_TOKEN", "OSTLER_SOCKET", "OSTLER_CAMPAIGN"].into_iter().chain(names.split(' ')) {
            assert!(has(name), "{name}: {output}");
        }
        assert!(!has(not), "{not}: {output}");
    }
    for name in ["OSTLER_TOKEN", "OBEY_X", "GT_SESSION_UUID", "https_proxy", "LD_PRELOAD"] {
        let run = home.run(&["run", "-C", "shop", "-p", "script", "--env", &format!("{name}=x"), "hi"]);
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{err}");
        assert!(err.contains(name), "{err}");
    }
}

#[tokio::test]
async fn only_readers_read_what_is_recorded_of_others() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"auditor".parse().unwrap(), vec![]).await.unwrap();
    let other = home.session(&client, &scenario::of(vec![scenario::say("The vault's code is tulip")])).await;
    home.reaches(&other.id.to_string(), "the turn's end", |view| view.last_completion.is_some()).await;
    let script = format!(
        "ostler show {}; ostler search tulip; ostler show ses_01ARZ3NDEKTSV4RRFFQ69G5FAV; true",
        other.id
    );
    let looks = async || {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.agent = Some("auditor".to_owned());
        wanted.initial_message = Some(scenario::of(vec![shell(&script)]));
        wanted.ends_with_turn = true;
        let session = client.create_session(wanted).await.unwrap();
        home.ended(&session.id.to_string()).await;
        let events = home.events(&client, session.id).await;
        let denied = denied(&events).into_iter().map(|(_, target)| target).collect::<Vec<_>>();
        (outputs(&events).concat(), denied)
    };
    let (output, denied) = looks().await;
    assert!(!output.contains("code is tulip"), "{output}");
    let errors: Vec<&str> = output.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(errors.len() == 2 && errors[0] == errors[1], "one answer for both: {output}");
    assert_eq!(denied.len(), 2, "{denied:?}");
    assert!(home.run(&["campaign", "set", "shop", "readers+=auditor"]).status.success());
    let (output, denied) = looks().await;
    assert!(output.contains("code is tulip") && output.contains(other.name.as_str()), "{output}");
    assert_eq!(denied.len(), 1, "what does not exist is still answered like that: {denied:?}");
    // A name that nobody registered grants nothing.
    assert!(home.run(&["campaign", "set", "shop", "readers=somebody"]).status.success());
    let mut wanted = CreateSession::new("shop", "script");
    wanted.name = Some("somebody".parse().unwrap());
    wanted.initial_message = Some(scenario::of(vec![shell(&script)]));
    wanted.ends_with_turn = true;
    let session = client.create_session(wanted).await.unwrap();
    home.ended(&session.id.to_string()).await;
    assert!(!outputs(&home.events(&client, session.id).await).concat().contains("code is tulip"));
}

#[tokio::test]
async fn an_agent_reads_the_ticket_it_works_on_and_no_other() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    for (external, intent) in [("gh:shop#7", "Paint the door"), ("gh:shop#8", "The vault's code is tulip")] {
        let wanted = AddTicket {
            campaign: "shop".to_owned(),
            intent: intent.to_owned(),
            external: Some(external.to_owned()),
            ..AddTicket::default()
        };
        client.add_ticket(wanted).await.unwrap();
    }
    let script = "ostler ticket show; ostler ticket show gh:shop#7 --json; \
                  for other in gh:shop#8 gh:shop#99 tkt_01ARZ3NDEKTSV4RRFFQ69G5FAV; do ostler ticket show $other; done; \
                  ostler ticket ls; ostler ticket done gh:shop#7; ostler handoff somebody";
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(scenario::of(vec![shell(script)]));
    wanted.ticket = Some("gh:shop#7".to_owned());
    let session = client.create_session(wanted).await.unwrap();
    home.reaches(&session.id.to_string(), "the turn's end", |view| view.turns == 1 && view.denied == 6).await;
    let output = outputs(&wait_for_output(&home, &client, session.id).await).concat();
    assert!(
        output.contains("Paint the door") && output.contains(r#""external_ref":"gh:shop#7""#),
        "{output}"
    );
    assert!(!output.contains("tulip"), "{output}");
    let errors: Vec<&str> = output.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(
        errors.len() == 6 && errors.iter().all(|error| *error == errors[0]),
        "one answer for all: {output}"
    );
    let idle = home.session(&client, &scenario::of(vec![shell("ostler ticket show")])).await;
    home.reaches(&idle.id.to_string(), "the turn's end", |view| view.turns == 1).await;
    let output = outputs(&wait_for_output(&home, &client, idle.id).await).concat();
    assert!(output.contains("works on no ticket"), "{output}");
}

/// What a client of MCP writes to use tools, one message a line, with time for the answers.
pub(crate) fn mcp(calls: &[serde_json::Value]) -> String {
    let info = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let calls = calls
        .iter()
        .enumerate()
        .map(|(n, call)| json!({"jsonrpc": "2.0", "id": n + 1, "method": "tools/call", "params": call}));
    let lines: Vec<String> =
        [hello, ready].into_iter().chain(calls).map(|line| format!("echo '{line}'; sleep 0.2")).collect();
    format!("({}; sleep 2) | ostler mcp", lines.join("; "))
}

#[tokio::test]
async fn tools_of_mcp_are_recorded_once_while_no_daemon_lives() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dark = json!({"name": "step", "arguments": {"name": "dark", "mark": "start"}});
    let search = json!({"name": "search", "arguments": {"text": "x"}});
    let done = json!({"name": "done", "arguments": {}});
    let script = format!("until test -e gone; do sleep 0.05; done; {}", mcp(&[dark, search, done]));
    let session = home.session(&client, &scenario::of(vec![shell(&script)])).await;
    home.reaches(&session.id.to_string(), "the turn", |view| view.turns == 1).await;
    home.kill_daemon();
    std::fs::write(home.campaign_dir().join("gone"), "").unwrap();
    let view = home.ended(&session.id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Done), "{view:?}");
    let client = home.client().await;
    let events = home.events(&client, session.id).await;
    let steps = events.iter().filter(|recorded| matches!(recorded.event, Event::StepStarted(_))).count();
    let ends = events.iter().filter(|recorded| matches!(recorded.event, Event::DoneReported(_))).count();
    assert_eq!((steps, ends), (1, 1), "{:?}", outputs(&events));
}
