//! Where a line comes from.

use super::Snapshot;

/// A line of a file, and the snapshot that first has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub commit: String,
    pub text: String,
}

impl Origin {
    /// Reads `git blame --porcelain` of one line.
    pub fn parse(text: &str) -> Option<Self> {
        let commit = text.split_whitespace().next().filter(|name| super::is_object_name(name))?;
        let line = text.lines().find_map(|line| line.strip_prefix('\t'))?;
        Some(Origin { commit: commit.to_owned(), text: line.to_owned() })
    }
}

/// Who made a line what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Blamed {
    pub path: String,
    pub line: u32,
    pub text: String,
    /// The first snapshot with it. Of cause `start`, it was there before the session began.
    pub snapshot: Snapshot,
    /// What was said to the agent in that turn.
    pub prompt: Option<String>,
    /// What that turn cost, where that is known.
    pub cost: Option<crate::price::Dollars>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_the_snapshot_and_the_line_stands_behind_a_tab() {
        let text = "0a1b2c3d4e5f 3 3 1\nauthor x\nsummary y\nfilename f\n\tlet x = 1;\n";
        let origin = Origin::parse(text).unwrap();
        assert_eq!((origin.commit.as_str(), origin.text.as_str()), ("0a1b2c3d4e5f", "let x = 1;"));
        assert_eq!(Origin::parse(""), None);
        assert_eq!(Origin::parse("fatal: no such path"), None);
    }
}
