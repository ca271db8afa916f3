//! Drawings, as SVG: a mission's graph and its course in time, and the days of a month. Names in them are others' text.

use std::fmt::Write;

use ostler_client::reply::AssignmentRow;
use ostler_domain::{Time, mission::AssignmentStatus, text::one_line};
use ostler_form::words;

/// Of a box, in pixels.
const WIDE: usize = 170;
const HIGH: usize = 46;
const GAP_X: usize = 56;
const GAP_Y: usize = 16;

/// A text as HTML has it: nothing in it is a tag or ends an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

pub(super) const fn sign(status: AssignmentStatus) -> (&'static str, &'static str) {
    match status {
        AssignmentStatus::Completed => ("good", "✓"),
        AssignmentStatus::Failed => ("bad", "✗"),
        AssignmentStatus::Running => ("work", "●"),
        AssignmentStatus::Paused => ("warn", "‖"),
        AssignmentStatus::Skipped | AssignmentStatus::Cancelled => ("dim", "–"),
        AssignmentStatus::Pending | AssignmentStatus::Ready => ("dim", "◌"),
    }
}

/// In columns: each assignment stands one to the right of the last that it needs.
pub(super) fn graph(rows: &[AssignmentRow], now: Time) -> String {
    let mut columns: Vec<usize> = vec![0; rows.len()];
    let place = |name: &str| rows.iter().position(|row| row.name == name);
    // They come in an order in which each is after what it needs.
    for n in 0..rows.len() {
        let needs = rows[n].needs.iter().filter_map(|name| place(name));
        columns[n] = needs.filter(|need| *need < n).map(|need| columns[need] + 1).max().unwrap_or(0);
    }
    let count = columns.iter().max().map_or(0, |most| most + 1);
    let mut heights = vec![0; count];
    let spots: Vec<(usize, usize)> = columns
        .iter()
        .map(|column| {
            let y = heights[*column] * (HIGH + GAP_Y);
            heights[*column] += 1;
            (column * (WIDE + GAP_X), y)
        })
        .collect();
    let tall = heights.iter().max().map_or(1, |most| most * (HIGH + GAP_Y));
    let wide = (count * (WIDE + GAP_X)).saturating_sub(GAP_X).max(1) + 4;
    let mut svg = format!(
        "<svg role=\"group\" aria-label=\"the mission's graph\" width=\"{wide}\" height=\"{tall}\" viewBox=\"-2 -2 {wide} {tall}\">"
    );
    for (n, row) in rows.iter().enumerate() {
        let (x, y) = spots[n];
        for need in row.needs.iter().filter_map(|name| place(name)) {
            let (from_x, from_y) = (spots[need].0 + WIDE, spots[need].1 + HIGH / 2);
            let (to_y, middle) = (y + HIGH / 2, (from_x + x) / 2);
            let _ = write!(
                svg,
                "<path class=\"edge\" d=\"M{from_x} {from_y} C{middle} {from_y} {middle} {to_y} {x} {to_y}\"/>"
            );
        }
    }
    for (n, row) in rows.iter().enumerate() {
        let ((x, y), (tone, sign)) = (spots[n], sign(row.status));
        let took = row.started.map(|at| words::span(row.ended.unwrap_or(now).since(at))).unwrap_or_default();
        let name = escaped(&one_line(&row.name, 20));
        let below = escaped(&one_line(&format!("{} {took}", row.status.as_str()), 28));
        let node = format!(
            "<rect class=\"box {tone}\" x=\"{x}\" y=\"{y}\" width=\"{WIDE}\" height=\"{HIGH}\" rx=\"7\"/>\
             <text x=\"{}\" y=\"{}\">{sign} {name}</text><text class=\"small\" x=\"{}\" y=\"{}\">{below}</text>",
            x + 12,
            y + 19,
            x + 12,
            y + 36,
        );
        match row.session {
            Some(session) => {
                let _ = write!(svg, "<a href=\"/sessions/{session}\">{node}</a>");
            }
            None => svg.push_str(&node),
        }
    }
    svg + "</svg>"
}

/// Something that took time.
pub(super) struct Span {
    pub(super) name: String,
    pub(super) tone: &'static str,
    /// None: not yet.
    pub(super) began: Option<Time>,
    /// None: still.
    pub(super) over: Option<Time>,
    pub(super) href: String,
}

/// One bar for each assignment that has begun, from the mission's start to now or its end.
pub(super) fn gantt(rows: &[AssignmentRow], start: Option<Time>, end: Option<Time>, now: Time) -> String {
    let span = |row: &AssignmentRow| Span {
        name: row.name.clone(),
        tone: sign(row.status).0,
        began: row.started,
        over: row.ended,
        href: row.session.map(|session| format!("/sessions/{session}")).unwrap_or_default(),
    };
    timeline(&rows.iter().map(span).collect::<Vec<_>>(), start, end, now)
}

/// A bar for each, below one another.
pub(super) fn timeline(spans: &[Span], start: Option<Time>, end: Option<Time>, now: Time) -> String {
    const LEFT: usize = 170;
    const LENGTH: usize = 720;
    const LINE: usize = 26;
    let Some(start) = start else { return String::new() };
    let end = end.unwrap_or(now);
    let whole = end.since(start).as_micros().max(1);
    let at = |time: Time| {
        LEFT + usize::try_from(time.since(start).as_micros().min(whole) * LENGTH as u128 / whole).unwrap_or(0)
    };
    let (tall, wide) = (spans.len() * LINE + 26, LEFT + LENGTH + 90);
    let mut svg =
        format!("<svg role=\"group\" aria-label=\"its course in time\" width=\"{wide}\" height=\"{tall}\">");
    for quarter in 0..=4 {
        let x = LEFT + LENGTH * quarter / 4;
        let after = words::span(std::time::Duration::from_micros(
            u64::try_from(whole * quarter as u128 / 4).unwrap_or(0),
        ));
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x}\" y1=\"0\" x2=\"{x}\" y2=\"{}\"/><text class=\"small\" x=\"{x}\" y=\"{}\">{after}</text>",
            tall - 22,
            tall - 8
        );
    }
    for (n, span) in spans.iter().enumerate() {
        let y = n * LINE;
        let mut bar = format!("<text x=\"0\" y=\"{}\">{}</text>", y + 16, escaped(&one_line(&span.name, 24)));
        if let Some(began) = span.began {
            let over = span.over.unwrap_or(now);
            let (from, to) = (at(began), at(over));
            let _ = write!(
                bar,
                "<rect class=\"span {}\" x=\"{from}\" y=\"{}\" width=\"{}\" height=\"14\" rx=\"4\"/><text class=\"small\" x=\"{}\" y=\"{}\">{}</text>",
                span.tone,
                y + 5,
                (to - from).max(3),
                to + 6,
                y + 16,
                words::span(over.since(began)),
            );
        }
        let _ = match span.href.is_empty() {
            true => write!(svg, "{bar}"),
            false => write!(svg, "<a href=\"{}\">{bar}</a>", escaped(&span.href)),
        };
    }
    svg + "</svg>"
}

/// A day, what it came to, and that in words.
pub(super) struct Day {
    pub(super) name: String,
    pub(super) amount: u64,
    pub(super) words: String,
}

/// A bar for each day.
pub(super) fn days(days: &[Day]) -> String {
    const WIDTH: usize = 30;
    const HEIGHT: u64 = 140;
    /// Days that share a label.
    const LABEL: usize = 5;
    let most = days.iter().map(|day| day.amount).max().unwrap_or(0).max(1);
    let wide = days.len() * WIDTH + 20;
    let mut svg = format!("<svg role=\"group\" aria-label=\"by day\" width=\"{wide}\" height=\"190\">");
    let _ = write!(svg, "<line class=\"grid\" x1=\"0\" y1=\"156.5\" x2=\"{wide}\" y2=\"156.5\"/>");
    for (n, day) in days.iter().enumerate() {
        let (x, name, words) = (n * WIDTH + 4, escaped(&day.name), escaped(&day.words));
        // Largest numbers of tokens times the height stay far below what fits.
        let tall = day.amount.saturating_mul(HEIGHT) / most;
        if day.amount > 0 {
            let _ = write!(
                svg,
                "<a href=\"/cost?by=session&amp;day={name}\" aria-label=\"{name} {words}\"><rect class=\"column\" x=\"{x}\" y=\"{}\" width=\"22\" height=\"{}\" rx=\"3\"><title>{name} {words}</title></rect></a>",
                156 - tall.max(2),
                tall.max(2),
            );
        }
        if (days.len() - 1 - n).is_multiple_of(LABEL) {
            let short = escaped(day.name.get(5..).unwrap_or_default());
            let _ = write!(svg, "<text class=\"small\" x=\"{x}\" y=\"176\">{short}</text>");
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_drawings_are_text() {
        assert_eq!(escaped("<a href=\"x\" o='y'>&"), "&lt;a href=&quot;x&quot; o=&#39;y&#39;&gt;&amp;");
        assert!(
            !days(&[Day { name: "<b>2026".to_owned(), amount: 5, words: "<b>".to_owned() }]).contains("<b>")
        );
    }
}
