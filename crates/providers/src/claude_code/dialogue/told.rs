//! The lines that Claude Code is told. One that is no JSON would end it at once, so they are all made here.

use ostler_domain::{MessageId, session::AgentRequest};
use serde::Serialize;
use serde_json::{Value, json};

use super::Question;

/// The id of the request that opens the dialogue: its answer means that the agent is ready.
pub(super) const OPENING: &str = "ostler-open";
/// The beginning of the ids of requests for a sign of life.
pub(super) const NUDGE: &str = "ostler-nudge-";
/// The id of the request to end that comes after the end of a turn.
pub(super) const PARTING: &str = "ostler-part";

/// What we call the hook by which it announces its tools.
pub(super) const ANNOUNCEMENT: &str = "ostler-announcement";
/// Nobody is waited for before the answer, only a daemon that is gone and comes back. Past this, the tool would go on.
const ANNOUNCEMENT_SECONDS: u32 = 7 * 24 * 3_600;

/// A number as the provider's ids are: a random UUID by its form.
pub(crate) fn uuid(bits: u128) -> String {
    let bits = bits & !(0xf << 76) | (4 << 76);
    let bits = bits & !(0b11 << 62) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

pub(super) fn message_uuid(id: MessageId) -> String {
    uuid(id.bits())
}

/// `announces`: it waits before each tool until it hears whether it must ask for leave, also where it would not.
pub(super) fn initialize(announces: bool) -> Value {
    let mut request = json!({ "subtype": "initialize" });
    if announces {
        request["hooks"] =
            json!({ "PreToolUse": [{ "hookCallbackIds": [ANNOUNCEMENT], "timeout": ANNOUNCEMENT_SECONDS }] });
    }
    control(OPENING, request)
}

/// Lets a tool that was announced go on as it would have without us, or by asking for leave, whatever it is.
pub(super) fn proceed(request_id: &str, must_ask: bool) -> Value {
    let response = if must_ask {
        json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "ask" } })
    } else {
        json!({})
    };
    success(request_id, response)
}

/// Refuses what the agent asks of us and nobody here knows: unanswered, its turn would wait for ever.
pub(super) fn not_known(request_id: &str) -> Value {
    json!({
        "type": "control_response",
        "response": { "subtype": "error", "request_id": request_id, "error": "not supported" },
    })
}

pub(super) fn request(request: &AgentRequest, input_no: u64, questions: &[Question]) -> Option<Vec<u8>> {
    let id = format!("ostler-{input_no}");
    let value = match request {
        // A message sent while a turn runs is taken into it after its next tool.
        AgentRequest::Prompt(message) | AgentRequest::Steer(message) => json!({
            "type": "user",
            "uuid": message_uuid(message.id),
            "message": { "role": "user", "content": message.text },
        }),
        AgentRequest::Interrupt => control(&id, json!({ "subtype": "interrupt" })),
        AgentRequest::Model(model) => control(&id, json!({ "subtype": "set_model", "model": model })),
        AgentRequest::Answer { ask, allow, message } => answer(ask, *allow, message, questions),
        AgentRequest::Proceed { ask, must_ask } => proceed(ask, *must_ask),
        AgentRequest::Nudge => {
            control(&format!("{NUDGE}{input_no}"), json!({ "subtype": "get_binary_version" }))
        }
        AgentRequest::End => part(&id),
    };
    line(&value)
}

/// Has it end, with what runs beside its turns.
pub(super) fn part(id: &str) -> Value {
    control(id, json!({ "subtype": "end_session" }))
}

/// Ends the open turn and what waits for it, and has it say of each that it let go of it.
pub(super) fn let_go(input_no: u64) -> Option<Vec<u8>> {
    let interrupt = json!({ "subtype": "interrupt", "cancel_queued": true });
    line(&control(&format!("ostler-{input_no}"), interrupt))
}

pub(super) fn line(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(value).ok()?;
    line.push(b'\n');
    Some(line)
}

fn control(id: &str, request: Value) -> Value {
    json!({ "type": "control_request", "request_id": id, "request": request })
}

fn answer(ask: &str, allow: bool, message: &str, questions: &[Question]) -> Value {
    let question = questions.iter().find(|question| question.ask == ask);
    let response = match (allow, question) {
        (true, None) => json!({ "behavior": "allow" }),
        (true, Some(question)) => json!({ "behavior": "allow", "updatedInput": question.answered(message) }),
        // Without a message the refusal itself would be refused.
        (false, _) => {
            let message = if message.is_empty() { "The operator denied this." } else { message };
            json!({ "behavior": "deny", "message": message })
        }
    };
    success(ask, response)
}

fn success(request_id: &str, response: Value) -> Value {
    json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": request_id, "response": response },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_random_uuids() {
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
    }
}
