//! Whether a file of a transcript says what the log says.

use crate::{ConversationId, Name};

/// A transcript's file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub conversation: ConversationId,
    pub name: Name,
    pub file: String,
    /// Lines that are as they should be, from the first on.
    pub lines: u64,
    pub difference: Option<Difference>,
    /// It was made anew.
    pub rebuilt: bool,
}

/// Where a file says something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// Nobody has written it: the conversation is older than its first transcript, or nothing happened in it yet.
    NotWritten,
    Missing,
    /// A line that the log does not say. Either text is empty where there is none.
    Line {
        number: u64,
        expected: String,
        found: String,
    },
}
