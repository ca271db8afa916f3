//! Tokens and money.

use std::{fmt::Write, time::Duration};

use axum::{Extension, http::header, response::IntoResponse};
use ostler_client::GetUsage;
use ostler_domain::{
    Time,
    limits::PAGE_MOST,
    price::Dollars,
    query::{Page, SessionFilter},
};
use ostler_form::{
    cost::{By, Sum, sums},
    words,
};
use serde::Deserialize;

use super::{
    View, draw, encoded,
    sessions::Chip,
    tables::{Button, List, Table, TableRow, action, cell, number},
};
use crate::{
    api::prices,
    clock,
    guard::Visitor,
    reply::{Answer, Asked, Failure},
};

/// Days that are drawn.
const DAYS: u32 = 30;
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CostAsked {
    by: Option<String>,
    /// Only of this day, in UTC.
    day: Option<String>,
}

impl CostAsked {
    fn by(&self) -> By {
        self.by.as_deref().and_then(By::parse).unwrap_or(By::Model)
    }

    /// The day that is asked for, and its beginning.
    fn day(&self) -> Option<(&str, Time)> {
        let day = self.day.as_deref()?;
        Some((day, Time::from_rfc3339(&format!("{day}T00:00:00Z"))?))
    }

    /// The time that is asked about.
    fn within(&self, first: Time) -> GetUsage {
        self.day().map_or_else(|| question(first, None), |(_, from)| question(from, Some(from.plus(DAY))))
    }
}

fn question(since: Time, until: Option<Time>) -> GetUsage {
    GetUsage { filter: SessionFilter::default(), since: Some(since), until, by: None, limit: 0 }
}

/// The first of the days that are looked at.
fn first_day() -> Time {
    let today = Time::from_micros(clock::now().micros().div_euclid(86_400_000_000) * 86_400_000_000);
    today.minus(DAY * (DAYS - 1))
}

/// The same sums, for a spreadsheet.
pub(super) async fn csv(Extension(visitor): Extension<Visitor>, Asked(asked): Asked<CostAsked>) -> Answer {
    let split =
        sums(&visitor.client, &asked.within(first_day()), asked.by(), &prices(&visitor.client), &[]).await?;
    let mut text = String::from(
        "name,sessions,input,cache_read,cache_write,output,reasoning,cost_usd,plan_usd,unpriced\r\n",
    );
    for sum in &split.rows {
        let usage = &sum.usage;
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{},{},{}\r\n",
            field(&sum.name),
            sum.sessions,
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            usage.reasoning,
            dollars(sum.cost),
            dollars(sum.plan),
            !sum.is_known(),
        );
    }
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"ostler-cost.csv\""),
    ];
    Ok((headers, text).into_response())
}

/// One field: quoted where it must be, and never taken for a formula.
fn field(text: &str) -> String {
    let guarded = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match guarded.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", guarded.replace('"', "\"\"")),
        false => guarded,
    }
}

fn dollars(Dollars(millionths): Dollars) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}

/// What may be spent, where somebody has said so, and how it is said.
async fn budgets(visitor: &Visitor) -> Result<Table, Failure> {
    let campaigns = visitor.client.campaigns(Page::of(PAGE_MOST, None)).await?.rows;
    let rows = campaigns.iter().map(|campaign| {
        let lines = campaign.policy.lines();
        let said = lines.into_iter().find(|line| line.key == "budget").map(|line| line.value);
        let name = campaign.name.as_str();
        let set = Button {
            body: r#"{"settings":[]}"#.to_owned(),
            ..Button::new(
                "Set…",
                format!("/v1/campaigns/{}/set", campaign.id),
                format!("ostler campaign set {name} budget=25usd"),
            )
        };
        TableRow {
            id: campaign.id.to_string(),
            href: format!("/campaigns/{}", campaign.id),
            cells: vec![
                cell(name),
                cell(said.unwrap_or_else(|| "none".to_owned())),
                action(Some(set.ask(
                    format!("Such as budget=25usd, for {name}"),
                    "settings",
                    format!("ostler campaign set {name}"),
                ))),
            ],
        }
    });
    Ok(Table {
        title: "Budgets".to_owned(),
        heads: vec!["Campaign", "Budget", ""],
        rows: rows.collect(),
        nothing: "No campaigns yet.".to_owned(),
    })
}

pub(super) async fn view(visitor: &Visitor, asked: &CostAsked) -> Result<View, Failure> {
    let client = &visitor.client;
    let (by, day, prices, since) = (asked.by(), asked.day(), prices(client), first_day());
    let days = sums(client, &question(since, None), By::Day, &prices, &[]).await?;
    let split = sums(client, &asked.within(since), by, &prices, &[]).await?;
    let of = |n: u32| since.plus(DAY * n).rfc3339()[..10].to_owned();
    // Where nothing has a price, days differ by what they took.
    let has_prices = days.total.cost != Dollars(0);
    let drawn = (0..DAYS).map(of).map(|name| {
        let sum = days.rows.iter().find(|sum| sum.key == name);
        let tokens = sum.map_or(0, |sum| sum.usage.total());
        let amount = if has_prices { sum.map_or(0, |sum| sum.cost.0) } else { tokens };
        let words = sum.map(|sum| format!("{} · {} tokens", money(sum), words::count(tokens)));
        draw::Day { name, amount, words: words.unwrap_or_default() }
    });
    let chip = |by_this: By| Chip {
        href: format!(
            "/cost?by={}{}",
            by_this.word(),
            day.map(|(day, _)| format!("&day={}", encoded(day))).unwrap_or_default()
        ),
        word: by_this.word().to_owned(),
        here: by_this == by,
    };
    let row = |sum: &Sum| TableRow {
        href: href(by, &sum.key),
        cells: vec![
            cell(if sum.name.is_empty() { "–".to_owned() } else { sum.name.clone() }),
            number(words::number(sum.sessions)),
            number(words::count(sum.usage.input)),
            number(words::count(sum.usage.cache_read)),
            number(words::count(sum.usage.cache_write)),
            number(words::count(sum.usage.output)),
            number(money(sum)),
        ],
        ..TableRow::default()
    };
    let mut rows: Vec<TableRow> = split.rows.iter().map(row).collect();
    if !rows.is_empty() {
        let mut total = row(&split.total);
        total.href = String::new();
        rows.push(total);
    }
    let span = day.map_or_else(|| format!("the last {DAYS} days, in UTC"), |(day, _)| day.to_owned());
    let list = List {
        title: "Cost".to_owned(),
        lead: format!("{} in {span} · prices of {}", money(&split.total), prices.date),
        chips: By::ALL.into_iter().map(chip).collect(),
        // Of days on which nothing was used there is nothing to see.
        drawing: if days.rows.is_empty() {
            String::new()
        } else {
            format!(
                "<div class=\"scroll drawing\" tabindex=\"0\" role=\"region\" aria-label=\"days\">{}</div>",
                draw::days(&drawn.collect::<Vec<_>>())
            )
        },
        tables: vec![
            Table {
                heads: vec![by.word(), "Sessions", "Input", "Cache read", "Cache write", "Output", "Cost"],
                rows,
                nothing: "No usage recorded.".to_owned(),
                ..Table::default()
            },
            budgets(visitor).await?,
        ],
        more_chips: vec![Chip {
            href: format!(
                "/cost.csv?by={}{}",
                by.word(),
                day.map(|(day, _)| format!("&day={}", encoded(day))).unwrap_or_default()
            ),
            word: "CSV".to_owned(),
            here: false,
        }],
        clis: vec![
            format!("ostler cost --by {} --since {DAYS}d", by.word()),
            "ostler cost --by session -o json".to_owned(),
        ],
        ..List::default()
    };
    View::new("Cost", &list)
}

/// Where what a sum is of is looked at; nowhere for what belongs to none.
fn href(by: By, key: &str) -> String {
    let key = encoded(key);
    match by {
        _ if key.is_empty() => String::new(),
        By::Session => format!("/sessions/{key}"),
        By::Campaign => format!("/campaigns/{key}"),
        By::Mission => format!("/missions/{key}"),
        By::Model => format!("/sessions?all=true&model={key}"),
        By::Provider => format!("/sessions?all=true&provider={key}"),
        By::Ticket => format!("/sessions?all=true&ticket={key}"),
        By::Chain => format!("/sessions/{key}/chain"),
        By::Day => format!("/cost?by=session&day={key}"),
        // Those of one name are added up, whichever sessions they were.
        By::Agent => String::new(),
    }
}

/// What is unknown is never nothing; `~` is what a subscription covers.
fn money(sum: &Sum) -> String {
    let paid = match (sum.cost, sum.is_known()) {
        (Dollars(0), false) => "unknown".to_owned(),
        (cost, false) => format!("{cost} + unknown"),
        (cost, true) => cost.to_string(),
    };
    if sum.plan == Dollars(0) { paid } else { format!("{paid}, ~{} on plan", sum.plan) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_leads_to_what_it_is_of() {
        let leads = |by, key| href(by, key);
        assert_eq!(leads(By::Day, "2026-11-18"), "/cost?by=session&day=2026-11-18");
        assert_eq!(leads(By::Model, "a/b c"), "/sessions?all=true&model=a%2Fb%20c");
        assert_eq!(leads(By::Ticket, "gh:shop#412"), "/sessions?all=true&ticket=gh%3Ashop%23412");
        assert_eq!(leads(By::Session, "ses_1"), "/sessions/ses_1");
        assert_eq!(leads(By::Chain, "ses_1"), "/sessions/ses_1/chain");
        for by in By::ALL {
            assert_eq!(leads(by, ""), "", "{}: what belongs to none", by.word());
            assert_eq!(leads(by, "x").starts_with('/'), by != By::Agent, "{}", by.word());
        }
    }

    #[test]
    fn a_name_in_a_spreadsheet_is_a_name_and_no_formula() {
        assert_eq!(field("plain"), "plain");
        assert_eq!(field("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(field("=SUM(A1)"), "'=SUM(A1)");
        assert_eq!(dollars(Dollars(1_500_000)), "1.500000");
    }
}
