//! A line as it is typed: keys in, texts out. No I/O.

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

#[cfg(test)]
mod tests {
    use super::*;

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
