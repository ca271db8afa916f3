//! Lines put on the cells of a screen, in the letters and colours that it can show.

use ostler_screen::{Line, Look, Tone};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use crate::state::Reach;

pub(super) struct Canvas<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) look: &'a Look,
    pub(super) reach: Reach,
}

impl Canvas<'_> {
    /// Puts a line on a row of an area, cut to its width.
    pub(super) fn put(&mut self, area: Rect, row: u16, line: &Line) {
        if row >= area.height {
            return;
        }
        let line = line.clone().cut(usize::from(area.width));
        let (mut x, y) = (area.x, area.y + row);
        for (tone, text) in line.pieces() {
            let text: String = text.chars().map(|c| self.look.letter(c)).collect();
            let room = usize::from(area.right().saturating_sub(x));
            let style = if self.look.colour { style(tone) } else { Style::new() };
            (x, _) = self.buffer.set_stringn(x, y, text, room, style);
        }
    }

    /// Lines from a row of an area on; those that have no room are left out.
    pub(super) fn put_all<'l>(&mut self, area: Rect, lines: impl IntoIterator<Item = &'l Line>) {
        (0..area.height).zip(lines).for_each(|(row, line)| self.put(area, row, line));
    }

    /// The row under the cursor. Told by its mark as well.
    pub(super) fn mark(&mut self, area: Rect, row: u16) {
        if row < area.height {
            let row = Rect { y: area.y + row, height: 1, ..area };
            self.buffer.set_style(row, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    /// ` TITLE ─────────`, with what the title is in front.
    pub(super) fn rule(&mut self, area: Rect, row: u16, title: Line) {
        let width = usize::from(area.width);
        let line = Line::of(" ").append(title.cut(width.saturating_sub(3))).plain(" ");
        let rest = width.saturating_sub(line.width());
        self.put(area, row, &line.faint("─".repeat(rest)));
    }

    /// A frame with a title, emptied; what is inside of it is given back.
    pub(super) fn frame(&mut self, area: Rect, title: &Line) -> Rect {
        let inner_width = usize::from(area.width.saturating_sub(2));
        let title = Line::of(" ").append(title.clone().cut(inner_width.saturating_sub(3))).plain(" ");
        let rest = inner_width.saturating_sub(title.width());
        let blank = Line::of("│").plain(" ".repeat(inner_width)).plain("│");
        for row in 0..area.height {
            self.put(area, row, &blank);
        }
        self.put(area, 0, &Line::of("┌").append(title).plain("─".repeat(rest)).plain("┐"));
        let bottom = Line::of("└").plain("─".repeat(inner_width)).plain("┘");
        self.put(area, area.height.saturating_sub(1), &bottom);
        Rect {
            x: area.x + 2,
            y: area.y + 1,
            width: area.width.saturating_sub(4),
            height: area.height.saturating_sub(2),
        }
    }
}

/// The colours of the command line.
fn style(tone: Tone) -> Style {
    let style = Style::new();
    match tone {
        Tone::Plain => style,
        Tone::Strong => style.add_modifier(Modifier::BOLD),
        Tone::Faint => style.add_modifier(Modifier::DIM),
        Tone::Good => style.fg(Color::Green),
        Tone::Warn => style.fg(Color::Yellow),
        Tone::Bad => style.fg(Color::Red).add_modifier(Modifier::BOLD),
        Tone::Accent => style.fg(Color::Cyan),
    }
}
