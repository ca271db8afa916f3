//! Questions to the index. What people type is words, never a query language.

use ostler_domain::{
    Kind, Recorded, SessionId, TicketId, Time,
    query::{Listed, Page},
    text::one_line,
};
use rusqlite::{OptionalExtension, params};

use super::{TICKET_WORD, session_word, text_of};
use crate::{
    convert::{parsed_if_any, signed, unsigned},
    error::{Doing, ReadError},
    log::{STORED, Stored},
    store::{Reader, Store},
};

/// Characters of a snippet, and how many of them come before the word.
const SNIPPET: usize = 160;
const BEFORE_WORD: usize = 40;
/// How much of a text a snippet's word is looked for in.
const LOOKED_THROUGH: usize = 256 * 1024;
/// Words of one question; more narrow nothing further.
const WORDS: usize = 32;

/// Among what a search looks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Among {
    pub sessions: Vec<SessionId>,
    /// What belongs to tickets and to no session too.
    pub tickets: bool,
}

/// An event that has the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub seq: u64,
    pub session: Option<SessionId>,
    /// The ticket that it is about, where it belongs to no session.
    pub ticket: Option<TicketId>,
    pub kind: Kind,
    pub time: Time,
    /// Where it says so, on one line.
    pub snippet: String,
}

impl Store {
    /// Events that have all the words, newest first. `"two words"` in quotes must stand together, `word*` is a
    /// beginning. The cursor is a `seq`. `among`: only what these said and did; what others did is not gone through.
    pub async fn search(
        &self,
        text: &str,
        among: Option<Among>,
        page: Page,
    ) -> Result<Listed<SearchHit>, ReadError> {
        let words = words(text);
        self.read(move |reader| search(reader, &words, among.as_ref(), page)).await
    }

    /// Waits until events up to this one can be found. Returns at once where search is not kept up to date.
    pub async fn searchable(&self, seq: u64) {
        if let Some(indexer) = self.indexer() {
            let _ = indexer.watch().wait_for(|cursor| *cursor >= seq).await;
        }
    }
}

/// A word or a phrase to look for.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    is_beginning: bool,
}

/// Takes apart what a person typed. Text without letters or digits has nothing to look for.
fn words(text: &str) -> Vec<Word> {
    let quoted = text.split('"').enumerate();
    let pieces = quoted.flat_map(|(place, piece)| {
        let is_phrase = place % 2 == 1;
        if is_phrase { vec![piece] } else { piece.split_whitespace().collect() }
    });
    pieces
        .filter(|piece| piece.chars().any(char::is_alphanumeric))
        .take(WORDS)
        .map(|piece| Word { text: piece.replace('\0', " "), is_beginning: piece.ends_with('*') })
        .collect()
}

/// The words as an FTS5 query: each a quoted string, in which nothing has a meaning. Of sessions where some are named: FTS5
/// goes through the shorter of two lists and jumps in the longer one, so that others' hits cost nothing.
fn expression(words: &[Word], among: Option<&[String]>) -> String {
    let quoted =
        words.iter().map(|word| format!("\"{}\"{}", word.text, if word.is_beginning { " *" } else { "" }));
    let text = format!("text : ({})", quoted.collect::<Vec<_>>().join(" AND "));
    let Some(among) = among else { return text };
    format!("session : ({}) AND {text}", among.join(" OR "))
}

const LOOK: &str =
    "SELECT rowid FROM search_text WHERE search_text MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC LIMIT ?3";

/// The words of those among whom is looked, as far as there are such.
fn words_of(reader: &Reader, among: &Among) -> Result<Vec<String>, ReadError> {
    let mut statement = reader.connection.prepare_cached("SELECT num FROM session WHERE id = ?1")?;
    let mut found = Vec::with_capacity(among.sessions.len() + 1);
    for session in &among.sessions {
        let num = statement.query_row([session.to_string()], |row| row.get::<_, i64>(0)).optional()?;
        found.extend(num.map(session_word));
    }
    found.extend(among.tickets.then(|| TICKET_WORD.to_owned()));
    Ok(found)
}

fn search(
    reader: &Reader,
    words: &[Word],
    among: Option<&Among>,
    page: Page,
) -> Result<Listed<SearchHit>, ReadError> {
    let among = among.map(|among| words_of(reader, among)).transpose()?;
    if words.is_empty() || among.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Listed { rows: Vec::new(), next_cursor: None });
    }
    let expression = expression(words, among.as_deref());
    let limit = page.limit.max(1);
    let before = signed(page.cursor.unwrap_or(u64::MAX));
    let found = reader.search.ask(|connection| {
        let look = || {
            connection
                .prepare_cached(LOOK)?
                .query_map(params![expression, before, limit + 1], |row| row.get(0))?
                .collect::<rusqlite::Result<Vec<i64>>>()
        };
        look().doing("search")
    })?;
    let mut seqs = found.unwrap_or_default();
    let has_more = seqs.len() > limit as usize;
    seqs.truncate(limit as usize);
    let next_cursor = seqs.last().filter(|_| has_more).copied().map(unsigned);
    let mut rows = Vec::with_capacity(seqs.len());
    for seq in seqs {
        rows.extend(hit(reader, seq, words)?);
    }
    Ok(Listed { rows, next_cursor })
}

fn hit(reader: &Reader, seq: i64, words: &[Word]) -> Result<Option<SearchHit>, ReadError> {
    let sql = format!(
        "SELECT {STORED}, s.id AS session_id FROM log_event e LEFT JOIN session s ON s.num = e.session WHERE e.seq = ?1"
    );
    let mut statement = reader.connection.prepare_cached(&sql)?;
    let found = statement
        .query_row([seq], |row| Ok((Stored::read(row)?, parsed_if_any(row, "session_id", "session id"))))
        .optional()?;
    let Some((stored, session)) = found else { return Ok(None) };
    let recorded = stored.shown(session?, &reader.blobs);
    let text = text_of(&recorded.event).unwrap_or_default();
    let snippet = snippet(&text, words);
    let Recorded { seq, session, time, event, .. } = recorded;
    Ok(Some(SearchHit { seq, session, ticket: event.ticket(), kind: event.kind(), time, snippet }))
}

/// The surroundings of the first word found, or the beginning: the index also finds `cafe` in `café`.
fn snippet(text: &str, words: &[Word]) -> String {
    let text = ostler_domain::text::head(text, LOOKED_THROUGH);
    let first_words =
        words.iter().filter_map(|word| word.text.trim_end_matches('*').split_whitespace().next());
    let place = first_words.filter_map(|word| find_ignoring_case(text, word)).min().unwrap_or(0);
    let begin = text[..place].char_indices().rev().take(BEFORE_WORD).last().map_or(place, |(at, _)| at);
    let line = one_line(&text[begin..], SNIPPET);
    if begin == 0 { line } else { format!("…{line}") }
}

fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    // Most words and most texts are plain, and texts may be long.
    if word.is_ascii() {
        let found = find_plain(text.as_bytes(), word.as_bytes());
        if found.is_some() || text.is_ascii() {
            return found;
        }
    }
    let wanted: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    text.char_indices().map(|(at, _)| at).find(|at| {
        let mut here = text[*at..].chars().flat_map(char::to_lowercase);
        wanted.iter().all(|c| here.next() == Some(*c))
    })
}

/// The same for a word without letters beyond ASCII: a byte of it is never a part of another character.
fn find_plain(text: &[u8], word: &[u8]) -> Option<usize> {
    let Some(first) = word.first() else { return Some(0) };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let fits = |at: usize| text.get(at..at + word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word));
    text.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == lower || **byte == upper)
        .map(|(at, _)| at)
        .find(|at| fits(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_typed_is_syntax() {
        let of = |text: &str| expression(&words(text), None);
        assert_eq!(of("fix login"), "text : (\"fix\" AND \"login\")");
        assert_eq!(of("\"fix login\" rate*"), "text : (\"fix login\" AND \"rate*\" *)");
        assert_eq!(
            of("a OR NEAR(b) ^c text:d"),
            "text : (\"a\" AND \"OR\" AND \"NEAR(b)\" AND \"^c\" AND \"text:d\")"
        );
        assert!(words("--- \" ' (").is_empty());
        assert_eq!(of("half \"open quote"), "text : (\"half\" AND \"open quote\")");
        assert_eq!(
            expression(&words("login s7"), Some(&[session_word(7), session_word(12)])),
            "session : (s7 OR s12) AND text : (\"login\" AND \"s7\")"
        );
    }

    #[test]
    fn snippets_show_the_word() {
        let text = format!("{} the Needle is here {}", "hay ".repeat(40), "hay ".repeat(80));
        let cut = snippet(&text, &words("needle"));
        assert!(cut.starts_with('…') && cut.contains("the Needle is here"), "{cut}");
        assert_eq!(snippet("short", &words("absent")), "short");
        assert_eq!(snippet("ÜBER ÄRGER", &words("ärger")), "ÜBER ÄRGER");
    }

    #[test]
    fn a_word_is_found_in_any_case_and_among_any_letters() {
        assert_eq!(find_ignoring_case("so it LOGS in", "logs"), Some(6));
        assert_eq!(find_ignoring_case("née Logs", "LOGS"), Some("née ".len()));
        assert_eq!(find_ignoring_case("lo log", "logs"), None);
        assert_eq!(find_ignoring_case("ein ÄRGER", "ärger"), Some(4));
        // The sign of a unit whose small letter is a plain one.
        assert_eq!(find_ignoring_case("300 \u{212a}", "k"), Some(4));
        assert_eq!(find_ignoring_case("any", ""), Some(0));
    }
}
