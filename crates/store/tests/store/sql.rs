//! Questions in SQL: the views can be asked, whatever is asked of them, and nothing else can, whatever is tried.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use ostler_domain::{
    Kind, Reason, Refusal,
    sql::{Answer, Cell, Question},
};
use ostler_store::Store;

use crate::{
    samples::{at, event, session_id},
    support::{Owner, Place},
};

const PAGE: &str = include_str!("../../../../docs/sql.md");

#[derive(Debug, Default, PartialEq)]
struct Answered {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
    is_cut: bool,
}

fn ask_with(store: &Store, question: Question) -> Result<Answered, Refusal> {
    let mut answered = Answered::default();
    store.ask_sql(&question, &Arc::new(AtomicBool::new(false)), |piece| {
        match piece {
            Answer::Columns(columns) => answered.columns = columns,
            Answer::Rows(rows) => answered.rows.extend(rows),
            Answer::Cut => answered.is_cut = true,
        }
        true
    })?;
    Ok(answered)
}

fn ask(store: &Store, sql: &str) -> Result<Answered, Refusal> {
    ask_with(store, Question::new(sql.to_owned()))
}

fn filled(store: &Store) -> Owner {
    let mut owner = Owner::create(store, 1);
    let kinds = [Kind::MessageAccepted, Kind::AgentToolCall, Kind::AgentToolResult, Kind::UsageRecorded];
    let events = (2..).zip(kinds).map(|(n, kind)| (at(n), event(kind, 1))).collect();
    owner.record(store, events).unwrap();
    owner
}

fn views(store: &Store) -> BTreeMap<String, Vec<String>> {
    let listed = ask(store, "SELECT name, columns FROM v1_views").unwrap().rows;
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    listed.iter().map(|row| (text(&row[0]), text(&row[1]).split(", ").map(str::to_owned).collect())).collect()
}

#[test]
fn every_view_is_described_and_can_be_asked() {
    let place = Place::new();
    let store = place.open();
    filled(&store);
    let views = views(&store);
    assert!(views.len() >= 10, "{views:?}");
    for (name, columns) in &views {
        let answered = ask(&store, &format!("SELECT * FROM {name}")).unwrap();
        assert_eq!(answered.columns, *columns, "{name}");
        let (_, described) =
            PAGE.split_once(&format!("### `{name}`")).unwrap_or_else(|| panic!("docs/sql.md: {name}"));
        let described = described.split("### ").next().unwrap_or_default();
        for column in columns {
            assert!(described.contains(&format!("`{column}`")), "docs/sql.md: {name}.{column}");
        }
    }
    let described = PAGE.matches("### `v1_").count();
    assert_eq!(described, views.len() + 1, "v1_views itself is the one more");
    // What the page shows can be typed.
    for shown in PAGE.split("```sql").skip(1).filter_map(|rest| rest.split("```").next()) {
        ask(&store, shown).unwrap_or_else(|refusal| panic!("{shown}: {refusal:?}"));
    }
}

#[test]
fn what_was_recorded_is_answered() {
    let place = Place::new();
    let store = place.open();
    filled(&store);
    let sessions = ask(&store, "SELECT id, campaign IS NULL, input >= 0 FROM v1_sessions").unwrap();
    let id = session_id(1).to_string();
    assert_eq!(sessions.rows[0][0], Cell::Text(id.clone()));
    let calls =
        ask(&store, "SELECT session, tool FROM v1_tool_calls JOIN v1_tool_results USING (session)").unwrap();
    assert_eq!(calls.rows.len(), 1, "{calls:?}");
    assert_eq!(calls.rows[0][0], Cell::Text(id));
    let kinds = ask(&store, "SELECT kind FROM v1_events ORDER BY seq LIMIT 1").unwrap();
    assert_eq!(kinds.rows, [[Cell::Text("SESSION_CREATED".to_owned())]]);
    let count = ask(&store, "SELECT count(*) FROM v1_events").unwrap();
    assert_eq!(count.rows, [[Cell::Integer(5)]]);
    let made =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT i FROM n";
    let cut = ask_with(&store, Question { rows: 1_000, ..Question::new(made.to_owned()) }).unwrap();
    assert!(cut.is_cut && cut.rows.len() == 1_000);
    let whole = ask_with(&store, Question { rows: 3_000, ..Question::new(made.to_owned()) }).unwrap();
    assert!(!whole.is_cut && whole.rows.len() == 3_000);
    let values = ask(&store, "SELECT NULL, 1.5, x'00ff', value FROM json_each('[\"a\"]')").unwrap();
    let wanted = [Cell::Null, Cell::Real(1.5), Cell::Bytes(vec![0, 255]), Cell::Text("a".to_owned())];
    assert_eq!(values.rows, [wanted]);
}

#[test]
fn nothing_but_the_views_can_be_read() {
    let place = Place::new();
    let store = place.open();
    filled(&store);
    for sql in [
        "SELECT body FROM log_event",
        "SELECT body FROM main.log_event",
        "SELECT rowid FROM log_event",
        "SELECT * FROM node_meta",
        // Under the name of one that may.
        "WITH v1_sessions AS (SELECT body FROM log_event) SELECT * FROM v1_sessions",
        "WITH behind_v1_sessions AS (SELECT body FROM log_event) SELECT * FROM behind_v1_sessions",
        "SELECT * FROM (SELECT body FROM log_event) AS v1_events",
        "SELECT (SELECT body FROM main.log_event LIMIT 1) FROM v1_sessions",
        "SELECT id FROM v1_sessions WHERE id IN (SELECT body FROM main.log_event)",
        "SELECT count(*) FROM v1_sessions JOIN main.log_event ON body LIKE '%'",
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM sqlite_temp_schema",
        "SELECT * FROM pragma_table_info('log_event')",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM dbstat",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT Load_Extension('/tmp/x.so')",
        "PRAGMA query_only = 0",
        "PRAGMA table_info(log_event)",
        "ATTACH DATABASE '/tmp/elsewhere.db' AS other",
        "DETACH DATABASE main",
        "VACUUM INTO '/tmp/copy.db'",
        "INSERT INTO log_event(seq, time, kind, body) VALUES (99, 0, 1, '{}')",
        "INSERT INTO v1_sessions(id) VALUES ('x')",
        "UPDATE session SET name = 'x'",
        "DELETE FROM session",
        "DROP TABLE session",
        "CREATE TABLE t(a)",
        "CREATE TEMP TABLE t(a)",
        "CREATE TEMP VIEW v1_more AS SELECT * FROM main.log_event",
        "DROP VIEW v1_sessions",
        "ALTER TABLE session RENAME TO t",
        "ANALYZE",
        "REINDEX",
        "BEGIN IMMEDIATE",
        "SAVEPOINT s",
        "SELECT 1; DELETE FROM session",
        "SELECT id FROM v1_sessions WHERE id = ?1",
        "SELEC id FROM v1_sessions",
        "SELECT no_such FROM v1_sessions",
        "",
        "-- nothing",
    ] {
        let refused = ask(&store, sql).expect_err(sql);
        let expected = [Reason::PermissionDenied, Reason::InvalidArgument];
        assert!(expected.contains(&refused.reason), "{sql}: {refused:?}");
    }
    let last = store.last_seq();
    assert_eq!(
        ask(&store, "SELECT count(*) FROM v1_events").unwrap().rows,
        [[Cell::Integer(last.cast_signed())]]
    );
}

#[test]
fn questions_without_an_end_are_ended() {
    let place = Place::new();
    let store = place.open();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let question = Question { time: Duration::from_millis(300), ..Question::new(endless.to_owned()) };
    let begun = Instant::now();
    let refused = ask_with(&store, question).unwrap_err();
    assert_eq!(refused.reason, Reason::TimedOut, "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    // Whoever asked has gone.
    let (stop, gone) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let leaves = Arc::clone(&stop);
    let waits = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        leaves.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let question = Question { time: Duration::from_secs(600), ..Question::new(endless.to_owned()) };
    assert!(store.ask_sql(&question, &stop, |_| true).is_err());
    waits.join().unwrap();
    // And of one who hears nothing more, nothing more is asked.
    let rows = endless.replace("count(*)", "i");
    let question = Question { rows: u64::MAX, time: Duration::from_secs(600), ..Question::new(rows) };
    let mut heard = 0;
    store
        .ask_sql(&question, &gone, |_| {
            heard += 1;
            heard < 3
        })
        .unwrap();
    assert_eq!(heard, 3);
    let large = ask(&store, "SELECT length(replace(hex(zeroblob(4000000)), '0', '0000000000'))").unwrap_err();
    assert_eq!(large.reason, Reason::TooLarge, "{large:?}");
    let long = format!("SELECT '{}'", "x".repeat(300_000));
    assert_eq!(ask(&store, &long).unwrap_err().reason, Reason::TooLarge);
}
