//! Transcripts.

use ostler_domain::transcript::{Difference, Verified};

use super::{Result, id};
use crate::{
    InvalidField,
    pb::{self, TranscriptDifference as Wire},
};

pub fn verified(answer: pb::VerifyTranscriptsResponse) -> Result<Verified> {
    let difference = match Wire::try_from(answer.difference) {
        Ok(Wire::Unspecified) => None,
        Ok(Wire::NotWritten) => Some(Difference::NotWritten),
        Ok(Wire::Missing) => Some(Difference::Missing),
        Ok(Wire::Line) => {
            Some(Difference::Line { number: answer.line, expected: answer.expected, found: answer.found })
        }
        Err(_) => {
            let number = answer.difference;
            return Err(InvalidField::new(
                "difference",
                format_args!("{number} is not known to this version"),
            ));
        }
    };
    Ok(Verified {
        conversation: id(&answer.conversation_id, "conversation_id")?,
        name: id(&answer.name, "name")?,
        file: answer.file,
        lines: answer.lines,
        difference,
        rebuilt: answer.rebuilt,
    })
}
