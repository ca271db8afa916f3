//! Chat Completions, streamed.

use std::mem;

use ostler_domain::Usage;
use serde_json::{Map, Value, json};

use super::{Ask, Assembler, Begun, Replied, Told, parse, text, usage};
use crate::coder::{
    conversation::{Call, Finish, Item, Reply},
    fault::Fault,
    think::{Piece, Think},
};

pub(super) fn body(ask: &Ask<'_>) -> Map<String, Value> {
    let mut messages = vec![json!({"role": "system", "content": ask.system})];
    messages.extend(ask.items.iter().map(message));
    let mut body = Map::new();
    body.insert("model".into(), ask.model.into());
    body.insert("messages".into(), messages.into());
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": (tool.parameters)(),
            }})
        });
        body.insert("tools".into(), tools.collect());
        body.insert("tool_choice".into(), "auto".into());
    }
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    body
}

fn message(item: &Item) -> Value {
    match item {
        Item::User { text } => json!({"role": "user", "content": text}),
        Item::Tool(answer) => json!({"role": "tool", "tool_call_id": answer.id, "content": answer.output}),
        Item::Model(reply) => {
            let mut message = json!({"role": "assistant", "content": reply.text});
            if !reply.calls.is_empty() {
                if reply.text.is_empty() {
                    message["content"] = Value::Null;
                }
                let calls = reply.calls.iter().map(|call| {
                    json!({"id": call.id, "type": "function",
                           "function": {"name": call.name, "arguments": call.arguments}})
                });
                message["tool_calls"] = calls.collect();
            }
            message
        }
    }
}

#[derive(Default)]
pub(super) struct ChatAssembler {
    think: Think,
    text: String,
    thinking: String,
    calls: Vec<Fragments>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    id: Option<String>,
}

/// A call as far as it has come.
#[derive(Default)]
struct Fragments {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Assembler for ChatAssembler {
    fn take(&mut self, data: &str, pieces: &mut Vec<Piece>) -> Result<bool, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(true);
        }
        let chunk = parse(data)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Fault::in_stream(error));
        }
        if self.id.is_none() {
            self.id = chunk.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
        }
        // Some servers repeat a running sum in every chunk: the last one is it.
        if let Some(reported) = chunk.get("usage").and_then(read_usage) {
            self.usage = Some(reported);
        }
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else { return Ok(false) };
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        let thought = match text(delta, "reasoning_content") {
            "" => text(delta, "reasoning"),
            thought => thought,
        };
        if !thought.is_empty() {
            self.keep(vec![Piece::Thinking(thought.to_owned())], pieces);
        }
        if let Some(said) = delta.get("content").and_then(Value::as_str).filter(|said| !said.is_empty()) {
            let mut split = Vec::new();
            self.think.push(said, &mut split);
            self.keep(split, pieces);
        }
        for (place, fragment) in
            delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            self.fragment(place, fragment);
        }
        match text(choice, "finish_reason") {
            "" => {}
            "length" => self.finish = Some(Finish::Truncated),
            "content_filter" => self.finish = Some(Finish::Filtered),
            // Whatever else it is called: the model has finished.
            _ => self.finish = Some(Finish::Done),
        }
        Ok(false)
    }

    fn begun(&self) -> Begun {
        let calls: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        Begun { call: self.id.clone(), bytes: self.text.len() + self.thinking.len() + calls }
    }

    fn finish(mut self: Box<Self>, pieces: &mut Vec<Piece>) -> Result<Replied, Fault> {
        let finish =
            self.finish.ok_or_else(|| Fault::Cut("the stream ended without a finish_reason".into()))?;
        let mut rest = Vec::new();
        self.think.end(&mut rest);
        self.keep(rest, pieces);
        let calls = mem::take(&mut self.calls).into_iter().enumerate().map(|(at, call)| Call {
            id: if call.id.is_empty() { format!("call_{at}") } else { call.id },
            name: call.name,
            arguments: if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments },
        });
        let reply =
            Reply { calls: calls.collect(), text: self.text, thinking: self.thinking, finish, raw: vec![] };
        Ok(Replied { reply, usage: self.usage, call: self.id })
    }
}

impl ChatAssembler {
    fn keep(&mut self, new: Vec<Piece>, pieces: &mut Vec<Piece>) {
        for piece in &new {
            match piece {
                Piece::Text(text) => self.text.push_str(text),
                Piece::Thinking(text) => self.thinking.push_str(text),
            }
        }
        pieces.extend(new);
    }

    fn fragment(&mut self, place: usize, fragment: &Value) {
        let (index, id) = (fragment.get("index").and_then(Value::as_u64), text(fragment, "id"));
        let known = match index {
            Some(index) => self.calls.iter().position(|call| call.index == Some(index)),
            // Without an index a new id is a new call, and anything else belongs to the last one.
            None if !id.is_empty() => self.calls.iter().position(|call| call.id == id),
            None => self.calls.len().checked_sub(1).filter(|_| place == 0),
        };
        let call = match known {
            Some(at) => &mut self.calls[at],
            None => {
                self.calls.push(Fragments { index, ..Fragments::default() });
                let last = self.calls.len() - 1;
                &mut self.calls[last]
            }
        };
        let function = fragment.get("function").unwrap_or(&Value::Null);
        if !id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if !text(function, "name").is_empty() {
            text(function, "name").clone_into(&mut call.name);
        }
        match function.get("arguments") {
            Some(Value::String(piece)) => call.arguments.push_str(piece),
            Some(whole @ Value::Object(_)) => call.arguments = whole.to_string(),
            _ => {}
        }
    }
}

fn read_usage(reported: &Value) -> Option<Usage> {
    let of_prompt = &reported["prompt_tokens_details"];
    let cached = of_prompt.get("cached_tokens").filter(|cached| cached.is_u64());
    usage(&Told {
        input: &reported["prompt_tokens"],
        cached: cached.unwrap_or(&reported["prompt_cache_hit_tokens"]),
        written: &of_prompt["cache_write_tokens"],
        output: &reported["completion_tokens"],
        reasoning: &reported["completion_tokens_details"]["reasoning_tokens"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[Value]) -> Result<Replied, Fault> {
        let mut assembler = Box::new(ChatAssembler::default());
        let mut pieces = Vec::new();
        for event in events {
            assembler.take(&event.to_string(), &mut pieces)?;
        }
        let replied = assembler.finish(&mut pieces)?;
        let shown: String = pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Text(text) => Some(text.as_str()),
                Piece::Thinking(_) => None,
            })
            .collect();
        assert_eq!(shown, replied.reply.text, "what is shown is what is kept");
        Ok(replied)
    }

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
    }

    fn end(reason: &str) -> Value {
        json!({"choices": [{"delta": {}, "finish_reason": reason}]})
    }

    #[test]
    fn a_reply_is_put_together() {
        let replied = read(&[
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"reasoning_content": "hm"})),
            delta(json!({"content": "Let me"})),
            delta(json!({"content": " look."})),
            delta(json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "run_command", "arguments": ""}}]})),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"command\""}}]})),
            delta(json!({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "read_file"}}]})),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": ":\"ls\"}"}}]})),
            end("tool_calls"),
            json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 4}}}),
        ])
        .unwrap();
        assert_eq!((replied.reply.text.as_str(), replied.reply.thinking.as_str()), ("Let me look.", "hm"));
        let calls: Vec<_> = replied
            .reply
            .calls
            .iter()
            .map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str()))
            .collect();
        assert_eq!(calls, [("c1", "run_command", "{\"command\":\"ls\"}"), ("c2", "read_file", "{}")]);
        assert_eq!(
            replied.usage,
            Some(Usage { input: 60, cache_read: 40, cache_write: 0, output: 9, reasoning: 4 })
        );
    }

    #[test]
    fn the_oddities_of_servers_are_put_up_with() {
        // One whole call in one fragment, without index and id, with arguments as an object.
        let odd = read(&[
            json!({"model": "no choices at all"}),
            json!({"choices": [{"delta": null}], "usage": {}}),
            delta(json!({"content": null, "tool_calls": [{"function": {"name": "a", "arguments": {"x": 1}}}, {"function": {"name": "b"}}]})),
            end("eos"),
        ])
        .unwrap();
        let calls: Vec<_> =
            odd.reply.calls.iter().map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str())).collect();
        assert_eq!(calls, [("call_0", "a", "{\"x\":1}"), ("call_1", "b", "{}")]);
        assert_eq!(odd.usage, None);
        // The name in every fragment, new ids without an index.
        let named = read(&[
            delta(json!({"tool_calls": [{"id": "p", "function": {"name": "a", "arguments": "{\"x\""}}]})),
            delta(json!({"tool_calls": [{"id": "p", "function": {"name": "a", "arguments": ":1}"}}]})),
            delta(json!({"tool_calls": [{"id": "q", "function": {"name": "b", "arguments": "{}"}}]})),
            end("stop"),
        ])
        .unwrap();
        assert_eq!(named.reply.calls.len(), 2);
        assert_eq!(named.reply.calls[0].arguments, "{\"x\":1}");
        let thinking = read(&[delta(json!({"content": "<think>a</think>b"})), end("stop")]).unwrap();
        assert_eq!((thinking.reply.thinking.as_str(), thinking.reply.text.as_str()), ("a", "b"));
    }

    #[test]
    fn caches_are_read_in_the_words_of_all_servers() {
        let said = |reported: Value| read_usage(&reported);
        assert_eq!(
            said(json!({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 8})),
            Some(Usage { input: 1, cache_read: 8, output: 3, ..Usage::default() })
        );
        let details = json!({"cached_tokens": 4, "cache_write_tokens": 3});
        assert_eq!(
            said(json!({"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": details})),
            Some(Usage { input: 2, cache_read: 4, cache_write: 3, output: 3, reasoning: 0 })
        );
        assert_eq!(said(json!({})), None);
        assert_eq!(said(json!("none")), None);
    }

    #[test]
    fn only_a_finish_reason_makes_a_reply_complete() {
        assert!(matches!(read(&[delta(json!({"content": "half"}))]), Err(Fault::Cut(_))));
        assert_eq!(read(&[end("length")]).unwrap().reply.finish, Finish::Truncated);
        assert_eq!(read(&[end("content_filter")]).unwrap().reply.finish, Finish::Filtered);
        let error =
            read(&[json!({"error": {"code": "rate_limit_exceeded", "message": "slow down"}})]).unwrap_err();
        assert!(error.is_rate_limit());
    }

    #[test]
    fn a_call_and_its_answer_go_back_as_they_came() {
        let reply = Reply {
            calls: vec![Call { id: "c1".into(), name: "list_dir".into(), arguments: "{}".into() }],
            ..Reply::default()
        };
        assert_eq!(
            message(&Item::Model(reply)),
            json!({"role": "assistant", "content": null,
                   "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "list_dir", "arguments": "{}"}}]})
        );
    }
}
