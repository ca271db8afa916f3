//! A collector of OpenTelemetry hears what sessions did: once, also across deaths of the daemon, and nothing of what was said.

use std::{collections::BTreeSet, fs};

use ostler_client::CreateSession;
use ostler_testkit::{
    Collector, TestHome,
    collector::{attribute, silent},
    scenario, wait,
};
use serde_json::{Value, json};

use crate::OSTLER;

async fn exporting(address: std::net::SocketAddr, more: &str) -> TestHome {
    let home = TestHome::new(OSTLER);
    let more = more.replace("HERE", &home.path().display().to_string());
    home.configure(&format!("[otel]\nendpoint = \"http://{address}\"\n{more}"));
    home.begin().await;
    home
}

fn work() -> String {
    scenario::of(vec![
        json!({"usage": {"input": 500, "cache_read": 50, "output": 200}}),
        json!({"run": ["sh", "-c", "echo a-secret-$TRACEPARENT > context; exit 3"]}),
        scenario::say("a secret answer"),
    ])
}

fn named(name: &str) -> CreateSession {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.name = Some(name.parse().unwrap());
    wanted.ends_with_turn = true;
    wanted.initial_message = Some(work());
    wanted
}

fn ids(spans: &[Value]) -> Vec<String> {
    spans.iter().map(|span| span["spanId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_session_becomes_spans_below_its_caller() {
    let collector = Collector::open("127.0.0.1:0".parse().unwrap(), &[503, 429]);
    let home = exporting(collector.address, "headers_file = \"HERE/headers\"\n").await;
    fs::write(home.path().join("headers"), "authorization: Bearer dummy\nx-team: agents\n").unwrap();
    let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let ran = home
        .command(&["run", "-p", "script", "--name", "a-secret-wish", &work()])
        .env("TRACEPARENT", caller)
        .output();
    assert!(ran.unwrap().status.success());

    let session = &collector.wait_for("invoke_workflow script")[0];
    assert_eq!(session["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(session["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(attribute(session, "ostler.session.outcome"), Some(json!("done")));
    let turn = &collector.wait_for("invoke_agent script")[0];
    assert_eq!(turn["parentSpanId"], session["spanId"]);
    assert_eq!(attribute(turn, "gen_ai.usage.input_tokens"), Some(json!("550")));
    let call = &collector.wait_for("chat script")[0];
    assert_eq!((&call["parentSpanId"], &call["kind"]), (&turn["spanId"], &json!(3)));
    assert_eq!(attribute(call, "gen_ai.usage.output_tokens"), Some(json!("200")));
    let tool = &collector.wait_for("execute_tool run")[0];
    assert_eq!(tool["parentSpanId"], turn["spanId"]);
    assert_eq!(attribute(tool, "error.type"), Some(json!("exit 3")));
    assert_eq!(tool["status"]["code"], 2);

    let request = &collector.requests()[0];
    assert!(request.head.starts_with("POST /v1/traces HTTP/1.1"), "{}", request.head);
    assert!(request.head.contains("authorization: Bearer dummy") && request.head.contains("x-team: agents"));
    let all = format!("{:?}", collector.requests());
    assert!(!all.contains("secret"), "{all}");

    // What the agent runs is told where it is: below its session.
    let context = fs::read_to_string(home.campaign_dir().join("context")).unwrap();
    let span = session["spanId"].as_str().unwrap();
    assert_eq!(context.trim(), format!("a-secret-00-4bf92f3577b34da6a3ce929d0e0e4736-{span}-01"));
}

#[tokio::test]
async fn a_collector_that_was_away_misses_nothing_and_nobody_waits_for_it() {
    let address = silent();
    let home = exporting(address, "content = true\n").await;
    let client = home.client().await;
    for name in ["one", "two"] {
        let session = client.create_session(named(name)).await.unwrap();
        home.ended(&session.id.to_string()).await;
    }
    // One that lives through the daemon's death, with a turn that was begun before it.
    let mut long = named("three");
    long.initial_message = Some(scenario::of(vec![scenario::count("tick", 40, 50), scenario::say("over")]));
    let long = client.create_session(long).await.unwrap();
    home.reaches(&long.id.to_string(), "its turn", |view| view.turns == 1).await;
    home.kill_daemon();
    let collector = Collector::open(address, &[]);
    home.start().await;
    home.ended(&long.id.to_string()).await;
    for name in ["one", "two", "three"] {
        assert_eq!(collector.wait_for(&format!("invoke_workflow {name}")).len(), 1, "{name}");
        assert_eq!(collector.wait_for(&format!("invoke_agent {name}")).len(), 1, "{name}");
    }
    assert!(format!("{:?}", collector.requests()).contains("a secret answer"), "content was asked for");
    let turn = &collector.wait_for("invoke_agent three")[0];
    let nanos = |key: &str| turn[key].as_str().unwrap().parse::<u64>().unwrap();
    assert!(nanos("endTimeUnixNano") - nanos("startTimeUnixNano") > 1_000_000_000, "{turn}");

    // What was taken is not said again by the next daemon.
    wait::until("the place to be remembered", wait::PATIENCE, || {
        let place = home.run(&["metrics"]);
        String::from_utf8_lossy(&place.stdout).contains("ostler_export_waiting_spans 0")
    });
    home.kill_daemon();
    let client = home.start().await;
    let session = client.create_session(named("four")).await.unwrap();
    home.ended(&session.id.to_string()).await;
    collector.wait_for("invoke_workflow four");
    let ids = ids(&collector.spans());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "no span came twice");
}

#[tokio::test]
async fn nobody_is_told_unless_somebody_is_named() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let session = client.create_session(named("alone")).await.unwrap();
    home.ended(&session.id.to_string()).await;
    // The agent knows where it is all the same: the trace is the session's own.
    let context = fs::read_to_string(home.campaign_dir().join("context")).unwrap();
    let trace = format!("{:032x}", session.id.bits());
    assert!(
        context.starts_with(&format!("a-secret-00-{trace}-")) && context.trim().ends_with("-01"),
        "{context}"
    );
    let refused = {
        home.configure("[otel]\nendpoint = \"localhost\"\n");
        home.run(&["daemon", "restart"])
    };
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("otel: endpoint"), "{said}");
}
