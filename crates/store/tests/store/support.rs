//! A store in a directory of its own, and owners of sessions that commit to it.

use std::{fs, path::Path};

use ostler_domain::{Event, Recorded, SessionId, Time, query::EventFilter, session::State};
use ostler_store::{
    Commit, CommitError, Committed, Options, OutboxRow, Paths, SessionCommit, Store, TapeMark, Urgency,
    block_on,
};

use crate::samples;

pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::below(self.dir.path())
    }

    /// Opens the store without its search index.
    pub(crate) fn open(&self) -> Store {
        open(self.dir.path())
    }

    /// Asks the database itself, past the store.
    pub(crate) fn sql(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.paths().db).unwrap()
    }
}

pub(crate) fn open(dir: &Path) -> Store {
    Store::open(&Paths::below(dir), &Options { search: false }).unwrap().store
}

pub(crate) fn node_commit(events: Vec<(Time, Event)>) -> Commit {
    Commit { urgency: Urgency::Control, node_events: events, session: None, request: None }
}

/// A session's owner: knows its state, as the engine does.
pub(crate) struct Owner {
    pub(crate) state: State,
}

impl Owner {
    /// A session that is not committed yet, and the commit that creates it.
    pub(crate) fn new(n: u64, events: Vec<(Time, Event)>) -> (Self, Commit) {
        let mut all = vec![(samples::at(n), Event::SessionCreated(Box::new(samples::created(n))))];
        all.extend(events);
        let state = State::replay(all.iter().map(|(at, event)| (*at, event))).unwrap();
        let session = session_commit(&state, 0, all);
        (
            Self { state },
            Commit {
                urgency: Urgency::Control,
                node_events: Vec::new(),
                session: Some(session),
                request: None,
            },
        )
    }

    pub(crate) fn create(store: &Store, n: u64) -> Self {
        let (owner, commit) = Self::new(n, Vec::new());
        store.commit_blocking(commit).unwrap();
        owner
    }

    pub(crate) fn id(&self) -> SessionId {
        self.state.created().id
    }

    /// Applies events and makes the commit for them.
    pub(crate) fn prepare(&mut self, events: Vec<(Time, Event)>) -> Commit {
        let expected = self.state.session_seq();
        for (at, event) in &events {
            self.state.apply(*at, event);
        }
        let session = session_commit(&self.state, expected, events);
        Commit { urgency: Urgency::Control, node_events: Vec::new(), session: Some(session), request: None }
    }

    pub(crate) fn record(
        &mut self,
        store: &Store,
        events: Vec<(Time, Event)>,
    ) -> Result<Committed, CommitError> {
        store.commit_blocking(self.prepare(events))
    }
}

pub(crate) fn session_commit(state: &State, expected_seq: u64, events: Vec<(Time, Event)>) -> SessionCommit {
    SessionCommit {
        id: state.created().id,
        expected_seq,
        events,
        recorded: None,
        view: state.view().into(),
        tape: None,
        outbox: Vec::new(),
        outbox_done: None,
        snapshot: None,
    }
}

pub(crate) fn mark(offset: u64) -> TapeMark {
    TapeMark { offset, assembler: "{}".to_owned(), dialogue: vec![1, 2, 3], dialogue_version: 1 }
}

pub(crate) fn input(input_no: u64) -> OutboxRow {
    OutboxRow { input_no, tag: "nudge".to_owned(), bytes: vec![0, b'\n', 255] }
}

/// Everything in the log, through the store.
pub(crate) fn whole_log(store: &Store) -> Vec<Recorded> {
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let page = block_on(store.events_after(after, &EventFilter::default(), 100)).unwrap();
        all.extend(page.rows);
        match page.next_cursor {
            Some(next) => after = next,
            None => return all,
        }
    }
}

/// Every row of every table whose name fits, as text.
pub(crate) fn dump(connection: &rusqlite::Connection, fits: impl Fn(&str) -> bool) -> String {
    let mut tables: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    tables.retain(|table| fits(table));
    tables.sort();
    let mut text = String::new();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<String> = (0..columns).map(|column| show(row.get_ref(column).unwrap())).collect();
            text.push_str(&format!("{table}: {}\n", values.join(" | ")));
        }
    }
    text
}

fn show(value: rusqlite::types::ValueRef<'_>) -> String {
    match value {
        rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn is_derived(table: &str) -> bool {
    !table.starts_with("log_") && !table.starts_with("node_") && !table.starts_with("sqlite_")
}

/// Compares with a golden file, or writes it when `OSTLER_BLESS` is set.
pub(crate) fn golden(name: &str, found: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("OSTLER_BLESS").is_some() {
        fs::write(&path, found).unwrap();
        return;
    }
    let expected = fs::read(&path).unwrap_or_default();
    assert!(
        expected == found,
        "{name} differs from what is stored today; if that is wanted, there is a migration for it\n--- now ---\n{}",
        String::from_utf8_lossy(found)
    );
}
