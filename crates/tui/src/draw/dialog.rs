//! Boxes over the view: what is typed, what is asked about, what is read in full.

use ostler_domain::text::shell_word;
use ostler_screen::{Line, Tone, approval};
use ratatui::layout::{Position, Rect};

use super::canvas::Canvas;
use crate::{
    draft::Draft,
    state::{Addressee, Deed, Dialog, State},
};

/// Most columns of a box: longer lines are hard to read.
const WIDE: u16 = 90;
/// Lines that a text has room for, at least.
const TALL: usize = 3;

/// Draws a box; gives back where the next letter goes, if one is typed.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect, dialog: &Dialog) -> Option<Position> {
    let width = usize::from(body.width.min(WIDE).saturating_sub(4));
    match dialog {
        Dialog::Write { to, draft } => {
            let (title, hint) = written(state, to);
            text_box(canvas, body, &Line::new().strong(title), &[Line::new().faint(hint)], draft)
        }
        Dialog::New { campaign, draft } => {
            let name = campaign.map(|id| state.overview.campaigns.of(&id));
            let Some(name) = name else {
                let lines =
                    [Line::of("There is no campaign yet: agents work in a directory that was added.")];
                let next =
                    Line::of("  ").with(Tone::Accent, "ostler campaign add .").faint("   adds this one");
                message_box(
                    canvas,
                    body,
                    &Line::new().strong("new session"),
                    &[&lines[..], &[next]].concat(),
                );
                return None;
            };
            let text = draft.text().lines().next().unwrap_or_default();
            let text = if text.is_empty() { "\"…\"".to_owned() } else { shell_word(text) };
            let line = Line::new().faint(format!("ostler run -d -C {name} {text}")).cut(width);
            text_box(canvas, body, &Line::new().strong(format!("new session in {name}")), &[line], draft)
        }
        Dialog::Ask(deed) => {
            let (title, text) = asked(state, *deed);
            let lines: Vec<Line> = text.iter().flat_map(|line| line.folded(Some(width), 0)).collect();
            message_box(canvas, body, &Line::toned(Tone::Warn, title), &lines);
            None
        }
        Dialog::Full { id, scrolled } => {
            let lines = match state.approval(*id) {
                Some(asked) => approval::lines(asked, state.now),
                None => vec![Line::of("It was answered meanwhile.")],
            };
            let lines: Vec<Line> =
                lines.iter().flat_map(|line| line.folded(Some(width), ostler_screen::FIELD)).collect();
            let title = Line::new().strong(format!("{} asks", state.asker(*id)));
            scrolled_box(canvas, body, &title, &lines, *scrolled);
            None
        }
        Dialog::Filter { .. } => None,
    }
}

/// The last line while a filter is typed.
pub(super) fn filter(canvas: &mut Canvas<'_>, row: Rect, draft: &Draft) -> Position {
    let line = Line::of(" ").with(Tone::Accent, "/").plain(draft.text());
    let hint = "   name, campaign, provider, status, needs-me · Enter keeps it · Esc drops it";
    canvas.put(row, 0, &line.faint(hint));
    let (before, _) = draft.parts();
    place(row, 0, 2 + Line::of(before).width())
}

fn written(state: &State, to: &Addressee) -> (String, &'static str) {
    match to {
        Addressee::Session(id) => {
            let has_ended = state.session(*id).is_some_and(|session| session.outcome.is_some());
            let hint = match has_ended {
                true => "It has ended: a message begins a new session of its conversation.",
                false => "It is told at once, or when its turn ends.",
            };
            (format!("to {}", state.name(*id)), hint)
        }
        Addressee::Answer(id) => (format!("answer to {}", state.asker(*id)), "The agent reads it as it is."),
        Addressee::Denial(id) => {
            (format!("why {} may not", state.asker(*id)), "The agent reads it. Empty denies without a word.")
        }
        Addressee::Successor(id) => (
            format!("handoff of {}", state.name(*id)),
            "It ends, and a fresh session goes on with its work. What is it to know? May be empty.",
        ),
    }
}

fn asked(state: &State, deed: Deed) -> (String, Vec<Line>) {
    match deed {
        Deed::Stop(id) => {
            let name = state.name(id);
            let line = Line::of("It ends in an orderly way; what it recorded stays. ");
            (format!("stop {name}?"), vec![line.faint(format!("ostler stop {}", id.short()))])
        }
        Deed::AttachAnew(id) => {
            let line = Line::of("It has ended. Attaching begins a new session of its conversation.");
            (format!("attach to {}?", state.name(id)), vec![line])
        }
        Deed::AllowAlways(id) => {
            let found = state.approval(id);
            let campaign = found.map(|asked| state.campaign_of(asked.session)).unwrap_or_default();
            let asks = found.map(|asked| asked.asks.clone()).unwrap_or_default();
            let line =
                Line::of("Allows it now, and makes a rule of the campaign that allows the same from now on.");
            (format!("always in {campaign}?"), vec![Line::new().strong(asks), line])
        }
    }
}

/// In the middle of the body, as large as what is in it.
fn placed(body: Rect, lines: usize) -> Rect {
    let width = body.width.min(WIDE);
    let height = u16::try_from(lines + 2).unwrap_or(u16::MAX).min(body.height);
    Rect { x: body.x + (body.width - width) / 2, y: body.y + (body.height - height) / 2, width, height }
}

fn message_box(canvas: &mut Canvas<'_>, body: Rect, title: &Line, lines: &[Line]) {
    let inner = canvas.frame(placed(body, lines.len()), title);
    canvas.put_all(inner, lines);
}

/// The same where there may be more than fits: nothing of it is out of reach.
fn scrolled_box(canvas: &mut Canvas<'_>, body: Rect, title: &Line, lines: &[Line], scrolled: usize) {
    let inner = canvas.frame(placed(body, lines.len()), title);
    let room = usize::from(inner.height);
    canvas.reach.full = Some(if lines.len() <= room { 0 } else { lines.len() - room.saturating_sub(1) });
    if lines.len() <= room {
        return canvas.put_all(inner, lines);
    }
    let room = room.saturating_sub(1);
    let first = scrolled.min(lines.len() - room);
    let below = lines.len() - room - first;
    let more = Line::toned(
        Tone::Accent,
        match below {
            0 => "the end; PgUp".to_owned(),
            below => format!("↓ {below} more, PgDn"),
        },
    );
    canvas.put_all(inner, lines[first..first + room].iter().chain([&more]));
}

fn text_box(
    canvas: &mut Canvas<'_>,
    body: Rect,
    title: &Line,
    hints: &[Line],
    draft: &Draft,
) -> Option<Position> {
    let width = usize::from(body.width.min(WIDE).saturating_sub(4)).max(1);
    let (before, after) = draft.parts();
    let typed = broken(&format!("{before}{after}"), width);
    let so_far = broken(before, width);
    let hints: Vec<Line> = hints.iter().flat_map(|line| line.folded(Some(width), 0)).collect();
    let room = typed.len().max(TALL);
    let inner = canvas.frame(placed(body, room + hints.len()), title);
    let room = usize::from(inner.height).saturating_sub(hints.len());
    // The line that is typed on is seen.
    let first = so_far.len().saturating_sub(room.max(1));
    let text: Vec<Line> = typed.iter().skip(first).take(room).map(Line::of).collect();
    canvas.put_all(inner, &text);
    let below = u16::try_from(room).unwrap_or(u16::MAX);
    let hint_area =
        Rect { y: inner.y.saturating_add(below), height: inner.height.saturating_sub(below), ..inner };
    canvas.put_all(hint_area, &hints);
    let column = Line::of(so_far.last().map(String::as_str).unwrap_or_default()).width();
    let row = u16::try_from(so_far.len().saturating_sub(1 + first)).unwrap_or(u16::MAX);
    Some(place(inner, row, column))
}

/// A text in lines of at most this many columns, with every character of it.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let columns = Line::of(c.to_string()).width();
        if c == '\n' || used + columns > width {
            lines.push(String::new());
            used = 0;
        }
        if c != '\n'
            && let Some(line) = lines.last_mut()
        {
            line.push(c);
            used += columns;
        }
    }
    lines
}

fn place(area: Rect, row: u16, column: usize) -> Position {
    let last = area.right().saturating_sub(1);
    let x = area.x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX));
    Position { x: x.min(last), y: (area.y + row).min(area.bottom().saturating_sub(1)) }
}
