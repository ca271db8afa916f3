//! What keys do.

use ostler_screen::{Line, Tone};
use ratatui::layout::Rect;

use super::canvas::Canvas;

const KEYS: [(&str, &str); 19] = [
    ("j k ↑ ↓", "another session; the cursor stays on it when rows move"),
    ("PgUp PgDn", "what it did before"),
    ("Space", "the session alone on the screen, and back"),
    ("Enter", "attach: talk with it; Ctrl-C comes back here"),
    ("r", "reply: a message to it; wakes it if it has ended"),
    ("n", "a new session"),
    ("Tab", "to what it asks, and back; these act only there:"),
    ("  a", "let it, once; answer a question"),
    ("  A", "let it from now on: makes a rule of the campaign, asks first"),
    ("  d  m", "do not let it; and say why"),
    ("  v", "the request in full"),
    ("p", "pause: freeze it where it stands; again: let it go on"),
    ("x", "stop it; asks first"),
    ("h", "handoff: a fresh session goes on; asks what it is to know"),
    ("/", "filter: only rows with these words; Esc shows all again"),
    ("e", "those that have ended too, and back"),
    ("g", "missions, with the graph of one"),
    ("$", "what was used today, and what it cost"),
    ("q Ctrl-C", "quit; nothing ends, agents go on"),
];

pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect) {
    let line = |(key, means): &(&str, &str)| {
        Line::of(" ").append(Line::toned(Tone::Accent, key).padded(11)).plain(*means)
    };
    canvas.rule(area, 0, Line::new().strong("KEYS"));
    let lines: Vec<Line> = KEYS.iter().map(line).collect();
    canvas.put_all(Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }, &lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_keys() {
        let page = include_str!("../../../../docs/top.md");
        for (key, means) in KEYS {
            let row = format!("| `{}` | {means} |", key.trim());
            assert!(page.contains(&row), "{row}");
        }
    }
}
