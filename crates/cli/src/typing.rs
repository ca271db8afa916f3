//! A line as it is typed: keys in, texts out. No I/O, and no clock of its own.

use std::time::{Duration, Instant};

/// A key that was on its way when a question appeared was not meant for it.
const INERT: Duration = Duration::from_millis(600);

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Back,
    /// Ctrl-W
    ClearWord,
    /// Ctrl-U
    Clear,
    /// Ctrl-D
    End,
}

/// Bytes of a terminal, as keys. Arrows and the like mean nothing here.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// A character that is not yet whole.
    begun: Vec<u8>,
    escape: Escape,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// Until a letter ends it.
    Sequence,
}

impl Decoder {
    pub(crate) fn feed(&mut self, byte: u8) -> Option<Key> {
        match (&self.escape, byte) {
            (Escape::Begun, b'[' | b'O') => {
                self.escape = Escape::Sequence;
                return None;
            }
            (Escape::Begun, _) | (Escape::Sequence, 0x40..=0x7e) => {
                self.escape = Escape::None;
                return None;
            }
            (Escape::Sequence, _) => return None,
            (Escape::None, _) => {}
        }
        match byte {
            b'\n' | b'\r' => Some(Key::Enter),
            0x7f | 0x08 => Some(Key::Back),
            0x17 => Some(Key::ClearWord),
            0x15 => Some(Key::Clear),
            0x04 => Some(Key::End),
            0x1b => {
                self.escape = Escape::Begun;
                None
            }
            b'\t' => Some(Key::Char(' ')),
            0..0x20 => None,
            byte => self.character(byte),
        }
    }

    fn character(&mut self, byte: u8) -> Option<Key> {
        self.begun.push(byte);
        match std::str::from_utf8(&self.begun) {
            Ok(text) => {
                let key = text.chars().next().map(Key::Char);
                self.begun.clear();
                key
            }
            // More may come; what can become no character is dropped.
            Err(error) => {
                if error.error_len().is_some() {
                    self.begun.clear();
                }
                None
            }
        }
    }
}

/// What a key led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pressed {
    Changed,
    /// The line is whole, or a key was one.
    Line(String),
    End,
}

/// A line that is not yet whole.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    text: String,
}

impl Draft {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes a key. Those of `at_once` are whole lines, while nothing else was typed.
    pub(crate) fn press(&mut self, key: Key, at_once: &str) -> Pressed {
        match key {
            Key::Char(c) if self.text.is_empty() && at_once.contains(c) => {
                return Pressed::Line(c.to_string());
            }
            Key::Char(c) => self.text.push(c),
            Key::Enter => return Pressed::Line(std::mem::take(&mut self.text)),
            Key::Back => {
                self.text.pop();
            }
            Key::ClearWord => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.text.truncate(kept);
            }
            Key::Clear => self.text.clear(),
            Key::End if self.text.is_empty() => return Pressed::End,
            Key::End => {}
        }
        Pressed::Changed
    }
}

/// What is typed at a prompt: a line, or one of the keys that need no Enter.
#[derive(Debug, Default)]
pub(crate) struct Typing {
    decoder: Decoder,
    draft: Draft,
    /// What was being typed when somebody called up a menu.
    aside: Option<Draft>,
    /// Keys that are whole lines.
    at_once: &'static str,
    /// Until then no key is an answer by itself.
    inert_until: Option<Instant>,
    /// All that was typed was typed before that.
    is_early: bool,
}

impl Typing {
    pub(crate) fn text(&self) -> &str {
        self.draft.text()
    }

    /// A prompt that comes by itself. Where it was not there before, its keys mean something only when it can have been seen.
    pub(crate) fn appears(&mut self, at_once: &'static str, now: Instant) {
        let aside = self.aside.take();
        let was_below_a_menu = aside.is_some();
        self.draft = aside.unwrap_or_else(|| std::mem::take(&mut self.draft));
        if was_below_a_menu || self.at_once != at_once {
            self.inert_until = (!at_once.is_empty()).then(|| now + INERT);
            self.at_once = at_once;
        }
    }

    /// What was asked is not asked any more: whatever comes next appears anew.
    pub(crate) fn is_over(&mut self) {
        (self.at_once, self.aside) = ("", None);
    }

    /// A menu that somebody called up by a key of its own: the next key is for it, whatever was being typed.
    pub(crate) fn called_up(&mut self, at_once: &'static str) {
        let draft = std::mem::take(&mut self.draft);
        self.aside.get_or_insert(draft);
        (self.at_once, self.inert_until) = (at_once, None);
    }

    /// Reads a byte that nobody asked for: the keys after it are still told apart.
    pub(crate) fn ignore(&mut self, byte: u8) {
        self.decoder.feed(byte);
    }

    /// Takes a byte of the terminal. None where it led to nothing.
    pub(crate) fn feed(&mut self, byte: u8, now: Instant) -> Option<Pressed> {
        let key = self.decoder.feed(byte)?;
        if self.inert_until.is_some_and(|until| now < until) {
            self.is_early |= self.draft.text().is_empty();
            return Some(self.draft.press(key, ""));
        }
        if std::mem::take(&mut self.is_early) && matches!(key, Key::Char(c) if self.at_once.contains(c)) {
            self.draft = Draft::default();
        }
        Some(self.draft.press(key, self.at_once))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is typed at the time.
    fn answers(typing: &mut Typing, bytes: &[u8], now: Instant) -> Vec<Pressed> {
        let pressed = bytes.iter().filter_map(|byte| typing.feed(*byte, now));
        pressed.filter(|pressed| *pressed != Pressed::Changed).collect()
    }

    #[test]
    fn a_menu_that_was_called_up_takes_the_next_key_at_once() {
        let (mut typing, now) = (Typing::default(), Instant::now());
        typing.called_up("sdc");
        assert_eq!(answers(&mut typing, b"s", now), [line("s")]);
        // In the middle of a reason, which is still there afterwards.
        typing.appears("", now);
        assert_eq!(answers(&mut typing, b"not no", now), []);
        typing.called_up("sdc");
        typing.called_up("sdc");
        assert_eq!(typing.text(), "");
        assert_eq!(answers(&mut typing, b"c", now), [line("c")]);
        typing.appears("", now);
        assert_eq!(answers(&mut typing, b"w\r", now), [line("not now")]);
    }

    #[test]
    fn keys_that_were_on_their_way_when_a_question_appeared_answer_nothing_by_themselves() {
        let (mut typing, now) = (Typing::default(), Instant::now());
        let seen = now + INERT;
        typing.appears("aAdmv", now);
        assert_eq!(answers(&mut typing, b"a", now), []);
        assert_eq!(typing.text(), "a");
        // It is shown again and again.
        typing.appears("aAdmv", seen);
        assert_eq!(
            answers(&mut typing, b"d", seen),
            [line("d")],
            "nor do they stand in the way of the next one"
        );
        typing.is_over();
        typing.appears("aAdmv", seen);
        assert_eq!(answers(&mut typing, b"d", seen), [], "the next question has the same keys");
        assert_eq!(answers(&mut typing, b"\r", seen), [line("d")], "a whole line is meant");
        typing.called_up("sdc");
        typing.appears("aAdmv", seen);
        assert_eq!(answers(&mut typing, b"d", seen), [], "what was below a menu appears anew");
        assert_eq!(answers(&mut typing, b"eny\r", seen + INERT), [line("deny")]);
    }

    #[test]
    fn a_reason_begins_with_the_key_after_the_one_that_asked_for_it() {
        let (mut typing, now) = (Typing::default(), Instant::now());
        typing.appears("aAdmv", now);
        let seen = now + INERT;
        assert_eq!(answers(&mut typing, b"m", seen), [line("m")]);
        typing.appears("", seen);
        assert_eq!(answers(&mut typing, b"ask me\r", seen), [line("ask me")]);
    }

    fn typed(bytes: &[u8], at_once: &str) -> Vec<Pressed> {
        let (mut decoder, mut draft) = (Decoder::default(), Draft::default());
        let keys = bytes.iter().filter_map(|byte| decoder.feed(*byte)).collect::<Vec<_>>();
        keys.into_iter()
            .map(|key| draft.press(key, at_once))
            .filter(|pressed| *pressed != Pressed::Changed)
            .collect()
    }

    fn line(text: &str) -> Pressed {
        Pressed::Line(text.to_owned())
    }

    #[test]
    fn a_line_is_typed_and_corrected() {
        assert_eq!(typed("grün 日本\r".as_bytes(), ""), [line("grün 日本")]);
        assert_eq!(typed(b"helo\x7flo\n", ""), [line("hello")]);
        assert_eq!(typed(b"one two\x17three\n", ""), [line("one three")]);
        assert_eq!(typed(b"nonsense\x15sense\n", ""), [line("sense")]);
        assert_eq!(typed(b"\x1b[A\x1b[1;5Cx\x1bOHy\n", ""), [line("xy")], "arrows mean nothing");
        assert_eq!(typed(b"x\x04", ""), []);
        assert_eq!(typed(b"\x04", ""), [Pressed::End]);
        assert_eq!(typed(b"a\xffb\n", ""), [line("ab")]);
    }

    #[test]
    fn one_key_answers_only_where_nothing_was_typed_before() {
        assert_eq!(typed(b"a", "aAd"), [line("a")]);
        assert_eq!(typed(b"A", "aAd"), [line("A")]);
        assert_eq!(typed(b"go and\n", "aAd"), [line("go and")]);
        assert_eq!(typed(b"x\x7fd", "aAd"), [line("d")]);
    }
}
