//! From bytes to records: lines, pieces of long lines, and what must wait because it may begin a secret.
//!
//! The splitter keeps what is not on the tape yet. Cutting gives records over its buffer; only those that were
//! really taped are let go, so a full disk loses nothing.

use std::ops::Range;

use ostler_tape::record::Flags;
use ostler_tape::{Record, Stream};

use crate::redact::Redactor;

#[derive(Debug)]
pub(crate) struct Splitter {
    stream: Stream,
    piece_bytes: usize,
    held: Vec<u8>,
    /// The line at the start of `held` began in an earlier record.
    continues: bool,
    /// The stream has ended: what is held is all there will be.
    ended: bool,
}

/// A record to be: which bytes it takes, how far it reaches with its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    payload: Range<usize>,
    consumed: usize,
    flags: Flags,
}

impl Splitter {
    pub(crate) fn new(stream: Stream, piece_bytes: usize) -> Splitter {
        Splitter { stream, piece_bytes: piece_bytes.max(1), held: Vec::new(), continues: false, ended: false }
    }

    /// Where the next bytes of the stream are to be appended.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// What can be taped now. Secrets in it are overwritten, and no cut goes through one.
    pub(crate) fn cut(&mut self, redactor: &Redactor) -> Vec<Cut> {
        if !self.has_something_to_cut(redactor) {
            return Vec::new();
        }
        let secrets = redactor.find(&self.held);
        let mut cuts = Vec::new();
        let mut continues = self.continues;
        let mut at = 0;
        loop {
            let newline = self.held[at..].iter().position(|&byte| byte == b'\n').map(|found| at + found);
            let line_end = newline.unwrap_or(self.held.len());
            let complete = newline.is_some() || self.ended;
            // A line without its newline may end in the beginning of a secret.
            let usable =
                if complete { line_end } else { line_end.saturating_sub(redactor.hold_back()).max(at) };
            let start = Flags::CONTINUES.when(continues);
            if usable - at > self.piece_bytes {
                let end = outside(&secrets, at, at + self.piece_bytes);
                if end > usable {
                    break;
                }
                cuts.push(Cut { payload: at..end, consumed: end, flags: Flags::MORE.with(start) });
                continues = true;
                at = end;
            } else if newline.is_some() {
                cuts.push(Cut { payload: at..line_end, consumed: line_end + 1, flags: start });
                continues = false;
                at = line_end + 1;
            } else if self.ended && (line_end > at || continues) {
                let flags = Flags::PARTIAL.with(start);
                cuts.push(Cut { payload: at..line_end, consumed: line_end, flags });
                at = line_end;
                break;
            } else {
                break;
            }
        }
        for secret in secrets.iter().filter(|secret| secret.end <= at) {
            self.held[secret.clone()].fill(b'*');
        }
        cuts
    }

    /// Spares the search for secrets while a line grows.
    fn has_something_to_cut(&self, redactor: &Redactor) -> bool {
        self.ended || self.held.len() > self.piece_bytes + redactor.hold_back() || self.held.contains(&b'\n')
    }

    pub(crate) fn records<'a>(&'a self, cuts: &'a [Cut], time_us: i64) -> Vec<Record<'a>> {
        let record = |cut: &Cut| Record {
            stream: self.stream,
            flags: cut.flags,
            time_us,
            payload: &self.held[cut.payload.clone()],
        };
        cuts.iter().map(record).collect()
    }

    /// The first `count` of `cuts` are on the tape.
    pub(crate) fn taped(&mut self, cuts: &[Cut], count: usize) {
        let Some(last) = count.checked_sub(1).and_then(|last| cuts.get(last)) else { return };
        self.continues = last.flags.has(Flags::MORE);
        if last.consumed == self.held.len() {
            // Given back: most keepers are idle most of the time.
            self.held = Vec::new();
        } else {
            self.held.drain(..last.consumed);
        }
    }
}

/// The last place in `from..=wanted` that is not inside a secret, or the end of the secret that fills it all.
fn outside(secrets: &[Range<usize>], from: usize, wanted: usize) -> usize {
    match secrets.iter().find(|secret| secret.start < wanted && wanted < secret.end) {
        Some(secret) if secret.start > from => secret.start,
        Some(secret) => secret.end,
        None => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` in portions, tapes all that can be, and shows the records as text with their marks:
    /// `+` more, `-` continues, `~` partial.
    fn split(text: &[u8], portion: usize, piece_bytes: usize, secrets: &[&str]) -> Vec<String> {
        let redactor = Redactor::new(&secrets.iter().map(|&s| s.to_owned()).collect::<Vec<_>>());
        let mut splitter = Splitter::new(Stream::Out, piece_bytes);
        let mut shown = Vec::new();
        let mut tape_all = |splitter: &mut Splitter| {
            let cuts = splitter.cut(&redactor);
            for record in splitter.records(&cuts, 0) {
                let mark = |flag, mark| if record.flags.has(flag) { mark } else { "" };
                shown.push(format!(
                    "{}{}{}{}",
                    mark(Flags::CONTINUES, "-"),
                    String::from_utf8_lossy(record.payload),
                    mark(Flags::MORE, "+"),
                    mark(Flags::PARTIAL, "~"),
                ));
            }
            splitter.taped(&cuts, cuts.len());
        };
        for portion in text.chunks(portion) {
            splitter.buffer().extend_from_slice(portion);
            tape_all(&mut splitter);
        }
        splitter.end();
        tape_all(&mut splitter);
        assert_eq!(splitter.held_bytes(), 0);
        shown
    }

    #[test]
    fn lines_pieces_and_a_partial_end() {
        assert_eq!(split(b"one\n\ntwo\n", 100, 10, &[]), ["one", "", "two"]);
        assert_eq!(split(b"0123456789abcde\nx", 1, 5, &[]), ["01234+", "-56789+", "-abcde", "x~"]);
        assert_eq!(split(b"01234567", 8, 4, &[]), ["0123+", "-4567~"]);
        assert_eq!(split(b"", 1, 4, &[]), [""; 0]);
    }

    #[test]
    fn a_line_that_ended_with_its_last_piece_is_ended_by_an_empty_one() {
        let redactor = Redactor::default();
        let mut splitter = Splitter::new(Stream::Out, 2);
        splitter.buffer().extend_from_slice(b"abc");
        let cuts = splitter.cut(&redactor);
        assert_eq!(cuts.len(), 1);
        splitter.taped(&cuts, 1);
        splitter.buffer().clear();
        splitter.end();
        let cuts = splitter.cut(&redactor);
        assert_eq!(cuts, [Cut { payload: 0..0, consumed: 0, flags: Flags::PARTIAL.with(Flags::CONTINUES) }]);
    }

    #[test]
    fn secrets_are_covered_whatever_the_portions_and_pieces() {
        let text = b"say hunter2! and hunter2hunter2\nlast hunter2";
        for portion in 1..text.len() {
            for piece_bytes in 1..text.len() {
                let shown = split(text, portion, piece_bytes, &["hunter2"]).concat();
                let plain: String = shown.chars().filter(|c| !"+-~".contains(*c)).collect();
                assert_eq!(plain, "say *******! and **************last *******");
            }
        }
    }

    #[test]
    fn overlapping_secrets_leave_no_rest() {
        let text = b"x abcdefghij y";
        for portion in 1..text.len() {
            for piece_bytes in 1..text.len() {
                let shown = split(text, portion, piece_bytes, &["abcdefg", "efghij"]).concat();
                let plain: String = shown.chars().filter(|c| !"+-~".contains(*c)).collect();
                assert_eq!(plain, "x ********** y", "portions of {portion}, pieces of {piece_bytes}");
            }
        }
    }

    #[test]
    fn what_was_not_taped_is_cut_again() {
        let redactor = Redactor::default();
        let mut splitter = Splitter::new(Stream::Out, 10);
        splitter.buffer().extend_from_slice(b"one\ntwo\nthree\n");
        let cuts = splitter.cut(&redactor);
        splitter.taped(&cuts, 1);
        let cuts = splitter.cut(&redactor);
        let payloads: Vec<_> =
            splitter.records(&cuts, 0).iter().map(|record| record.payload.to_vec()).collect();
        assert_eq!(payloads, [b"two".to_vec(), b"three".to_vec()]);
        splitter.taped(&cuts, 0);
        assert_eq!(splitter.held_bytes(), 10);
    }
}
