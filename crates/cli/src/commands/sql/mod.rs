//! `ostler sql`: questions in SQL over the record's views.

mod form;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use ostler_domain::{
    Refusal,
    sql::{Answer, Cell, Question, USUAL_ROWS, USUAL_TIME},
    text::{one_line, visible},
};

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    input, listing,
    output::{Column, Format, Line, Table},
    parse,
};
use form::{AnswerForm, RowForm};

/// Characters of a value in a table; `-o wide` has more, every other form all.
const SHOWN: usize = 60;
const SHOWN_WIDE: usize = 2_000;
/// What a column may be cut to where the screen is narrow.
const NARROWEST: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// One SELECT over the views, SQLite's dialect; - reads it from standard input
    #[arg(value_name = "QUERY", allow_hyphen_values = true, value_parser = query)]
    query: Option<String>,
    /// Read the query from this file
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["query", "views"])]
    file: Option<PathBuf>,
    /// List the views and their columns
    #[arg(long, conflicts_with = "query")]
    views: bool,
    /// Most rows
    #[arg(long, value_name = "N", default_value_t = USUAL_ROWS, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Give up after this time, 10m at most [default: 10s]
    #[arg(long, value_parser = parse::time_limit, value_name = "SPAN")]
    timeout: Option<Duration>,
    /// Leave the names of the columns out, of tables and -o csv
    #[arg(long)]
    no_headers: bool,
}

/// A query may begin with a comment, which no option looks like.
fn query(typed: &str) -> Result<String, String> {
    match typed.starts_with('-') && typed != "-" && !typed.contains(char::is_whitespace) {
        true => Err("that is no option, and no question".to_owned()),
        false => Ok(typed.to_owned()),
    }
}

impl SqlArgs {
    fn question(&self, app: &App) -> Result<Question, Failure> {
        let sql = match (&self.query, &self.file) {
            (Some(query), _) if query == "-" => input::whole(&app.ui)?,
            (Some(query), _) => query.clone(),
            (None, Some(file)) => input::file(file)?,
            (None, None) if self.views => "SELECT name, columns FROM v1_views".to_owned(),
            (None, None) if input::is_given() => input::whole(&app.ui)?,
            (None, None) => {
                return Err(Refusal::invalid("no query was given")
                    .hint("ostler sql 'SELECT name, status FROM v1_sessions'", "asks one")
                    .hint("ostler sql --views", "lists what can be asked")
                    .into());
            }
        };
        Ok(Question { sql, rows: self.limit, time: self.timeout.unwrap_or(USUAL_TIME) })
    }
}

pub(crate) async fn run(app: &App, args: SqlArgs) -> Result<u8, Failure> {
    let question = args.question(app)?;
    let client = app.client().await?;
    let mut answer = client.sql(&question).await?;
    let mut shown = Shown::new(app, &args);
    let mut count: u64 = 0;
    while let Some(piece) = answer.next().await {
        match piece? {
            Answer::Columns(columns) => shown.begin(columns)?,
            Answer::Rows(rows) => {
                count += rows.len() as u64;
                rows.into_iter().try_for_each(|row| shown.row(row))?;
            }
            Answer::Cut => shown.is_cut = true,
        }
    }
    let is_cut = shown.is_cut;
    if args.views && listing::is_table(app) {
        shown.list()?
    } else {
        shown.end()?
    }
    if is_cut {
        let line = Line::of(format!("note: cut after {count} rows, and there are more: "));
        app.ui.remark(&line.faint("--limit N"));
    }
    Ok(exit_code::OK)
}

/// What has been answered, shown as far as it can be before its end.
struct Shown<'a> {
    app: &'a App,
    with_heads: bool,
    columns: Vec<String>,
    /// Held back until the end, for forms that need all of it.
    rows: Vec<Vec<Cell>>,
    is_cut: bool,
}

impl<'a> Shown<'a> {
    fn new(app: &'a App, args: &SqlArgs) -> Self {
        Self { app, with_heads: !args.no_headers, columns: Vec::new(), rows: Vec::new(), is_cut: false }
    }

    fn begin(&mut self, columns: Vec<String>) -> Result<(), Failure> {
        self.columns = form::unique(columns);
        match self.app.ui.format() {
            Some(Format::Csv) if self.with_heads => self.csv(&form::csv_heads(&self.columns)),
            _ => Ok(()),
        }
    }

    fn row(&mut self, row: Vec<Cell>) -> Result<(), Failure> {
        match self.app.ui.format() {
            Some(Format::Csv) => self.csv(&form::csv(&row)),
            Some(Format::Jsonl) => self.app.ui.json(&RowForm { columns: &self.columns, cells: &row }),
            Some(Format::Name) => {
                self.app.ui.data(&Line::of(row.first().map(form::plain).unwrap_or_default()))
            }
            _ => {
                self.rows.push(row);
                Ok(())
            }
        }
    }

    /// A line for other programs; people are not to have their terminals changed by it.
    fn csv(&self, line: &str) -> Result<(), Failure> {
        let ui = &self.app.ui;
        if ui.terminals().stdout_is_terminal { ui.text(&visible(line)) } else { ui.bytes(line.as_bytes()) }
    }

    fn end(self) -> Result<(), Failure> {
        let ui = &self.app.ui;
        match ui.format() {
            Some(Format::Csv | Format::Jsonl | Format::Name) => Ok(()),
            Some(Format::Json) => {
                ui.json(&AnswerForm { columns: &self.columns, rows: &self.rows, is_cut: self.is_cut })
            }
            None | Some(Format::Table | Format::Wide) => {
                ui.page();
                ui.data_lines(&self.table().lines(ui.out_look()))
            }
        }
    }

    /// The views, with all of their columns.
    fn list(&self) -> Result<(), Failure> {
        let ui = &self.app.ui;
        let widest = self.rows.iter().map(|row| form::plain(&row[0]).len()).max().unwrap_or(0);
        for row in &self.rows {
            let line =
                Line::new().strong(form::plain(&row[0])).padded(widest + 2).plain(form::plain(&row[1]));
            ui.data_lines(&line.folded(ui.out_look().width, widest + 2))?;
        }
        Ok(())
    }

    fn table(&self) -> Table {
        let is_wide = self.app.ui.format() == Some(Format::Wide);
        let is_number = |at: usize| {
            let mut cells = self.rows.iter().map(|row| &row[at]);
            cells.all(|cell| matches!(cell, Cell::Integer(_) | Cell::Real(_) | Cell::Null))
        };
        let columns: Vec<Column> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, name)| {
                // Columns have names for as long as the program runs, and there is one table.
                let column = Column::new(one_line(name, SHOWN).leak()).gives_way_to(NARROWEST);
                if is_number(at) { column.right() } else { column }
            })
            .collect();
        let mut table = Table::new(columns).with_heads(self.with_heads);
        let most = if is_wide { SHOWN_WIDE } else { SHOWN };
        for row in &self.rows {
            let cell = |cell: &Cell| match cell {
                Cell::Null => Line::new().faint("–"),
                other => Line::of(one_line(&form::plain(other), most)),
            };
            table.row(row.iter().map(cell).collect());
        }
        table
    }
}
