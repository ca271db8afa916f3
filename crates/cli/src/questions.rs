//! Questions of agents, answered at the terminal: what is asked, what was typed, what it means. No I/O.

use std::collections::VecDeque;

use ostler_domain::{ApprovalId, event::ApprovalRequested, text::visible};

use crate::output::{Line, Tone};

/// Open questions, the oldest first; the first is the one that is answered.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: VecDeque<ApprovalRequested>,
    /// A denial waits for its reason.
    says_why: bool,
}

/// What a typed line means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Answer {
        id: ApprovalId,
        allow: bool,
        message: String,
    },
    /// The reason comes with the next line.
    AskWhy,
    /// The request is to be seen whole.
    Show(Vec<String>),
    /// Not an answer.
    Other(String),
}

impl Questions {
    /// Takes in a question; true when it is the one to answer now.
    pub(crate) fn asked(&mut self, question: &ApprovalRequested) -> bool {
        if self.open.iter().any(|known| known.id == question.id) {
            return false;
        }
        self.open.push_back(question.clone());
        self.open.len() == 1
    }

    /// Forgets a question that was answered, here or elsewhere; true when another one is next.
    pub(crate) fn answered(&mut self, id: ApprovalId) -> bool {
        let was_first = self.open.front().is_some_and(|first| first.id == id);
        self.open.retain(|question| question.id != id);
        if was_first {
            self.says_why = false;
        }
        was_first && !self.open.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The first question, and the keys that answer it.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let Some(first) = self.open.front() else { return Vec::new() };
        let what = ostler_domain::text::one_line(&format!("{}: {}", first.tool, first.input), 200);
        let key = |line: Line, key: &str, means: &str| {
            line.with(Tone::Accent, format!("[{key}]")).plain(format!(" {means}  "))
        };
        let keys = [("a", "allow"), ("d", "deny"), ("m", "deny and say why"), ("v", "full request")];
        vec![
            Line::toned(Tone::Warn, "? allow")
                .plain("   ")
                .plain(what)
                .faint(format!("   apr {}", first.id.short())),
            keys.into_iter().fold(Line::of("          "), |line, (name, means)| key(line, name, means)),
        ]
    }

    pub(crate) fn typed(&mut self, line: &str) -> Typed {
        let Some(first) = self.open.front() else { return Typed::Other(line.to_owned()) };
        let answer =
            |allow, message: &str| Typed::Answer { id: first.id, allow, message: message.to_owned() };
        if self.says_why {
            self.says_why = false;
            return answer(false, line.trim());
        }
        match line.trim() {
            "a" | "y" | "allow" => answer(true, ""),
            "d" | "n" | "deny" => answer(false, ""),
            "m" => {
                self.says_why = true;
                Typed::AskWhy
            }
            "v" => Typed::Show(visible(&first.input).lines().map(str::to_owned).collect()),
            _ => Typed::Other(line.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::event::AskKind;

    use super::*;
    use crate::{output::Look, testing::NOW};

    fn question(n: u128) -> ApprovalRequested {
        let (ask, tool) = (n.to_string(), "run".to_owned());
        ApprovalRequested {
            id: ApprovalId::new(NOW, n),
            ask,
            tool,
            input: format!("cargo add {n}\nnow"),
            kind: AskKind::Leave,
            action: Default::default(),
            subagent: None,
        }
    }

    #[test]
    fn keys_answer_the_oldest_question() {
        let mut questions = Questions::default();
        assert_eq!(questions.typed("a"), Typed::Other("a".to_owned()));
        assert!(questions.asked(&question(1)));
        assert!(!questions.asked(&question(2)));
        assert!(!questions.asked(&question(1)));
        assert_eq!(
            questions.typed("a"),
            Typed::Answer { id: question(1).id, allow: true, message: String::new() }
        );
        assert_eq!(questions.typed("hello"), Typed::Other("hello".to_owned()));
        assert_eq!(questions.typed("v"), Typed::Show(vec!["cargo add 1".to_owned(), "now".to_owned()]));
        assert!(questions.answered(question(1).id));
        assert_eq!(questions.typed("m"), Typed::AskWhy);
        let message = "open a branch".to_owned();
        assert_eq!(
            questions.typed(" open a branch "),
            Typed::Answer { id: question(2).id, allow: false, message }
        );
        assert!(!questions.answered(question(2).id));
        assert!(questions.is_empty());
    }

    #[test]
    fn a_question_answered_elsewhere_waits_for_no_reason() {
        let mut questions = Questions::default();
        questions.asked(&question(1));
        questions.typed("m");
        questions.answered(question(1).id);
        questions.asked(&question(2));
        assert_eq!(
            questions.typed("d"),
            Typed::Answer { id: question(2).id, allow: false, message: String::new() }
        );
    }

    #[test]
    fn says_which_keys_there_are() {
        let mut questions = Questions::default();
        questions.asked(&question(1));
        let look = Look::plain(None);
        let shown: Vec<_> = questions.lines().iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }
}
