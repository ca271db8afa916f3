//! What is wrong with a message: the field, and the problem with it.

use std::fmt::Display;

/// A field that is missing or does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidField {
    /// Its path from the message on, e.g. `session.usage`.
    pub field: String,
    /// What is wrong with it, so that it completes a sentence that begins with the field.
    pub problem: String,
}

impl InvalidField {
    pub fn missing(field: &str) -> Self {
        Self { field: field.to_owned(), problem: "is missing".to_owned() }
    }

    pub fn new(field: &str, problem: impl Display) -> Self {
        Self { field: field.to_owned(), problem: format!("does not fit: {problem}") }
    }

    /// The same problem, seen from the message around it.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}
