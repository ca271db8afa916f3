//! A text that somebody types: where the next letter goes, and what was typed before.

use crate::message::Key;

/// A text with a place in it, counted in characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Draft {
    text: String,
    at: usize,
}

impl Draft {
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), at: text.chars().count() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What stands before the place, and what from there on.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.byte(self.at))
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Takes in a text as it is, lines and all.
    pub(crate) fn insert(&mut self, text: &str) {
        // A pasted text ends its lines as its program did.
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.byte(self.at), &text);
        self.at += text.chars().count();
    }

    /// Takes a key. False where it means nothing to a text.
    pub(crate) fn press(&mut self, key: Key) -> bool {
        let length = self.text.chars().count();
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.insert("\n"),
            Key::Back if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.byte(self.at));
            }
            Key::Delete if self.at < length => {
                self.text.remove(self.byte(self.at));
            }
            Key::Left => self.at = self.at.saturating_sub(1),
            Key::Right => self.at = (self.at + 1).min(length),
            Key::Home => self.at = 0,
            Key::End => self.at = length,
            Key::ClearWord => {
                let (before, after) = self.parts();
                let kept = before.trim_end().rfind([' ', '\n']).map_or("", |space| &before[..=space]);
                (self.at, self.text) = (kept.chars().count(), format!("{kept}{after}"));
            }
            Key::Clear => *self = Self::default(),
            Key::Back | Key::Delete => {}
            _ => return false,
        }
        true
    }

    fn byte(&self, at: usize) -> usize {
        self.text.char_indices().nth(at).map_or(self.text.len(), |(byte, _)| byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> Draft {
        let mut draft = Draft::of("grün ");
        keys.iter().for_each(|key| assert!(draft.press(*key)));
        draft
    }

    #[test]
    fn letters_go_where_the_place_is() {
        assert_eq!(typed(&[Key::Char('日')]).text(), "grün 日");
        assert_eq!(typed(&[Key::Left, Key::Left, Key::Back, Key::Char('u')]).text(), "grun ");
        assert_eq!(typed(&[Key::Home, Key::Delete, Key::Right]).parts(), ("r", "ün "));
        assert_eq!(typed(&[Key::Char('x'), Key::ClearWord]).text(), "grün ");
        assert_eq!(typed(&[Key::ClearWord]).text(), "");
        assert_eq!(typed(&[Key::Clear, Key::Back, Key::Delete, Key::NewLine]).text(), "\n");
    }

    #[test]
    fn what_is_pasted_stays_whole() {
        let mut draft = Draft::of("ab");
        draft.press(Key::Left);
        draft.insert("one\r\ntwo\r");
        assert_eq!(draft.parts(), ("aone\ntwo\n", "b"));
        assert!(!draft.press(Key::Enter) && !draft.press(Key::Tab));
    }
}
