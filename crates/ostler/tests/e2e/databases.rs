//! What OpenClaw keeps in databases, since 2026.9.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ostler_client::Client;
use ostler_domain::{
    history::{FileNews, News, Verdict},
    query::{ConversationFilter, Page},
};
use ostler_testkit::TestHome;

use crate::{OSTLER, exchange::import_openclaw};

/// Made of rows that 2026.9.6 wrote.
const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../providers/tests/recordings/history/openclaw/store-2026.9.6/openclaw-agent.bin"
);
const LINES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../providers/tests/recordings/history/openclaw/version-4.jsonl");
const DIALOGUE: &str = "71ce2e23-d045-44fe-87e0-7be031b9dc08";

fn store(home: &TestHome) -> PathBuf {
    let dir = home.path().join("outside/.openclaw");
    fs::create_dir_all(dir.join("agents/main/agent")).unwrap();
    dir
}

fn database(store: &Path) -> PathBuf {
    store.join("agents/main/agent/openclaw-agent.sqlite")
}

async fn files(client: &Client, store: &Path) -> Vec<FileNews> {
    let news = import_openclaw(client, store, false).await;
    news.into_iter()
        .filter_map(|news| match news {
            News::File(file) => Some(*file),
            News::Found(found) => {
                assert_eq!(found.why_not, None);
                None
            }
            News::Done(_) => None,
        })
        .collect()
}

#[tokio::test]
async fn dialogues_of_a_database_come_in_once_with_their_rows_and_every_line() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let store = store(&home);
    fs::copy(RECORDED, database(&store)).unwrap();
    let before = fs::read(database(&store)).unwrap();
    let read = files(&client, &store).await;
    let new: Vec<_> =
        read.iter().filter(|file| file.verdict == Verdict::New && file.read.lines > 0).collect();
    assert_eq!(new.len(), 2, "{read:?}");
    let whole = new.iter().find(|file| file.dialogue == DIALOGUE).unwrap();
    let recorded = fs::read_to_string(LINES).unwrap();
    assert_eq!((whole.read.lines, whole.read.unreadable), (recorded.lines().count() as u64, 0));
    // The row says by which key it is known, and those without a transcript are conversations too.
    let session = client.session(DIALOGUE).await.unwrap();
    let conversation = client.conversation(&session.conversation.to_string()).await.unwrap();
    assert_eq!(conversation.key.as_str(), "agent:main:campaign-one");
    assert_eq!(conversation.notes.entry.label.as_deref(), Some("campaign one"));
    let all = client.conversations(&ConversationFilter::default(), Page::of(20, None)).await.unwrap().rows;
    assert_eq!(all.len(), 5, "{all:?}");
    // Nothing was written where OpenClaw works, and nothing comes in twice.
    assert_eq!(fs::read(database(&store)).unwrap(), before);
    assert_eq!(fs::read_dir(store.join("agents/main/agent")).unwrap().count(), 1);
    assert!(files(&client, &store).await.iter().all(|file| file.verdict == Verdict::Same));
    let said = home.run(&["import", "openclaw", "--from", store.to_str().unwrap()]);
    assert!(said.status.success(), "{said:?}");
    // It goes out in the form that OpenClaw takes in again, line by line.
    let out = home.path().join("out");
    let exported = home.run(&["export", "--all", "--format", "openclaw", "--dir", out.to_str().unwrap()]);
    assert!(exported.status.success(), "{exported:?}");
    let lines = fs::read_to_string(out.join(format!("agents/main/sessions/{DIALOGUE}.jsonl"))).unwrap();
    assert_eq!(lines, recorded);
}

#[tokio::test]
async fn what_openclaw_keeps_in_its_database_is_said_to_be_unread() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let from = home.path().join("outside/.openclaw");
    fs::create_dir_all(from.join("agents/main/agent")).unwrap();
    fs::write(from.join("agents/main/agent/openclaw-agent.sqlite"), "SQLite format 3").unwrap();
    let news = import_openclaw(&client, &from, false).await;
    let News::Found(found) = &news[0] else { panic!("{news:?}") };
    assert!(found.why_not.as_ref().is_some_and(|why| why.contains("openclaw-agent.sqlite")), "{found:?}");
    let said = home.run(&["import", "openclaw", "--from", from.to_str().unwrap()]);
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(words.contains("nothing: what OpenClaw keeps in openclaw-agent.sqlite"), "{words}");
}
