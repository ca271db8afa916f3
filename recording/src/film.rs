//! From what was printed to what was seen: the screen at every moment at which it had changed.

use std::{num::NonZeroU16, time::Duration};

use vt100::{Cell, Color, Parser};

use crate::play::Piece;

/// Changes that follow each other faster than this are one picture.
const SHUTTER: Duration = Duration::from_millis(120);
/// A pause is never longer than this.
const LONGEST: Duration = Duration::from_millis(2_500);

/// How a stretch of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Look {
    pub(crate) color: Option<u8>,
    pub(crate) bold: bool,
    pub(crate) faint: bool,
}

/// A row: stretches of text, each with the column where it begins.
pub(crate) type Row = Vec<(u16, String, Look)>;

/// What was seen, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) rows: Vec<Row>,
    pub(crate) lasts: Duration,
}

pub(crate) fn frames(pieces: &[Piece], columns: u16, rows: u16) -> Vec<Frame> {
    let one = NonZeroU16::MIN;
    let size = |n: u16| NonZeroU16::new(n).unwrap_or(one);
    let mut parser = Parser::new(size(rows), size(columns), 0);
    let mut frames: Vec<Frame> = Vec::new();
    let mut since = Duration::ZERO;
    for piece in pieces {
        since += piece.after.min(LONGEST);
        if since >= SHUTTER {
            take(&mut frames, &parser, columns, rows, since);
            since = Duration::ZERO;
        }
        parser.process(&piece.bytes);
    }
    take(&mut frames, &parser, columns, rows, LONGEST * 2);
    frames
}

/// Adds what is seen now; what looks like the last picture only lasts longer.
fn take(frames: &mut Vec<Frame>, parser: &Parser, columns: u16, rows: u16, lasts: Duration) {
    let rows: Vec<Row> = (0..rows).map(|row| seen(parser, row, columns)).collect();
    match frames.last_mut() {
        Some(last) if last.rows == rows => last.lasts += lasts,
        _ => frames.push(Frame { rows, lasts }),
    }
}

fn seen(parser: &Parser, row: u16, columns: u16) -> Row {
    let mut stretches: Row = Vec::new();
    let mut is_open = false;
    for column in 0..columns {
        let Some(cell) = parser.screen().cell(row, column).filter(|cell| cell.has_contents()) else {
            is_open = false;
            continue;
        };
        let (look, text) = (look(cell), cell.contents());
        match stretches.last_mut() {
            Some((_, before, same)) if is_open && *same == look => before.push_str(text),
            // A blank between two words of one look is no reason to begin anew.
            _ => stretches.push((column, text.to_owned(), look)),
        }
        is_open = true;
    }
    stretches.retain(|(_, text, _)| !text.trim().is_empty());
    stretches
}

fn look(cell: &Cell) -> Look {
    let color = match cell.fgcolor() {
        Color::Idx(color) => Some(color),
        Color::Default | Color::Rgb(..) => None,
    };
    Look { color, bold: cell.bold(), faint: cell.dim() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(after_ms: u64, text: &str) -> Piece {
        Piece { after: Duration::from_millis(after_ms), bytes: text.as_bytes().to_owned() }
    }

    #[test]
    fn a_picture_is_taken_when_something_was_there_for_a_while() {
        let pieces = [piece(0, "ab"), piece(10, "c"), piece(500, "\r\x1b[K\x1b[1;32mok\x1b[0m x")];
        let frames = frames(&pieces, 10, 2);
        let texts =
            |frame: &Frame| frame.rows[0].iter().map(|(at, text, _)| (*at, text.clone())).collect::<Vec<_>>();
        assert_eq!(frames.len(), 2);
        assert_eq!(texts(&frames[0]), [(0, "abc".to_owned())]);
        assert_eq!(frames[0].lasts, Duration::from_millis(510));
        assert_eq!(texts(&frames[1]), [(0, "ok".to_owned()), (2, " x".to_owned())]);
        assert_eq!(frames[1].rows[0][0].2, Look { color: Some(2), bold: true, faint: false });
    }
}
