//! Words for the turn that is open, which its model has not read yet. That it took them is not that its model read them:
//! they come back with their name when it does, and an interrupt drops them (0.166).

use ostler_domain::{MessageId, session::Report};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Heard;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Steered(Vec<Words>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Words {
    message: MessageId,
    text: String,
    /// Whether it took them, once it has said so.
    is_taken: Option<bool>,
}

impl Steered {
    pub(super) fn written(&mut self, message: MessageId, input: &Value) {
        self.0.push(Words { message, text: text_of(input).to_owned(), is_taken: None });
    }

    /// It has said whether it took them.
    pub(super) fn answered(&mut self, input: &Value, is_taken: bool) {
        if let Some(at) = self.unanswered(input) {
            self.0[at].is_taken = Some(is_taken);
        }
    }

    /// Takes back words that came too late for the turn that was open.
    pub(super) fn take_back(&mut self, input: &Value) -> Option<MessageId> {
        self.unanswered(input).map(|at| self.0.remove(at).message)
    }

    /// They are read with the model's next request. An older Ostler gave them no name.
    pub(super) fn read(&mut self, item: &Value, heard: &mut Vec<Heard>) {
        let is_meant = |words: &Words| match item["clientId"].as_str() {
            Some(name) => name == words.message.to_string(),
            None => text_of(&item["content"]) == words.text,
        };
        if let Some(at) = self.0.iter().position(is_meant) {
            let messages = vec![self.0.remove(at).message];
            heard.push(Heard::Report(Report::TurnStarted { messages }));
        }
    }

    /// The turn ends with some that its model has not read. After an interrupt it never will; in every other end it takes
    /// them first, so of those nobody knows.
    pub(super) fn let_go(&mut self, status: &str, heard: &mut Vec<Heard>) {
        // What it has not answered yet, it will: that there is no turn to take it.
        let (unanswered, rest): (Vec<Words>, Vec<Words>) =
            std::mem::take(&mut self.0).into_iter().partition(|words| words.is_taken.is_none());
        self.0 = unanswered;
        let is_dropped = |words: &Words| words.is_taken == Some(false) || status == "interrupted";
        let (dropped, unclear): (Vec<Words>, Vec<Words>) = rest.into_iter().partition(is_dropped);
        let ids = |some: Vec<Words>| some.into_iter().map(|words| words.message).collect::<Vec<_>>();
        if !dropped.is_empty() {
            heard.push(Heard::Report(Report::Unread { messages: ids(dropped) }));
        }
        if !unclear.is_empty() {
            heard.push(Heard::Report(Report::Unclear { messages: ids(unclear) }));
        }
    }

    /// The first with this text of which it has not said whether it took them.
    fn unanswered(&self, input: &Value) -> Option<usize> {
        self.0.iter().position(|words| words.text == text_of(input) && words.is_taken.is_none())
    }
}

fn text_of(input: &Value) -> &str {
    input[0]["text"].as_str().unwrap_or_default()
}
