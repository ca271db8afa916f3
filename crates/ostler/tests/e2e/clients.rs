//! The example clients in other languages, as somebody would run them: over the socket, and across the daemon's death.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ostler_testkit::{TestHome, programs, scenario};

use crate::OSTLER;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs a client to its end; the daemon is killed, and started anew, when the client has seen some of the events.
async fn follows(home: &TestHome, mut client: Command) {
    let prompt = scenario::of(vec![scenario::count("tick", 60, 50), scenario::say("over")]);
    client.env("OSTLER", OSTLER).arg("shop").arg(prompt);
    let mut client = client.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut seen = Vec::new();
    for line in lines.by_ref() {
        seen.push(line);
        if seen.iter().any(|line| line.ends_with("tick 5")) {
            break;
        }
    }
    home.kill_daemon();
    home.start().await;
    seen.extend(lines);
    assert!(client.wait().unwrap().success(), "{seen:#?}");
    assert!(seen[0].ends_with(" sessions") && seen[1].starts_with("started ses_"), "{seen:#?}");
    assert_eq!(seen.last().unwrap(), "ended done");
    let ticks: Vec<_> =
        seen.iter().filter_map(|line| line.split_once("AGENT_COMPLETION ")).map(|(_, text)| text).collect();
    let wanted: Vec<String> = (1..=60).map(|n| format!("tick {n}")).chain(["over".to_owned()]).collect();
    assert_eq!(ticks, wanted, "nothing is missing, nothing comes twice");
}

#[tokio::test]
async fn a_client_in_python_starts_a_session_and_follows_it() {
    let Some(python) = programs::example("python", "the client in Python") else { return };
    let home = TestHome::started(OSTLER).await;
    let script = examples().join("python/example.py");
    let command = || {
        let mut command = home.command_of(&python, &["-B", script.to_str().unwrap()]);
        command.current_dir("/");
        command
    };
    follows(&home, command()).await;
    let refused = command().env("OSTLER", OSTLER).arg("no-such-campaign").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("[CAMPAIGN_UNKNOWN]"), "{said}");
}

#[tokio::test]
async fn a_client_in_typescript_starts_a_session_and_follows_it() {
    let Some(modules) = programs::example("typescript", "the client in TypeScript") else { return };
    let home = TestHome::started(OSTLER).await;
    let (source, place) = (examples().join("typescript"), home.path().join("typescript"));
    fs::create_dir_all(place.join("src")).unwrap();
    for file in ["package.json", "tsconfig.json", "src/ostler.ts", "src/example.ts"] {
        fs::copy(source.join(file), place.join(file)).unwrap();
    }
    symlink(&modules, place.join("node_modules")).unwrap();
    let built =
        Command::new("node").arg("node_modules/typescript/bin/tsc").current_dir(&place).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
    let script = place.join("build/example.js");
    let command = || home.command_of(Path::new("node"), &[script.to_str().unwrap()]);
    follows(&home, command()).await;
    let refused = command().env("OSTLER", OSTLER).arg("no-such-campaign").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("[CAMPAIGN_UNKNOWN]"), "{said}");
}
