//! `node_transcript`: how far each transcript is written. The files themselves are somebody else's.

use ostler_domain::ConversationId;
use rusqlite::{Row, params};

use crate::{
    convert::{parsed, signed, unsigned},
    error::{CommitError, Doing, ReadError},
    node,
    store::Store,
};

/// Whose place in the log this is.
const NAME: &str = "transcripts";

/// A transcript up to a place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptMark {
    pub conversation: ConversationId,
    /// What the log has up to here is in the file.
    pub seq: u64,
    /// So long is the file then. What it has behind is of a write that was cut short.
    pub bytes: u64,
    /// What whoever goes on must remember.
    pub scribe: String,
}

impl Store {
    /// How far all transcripts are; none where nobody has begun to write them.
    pub async fn transcripts_place(&self) -> Result<Option<u64>, ReadError> {
        self.cursor(NAME).await
    }

    pub async fn transcript_mark(&self, id: ConversationId) -> Result<Option<TranscriptMark>, ReadError> {
        self.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(
                "SELECT conversation, seq, bytes, scribe FROM node_transcript WHERE conversation = ?1",
            )?;
            statement.query_and_then([id.to_string()], mark)?.next().transpose()
        })
        .await
    }

    /// All marks behind a conversation, in the order of their ids.
    pub async fn transcript_marks(
        &self,
        after: Option<ConversationId>,
        limit: u32,
    ) -> Result<Vec<TranscriptMark>, ReadError> {
        self.read(move |reader| {
            let after = after.map(|id| id.to_string()).unwrap_or_default();
            let mut statement = reader.connection.prepare_cached(
                "SELECT conversation, seq, bytes, scribe FROM node_transcript WHERE conversation > ?1
                 ORDER BY conversation LIMIT ?2",
            )?;
            statement.query_and_then(params![after, limit], mark)?.collect()
        })
        .await
    }

    /// Forgets how far a transcript was: it is to have no file.
    pub async fn forget_transcript(&self, id: ConversationId) -> Result<(), CommitError> {
        let forgotten = self.exclusively(move |writer| {
            let connection = writer.connection();
            connection.execute("DELETE FROM node_transcript WHERE conversation = ?1", [id.to_string()])
        });
        forgotten.await.ok_or(CommitError::Closed)?.doing("forget a transcript")?;
        Ok(())
    }

    /// Remembers how far transcripts are: all of it or nothing. Without a place, that of all stays.
    pub async fn set_transcripts(
        &self,
        place: Option<u64>,
        marks: Vec<TranscriptMark>,
    ) -> Result<(), CommitError> {
        let set = self.exclusively(move |writer| -> rusqlite::Result<()> {
            let transaction = writer.connection().unchecked_transaction()?;
            for mark in &marks {
                transaction
                    .prepare_cached(
                        "INSERT OR REPLACE INTO node_transcript(conversation, seq, bytes, scribe)
                         VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![
                        mark.conversation.to_string(),
                        signed(mark.seq),
                        signed(mark.bytes),
                        mark.scribe
                    ])?;
            }
            if let Some(place) = place {
                node::set_cursor_of(&transaction, NAME, place)?;
            }
            transaction.commit()
        });
        Ok(set.await.ok_or(CommitError::Closed)?.doing("remember how far transcripts are")?)
    }
}

fn mark(row: &Row<'_>) -> Result<TranscriptMark, ReadError> {
    Ok(TranscriptMark {
        conversation: parsed(row, "conversation", "conversation id")?,
        seq: unsigned(row.get("seq")?),
        bytes: unsigned(row.get("bytes")?),
        scribe: row.get("scribe")?,
    })
}
