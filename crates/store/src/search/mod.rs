//! `search.db`: full-text search over what was said and done. Contentless: it knows which events have a word,
//! and snippets are cut from the events themselves. It follows the log on a thread of its own, far from the
//! commit path, and is thrown away and built anew whenever it is missing, damaged or not this record's.

mod file;
mod forget;
mod index;
mod query;

pub(crate) use file::{SearchFile, SearchReader};
pub(crate) use index::Indexer;
pub use query::{Among, SearchHit};

use ostler_domain::{Event, Kind, limits::SEARCH_RESULT_BYTES, redact::redacted, text::head};

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
            | Kind::StepStarted
            | Kind::StepEnded
            | Kind::DoneReported
            | Kind::OutputAdded
            | Kind::TicketAdded
            | Kind::TicketChanged
            | Kind::TicketMoved
            | Kind::TicketOutputAdded
            | Kind::TicketStep
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

/// The word of what belongs to a ticket and to no session.
const TICKET_WORD: &str = "t";

/// What of an event can be found, and is shown of it then: without what looks like a secret, whoever said it.
fn text_of(event: &Event) -> Option<String> {
    said_in(event).map(redacted)
}

fn said_in(event: &Event) -> Option<String> {
    match event {
        // A message that moved on to another session was found where it was first accepted.
        Event::MessageAccepted(accepted) => {
            accepted.moved_from.is_none().then(|| accepted.message.text.clone())
        }
        Event::TicketAdded(added) => Some(added.about.intent.clone()),
        Event::TicketChanged(changed) => Some(changed.about.intent.clone()),
        Event::TicketMoved(moved) => (!moved.why.is_empty()).then(|| moved.why.clone()),
        Event::TicketOutputAdded(added) => Some(valued(&added.output.name, &added.output.value)),
        Event::TicketStep(step) => Some(noted(&step.name, &step.note)),
        Event::OutputAdded(added) => Some(valued(&added.name, &added.value)),
        Event::StepStarted(step) => Some(noted(&step.name, &step.note)),
        Event::StepEnded(step) => Some(noted(&step.name, &step.note)),
        Event::DoneReported(done) => (!done.note.is_empty()).then(|| done.note.clone()),
        Event::MessageEdited(edited) => Some(edited.text.clone()),
        Event::AgentToolCall(call) => Some(format!("{} {}\n{}", call.tool, call.summary, call.input)),
        Event::AgentToolResult(result) => Some(head(&result.output, SEARCH_RESULT_BYTES).to_owned()),
        Event::AgentThinking(text) | Event::AgentCompletion(text) | Event::AgentError(text) => {
            Some(text.text.clone())
        }
        _ => None,
    }
}

fn noted(name: &str, note: &str) -> String {
    if note.is_empty() { name.to_owned() } else { format!("{name}: {note}") }
}

fn valued(name: &str, value: &str) -> String {
    noted(name, head(value, SEARCH_RESULT_BYTES))
}
