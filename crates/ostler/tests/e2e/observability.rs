//! What the daemon measures and what it says of itself.

use std::fs;

use ostler_domain::metrics::{self, Sample, Sort};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let fits = |sample: &&Sample| {
        sample.name == name
            && labels.iter().all(|(key, value)| sample.labels.iter().any(|(k, v)| k == key && v == value))
    };
    samples.iter().find(fits).map(|sample| sample.value)
}

#[tokio::test]
async fn measurements_are_what_a_scraper_takes_and_true() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let used = scenario::of(vec![
        json!({"usage": {"input": 500, "cache_read": 30, "output": 200}}),
        scenario::say("x"),
    ]);
    let idle = home.session(&client, &used).await;
    home.reaches(&idle.id.to_string(), "rest", |view| view.turns == 1 && view.usage.output == 200).await;
    let over = home.session(&client, &scenario::of(vec![json!({"exit": 3})])).await;
    home.ended(&over.id.to_string()).await;

    let text = String::from_utf8(home.run(&["metrics"]).stdout).unwrap();
    let samples = metrics::read(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    let of = |name: &str, labels: &[(&str, &str)]| value(&samples, name, labels);
    assert_eq!(of("ostler_sessions", &[("provider", "script")]), Some(1.0), "{text}");
    assert_eq!(of("ostler_sessions_ended_total", &[("outcome", "crashed")]), Some(1.0));
    assert_eq!(of("ostler_events_total", &[("kind", "SESSION_CREATED")]), Some(2.0));
    assert_eq!(of("ostler_tokens_total", &[("model", "script"), ("bucket", "input")]), Some(500.0));
    assert_eq!(of("ostler_tokens_total", &[("model", "script"), ("bucket", "output")]), Some(200.0));
    assert_eq!(of("ostler_model_calls_total", &[("model", "script")]), Some(1.0));
    // A cost of 0 would say that it was free.
    assert_eq!(of("ostler_cost_dollars_total", &[("model", "script")]), None, "{text}");
    assert_eq!(of("ostler_unpriced_tokens_total", &[("model", "script")]), Some(730.0), "{text}");
    assert_eq!(of("ostler_keepers", &[]), Some(1.0));
    assert_eq!(of("ostler_approvals_waiting", &[]), Some(0.0));
    assert_eq!(of("ostler_build_info", &[("version", env!("CARGO_PKG_VERSION"))]), Some(1.0));
    assert!(
        of("ostler_commit_seconds_count", &[]) > Some(3.0)
            && of("ostler_commit_seconds_sum", &[]) > Some(0.0)
    );
    assert!(of("ostler_store_bytes", &[("part", "database")]) > Some(0.0));
    for sample in &samples {
        let is_counter = sample.sort == Sort::Counter;
        assert_eq!(is_counter, sample.name.ends_with("_total"), "{}", sample.name);
        let names_something = |value: &str| value.contains("_0") || value.contains('/');
        assert!(!sample.labels.iter().any(|(_, value)| names_something(value)), "{sample:?}");
    }

    let form: Value = serde_json::from_slice(&home.run(&["metrics", "--json"]).stdout).unwrap();
    assert_eq!(form["samples"].as_array().unwrap().len(), samples.len());
    // Over the door for everybody else it is the same page.
    assert!(metrics::read(&client.metrics().await.unwrap()).is_ok());
}

#[tokio::test]
async fn the_log_is_structured_and_does_not_grow_for_ever() {
    let home = TestHome::new(OSTLER);
    home.configure("[log]\nlevel = \"debug\"\nformat = \"json\"\nsize = \"4KiB\"\nfiles = 2\n");
    home.begin().await;
    let log = home.home.daemon_log();
    let aside = |n: u32| ostler_domain::home::old_log(&log, n);
    // A restart says some lines each time.
    for _ in 0..12 {
        assert!(home.run(&["daemon", "restart"]).status.success());
        let client = home.client().await;
        let session = home.session(&client, &scenario::of(vec![json!({"exit": 1})])).await;
        home.ended(&session.id.to_string()).await;
        if aside(2).exists() {
            break;
        }
    }
    wait::until("logs to be put aside", wait::PATIENCE, || aside(1).exists());
    for path in [log.clone(), aside(1)] {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() <= 4096 + 1024, "{}", text.len());
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(
                line["timestamp"].is_string() && line["level"].is_string() && line["message"].is_string(),
                "{line}"
            );
        }
    }
    assert!(!aside(3).exists());
    let shown = home.run(&["daemon", "logs", "--tail", "0"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(" INFO ready pid="), "{shown}");
    let lines = home.run(&["daemon", "logs", "--tail", "5", "--level", "info", "-o", "jsonl"]);
    let lines = String::from_utf8(lines.stdout).unwrap();
    let levels: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!levels.is_empty() && levels.iter().all(|line| line["level"] != "debug"), "{lines}");
    // A second daemon finds the work done by another, which is nothing to be looked into.
    assert_eq!(home.run(&["daemon", "run", "--background"]).status.code(), Some(4));
    let none = home.run(&["daemon", "logs", "--level", "error"]);
    assert!(none.status.success() && none.stdout.is_empty());
    let unknown = home.run(&["daemon", "logs", "--level", "loud"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[tokio::test]
async fn the_protocol_is_in_the_program() {
    let home = TestHome::new(OSTLER);
    let dir = home.path().join("protos");
    let written = home.run(&["api", "proto", dir.to_str().unwrap(), "--json"]);
    let written: Value = serde_json::from_slice(&written.stdout).unwrap();
    for file in written["files"].as_array().unwrap() {
        let name = file.as_str().unwrap().rsplit('/').next().unwrap();
        let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/ostler/v1/");
        assert_eq!(
            fs::read(file.as_str().unwrap()).unwrap(),
            fs::read(format!("{ours}{name}")).unwrap(),
            "{name}"
        );
    }
    let printed = String::from_utf8(home.run(&["api", "proto"]).stdout).unwrap();
    assert!(printed.contains("// ostler/v1/event.proto") && printed.contains("service AdminService"));
    let described = home.run(&["api", "descriptor"]).stdout;
    assert_eq!(described, ostler_wire::FILE_DESCRIPTOR_SET);
    let file = home.path().join("set.binpb");
    assert!(home.run(&["api", "descriptor", file.to_str().unwrap()]).status.success());
    assert_eq!(fs::read(file).unwrap(), described);
    // No daemon was needed.
    assert!(home.daemon().is_none());
}
