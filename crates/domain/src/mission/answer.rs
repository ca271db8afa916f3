//! What an assignment came to in words: the answer to its task, and not to what its agent was told beside it.
//!
//! An agent may be told something by other members, or that it does not get on. Where that makes a turn of its own, what it
//! says in that turn is an answer to whoever spoke, and not its result. What was said into a turn that was open belongs to
//! that turn, and a person's words are part of the task.

use std::collections::BTreeSet;

use crate::Event;

/// Finds the answer among the events of a session, which it is given from the last one on.
#[derive(Debug)]
pub struct TaskAnswer<'a> {
    /// Turns that answer nothing but what was said beside the task.
    asides: &'a BTreeSet<u32>,
    /// What was said last in the turn whose beginning has not been seen yet.
    in_turn: Option<String>,
    /// What was said last of all, for want of an answer.
    last: Option<String>,
}

impl<'a> TaskAnswer<'a> {
    pub fn new(asides: &'a BTreeSet<u32>) -> Self {
        Self { asides, in_turn: None, last: None }
    }

    /// Takes in the event before those that it has; says whether it has found the answer.
    pub fn take(&mut self, event: Event) -> bool {
        match event {
            Event::AgentCompletion(said) if said.subagent.is_none() => {
                self.in_turn.get_or_insert(said.text);
                false
            }
            Event::TurnStarted(started) if self.asides.contains(&started.turn) => {
                self.last = self.last.take().or(self.in_turn.take());
                self.in_turn = None;
                false
            }
            Event::TurnStarted(_) => self.in_turn.is_some(),
            _ => false,
        }
    }

    pub fn text(self) -> String {
        self.in_turn.or(self.last).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Text, TurnStarted};

    fn turn(turn: u32) -> Event {
        Event::TurnStarted(TurnStarted { turn })
    }

    fn said(text: &str) -> Event {
        Event::AgentCompletion(text.into())
    }

    fn answer(asides: &[u32], events: &[Event]) -> String {
        let asides = asides.iter().copied().collect();
        let mut answer = TaskAnswer::new(&asides);
        let _ = events.iter().rev().cloned().any(|event| answer.take(event));
        answer.text()
    }

    #[test]
    fn what_is_said_to_others_does_not_replace_the_result() {
        let events = [turn(1), said("thinking aloud"), said("two done"), turn(2), said("hello to you too")];
        assert_eq!(answer(&[2], &events), "two done");
        assert_eq!(answer(&[], &events), "hello to you too", "a person's words are part of the task");
    }

    #[test]
    fn a_helper_within_the_agent_says_nothing_for_it() {
        let helper =
            Event::AgentCompletion(Text { text: "found".to_owned(), subagent: Some("1".to_owned()) });
        assert_eq!(answer(&[], &[turn(1), said("done"), helper]), "done");
    }

    #[test]
    fn without_an_answer_the_last_words_count() {
        assert_eq!(answer(&[2], &[turn(1), turn(2), said("I am stuck")]), "I am stuck");
        assert_eq!(answer(&[], &[said("of a turn that was forgotten")]), "of a turn that was forgotten");
        assert_eq!(answer(&[], &[turn(1)]), "");
    }
}
