//! Lists: all of them are asked for with the same flags, shown in the same forms, and drawn anew in the same way.

use std::{collections::HashMap, time::Duration};

use clap::Args;
use ostler_client::{Client, query::EventFilter};
use ostler_domain::{
    Refusal,
    limits::PAGE_MOST,
    query::{Listed, Page},
    text::nearest,
};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Format, Line, Look, Table, Terminals, to_json},
};

pub(crate) use ostler_form::Object;

/// How soon a change is shown, at the earliest: a busy agent changes many times a second.
const REDRAW: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "List")]
pub(crate) struct ListArgs {
    /// Only these columns of the table, in this order; a wrong one names them all
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    columns: Vec<String>,
    /// Leave the heads of the columns out
    #[arg(long)]
    no_headers: bool,
    /// At most this many rows; 0 means all
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Draw it again whenever something changes; with -o jsonl a line for each row that did
    #[arg(short, long)]
    pub(crate) watch: bool,
}

impl ListArgs {
    /// Nothing but that it is watched.
    pub(crate) fn watching() -> Self {
        Self { watch: true, ..Self::default() }
    }

    /// How many rows are wanted, where `otherwise` many are without a word; none means all.
    pub(crate) fn most(&self, otherwise: Option<u32>) -> Option<u32> {
        match self.limit {
            Some(0) => None,
            Some(limit) => Some(limit),
            None => otherwise,
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found<R> {
    pub(crate) rows: Vec<R>,
    pub(crate) next_cursor: Option<u64>,
}

impl<R> Found<R> {
    /// Rows that came all at once.
    pub(crate) fn whole(mut rows: Vec<R>, most: Option<u32>) -> Self {
        rows.truncate(most.map_or(usize::MAX, |most| most as usize));
        Self { rows, next_cursor: None }
    }

    /// Asks for pages until there are enough rows. A page may be short and not be the last.
    pub(crate) async fn paged(
        most: Option<u32>,
        cursor: Option<u64>,
        ask: impl AsyncFn(Page) -> Result<Listed<R>, ostler_client::Error>,
    ) -> Result<Self, Failure> {
        let most = most.map_or(usize::MAX, |most| most as usize);
        let mut found = Found { rows: Vec::new(), next_cursor: cursor };
        loop {
            let room = u32::try_from(most - found.rows.len()).unwrap_or(PAGE_MOST).min(PAGE_MOST);
            let listed = ask(Page { limit: room, cursor: found.next_cursor }).await?;
            found.rows.extend(listed.rows);
            found.next_cursor = listed.next_cursor;
            if found.next_cursor.is_none() || found.rows.len() >= most {
                found.rows.truncate(most);
                return Ok(found);
            }
        }
    }
}

/// What people see.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// None where there is nothing to list.
    pub(crate) table: Option<Table>,
    /// What belongs to the list and fits into no row.
    pub(crate) below: Vec<Line>,
    /// What is said beside it: sums, what to do next, why it is empty.
    pub(crate) remarks: Vec<Line>,
}

/// A list that a command shows.
pub(crate) trait List {
    type Row;

    /// What the rows are called in JSON.
    const ROWS: &'static str;

    /// Looks anew.
    async fn find(&self) -> Result<Found<Self::Row>, Failure>;

    /// What `-q` prints of a row.
    fn id(&self, row: &Self::Row) -> String;

    /// What `-o name` prints of a row.
    fn name(&self, row: &Self::Row) -> String {
        self.id(row)
    }

    /// A row for programs.
    fn form(&self, row: &Self::Row) -> impl Serialize;

    /// The object for programs, where it is more than its rows.
    fn object(&self, _found: &Found<Self::Row>) -> Option<String> {
        None
    }

    async fn screen(&self, found: &Found<Self::Row>) -> Result<Screen, Failure>;
}

/// Shows a list, once or until nobody watches any more.
pub(crate) async fn run<L: List>(
    app: &App,
    client: Option<&Client>,
    args: &ListArgs,
    list: &L,
) -> Result<u8, Failure> {
    if !args.columns.is_empty() && !is_table(app) {
        return Err(Failure::usage("--columns chooses those of a table, and this is none"));
    }
    if args.watch {
        return watch(app, client, args, list).await;
    }
    let found = list.find().await?;
    if !is_table(app) {
        print(app, list, &found)?;
        return Ok(exit_code::OK);
    }
    let ui = &app.ui;
    let screen = list.screen(&found).await?;
    ui.page();
    match screen.table {
        Some(table) => ui.data_lines(&chosen(app, args, table)?.lines(ui.out_look()))?,
        None => _ = app.table().map(|table| chosen(app, args, table)).transpose()?,
    }
    ui.data_lines(&folded(&screen.below, ui.out_look()))?;
    // Help for who looks, not rows for who reads.
    folded(&screen.remarks, ui.err_look()).iter().for_each(|line| ui.remark(line));
    Ok(exit_code::OK)
}

fn folded(lines: &[Line], look: &Look) -> Vec<Line> {
    lines.iter().flat_map(|line| line.folded(look.width, 0)).collect()
}

/// Says whether people are shown a table; else ids or JSON.
pub(crate) fn is_table(app: &App) -> bool {
    !app.ui.is_quiet() && matches!(app.ui.format(), None | Some(Format::Table | Format::Wide))
}

fn chosen(app: &App, args: &ListArgs, table: Table) -> Result<Table, Failure> {
    let table = table.with_heads(!args.no_headers).wide(app.ui.format() == Some(Format::Wide));
    if args.columns.is_empty() {
        return Ok(table);
    }
    table.only(&args.columns).map_err(|(wrong, known)| {
        let refusal = Refusal::invalid(format!("there is no column \"{wrong}\" here"));
        let known: Vec<&str> = known.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let first = || known.iter().take(2).copied().collect::<Vec<_>>().join(",");
        let refusal = refusal.because(format!("there are: {}", known.join(", ")));
        let refusal = match nearest(&wrong.to_lowercase(), known.iter().copied()) {
            Some(meant) => refusal.hint(format!("--columns {meant}"), "may be what you meant"),
            None => refusal.hint(format!("--columns {}", first()), "would show these"),
        };
        refusal.into()
    })
}

fn print<L: List>(app: &App, list: &L, found: &Found<L::Row>) -> Result<(), Failure> {
    let ui = &app.ui;
    match ui.format() {
        Some(Format::Json) => match list.object(found) {
            Some(object) => ui.bytes(format!("{object}\n").as_bytes()),
            None => ui.json(&Object {
                name: L::ROWS,
                rows: found.rows.iter().map(|row| list.form(row)).collect(),
                next_cursor: found.next_cursor,
            }),
        },
        Some(Format::Jsonl) => found.rows.iter().try_for_each(|row| ui.json(&list.form(row))),
        Some(Format::Name) => found.rows.iter().try_for_each(|row| ui.data(&Line::of(list.name(row)))),
        _ => found.rows.iter().try_for_each(|row| ui.data(&Line::of(list.id(row)))),
    }
}

async fn watch<L: List>(
    app: &App,
    client: Option<&Client>,
    args: &ListArgs,
    list: &L,
) -> Result<u8, Failure> {
    let ui = &app.ui;
    let is_lines = ui.format() == Some(Format::Jsonl);
    let is_drawn = is_table(app) && ui.out_look().in_place;
    if !is_lines && !is_drawn {
        return Err(Failure::usage("-w draws a table on a terminal, and this is none: use -o jsonl"));
    }
    let mut events = match client {
        Some(client) => Some(client.watch(EventFilter::default(), None).await?),
        None => None,
    };
    // Ages grow even when nothing happens.
    let second = Duration::from_secs(1);
    let mut seconds = interval_at(Instant::now() + second, second);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut printed: HashMap<String, String> = HashMap::new();
    let mut is_first = true;
    loop {
        let drawn = Instant::now();
        let found = list.find().await?;
        if is_lines {
            for row in &found.rows {
                let form = to_json(&list.form(row));
                if printed.get(&list.id(row)) != Some(&form) {
                    ui.bytes(format!("{form}\n").as_bytes())?;
                    printed.insert(list.id(row), form);
                }
            }
            ui.flush()?;
        } else {
            // Windows are drawn larger and smaller meanwhile.
            let terminals = Terminals::find();
            let lines = frame(app, args, list.screen(&found).await?, &terminals)?;
            ui.draw(&lines, &terminals.out, is_first)?;
            is_first = false;
        }
        tokio::select! {
            event = next(&mut events) => if let Err(error) = event { return Err(error.into()) },
            _ = seconds.tick(), if !is_lines || client.is_none() => {}
        }
        sleep_until(drawn + REDRAW).await;
    }
}

/// Waits for news; for ever where there are none.
async fn next(events: &mut Option<ostler_client::Watch>) -> Result<(), ostler_client::Error> {
    match events {
        Some(events) => match events.next().await {
            Some(Err(error)) => Err(error),
            _ => Ok(()),
        },
        None => std::future::pending().await,
    }
}

/// What fits on the screen: the remarks stay, rows at the end go.
fn frame(app: &App, args: &ListArgs, screen: Screen, terminals: &Terminals) -> Result<Vec<Line>, Failure> {
    let mut lines = match screen.table {
        Some(table) => chosen(app, args, table)?.lines(&terminals.out),
        None => Vec::new(),
    };
    lines.extend(folded(&screen.below, &terminals.out));
    Ok(cut_to(lines, folded(&screen.remarks, &terminals.out), terminals.rows))
}

fn cut_to(mut lines: Vec<Line>, remarks: Vec<Line>, rows: Option<usize>) -> Vec<Line> {
    // The last row of the screen is the cursor's.
    let room = rows.map_or(usize::MAX, |rows| rows.saturating_sub(remarks.len() + 1).max(1));
    if lines.len() > room {
        let left_out = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(Line::new().faint(format!("… {left_out} more")));
    }
    lines.extend(remarks);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::with_runtime;

    #[test]
    fn pages_are_asked_for_until_there_are_enough() {
        // Ten rows in pages of at most three.
        let ask = async |page: Page| {
            let from = page.cursor.unwrap_or(0);
            let until = (from + u64::from(page.limit.min(3))).min(10);
            Ok(Listed { rows: (from..until).collect(), next_cursor: (until < 10).then_some(until) })
        };
        let found = |most, cursor| with_runtime(Found::paged(most, cursor, ask)).unwrap();
        assert_eq!(found(None, None).rows, (0..10).collect::<Vec<_>>());
        let seven = found(Some(7), None);
        assert_eq!((seven.rows.len(), seven.next_cursor), (7, Some(7)));
        assert_eq!(found(Some(7), Some(7)).rows, [7, 8, 9]);
        assert_eq!(Found::whole(vec![1, 2, 3], Some(2)).rows, [1, 2]);
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = |limit| ListArgs { limit, ..ListArgs::default() };
        assert_eq!(limit(Some(0)).most(Some(50)), None);
        assert_eq!(limit(Some(5)).most(Some(50)), Some(5));
        assert_eq!(limit(None).most(Some(50)), Some(50));
    }

    #[test]
    fn what_is_drawn_fits_on_the_screen() {
        let look = Look::plain(Some(20));
        let lines = |n: usize| (0..n).map(|n| Line::of(format!("row {n}"))).collect::<Vec<_>>();
        let drawn = |n, rows| {
            let remarks = folded(&[Line::of("two need you and one has failed")], &look);
            cut_to(lines(n), remarks, rows).iter().map(|line| line.show(&look)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(9, Some(6)), ["row 0", "row 1", "… 7 more", "two need you and one", "has failed"]);
        assert_eq!(drawn(3, Some(6)).len(), 5);
        assert_eq!(drawn(9, None).len(), 11);
        assert_eq!(drawn(9, Some(1))[0], "… 9 more");
    }

    #[test]
    fn an_object_has_its_rows_and_where_the_next_begin() {
        let object = |next_cursor| to_json(&Object { name: "campaigns", rows: vec![1, 2], next_cursor });
        assert_eq!(object(None), r#"{"campaigns":[1,2],"next_cursor":null}"#);
        assert_eq!(object(Some(9)), r#"{"campaigns":[1,2],"next_cursor":"9"}"#);
    }
}
