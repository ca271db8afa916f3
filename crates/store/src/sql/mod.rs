//! Questions in SQL, from people and their programs. Each has a connection of its own, on which nothing can be done but ask
//! the views: it is read-only in the file, in SQLite, and in what its authorizer lets be prepared.
//!
//! What a view needs of a table may be read only by that view. SQLite tells an authorizer which view a read is for, but also
//! calls a common table expression so by whatever name it was given. So what is behind each view is in a second one, whose
//! name is new for every question and cannot be guessed.

mod views;

use std::{
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use ostler_domain::{
    Kind, Reason, Refusal,
    sql::{Answer, Cell, Question, SQL_BYTES, VALUE_BYTES},
    text::one_line,
};
use rusqlite::{
    Batch, Connection, ErrorCode,
    fallible_iterator::FallibleIterator,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
    types::ValueRef,
};

use crate::{connect, error::ReadError, store::Store};
use views::{LIST, LIST_COLUMNS, VIEWS, View};

/// Steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 20_000;
/// What a question may make the daemon grow by.
const MEMORY_BYTES: u64 = 512 * 1024 * 1024;
/// What is handed on at once.
const ROWS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 256 * 1024;
/// Tables that SQLite makes of a value.
const OF_VALUES: [&str; 2] = ["json_each", "json_tree"];
/// Functions that do something.
const NO_FUNCTIONS: [&str; 4] = ["load_extension", "fts3_tokenizer", "readfile", "writefile"];

impl Store {
    /// Answers a question, piece by piece, on the thread of whoever asks. `hear` says whether more is wanted, and `stop`,
    /// at any moment, that nothing is.
    pub fn ask_sql(
        &self,
        question: &Question,
        stop: &Arc<AtomicBool>,
        mut hear: impl FnMut(Answer) -> bool,
    ) -> Result<(), Refusal> {
        ask(&self.paths().db, question, stop, &mut hear)
    }
}

fn ask(
    path: &Path,
    question: &Question,
    stop: &Arc<AtomicBool>,
    hear: &mut dyn FnMut(Answer) -> bool,
) -> Result<(), Refusal> {
    if question.sql.len() > SQL_BYTES {
        return Err(Refusal::new(Reason::TooLarge, format!("a question has at most {SQL_BYTES} bytes")));
    }
    let mut connection = connect::reader(path).map_err(ReadError::Fault)?;
    guard(&mut connection, question, stop).map_err(|error| Refusal::internal(error.to_string()))?;
    let answered = answer(&connection, question, hear);
    answered.map_err(|failed| match failed {
        Failed::Refused(refusal) => refusal,
        Failed::Sqlite(error) => refusal(&error, question, stop),
    })
}

/// Makes the views, and then nothing else possible.
fn guard(connection: &mut Connection, question: &Question, stop: &Arc<AtomicBool>) -> rusqlite::Result<()> {
    let secret = format!("behind_{:016x}{:016x}_", random(), random());
    connection.pragma_update(None, "query_only", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.execute_batch(&definitions(&secret))?;
    // Made known once, which an authorizer would have to let pass.
    connection.execute_batch("SELECT 1 FROM json_each('[]'), json_tree('[]')")?;
    connection.pragma_update(None, "query_only", true)?;
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, i32::try_from(VALUE_BYTES).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, i32::try_from(SQL_BYTES).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, most)?;
    }
    let (until, stop) = (Instant::now() + question.time, Arc::clone(stop));
    let most = resident().saturating_add(MEMORY_BYTES);
    connection.progress_handler(
        STEPS,
        Some(move || stop.load(Ordering::Relaxed) || Instant::now() >= until || resident() > most),
    )?;
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if may(&context, &secret) { Authorization::Allow } else { Authorization::Deny }
    }))
}

fn random() -> u64 {
    RandomState::new().hash_one(Instant::now())
}

fn may(context: &AuthContext<'_>, secret: &str) -> bool {
    match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => {
            !NO_FUNCTIONS.iter().any(|no| no.eq_ignore_ascii_case(function_name))
        }
        // Of which nothing is read but how many rows it has.
        AuthAction::Read { column_name: "", .. } => true,
        AuthAction::Read { table_name, .. } => {
            let is_view = table_name == LIST || VIEWS.iter().any(|view| view.name == table_name);
            is_view
                || table_name.starts_with(secret)
                || context.accessor.is_some_and(|accessor| accessor.starts_with(secret))
                || OF_VALUES.contains(&table_name)
        }
        _ => false,
    }
}

fn definitions(secret: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let kinds: Vec<String> =
        Kind::ALL.iter().map(|kind| format!("({}, {})", kind.code(), quoted(kind.name()))).collect();
    let mut sql = format!(
        "CREATE TEMP TABLE {secret}kind(code INTEGER PRIMARY KEY, name TEXT NOT NULL);
         INSERT INTO {secret}kind VALUES {};",
        kinds.join(", ")
    );
    let kind =
        format!("coalesce((SELECT name FROM temp.{secret}kind WHERE code = e.kind), 'KIND_' || e.kind)");
    for View { name, columns, select } in VIEWS {
        let columns = columns.join(", ");
        let select = Kind::ALL.iter().fold(select.replace("{kind}", &kind), |select, kind| {
            select.replace(&format!("{{{}}}", kind.name()), &kind.code().to_string())
        });
        sql.push_str(&format!(
            "CREATE TEMP VIEW {secret}{name}({columns}) AS {select};
             CREATE TEMP VIEW {name}({columns}) AS SELECT {columns} FROM temp.{secret}{name};"
        ));
    }
    let all: Vec<String> = VIEWS
        .iter()
        .map(|view| format!("({}, {})", quoted(view.name), quoted(&view.columns.join(", "))))
        .collect();
    let (columns, all) = (LIST_COLUMNS.join(", "), all.join(", "));
    sql.push_str(&format!("CREATE TEMP VIEW {LIST}({columns}) AS VALUES {all};"));
    sql
}

enum Failed {
    Sqlite(rusqlite::Error),
    Refused(Refusal),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Failed::Sqlite(error)
    }
}

fn answer(
    connection: &Connection,
    question: &Question,
    hear: &mut dyn FnMut(Answer) -> bool,
) -> Result<(), Failed> {
    let invalid = |why: &str| Failed::Refused(Refusal::invalid(why));
    let mut batch = Batch::new(connection, &question.sql);
    let mut statement = batch.next()?.ok_or_else(|| invalid("no question was asked"))?;
    if batch.next()?.is_some() {
        return Err(invalid("one question at a time: the text has several statements"));
    }
    if statement.column_count() == 0 || !statement.readonly() {
        return Err(invalid("a question is a SELECT"));
    }
    if statement.parameter_count() > 0 {
        return Err(invalid("a question has no parameters: write the values out"));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let width = columns.len();
    if !hear(Answer::Columns(columns)) {
        return Ok(());
    }
    let mut rows = statement.raw_query();
    let (mut gathered, mut bytes, mut count) = (Vec::new(), 0, 0);
    while let Some(row) = rows.next()? {
        if count == question.rows {
            let _ = hear(Answer::Rows(gathered)) && hear(Answer::Cut);
            return Ok(());
        }
        let cells =
            (0..width).map(|at| row.get_ref(at).map(cell)).collect::<rusqlite::Result<Vec<Cell>>>()?;
        bytes += cells.iter().map(weight).sum::<usize>();
        gathered.push(cells);
        count += 1;
        if gathered.len() >= ROWS_AT_ONCE || bytes >= BYTES_AT_ONCE {
            bytes = 0;
            if !hear(Answer::Rows(std::mem::take(&mut gathered))) {
                return Ok(());
            }
        }
    }
    if !gathered.is_empty() {
        hear(Answer::Rows(gathered));
    }
    Ok(())
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(integer) => Cell::Integer(integer),
        ValueRef::Real(real) => Cell::Real(real),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

fn weight(cell: &Cell) -> usize {
    match cell {
        Cell::Text(text) => text.len(),
        Cell::Bytes(bytes) => bytes.len(),
        Cell::Null | Cell::Integer(_) | Cell::Real(_) => size_of::<i64>(),
    }
}

fn refusal(error: &rusqlite::Error, question: &Question, stop: &AtomicBool) -> Refusal {
    let said = one_line(&error.to_string(), 300);
    match error.sqlite_error_code() {
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            Refusal::new(Reason::PermissionDenied, "only the views may be asked, and nothing changed")
                .because(said)
                .hint("ostler sql --views", "lists the views and their columns")
        }
        Some(ErrorCode::OperationInterrupted) if stop.load(Ordering::Relaxed) => {
            Refusal::new(Reason::TimedOut, "nobody waits for the answer any more")
        }
        Some(ErrorCode::OperationInterrupted) => {
            let (limit, memory) = (question.time.as_secs_f64(), MEMORY_BYTES >> 20);
            Refusal::new(Reason::TimedOut, format!("no answer within {limit} s and {memory} MiB of memory"))
                .hint("ostler sql --timeout 5m …", "waits longer")
        }
        Some(ErrorCode::TooBig) => Refusal::new(Reason::TooLarge, "a value is too large").because(said),
        _ => Refusal::invalid("the question is not understood")
            .because(said)
            .hint("ostler sql --views", "lists the views and their columns"),
    }
}

/// Bytes of memory that this process has; 0 where nobody says.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE
}
