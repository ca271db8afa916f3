//! Tokens, as agents report them at the end of a turn. The protocol does not say what its words include, and agents
//! differ; the total tells which way the parts add up.

use ostler_domain::{Usage, event::ContextMeasured, session::CallUsage};
use serde_json::Value;

/// What the answer to a prompt says was spent: by model where it says that, because then calls on the side are in it.
pub(super) fn of_turn(result: &Value) -> Vec<CallUsage> {
    let quota = &result["_meta"]["quota"];
    let by_model: Vec<CallUsage> = quota["model_usage"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| {
            let model = one["model"].as_str().map(str::to_owned);
            Some(CallUsage { usage: read(&one["token_count"])?, model, call: None })
        })
        .collect();
    if !by_model.is_empty() {
        return by_model;
    }
    let whole = read(&result["usage"]).or_else(|| read(&quota["token_count"]));
    whole.map(|usage| CallUsage { usage, model: None, call: None }).into_iter().collect()
}

/// Whether what is said leaves open how much of the input was cached: then whoever else counts knows better.
pub(super) fn is_coarse(result: &Value) -> bool {
    let said = &result["_meta"]["quota"]["token_count"];
    result.get("usage").is_none_or(Value::is_null) && !CACHED.iter().any(|name| said.get(name).is_some())
}

/// One model call of an agent of ours.
pub(super) fn of_call(update: &Value) -> Option<CallUsage> {
    let ours = update.get("_meta")?.get("ostler")?;
    let usage: Usage = serde_json::from_value(ours.get("call")?.clone()).ok()?;
    let text = |key: &str| ours[key].as_str().map(str::to_owned);
    Some(CallUsage { usage, model: text("model"), call: text("callId") })
}

/// How full the context is, as any agent of the protocol may say.
pub(super) fn context(update: &Value) -> Option<ContextMeasured> {
    let of = |name: &str| update[name].as_u64().filter(|tokens| *tokens > 0);
    Some(ContextMeasured { used: of("used")?, window: of("size") })
}

const CACHED: [&str; 3] = ["cachedReadTokens", "cachedInputTokens", "cached_tokens"];

fn read(said: &Value) -> Option<Usage> {
    let of = |names: &[&str]| names.iter().find_map(|name| said.get(name)?.as_u64());
    let input = of(&["inputTokens", "input_tokens"])?;
    let output = of(&["outputTokens", "output_tokens"])?;
    let cache_read = of(&CACHED).unwrap_or(0);
    let cache_write = of(&["cachedWriteTokens", "cacheWriteInputTokens"]).unwrap_or(0);
    let reasoning = of(&["thoughtTokens", "reasoningOutputTokens"]).unwrap_or(0);
    let cached = cache_read.saturating_add(cache_write);
    let mut usage = Usage { input, cache_read, cache_write, output, reasoning };
    let total = of(&["totalTokens", "total_tokens"]);
    let adds_up =
        |parts: &[u64]| total == Some(parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part)));
    if reasoning > 0 && (adds_up(&[input, cached, output, reasoning]) || adds_up(&[input, output, reasoning]))
    {
        // Thinking is told apart from output; with us it is a part of it.
        usage.output = output.saturating_add(reasoning);
    }
    if cached > 0 && (adds_up(&[input, output]) || adds_up(&[input, output, reasoning])) {
        // Input has the cached part in it; with us the buckets do not overlap.
        usage.input = input.saturating_sub(cached);
    }
    (!usage.is_zero()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(input: u64, cache_read: u64, output: u64, reasoning: u64) -> Usage {
        Usage { input, cache_read, cache_write: 0, output, reasoning }
    }

    #[test]
    fn the_total_tells_what_the_parts_include() {
        for (said, expected) in [
            // opencode: everything apart.
            (
                json!({"inputTokens": 90, "outputTokens": 15, "totalTokens": 140, "thoughtTokens": 5, "cachedReadTokens": 30}),
                usage(90, 30, 20, 5),
            ),
            // codex: thinking is in output.
            (
                json!({"inputTokens": 110, "outputTokens": 20, "totalTokens": 160, "thoughtTokens": 5, "cachedReadTokens": 30}),
                usage(110, 30, 20, 5),
            ),
            // As the OpenAI API counts.
            (
                json!({"inputTokens": 110, "outputTokens": 20, "totalTokens": 130, "thoughtTokens": 5, "cachedReadTokens": 30}),
                usage(80, 30, 20, 5),
            ),
            (json!({"input_tokens": 110, "output_tokens": 20}), usage(110, 0, 20, 0)),
        ] {
            assert_eq!(read(&said), Some(expected), "{said}");
        }
        assert_eq!(read(&json!({"inputTokens": 0, "outputTokens": 0, "totalTokens": 0})), None);
        assert_eq!(read(&Value::Null), None);
    }

    #[test]
    fn models_are_counted_each_for_itself() {
        let count = json!({"inputTokens": 10, "outputTokens": 2, "totalTokens": 12});
        let result = json!({"usage": count, "_meta": {"quota": {"model_usage": [
            {"model": "a", "token_count": count}, {"model": "b", "token_count": count}]}}});
        let models: Vec<_> = of_turn(&result).into_iter().map(|call| call.model.unwrap()).collect();
        assert_eq!(models, ["a", "b"]);
    }
}
