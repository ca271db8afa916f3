//! One line of text for people. Whatever is put into it is made harmless as it comes in, so nothing that an agent,
//! a file or a name says can move a terminal.

use anstyle::{AnsiColor, Style};
use ostler_domain::text::visible;
use unicode_width::UnicodeWidthChar;

use super::Look;

/// What a piece of text is, from which its colour follows. Never the only sign of anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
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
pub struct Line {
    pieces: Vec<(Tone, String)>,
}

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn of(text: impl AsRef<str>) -> Self {
        Self::new().plain(text)
    }

    pub fn toned(tone: Tone, text: impl AsRef<str>) -> Self {
        Self::new().with(tone, text)
    }

    #[must_use]
    pub fn with(mut self, tone: Tone, text: impl AsRef<str>) -> Self {
        let text = visible(text.as_ref()).replace(['\n', '\t'], " ");
        if !text.is_empty() {
            self.pieces.push((tone, text));
        }
        self
    }

    #[must_use]
    pub fn plain(self, text: impl AsRef<str>) -> Self {
        self.with(Tone::Plain, text)
    }

    #[must_use]
    pub fn strong(self, text: impl AsRef<str>) -> Self {
        self.with(Tone::Strong, text)
    }

    #[must_use]
    pub fn faint(self, text: impl AsRef<str>) -> Self {
        self.with(Tone::Faint, text)
    }

    #[must_use]
    pub fn append(mut self, other: Line) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// Lines joined by ` · `, the empty ones left out.
    pub fn joined(parts: impl IntoIterator<Item = Line>) -> Self {
        parts.into_iter().filter(|part| !part.is_empty()).fold(Line::new(), |line, part| {
            if line.is_empty() { part } else { line.faint(" · ").append(part) }
        })
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Its pieces in order, each with its tone. Whoever draws them has the letters of its [`Look`] shown.
    pub fn pieces(&self) -> impl Iterator<Item = (Tone, &str)> {
        self.pieces.iter().map(|(tone, text)| (*tone, text.as_str()))
    }

    /// What it says, without tones.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Columns that it takes.
    pub fn width(&self) -> usize {
        self.pieces.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    /// With spaces at its end, `width` columns wide; unchanged when it is wider.
    #[must_use]
    pub fn padded(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.plain(" ".repeat(missing))
    }

    /// At most `most` columns wide, with `…` where something is missing.
    #[must_use]
    pub fn cut(self, most: usize) -> Self {
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

    /// Its end, at most `most` columns wide, with `…` where something is missing.
    #[must_use]
    pub fn cut_front(self, most: usize) -> Self {
        let mut line = self;
        while line.width() > most {
            let Some((_, text)) = line.pieces.first_mut() else { break };
            let mut chars = text.chars();
            // The mark takes the place of the first that is left.
            chars.next();
            if chars.as_str().is_empty() {
                line.pieces.remove(0);
            } else {
                *text = format!(
                    "…{}",
                    chars.as_str().trim_start_matches('…').chars().skip(1).collect::<String>()
                );
            }
        }
        line
    }

    /// Its beginning and its end, at most `most` columns wide, with `…` where something is missing. Of a path the end says
    /// most, and the beginning whose it is.
    #[must_use]
    pub fn cut_middle(self, most: usize) -> Self {
        if self.width() <= most {
            return self;
        }
        // Two thirds for the end, whose first column is the mark's.
        let end = (most * 2).div_ceil(3);
        let end = self.clone().cut_front(end.max(1).min(most));
        let room = most - end.width();
        let mut beginning = self.cut(room + 1);
        beginning.pieces.pop();
        beginning.append(end)
    }

    /// In lines of at most this width, broken between words; those after the first begin with spaces. A word that is
    /// wider is left to the terminal.
    pub fn folded(&self, width: Option<usize>, indent: usize) -> Vec<Line> {
        let Some(width) = width.filter(|width| self.width() > *width && *width > indent) else {
            return vec![self.clone()];
        };
        let mut lines = vec![Line::new()];
        let mut used = 0;
        for (tone, text) in &self.pieces {
            for word in text.split_inclusive(' ') {
                // The space behind a word may stand beyond the edge: nobody sees it.
                let needed: usize = word.trim_end_matches(' ').chars().map(columns).sum();
                if needed > 0 && used + needed > width && used > indent {
                    if let Some((_, text)) = lines.last_mut().and_then(|line| line.pieces.last_mut()) {
                        text.truncate(text.trim_end_matches(' ').len());
                    }
                    lines.push(Line::of(" ".repeat(indent)));
                    used = indent;
                }
                used += word.chars().map(columns).sum::<usize>();
                if let Some(line) = lines.pop() {
                    lines.push(line.with(*tone, word));
                }
            }
        }
        lines
    }

    /// The text for a stream of this look.
    pub fn show(&self, look: &Look) -> String {
        let mut shown = String::new();
        for (tone, text) in &self.pieces {
            let text = if *tone == Tone::Accent { look.command(text) } else { text.into() };
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
        assert_eq!(Line::of("abcdef").cut_front(4).show(&Look::plain(None)), "…def");
        assert_eq!(Line::of("abcdef").cut_front(6), Line::of("abcdef"));
        assert_eq!(Line::of("日本語").cut_front(3).show(&Look::plain(None)), "…語");
    }

    #[test]
    fn folding_breaks_between_words_and_keeps_tones() {
        let line = Line::of("links    ").faint("conversation 日本 · ").plain("chain 1 of 1");
        let shown = |width, look: &Look| {
            line.folded(width, 9).iter().map(|line| line.show(look)).collect::<Vec<_>>().join("\n")
        };
        let plain = Look::plain(None);
        assert_eq!(shown(None, &plain), line.show(&plain));
        assert_eq!(shown(Some(28), &plain), "links    conversation 日本 ·\n         chain 1 of 1");
        assert!(
            shown(Some(28), &Look::coloured(None)).contains("\u{1b}[2m日本 \u{1b}[0m\u{1b}[2m·\u{1b}[0m\n")
        );
        // Nine columns of indent and twelve of the longest word.
        for width in 21..60 {
            let lines = line.folded(Some(width), 9);
            assert!(lines.iter().all(|line| Line::of(line.show(&plain)).width() <= width), "{width}");
        }
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
