//! `<think>…</think>` at the beginning of a reply: some servers leave it in the text.

/// Separates thinking from text while both stream in.
#[derive(Debug, Default)]
pub(super) enum Think {
    /// The beginning, as long as it may still be the tag.
    #[default]
    Unsure,
    Held(String),
    Inside(String),
    /// Behind the tag, before the first word: blank lines there belong to nothing.
    Behind,
    Outside,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Thinking(String),
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

impl Think {
    pub(super) fn push(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        match std::mem::take(self) {
            Think::Unsure => self.begin(text.to_owned(), pieces),
            Think::Held(held) => self.begin(held + text, pieces),
            Think::Inside(held) => self.inside(held + text, pieces),
            Think::Behind => self.behind(text, pieces),
            Think::Outside => {
                *self = Think::Outside;
                give(Piece::Text(text.to_owned()), pieces);
            }
        }
    }

    /// The reply is over: what was held back is what it looks like.
    pub(super) fn end(&mut self, pieces: &mut Vec<Piece>) {
        match std::mem::replace(self, Think::Outside) {
            Think::Held(held) => give(Piece::Text(held), pieces),
            Think::Inside(held) => give(Piece::Thinking(held), pieces),
            Think::Unsure | Think::Behind | Think::Outside => {}
        }
    }

    fn begin(&mut self, text: String, pieces: &mut Vec<Piece>) {
        let start = text.trim_start();
        if let Some(rest) = start.strip_prefix(OPEN) {
            self.inside(rest.to_owned(), pieces);
        } else if OPEN.starts_with(start) {
            *self = Think::Held(text);
        } else {
            *self = Think::Outside;
            give(Piece::Text(text), pieces);
        }
    }

    fn inside(&mut self, text: String, pieces: &mut Vec<Piece>) {
        if let Some((thought, rest)) = text.split_once(CLOSE) {
            give(Piece::Thinking(thought.to_owned()), pieces);
            self.behind(rest, pieces);
            return;
        }
        // What may be the beginning of the closing tag waits for the rest of it.
        let held = (1..CLOSE.len()).rev().find(|n| text.ends_with(&CLOSE[..*n])).unwrap_or(0);
        let (thought, held) = text.split_at(text.len() - held);
        *self = Think::Inside(held.to_owned());
        give(Piece::Thinking(thought.to_owned()), pieces);
    }

    fn behind(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        let text = text.trim_start();
        *self = if text.is_empty() { Think::Behind } else { Think::Outside };
        give(Piece::Text(text.to_owned()), pieces);
    }
}

fn give(piece: Piece, pieces: &mut Vec<Piece>) {
    let (Piece::Text(text) | Piece::Thinking(text)) = &piece;
    if !text.is_empty() {
        pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, size: usize) -> (String, String) {
        let mut think = Think::default();
        let mut pieces = Vec::new();
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            think.push(&piece.iter().collect::<String>(), &mut pieces);
        }
        think.end(&mut pieces);
        let (mut thinking, mut said) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(text) => said.push_str(&text),
                Piece::Thinking(text) => thinking.push_str(&text),
            }
        }
        (thinking, said)
    }

    #[test]
    fn thinking_is_split_off_only_at_the_beginning() {
        for size in 1..20 {
            assert_eq!(split("<think>a < b</think>\n\nyes", size), ("a < b".into(), "yes".into()));
            assert_eq!(split("say <think>no</think>", size), (String::new(), "say <think>no</think>".into()));
            assert_eq!(split("<thin", size), (String::new(), "<thin".into()));
            assert_eq!(split("<think>never closed </th", size), ("never closed </th".into(), String::new()));
        }
    }
}
