//! Questions of agents, answered at the terminal: what is asked, what was typed, what it means. No I/O.

use std::collections::VecDeque;

use ostler_domain::{
    ApprovalId,
    approval::goes_by_rules,
    event::{ApprovalRequested, AskKind},
    text::visible,
};

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
        /// And from now on.
        always: bool,
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

    /// Keys that answer by themselves, without Enter.
    pub(crate) fn keys(&self) -> &'static str {
        match self.open.front() {
            Some(first) if first.kind == AskKind::Leave && !self.says_why => {
                if goes_by_rules(&first.why) {
                    "aAdmv"
                } else {
                    "admv"
                }
            }
            _ => "",
        }
    }

    /// The label of the line that an answer is typed into.
    pub(crate) fn label(&self) -> &'static str {
        if self.says_why { "why not? >" } else { ">" }
    }

    /// The first question, and the keys that answer it.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let Some(first) = self.open.front() else { return Vec::new() };
        let id = format!("   apr {}", first.id.short());
        if first.kind == AskKind::Question {
            let mut lines: Vec<Line> =
                visible(&first.input).lines().map(|line| Line::of("          ").plain(line)).collect();
            lines.insert(0, Line::toned(Tone::Warn, "? asks").plain("    ").plain(&first.tool).faint(id));
            lines.push(keys(&[("your answer", ""), ("d", "none")]));
            return lines;
        }
        let why = if first.why.is_empty() { String::new() } else { format!("   {}", first.why) };
        let always = goes_by_rules(&first.why).then_some(("A", "always in this campaign"));
        let others = [("d", "deny"), ("m", "deny and say why"), ("v", "full request")];
        let all: Vec<_> = std::iter::once(("a", "once")).chain(always).chain(others).collect();
        vec![
            Line::toned(Tone::Warn, "? allow").plain("   ").plain(first.asks()).faint(why).faint(id),
            keys(&all),
        ]
    }

    pub(crate) fn typed(&mut self, line: &str) -> Typed {
        let Some(first) = self.open.front() else { return Typed::Other(line.to_owned()) };
        let id = first.id;
        let answer =
            |allow, always, message: &str| Typed::Answer { id, allow, always, message: message.to_owned() };
        if self.says_why {
            self.says_why = false;
            return answer(false, false, line.trim());
        }
        match line.trim() {
            "d" | "n" | "deny" => answer(false, false, ""),
            "" => Typed::Other(line.to_owned()),
            text if first.kind == AskKind::Question => answer(true, false, text),
            "v" => Typed::Show(visible(&first.input).lines().map(str::to_owned).collect()),
            "m" => {
                self.says_why = true;
                Typed::AskWhy
            }
            "a" | "y" | "allow" => answer(true, false, ""),
            "A" | "always" if goes_by_rules(&first.why) => answer(true, true, ""),
            _ => Typed::Other(line.to_owned()),
        }
    }
}

fn keys(keys: &[(&str, &str)]) -> Line {
    keys.iter().fold(Line::of("          "), |line, (key, means)| {
        line.with(Tone::Accent, format!("[{key}]")).plain(format!(" {means}  "))
    })
}

#[cfg(test)]
mod tests {
    use ostler_domain::approval::NO_RULES;

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
            why: "no rule allows cargo add".to_owned(),
            deadline: None,
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
            Typed::Answer { id: question(1).id, allow: true, always: false, message: String::new() }
        );
        assert_eq!(questions.typed("hello"), Typed::Other("hello".to_owned()));
        assert_eq!(questions.typed("v"), Typed::Show(vec!["cargo add 1".to_owned(), "now".to_owned()]));
        assert!(questions.answered(question(1).id));
        assert_eq!((questions.keys(), questions.label()), ("aAdmv", ">"));
        assert_eq!(questions.typed("m"), Typed::AskWhy);
        assert_eq!(
            (questions.keys(), questions.label()),
            ("", "why not? >"),
            "a reason begins with any letter"
        );
        let message = "open a branch".to_owned();
        assert_eq!(
            questions.typed(" open a branch "),
            Typed::Answer { id: question(2).id, allow: false, always: false, message }
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
            Typed::Answer { id: question(2).id, allow: false, always: false, message: String::new() }
        );
    }

    #[test]
    fn a_large_letter_allows_always_and_a_question_takes_any_answer() {
        let mut questions = Questions::default();
        questions.asked(&question(1));
        let message = String::new();
        assert_eq!(
            questions.typed("A"),
            Typed::Answer { id: question(1).id, allow: true, always: true, message }
        );
        let mut questions = Questions::default();
        questions.asked(&ApprovalRequested { kind: AskKind::Question, ..question(2) });
        let message = "the blue one".to_owned();
        assert_eq!(
            questions.typed("the blue one\n"),
            Typed::Answer { id: question(2).id, allow: true, always: false, message }
        );
        for letter in ["m", "v"] {
            let message = letter.to_owned();
            assert_eq!(
                questions.typed(letter),
                Typed::Answer { id: question(2).id, allow: true, always: false, message },
                "a question is answered in words"
            );
        }
        assert_eq!(questions.typed(""), Typed::Other(String::new()));
        assert_eq!(questions.keys(), "", "an answer in words begins with any letter");
        let look = Look::plain(None);
        let shown: Vec<_> = questions.lines().iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn always_is_not_offered_where_no_rule_is_asked() {
        let mut questions = Questions::default();
        questions.asked(&ApprovalRequested { why: NO_RULES.to_owned(), ..question(1) });
        assert_eq!(questions.typed("A"), Typed::Other("A".to_owned()));
        assert_eq!(questions.keys(), "admv");
        let shown = questions.lines().iter().map(|line| line.show(&Look::plain(None))).collect::<String>();
        assert!(shown.contains(NO_RULES) && !shown.contains("[A]"), "{shown}");
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
