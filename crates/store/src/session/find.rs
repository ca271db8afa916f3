//! Looking sessions up by what people type: an id or a part of one, a name, the provider's own id.

use ostler_domain::{ConversationId, SessionId, id::Fragment, limits::PAGE_MOST, session::View};
use rusqlite::Params;

use super::{number, view, views_of};
use crate::{
    convert::signed,
    error::ReadError,
    refused,
    store::{Reader, Store},
};

/// Characters kept of an id's end, backwards. Longer ends are compared with the id itself.
const TAIL: usize = 10;
/// Rows that a fragment may fit before it is hopelessly ambiguous. A beginning of an id is a moment in time, and
/// may fit a million.
const FITTING: u32 = 16;

/// The last characters of an id, backwards.
pub(crate) fn tail(id: &str) -> String {
    id.chars().rev().take(TAIL).collect()
}

/// A condition for rows whose id begins or ends with a fragment, and its parameters ?1 to ?5.
pub(crate) fn fragment_condition(
    fragment: &Fragment,
    prefix: &str,
    table: &str,
    key: &str,
) -> (String, [String; 5]) {
    // Above every character of an id.
    const LAST: char = '~';
    let beginning = format!("{prefix}_{}", fragment.as_str());
    let end = tail(fragment.as_str());
    let condition = format!(
        "{key} IN (SELECT * FROM (SELECT {key} FROM {table} WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT {FITTING})
                   UNION
                   SELECT * FROM (SELECT {key} FROM {table} WHERE tail >= ?3 AND tail < ?4 AND substr(id, -length(?5)) = ?5
                                  LIMIT {FITTING}))"
    );
    let above = |text: &str| format!("{text}{LAST}");
    let params =
        [beginning.clone(), above(&beginning), end.clone(), above(&end), fragment.as_str().to_owned()];
    (condition, params)
}

impl Store {
    pub async fn session(&self, id: SessionId) -> Result<Option<View>, ReadError> {
        self.read(move |reader| match number(&reader.connection, id)? {
            Some(num) => view(reader, num).map(Some),
            None => Ok(None),
        })
        .await
    }

    /// A session by its number on this node.
    pub async fn session_numbered(&self, number: u64) -> Result<Option<View>, ReadError> {
        self.read(move |reader| Ok(views(reader, "num = ?1", [signed(number)])?.pop())).await
    }

    /// Sessions whose id begins or ends like this, newest first; more than one means that it is ambiguous.
    pub async fn find_sessions(&self, fragment: &Fragment) -> Result<Vec<View>, ReadError> {
        let (condition, params) = fragment_condition(fragment, SessionId::PREFIX, "session", "num");
        self.read(move |reader| views(reader, &condition, params)).await
    }

    /// Sessions of conversations with this name, newest first.
    pub async fn sessions_named(&self, name: &str, limit: u32) -> Result<Vec<View>, ReadError> {
        self.newest("name = ?1", name.to_owned(), limit).await
    }

    /// Sessions of a conversation, newest first.
    pub async fn sessions_of_conversation(
        &self,
        id: ConversationId,
        limit: u32,
    ) -> Result<Vec<View>, ReadError> {
        self.newest("conversation = ?1", id.to_string(), limit).await
    }

    /// A session and those of its conversation before it, newest first.
    pub async fn sessions_up_to(
        &self,
        conversation: ConversationId,
        session: SessionId,
        limit: u32,
    ) -> Result<Vec<View>, ReadError> {
        self.read(move |reader| {
            let limited = format!(
                "num IN (SELECT num FROM session WHERE conversation = ?1 \
                 AND num <= (SELECT num FROM session WHERE id = ?2) ORDER BY num DESC LIMIT {})",
                limit.min(PAGE_MOST)
            );
            views(reader, &limited, [conversation.to_string(), session.to_string()])
        })
        .await
    }

    /// The sessions of a conversation that were there when a copy of it began, newest first.
    pub async fn sessions_before_copy(
        &self,
        origin: ConversationId,
        copy: ConversationId,
        limit: u32,
    ) -> Result<Vec<View>, ReadError> {
        self.read(move |reader| {
            let limited = format!(
                "num IN (SELECT num FROM session WHERE conversation = ?1 \
                 AND num < (SELECT min(num) FROM session WHERE conversation = ?2) ORDER BY num DESC LIMIT {})",
                limit.min(PAGE_MOST)
            );
            views(reader, &limited, [origin.to_string(), copy.to_string()])
        })
        .await
    }

    /// Sessions that the provider knows by this id, newest first.
    pub async fn sessions_with_provider_id(
        &self,
        provider_id: &str,
        limit: u32,
    ) -> Result<Vec<View>, ReadError> {
        self.newest("provider_id = ?1", provider_id.to_owned(), limit).await
    }

    /// The session that goes on with this one, if there is one: the newest.
    pub async fn continued_by(&self, id: SessionId) -> Result<Option<View>, ReadError> {
        Ok(self.newest("continues = ?1", id.to_string(), 1).await?.pop())
    }

    /// Ended sessions that are to be gone on with and are not yet, oldest first.
    pub async fn pending_restarts(&self) -> Result<Vec<View>, ReadError> {
        self.read(|reader| {
            let mut found = views(reader, &refused::to_go_on("session"), [])?;
            found.reverse();
            Ok(found)
        })
        .await
    }

    /// Sessions of Ostler's own that have not ended, oldest first.
    pub async fn unended_sessions(&self) -> Result<Vec<SessionId>, ReadError> {
        self.read(|reader| {
            let mut statement = reader
                .connection
                .prepare_cached("SELECT id FROM session WHERE ended IS NULL AND NOT imported ORDER BY num")?;
            statement.query_and_then([], |row| crate::convert::parsed(row, "id", "session id"))?.collect()
        })
        .await
    }

    async fn newest(
        &self,
        condition: &'static str,
        value: String,
        limit: u32,
    ) -> Result<Vec<View>, ReadError> {
        self.read(move |reader| {
            let limited = format!(
                "num IN (SELECT num FROM session WHERE {condition} ORDER BY num DESC LIMIT {})",
                limit.min(PAGE_MOST)
            );
            views(reader, &limited, [value])
        })
        .await
    }
}

/// The sessions that a condition is true for, newest first.
fn views(reader: &Reader, condition: &str, params: impl Params) -> Result<Vec<View>, ReadError> {
    let mut statement = reader
        .connection
        .prepare_cached(&format!("SELECT num FROM session WHERE {condition} ORDER BY num DESC"))?;
    let nums = statement.query_map(params, |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    views_of(reader, &nums)
}
