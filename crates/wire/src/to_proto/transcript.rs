//! Transcripts.

use ostler_domain::transcript::{Difference, Verified};

use crate::pb::{self, TranscriptDifference as Wire};

pub fn verified(verified: &Verified) -> pb::VerifyTranscriptsResponse {
    let (difference, line, expected, found) = match &verified.difference {
        None => (Wire::Unspecified, 0, String::new(), String::new()),
        Some(Difference::NotWritten) => (Wire::NotWritten, 0, String::new(), String::new()),
        Some(Difference::Missing) => (Wire::Missing, 0, String::new(), String::new()),
        Some(Difference::Line { number, expected, found }) => {
            (Wire::Line, *number, expected.clone(), found.clone())
        }
    };
    pb::VerifyTranscriptsResponse {
        conversation_id: verified.conversation.to_string(),
        name: verified.name.to_string(),
        file: verified.file.clone(),
        lines: verified.lines,
        difference: difference.into(),
        line,
        expected,
        found,
        rebuilt: verified.rebuilt,
    }
}
