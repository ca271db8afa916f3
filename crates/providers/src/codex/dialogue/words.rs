//! What it is told: requests as messages of its protocol.

use ostler_domain::session::AgentRequest;
use serde_json::{Value, json};

use super::{Ask, CodexDialogue};
use crate::foreign;

/// What its model is told to make the conversation smaller.
const COMPACT: &str = "/compact";
/// The method that ends commands.
pub(super) const CLEAN: &str = "thread/backgroundTerminals/clean";

impl CodexDialogue {
    pub(super) fn words(&self, request: &AgentRequest, input_no: u64) -> Option<Vec<u8>> {
        let id = format!("in-{input_no}");
        let thread = self.thread.as_deref().unwrap_or_default();
        let input = |text: &str| json!([{"type": "text", "text": text, "text_elements": []}]);
        let message = match request {
            // Its own word for it on its own screen, which it does not know here.
            AgentRequest::Prompt(message) if message.text.trim() == COMPACT => {
                json!({"id": id, "method": "thread/compact/start", "params": {"threadId": thread}})
            }
            AgentRequest::Prompt(message) => json!({"id": id, "method": "turn/start",
                "params": {"threadId": thread, "input": input(&message.text)}}),
            // It comes back with its name when the model reads it.
            AgentRequest::Steer(message) => json!({"id": id, "method": "turn/steer",
                "params": {"threadId": thread, "expectedTurnId": self.turn.as_ref()?, "input": input(&message.text),
                    "clientUserMessageId": message.id}}),
            AgentRequest::End if self.turn.is_none() && !self.open.is_empty() => self.clean(&id),
            // With no turn open it would never be answered.
            AgentRequest::Interrupt | AgentRequest::End => json!({"id": id, "method": "turn/interrupt",
                "params": {"threadId": thread, "turnId": self.turn.as_ref()?}}),
            AgentRequest::Answer { ask, allow, message } => {
                let Ask { id: asked, questions } = self.asks.get(ask)?;
                if let Some(questions) = questions {
                    let answer = json!({"id": asked, "result": questions.answered(*allow, message)});
                    return foreign::lines([&answer]);
                }
                let decision = if *allow { "accept" } else { "decline" };
                let answer = json!({"id": asked, "result": {"decision": decision}});
                // The answer has no room for words: they go into the turn before it, or the model goes on without them.
                let why = self.turn.as_ref().filter(|_| !allow && !message.is_empty()).map(|turn| {
                    let input = input(&foreign::denial(message));
                    json!({"id": id, "method": "turn/steer",
                        "params": {"threadId": thread, "expectedTurnId": turn, "input": input}})
                });
                return foreign::lines(why.iter().chain([&answer]));
            }
            // It announces nothing.
            AgentRequest::Proceed { .. } => return None,
            // Nobody knows this method, and whoever says so is alive.
            AgentRequest::Nudge => json!({"id": id, "method": "_ostler/ping", "params": {}}),
            AgentRequest::Model(model) => json!({"id": id, "method": "thread/settings/update",
                "params": {"threadId": thread, "model": model}}),
        };
        foreign::lines([&message])
    }

    /// Ends the commands that run beside its turns.
    pub(super) fn clean(&self, id: &str) -> Value {
        json!({"id": id, "method": CLEAN, "params": {"threadId": self.thread}})
    }
}
