//! The database in which OpenClaw keeps an agent's dialogues since 2026.9, written out as the files that its older versions
//! had: `sessions.json` and a transcript for each dialogue. It is somebody else's: what is read is a copy, and only of forms
//! that are known.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufWriter, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ostler_domain::limits::{FOREIGN_DATABASE_BYTES, LINE_BYTES};
use rusqlite::{Connection, OpenFlags, OptionalExtension, types::ValueRef};
use serde_json::Value;

/// The newest form of the tables that is known.
const KNOWN: i64 = 23;
/// How often a copy is tried while somebody writes.
const COPIES: u32 = 3;
/// What was copied last, beside what was made of it.
const MARK: &str = "unpacked";

/// Why a database was not read, in words for a person.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is no database that can be read: {0}")]
    Sql(#[from] rusqlite::Error),
    #[error("its form is {0}, and forms up to {KNOWN} are known")]
    TooNew(i64),
    #[error("it has no table {0}")]
    Lacks(&'static str),
    #[error("somebody writes to it; stop OpenClaw, and import again")]
    Written,
    #[error("it has more than {FOREIGN_DATABASE_BYTES} bytes")]
    TooLarge,
}

/// What was found in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unpacked {
    pub rows: u64,
    pub dialogues: u64,
    /// Lines that are none, or could not be decompressed; they are left out.
    pub unreadable: u64,
}

/// Writes out what an agent's database has, into `sessions` of a directory of Ostler's own. None where it is as it was the last
/// time.
pub fn unpack_openclaw(database: &Path, agent_dir: &Path) -> Result<Option<Unpacked>, Unreadable> {
    let is = mark(database)?;
    if fs::read_to_string(agent_dir.join(MARK)).is_ok_and(|was| was == is) {
        return Ok(None);
    }
    let (scratch, into) = (agent_dir.join("copy"), agent_dir.join("sessions"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&into)?;
    let unpacked = copied(database, &scratch).and_then(|(copy, is)| {
        let written = fs::metadata(database)?.modified()?;
        let unpacked = write_out(&copy, &into, written)?;
        write(&agent_dir.join(MARK), is.as_bytes())?;
        Ok(Some(unpacked))
    });
    let _ = fs::remove_dir_all(&scratch);
    unpacked
}

/// What tells one state of a database from another without reading it.
fn mark(database: &Path) -> Result<String, Unreadable> {
    let of = |path: &Path| -> io::Result<(u64, u128)> {
        let about = fs::symlink_metadata(path)?;
        if !about.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let since = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok((about.len(), since.as_nanos()))
    };
    let own = of(database)?;
    if own.0 > FOREIGN_DATABASE_BYTES {
        return Err(Unreadable::TooLarge);
    }
    let log = of(&log_of(database)).unwrap_or_default();
    Ok(format!("{KNOWN} {} {} {} {}", own.0, own.1, log.0, log.1))
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// A copy that nobody wrote to while it was made, and what the original was then.
fn copied(database: &Path, scratch: &Path) -> Result<(PathBuf, String), Unreadable> {
    for _ in 0..COPIES {
        let _ = fs::remove_dir_all(scratch);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
        let before = mark(database)?;
        let copy = scratch.join("copy.sqlite");
        copy_file(database, &copy)?;
        if log_of(database).exists() {
            copy_file(&log_of(database), &log_of(&copy))?;
        }
        if mark(database)? == before {
            return Ok((copy, before));
        }
    }
    Err(Unreadable::Written)
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = fs::File::open(from)?;
    let mut to = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to).map(drop)
}

fn write_out(copy: &Path, into: &Path, written: SystemTime) -> Result<Unpacked, Unreadable> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Nothing in a foreign schema is run.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > KNOWN {
        return Err(Unreadable::TooNew(version));
    }
    for table in ["session_nodes", "transcript_events"] {
        let found = connection
            .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1", [table], |_| Ok(()))
            .optional()?;
        found.ok_or(Unreadable::Lacks(table))?;
    }
    let whole: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if whole != "ok" {
        return Err(Unreadable::Written);
    }
    let mut unpacked = Unpacked::default();
    let times = times(&connection).unwrap_or_default();
    let written = |id: &str| times.get(id).map_or(written, |at| *at);
    write_lines(&connection, into, written, &mut unpacked)?;
    write_rows(&connection, into, &mut unpacked)?;
    Ok(unpacked)
}

/// When something last came to each dialogue, as far as it is noted.
fn times(connection: &Connection) -> rusqlite::Result<HashMap<String, SystemTime>> {
    let mut statement =
        connection.prepare("SELECT session_id, transcript_updated_at FROM session_windows")?;
    let mut rows = statement.query([])?;
    let mut times = HashMap::new();
    while let Some(row) = rows.next()? {
        if let (Ok(id), Ok(at)) = (row.get::<_, String>(0), row.get::<_, i64>(1)) {
            times.insert(id, UNIX_EPOCH + Duration::from_millis(u64::try_from(at).unwrap_or_default()));
        }
    }
    Ok(times)
}

/// The index, each row as it is.
fn write_rows(connection: &Connection, into: &Path, unpacked: &mut Unpacked) -> Result<(), Unreadable> {
    let mut statement = connection
        .prepare("SELECT session_key, entry_json FROM session_nodes ORDER BY session_key COLLATE BINARY")?;
    let mut rows = statement.query([])?;
    let mut index = String::from("{");
    while let Some(row) = rows.next()? {
        let (ValueRef::Text(key), ValueRef::Text(entry)) = (row.get_ref(0)?, row.get_ref(1)?) else {
            unpacked.unreadable += 1;
            continue;
        };
        let (Ok(key), Ok(entry)) = (str::from_utf8(key), str::from_utf8(entry)) else {
            unpacked.unreadable += 1;
            continue;
        };
        if !matches!(serde_json::from_str(entry), Ok(Value::Object(_))) {
            unpacked.unreadable += 1;
            continue;
        }
        let comma = if unpacked.rows == 0 { "" } else { "," };
        index.push_str(&format!("{comma}\n  {}: {entry}", Value::from(key)));
        unpacked.rows += 1;
    }
    index.push_str("\n}\n");
    Ok(write(&into.join("sessions.json"), index.as_bytes())?)
}

/// The transcripts, line by line in their order.
fn write_lines(
    connection: &Connection,
    into: &Path,
    written: impl Fn(&str) -> SystemTime,
    unpacked: &mut Unpacked,
) -> Result<(), Unreadable> {
    let compressed = connection.prepare("SELECT event_zstd FROM transcript_events LIMIT 0").is_ok();
    let compressed = if compressed { "event_zstd" } else { "NULL" };
    let sql = format!(
        "SELECT session_id, event_json, {compressed} FROM transcript_events ORDER BY session_id, seq"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut open: Option<Transcript> = None;
    while let Some(row) = rows.next()? {
        let id = match row.get_ref(0)? {
            ValueRef::Text(id) => String::from_utf8_lossy(id).into_owned(),
            _ => String::new(),
        };
        let line = match (row.get_ref(1)?, row.get_ref(2)?) {
            (ValueRef::Text(line), _) => Some(line.to_vec()),
            (ValueRef::Null, ValueRef::Blob(packed)) => decompressed(packed),
            _ => None,
        };
        let Some(line) = line.filter(|line| is_name(&id) && is_object(line)) else {
            unpacked.unreadable += 1;
            continue;
        };
        if open.as_ref().is_none_or(|open| open.id != id) {
            if let Some(done) = open.take() {
                done.close(&written)?;
            }
            unpacked.dialogues += 1;
            open = Some(Transcript::begin(into, id)?);
        }
        if let Some(open) = &mut open {
            // Between the parts of an object, the end of a line is no more than a space.
            let one_line: Vec<u8> = line
                .into_iter()
                .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte })
                .collect();
            open.file.write_all(&one_line)?;
            open.file.write_all(b"\n")?;
        }
    }
    match open {
        Some(last) => Ok(last.close(&written)?),
        None => Ok(()),
    }
}

/// A transcript that is being written.
struct Transcript {
    id: String,
    part: PathBuf,
    whole: PathBuf,
    file: BufWriter<fs::File>,
}

impl Transcript {
    fn begin(into: &Path, id: String) -> io::Result<Transcript> {
        let (whole, part) = (into.join(format!("{id}.jsonl")), into.join(format!("{id}.part")));
        let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        Ok(Transcript { id, part, whole, file: BufWriter::new(file) })
    }

    /// With the time of its last line: nobody takes it for one that is being written to now.
    fn close(mut self, written: impl Fn(&str) -> SystemTime) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().set_modified(written(&self.id))?;
        fs::rename(&self.part, &self.whole)
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(bytes)?;
    fs::rename(&part, path)
}

/// What a dialogue may be called, as OpenClaw has it; it becomes a file's name.
fn is_name(id: &str) -> bool {
    let mut letters = id.bytes();
    let is_first = letters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    let rest = letters.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    is_first && rest && id.len() <= 128
}

fn is_object(line: &[u8]) -> bool {
    line.len() <= LINE_BYTES && matches!(serde_json::from_slice(line), Ok(Value::Object(_)))
}

fn decompressed(packed: &[u8]) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let most = LINE_BYTES as u64 + 1;
    zstd::stream::read::Decoder::new(packed).ok()?.take(most).read_to_end(&mut line).ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "
        CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT);
        CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB);
        CREATE TABLE session_windows (session_id TEXT, session_key TEXT, transcript_updated_at INTEGER);
        INSERT INTO session_windows VALUES ('a', 'agent:main:main', 7000);
        PRAGMA user_version = 23;";

    fn database(dir: &Path) -> (PathBuf, Connection) {
        let path = dir.join("openclaw-agent.sqlite");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(TABLES).unwrap();
        (path, connection)
    }

    fn say(connection: &Connection, id: &str, seq: u32, line: &str) {
        connection
            .execute("INSERT INTO transcript_events VALUES (?1, ?2, ?3, NULL)", (id, seq, line))
            .unwrap();
    }

    #[test]
    fn rows_and_lines_are_written_out_as_they_are_and_again_only_when_they_change() {
        let dir = tempfile::tempdir().unwrap();
        let (path, connection) = database(dir.path());
        let entry = r#"{"sessionId":"a","updatedAt":1.50,"new":{"x":[1]}}"#;
        connection
            .execute(
                "INSERT INTO session_nodes VALUES ('agent:main:\"q\"', 'a', ?1), ('bad', 'b', '5')",
                [entry],
            )
            .unwrap();
        say(&connection, "a", 2, r#"{"type":"message","n":2.0}"#);
        say(&connection, "a", 1, "{\"type\":\"session\",\n\"id\":\"a\"}");
        say(&connection, "../out", 1, "{}");
        say(&connection, "a", 9, "not JSON");
        let packed = zstd::encode_all(&br#"{"type":"message","n":3}"#[..], 1).unwrap();
        connection.execute("INSERT INTO transcript_events VALUES ('a', 3, NULL, ?1)", [packed]).unwrap();
        let own = dir.path().join("own");
        let into = own.join("sessions");
        let unpacked = unpack_openclaw(&path, &own).unwrap().unwrap();
        assert_eq!(unpacked, Unpacked { rows: 1, dialogues: 1, unreadable: 3 });
        let lines = fs::read_to_string(into.join("a.jsonl")).unwrap();
        let expected = "{\"type\":\"session\", \"id\":\"a\"}\n{\"type\":\"message\",\"n\":2.0}\n{\"type\":\"message\",\"n\":3}\n";
        assert_eq!(lines, expected);
        let index = fs::read_to_string(into.join("sessions.json")).unwrap();
        assert_eq!(index, format!("{{\n  \"agent:main:\\\"q\\\"\": {entry}\n}}\n"));
        let names: Vec<_> = fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing is left over, and nothing is outside: {names:?}");
        let written = fs::metadata(into.join("a.jsonl")).unwrap().modified().unwrap();
        assert_eq!(written, UNIX_EPOCH + Duration::from_secs(7));
        assert_eq!(unpack_openclaw(&path, &own).unwrap(), None);
        say(&connection, "b", 1, "{}");
        assert_eq!(unpack_openclaw(&path, &own).unwrap().unwrap().dialogues, 2);
    }

    #[test]
    fn what_is_only_in_the_log_beside_it_is_read_too() {
        let dir = tempfile::tempdir().unwrap();
        let (path, connection) = database(dir.path());
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        say(&connection, "a", 1, "{}");
        assert!(log_of(&path).exists());
        let unpacked = unpack_openclaw(&path, &dir.path().join("into")).unwrap().unwrap();
        assert_eq!(unpacked.dialogues, 1);
    }

    #[test]
    fn a_form_that_nobody_knows_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let into = dir.path().join("into");
        let (path, connection) = database(dir.path());
        connection.pragma_update(None, "user_version", 24).unwrap();
        let why = unpack_openclaw(&path, &into).unwrap_err().to_string();
        assert_eq!(why, "its form is 24, and forms up to 23 are known");
        connection.execute_batch("PRAGMA user_version = 23; DROP TABLE session_nodes").unwrap();
        assert_eq!(unpack_openclaw(&path, &into).unwrap_err().to_string(), "it has no table session_nodes");
        let other = dir.path().join("other.sqlite");
        fs::write(&other, "SQLite format 3").unwrap();
        assert!(unpack_openclaw(&other, &into).is_err());
        assert!(!into.join("sessions.json").exists());
    }
}
