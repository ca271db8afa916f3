//! P14: the memory of work: conversations found or made, messages taken, work handed on, and histories brought in.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use ostler_client::{AddCampaign, Client, CreateSession, SendMessage};
use ostler_domain::{
    conversation::Key,
    handoff::Wish,
    history::{Import, News, Source, Store},
    home::Home,
};
use rusqlite::{Connection, params};

use super::{Bench, runtime};
use crate::{
    Outcome,
    report::{Goal, Row, Sample, Section, Unit, percentile, say},
    rig::{daemon::Daemon, raw::Raw, timed::milliseconds},
};

/// Of each kind in a round.
const TIMES: usize = 200;
const HANDED_ON: usize = 15;
/// Dialogues of the store that is imported, each with the size of a recorded one.
const DIALOGUES: usize = 2_000;
const RECORDED: &str =
    include_str!("../../../crates/providers/tests/recordings/history/claude/session.jsonl");
/// Names in it that are another dialogue's in each copy.
const OWN_ID: &str = "5e550000-0000-4000-8000-000000000001";
const CALL_ID: &str = "msg_fake_";
/// An agent that works until it is stopped, and one that has nothing to do.
const BUSY: &str = r#"{"steps":[{"sleep_ms":3600000}]}"#;
const BRIEF: &str = r#"{"steps":[{"say":"here"}]}"#;

pub(super) fn measure(bench: &Bench) -> Outcome<Section> {
    let runtime = runtime()?;
    // Before anything is asynchronous: filling waits on plain threads.
    let home = bench.large_home()?;
    let mut sides = Sides::default();
    for round in 1..=bench.rounds {
        runtime.block_on(sides.measure(bench, &home, round))?;
    }
    let Sides { opened, inserted, found, looked_up, sent, written, handed_on, created, imported, parsed } =
        sides;
    let ms = |values| Sample::new(Unit::Milliseconds, values);
    let rate = |values| Sample::new(Unit::PerSecond, values);
    let stored = bench.large_sessions();
    Ok(Section {
        name: "P14",
        rows: vec![
            Row::new(format!("get-or-create of a conversation that is new, p50, {stored} sessions; raw is a durable INSERT … ON CONFLICT"), ms(opened), Goal::RatioAtMost(3.0)).beside(ms(inserted)),
            Row::new("the same of one that is there, p50; raw is the lookup by key", ms(found), Goal::Shown).beside(ms(looked_up)),
            Row::new("a message to a busy session, durable, p50; raw is a single durable insert", ms(sent), Goal::RatioAtMost(3.0)).beside(ms(written)),
            Row::new("handing on what an ended session did, p50; raw is a new session of the same campaign", ms(handed_on), Goal::RatioAtMost(2.0)).beside(ms(created)),
            Row::new(format!("import of {DIALOGUES} dialogues of 27 kB, dialogues/s; raw reads each line as JSON and keeps nothing"), rate(imported), Goal::Shown).beside(rate(parsed)),
        ],
        notes: vec!["Ours are whole calls of the library to a daemon, one after the other. An import makes events, sessions, usage and the search index of what it reads.".to_owned()],
    })
}

/// Medians of the rounds, or rates, ours and raw.
#[derive(Default)]
struct Sides {
    opened: Vec<f64>,
    inserted: Vec<f64>,
    found: Vec<f64>,
    looked_up: Vec<f64>,
    sent: Vec<f64>,
    written: Vec<f64>,
    handed_on: Vec<f64>,
    created: Vec<f64>,
    imported: Vec<f64>,
    parsed: Vec<f64>,
}

impl Sides {
    async fn measure(&mut self, bench: &Bench, home: &Home, round: usize) -> Outcome<()> {
        let desk = Desk::open(bench, home, round).await?;
        let keys: Vec<Key> =
            (0..TIMES).map(|n| format!("round:{round}:{n}").parse()).collect::<Result<_, _>>()?;
        self.opened.push(desk.conversations(&keys).await?);
        self.found.push(desk.conversations(&keys).await?);
        let raw = RawConversations::create(&bench.dir)?;
        self.inserted.push(raw.insert(&keys)?);
        self.looked_up.push(raw.look_up(&keys)?);
        self.sent.push(desk.messages().await?);
        let mut durable = Raw::create(&bench.dir)?.latencies(100, Duration::from_secs(3))?;
        self.written.push(percentile(&mut durable, 50.0));
        let (handed_on, created) = desk.handoffs().await?;
        self.handed_on.push(handed_on);
        self.created.push(created);
        desk.daemon.stop().await?;
        let (imported, parsed) = import(bench).await?;
        self.imported.push(imported);
        self.parsed.push(parsed);
        say(&format!(
            "  round {round}: get-or-create {:.2} ms, there {:.2}, message {:.2}, handed on {handed_on:.2} (new {created:.2}), import {imported:.0}/s of {parsed:.0}/s",
            self.opened[round - 1],
            self.found[round - 1],
            self.sent[round - 1]
        ));
        Ok(())
    }
}

/// A daemon with a long history, and an agent in a campaign of it.
struct Desk {
    daemon: Daemon,
    client: Client,
    campaign: String,
    agent: String,
}

impl Desk {
    async fn open(bench: &Bench, home: &Home, round: usize) -> Outcome<Self> {
        let dir = bench.dir.join("campaign");
        fs::create_dir_all(&dir)?;
        let campaign = dir.to_str().ok_or("the directory has a name that is not text")?.to_owned();
        let ready = |client: Client| async move { client.status().await.map(|_| client) };
        let (daemon, client) = Daemon::answering(&bench.ostler, home, ready).await?;
        let campaign = match client.campaign(&campaign).await {
            Ok(there) => there,
            Err(_) => client.add_campaign(AddCampaign { path: campaign, name: None }).await?,
        };
        // One of its own for each run: what an earlier one made is there already.
        let name = format!("desk-{}-{round}", std::process::id()).parse()?;
        let agent =
            client.add_agent(campaign.name.as_str(), &name, vec!["provider=script".to_owned()]).await?;
        Ok(Self { daemon, client, campaign: campaign.name.to_string(), agent: agent.id.to_string() })
    }

    async fn conversations(&self, keys: &[Key]) -> Outcome<f64> {
        let mut took = Vec::with_capacity(keys.len());
        for key in keys {
            let began = Instant::now();
            self.client.open_conversation(&self.agent, key).await?;
            took.push(milliseconds(began.elapsed()));
        }
        Ok(percentile(&mut took, 50.0))
    }

    async fn start(&self, scenario: &str) -> Outcome<String> {
        let new = CreateSession {
            initial_message: Some(scenario.to_owned()),
            ..CreateSession::new(&self.campaign, "script")
        };
        Ok(self.client.create_session(new).await?.id.to_string())
    }

    async fn end(&self, who: &str) -> Outcome<()> {
        self.client.stop_session(who, true).await?;
        while self.client.session(who).await?.outcome.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn messages(&self) -> Outcome<f64> {
        let busy = self.start(BUSY).await?;
        let mut took = Vec::with_capacity(TIMES);
        for n in 0..TIMES {
            let message = SendMessage {
                who: busy.clone(),
                text: format!("message {n}"),
                mode: None,
                key: None,
                idempotency_key: None,
                inbound: None,
            };
            let began = Instant::now();
            self.client.send_message(message).await?;
            took.push(milliseconds(began.elapsed()));
        }
        self.client.clear_messages(&busy).await?;
        self.end(&busy).await?;
        Ok(percentile(&mut took, 50.0))
    }

    /// Handing on, and a new session beside it.
    async fn handoffs(&self) -> Outcome<(f64, f64)> {
        let (mut handed_on, mut created) = (Vec::new(), Vec::new());
        for _ in 0..HANDED_ON {
            let began = Instant::now();
            let first = self.start(BRIEF).await?;
            created.push(milliseconds(began.elapsed()));
            self.end(&first).await?;
            let wish = Wish { note: "the login test is still flaky".to_owned(), ..Wish::default() };
            let began = Instant::now();
            let second = self.client.hand_off(&first, "", wish).await?;
            handed_on.push(milliseconds(began.elapsed()));
            self.end(&second.id.to_string()).await?;
        }
        Ok((percentile(&mut handed_on, 50.0), percentile(&mut created, 50.0)))
    }
}

/// A table of conversations with the unique key that ours has, and nothing else.
struct RawConversations {
    connection: Connection,
    _dir: tempfile::TempDir,
}

impl RawConversations {
    fn create(dir: &Path) -> Outcome<Self> {
        let place = tempfile::Builder::new().prefix("raw-").tempdir_in(dir)?;
        let connection = Connection::open(place.path().join("raw.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE conversation(id INTEGER PRIMARY KEY, agent TEXT NOT NULL, key TEXT NOT NULL, UNIQUE(agent, key)) STRICT",
        )?;
        Ok(Self { connection, _dir: place })
    }

    fn insert(&self, keys: &[Key]) -> Outcome<f64> {
        let mut insert = self
            .connection
            .prepare("INSERT INTO conversation(agent, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
        median(keys, |key| insert.execute(params!["desk", key]))
    }

    fn look_up(&self, keys: &[Key]) -> Outcome<f64> {
        let mut query =
            self.connection.prepare("SELECT id FROM conversation WHERE agent = ?1 AND key = ?2")?;
        median(keys, |key| query.query_row(params!["desk", key], |row| row.get::<_, i64>(0)))
    }
}

fn median<T>(keys: &[Key], mut act: impl FnMut(String) -> rusqlite::Result<T>) -> Outcome<f64> {
    let mut took = Vec::with_capacity(keys.len());
    for key in keys {
        let key = key.to_string();
        let began = Instant::now();
        act(key)?;
        took.push(milliseconds(began.elapsed()));
    }
    Ok(percentile(&mut took, 50.0))
}

/// Dialogues in a second: brought in, and only read.
async fn import(bench: &Bench) -> Outcome<(f64, f64)> {
    let place = tempfile::Builder::new().prefix("import-").tempdir_in(&bench.dir)?;
    let store = place.path().join("claude/projects/-campaign");
    fs::create_dir_all(&store)?;
    for n in 0..DIALOGUES {
        let id = format!("5e550000-0000-4000-8000-{n:012x}");
        let text = RECORDED.replace(OWN_ID, &id).replace(CALL_ID, &format!("{CALL_ID}{n}_"));
        fs::write(store.join(format!("{id}.jsonl")), text)?;
    }
    let began = Instant::now();
    let mut lines = 0_usize;
    for entry in fs::read_dir(&store)? {
        let text = fs::read_to_string(entry?.path())?;
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line)?;
            lines += 1;
        }
    }
    let parsed = began.elapsed();
    if lines != DIALOGUES * RECORDED.lines().count() {
        return Err("the store is not what was written".into());
    }
    let home = Home::at(place.path().canonicalize()?.join("home"));
    let ready = |client: Client| async move { client.status().await.map(|_| client) };
    let (daemon, client) = Daemon::answering(&bench.ostler, &home, ready).await?;
    let dir = place.path().join("claude").display().to_string();
    let stores = vec![Store { source: Source::Claude, dir }];
    let began = Instant::now();
    let mut news = client.import_history(&Import { stores, ..Import::default() }).await?;
    let mut brought = None;
    while let Some(told) = news.next().await {
        if let News::Done(totals) = told? {
            brought = Some(totals);
        }
    }
    let took = began.elapsed();
    let brought = brought.ok_or("the import did not say that it was done")?;
    if brought.new != DIALOGUES as u64 {
        return Err(format!("{} of {DIALOGUES} dialogues came", brought.new).into());
    }
    daemon.stop().await?;
    let rate = |span: Duration| DIALOGUES as f64 / span.as_secs_f64();
    Ok((rate(took), rate(parsed)))
}
