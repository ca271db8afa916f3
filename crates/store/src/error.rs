//! Every way in which the store can fail, as types to branch on and as refusals to show.

use std::{io, path::PathBuf, sync::Arc};

use ostler_domain::{Reason, Refusal, SessionId, event::DecodeError};

/// What sort of trouble SQLite or the file system is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    DiskFull,
    ReadOnly,
    Corrupt,
    Busy,
    Io,
    /// A mistake of ours, or a limit of SQLite's.
    Other,
}

impl FaultKind {
    const fn reason(self) -> Reason {
        match self {
            FaultKind::DiskFull => Reason::DiskFull,
            FaultKind::ReadOnly => Reason::StoreReadOnly,
            FaultKind::Corrupt => Reason::StoreCorrupt,
            FaultKind::Busy => Reason::StoreBusy,
            FaultKind::Io | FaultKind::Other => Reason::Internal,
        }
    }

    fn of_sqlite(error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => FaultKind::DiskFull,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => FaultKind::ReadOnly,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => FaultKind::Corrupt,
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => FaultKind::Busy,
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => FaultKind::Io,
            // What is in a row is not what only we could have put there.
            None if is_of_a_value(error) => FaultKind::Corrupt,
            _ => FaultKind::Other,
        }
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                FaultKind::DiskFull
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => FaultKind::ReadOnly,
            _ => FaultKind::Io,
        }
    }
}

fn is_of_a_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Sqlite(Arc<rusqlite::Error>),
    #[error(transparent)]
    Io(Arc<io::Error>),
}

/// The database or the disk failed. Can be copied, because one failed commit has many owners.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to {action}")]
pub struct Fault {
    pub kind: FaultKind,
    action: &'static str,
    #[source]
    cause: Cause,
}

impl Fault {
    pub(crate) fn sqlite(action: &'static str, error: rusqlite::Error) -> Self {
        Self { kind: FaultKind::of_sqlite(&error), action, cause: Cause::Sqlite(Arc::new(error)) }
    }

    pub(crate) fn io(action: &'static str, error: io::Error) -> Self {
        Self { kind: FaultKind::of_io(&error), action, cause: Cause::Io(Arc::new(error)) }
    }

    fn refusal(&self) -> Refusal {
        let refusal =
            |message: &str| Refusal::new(self.kind.reason(), message).because(self.cause.to_string());
        match self.kind {
            FaultKind::DiskFull => refusal("the disk with Ostler's record is full, nothing can be recorded")
                .hint("ostler daemon status", "says where the record is, and how large"),
            FaultKind::ReadOnly => refusal("Ostler's record cannot be written to"),
            FaultKind::Corrupt => refusal("Ostler's record is damaged")
                .hint("ostler db check", "says what is damaged and what is not"),
            FaultKind::Busy => refusal("another program holds Ostler's database"),
            FaultKind::Io => {
                refusal(&self.to_string()).hint("ostler daemon logs", "shows what the daemon says about it")
            }
            FaultKind::Other => Refusal::internal(self.to_string()).because(self.cause.to_string()),
        }
    }
}

/// Lets `?` turn a statement's error into a fault that says what was being done.
pub(crate) trait Doing<T> {
    fn doing(self, action: &'static str) -> Result<T, Fault>;
}

impl<T> Doing<T> for rusqlite::Result<T> {
    fn doing(self, action: &'static str) -> Result<T, Fault> {
        self.map_err(|error| Fault::sqlite(action, error))
    }
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, action: &'static str) -> Result<T, Fault> {
        self.map_err(|error| Fault::io(action, error))
    }
}

/// Why a commit wrote nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// Somebody else committed for this session: the owner's state is not the record's.
    #[error("session {session} moved on: expected event {expected}, found {found}")]
    Conflict { session: SessionId, expected: u64, found: u64 },
    /// The request was done before; this is what it was and what was answered.
    #[error("the request was done before")]
    RequestDone { fingerprint: String, reply: String },
    /// A name that must be unique is in use.
    #[error("{what} is taken")]
    Taken { what: &'static str },
    #[error("session {0} is not in the record")]
    SessionUnknown(SessionId),
    /// The parts of the commit contradict each other: a mistake of the caller.
    #[error("the commit contradicts itself: {0}")]
    Inconsistent(&'static str),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("the store is closed")]
    Closed,
}

impl From<CommitError> for Refusal {
    fn from(error: CommitError) -> Refusal {
        match error {
            CommitError::Fault(fault) => fault.refusal(),
            CommitError::Taken { what } => Refusal::new(Reason::NameTaken, format!("{what} is taken")),
            CommitError::RequestDone { .. } => {
                Refusal::new(Reason::RequestConflict, "this request was done before")
            }
            CommitError::SessionUnknown(id) => {
                Refusal::new(Reason::SessionUnknown, format!("no session {id}"))
            }
            CommitError::Closed => Refusal::new(Reason::ShuttingDown, "the daemon is shutting down"),
            CommitError::Conflict { .. } | CommitError::Inconsistent(_) => {
                Refusal::internal(error.to_string())
            }
        }
    }
}

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Written by a newer version, or damaged.
    #[error("event {seq} cannot be read")]
    Event {
        seq: u64,
        #[source]
        source: DecodeError,
    },
    #[error("the body of event {seq} cannot be read from {}", path.display())]
    Blob {
        seq: u64,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The search index failed, not the record. A damaged one is built anew.
    #[error("the search index failed")]
    SearchIndex(#[source] Fault),
    /// A row that this version did not write like this.
    #[error("a stored {what} cannot be read: {text:?}")]
    Row { what: &'static str, text: String },
    #[error("the store is closed")]
    Closed,
}

impl ReadError {
    /// What is behind it, in one line.
    pub(crate) fn why(&self) -> String {
        match self {
            ReadError::Event { source, .. } => source.to_string(),
            ReadError::Blob { source, .. } => format!("its body, which has a file of its own: {source}"),
            error => error.to_string(),
        }
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        ReadError::Fault(Fault::sqlite("read the record", error))
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        let damaged = |why: String| {
            Refusal::new(Reason::StoreCorrupt, "a part of Ostler's record cannot be read")
                .because(why)
                .hint("ostler db check", "says what is damaged and what is not")
        };
        match error {
            ReadError::Fault(fault) => fault.refusal(),
            ReadError::Event { seq, source } => damaged(format!("event {seq}: {source}")),
            ReadError::Blob { .. } | ReadError::Row { .. } => damaged(error.to_string()),
            ReadError::SearchIndex(_) => Refusal::new(Reason::StoreCorrupt, "the search index is damaged")
                .because("it is built anew from the record, which is whole; try again in a moment"),
            ReadError::Closed => Refusal::new(Reason::ShuttingDown, "the daemon is shutting down"),
        }
    }
}

/// Why the record could not be opened. It is never replaced by an empty one.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Written by a newer version, which may mean things by it that this one would destroy.
    #[error("{} has schema {found}, this version knows up to {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{} is not Ostler's record or is damaged: {why}", path.display())]
    Corrupt { path: PathBuf, why: String },
    /// The database is gone although other parts of the record are there.
    #[error("{} is missing, but {} is there", path.display(), beside.display())]
    Vanished { path: PathBuf, beside: PathBuf },
    #[error("{} cannot be written to", path.display())]
    ReadOnly { path: PathBuf },
    #[error("another program holds {}", path.display())]
    Busy { path: PathBuf },
    #[error("failed to open {}", path.display())]
    Fault {
        path: PathBuf,
        #[source]
        source: Fault,
    },
}

impl OpenError {
    pub(crate) fn of(path: &std::path::Path, fault: Fault) -> Self {
        let path = path.to_owned();
        match fault.kind {
            FaultKind::Corrupt => OpenError::Corrupt { path, why: fault.cause.to_string() },
            FaultKind::ReadOnly => OpenError::ReadOnly { path },
            FaultKind::Busy => OpenError::Busy { path },
            FaultKind::DiskFull | FaultKind::Io | FaultKind::Other => {
                OpenError::Fault { path, source: fault }
            }
        }
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Refusal {
        let text = error.to_string();
        match error {
            OpenError::Newer { .. } => Refusal::new(Reason::StoreNewer, text)
                .because("a newer version of Ostler has used it; an older one could damage it"),
            OpenError::Corrupt { .. } => Refusal::new(Reason::StoreCorrupt, text)
                .because("nothing was changed; a copy made by `ostler db backup` can take its place"),
            OpenError::Vanished { .. } => Refusal::new(Reason::StoreCorrupt, text)
                .because("Ostler does not begin a new record beside the remains of another"),
            OpenError::ReadOnly { .. } => Refusal::new(Reason::StoreReadOnly, text),
            OpenError::Busy { .. } => Refusal::new(Reason::StoreBusy, text),
            OpenError::Fault { source, .. } => {
                let refusal = source.refusal();
                Refusal { message: text, ..refusal }
            }
        }
    }
}

/// Why the directory's lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another daemon serves this directory. What is known of it is what it wrote there.
    #[error("a daemon already serves this directory (pid {})", pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()))]
    Held { pid: Option<u32>, version: Option<String>, since: Option<ostler_domain::Time> },
    #[error("failed to lock {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl From<LockError> for Refusal {
    fn from(error: LockError) -> Refusal {
        let text = error.to_string();
        match error {
            LockError::Held { .. } => Refusal::new(Reason::DaemonRunning, text)
                .hint("ostler daemon status", "shows the daemon that runs"),
            LockError::Io { source, .. } => Fault::io("lock the state directory", source).refusal(),
        }
    }
}
