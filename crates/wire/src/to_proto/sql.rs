//! Questions in SQL.

use ostler_domain::sql::{Answer, Cell, Question};

use crate::pb::{self, sql_cell::Value};

pub fn question(question: &Question) -> pb::QueryRequest {
    pb::QueryRequest {
        sql: question.sql.clone(),
        rows: question.rows,
        time_ms: u64::try_from(question.time.as_millis()).unwrap_or(u64::MAX),
    }
}

pub fn sql_answer(answer: Answer) -> pb::QueryResponse {
    match answer {
        Answer::Columns(columns) => pb::QueryResponse { columns, ..pb::QueryResponse::default() },
        Answer::Rows(rows) => {
            pb::QueryResponse { rows: rows.into_iter().map(row).collect(), ..pb::QueryResponse::default() }
        }
        Answer::Cut => pb::QueryResponse { cut: true, ..pb::QueryResponse::default() },
    }
}

fn row(cells: Vec<Cell>) -> pb::SqlRow {
    pb::SqlRow { cells: cells.into_iter().map(cell).collect() }
}

fn cell(cell: Cell) -> pb::SqlCell {
    let value = match cell {
        Cell::Null => None,
        Cell::Integer(integer) => Some(Value::Integer(integer)),
        Cell::Real(real) => Some(Value::Real(real)),
        Cell::Text(text) => Some(Value::Text(text)),
        Cell::Bytes(bytes) => Some(Value::Bytes(bytes)),
    };
    pb::SqlCell { value }
}
