//! Many things for programs, written as they come: one document with `-o json`, one a line with `-o jsonl`.

use std::cell::Cell;

use serde::Serialize;

use super::{Format, Ui, to_json};
use crate::failure::Failure;

/// A list that is being written, in the form of [`ostler_form::Object`].
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    ui: &'a Ui,
    /// What the rows are called.
    name: &'static str,
    has_any: Cell<bool>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(ui: &'a Ui, name: &'static str) -> Self {
        Self { ui, name, has_any: Cell::new(false) }
    }

    fn is_document(&self) -> bool {
        self.ui.format() == Some(Format::Json)
    }

    pub(crate) fn row(&self, row: &impl Serialize) -> Result<(), Failure> {
        if !self.is_document() {
            return self.ui.json(row);
        }
        let before = match self.has_any.replace(true) {
            true => ",".to_owned(),
            false => begun(self.name),
        };
        self.ui.bytes(format!("{before}{}", to_json(row)).as_bytes())
    }

    /// Ends the document, where there is one.
    pub(crate) fn end(self) -> Result<(), Failure> {
        if !self.is_document() {
            return Ok(());
        }
        let before = if self.has_any.get() { String::new() } else { begun(self.name) };
        self.ui.bytes(format!("{before}{ENDED}\n").as_bytes())
    }
}

/// Until the first row.
fn begun(name: &str) -> String {
    format!("{{\"{name}\":[")
}

/// After the last one: it is all there is.
const ENDED: &str = "],\"next_cursor\":null}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_row_by_row_is_what_a_list_is() {
        let whole = to_json(&ostler_form::Object { name: "events", rows: vec![1, 2], next_cursor: None });
        assert_eq!(format!("{}1,2{ENDED}", begun("events")), whole);
    }
}
