//! The first line, the last line, and what is said above the last.

use ostler_domain::{price::Dollars, session::Attention, session::Status};
use ostler_screen::{Line, Tone, money, words};

use crate::state::{Dialog, Focus, Link, State, View};

/// Blocks of a bar that is full.
const BAR: u64 = 12;

/// `ostler  5 live · 2 need you · 1 failed     $7.67 / $25.00  ███░░░    8.2k tok/s     $3.10/h     node build1`
pub(super) fn head(state: &State, width: usize) -> Line {
    let sessions = &state.overview.sessions;
    let count = |of: &dyn Fn(&ostler_client::Session) -> bool| sessions.iter().filter(|row| of(row)).count();
    let live = count(&|session| session.outcome.is_none());
    let need = count(&|session| session.attention.is_some_and(Attention::needs_you));
    let failed = count(&|session| session.status == Status::Failed);
    let part = |n: usize, tone, text: &str| match n {
        0 => Line::new(),
        n => Line::toned(tone, format!("{n} {text}")),
    };
    let need_word = if need == 1 { "needs you" } else { "need you" };
    let counts = Line::joined([
        Line::of(format!("{live} live")),
        part(need, Tone::Warn, need_word),
        part(failed, Tone::Bad, "failed"),
    ]);
    let begin = Line::of(" ").strong("ostler").plain("  ").append(counts);
    let mut parts = Vec::new();
    if let Some(today) = state.overview.today.filter(|today| today.tokens > 0 || today.budget.is_some()) {
        parts.push(Line::of(money::today_short(&today)));
        parts.push(bar(today.paid, today.budget));
    }
    if let Some((tokens, dollars)) = state.rate.now().filter(|(tokens, _)| *tokens > 0) {
        parts.push(Line::of(format!("{} tok/s", words::count(tokens))));
        if dollars > Dollars(0) {
            parts.push(Line::of(format!("{dollars}/h")));
        }
    }
    parts.push(Line::new().faint(format!("node {}", state.node)));
    // What has no room is left out, from the right on.
    parts.into_iter().filter(|part| !part.is_empty()).fold(begin, |line, part| {
        let longer = line.clone().plain("   ").append(part);
        if longer.width() <= width { longer } else { line }
    })
}

fn bar(paid: Dollars, budget: Option<Dollars>) -> Line {
    let Some(budget) = budget.filter(|budget| *budget > Dollars(0)) else { return Line::new() };
    let filled = (u128::from(paid.0) * u128::from(BAR) / u128::from(budget.0)).min(u128::from(BAR));
    let filled = usize::try_from(filled).unwrap_or_default();
    let empty = usize::try_from(BAR).unwrap_or_default() - filled;
    let tone = if empty == 0 { Tone::Bad } else { Tone::Good };
    Line::toned(tone, "█".repeat(filled)).faint("░".repeat(empty))
}

/// What is said above the last line: that the daemon is away, why all stands still, what was done.
pub(super) fn said(state: &State, width: usize) -> Vec<Line> {
    let link = match state.link {
        Link::Down { since } => {
            let at = words::clock(since, &words::zone());
            let line = Line::toned(Tone::Bad, format!(" offline since {at}"));
            Some(line.plain("; nothing is lost; reconnecting …  ").faint("ostler daemon start"))
        }
        Link::Opening | Link::Up => None,
    };
    let cut = state.overview.is_cut.then(|| {
        Line::new().faint(" there are more than are shown; / does not find those, ostler ls --limit 0 does")
    });
    let stands = state.overview.stands.iter().map(|why| Line::of(" ").with(Tone::Warn, why));
    let is_typed = matches!(state.dialog, Some(Dialog::Filter { .. }));
    let filter = (!state.filter.is_empty() && !is_typed).then(|| {
        let line = Line::of(" only those with ").with(Tone::Accent, format!("“{}”", state.filter));
        line.faint("  Esc shows all again")
    });
    let notice = state.notice.iter().flat_map(|notice| &notice.lines);
    let notice = notice.flat_map(|line| Line::of(" ").append(line.clone()).folded(Some(width), 3));
    link.into_iter().chain(stands).chain(cut).chain(filter).chain(notice).collect()
}

/// A key, what it does, and how soon it gives way to others.
type Shown = (&'static str, &'static str, u8);

const LIST: [Shown; 13] = [
    ("n", "new", 1),
    ("Enter", "attach", 1),
    ("Space", "peek", 4),
    ("r", "reply", 1),
    ("a/d", "answer", 1),
    ("x", "stop…", 2),
    ("p", "pause", 2),
    ("h", "handoff…", 5),
    ("/", "filter", 3),
    ("g", "missions", 3),
    ("$", "cost", 3),
    ("?", "help", 0),
    ("q", "quit", 0),
];
const CARD: [Shown; 3] = [("Tab", "back to the list", 0), ("v", "full request", 1), ("Esc", "back", 2)];
const COST: [Shown; 2] = [("Tab", "sum up by something else", 0), ("Esc", "back", 0)];
const MISSIONS: [Shown; 2] = [("j k", "another mission", 0), ("Esc", "back", 0)];
const HELP: [Shown; 1] = [("any key", "back", 0)];
const WRITE: [Shown; 3] = [("Enter", "send", 0), ("Alt-Enter", "new line", 1), ("Esc", "leave it", 0)];
const NEW: [Shown; 3] = [("Enter", "start", 0), ("Tab", "another campaign", 0), ("Esc", "leave it", 0)];
const ASK: [Shown; 2] = [("y", "yes", 0), ("any other key", "no", 0)];
const FULL: [Shown; 2] = [("j k PgUp PgDn", "scroll", 1), ("any other key", "back", 0)];

/// The last line: the keys that mean something now, as many as fit.
pub(super) fn keys(state: &State, width: usize) -> Line {
    let keys: &[Shown] = match (&state.dialog, &state.view) {
        (Some(Dialog::Write { .. }), _) => &WRITE,
        (Some(Dialog::New { .. }), _) => &NEW,
        (Some(Dialog::Ask(_)), _) => &ASK,
        (Some(Dialog::Full { .. }), _) => &FULL,
        (Some(Dialog::Filter { .. }), _) => &[],
        (None, View::Cost { .. }) => &COST,
        (None, View::Missions(_)) => &MISSIONS,
        (None, View::Help) => &HELP,
        (None, _) if state.focus == Focus::Card => &CARD,
        (None, _) => &LIST,
    };
    let line = |least: u8| {
        let shown = keys.iter().filter(|(_, _, gives_way)| *gives_way <= least);
        shown.fold(Line::new(), |line, (key, means, _)| {
            let space = if line.is_empty() { " " } else { "  " };
            line.plain(space).with(Tone::Accent, key).plain(format!(" {means}"))
        })
    };
    (0..=5).rev().map(line).find(|line| line.width() <= width).unwrap_or_else(|| line(0))
}
