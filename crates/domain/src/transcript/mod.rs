//! Transcripts: a conversation as lines of JSON, in the form (version 3) that OpenClaw reads and writes.
//!
//! A transcript is made from events alone, so that the same events always give the same bytes. It is written beside the
//! log and never read back as its source.

mod line;
mod markdown;
mod page;
mod scribe;
mod story;
mod verified;

pub use line::{Block, Cost, Header, Line, Message, Origin, Picture, Place, StopReason, TokenUse};
pub use markdown::markdown;
pub use page::{PAGE_END, page_begin, page_entry};
pub use scribe::{KINDS, Scribe};
pub use story::{Shown, TITLE, picture_line, shown, spent_line};
pub use verified::{Difference, Verified};

use crate::conversation::Key;

/// The form of all lines.
pub const VERSION: u32 = 3;

/// The name of a conversation's file: one of a thread says which.
pub fn file_name(key: &Key) -> String {
    match key.topic() {
        Some(topic) => format!("transcript-topic-{}.jsonl", encoded(topic)),
        None => "transcript.jsonl".to_owned(),
    }
}

/// Text that may stand in a file's name, as addresses of pages write it.
pub fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
