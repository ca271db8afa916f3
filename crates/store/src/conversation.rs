//! `conversation`: dialogues that survive processes.

use ostler_domain::{CampaignId, ConversationId, Name, Time, event::ConversationOpened};
use rusqlite::{Connection, Params, Row, params};

use crate::{
    convert::{parsed, signed, time},
    error::ReadError,
    store::Store,
};

/// A conversation as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRow {
    pub id: ConversationId,
    pub campaign: CampaignId,
    pub key: String,
    pub name: Name,
    pub opened: Time,
}

pub(crate) fn open(
    connection: &Connection,
    seq: u64,
    at: Time,
    opened: &ConversationOpened,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO conversation(seq, id, campaign, key, name, opened) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            signed(seq),
            opened.id.to_string(),
            opened.campaign.to_string(),
            opened.key,
            opened.name.as_str(),
            at.micros()
        ])?;
    Ok(())
}

impl Store {
    pub async fn conversation(&self, id: ConversationId) -> Result<Option<ConversationRow>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "id = ?1", [id.to_string()])?.pop())).await
    }

    /// The conversations of a name, newest first: each campaign may have one, and more under other keys.
    pub async fn conversations_named(&self, name: &str) -> Result<Vec<ConversationRow>, ReadError> {
        let name = name.to_owned();
        self.read(move |reader| query(&reader.connection, "name = ?1 ORDER BY seq DESC", [name])).await
    }

    /// The conversation of a campaign with this name and key.
    pub async fn conversation_keyed(
        &self,
        campaign: CampaignId,
        name: &str,
        key: &str,
    ) -> Result<Option<ConversationRow>, ReadError> {
        let params = [campaign.to_string(), name.to_owned(), key.to_owned()];
        self.read(move |reader| {
            Ok(query(&reader.connection, "campaign = ?1 AND name = ?2 AND key = ?3", params)?.pop())
        })
        .await
    }
}

fn query(
    connection: &Connection,
    condition: &str,
    params: impl Params,
) -> Result<Vec<ConversationRow>, ReadError> {
    let sql = format!("SELECT id, campaign, key, name, opened FROM conversation WHERE {condition}");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(params, read)?.collect()
}

fn read(row: &Row<'_>) -> Result<ConversationRow, ReadError> {
    Ok(ConversationRow {
        id: parsed(row, "id", "conversation id")?,
        campaign: parsed(row, "campaign", "campaign id")?,
        key: row.get("key")?,
        name: parsed(row, "name", "conversation name")?,
        opened: time(row, "opened")?,
    })
}
