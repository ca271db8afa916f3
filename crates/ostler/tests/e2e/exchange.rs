//! What is recorded, as files of other programs: once, and live.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use ostler_client::{Client, CreateSession, SendMessage};
use ostler_domain::{
    conversation::Key,
    history::{Import, News, Source, Store},
    query::{ConversationFilter, Page},
    session::{Attention, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

fn out(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn talk(home: &TestHome, client: &Client, key: &str, text: &str) -> View {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.agent = Some("api".to_owned());
    wanted.key = Some(key.parse::<Key>().unwrap());
    wanted.initial_message = Some(scenario::of(vec![
        scenario::say(text),
        json!({"usage": {"input": 500, "cache_read": 40, "output": 200}}),
    ]));
    let view = client.create_session(wanted).await.unwrap();
    home.reaches(&view.id.to_string(), "its turn to end", |view| {
        view.attention == Some(Attention::Idle) && view.turns == 1
    })
    .await
}

async fn started() -> (TestHome, Client) {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    client.add_agent("shop", &"api".parse().unwrap(), Vec::new()).await.unwrap();
    (home, client)
}

#[tokio::test]
async fn an_export_has_the_files_of_gas_town() {
    let (home, client) = started().await;
    let first = talk(&home, &client, "main", "hello").await;
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let say = SendMessage {
        who: first.conversation.to_string(),
        text: scenario::of(vec![scenario::say("again")]),
        ..SendMessage::default()
    };
    let second = client.send_message(say).await.unwrap().sent().unwrap().session;
    let dir = home.path().join("town");
    let to = dir.to_str().unwrap();
    let said: Value =
        serde_json::from_str(&out(&home, &["export", "--all", "--format", "gastown", "--dir", to, "--json"]))
            .unwrap();
    assert_eq!((&said["sessions"], &said["files"]), (&json!(2), &json!(4)));
    let index = lines(&dir.join(".sessions/index.jsonl"));
    assert_eq!((&index[0]["id"], &index[1]["id"]), (&json!(first.id), &json!(second.id)));
    assert_eq!((&index[0]["outcome"], &index[0]["child_id"]), (&json!("killed"), &json!(second.id)));
    assert_eq!((&index[1]["parent_id"], &index[1]["chain_id"]), (&json!(first.id), &json!(first.id)));
    assert_eq!(index[0]["agent"], "shop/agent/api");
    let one = read(&dir.join(format!(".sessions/{}.json", first.id)));
    assert_eq!(one["ostler"]["usage"]["output"], 200);
    let fed = lines(&dir.join(".events.jsonl"));
    assert_eq!(
        (&fed[0]["type"], &fed[0]["payload"]["session_id"]),
        (&json!("session_start"), &json!(first.id))
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join(".events.jsonl"))), (0o700, 0o600));

    // Once more over its own; never over anybody else's.
    out(&home, &["export", "--all", "--format", "gastown", "--dir", to]);
    fs::write(dir.join(".sessions/mine"), "x").unwrap();
    let refused = home.run(&["export", "--all", "--format", "gastown", "--dir", to]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read_to_string(dir.join(".sessions/mine")).unwrap(), "x");
}

#[tokio::test]
async fn an_export_has_the_store_of_openclaw() {
    let (home, client) = started().await;
    let main = talk(&home, &client, "main", "hello").await;
    let topic = talk(&home, &client, "agent:api:telegram:group:-1:topic:7", "a topic").await;
    let own = home.session(&client, &scenario::of(vec![scenario::say("alone")])).await;
    home.reaches(&own.id.to_string(), "its answer", |view| view.last_completion.is_some()).await;
    out(&home, &["conversation", "set", &main.conversation.to_string(), "thinking_level=high"]);
    let dir = home.path().join("claw");
    let to = dir.to_str().unwrap();
    out(&home, &["export", "-C", "shop", "--format", "openclaw", "--dir", to]);
    let sessions = dir.join("agents/api/sessions");
    let store = read(&sessions.join("sessions.json"));
    let row = &store["agent:api:main"];
    assert_eq!((&row["sessionId"], &row["thinkingLevel"]), (&json!(main.conversation), &json!("high")));
    assert_eq!((&row["totalTokens"], &row["status"]), (&json!(740), &json!("running")));
    let row = &store["agent:api:telegram:group:-1:topic:7"];
    let file = format!("{}-topic-7.jsonl", topic.conversation);
    assert_eq!(row["sessionFile"], json!(file));
    let transcript = lines(&sessions.join(file));
    assert_eq!((&transcript[0]["type"], &transcript[0]["version"]), (&json!("session"), &json!(3)));
    assert!(transcript.iter().any(|line| line["message"]["role"] == "assistant"));
    let alone = read(&dir.join("agents/main/sessions/sessions.json"));
    assert_eq!(
        alone[format!("agent:main:explicit:{}", own.conversation)]["sessionId"],
        json!(own.conversation)
    );
    // One conversation alone.
    let to = home.path().join("one");
    out(&home, &["export", &topic.id.to_string(), "--format", "openclaw", "--dir", to.to_str().unwrap()]);
    assert_eq!(read(&to.join("agents/api/sessions/sessions.json")).as_object().unwrap().len(), 1);
    // An agent that is gone keeps its dialogues under its name, and gives way to whoever has it now.
    for session in [&main, &topic] {
        out(&home, &["stop", "--now", &session.id.to_string()]);
        home.ended(&session.id.to_string()).await;
    }
    let rows = |to: &str| {
        let to = home.path().join(to);
        out(&home, &["export", "-C", "shop", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
        read(&to.join("agents/api/sessions/sessions.json"))
    };
    out(&home, &["agent", "rm", "api"]);
    let gone = rows("gone");
    let row = &gone["agent:api:main"];
    assert_eq!(row["sessionId"], json!(main.conversation));
    assert_eq!((&row["status"], &row["abortedLastRun"]), (&json!("killed"), &json!(false)), "it rested");
    out(&home, &["agent", "add", "api", "-C", "shop"]);
    let now = talk(&home, &client, "main", "hello again").await;
    assert_eq!(rows("anew")["agent:api:main"]["sessionId"], json!(now.conversation));
    let aside = home.path().join(format!("anew/agents/api/sessions/{}.jsonl", main.conversation));
    assert!(aside.exists(), "what was said is there all the same");
    // A turn that did not come to its end is an aborted run, however the session goes on.
    let id = now.id.to_string();
    let text = scenario::of(vec![json!({"sleep_ms": 60_000})]);
    client.send_message(SendMessage { who: id.clone(), text, ..SendMessage::default() }).await.unwrap();
    home.reaches(&id, "to be at work", |view| view.attention == Some(Attention::Working)).await;
    out(&home, &["interrupt", &id]);
    home.reaches(&id, "to rest", |view| view.attention == Some(Attention::Idle) && view.turns == 2).await;
    assert_eq!(rows("aborted")["agent:api:main"]["abortedLastRun"], true);
}

#[tokio::test]
async fn what_came_from_openclaw_goes_out_as_it_was() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let from = home.path().join("outside/.openclaw/agents/main/sessions");
    fs::create_dir_all(&from).unwrap();
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/tests/recordings/history/openclaw");
    let id = "aaaaaaaa-0000-4000-8000-000000000001";
    fs::copy(recorded.join("handwritten.jsonl"), from.join(format!("{id}.jsonl"))).unwrap();
    let row = json!({"sessionId": id, "updatedAt": 1_793_527_206_000_i64, "status": "failed", "fromTheFuture": {"x": [1]}});
    let index = json!({"agent:main:Discord:dm:USER": row});
    fs::write(from.join("sessions.json"), index.to_string()).unwrap();
    let dir = home.path().join("outside/.openclaw").to_string_lossy().into_owned();
    let import = Import { stores: vec![Store { source: Source::OpenClaw, dir }], ..Import::default() };
    let mut news = client.import_history(&import).await.unwrap();
    while let Some(file) = news.next().await {
        file.unwrap();
    }
    let to = home.path().join("claw");
    out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
    let sessions = to.join("agents/main/sessions");
    let read_bytes = |dir: &Path| fs::read(dir.join(format!("{id}.jsonl"))).unwrap();
    assert_eq!(read_bytes(&sessions), read_bytes(&from), "to the byte");
    let store = read(&sessions.join("sessions.json"));
    let out = store["agent:main:Discord:dm:USER"].as_object().unwrap();
    for (field, value) in row.as_object().unwrap() {
        assert_eq!(out.get(field), Some(value), "{field}");
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Every file below a directory, with its bytes.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir.join(below)).unwrap() {
            let entry = entry.unwrap();
            let name = below.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => walk(dir, &name, found),
                false => drop(found.insert(name, fs::read(entry.path()).unwrap())),
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(dir, Path::new(""), &mut found);
    found
}

pub(crate) async fn import_openclaw(client: &Client, dir: &Path, live: bool) -> Vec<News> {
    let store = Store { source: Source::OpenClaw, dir: dir.to_string_lossy().into_owned() };
    let import = Import { stores: vec![store], live, ..Import::default() };
    let mut news = client.import_history(&import).await.unwrap();
    let mut all = Vec::new();
    while let Some(one) = news.next().await {
        all.push(one.unwrap());
    }
    all
}

fn same_trees(from: &Path, to: &Path) {
    let (from, to) = (tree(&from.join("agents")), tree(&to.join("agents")));
    assert_eq!(from.keys().collect::<Vec<_>>(), to.keys().collect::<Vec<_>>());
    for (name, bytes) in &from {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(shown(bytes), shown(&to[name]), "{}", name.display());
    }
}

/// The same, but for what an index says of rows that were changed meanwhile.
fn same_stores(from: &Path, to: &Path) {
    let (from, to) = (tree(&from.join("agents")), tree(&to.join("agents")));
    assert_eq!(from.keys().collect::<Vec<_>>(), to.keys().collect::<Vec<_>>());
    for (name, bytes) in &from {
        let rows = |bytes: &[u8]| -> Vec<String> {
            serde_json::from_slice::<BTreeMap<String, Value>>(bytes).unwrap().into_keys().collect()
        };
        match name.ends_with("sessions.json") {
            true => assert_eq!(rows(bytes), rows(&to[name]), "{}", name.display()),
            false => assert!(*bytes == to[name], "{}", name.display()),
        }
    }
}

/// A recorded store, and what is done to it before it comes in.
type Changed<'a> = (&'a str, &'a dyn Fn(&Path));

/// Import and export give the same files again, to the byte: of the stores that were recorded, and of ones that are damaged.
#[tokio::test]
async fn a_store_of_openclaw_comes_in_and_goes_out_the_same() {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/tests/recordings/history/openclaw");
    let put_aside = |sessions: &Path| {
        let id = "aaaaaaaa-0000-4000-8000-000000000001";
        for (name, text) in [
            (format!("{id}.jsonl.reset.2026-11-15T18-19-54.412Z"), "{\"type\":\"session\"}\n"),
            (
                format!("{id}.checkpoint.11111111-0000-4000-8000-000000000001.jsonl"),
                "{\"type\":\"session\"}\nhalf",
            ),
            (
                "dddddddd-0000-4000-8000-000000000009.jsonl.deleted.2026-11-15T18-19-54.412Z".to_owned(),
                "old\n",
            ),
            ("sessions.json.bak.1793527206000".to_owned(), "{}"),
            ("skills-prompts/sha256/ab/abcd.txt".to_owned(), "a skill"),
        ] {
            let path = sessions.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    };
    let damage = |sessions: &Path| {
        let torn = sessions.join("aaaaaaaa-0000-4000-8000-000000000001.jsonl");
        let mut text = fs::read(&torn).unwrap();
        text.extend_from_slice(b"not json \xff\xfe\n\r\n{\"type\":\"message\",\"id\":\"to");
        fs::write(torn, text).unwrap();
        fs::write(sessions.join("eeeeeeee-0000-4000-8000-000000000001.jsonl"), "").unwrap();
        fs::write(sessions.join("eeeeeeee-0000-4000-8000-000000000002.jsonl"), "{\"type\":\"se").unwrap();
        let header = r#"{"type":"session","version":3,"id":"eeeeeeee-0000-4000-8000-000000000003","timestamp":"2026-11-15T10:00:00.000Z","cwd":"/x"}"#;
        fs::write(sessions.join("eeeeeeee-0000-4000-8000-000000000003.jsonl"), format!("{header}\n"))
            .unwrap();
        let index = sessions.join("sessions.json");
        let text = fs::read_to_string(&index).unwrap();
        // A row that is none, one with values that nobody knows, one that nobody here could have for a key, and two that
        // are one in another case.
        let more = r#"{"odd": 5, "agent:main:slack:dm:u9": {"sessionId":"ffffffff-0000-4000-8000-000000000009","queueMode":"by-mood","sendPolicy":"deny"},
   "agent:main:Discord:DM:user": {"sessionId":"ffffffff-0000-4000-8000-000000000001","updatedAt":1.50},
   "no\tkey": {"sessionId": "x"}, "#;
        fs::write(index, text.replacen('{', more, 1)).unwrap();
    };
    let no_index = |sessions: &Path| fs::write(sessions.join("sessions.json"), "{\"agent:main:ma").unwrap();
    let as_recorded = |_: &Path| {};
    let stores: [Changed<'_>; 5] = [
        ("store-2026.6.11", &as_recorded),
        ("store-handwritten", &as_recorded),
        ("store-handwritten", &put_aside),
        ("store-handwritten", &damage),
        ("store-handwritten", &no_index),
    ];
    for (n, (name, change)) in stores.into_iter().enumerate() {
        let home = TestHome::started(OSTLER).await;
        let client = home.client().await;
        let from = home.path().join("outside/.openclaw");
        let sessions = from.join("agents/main/sessions");
        copy_dir(&recorded.join(name), &sessions);
        change(&sessions);
        let before = tree(&from);
        import_openclaw(&client, &from, false).await;
        out(&home, &["conversation", "ls", "-a"]);
        let to = home.path().join("claw");
        out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
        eprintln!("store {n}, {name}");
        same_trees(&from, &to);
        // Once more brings nothing new, and gives the same again.
        let again = import_openclaw(&client, &from, false).await;
        let News::Done(totals) = again.last().unwrap() else { panic!("{again:?}") };
        // An index that cannot be read is said each time.
        let broken = u64::from(n == 4);
        assert_eq!((totals.new, totals.grown, totals.failed), (0, 0, broken), "store {n}: {again:?}");
        out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
        same_trees(&from, &to);
        assert_eq!(tree(&from), before, "a store is only read");
    }
}

/// A copy of a store brings nothing twice, whatever was changed here since, and all of it goes out once.
#[tokio::test]
async fn a_store_that_is_imported_from_a_second_place_goes_out_once() {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/tests/recordings/history/openclaw");
    for name in ["store-2026.6.11", "store-handwritten"] {
        let home = TestHome::started(OSTLER).await;
        let client = home.client().await;
        let [first, second] = ["first", "second"].map(|name| home.path().join(name));
        for place in [&first, &second] {
            let sessions = place.join("agents/main/sessions");
            copy_dir(&recorded.join(name), &sessions);
            // A row in which nothing was said, and a file of nobody's.
            let index = fs::read_to_string(sessions.join("sessions.json")).unwrap();
            let more = r#"{"agent:main:slack:dm:u9": {"sessionId":"ffffffff-0000-4000-8000-000000000009"}, "#;
            fs::write(sessions.join("sessions.json"), index.replacen('{', more, 1)).unwrap();
            fs::write(sessions.join("eeeeeeee-0000-4000-8000-000000000001.jsonl"), "").unwrap();
        }
        import_openclaw(&client, &first, false).await;
        let filter = ConversationFilter { closed_too: true, ..ConversationFilter::default() };
        let before = client.conversations(&filter, Page::of(100, None)).await.unwrap().rows;
        let key = |key: &str| before.iter().find(|row| row.key.as_str() == key).unwrap().id.to_string();
        out(&home, &["conversation", "set", &key("agent:main:slack:dm:u9"), "thinking_level=high"]);
        let again = import_openclaw(&client, &second, false).await;
        let News::Done(totals) = again.last().unwrap() else { panic!("{again:?}") };
        assert_eq!((totals.new, totals.grown, totals.failed), (0, 0, 0), "{name}: {again:?}");
        let after = client.conversations(&filter, Page::of(100, None)).await.unwrap().rows;
        assert_eq!(after.len(), before.len(), "{name}");
        out(&home, &["conversation", "set", &key("agent:main:slack:dm:u9"), "thinking_level="]);
        let to = home.path().join("claw");
        out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
        same_stores(&first, &to);
        // Where the first is gone, the second is what there is of it, and is followed.
        fs::remove_dir_all(&first).unwrap();
        fs::write(second.join("agents/main/sessions/sessions.json.bak.1793527206000"), "{}").unwrap();
        import_openclaw(&client, &second, false).await;
        out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
        same_stores(&second, &to);
        // So it is with what was said here and has gone out.
        let own = home.session(&client, &scenario::of(vec![scenario::say("alone")])).await;
        home.reaches(&own.id.to_string(), "its answer", |view| view.last_completion.is_some()).await;
        client.stop_session(&own.id.to_string(), false).await.unwrap();
        home.ended(&own.id.to_string()).await;
        let export = ["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()];
        out(&home, &export);
        let once = tree(&to);
        let ours = import_openclaw(&client, &to, false).await;
        let News::Done(totals) = ours.last().unwrap() else { panic!("{ours:?}") };
        assert_eq!((totals.new, totals.grown, totals.failed), (0, 0, 0), "{name}: {ours:?}");
        let all = client.conversations(&filter, Page::of(100, None)).await.unwrap().rows;
        assert_eq!(all.len(), before.len() + 1, "{name}");
        out(&home, &export);
        assert_eq!(tree(&to).keys().collect::<Vec<_>>(), once.keys().collect::<Vec<_>>());
    }
}

/// A row without a transcript is a conversation, and what changes there changes here unless somebody changed it here.
#[tokio::test]
async fn rows_alone_are_conversations_and_follow_the_index() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let from = home.path().join("outside/.openclaw");
    let sessions = from.join("agents/main/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let write = |one: &str, other: &str| {
        let index = json!({
            "agent:main:main": {"sessionId": "a", "updatedAt": 1, "thinkingLevel": one},
            "agent:main:slack:dm:u1": {"sessionId": "b", "updatedAt": 1, "thinkingLevel": other},
        });
        fs::write(sessions.join("sessions.json"), index.to_string()).unwrap();
    };
    write("low", "low");
    import_openclaw(&client, &from, false).await;
    let listed = out(&home, &["conversation", "ls", "--json"]);
    assert!(listed.contains("agent:main:main") && listed.contains("agent:main:slack:dm:u1"), "{listed}");
    let filter = ConversationFilter::default();
    let rows = client.conversations(&filter, Page::of(10, None)).await.unwrap().rows;
    let id = |key: &str| rows.iter().find(|row| row.key.as_str() == key).unwrap().id.to_string();
    let (main, slack) = (id("agent:main:main"), id("agent:main:slack:dm:u1"));
    out(&home, &["conversation", "set", &slack, "thinking_level=high"]);
    write("medium", "medium");
    import_openclaw(&client, &from, false).await;
    let level = async |who: &str| client.conversation(who).await.unwrap().notes.entry.thinking_level;
    assert_eq!(level(&main).await.as_deref(), Some("medium"), "it follows");
    assert_eq!(level(&slack).await.as_deref(), Some("high"), "somebody has set it here");
    // Nothing says which agent would hear anything there.
    let refused = home.run(&["send", &main, "hello"]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{words}");
    assert!(words.contains("nobody has ever worked in conversation"), "{words}");
    // Its transcript comes later, and is the same conversation's.
    let header =
        r#"{"type":"session","version":3,"id":"a","timestamp":"2026-11-15T10:00:00.000Z","cwd":"/x"}"#;
    let line = r#"{"type":"message","id":"1","parentId":null,"timestamp":"2026-11-15T10:00:01.000Z","message":{"role":"user","content":"hello"}}"#;
    fs::write(sessions.join("a.jsonl"), format!("{header}\n{line}\n")).unwrap();
    import_openclaw(&client, &from, false).await;
    assert_eq!(client.session("a").await.unwrap().conversation.to_string(), main);
}

/// What came in stays as it came when its index is damaged later, and follows that again once it can be read.
#[tokio::test]
async fn an_index_that_is_damaged_later_harms_nothing_that_came_before() {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/tests/recordings/history/openclaw");
    // With transcripts, and of rows alone.
    for rows_alone in [false, true] {
        let home = TestHome::started(OSTLER).await;
        let client = home.client().await;
        let from = home.path().join("outside/.openclaw");
        let sessions = from.join("agents/main/sessions");
        copy_dir(&recorded.join("store-handwritten"), &sessions);
        if rows_alone {
            for entry in fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path()) {
                let is_index = entry.file_name().is_some_and(|name| name == "sessions.json");
                if !is_index && entry.is_file() {
                    fs::remove_file(entry).unwrap();
                }
            }
        }
        import_openclaw(&client, &from, false).await;
        let index = fs::read(sessions.join("sessions.json")).unwrap();
        let shown = || out(&home, &["conversation", "ls", "-a", "--json"]);
        let (whole, before) = (tree(&from), shown());
        let exported = |name: &str| {
            let to = home.path().join(name);
            out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
            let files = tree(&to.join("agents"));
            let came =
                whole.iter().filter_map(|(name, text)| Some((name.strip_prefix("agents").ok()?, text)));
            for (name, text) in came {
                let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
                assert_eq!(files.get(name).map(|text| shown(text)), Some(shown(text)), "{}", name.display());
            }
        };
        exported("before");
        for damaged in [&index[..index.len() / 2], b"", b"[]"] {
            fs::write(sessions.join("sessions.json"), damaged).unwrap();
            let news = import_openclaw(&client, &from, false).await;
            let News::Done(totals) = news.last().unwrap() else { panic!("{news:?}") };
            assert_eq!((totals.new, totals.failed), (0, 1), "{news:?}");
            assert_eq!(shown(), before, "nothing of it is another one");
            exported("damaged");
        }
        // Whole again and changed, it is followed.
        let text = String::from_utf8(index).unwrap().replacen(
            "\"sessionId\"",
            "\"label\": \"anew\", \"sessionId\"",
            1,
        );
        fs::write(sessions.join("sessions.json"), text).unwrap();
        import_openclaw(&client, &from, false).await;
        assert!(shown().contains("\"anew\""), "{}", shown());
    }
}

/// A transcript that no row names has one as soon as somebody says something of it.
#[tokio::test]
async fn what_is_noted_of_a_transcript_without_a_row_goes_out() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let from = home.path().join("outside/.openclaw");
    let sessions = from.join("agents/main/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let index = json!({"agent:main:main": {"sessionId": "a", "updatedAt": 1}}).to_string();
    fs::write(sessions.join("sessions.json"), &index).unwrap();
    let header =
        r#"{"type":"session","version":3,"id":"lost","timestamp":"2026-11-15T10:00:00.000Z","cwd":"/x"}"#;
    let line = r#"{"type":"message","id":"1","parentId":null,"timestamp":"2026-11-15T10:00:01.000Z","message":{"role":"user","content":"hello"}}"#;
    fs::write(sessions.join("lost.jsonl"), format!("{header}\n{line}\n")).unwrap();
    import_openclaw(&client, &from, false).await;
    let to = home.path().join("claw");
    let export = || {
        out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
        fs::read_to_string(to.join("agents/main/sessions/sessions.json")).unwrap()
    };
    assert_eq!(export(), index);
    let orphan = client.session("lost").await.unwrap().conversation.to_string();
    out(&home, &["conversation", "set", &orphan, "thinking_level=high", "label=found"]);
    let rows: Value = serde_json::from_str(&export()).unwrap();
    let row = &rows["agent:main:recovered:lost"];
    assert_eq!((&row["label"], &row["thinkingLevel"]), (&json!("found"), &json!("high")), "{rows}");
    assert_eq!((&row["sessionId"], &row["sessionFile"]), (&json!("lost"), &json!("lost.jsonl")), "{rows}");
    assert_eq!(rows["agent:main:main"]["sessionId"], "a", "{rows}");
}

/// What begins anew under the key of a dialogue that came in is a dialogue of its own, also to OpenClaw.
#[tokio::test]
async fn a_reset_of_what_came_in_goes_out_beside_it() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let from = home.path().join("outside/.openclaw");
    let sessions = from.join("agents/main/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let row = json!({"sessionId": "a", "updatedAt": 1, "sdkSessionId": "x", "inputTokens": 9, "channel": "slack", "fastMode": true});
    fs::write(sessions.join("sessions.json"), json!({"agent:main:main": row}).to_string()).unwrap();
    let header =
        r#"{"type":"session","version":3,"id":"a","timestamp":"2026-11-15T10:00:00.000Z","cwd":"/x"}"#;
    let line = r#"{"type":"message","id":"1","parentId":null,"timestamp":"2026-11-15T10:00:01.000Z","message":{"role":"user","content":"hello"}}"#;
    fs::write(sessions.join("a.jsonl"), format!("{header}\n{line}\n")).unwrap();
    import_openclaw(&client, &from, false).await;
    let old = client.session("a").await.unwrap().conversation.to_string();
    let fresh = out(&home, &["conversation", "reset", &old, "--keep-metadata", "-q"]);
    let to = home.path().join("claw");
    out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
    let written = to.join("agents/main/sessions");
    let row = &read(&written.join("sessions.json"))["agent:main:main"];
    assert_eq!((&row["sessionId"], &row["channel"]), (&json!(fresh.trim()), &json!("slack")), "{row}");
    assert_eq!((&row["sdkSessionId"], &row["inputTokens"]), (&Value::Null, &Value::Null), "{row}");
    assert_eq!(row["fastMode"], true, "how it is run stays");
    let names: Vec<String> = tree(&written).into_keys().map(|path| path.display().to_string()).collect();
    assert!(names.iter().any(|name| name.starts_with("a.jsonl.reset.")), "{names:?}");
    assert!(!names.contains(&"a.jsonl".to_owned()), "{names:?}");
}

/// Where OpenClaw is writing, nothing is read unless somebody says so.
#[tokio::test]
async fn a_store_that_somebody_writes_to_is_left_alone() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let from = home.path().join("outside/.openclaw");
    let sessions = from.join("agents/main/sessions");
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../providers/tests/recordings/history/openclaw");
    copy_dir(&recorded.join("store-handwritten"), &sessions);
    let lock = json!({"pid": std::process::id()});
    fs::write(sessions.join("aaaaaaaa-0000-4000-8000-000000000001.jsonl.lock"), lock.to_string()).unwrap();
    let news = import_openclaw(&client, &from, false).await;
    let News::Found(found) = &news[0] else { panic!("{news:?}") };
    let why = found.why_not.clone().unwrap();
    assert!(why.contains(&std::process::id().to_string()) && why.contains("--live"), "{why}");
    let News::Done(totals) = news.last().unwrap() else { panic!("{news:?}") };
    assert_eq!(totals.files, 0);
    let news = import_openclaw(&client, &from, true).await;
    let News::Done(totals) = news.last().unwrap() else { panic!("{news:?}") };
    assert!(totals.new >= 3, "{totals:?}");
    let to = home.path().join("claw");
    out(&home, &["export", "--all", "--format", "openclaw", "--dir", to.to_str().unwrap()]);
    assert!(
        tree(&to).keys().all(|name| !name.to_string_lossy().ends_with(".lock")),
        "locks are nobody's past"
    );
}

/// Waits until the mirror's row of a key is as it should be.
fn reaches(store: &Path, key: &str, what: &str, looks: impl Fn(&Value) -> bool) {
    wait::until(what, wait::PATIENCE, || {
        let rows = fs::read(store).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        rows.is_some_and(|rows| looks(&rows[key]))
    });
}

#[tokio::test]
async fn a_mirror_follows_the_log_and_leaves_what_is_others() {
    let (home, client) = started().await;
    let view = talk(&home, &client, "main", "hello").await;
    let dir = home.path().join("mirror");
    let store: PathBuf = dir.join("agents/api/sessions/sessions.json");
    let inside = home.campaign_dir().join("x");
    let refused = home.run(&["campaign", "set", "shop", &format!("mirror={}", inside.display())]);
    assert_eq!(refused.status.code(), Some(2), "an agent could write there");
    out(&home, &["campaign", "set", "shop", &format!("mirror={}", dir.display())]);
    reaches(&store, "agent:api:main", "the row", |row| row["totalTokens"] == 740);
    let transcript = store.with_file_name(format!("{}.jsonl", view.conversation));
    wait::until("the transcript", wait::PATIENCE, || {
        fs::read_to_string(&transcript).is_ok_and(|text| text.contains("hello"))
    });

    // Somebody else adds a row and a field.
    let mut rows = read(&store);
    rows["agent:api:theirs"] = json!({"sessionId": "abc", "updatedAt": 1});
    rows["agent:api:main"]["pinnedAt"] = json!(7);
    fs::write(&store, rows.to_string()).unwrap();
    client.stop_session(&view.id.to_string(), false).await.unwrap();
    reaches(&store, "agent:api:main", "the end", |row| row["status"] == "killed" && row["pinnedAt"] == 7);
    assert_eq!(read(&store)["agent:api:main"]["abortedLastRun"], false, "it rested");
    assert_eq!(read(&store)["agent:api:theirs"]["sessionId"], "abc");

    // A lock is waited for.
    let lock = store.with_extension("json.lock");
    // The daemon's own goes a moment after the file is there.
    wait::until("the daemon to let go of its lock", wait::PATIENCE, || !lock.exists());
    fs::write(&lock, "{}").unwrap();
    out(&home, &["conversation", "label", &view.conversation.to_string(), "Login"]);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_ne!(read(&store)["agent:api:main"]["label"], "Login");
    fs::remove_file(&lock).unwrap();
    reaches(&store, "agent:api:main", "the label", |row| row["label"] == "Login");

    // What is closed has no row.
    out(&home, &["conversation", "archive", &view.conversation.to_string()]);
    reaches(&store, "agent:api:main", "the row to go", Value::is_null);
    assert_eq!(read(&store)["agent:api:theirs"]["sessionId"], "abc");
}

#[tokio::test]
async fn a_damaged_file_of_a_mirror_holds_up_no_other() {
    let (home, client) = started().await;
    talk(&home, &client, "main", "hello").await;
    // Ordered by name, it comes after the one that is damaged.
    client.add_agent("shop", &"bob".parse().unwrap(), vec!["provider=script".to_owned()]).await.unwrap();
    let dir = home.path().join("mirror");
    let damaged = dir.join("agents/api/sessions/sessions.json");
    fs::create_dir_all(damaged.parent().unwrap()).unwrap();
    fs::write(&damaged, "not json").unwrap();
    out(&home, &["campaign", "set", "shop", &format!("mirror={}", dir.display())]);
    out(&home, &["send", "bob", "hello"]);
    let store = dir.join("agents/bob/sessions/sessions.json");
    reaches(&store, "agent:bob:main", "the row of another agent", Value::is_object);
    assert_eq!(fs::read_to_string(&damaged).unwrap(), "not json");
    let log = String::from_utf8(home.run(&["daemon", "logs"]).stdout).unwrap();
    assert!(log.contains(damaged.to_str().unwrap()), "{log}");
}

#[tokio::test]
async fn a_mirror_catches_up_after_a_daemon_that_was_killed() {
    let (home, client) = started().await;
    let view = talk(&home, &client, "main", "hello").await;
    let dir = home.path().join("mirror");
    let store: PathBuf = dir.join("agents/api/sessions/sessions.json");
    home.kill_daemon();
    let mut daemon = home
        .command(&["daemon", "run"])
        .env("OSTLER_FAULT", "mirror:1")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait::until("the daemon", wait::PATIENCE, || home.daemon().is_some());
    out(&home, &["campaign", "set", "shop", &format!("mirror={}", dir.display())]);
    wait::until("the daemon to die at the fault", wait::PATIENCE, || daemon.try_wait().unwrap().is_some());
    // Half of a file that somebody else was writing is not written over.
    let whole = fs::read(&store).unwrap();
    fs::write(&store, &whole[..whole.len() / 2]).unwrap();
    home.start().await;
    out(&home, &["conversation", "label", &view.conversation.to_string(), "Login"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(fs::read(&store).unwrap(), &whole[..whole.len() / 2]);
    fs::write(&store, &whole).unwrap();
    reaches(&store, "agent:api:main", "the label", |row| row["label"] == "Login");
}
