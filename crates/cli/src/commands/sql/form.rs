//! Rows of answers for programs: JSON and comma-separated values.

use std::collections::BTreeSet;

use ostler_domain::sql::Cell;
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// `{"columns": […], "rows": [{…}], "cut": false}`
pub(super) struct AnswerForm<'a> {
    pub(super) columns: &'a [String],
    pub(super) rows: &'a [Vec<Cell>],
    pub(super) is_cut: bool,
}

impl Serialize for AnswerForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("columns", self.columns)?;
        map.serialize_entry("rows", &RowForms(self))?;
        map.serialize_entry("cut", &self.is_cut)?;
        map.end()
    }
}

struct RowForms<'a>(&'a AnswerForm<'a>);

impl Serialize for RowForms<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let AnswerForm { columns, rows, .. } = self.0;
        let mut all = serializer.serialize_seq(Some(rows.len()))?;
        for cells in *rows {
            all.serialize_element(&RowForm { columns, cells })?;
        }
        all.end()
    }
}

/// An object with the columns' names.
pub(super) struct RowForm<'a> {
    pub(super) columns: &'a [String],
    pub(super) cells: &'a [Cell],
}

impl Serialize for RowForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.columns.len()))?;
        for (name, cell) in self.columns.iter().zip(self.cells) {
            match cell {
                Cell::Null => map.serialize_entry(name, &())?,
                Cell::Integer(integer) => map.serialize_entry(name, integer)?,
                Cell::Real(real) => map.serialize_entry(name, real)?,
                Cell::Text(text) => map.serialize_entry(name, text)?,
                Cell::Bytes(bytes) => map.serialize_entry(name, &hex(bytes))?,
            }
        }
        map.end()
    }
}

/// The names of columns, of which an object has each once: `id`, `id_2`.
pub(super) fn unique(columns: Vec<String>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let free = |name: String| {
        let mut other = name.clone();
        let mut n = 2;
        while !taken.insert(other.clone()) {
            other = format!("{name}_{n}");
            n += 1;
        }
        other
    };
    columns.into_iter().map(free).collect()
}

/// A value as text.
pub(super) fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(integer) => integer.to_string(),
        Cell::Real(real) => real.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Bytes(bytes) => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A line of RFC 4180. NULL is nothing, an empty text a pair of quotes.
pub(super) fn csv(row: &[Cell]) -> String {
    let field = |cell: &Cell| match cell {
        Cell::Text(text) => quoted(text),
        other => plain(other),
    };
    line(row.iter().map(field).collect())
}

pub(super) fn csv_heads(columns: &[String]) -> String {
    line(columns.iter().map(|name| quoted(name)).collect())
}

fn line(fields: Vec<String>) -> String {
    format!("{}\n", fields.join(","))
}

fn quoted(text: &str) -> String {
    let needs = text.is_empty() || text.contains([',', '"', '\n', '\r']);
    if needs { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Vec<Cell> {
        vec![
            Cell::Null,
            Cell::Integer(-7),
            Cell::Real(1.5),
            Cell::Text("a, \"b\"\nc".to_owned()),
            Cell::Text(String::new()),
            Cell::Bytes(vec![0, 255]),
        ]
    }

    #[test]
    fn every_value_has_a_form() {
        assert_eq!(csv(&row()), ",-7,1.5,\"a, \"\"b\"\"\nc\",\"\",00ff\n");
        let columns: Vec<String> = ["a", "a", "a_2", "b", "c", "d"].map(str::to_owned).to_vec();
        let columns = unique(columns);
        assert_eq!(columns, ["a", "a_2", "a_2_2", "b", "c", "d"]);
        let rows = [row()];
        let form = AnswerForm { columns: &columns, rows: &rows, is_cut: true };
        assert_eq!(
            serde_json::to_string(&form).unwrap(),
            r#"{"columns":["a","a_2","a_2_2","b","c","d"],"rows":[{"a":null,"a_2":-7,"a_2_2":1.5,"b":"a, \"b\"\nc","c":"","d":"00ff"}],"cut":true}"#
        );
        let infinite = [Cell::Real(f64::INFINITY)];
        let form = RowForm { columns: &columns[..1], cells: &infinite };
        assert_eq!(serde_json::to_string(&form).unwrap(), r#"{"a":null}"#, "JSON has no such number");
    }
}
