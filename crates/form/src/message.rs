//! A message as JSON.

use ostler_client::Delivery;
use schemars::JsonSchema;
use serde::Serialize;

use crate::rfc3339;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub struct MessageForm {
    id: String,
    conversation: String,
    session: String,
    text: String,
    mode: &'static str,
    receipt: &'static str,
    by: String,
    accepted: String,
    receipt_time: String,
    turn: Option<u32>,
    why: Option<String>,
    rule: Option<String>,
    idempotency_key: Option<String>,
}

impl MessageForm {
    pub fn new(delivery: &Delivery) -> Self {
        Self {
            id: delivery.message.id.to_string(),
            conversation: delivery.conversation.to_string(),
            session: delivery.session.to_string(),
            text: delivery.message.text.clone(),
            mode: delivery.message.mode.as_str(),
            receipt: delivery.receipt.as_str(),
            by: delivery.by.0.clone(),
            accepted: rfc3339(delivery.accepted),
            receipt_time: rfc3339(delivery.receipt_at),
            turn: delivery.turn,
            why: delivery.why.clone(),
            rule: delivery.rule.clone(),
            idempotency_key: delivery.key.clone(),
        }
    }
}
