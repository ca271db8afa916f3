//! A login of the program itself, kept once, lent to sessions and renewed in one place. Nothing leaves the machine: real
//! programs have a network with nobody in it, or a server on the loopback in the place of the one that renews.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use ostler_client::{Client, CreateSession};
use ostler_domain::{
    Event,
    gateway::NetDecision,
    session::{Approve, Billing, Outcome, View},
};
use ostler_testkit::{FakeOauth, TestHome, fake_oauth::token, programs, skip, wait};

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
        skip::lacking("a_login_is_lent_without_what_renews_it needs a network without anybody in it");
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
    // Also where agents have the host's network, and no gateway; where they have none, it could not be used.
    assert!(home.run(&["campaign", "set", "shop", "net.mode=host"]).status.success());
    let mut wanted = CreateSession::new("shop", "claude-code");
    wanted.initial_message = Some("hello".to_owned());
    let session = client.create_session(wanted).await.unwrap();
    let own_home = home.home.state().join("homes").join(session.conversation.to_string());
    let lent = own_home.join(".claude/.credentials.json");
    wait::until("the login to be lent without a gateway", wait::PATIENCE, || lent.is_file());
    client.stop_session(&session.id.to_string(), true).await.unwrap();
    home.ended(&session.id.to_string()).await;
    assert!(home.run(&["campaign", "set", "shop", "net.mode=none"]).status.success());
    let refused =
        home.command(&["run", "-p", "claude-code", "-d", "x"]).env_remove("ANTHROPIC_API_KEY").output();
    let words = String::from_utf8_lossy(&refused.unwrap().stderr).into_owned();
    assert!(words.contains("MODEL_UNREACHABLE") && words.contains("net.mode is none"), "{words}");

    assert_eq!(files_with(home.home.state(), REFRESH), [kept.join(".credentials.json")]);
    let sessions = home.home.state().join("sessions");
    assert_eq!(files_with(&sessions, ACCESS), Vec::<PathBuf>::new(), "not on the tape");
    home.run(&["daemon", "stop"]);
}

/// How many begin at once.
const SESSIONS: usize = 20;
const LONG_AGO: i64 = 1_600_000_000;
const LONG_AFTER: i64 = 4_102_444_800;

/// What Codex keeps of a login.
fn codex_login(expires: i64, renewing: &str) -> String {
    let token = token(expires, renewing);
    let tokens = serde_json::json!({"id_token": token, "access_token": token, "refresh_token": renewing, "account_id": "acc"});
    serde_json::json!({"OPENAI_API_KEY": null, "auth_mode": "chatgpt", "tokens": tokens,
        "last_refresh": "2026-01-01T00:00:00Z"})
    .to_string()
}

/// A home with a login of Codex that ended long ago, and with this program in its place.
async fn logged_in(program: &Path, env: &[(&str, &str)]) -> (TestHome, Client) {
    let home = TestHome::new(OSTLER);
    fs::create_dir_all(home.home.config()).unwrap();
    let config = format!("[providers.codex]\nprogram = \"{}\"\n", program.display());
    fs::write(home.home.config_toml(), config).unwrap();
    let login = kept(&home);
    fs::create_dir_all(login.parent().unwrap()).unwrap();
    fs::write(login, codex_login(LONG_AGO, "renews-1")).unwrap();
    let started = home.command(&["daemon", "start"]).envs(env.iter().copied()).output().unwrap();
    assert!(started.status.success(), "{started:?}");
    home.begin().await;
    let client = home.client().await;
    (home, client)
}

fn kept(home: &TestHome) -> PathBuf {
    home.home.state().join("credentials/codex/.codex/auth.json")
}

/// Stands for Codex: as an agent it says nothing and calls nobody, and otherwise does this.
fn stand_in(dir: &Path, otherwise: &str) -> PathBuf {
    let program = dir.join("codex");
    let script = format!("#!/bin/sh\n[ -n \"$OSTLER_SESSION_ID\" ] && exec cat > /dev/null\n{otherwise}\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// One that renews as it is told to, and counts how often.
fn counting_program(dir: &Path, renewal: &str) -> (PathBuf, PathBuf) {
    let count = dir.join("renewals");
    let counted = format!(
        "[ \"$1\" = --version ] && echo codex-cli 99.0.0 && exit\necho once >> {}\nsleep 0.5\n{renewal}",
        count.display()
    );
    (stand_in(dir, &counted), count)
}

/// All at once.
async fn begin(client: &Client, sessions: usize) -> Vec<View> {
    let mut begun = tokio::task::JoinSet::new();
    for _ in 0..sessions {
        let client = client.clone();
        begun.spawn(async move { client.create_session(CreateSession::new("shop", "codex")).await.unwrap() });
    }
    begun.join_all().await
}

fn lent(home: &TestHome, session: &View) -> Option<serde_json::Value> {
    let homes = home.home.state().join("homes").join(session.conversation.to_string());
    serde_json::from_str(&fs::read_to_string(homes.join(".codex/auth.json")).ok()?).ok()
}

#[tokio::test]
async fn a_login_by_a_key_pays_for_each_call_and_one_by_a_plan_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let program = stand_in(dir.path(), "echo codex-cli 99.0.0");
    let (home, client) = logged_in(&program, &[]).await;
    let by_plan = codex_login(LONG_AFTER, "renews-1");
    for (login, billing) in [
        (r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk-dummy"}"#, Billing::Calls),
        (by_plan.as_str(), Billing::Plan),
    ] {
        fs::write(kept(&home), login).unwrap();
        let session = client.create_session(CreateSession::new("shop", "codex")).await.unwrap();
        let events = home.events(&client, session.id).await;
        let Event::SessionCreated(created) = &events[0].event else { panic!("{events:?}") };
        assert_eq!(created.config.billing, billing, "{login}");
        client.stop_session(&session.id.to_string(), true).await.unwrap();
        home.ended(&session.id.to_string()).await;
    }
}

#[tokio::test]
async fn twenty_that_begin_at_once_are_lent_one_renewed_login() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = dir.path().join("fresh.json");
    fs::write(&fresh, codex_login(LONG_AFTER, "renews-2")).unwrap();
    let renewal = format!(
        "cp {} $CODEX_HOME/auth.json; echo '{{\"id\":\"refresh\",\"result\":{{}}}}'; exec cat > /dev/null",
        fresh.display()
    );
    let (program, count) = counting_program(dir.path(), &renewal);
    let (home, client) = logged_in(&program, &[]).await;
    let sessions = begin(&client, SESSIONS).await;
    wait::until("all to be lent a login", wait::PATIENCE * 2, || {
        sessions.iter().all(|session| lent(&home, session).is_some())
    });
    assert_eq!(fs::read_to_string(&count).unwrap(), "once\n", "it is renewed once");
    let new = token(LONG_AFTER, "renews-2");
    for session in &sessions {
        let lent = lent(&home, session).unwrap();
        assert_eq!(
            (&lent["tokens"]["access_token"], &lent["tokens"]["refresh_token"]),
            (&new.clone().into(), &"".into())
        );
    }
    // What renews it next is where it is kept, and nowhere else: nobody is logged out.
    assert_eq!(files_with(home.home.state(), "renews-2\""), [kept(&home)]);
    for session in &sessions {
        client.stop_session(&session.id.to_string(), true).await.unwrap();
    }
    for session in &sessions {
        home.ended(&session.id.to_string()).await;
    }
}

#[tokio::test]
async fn a_login_that_has_ended_and_is_not_renewed_is_told_with_its_cure() {
    let dir = tempfile::tempdir().unwrap();
    let renewal =
        "echo '{\"id\":\"refresh\",\"error\":{\"message\":\"refresh token was used already\"}}'; exit 0";
    let (program, count) = counting_program(dir.path(), renewal);
    let (home, client) = logged_in(&program, &[]).await;
    let began = std::time::Instant::now();
    for session in begin(&client, 3).await {
        let view = home.ended(&session.id.to_string()).await;
        assert_eq!(view.outcome, Some(Outcome::FailedStart), "{view:#?}");
        let obituary = view.obituary.unwrap();
        let why = "the login of codex has ended, and could not be renewed";
        assert!(
            obituary.sentence.contains(why) && obituary.sentence.contains("used already"),
            "{obituary:?}"
        );
        let cures: Vec<_> = obituary.cures.iter().map(|hint| hint.command.as_str()).collect();
        assert_eq!(cures, ["ostler provider login codex"]);
    }
    assert_eq!(fs::read_to_string(&count).unwrap(), "once\n", "nobody tries again at once");
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
    let shown = home.run(&["provider", "ls"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned() + &String::from_utf8_lossy(&shown.stderr);
    assert!(shown.contains("which has ended and could not be renewed"), "{shown}");
    assert!(shown.contains("ostler provider login codex"), "{shown}");
    // Logged in again, the next one begins.
    let again = dir.path().join("auth.json");
    fs::write(&again, codex_login(LONG_AFTER, "renews-9")).unwrap();
    let taken = home.run(&["provider", "login", "codex", "--from", &again.display().to_string()]);
    assert!(taken.status.success(), "{taken:?}");
    let next = begin(&client, 1).await.remove(0);
    wait::until("it to be lent", wait::PATIENCE, || lent(&home, &next).is_some());
    client.stop_session(&next.id.to_string(), true).await.unwrap();
    home.ended(&next.id.to_string()).await;
}

#[tokio::test]
async fn a_profile_s_login_that_has_ended_is_told_with_that_profile_s_cure() {
    let dir = tempfile::tempdir().unwrap();
    let (program, _) =
        counting_program(dir.path(), "echo '{\"id\":\"refresh\",\"result\":{\"account\":null}}'");
    let (home, client) = logged_in(&program, &[]).await;
    let set = home.run(&["config", "set", "providers.codex.profiles.work.login=true"]);
    assert!(set.status.success(), "{set:?}");
    let ended = dir.path().join("auth.json");
    fs::write(&ended, codex_login(LONG_AGO, "renews-5")).unwrap();
    let from = ended.display().to_string();
    let taken = home.run(&["provider", "login", "codex", "--profile", "work", "--from", &from]);
    assert!(taken.status.success(), "{taken:?}");
    fs::write(kept(&home), codex_login(LONG_AFTER, "renews-1")).unwrap();

    let mut wanted = CreateSession::new("shop", "codex");
    wanted.auth_profile = Some("work".parse().unwrap());
    let session = client.create_session(wanted).await.unwrap();
    let obituary = home.ended(&session.id.to_string()).await.obituary.unwrap();
    let cure = "ostler provider login codex --profile work";
    assert!(obituary.sentence.contains("the login of the profile work of codex has ended"), "{obituary:?}");
    assert!(obituary.sentence.contains("was asked for another, and gave none"), "{obituary:?}");
    let cures: Vec<_> = obituary.cures.iter().map(|hint| hint.command.as_str()).collect();
    assert_eq!(cures, [cure]);
    for words in [&["provider", "show", "codex"][..], &["provider", "ls"], &["doctor"]] {
        let said = home.run(words);
        let said =
            String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
        assert!(said.contains(cure), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn a_login_that_is_renewed_for_less_than_an_hour_is_lent() {
    let dir = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let fresh = dir.path().join("fresh.json");
    fs::write(&fresh, codex_login(i64::try_from(now.as_secs()).unwrap() + 900, "renews-2")).unwrap();
    let renewal = format!(
        "cp {} $CODEX_HOME/auth.json; echo '{{\"id\":\"refresh\",\"result\":{{}}}}'",
        fresh.display()
    );
    let (program, count) = counting_program(dir.path(), &renewal);
    let (home, client) = logged_in(&program, &[]).await;
    let sessions = begin(&client, 3).await;
    wait::until("all to be lent a login", wait::PATIENCE, || {
        sessions.iter().all(|session| lent(&home, session).is_some())
    });
    assert_eq!(fs::read_to_string(&count).unwrap(), "once\n", "it is renewed once");
    for session in &sessions {
        client.stop_session(&session.id.to_string(), true).await.unwrap();
        home.ended(&session.id.to_string()).await;
    }
}

#[tokio::test]
async fn the_real_codex_renews_its_login_for_all() {
    let Some(program) = programs::find("codex", "the_real_codex_renews_its_login_for_all") else { return };
    let server = FakeOauth::start("renews-1", LONG_AFTER);
    let nobody = "http://127.0.0.1:9";
    let env = [
        ("CODEX_REFRESH_TOKEN_URL_OVERRIDE", server.url()),
        // Whatever else it would ask of the world.
        ("HTTPS_PROXY", nobody.to_owned()),
        ("NO_PROXY", "127.0.0.1".to_owned()),
    ];
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let dir = tempfile::tempdir().unwrap();
    let program = stand_in(dir.path(), &format!("exec {} \"$@\"", program.display()));
    let (home, client) = logged_in(&program, &env).await;
    let sessions = begin(&client, 4).await;
    wait::until("all to be lent a login", wait::PATIENCE * 2, || {
        sessions.iter().all(|session| lent(&home, session).is_some())
    });
    let asked = server.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|(_, granted)| *granted),
        "nobody used one twice: {asked:#?}"
    );
    // It may renew one twice in one go, because it has ended and because it is told to.
    assert!(asked.len() <= 2, "one of them renewed it: {asked:#?}");
    let login: serde_json::Value = serde_json::from_str(&fs::read_to_string(kept(&home)).unwrap()).unwrap();
    assert_eq!(login["tokens"]["refresh_token"], server.valid(), "the next renewal works");
    let tokens: std::collections::BTreeSet<String> =
        sessions.iter().map(|session| lent(&home, session).unwrap()["tokens"].to_string()).collect();
    assert_eq!(tokens.len(), 1, "all have the same");
    assert!(tokens.first().unwrap().contains(&token(LONG_AFTER, &server.valid())), "{tokens:?}");
    for session in &sessions {
        client.stop_session(&session.id.to_string(), true).await.unwrap();
        home.ended(&session.id.to_string()).await;
    }
}

/// How much longer than a renewal needs the first login lasts: longer than a session needs to be started with it.
const LASTS: i64 = 15;

/// Stands for Codex as an agent, too: its model's server refuses what it was lent at first once that is to be renewed, and
/// takes any other.
fn agent_of_a_server_that_refuses(dir: &Path, old: &str, refused_from: i64, fresh: &Path) -> PathBuf {
    let program = dir.join("codex");
    let script = r#"#!/bin/sh
[ "$1" = --version ] && echo codex-cli 99.0.0 && exit
if [ -z "$OSTLER_SESSION_ID" ]; then
    cp FRESH "$CODEX_HOME/auth.json"; echo '{"id":"refresh","result":{}}'; exec cat > /dev/null
fi
mkdir -p "$CODEX_HOME/sessions"; touch "$CODEX_HOME/sessions/rollout-thread-1.jsonl"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"id":\("[^"]*"\),.*/\1/p')
    case "$line" in
    *'"method":"initialize"'*) echo "{\"id\":$id,\"result\":{}}" ;;
    *'"method":"thread/start"'*|*'"method":"thread/resume"'*)
        echo "{\"id\":$id,\"result\":{\"thread\":{\"id\":\"thread-1\"},\"model\":\"m\"}}" ;;
    *'"method":"turn/start"'*)
        echo "{\"id\":$id,\"result\":{}}"
        echo '{"method":"turn/started","params":{"threadId":"thread-1","turn":{"id":"t1"}}}'
        if grep -q 'OLD' "$CODEX_HOME/auth.json"; then
            while [ "$(date +%s)" -lt FROM ]; do sleep 0.2; done
            echo '{"method":"error","params":{"threadId":"thread-1","turnId":"t1","willRetry":false,"error":{"message":"token expired","codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}}}'
        else
            echo '{"method":"item/completed","params":{"threadId":"thread-1","turnId":"t1","item":{"id":"i1","type":"agentMessage","text":"went on"}}}'
            echo '{"method":"turn/completed","params":{"threadId":"thread-1","turn":{"id":"t1","status":"completed"}}}'
        fi ;;
    esac
done
"#;
    let script = script
        .replace("FRESH", &fresh.display().to_string())
        .replace("OLD", old)
        .replace("FROM", &refused_from.to_string());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test]
async fn a_session_that_outlives_its_lent_login_goes_on_with_a_renewed_one() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = dir.path().join("fresh.json");
    fs::write(&fresh, codex_login(LONG_AFTER, "renews-2")).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let refused_from = i64::try_from(now.as_secs()).unwrap() + LASTS;
    let renewed_before = i64::try_from(ostler_domain::limits::LOGIN_RENEWED_BEFORE.as_secs()).unwrap();
    let expires = refused_from + renewed_before;
    let old = token(expires, "renews-1");
    let program = agent_of_a_server_that_refuses(dir.path(), &old, refused_from, &fresh);
    let (home, client) = logged_in(&program, &[]).await;
    fs::write(kept(&home), codex_login(expires, "renews-1")).unwrap();

    let mut wanted = CreateSession::new("shop", "codex");
    wanted.initial_message = Some("sweep the yard".to_owned());
    let first = client.create_session(wanted).await.unwrap();
    let ended = home.ended(&first.id.to_string()).await;
    assert_eq!(ended.outcome, Some(Outcome::TurnFailed), "{ended:#?}");
    assert_eq!(
        ended.obituary.unwrap().sentence,
        "Ended by Ostler: the login that it was lent has ended.",
        "nobody is sent to log in again"
    );
    let lent_until = |events: &[ostler_domain::Recorded]| {
        events.iter().find_map(|recorded| match &recorded.event {
            Event::LoginLent(lent) => Some(lent.until.micros() / 1_000_000),
            _ => None,
        })
    };
    assert_eq!(lent_until(&home.events(&client, first.id).await), Some(expires));

    let went_on =
        |view: &View| view.continues == Some(first.id) && view.last_completion.as_deref() == Some("went on");
    let next = home.reaches(&first.name.to_string(), "the turn that is tried again to end", went_on).await;
    assert_eq!(next.conversation, first.conversation);
    let events = home.events(&client, next.id).await;
    assert_eq!(lent_until(&events), Some(LONG_AFTER));
    assert!(
        !events.iter().any(|recorded| matches!(recorded.event, Event::ContextReset(_))),
        "the program's own record is gone on with"
    );
    let told = events.iter().find_map(|recorded| match &recorded.event {
        Event::MessageAccepted(accepted) => Some(accepted.message.text.clone()),
        _ => None,
    });
    assert!(told.unwrap().contains("go on where you were stopped"));
    client.stop_session(&next.id.to_string(), true).await.unwrap();
    home.ended(&next.id.to_string()).await;
}
