//! A chain: who had the work, one after the other, and who helped.

use std::time::Duration;

use ostler_client::Session;
use ostler_domain::{
    Time, Usage,
    price::Cost,
    session::{Outcome, StopRule},
};

use super::{money, next_steps, row};
use crate::{
    output::{Column, Line, Look, Table},
    words,
};

/// What all of them took together; times overlap for helpers and are added all the same.
pub(crate) struct Sum {
    pub(crate) tokens: u64,
    pub(crate) cost: Cost,
    pub(crate) time: Duration,
}

impl Sum {
    pub(crate) fn of<'a>(sessions: impl Iterator<Item = &'a Session>, now: Time) -> Sum {
        let mut sum = Sum { tokens: 0, cost: Cost::default(), time: Duration::ZERO };
        for session in sessions {
            sum.tokens += session.usage.total();
            sum.cost += &session.cost;
            sum.time += session.ended_at.unwrap_or(now).since(session.created_at);
        }
        sum
    }
}

pub(crate) fn lines(
    sessions: &[Session],
    helpers: &[Session],
    asked: &Session,
    sum: &Sum,
    now: Time,
    look: &Look,
) -> Vec<Line> {
    let columns = [
        Column::new(""),
        Column::new("ID"),
        Column::new("AGENT"),
        Column::new("PROVIDER").goes(2),
        Column::new("ENDED"),
        Column::new("TURNS").right().goes(1),
        Column::new("TIME").right(),
        Column::new("TOKENS").right(),
        Column::new("COST").right(),
    ];
    let mut table = Table::new(columns);
    for (n, session) in sessions.iter().enumerate() {
        let is_last = n + 1 == sessions.len();
        let branch = if n == 0 { String::new() } else { format!("{} ", joint(&sessions[n - 1])) };
        table.row(row_of(session, branch, session.id == asked.id, now));
        for helper in helpers.iter().filter(|helper| helper.spawned_by == Some(session.id)) {
            let line = if is_last { "    └ " } else { "│   └ " };
            table.row(row_of(helper, line.to_owned(), helper.id == asked.id, now));
        }
    }
    let mut lines = table.lines(look);
    let count = words::plural(sessions.len() as u64, "session", "sessions");
    let helped = match helpers.len() as u64 {
        0 => String::new(),
        n => format!(", {}", words::plural(n, "helper", "helpers")),
    };
    let all = [
        format!("{count}{helped}"),
        words::span(sum.time),
        format!("{} tokens", words::count(sum.tokens)),
        money::long(&sum.cost),
    ];
    lines.push(Line::of(all.join(" · ")));
    lines.extend(next_steps(&[
        (format!("ostler seance {} \"…\"", asked.id.short()), "asks what they knew"),
        (format!("ostler logs {}", asked.id.short()), "what was done"),
    ]));
    lines
}

/// How the work came from the session before.
fn joint(before: &Session) -> &'static str {
    let rule = before.obituary.as_ref().and_then(|obituary| obituary.rule);
    match (before.outcome, rule) {
        (Some(Outcome::Handoff), _) => "→ handoff",
        (_, Some(StopRule::Restart)) => "↻ restart",
        (Some(outcome), _) if outcome.is_failure() => "✗ respawn",
        _ => "↻ went on",
    }
}

fn row_of(session: &Session, branch: String, is_asked: bool, now: Time) -> Vec<Line> {
    let name =
        if is_asked { Line::new().strong(session.name.as_str()) } else { Line::of(session.name.as_str()) };
    let ended = session.outcome.map_or_else(|| session.status.as_str(), Outcome::as_str);
    let (tone, sign) = row::sign(session);
    vec![
        Line::new().faint(branch),
        Line::of(session.id.short()),
        name,
        Line::of(format!("{}{}", session.provider, row::model(session))),
        Line::toned(tone, sign).plain(format!(" {ended}")),
        Line::of(session.turns.to_string()),
        Line::of(words::span(session.ended_at.unwrap_or(now).since(session.created_at))),
        Line::of(words::count(Usage::total(&session.usage))),
        Line::of(money::short(&session.cost)),
    ]
}
