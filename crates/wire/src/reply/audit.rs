//! What a look through the audit log found.

/// What the audit log is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Where it is.
    pub path: String,
    /// How many lines there are.
    pub lines: u64,
    /// Those that were cut off when a daemon was killed.
    pub torn: u64,
    /// The first that does not follow from the one before it.
    pub broken: Option<BrokenLine>,
}

/// A line that does not follow from the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenLine {
    /// From 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}
