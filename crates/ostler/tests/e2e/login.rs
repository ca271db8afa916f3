//! A login of the program itself, kept once and lent to sessions, with the real Claude Code. Nothing leaves the machine: the
//! daemon has a network of its own with nobody in it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use ostler_client::CreateSession;
use ostler_domain::{Event, gateway::NetDecision, session::Approve};
use ostler_testkit::{TestHome, programs, wait};

use crate::OSTLER;

const ACCESS: &str = "sk-ant-oat01-access-token-of-a-test";
const REFRESH: &str = "sk-ant-ort01-refresh-token-of-a-test";

/// All files below a directory that have this text in them.
fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let has = |bytes: Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        if kind.is_dir() {
            found.extend(files_with(&entry.path(), text));
        } else if kind.is_file() && fs::read(entry.path()).is_ok_and(has) {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test]
async fn a_login_is_lent_without_what_renews_it_and_its_host_can_be_reached() {
    let Some(program) =
        programs::find("claude", "a_login_is_lent_without_what_renews_it_and_its_host_can_be_reached")
    else {
        return;
    };
    let home = TestHome::new(OSTLER);
    fs::create_dir_all(home.home.config()).unwrap();
    let config = format!("[providers.claude-code]\nprogram = \"{}\"\n", program.display());
    fs::write(home.home.config_toml(), config).unwrap();
    let alone = home.command_of(Path::new("unshare"), &["--net", OSTLER, "daemon", "start"]).output();
    if !alone.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: a network without anybody in it cannot be made here");
        return;
    }
    home.begin().await;
    let client = home.client().await;

    let mut run = home.command(&["run", "-p", "claude-code", "-d", "hello"]);
    let refused = run.env_remove("ANTHROPIC_API_KEY").output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(6), "{words}");
    assert!(words.contains("claude-code is not logged in [PROVIDER_AUTH, exit 6]"), "{words}");
    assert!(words.contains("ostler provider login claude-code"), "{words}");

    // A login that somebody has, beside things that are nobody's business.
    let own = home.path().join("somebody/.claude");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("history.jsonl"), "private").unwrap();
    let login = format!(
        r#"{{"claudeAiOauth":{{"accessToken":"{ACCESS}","refreshToken":"{REFRESH}","expiresAt":4102444800000,"scopes":["user:inference"],"subscriptionType":"max"}}}}"#
    );
    fs::write(own.join(".credentials.json"), &login).unwrap();
    let from = own.display().to_string();
    let taken = home.run(&["provider", "login", "claude-code", "--from", &from]);
    assert!(taken.status.success(), "{taken:?}");
    let kept = home.home.state().join("credentials/claude-code/.claude");
    let names: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [".credentials.json"], "only the login was taken");
    let mode = fs::metadata(kept.join(".credentials.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // What is no login does not take its place.
    let garbage = home.path().join("garbage");
    for text in ["no login", "{}", r#"{"claudeAiOauth":{}}"#] {
        fs::write(&garbage, text).unwrap();
        let refused =
            home.run(&["provider", "login", "claude-code", "--from", &garbage.display().to_string()]);
        assert_eq!(refused.status.code(), Some(6), "{text}: {refused:?}");
    }
    assert_eq!(fs::read_to_string(kept.join(".credentials.json")).unwrap(), login);
    let shown = home.run(&["provider", "show", "claude-code", "--json"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("\"key\":\"its login\""), "{shown:?}");

    let mut wanted = CreateSession::new("shop", "claude-code");
    wanted.approve = Approve::All;
    wanted.initial_message = Some("hello".to_owned());
    let session = client.create_session(wanted).await.unwrap();
    let lent = home
        .home
        .state()
        .join("homes")
        .join(session.conversation.to_string())
        .join(".claude/.credentials.json");
    wait::until("the login to be lent", wait::PATIENCE, || lent.is_file());
    let text = fs::read_to_string(&lent).unwrap();
    assert!(text.contains(ACCESS) && !text.contains("refreshToken"), "{text}");
    assert_eq!(fs::metadata(&lent).unwrap().permissions().mode() & 0o777, 0o600);

    // The program believes it, and may call its model's host; nobody is there.
    let called = loop {
        let events = home.events(&client, session.id).await;
        let called = events.into_iter().find_map(|recorded| match recorded.event {
            Event::Network(network) if network.host == "api.anthropic.com" => Some(network),
            _ => None,
        });
        match called {
            Some(called) => break called,
            None => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    };
    assert_eq!(called.decision, NetDecision::Allowed, "{called:?}");
    client.stop_session(&session.id.to_string(), true).await.unwrap();
    home.ended(&session.id.to_string()).await;
    assert_eq!(files_with(home.home.state(), REFRESH), [kept.join(".credentials.json")]);
    let sessions = home.home.state().join("sessions");
    assert_eq!(files_with(&sessions, ACCESS), Vec::<PathBuf>::new(), "not on the tape");
    home.run(&["daemon", "stop"]);
}
