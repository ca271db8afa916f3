//! The file: creating it, deciding whether it is still good, and reading connections that notice when it was
//! replaced.

use std::{
    cell::RefCell,
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use ostler_domain::NodeId;
use rusqlite::{Connection, OptionalExtension};

use crate::{
    connect::{self, Durability},
    convert::unsigned,
    error::{Doing, Fault, FaultKind, ReadError},
    open::{remove_if_any, sidecar},
};

/// Changes when what is indexed, or how, changes: then the old file is of no use.
const VERSION: i64 = 3;

const SCHEMA: &str = "
    CREATE TABLE search_meta(only INTEGER PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL, node TEXT NOT NULL, cursor INTEGER NOT NULL) STRICT;
    CREATE VIRTUAL TABLE search_text USING fts5(text, session, content = '', detail = full, tokenize = 'unicode61 remove_diacritics 2');";

/// Where the file is, and how often it was replaced.
#[derive(Debug, Clone)]
pub(crate) struct SearchFile {
    path: Arc<Path>,
    generation: Arc<AtomicU64>,
    is_damaged: Arc<AtomicBool>,
}

impl SearchFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.into(), generation: Arc::default(), is_damaged: Arc::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says once that a reader found damage.
    pub(super) fn take_damage(&self) -> bool {
        self.is_damaged.swap(false, Ordering::Relaxed)
    }

    /// Opens the file for writing if it belongs to this record, and says how far it has come.
    pub(super) fn open(&self, node: NodeId) -> Result<Option<(Connection, u64)>, Fault> {
        if !self.path.exists() {
            return Ok(None);
        }
        let connection = connect::writer(&self.path, Durability::Rebuildable)?;
        let meta = connection
            .query_row("SELECT version, node, cursor FROM search_meta", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
            })
            .optional()
            .doing("read the search index")?;
        Ok(match meta {
            Some((VERSION, whose, cursor)) if whose == node.to_string() => {
                Some((connection, unsigned(cursor)))
            }
            _ => None,
        })
    }

    /// Begins anew with an empty file.
    pub(super) fn recreate(&self, node: NodeId) -> Result<Connection, Fault> {
        for path in [self.path.to_path_buf(), sidecar(&self.path, "-wal"), sidecar(&self.path, "-shm")] {
            remove_if_any(&path).doing("remove the search index")?;
        }
        self.generation.fetch_add(1, Ordering::Release);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path)
            .doing("create the search index")?;
        let connection = connect::writer(&self.path, Durability::Rebuildable)?;
        let fill = || {
            let transaction = connection.unchecked_transaction()?;
            transaction.execute_batch(SCHEMA)?;
            transaction
                .execute("INSERT INTO search_meta VALUES (1, ?1, ?2, 0)", (VERSION, node.to_string()))?;
            transaction.commit()
        };
        fill().doing("create the search index")?;
        Ok(connection)
    }
}

/// One reader's connection to the file, opened when first needed.
pub(crate) struct SearchReader {
    file: SearchFile,
    open: RefCell<Option<(u64, Connection)>>,
}

impl SearchReader {
    pub(crate) fn new(file: SearchFile) -> Self {
        Self { file, open: RefCell::new(None) }
    }

    pub(super) fn file(&self) -> &SearchFile {
        &self.file
    }

    /// Asks a question of the file as it is now. `None` when there is none.
    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<T>, ReadError> {
        self.answer(question).map_err(|fault| match fault.kind {
            FaultKind::Corrupt => {
                self.file.is_damaged.store(true, Ordering::Relaxed);
                ReadError::SearchIndex(fault)
            }
            _ => ReadError::Fault(fault),
        })
    }

    fn answer<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
        let mut open = self.open.borrow_mut();
        let generation = self.file.generation.load(Ordering::Acquire);
        if open.as_ref().is_none_or(|(opened, _)| *opened != generation) {
            if !self.file.path.exists() {
                return Ok(None);
            }
            *open = Some((generation, connect::reader(&self.file.path)?));
        }
        match &*open {
            Some((_, connection)) => question(connection).map(Some),
            None => Ok(None),
        }
    }
}
