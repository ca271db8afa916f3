//! One line of text for people. Whatever is put into it is made harmless as it comes in, so nothing that an agent,
//! a file or a name says can move a terminal.

use anstyle::{AnsiColor, Style};
use ostler_domain::text::visible;
use unicode_width::UnicodeWidthChar;

use super::Look;

/// What a piece of text is, from which its colour follows. Never the only sign of anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Warn,
    Bad,
    Accent,
}

impl Tone {
    const fn style(self) -> Style {
        let style = Style::new();
        match self {
            Tone::Plain => style,
            Tone::Strong => style.bold(),
            Tone::Faint => style.dimmed(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Warn => AnsiColor::Yellow.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Accent => AnsiColor::Cyan.on_default(),
        }
    }
}

/// Pieces of text, each with its tone, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    pieces: Vec<(Tone, String)>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn of(text: impl AsRef<str>) -> Self {
        Self::new().plain(text)
    }

    pub(crate) fn toned(tone: Tone, text: impl AsRef<str>) -> Self {
        Self::new().with(tone, text)
    }

    #[must_use]
    pub(crate) fn with(mut self, tone: Tone, text: impl AsRef<str>) -> Self {
        let text = visible(text.as_ref()).replace(['\n', '\t'], " ");
        if !text.is_empty() {
            self.pieces.push((tone, text));
        }
        self
    }

    #[must_use]
    pub(crate) fn plain(self, text: impl AsRef<str>) -> Self {
        self.with(Tone::Plain, text)
    }

    #[must_use]
    pub(crate) fn strong(self, text: impl AsRef<str>) -> Self {
        self.with(Tone::Strong, text)
    }

    #[must_use]
    pub(crate) fn faint(self, text: impl AsRef<str>) -> Self {
        self.with(Tone::Faint, text)
    }

    #[must_use]
    pub(crate) fn append(mut self, other: Line) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// Lines joined by ` · `, the empty ones left out.
    pub(crate) fn joined(parts: impl IntoIterator<Item = Line>) -> Self {
        parts.into_iter().filter(|part| !part.is_empty()).fold(Line::new(), |line, part| {
            if line.is_empty() { part } else { line.faint(" · ").append(part) }
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Columns that it takes.
    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    /// With spaces at its end, `width` columns wide; unchanged when it is wider.
    #[must_use]
    pub(crate) fn padded(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.plain(" ".repeat(missing))
    }

    /// At most `most` columns wide, with `…` where something is missing.
    #[must_use]
    pub(crate) fn cut(self, most: usize) -> Self {
        if self.width() <= most {
            return self;
        }
        let mut left = most.saturating_sub(1);
        let mut cut = Line::new();
        'pieces: for (tone, text) in &self.pieces {
            let mut kept = String::new();
            for c in text.chars() {
                if columns(c) > left {
                    cut.pieces.push((*tone, kept));
                    break 'pieces;
                }
                left -= columns(c);
                kept.push(c);
            }
            cut.pieces.push((*tone, kept));
        }
        if most > 0 {
            cut.pieces.push((Tone::Faint, "…".to_owned()));
        }
        cut
    }

    /// The text for a stream of this look.
    pub(crate) fn show(&self, look: &Look) -> String {
        let mut shown = String::new();
        for (tone, text) in &self.pieces {
            let text: String = text.chars().map(|c| look.letter(c)).collect();
            if look.colour && *tone != Tone::Plain {
                let style = tone.style();
                shown.push_str(&format!("{style}{text}{style:#}"));
            } else {
                shown.push_str(&text);
            }
        }
        shown.truncate(shown.trim_end_matches(' ').len());
        shown
    }
}

fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_is_harmless() {
        let line = Line::of("a\u{1b}]0;x\u{7}b\nc\td\u{202e}");
        let shown = line.show(&Look::plain(None));
        assert_eq!(shown, "a␛]0;x␇b c d\u{fffd}");
    }

    #[test]
    fn widths_are_columns() {
        assert_eq!(Line::of("日本").width(), 4);
        assert_eq!(Line::of("日本語").cut(5).show(&Look::plain(None)), "日本…");
        assert_eq!(Line::of("日本語").cut(4).show(&Look::plain(None)), "日…");
        assert_eq!(Line::of("abc").cut(3), Line::of("abc"));
        assert_eq!(Line::of("abc").cut(0).width(), 0);
        assert_eq!(Line::of("ab").padded(4).width(), 4);
    }

    #[test]
    fn colour_surrounds_text() {
        let line = Line::toned(Tone::Good, "✓").plain(" done");
        assert_eq!(line.show(&Look::plain(None)), "✓ done");
        assert_eq!(line.show(&Look::coloured(None)), "\u{1b}[32m✓\u{1b}[0m done");
    }

    #[test]
    fn joining_leaves_nothing_empty() {
        let line = Line::joined([Line::of("a"), Line::new(), Line::of("b")]);
        assert_eq!(line.show(&Look::plain(None)), "a · b");
    }
}
