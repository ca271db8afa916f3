//! What agent programs did outside: imported once, read only, gone on with by one at a time.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use ostler_client::{AddCampaign, Client, GetUsage, SendMessage, reply::UsageBy};
use ostler_domain::{
    Event, Kind, Reason, Usage,
    history::{FileNews, Import, News, Source, Store, Totals, Verdict},
    query::{Page, Scope, SessionFilter},
    session::{Outcome, Status, View},
};
use ostler_testkit::TestHome;
use serde_json::{Value, json};

use crate::OSTLER;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../providers/tests/recordings/history");

/// A store of Claude Code's with the recorded dialogue in it.
fn claude_store(home: &TestHome) -> PathBuf {
    let dir = home.path().join("outside/.claude");
    let project = dir.join("projects/-campaign");
    fs::create_dir_all(&project).unwrap();
    fs::copy(Path::new(RECORDED).join("claude/session.jsonl"), dialogue(&dir)).unwrap();
    dir
}

const DIALOGUE: &str = "5e550000-0000-4000-8000-000000000001";

fn dialogue(dir: &Path) -> PathBuf {
    dir.join("projects/-campaign").join(format!("{DIALOGUE}.jsonl"))
}

fn import(source: Source, dir: &Path) -> Import {
    let store = Store { source, dir: dir.to_string_lossy().into_owned() };
    Import { stores: vec![store], ..Import::default() }
}

async fn imported(client: &Client, import: &Import) -> (Vec<FileNews>, Totals) {
    let mut news = client.import_history(import).await.unwrap();
    let (mut files, mut totals) = (Vec::new(), None);
    while let Some(news) = news.next().await {
        match news.unwrap() {
            News::Found(_) => {}
            News::File(file) => files.push(*file),
            News::Done(done) => totals = Some(done),
        }
    }
    (files, totals.unwrap())
}

async fn all(client: &Client) -> Vec<View> {
    let filter = SessionFilter { scope: Scope::All, ..SessionFilter::default() };
    client.sessions(&filter, Page::of(1_000, None)).await.unwrap().rows
}

fn said(at: u32, text: &str) -> Value {
    json!({
        "type": "user", "sessionId": DIALOGUE, "cwd": "/campaign", "isSidechain": false,
        "timestamp": format!("2026-11-15T19:00:{at:02}.000Z"), "message": {"role": "user", "content": text},
    })
}

fn answered(at: u32, id: &str, text: &str) -> Value {
    json!({
        "type": "assistant", "sessionId": DIALOGUE, "cwd": "/campaign", "isSidechain": false, "requestId": "r",
        "timestamp": format!("2026-11-15T19:00:{at:02}.000Z"),
        "message": {
            "id": id, "model": "claude-sonnet-5", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 100, "output_tokens": 10},
        },
    })
}

fn append(path: &Path, lines: &[Value]) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
}

const RECORDED_USAGE: Usage =
    Usage { input: 45, cache_read: 9_300, cache_write: 3_230, output: 133, reasoning: 0 };

#[tokio::test]
async fn a_dialogue_comes_in_once_and_what_is_added_to_it_once() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = claude_store(&home);
    // Asked first, it only says what would come.
    let dry = Import { dry_run: true, ..import(Source::Claude, &dir) };
    let (files, totals) = imported(&client, &dry).await;
    assert_eq!((files[0].verdict, totals.new, totals.events), (Verdict::New, 1, 0));
    assert!(all(&client).await.is_empty());

    let (files, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((files[0].verdict, totals.unreadable, totals.usage), (Verdict::New, 0, RECORDED_USAGE));
    let view = client.session(DIALOGUE).await.unwrap();
    assert_eq!(Some(view.id), files[0].session);
    assert_eq!((view.status, view.outcome, view.turns), (Status::Stopped, Some(Outcome::Done), 2));
    assert_eq!((view.usage, view.provider.as_str()), (RECORDED_USAGE, "claude-code"));
    let origin = view.imported.clone().unwrap();
    assert_eq!((origin.source, origin.dialogue.as_str(), origin.from), (Source::Claude, DIALOGUE, 0));
    // It happened then, and is listed, counted and found like everything else.
    assert!(view.ended_at.unwrap().rfc3339().starts_with("2026-11-15T18:12:"));
    let request = GetUsage { by: Some(UsageBy::Day), ..GetUsage::default() };
    let by_day = client.usage(&request).await.unwrap();
    assert_eq!((by_day.rows[0].key.as_str(), by_day.rows[0].usage), ("2026-11-15", RECORDED_USAGE));
    let found = home.run(&["search", "\"You are welcome\""]);
    assert!(String::from_utf8_lossy(&found.stdout).contains("You are welcome"), "found at once: {found:?}");
    let transcript = home.run(&["transcript", "show", DIALOGUE]);
    assert!(String::from_utf8_lossy(&transcript.stdout).contains("You are welcome."));

    // Again, nothing; then only what was added, in a session that continues the other.
    let (files, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((files[0].verdict, totals.events), (Verdict::Same, 0));
    append(&dialogue(&dir), &[said(1, "one more"), answered(2, "msg_new", "of course")]);
    // A line that is not whole yet waits.
    let mut file = fs::OpenOptions::new().append(true).open(dialogue(&dir)).unwrap();
    file.write_all(b"{\"type\":\"user\",").unwrap();
    let (files, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((files[0].verdict, totals.lines, totals.calls), (Verdict::Grown, 2, 1));
    let next = client.session(&files[0].session.unwrap().to_string()).await.unwrap();
    assert_eq!((next.continues, next.chain, next.conversation), (Some(view.id), view.id, view.conversation));
    assert_eq!((next.turns, next.usage.input), (1, 100));
    let sum = client.usage(&GetUsage::default()).await.unwrap().total;
    assert_eq!(sum.usage.input, RECORDED_USAGE.input + 100);
    assert_eq!(all(&client).await.len(), 2);
    let events = home.events(&client, view.id).await;
    assert_eq!(
        events.last().map(|event| event.event.kind()),
        Some(Kind::SessionStopped),
        "it has not changed"
    );
    let checked = home.run(&["db", "check", "--full"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    // Everything derived can be made anew from the log.
    let before = all(&client).await;
    assert!(home.run(&["db", "reindex"]).status.success());
    assert_eq!(all(&client).await, before);
    let (files, _) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!(files[0].verdict, Verdict::Same);
}

#[tokio::test]
async fn a_call_counts_once_however_many_files_tell_of_it() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = claude_store(&home);
    // Gone on with, it was copied into a file of its own, and went on there.
    let copy = dir.join("projects/-campaign/5e550000-0000-4000-8000-00000000000f.jsonl");
    fs::copy(dialogue(&dir), &copy).unwrap();
    append(&copy, &[said(1, "more"), answered(2, "msg_new", "yes")]);
    let (_, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((totals.new, totals.calls, totals.repeated), (2, 5, 4));
    let sum = client.usage(&GetUsage::default()).await.unwrap().total;
    assert_eq!(sum.usage.input, RECORDED_USAGE.input + 100);
    // Also where the one was imported long before the other.
    let again = dir.join("projects/-campaign/5e550000-0000-4000-8000-0000000000ff.jsonl");
    fs::copy(&copy, again).unwrap();
    let (_, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((totals.new, totals.calls, totals.repeated), (1, 0, 5));
}

#[tokio::test]
async fn a_file_that_was_cut_or_rewritten_is_named_and_left_alone() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = claude_store(&home);
    imported(&client, &import(Source::Claude, &dir)).await;
    let text = fs::read_to_string(dialogue(&dir)).unwrap();
    let half: String = text.split_inclusive('\n').take(20).collect();
    fs::write(dialogue(&dir), half).unwrap();
    let (files, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((files[0].verdict, totals.changed, totals.events), (Verdict::Cut, 1, 0));
    fs::write(dialogue(&dir), format!("{}\n{text}", said(1, "another beginning"))).unwrap();
    let (files, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((files[0].verdict, totals.changed, totals.events), (Verdict::Rewritten, 1, 0));
    assert_eq!(all(&client).await.len(), 1);
}

#[tokio::test]
async fn broken_lines_are_counted_and_stop_nothing() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = claude_store(&home);
    let mut text = fs::read(dialogue(&dir)).unwrap();
    text.extend_from_slice(b"\0\0\0\0\0\0\n{\"type\":\"user\",\"mess\nnot json \xff\xfe\n");
    let last = format!("{}\n", said(1, "still here"));
    text.extend_from_slice(last.as_bytes());
    fs::write(dialogue(&dir), text).unwrap();
    let (files, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((files[0].verdict, totals.unreadable, totals.failed), (Verdict::New, 3, 0));
    let events = home.events(&client, files[0].session.unwrap()).await;
    assert_eq!(events.iter().filter(|event| event.event.kind() == Kind::Opaque).count(), 3);
    let said = |event: &Event| matches!(event, Event::MessageAccepted(accepted) if accepted.message.text == "still here");
    assert!(events.iter().any(|event| said(&event.event)));
}

#[tokio::test]
async fn codex_and_openclaw_come_in_with_what_is_noted_about_them() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let codex = home.path().join("outside/.codex");
    fs::create_dir_all(codex.join("sessions/2026/11/16")).unwrap();
    let thread = "01a1e5cf-056d-7732-a866-52276e3dc640";
    let rollout = codex.join(format!("sessions/2026/11/16/rollout-2026-11-16T19-21-52-{thread}.jsonl"));
    fs::copy(Path::new(RECORDED).join("codex/rollout.jsonl"), rollout).unwrap();
    let (_, totals) = imported(&client, &import(Source::Codex, &codex)).await;
    let expected = Usage { input: 840, cache_read: 160, cache_write: 0, output: 40, reasoning: 12 };
    assert_eq!((totals.new, totals.usage, totals.unreadable), (1, expected, 0));
    let view = client.session(thread).await.unwrap();
    assert_eq!((view.provider.as_str(), view.turns, view.usage), ("codex", 2, expected));

    let claw = home.path().join("outside/.openclaw");
    let sessions = claw.join("agents/main/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let id = "aaaaaaaa-0000-4000-8000-000000000001";
    fs::copy(Path::new(RECORDED).join("openclaw/handwritten.jsonl"), sessions.join(format!("{id}.jsonl")))
        .unwrap();
    fs::copy(Path::new(RECORDED).join("openclaw/file-store.jsonl"), sessions.join("orphan.jsonl")).unwrap();
    let index = json!({
        "agent:main:Discord:dm:USER": {
            "sessionId": id, "updatedAt": 1_793_527_206_000_i64, "queueMode": "steer-backlog", "fromTheFuture": {"x": [1]},
        },
    });
    fs::write(sessions.join("sessions.json"), index.to_string()).unwrap();
    let (_, totals) = imported(&client, &import(Source::OpenClaw, &claw)).await;
    assert_eq!((totals.new, totals.failed), (2, 0));
    let view = client.session(id).await.unwrap();
    let conversation = client.conversation(&view.conversation.to_string()).await.unwrap();
    assert_eq!(conversation.key.as_str(), "agent:main:Discord:dm:USER");
    assert_eq!(conversation.notes.entry.other["fromTheFuture"], json!({"x": [1]}));
    assert!(conversation.notes.entry.is_imported());
    let orphan = client.session("orphan").await.unwrap();
    let orphan = client.conversation(&orphan.conversation.to_string()).await.unwrap();
    assert_eq!(orphan.key.as_str(), "agent:main:recovered:orphan");
}

#[tokio::test]
async fn two_agents_rows_of_one_key_come_in_and_a_broken_index_is_said() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let claw = home.path().join("outside/.openclaw");
    for (agent, id) in
        [("main", "aaaaaaaa-0000-4000-8000-000000000001"), ("old", "bbbbbbbb-0000-4000-8000-000000000002")]
    {
        let sessions = claw.join("agents").join(agent).join("sessions");
        fs::create_dir_all(&sessions).unwrap();
        let text = fs::read_to_string(Path::new(RECORDED).join("openclaw/handwritten.jsonl")).unwrap();
        let text = text.replace("aaaaaaaa-0000-4000-8000-000000000001", id);
        fs::write(sessions.join(format!("{id}.jsonl")), text).unwrap();
        // One row has a dialogue, the other has none yet.
        let rows = json!({"agent:main:main": {"sessionId": id}, (format!("agent:{agent}:later")): {"sessionId": format!("{agent}-later")}});
        fs::write(sessions.join("sessions.json"), rows.to_string()).unwrap();
    }
    let (_, totals) = imported(&client, &import(Source::OpenClaw, &claw)).await;
    assert_eq!((totals.new, totals.failed), (2, 0), "a row without a dialogue is no session");
    fs::write(claw.join("agents/old/sessions/sessions.json"), "{\"agent:main").unwrap();
    let (news, totals) = imported(&client, &import(Source::OpenClaw, &claw)).await;
    assert_eq!(totals.failed, 1);
    assert!(news.iter().any(|news| format!("{news:?}").contains("cannot be read as an index")), "{news:?}");
}

/// A row of OpenClaw's names the vendor of a model where a conversation here names a provider.
#[tokio::test]
async fn a_vendor_in_a_row_is_no_provider_and_hinders_nobody() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let sessions = home.path().join("outside/.openclaw/agents/main/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let id = "aaaaaaaa-0000-4000-8000-000000000001";
    let text = fs::read_to_string(Path::new(RECORDED).join("openclaw/handwritten.jsonl")).unwrap();
    let root = json!(home.campaign_dir().to_string_lossy()).to_string();
    fs::write(sessions.join(format!("{id}.jsonl")), text.replace("\"/campaign/workspace\"", &root)).unwrap();
    let row = json!({"agent:main:main": {
        "sessionId": id, "providerOverride": "anthropic", "authProfileOverride": "work", "modelOverride": "opus",
    }});
    fs::write(sessions.join("sessions.json"), row.to_string()).unwrap();
    imported(&client, &import(Source::OpenClaw, &home.path().join("outside/.openclaw"))).await;
    let view = client.session(id).await.unwrap();
    let conversation = view.conversation.to_string();
    // What is not about it can be set, and what is said of a provider must be one.
    let named = client.set_conversation(&conversation, vec!["label=Shop".to_owned()]).await.unwrap();
    assert_eq!(named.notes.entry.provider_override.as_deref(), Some("anthropic"), "it is kept as it was");
    let wrong = client.set_conversation(&conversation, vec!["provider=mistral".to_owned()]).await;
    assert_eq!(wrong.unwrap_err().to_refusal().reason, Reason::ProviderUnknown);
    // The session that goes on is one of the program whose dialogue it is, and that is not here.
    let absent = client.restart_session(&view.id.to_string()).await.unwrap_err().to_refusal();
    assert_eq!(absent.reason, Reason::ProviderMissing);
    assert!(absent.message.contains("openclaw"), "{}", absent.message);
    client.set_conversation(&conversation, vec!["provider=script".to_owned()]).await.unwrap();
    let own = client.restart_session(&view.id.to_string()).await.unwrap();
    assert_eq!((own.provider.as_str(), own.continues), ("script", Some(view.id)));
    // The account of the row is still none of ours.
    let again = client.restart_session(&own.id.to_string()).await.unwrap();
    assert_eq!(again.continues, Some(own.id));
}

#[tokio::test]
async fn an_imported_session_is_read_and_nothing_else() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = claude_store(&home);
    imported(&client, &import(Source::Claude, &dir)).await;
    let refused = client
        .send_message(SendMessage {
            who: DIALOGUE.to_owned(),
            text: "hello".to_owned(),
            ..SendMessage::default()
        })
        .await
        .unwrap_err();
    assert_eq!(refused.to_refusal().reason, Reason::Imported);
    let said = home.run(&["send", DIALOGUE, "hello"]);
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(4), "{words}");
    assert!(words.contains("ostler resume"), "{words}");
    for verb in [["pause", DIALOGUE], ["interrupt", DIALOGUE]] {
        assert_eq!(home.run(&verb).status.code(), Some(4), "{verb:?}");
    }
    // Nobody goes on in a directory that was never registered, and importing registers none.
    let refused = home.run(&["resume", DIALOGUE]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("ostler campaign add /campaign"), "{words}");
    // Nor in the directory of Ostler's own in whose campaign it is listed.
    for words in [
        &["run", "-C", "imported", "-p", "script", "hi"][..],
        &["exec", "-C", "imported", "--", "git", "status"],
    ] {
        let refused = home.run(words);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(3), "{words:?}: {said}");
        assert!(said.contains("nobody works there") && said.contains("ostler campaign add"), "{said}");
    }
    assert_eq!(all(&client).await.len(), 1);
}

#[tokio::test]
async fn nobody_goes_on_with_what_somebody_else_has_open() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let work = home.path().join("outside/work");
    fs::create_dir_all(&work).unwrap();
    client.add_campaign(AddCampaign { path: work.to_string_lossy().into_owned(), name: None }).await.unwrap();
    let dir = claude_store(&home);
    let text = fs::read_to_string(dialogue(&dir)).unwrap();
    let text = text.replace("\"cwd\": \"/campaign\"", &format!("\"cwd\": {}", json!(work.to_string_lossy())));
    fs::write(dialogue(&dir), text).unwrap();
    imported(&client, &import(Source::Claude, &dir)).await;
    let view = client.session(DIALOGUE).await.unwrap();
    let campaign = client.campaign(&work.to_string_lossy()).await.unwrap();
    assert_eq!(view.campaign, campaign.id, "it belongs to the campaign around its directory");
    let refusal = || async { client.restart_session(&view.id.to_string()).await.unwrap_err() };
    // A process that was told the dialogue's name.
    let mut outside = std::process::Command::new("sh")
        .args(["-c", "read line", "claude", "--resume", DIALOGUE])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let refused = refusal().await;
    assert_eq!(refused.to_refusal().reason, Reason::SecondWriter);
    assert!(format!("{refused:?}").contains(&outside.id().to_string()), "{refused:?}");
    outside.kill().unwrap();
    outside.wait().unwrap();
    // Nobody is there, but somebody was.
    append(&dialogue(&dir), &[said(1, "said outside")]);
    assert_eq!(refusal().await.to_refusal().reason, Reason::SecondWriter);
}

/// Rows of agents outside are there while somebody watches, and end with whoever watched.
#[tokio::test]
async fn agents_outside_are_rows_for_as_long_as_somebody_watches() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = claude_store(&home);
    let mut news =
        client.import_history(&Import { watch: true, ..import(Source::Claude, &dir) }).await.unwrap();
    while !matches!(news.next().await.unwrap().unwrap(), News::Done(_)) {}
    let live = |view: &View| view.outcome.is_none();
    let view = client.session(DIALOGUE).await.unwrap();
    assert!(live(&view) && view.status == Status::Running, "{view:?}");
    assert!(String::from_utf8_lossy(&home.run(&["ls"]).stdout).contains("outside"));
    append(&dialogue(&dir), &[said(1, "go on")]);
    let working = home.reaches(DIALOGUE, "a turn outside", |view| view.status == Status::Working).await;
    assert_eq!(working.id, view.id, "it is the same session that goes on");
    assert_eq!(home.run(&["stop", DIALOGUE]).status.code(), Some(4));
    // Whoever means many means those of Ostler, and nobody waits for what it cannot hold up.
    for verb in ["stop", "pause", "kill", "interrupt"] {
        let many = home.run(&[verb, "--status", "WORKING", "-y"]);
        let said = String::from_utf8_lossy(&many.stderr);
        assert!(many.status.success() && said.contains("No session fits"), "{verb}: {said}");
    }
    let drained = home.run(&["node", "drain", "--wait", "--timeout", "30s", "--json"]);
    assert!(drained.status.success(), "{drained:?}");
    assert!(home.run(&["node", "drain", "--end"]).status.success());
    // A single import beside it finds what there is, and does not end what is followed; a second watch is refused.
    append(&dialogue(&dir), &[answered(2, "msg_beside", "beside")]);
    let (_, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((totals.files, totals.failed), (1, 0), "{totals:?}");
    assert!(live(&client.session(DIALOGUE).await.unwrap()));
    let watch = Import { watch: true, ..import(Source::Claude, &dir) };
    let mut second = client.import_history(&watch).await.unwrap();
    assert_eq!(second.next().await.unwrap().unwrap_err().to_refusal().reason, Reason::WrongState);
    // Whoever watched goes with the daemon: the next one ends the row, and the next import goes on behind it.
    home.kill_daemon();
    drop(news);
    let client = home.start().await;
    let ended = home.reaches(&view.id.to_string(), "its end", |view| view.outcome.is_some()).await;
    assert_eq!(ended.outcome, Some(Outcome::Done));
    append(&dialogue(&dir), &[answered(3, "msg_new", "gone on")]);
    let (files, _) = imported(&client, &import(Source::Claude, &dir)).await;
    let next = client.session(&files[0].session.unwrap().to_string()).await.unwrap();
    assert_eq!((files[0].verdict, next.continues), (Verdict::Grown, Some(view.id)));
}

/// What comes while it is watched is written at once, also for programs.
#[tokio::test]
async fn whoever_watches_is_told_of_what_comes_when_it_comes() {
    let home = TestHome::started(OSTLER).await;
    let dir = claude_store(&home);
    let from = dir.to_str().unwrap();
    for form in ["table", "jsonl"] {
        let mut watching = home.command(&["import", "claude", "--from", from, "--watch", "-o", form]);
        let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
        // It has looked once when it says what there was.
        assert!(lines.any(|line| line.starts_with('✓') || line.contains("\"kind\":\"done\"")));
        append(&dialogue(&dir), &[said(1, "go on")]);
        assert!(lines.any(|line| line.contains("grown")), "{form}");
        watching.kill().unwrap();
        watching.wait().unwrap();
    }
}

/// With a word in the configuration the daemon follows them itself, and nobody has to keep a terminal open.
#[tokio::test]
async fn the_daemon_follows_agents_outside_by_itself() {
    let home = TestHome::new(OSTLER);
    home.configure("[import]\nwatch = true\n");
    let dir = claude_store(&home);
    let began =
        home.command(&["daemon", "start"]).env("CLAUDE_CONFIG_DIR", &dir).env("HOME", home.path()).output();
    assert!(began.unwrap().status.success());
    let view = home.reaches(DIALOGUE, "the row of an agent outside", |view| view.outcome.is_none()).await;
    append(&dialogue(&dir), &[said(1, "go on")]);
    home.reaches(DIALOGUE, "a turn outside", |view| view.status == Status::Working).await;
    assert!(String::from_utf8_lossy(&home.run(&["ls"]).stdout).contains("outside"));
    // Whoever is refused a second writer is told to import, and can.
    let client = home.client().await;
    let (_, totals) = imported(&client, &import(Source::Claude, &dir)).await;
    assert_eq!((totals.files, totals.failed), (1, 0), "{totals:?}");
    assert_eq!(client.session(DIALOGUE).await.unwrap().id, view.id);
}

/// A picture is kept once, shown where it was, and goes with whoever named it.
#[tokio::test]
async fn pictures_come_in_and_go_out() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let dir = claude_store(&home);
    let data =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let blocks = |at: u32, content: Value| {
        let mut line = said(at, "");
        line["message"]["content"] = content;
        line
    };
    let prompt = blocks(1, json!([{"type": "text", "text": "what is this"}, picture.clone()]));
    let mut asked = answered(2, "msg_look", "");
    asked["message"]["content"] =
        json!([{"type": "tool_use", "id": "toolu_9", "name": "Read", "input": {"file_path": "/a.png"}}]);
    asked["message"]["stop_reason"] = json!("tool_use");
    let result = blocks(3, json!([{"type": "tool_result", "tool_use_id": "toolu_9", "content": [picture]}]));
    append(&dialogue(&dir), &[prompt, asked, result, answered(4, "msg_seen", "a pixel")]);
    let (files, _) = imported(&client, &import(Source::Claude, &dir)).await;
    let id = files[0].session.unwrap();
    let shown: Vec<_> = home
        .events(&client, id)
        .await
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::ImageRecorded(shown) => Some(shown),
            _ => None,
        })
        .collect();
    let [told, answered] = shown.as_slice() else { panic!("{shown:?}") };
    assert!(told.message.is_some() && answered.tool_id.as_deref() == Some("toolu_9"));
    assert_eq!((&told.image, told.image.mime.as_str(), told.image.bytes), (&answered.image, "image/png", 70));
    let out = |args: &[&str]| {
        let output = home.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let text = |args: &[&str]| String::from_utf8(out(args)).unwrap();
    let who = id.to_string();
    let lines = text(&["transcript", "export", &who]);
    assert_eq!(lines.matches(data).count(), 2, "{lines}");
    assert!(lines.contains("what is this"), "what was asked is in it");
    let on_disk = text(&["transcript", "show", &who, "-o", "jsonl"]);
    assert!(!on_disk.contains(data) && on_disk.contains(&told.image.sha256), "{on_disk}");
    let page = text(&["transcript", "export", &who, "--format", "html"]);
    assert_eq!(page.matches(&format!("src=\"data:image/png;base64,{data}\"")).count(), 2, "{page}");
    let words = text(&["transcript", "export", &who, "--markdown"]);
    assert!(words.contains("picture: image/png, 70 bytes") && !words.contains(data), "{words}");
    let bytes = out(&["transcript", "image", &told.image.sha256[..12]]);
    assert_eq!(bytes.len(), 70);
    assert!(bytes.starts_with(b"\x89PNG"));
    assert_eq!(home.run(&["transcript", "image", "0000000000000000"]).status.code(), Some(2));
    out(&["db", "check", "--full"]);
    // What is gone from the disk is a finding.
    let blob =
        home.path().join("home/state/blobs").join(&told.image.sha256[..2]).join(&told.image.sha256[2..]);
    fs::remove_file(blob).unwrap();
    let check = home.run(&["db", "check", "--full"]);
    assert!(!check.status.success());
    assert!(format!("{check:?}").contains("picture"), "{check:?}");
}

/// Killed at any moment, an import is gone on with, and nothing is there twice.
#[tokio::test]
async fn an_import_that_is_killed_is_gone_on_with() {
    let home = TestHome::started(OSTLER).await;
    let mut client = home.client().await;
    let dir = claude_store(&home);
    let mut expected = 0;
    for n in 0..40_u32 {
        let id = format!("5e550000-0000-4000-8000-0000000001{n:02}");
        let mut text = String::new();
        for turn in 0..200_u32 {
            text.push_str(&format!("{}\n", said(turn % 60, &format!("prompt {n} {turn}"))));
            text.push_str(&format!("{}\n", answered(turn % 60, &format!("msg_{n}_{turn}"), "done")));
            expected += 1;
        }
        fs::write(dir.join("projects/-campaign").join(format!("{id}.jsonl")), text.replace(DIALOGUE, &id))
            .unwrap();
    }
    let request = import(Source::Claude, &dir);
    for pause in [5, 20, 60, 150, 300] {
        let mut news = client.import_history(&request).await.unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(pause), async {
            while let Some(Ok(_)) = news.next().await {}
        })
        .await;
        home.kill_daemon();
        client = home.start().await;
    }
    imported(&client, &request).await;
    let mut prompts = Vec::new();
    for view in all(&client).await {
        assert!(view.outcome.is_some(), "{view:?}");
        prompts.extend(home.events(&client, view.id).await.iter().filter_map(
            |recorded| match &recorded.event {
                Event::MessageAccepted(accepted) => Some(accepted.message.text.clone()),
                _ => None,
            },
        ));
    }
    prompts.retain(|text| text.starts_with("prompt "));
    assert_eq!(prompts.len(), expected);
    prompts.sort();
    prompts.dedup();
    assert_eq!(prompts.len(), expected, "none twice");
    let sum = client.usage(&GetUsage::default()).await.unwrap().total;
    assert_eq!(sum.usage.input, RECORDED_USAGE.input + 100 * expected as u64);
}
