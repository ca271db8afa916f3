//! A chain: who had the work, one after the other, and who helped.

use ostler_client::Session;
use ostler_domain::{
    SessionId, Time, Usage,
    chain::Chain,
    session::{Outcome, StopRule},
};

use super::{money, next_steps, row};
use crate::{
    output::{Column, Line, Look, Table},
    words,
};

/// How many of them are shown at most: who wants all of them takes the list.
pub(crate) const SHOWN: usize = 200;

pub(crate) fn lines(chain: &Chain, asked: SessionId, now: Time, look: &Look) -> Vec<Line> {
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
    let tree = tree(chain);
    for (branch, session) in tree.iter().take(SHOWN) {
        table.row(row_of(session, branch.clone(), session.id == asked, now));
    }
    let mut lines = table.lines(look);
    let in_all = chain.session_count + chain.helper_count;
    let more = in_all.saturating_sub(tree.len().min(SHOWN) as u64);
    if more > 0 {
        lines.push(Line::new().faint(format!("and {more} more")));
    }
    let count = words::plural(chain.session_count, "session", "sessions");
    let helped = match chain.helper_count {
        0 => String::new(),
        n => format!(", {}", words::plural(n, "helper", "helpers")),
    };
    let sum = &chain.sum;
    let all = [
        format!("{count}{helped}"),
        words::span(sum.time),
        format!("{} tokens", words::count(sum.usage.total())),
        money::long(&sum.cost),
    ];
    lines.push(Line::of(all.join(" · ")));
    lines.extend(next_steps(&[
        (format!("ostler seance {} \"…\"", asked.short()), "asks what they knew"),
        (format!("ostler logs {}", asked.short()), "what was done"),
    ]));
    lines
}

/// Each session with what stands before it: helpers below whoever asked for them, as deep as it goes.
fn tree(chain: &Chain) -> Vec<(String, &Session)> {
    let mut rows = Vec::new();
    for (n, session) in chain.sessions.iter().enumerate() {
        let is_last = n + 1 == chain.sessions.len();
        let branch = if n == 0 { String::new() } else { format!("{} ", joint(&chain.sessions[n - 1])) };
        rows.push((branch, session));
        add_helpers(chain, session.id, if is_last { "    " } else { "│   " }, &mut rows);
    }
    rows
}

fn add_helpers<'a>(chain: &'a Chain, asker: SessionId, before: &str, rows: &mut Vec<(String, &'a Session)>) {
    let helpers: Vec<&Session> =
        chain.helpers.iter().filter(|helper| helper.spawned_by == Some(asker)).collect();
    for (n, helper) in helpers.iter().enumerate() {
        let (joint, below) = if n + 1 == helpers.len() { ("└ ", "  ") } else { ("├ ", "│ ") };
        rows.push((format!("{before}{joint}"), helper));
        // As deep as helpers may have helpers, and not in a circle, whatever was imported.
        if rows.len() <= chain.helpers.len() + chain.sessions.len() {
            add_helpers(chain, helper.id, &format!("{before}{below}"), rows);
        }
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insta::assert_snapshot;
    use ostler_domain::{
        chain::Sum,
        price::{Cost, Dollars},
    };

    use super::*;
    use crate::testing::{self, NOW};

    #[test]
    fn in_all_looks() {
        let first = testing::ended(1, "login-limit", Outcome::Oom, 2_000, "The kernel ended the agent.");
        let second = testing::ended(2, "login-limit", Outcome::Handoff, 900, "It handed its work on.");
        let third = Session { provider: "codex".to_owned(), turns: 4, ..testing::session(3, "login-limit") };
        let helper = |n, of: &Session| Session { spawned_by: Some(of.id), ..testing::session(n, "tester") };
        let (near, far) = (helper(4, &second), helper(5, &second));
        let deep = helper(6, &far);
        let usage = Usage { input: 182_000, output: 9_000, ..Usage::default() };
        let cost = Cost { paid: Dollars(610_000), ..Cost::default() };
        let chain = Chain {
            session_count: 3,
            helper_count: 5,
            sum: Sum { usage, cost, time: Duration::from_secs(2_400) },
            sessions: vec![first, second.clone(), third.clone()],
            helpers: vec![near, far, deep],
        };
        assert_snapshot!(testing::in_all_looks(|look| lines(&chain, third.id, NOW, look)));
    }
}
