//! The list of sessions, those that need you first, and the line that sums it up.

use std::collections::HashMap;

use ostler_client::Session;
use ostler_domain::{
    CampaignId, SessionId, Time,
    budget::Today,
    session::{Restart, Sandbox, Status},
    text::{one_line, shell_word},
};

use super::{money, row};
use crate::{Column, Line, Table, Tone, words};

/// Campaigns' names by id; those of removed ones are not known any more.
#[derive(Debug, Default)]
pub struct CampaignNames(pub HashMap<CampaignId, String>);

impl CampaignNames {
    pub fn of(&self, id: &CampaignId) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| id.short())
    }
}

/// What a row says is cut to this width before a column goes.
const NOW_WIDTH: usize = 50;
/// The column of machines, behind the sign and the id.
const NODE_AT: usize = 2;

/// A session, and what is shown with it.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub session: &'a Session,
    pub campaign: &'a str,
    /// The machine, where there are several.
    pub node: Option<&'a str>,
    /// When it was so, where that machine does not answer.
    pub stale: Option<Time>,
}

impl<'a> Shown<'a> {
    /// Of the machine that was asked.
    pub fn here(session: &'a Session, campaign: &'a str) -> Self {
        Self { session, campaign, node: None, stale: None }
    }
}

/// Whether Ostler confined it; nobody asks that of one that it did not run.
fn is_confined(session: &Session) -> bool {
    session.sandbox == Sandbox::On || session.imported.is_some()
}

/// The sessions as a table.
pub fn table(rows: &[Shown<'_>], now: Time) -> Table {
    // Who runs unconfined is seen; where nobody does there is nothing to see.
    let sandbox = match rows.iter().all(|shown| is_confined(shown.session)) {
        true => Column::new("SANDBOX").extra(),
        false => Column::new("SANDBOX"),
    };
    let mut columns = vec![
        Column::new(""),
        Column::new("ID"),
        Column::new("AGENT").also("name"),
        Column::new("CAMPAIGN").goes(3),
        Column::new("PROVIDER").goes(2),
        Column::new("STATUS"),
        sandbox,
        Column::new("NOW").gives_way_to(NOW_WIDTH),
        Column::new("AGE").right().goes(4),
        Column::new("CTX").right().goes(1),
        Column::new("COST").right(),
        Column::new("MODEL").extra(),
        Column::new("TOKENS").right().extra(),
        Column::new("TURNS").right().extra(),
        Column::new("RESTARTS").right().extra(),
        Column::new("TICKET").extra(),
        Column::new("SESSION").extra(),
    ];
    // Who asks one machine knows which.
    let has_nodes = rows.iter().any(|shown| shown.node.is_some());
    if has_nodes {
        columns.insert(NODE_AT, Column::new("NODE"));
    }
    let mut table = Table::new(columns);
    let ids: Vec<_> = rows.iter().map(|shown| shown.session.id).collect();
    for (shown, short) in rows.iter().zip(row::short_ids(&ids)) {
        let mut cells = cells(shown, &short, now);
        if has_nodes {
            cells.insert(NODE_AT, Line::of(shown.node.unwrap_or_default()));
        }
        table.row(cells);
    }
    table
}

fn cells(shown: &Shown<'_>, short: &str, now: Time) -> Vec<Line> {
    let Shown { session, campaign, stale, .. } = *shown;
    let (tone, sign) = row::sign(session);
    let none = || Line::new().faint("–");
    let if_any = |text: Option<&str>| text.map_or_else(none, Line::of);
    vec![
        Line::toned(tone, sign),
        Line::toned(Tone::Accent, short),
        Line::new().strong(session.name.as_str()),
        Line::of(campaign),
        Line::of(&session.provider),
        Line::toned(tone, session.status.as_str()),
        Line::of(session.imported.as_ref().map_or(session.sandbox.as_str(), |_| "–")),
        match stale {
            Some(at) => Line::new()
                .faint(format!("stale {} · ", words::age(now.since(at))))
                .append(row::now(session, at)),
            None => row::now(session, now),
        },
        Line::of(words::age(session.ended_at.unwrap_or(now).since(session.created_at))),
        match session.context {
            Some(context) if session.ended_at.is_none() => Line::of(words::context_short(&context)),
            _ => none(),
        },
        match money::short(&session.cost) {
            cost if cost.is_empty() => none(),
            cost => Line::of(cost),
        },
        if_any(session.model.as_deref()),
        match session.usage.total() {
            0 => none(),
            total => Line::of(words::count(total)),
        },
        Line::of(session.turns.to_string()),
        Line::of(session.restart_count.to_string()),
        if_any(session.ticket.as_deref()),
        Line::of(session.id.to_string()),
    ]
}

/// What the last line of a list knows beside its rows.
#[derive(Debug, Default)]
pub struct Beside {
    /// What all sessions cost today.
    pub today: Option<Today>,
    /// Why everything stands still.
    pub halted: Option<String>,
    /// Why nothing new starts.
    pub disk: Option<String>,
    /// Who lets nothing new start.
    pub drained: Option<String>,
    /// How to see what is not shown.
    pub more: Option<String>,
    /// Set where the rows are a part of what there is: those that have ended are not all known, and are not counted.
    pub part: Option<Part>,
}

/// So many of a list are shown.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub shown: u64,
    /// Of so many, where that is known.
    pub of: Option<u64>,
}

impl Part {
    fn words(self) -> String {
        let shown = words::number(self.shown);
        match self.of {
            Some(of) => format!("{shown} of {} shown", words::number(of)),
            None => format!("{shown} shown"),
        }
    }
}

/// `2 need you · 1 working · …`
pub fn summary(rows: &[&Session], beside: &Beside) -> Line {
    summary_of(rows, beside, &|_| None)
}

/// Another machine, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere<'a> {
    /// It is asked from here.
    Asked(&'a str),
    /// It only says what it has, by a hub: commands are typed there.
    Heard(&'a str),
}

impl Elsewhere<'_> {
    fn command(self, rest: &str) -> String {
        match self {
            Elsewhere::Asked(node) => format!("ostler --node {} {rest}", shell_word(node)),
            Elsewhere::Heard(node) => format!("on {}: ostler {rest}", one_line(node, 64)),
        }
    }
}

/// The same of several machines; `node` is the one that a session is on, where that is not this one.
pub fn summary_of<'a>(
    rows: &[&Session],
    beside: &Beside,
    node: &dyn Fn(SessionId) -> Option<Elsewhere<'a>>,
) -> Line {
    let is_counted = |session: &&&Session| beside.part.is_none() || session.ended_at.is_none();
    let rows: Vec<&Session> = rows.iter().filter(is_counted).copied().collect();
    let count = |of: &dyn Fn(&Session) -> bool| rows.iter().filter(|session| of(session)).count() as u64;
    let needs = |session: &Session| session.attention.is_some_and(|attention| attention.needs_you());
    let part = |n: u64, tone, words: &str| {
        if n == 0 { Line::new() } else { Line::toned(tone, format!("{n} {words}")) }
    };
    let attention = |word: &'static str| {
        move |session: &Session| session.attention.is_some_and(|attention| attention.as_str() == word)
    };
    // Another one goes on with it: its failure is nobody's concern any more.
    let is_replaced = |session: &Session| {
        session.continued_by.is_some() || rows.iter().any(|other| other.continues == Some(session.id))
    };
    let is_refused = |session: &Session| session.restart_refused.is_some();
    let goes_on_soon = |session: &Session| {
        matches!(session.restart, Some(Restart::At(_))) && !is_refused(session) && !is_replaced(session)
    };
    let refused: Vec<&Session> = rows.iter().filter(|session| is_refused(session)).copied().collect();
    let cannot_go_on = match refused.as_slice() {
        [] => Line::new(),
        [one] => part(1, Tone::Warn, "cannot go on").faint(format!(" ({})", shown_by(one, node))),
        several => part(several.len() as u64, Tone::Warn, "cannot go on"),
    };
    let waiting: Vec<&Session> = rows.iter().filter(|session| needs(session)).copied().collect();
    let need = waiting.len() as u64;
    let need_you = match need {
        0 => Line::new(),
        _ => Line::toned(Tone::Warn, format!("{need} {}", if need == 1 { "needs you" } else { "need you" }))
            .faint(format!(" ({})", who_is_told(&waiting, node))),
    };
    let today = beside.today.as_ref().map(money::today);
    Line::joined([
        Line::toned(Tone::Bad, beside.halted.as_deref().unwrap_or_default()),
        Line::toned(Tone::Bad, beside.disk.as_deref().unwrap_or_default()),
        Line::toned(Tone::Warn, beside.drained.as_deref().unwrap_or_default()),
        Line::of(beside.part.map(Part::words).unwrap_or_default()),
        need_you,
        cannot_go_on,
        part(count(&|session| session.status == Status::Working), Tone::Good, "working"),
        part(
            count(&|session| session.status == Status::Running && attention("idle")(session)),
            Tone::Plain,
            "idle",
        ),
        part(count(&attention("rate_limited")), Tone::Plain, "rate limited"),
        part(count(&|session| session.status == Status::Created), Tone::Plain, "waiting to start"),
        part(count(&Session::is_getting_ready), Tone::Plain, "starting"),
        part(count(&|session| session.status == Status::Stopping), Tone::Plain, "stopping"),
        part(count(&attention("paused")), Tone::Accent, "paused"),
        part(count(&attention("detached")), Tone::Plain, "detached"),
        part(
            count(&|session| {
                let is_settled = !is_replaced(session) && !is_refused(session) && !goes_on_soon(session);
                session.status == Status::Failed && is_settled
            }),
            Tone::Bad,
            "failed",
        ),
        part(
            count(&|session| session.status == Status::Failed && goes_on_soon(session)),
            Tone::Plain,
            "about to start again",
        ),
        part(
            count(&|session| session.status == Status::Failed && is_replaced(session)),
            Tone::Plain,
            "failed and replaced by another session",
        ),
        part(
            count(&|session| session.status == Status::Stopped && !is_refused(session)),
            Tone::Plain,
            "ended",
        ),
        Line::of(today.unwrap_or_default()),
        Line::of(beside.more.as_deref().unwrap_or_default()),
    ])
}

/// The command that shows one, on the machine that it is on.
fn shown_by<'a>(session: &Session, node: &dyn Fn(SessionId) -> Option<Elsewhere<'a>>) -> String {
    typed(node(session.id), &format!("show {}", session.id.short()))
}

fn typed(node: Option<Elsewhere<'_>>, rest: &str) -> String {
    node.map_or_else(|| format!("ostler {rest}"), |node| node.command(rest))
}

/// The command that answers those who wait, one for each machine that they are on.
fn who_is_told<'a>(waiting: &[&Session], node: &dyn Fn(SessionId) -> Option<Elsewhere<'a>>) -> String {
    let mut commands: Vec<String> = Vec::new();
    let mut nodes: Vec<Option<Elsewhere<'_>>> = Vec::new();
    for first in waiting {
        let node = node(first.id);
        if nodes.contains(&node) {
            continue;
        }
        nodes.push(node);
        commands.push(match waiting.len() {
            _ if !first.approvals_open.is_empty() => typed(node, "approval -i"),
            1 => shown_by(first, &|_| node),
            // Which names them all, and what lets each go on.
            _ => typed(node, "approval"),
        });
    }
    commands.join(", ")
}

/// A list with nothing in it.
pub fn empty(filtered: bool, none_at_all: bool) -> Vec<Line> {
    match (filtered, none_at_all) {
        (true, _) => vec![Line::of("No session fits."), step("ostler ls -a", "all sessions there are")],
        (false, true) => vec![
            Line::of("No sessions yet."),
            step("ostler run \"…\"", "start one here"),
            step("ostler demo", "watch five at work, no key needed"),
        ],
        (false, false) => vec![
            Line::of("Nothing runs."),
            step("ostler run \"…\"", "start a session here"),
            step("ostler ls -a", "those that have ended"),
            step("ostler demo", "watch five at work, no key needed"),
        ],
    }
}

fn step(command: &str, effect: &str) -> Line {
    Line::of("  ").append(Line::toned(Tone::Accent, command).padded(15)).plain("  ").faint(effect)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ostler_domain::price::Dollars;

    use super::*;
    use crate::{
        Look,
        testing::{self, NOW},
    };

    fn rows_of(sessions: &[Session]) -> Table {
        table(&sessions.iter().map(|session| Shown::here(session, "shop")).collect::<Vec<_>>(), NOW)
    }

    fn shown(look: &Look, wide: bool) -> String {
        let mut fleet = testing::fleet();
        fleet.sort_by(row::in_order);
        let lines = rows_of(&fleet).wide(wide).lines(look);
        lines.iter().map(|line| line.show(look)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn in_all_looks() {
        let mut fleet = testing::fleet();
        fleet.sort_by(row::in_order);
        let beside = Beside {
            today: Some(Today { paid: Dollars(7_670_000), tokens: 182_400, ..Today::default() }),
            halted: None,
            disk: None,
            drained: None,
            part: None,
            more: Some("214 older: ls -a".to_owned()),
        };
        assert_snapshot!(testing::in_all_looks(|look| {
            let mut lines = rows_of(&fleet).lines(look);
            lines.extend(summary(&fleet.iter().collect::<Vec<_>>(), &beside).folded(look.width, 0));
            lines
        }));
    }

    #[test]
    fn who_runs_unconfined_is_seen() {
        let mut fleet = testing::fleet();
        assert!(!rows_of(&fleet).lines(&Look::plain(None))[0].show(&Look::plain(None)).contains("SANDBOX"));
        fleet[2].sandbox = Sandbox::Off;
        let look = Look::plain(None);
        let lines = rows_of(&fleet).lines(&look);
        assert!(lines[0].show(&look).contains("SANDBOX") && lines[3].show(&look).contains("off"));
    }

    #[test]
    fn at_120_columns() {
        assert_snapshot!(shown(&Look::plain(Some(120)), false));
    }

    #[test]
    fn at_80_columns() {
        assert_snapshot!(shown(&Look::plain(Some(80)), false));
    }

    #[test]
    fn wide() {
        assert_snapshot!(shown(&Look::plain(Some(80)), true));
    }

    #[test]
    fn in_colour() {
        assert_snapshot!(shown(&Look::coloured(Some(80)), false).replace('\u{1b}', "␛"));
    }

    #[test]
    fn in_ascii() {
        let look = Look { letters: crate::Letters::Ascii, ..Look::plain(Some(80)) };
        let text = shown(&look, false);
        assert!(text.is_ascii());
        assert_snapshot!(text);
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        for width in 60..200 {
            for line in rows_of(&testing::fleet()).lines(&Look::plain(Some(width))) {
                assert!(line.width() <= width, "{width}: {}", line.width());
            }
        }
    }

    #[test]
    fn the_last_line_sums_up() {
        let beside = Beside {
            today: Some(Today { paid: Dollars(7_670_000), tokens: 182_400, ..Today::default() }),
            halted: None,
            disk: None,
            drained: None,
            part: None,
            more: Some("older ones: ostler ls -a".to_owned()),
        };
        let fleet = testing::fleet();
        assert_snapshot!(summary(&fleet.iter().collect::<Vec<_>>(), &beside).show(&Look::plain(None)));
        let halted = Beside { halted: Some("halted by ann".to_owned()), ..Beside::default() };
        assert_snapshot!(summary(&[], &halted).show(&Look::plain(None)), @"halted by ann");
        let full = Beside { disk: Some("disk nearly full (ostler du)".to_owned()), ..Beside::default() };
        assert_snapshot!(summary(&[], &full).show(&Look::plain(None)), @"disk nearly full (ostler du)");
    }

    #[test]
    fn who_waits_on_another_machine_is_answered_there() {
        let mut fleet = testing::fleet();
        fleet.sort_by(row::in_order);
        let asks = fleet.remove(0);
        let here = Session { id: SessionId::new(NOW, 77), ..asks.clone() };
        let node = |id| (id == asks.id).then_some(Elsewhere::Asked("build2"));
        let said = |rows: &[&Session]| summary_of(rows, &Beside::default(), &node).show(&Look::plain(None));
        // Of a machine that only a hub knows nothing can be asked from here.
        let heard = |_| Some(Elsewhere::Heard("n2"));
        let line = summary_of(&[&asks], &Beside::default(), &heard).show(&Look::plain(None));
        assert_eq!(line, "1 needs you (on n2: ostler approval -i)");
        assert_eq!(said(&[&asks]), "1 needs you (ostler --node build2 approval -i)");
        assert_eq!(
            said(&[&asks, &here]),
            "2 need you (ostler --node build2 approval -i, ostler approval -i)"
        );
        assert_eq!(said(&[&here]), "1 needs you (ostler approval -i)");
    }

    #[test]
    fn of_a_part_those_that_have_ended_are_not_counted() {
        let fleet = testing::fleet();
        let said = |part| {
            let beside = Beside { part: Some(part), ..Beside::default() };
            summary(&fleet.iter().collect::<Vec<_>>(), &beside).show(&Look::plain(None))
        };
        let of_all = said(Part { shown: 3, of: Some(6_640) });
        assert!(of_all.starts_with("3 of 6,640 shown · ") && of_all.contains(" working"), "{of_all}");
        assert!(!of_all.contains("failed") && !of_all.contains("ended"), "{of_all}");
        assert!(said(Part { shown: 3, of: None }).starts_with("3 shown · "));
    }

    #[test]
    fn what_another_session_goes_on_with_is_no_failure_any_more() {
        let failed = testing::fleet().remove(6);
        let next = Session { continues: Some(failed.id), ..testing::fleet().remove(1) };
        let said = |rows: &[&Session]| summary(rows, &Beside::default()).show(&Look::plain(None));
        assert_eq!(said(&[&failed]), "1 failed");
        assert_eq!(said(&[&failed, &next]), "1 working · 1 failed and replaced by another session");
        // Nobody counts as gone on with before there is somebody who does.
        let due = Some(Restart::At(ostler_domain::Deadline::after(
            &ostler_domain::Now {
                wall: NOW,
                since_boot: std::time::Duration::ZERO,
                boot: Default::default(),
            },
            std::time::Duration::ZERO,
        )));
        let promised = Session { restart: due, ..failed };
        assert_eq!(said(&[&promised]), "1 about to start again");
        let continued = Session { continued_by: Some(next.id), ..promised.clone() };
        assert_eq!(said(&[&continued]), "1 failed and replaced by another session");
        let refused = testing::refused(promised);
        let show = format!("ostler show {}", refused.id.short());
        assert_eq!(said(&[&refused]), format!("1 cannot go on ({show})"));
        assert!(
            row::now(&refused, NOW)
                .show(&Look::plain(None))
                .contains("cannot go on · /srv/shop does not exist")
        );
    }

    #[test]
    fn nothing_is_no_dead_end() {
        let look = Look::plain(None);
        let shown = |filtered, all| {
            empty(filtered, all).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!(shown(false, true), @r#"
        No sessions yet.
          ostler run "…"   start one here
          ostler demo      watch five at work, no key needed
        "#);
        assert_snapshot!(shown(false, false), @r#"
        Nothing runs.
          ostler run "…"   start a session here
          ostler ls -a     those that have ended
          ostler demo      watch five at work, no key needed
        "#);
        assert_snapshot!(shown(true, false), @r"
        No session fits.
          ostler ls -a     all sessions there are
        ");
    }
}
