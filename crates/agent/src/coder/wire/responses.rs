//! The Responses API, streamed and without memory on the server: everything is sent each time.

use ostler_domain::Usage;
use serde_json::{Map, Value, json};

use super::{Ask, Assembler, Begun, Replied, Told, parse, text, usage};
use crate::coder::{
    conversation::{Call, Finish, Item, Reply},
    fault::Fault,
    think::Piece,
};

pub(super) fn body(ask: &Ask<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), ask.model.into());
    body.insert("instructions".into(), ask.system.into());
    body.insert("input".into(), ask.items.iter().flat_map(input).collect());
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            json!({"type": "function", "name": tool.name, "description": tool.description,
                   "parameters": (tool.parameters)(), "strict": false})
        });
        body.insert("tools".into(), tools.collect());
    }
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    body.insert("reasoning".into(), json!({"summary": "auto"}));
    body
}

fn input(item: &Item) -> Vec<Value> {
    match item {
        Item::User { text } => {
            vec![
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
            ]
        }
        Item::Tool(answer) => {
            vec![json!({"type": "function_call_output", "call_id": answer.id, "output": answer.output})]
        }
        Item::Model(reply) if !reply.raw.is_empty() => reply.raw.clone(),
        // A reply that came over the other wire.
        Item::Model(reply) => {
            let mut items = Vec::new();
            if !reply.text.is_empty() {
                items.push(json!({"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": reply.text}]}));
            }
            items.extend(reply.calls.iter().map(|call| {
                json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
            }));
            items
        }
    }
}

#[derive(Default)]
pub(super) struct ResponsesAssembler {
    reply: Reply,
    usage: Option<Usage>,
    id: Option<String>,
    ended: bool,
    /// Bytes of the model's words that have streamed.
    streamed: usize,
}

impl Assembler for ResponsesAssembler {
    fn take(&mut self, data: &str, pieces: &mut Vec<Piece>) -> Result<bool, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(true);
        }
        let event = parse(data)?;
        let delta = || text(&event, "delta").to_owned();
        if let Some(id) = event.pointer("/response/id").and_then(Value::as_str) {
            self.id = Some(id.to_owned());
        }
        self.streamed += text(&event, "delta").len();
        match text(&event, "type") {
            "response.output_text.delta" => pieces.push(Piece::Text(delta())),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                pieces.push(Piece::Thinking(delta()));
            }
            "response.output_item.done" => self.item(event.get("item").unwrap_or(&Value::Null)),
            "response.completed" => self.end(&event, Finish::Done),
            "response.incomplete" => {
                let reason = event["response"]["incomplete_details"]["reason"].as_str().unwrap_or_default();
                let filtered = reason == "content_filter";
                self.end(&event, if filtered { Finish::Filtered } else { Finish::Truncated });
            }
            "response.failed" => {
                return Err(Fault::in_stream(&event["response"]["error"]));
            }
            "error" => return Err(Fault::in_stream(event.get("error").unwrap_or(&event))),
            _ => {}
        }
        Ok(self.ended)
    }

    fn begun(&self) -> Begun {
        Begun { call: self.id.clone(), bytes: self.streamed }
    }

    fn finish(self: Box<Self>, _pieces: &mut Vec<Piece>) -> Result<Replied, Fault> {
        if !self.ended {
            return Err(Fault::Cut("the stream ended without a final event".into()));
        }
        Ok(Replied { reply: self.reply, usage: self.usage, call: self.id })
    }
}

impl ResponsesAssembler {
    /// A finished item is the truth; what streamed before it was for the eye.
    fn item(&mut self, item: &Value) {
        let parts = |key: &str| -> String {
            let texts =
                item.get(key).and_then(Value::as_array).into_iter().flatten().map(|part| text(part, "text"));
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
        };
        match text(item, "type") {
            "message" => self.reply.text.push_str(&parts("content")),
            "reasoning" => {
                let summary = parts("summary");
                let thought = if summary.is_empty() { parts("content") } else { summary };
                if !self.reply.thinking.is_empty() && !thought.is_empty() {
                    self.reply.thinking.push_str("\n\n");
                }
                self.reply.thinking.push_str(&thought);
            }
            "function_call" => self.reply.calls.push(Call {
                id: text(item, "call_id").to_owned(),
                name: text(item, "name").to_owned(),
                arguments: match text(item, "arguments") {
                    "" => "{}".to_owned(),
                    arguments => arguments.to_owned(),
                },
            }),
            _ => {}
        }
        self.reply.raw.push(item.clone());
    }

    fn end(&mut self, event: &Value, finish: Finish) {
        self.ended = true;
        self.reply.finish = finish;
        let reported = &event["response"]["usage"];
        self.usage = usage(&Told {
            input: &reported["input_tokens"],
            cached: &reported["input_tokens_details"]["cached_tokens"],
            written: &reported["input_tokens_details"]["cache_write_tokens"],
            output: &reported["output_tokens"],
            reasoning: &reported["output_tokens_details"]["reasoning_tokens"],
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[Value]) -> Result<Replied, Fault> {
        let mut assembler = Box::new(ResponsesAssembler::default());
        for event in events {
            if assembler.take(&event.to_string(), &mut Vec::new())? {
                break;
            }
        }
        assembler.finish(&mut Vec::new())
    }

    fn done(item: Value) -> Value {
        json!({"type": "response.output_item.done", "item": item})
    }

    #[test]
    fn items_make_a_reply_and_go_back_unchanged() {
        let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "zzz",
            "summary": [{"type": "summary_text", "text": "hm"}]});
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "run_command", "arguments": "{}"});
        let replied = read(&[
            json!({"type": "response.created"}),
            json!({"type": "response.output_text.delta", "delta": "Hi"}),
            done(reasoning.clone()),
            done(json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]})),
            done(call.clone()),
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": 10, "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}}}}),
            json!({"type": "error", "message": "never read"}),
        ])
        .unwrap();
        assert_eq!((replied.reply.text.as_str(), replied.reply.thinking.as_str()), ("Hi", "hm"));
        assert_eq!(replied.reply.calls[0].id, "c1");
        assert_eq!(
            replied.usage,
            Some(Usage { input: 6, cache_read: 4, cache_write: 0, output: 5, reasoning: 2 })
        );
        let sent = input(&Item::Model(replied.reply));
        assert_eq!((&sent[0], &sent[2]), (&reasoning, &call));
    }

    #[test]
    fn exactly_one_final_event_makes_it_complete() {
        assert!(matches!(read(&[json!({"type": "response.created"})]), Err(Fault::Cut(_))));
        let incomplete = json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}});
        assert_eq!(read(&[incomplete]).unwrap().reply.finish, Finish::Truncated);
        let failed = json!({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "too long"}}});
        assert_eq!(
            read(&[failed]).unwrap_err(),
            Fault::InStream { code: "context_length_exceeded".into(), message: "too long".into() }
        );
    }
}
