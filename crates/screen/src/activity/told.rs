//! One deed in words, and how it is laid out as lines.

use ostler_domain::text::visible;

use crate::{Line, Tone, words};

/// Columns of the verb.
pub(super) const VERB: usize = 8;
/// Where the result of a call stands, when its text leaves room.
const TEXT: usize = 40;

/// One deed in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    verb: String,
    tone: Tone,
    text: String,
    right: Line,
    /// Further lines of a text that is shown whole.
    rest: Vec<String>,
    /// How a call ended: well or not, and with which code.
    ended: Option<(bool, Option<i32>)>,
}

impl Told {
    pub fn new(verb: impl Into<String>, text: impl Into<String>) -> Self {
        let (verb, text) = (verb.into(), text.into());
        Self { verb, tone: Tone::Plain, text, right: Line::new(), rest: Vec::new(), ended: None }
    }

    /// Where deeds are laid out in another way than as lines.
    pub fn parts(&self) -> (&str, Tone, String) {
        let text = [&self.text].into_iter().chain(&self.rest).map(String::as_str).collect::<Vec<_>>();
        (&self.verb, self.tone, text.join("\n"))
    }

    /// Whether this is the same deed once more, with the same end.
    pub fn repeats(&self, other: &Told) -> bool {
        let deed = |told: &Told| (told.verb.clone(), told.text.clone(), told.ended);
        deed(self) == deed(other) && self.rest == other.rest
    }

    /// The deed, done so often in a row.
    pub fn times(self, count: u64) -> Self {
        match count {
            0 | 1 => self,
            _ => {
                let times = Line::toned(Tone::Warn, format!("× {}", words::number(count)));
                let space = if self.right.is_empty() { "" } else { "  " };
                Self { right: times.plain(space).append(self.right), ..self }
            }
        }
    }

    /// A text with all its lines.
    pub fn whole(verb: &str, text: &str) -> Self {
        let text = visible(text.trim());
        let mut lines = text.lines().map(str::to_owned);
        let first = lines.next().unwrap_or_default();
        Self { rest: lines.collect(), ..Self::new(verb, first) }
    }

    /// A text of the agent's, as it stands among its deeds.
    pub fn said(text: &str) -> Self {
        Self::whole("say", text)
    }

    /// The same, marked where a sub-agent did it.
    #[must_use]
    pub fn by(self, subagent: Option<&String>) -> Self {
        match subagent {
            Some(_) => Self { text: format!("↳ {}", self.text), ..self },
            None => self,
        }
    }

    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    #[must_use]
    pub fn faint(self) -> Self {
        self.tone(Tone::Faint)
    }

    #[must_use]
    pub fn right(self, text: impl AsRef<str>) -> Self {
        Self { right: Line::new().faint(text), ..self }
    }

    /// The call that it tells of, with what came of it.
    pub(super) fn came_to(self, right: Line, success: bool, exit: Option<i32>) -> Self {
        Self { right, ended: Some((success, exit)), ..self }
    }

    /// The lines, each after the prefix, the first within the width.
    pub fn lines(&self, prefix: &Line, width: Option<usize>) -> Vec<Line> {
        let verb = Line::toned(self.tone, &self.verb).padded(VERB - 1);
        let text_tone = if self.tone == Tone::Faint { Tone::Faint } else { Tone::Plain };
        let head = prefix.clone().append(verb).plain(" ");
        let indent = " ".repeat(head.width());
        let text = Line::toned(text_tone, &self.text);
        let first = if self.right.is_empty() {
            head.append(text)
        } else {
            // Results stand in a column of their own; what a narrow screen has left is shared.
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(head.width()));
            let column = TEXT.min(room / 5 * 3);
            let most = room.saturating_sub(self.right.width() + 2).max(column);
            head.append(text.cut(most).padded(column)).plain("  ").append(self.right.clone())
        };
        let whole = !self.rest.is_empty() || self.verb == "say" || self.verb == "error";
        let first = match width {
            Some(width) if !whole => first.cut(width),
            _ => first,
        };
        let rest = self.rest.iter().map(|text| Line::of(&indent).with(text_tone, text));
        [first].into_iter().chain(rest).collect()
    }
}
