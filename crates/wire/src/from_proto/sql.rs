//! Questions in SQL.

use std::time::Duration;

use ostler_domain::sql::{Answer, Cell, Question, USUAL_ROWS, USUAL_TIME};

use crate::pb::{self, sql_cell::Value};

pub fn question(request: pb::QueryRequest) -> Question {
    let pb::QueryRequest { sql, rows, time_ms } = request;
    Question {
        sql,
        rows: if rows == 0 { USUAL_ROWS } else { rows },
        time: if time_ms == 0 { USUAL_TIME } else { Duration::from_millis(time_ms) },
    }
}

pub fn sql_answer(answer: pb::QueryResponse) -> Answer {
    let pb::QueryResponse { columns, rows, cut } = answer;
    match (cut, columns.is_empty()) {
        (true, _) => Answer::Cut,
        (false, false) => Answer::Columns(columns),
        (false, true) => Answer::Rows(rows.into_iter().map(row).collect()),
    }
}

fn row(row: pb::SqlRow) -> Vec<Cell> {
    row.cells.into_iter().map(cell).collect()
}

fn cell(cell: pb::SqlCell) -> Cell {
    match cell.value {
        None => Cell::Null,
        Some(Value::Integer(integer)) => Cell::Integer(integer),
        Some(Value::Real(real)) => Cell::Real(real),
        Some(Value::Text(text)) => Cell::Text(text),
        Some(Value::Bytes(bytes)) => Cell::Bytes(bytes),
    }
}
