//! Pages that are mostly tables.

use askama::Template;

use super::sessions::Chip;

#[derive(Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) class: &'static str,
    /// A command line to copy.
    pub(super) cli: String,
    /// What can be done with what the row is about.
    pub(super) button: Option<Button>,
}

/// Something that can be done, with its command line.
#[derive(Default)]
pub(super) struct Button {
    pub(super) word: String,
    /// Where the request goes, and what it says.
    pub(super) path: String,
    pub(super) body: String,
    pub(super) cli: String,
    pub(super) class: &'static str,
    /// What is asked before it is done; empty where it is done at once.
    pub(super) confirm: String,
    /// A word that is wanted of the person, and its name in the request.
    pub(super) ask: String,
    pub(super) ask_as: &'static str,
    /// The command line up to the word.
    pub(super) ask_line: String,
    /// Where it is said what it would do, and what is sent there.
    pub(super) preview: String,
    pub(super) preview_body: String,
    /// Where the browser goes then, with `{id}` for the id of what was made.
    pub(super) then: &'static str,
}

impl Button {
    pub(super) fn new(word: impl Into<String>, path: impl Into<String>, cli: impl Into<String>) -> Button {
        let (word, path, cli) = (word.into(), path.into(), cli.into());
        Button { word, path, cli, body: "{}".to_owned(), ..Button::default() }
    }

    pub(super) fn body(self, body: &serde_json::Value) -> Button {
        Button { body: body.to_string(), ..self }
    }

    pub(super) fn confirm(self, confirm: impl Into<String>) -> Button {
        Button { confirm: confirm.into(), ..self }
    }

    pub(super) fn ask(
        self,
        ask: impl Into<String>,
        ask_as: &'static str,
        ask_line: impl Into<String>,
    ) -> Button {
        Button { ask: ask.into(), ask_as, ask_line: ask_line.into(), ..self }
    }
}

pub(super) fn cell(text: impl Into<String>) -> Cell {
    toned(text, "")
}

pub(super) fn number(text: impl Into<String>) -> Cell {
    toned(text, "num")
}

pub(super) fn toned(text: impl Into<String>, class: &'static str) -> Cell {
    Cell { text: text.into(), class, ..Cell::default() }
}

/// A command line to copy; empty where there is none.
pub(super) fn line(cli: impl Into<String>) -> Cell {
    Cell { cli: cli.into(), ..Cell::default() }
}

pub(super) fn action(button: Option<Button>) -> Cell {
    Cell { button, ..Cell::default() }
}

#[derive(Default)]
pub(super) struct TableRow {
    pub(super) id: String,
    pub(super) href: String,
    pub(super) cells: Vec<Cell>,
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<TableRow>,
    pub(super) nothing: String,
}

impl Table {
    /// It has rows, or says why it has none.
    pub(super) fn is_of_use(&self) -> bool {
        !self.rows.is_empty() || !self.nothing.is_empty()
    }

    fn has_heads(&self) -> bool {
        self.heads.iter().any(|head| !head.is_empty())
    }

    /// What a column is called, where it is.
    fn head(&self, column: &usize) -> &'static str {
        self.heads.get(*column).copied().unwrap_or_default()
    }

    /// A head stands as what is below it.
    fn class_of(&self, column: &usize) -> &'static str {
        let below = self.rows.first().and_then(|row| row.cells.get(*column));
        if below.is_some_and(|cell| cell.class.starts_with("num")) { "num" } else { "" }
    }
}

#[derive(Template, Default)]
#[template(path = "list.html")]
pub(super) struct List {
    pub(super) title: String,
    pub(super) lead: String,
    pub(super) actions: Vec<Button>,
    pub(super) chips: Vec<Chip>,
    pub(super) more_chips: Vec<Chip>,
    /// Made by us, with whatever is others' text escaped.
    pub(super) drawing: String,
    /// The same, below the tables.
    pub(super) below: String,
    pub(super) tables: Vec<Table>,
    pub(super) next: String,
    pub(super) clis: Vec<String>,
}
