//! What a ticket is elsewhere: `gh:shop#412`, `bead:gt-xyz`, `fest:7/2`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Longest reference: trackers' own are far shorter.
pub const EXTERNAL_BYTES: usize = 200;

/// A tracker's name, a colon, and the tracker's own name for the work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExternalRef(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a reference is a tracker and its own name for the work, without blanks: gh:shop#412, bead:gt-xyz")]
pub struct ExternalError;

impl ExternalRef {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ExternalRef {
    type Err = ExternalError;

    fn from_str(text: &str) -> Result<Self, ExternalError> {
        let (tracker, rest) = text.split_once(':').ok_or(ExternalError)?;
        let starts = tracker.starts_with(|c: char| c.is_ascii_lowercase());
        let is_tracker =
            starts && tracker.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        let is_name = !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control());
        // Ostler's own words are no tracker's.
        let fits = is_tracker && is_name && tracker != "ostler" && text.len() <= EXTERNAL_BYTES;
        if fits { Ok(Self(text.to_owned())) } else { Err(ExternalError) }
    }
}

impl TryFrom<String> for ExternalRef {
    type Error = ExternalError;

    fn try_from(text: String) -> Result<Self, ExternalError> {
        text.parse()
    }
}

impl From<ExternalRef> for String {
    fn from(external: ExternalRef) -> String {
        external.0
    }
}

impl fmt::Display for ExternalRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_a_tracker_and_its_work() {
        for fine in ["gh:shop#412", "bead:gt-xyz", "fest:7/2", "md:todo.md:fix-the-login", "x-1:y"] {
            assert_eq!(fine.parse::<ExternalRef>().unwrap().to_string(), fine);
        }
        let long = format!("gh:{}", "x".repeat(EXTERNAL_BYTES));
        for wrong in ["", "gh", "gh:", ":x", "GH:1", "1:x", "gh:two words", "gh:a\nb", "ostler:trial", &long]
        {
            assert!(wrong.parse::<ExternalRef>().is_err(), "{wrong:.20}");
        }
    }
}
