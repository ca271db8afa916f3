//! `search.db`: full-text search over what was said and done. Contentless: it knows which events have a word,
//! and snippets are cut from the events themselves. It follows the log on a thread of its own, far from the
//! commit path, and is thrown away and built anew whenever it is missing, damaged or not this record's.

mod file;
mod forget;
mod index;
mod query;

pub(crate) use file::{SearchFile, SearchReader};
pub(crate) use index::Indexer;
pub use query::SearchHit;

use ostler_domain::{Event, Kind, limits::SEARCH_RESULT_BYTES, text::head};

/// Says whether events of a kind can be found.
const fn is_searched(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MessageAccepted
            | Kind::MessageEdited
            | Kind::AgentThinking
            | Kind::AgentToolCall
            | Kind::AgentToolResult
            | Kind::AgentCompletion
            | Kind::AgentError
            | Kind::TicketAdded
            | Kind::TicketChanged
    )
}

/// The kinds that can be found, as a list for SQL.
fn searched_kinds() -> String {
    let codes = Kind::ALL.iter().filter(|kind| is_searched(**kind)).map(|kind| kind.code().to_string());
    codes.collect::<Vec<_>>().join(",")
}

/// A session's number as a word of the index, so that what it said is found without going through what others did.
fn session_word(num: i64) -> String {
    format!("s{num}")
}

/// What of an event can be found.
fn text_of(event: &Event) -> Option<String> {
    match event {
        // A message that moved on to another session was found where it was first accepted.
        Event::MessageAccepted(accepted) => {
            accepted.moved_from.is_none().then(|| accepted.message.text.clone())
        }
        Event::TicketAdded(added) => Some(added.about.intent.clone()),
        Event::TicketChanged(changed) => Some(changed.about.intent.clone()),
        Event::MessageEdited(edited) => Some(edited.text.clone()),
        Event::AgentToolCall(call) => Some(format!("{} {}\n{}", call.tool, call.summary, call.input)),
        Event::AgentToolResult(result) => Some(head(&result.output, SEARCH_RESULT_BYTES).to_owned()),
        Event::AgentThinking(text) | Event::AgentCompletion(text) | Event::AgentError(text) => {
            Some(text.text.clone())
        }
        _ => None,
    }
}
