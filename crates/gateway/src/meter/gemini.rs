//! Gemini's generateContent. `promptTokenCount` includes what was read from a cache, thoughts are beside the candidates
//! and not in them. Each part of a stream has the sums so far: the last of each counts.

use ostler_domain::Usage;
use serde_json::Value;

use super::{Found, count};

pub(super) fn read(object: &Value, found: &mut Found) {
    found.name(object.get("responseId"), object.get("modelVersion"));
    let Some(said) = object.get("usageMetadata") else { return };
    let Some(prompt) = count(said, &["promptTokenCount"]) else { return };
    let tokens = |name| count(said, &[name]).unwrap_or(0);
    let input = prompt.saturating_add(tokens("toolUsePromptTokenCount"));
    let cache_read = tokens("cachedContentTokenCount").min(input);
    let reasoning = tokens("thoughtsTokenCount");
    found.usage = Some(Usage {
        input: input - cache_read,
        cache_read,
        cache_write: 0,
        output: tokens("candidatesTokenCount").saturating_add(reasoning),
        reasoning,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::tests::found;

    const PATH: &str = "/v1beta/models/gemini-3-pro:streamGenerateContent";
    const FIRST: &str = r#"{"candidates":[{"content":{"parts":[{"text":"h"}]}}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":1},"modelVersion":"gemini-3-pro","responseId":"r1"}"#;
    const LAST: &str = r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":20,"toolUsePromptTokenCount":5,"totalTokenCount":132},"modelVersion":"gemini-3-pro","responseId":"r1"}"#;

    #[test]
    fn thoughts_are_output_and_the_cached_part_is_taken_out_in_every_form() {
        let is = Found {
            id: Some("r1".to_owned()),
            model: Some("gemini-3-pro".to_owned()),
            usage: Some(Usage { input: 45, cache_read: 60, cache_write: 0, output: 27, reasoning: 20 }),
        };
        let events = format!("data: {FIRST}\r\n\r\ndata: {LAST}\r\n\r\n");
        assert_eq!(found(PATH, "text/event-stream", &events), is);
        assert_eq!(found(PATH, "application/json", &format!("[{FIRST},\n{LAST}]")), is);
        assert_eq!(found("/models/x:generateContent", "application/json; charset=UTF-8", LAST), is);
        let cut = found(PATH, "text/event-stream", &format!("data: {FIRST}\n\ndata: {{\"cand"));
        assert_eq!(cut.usage, Some(Usage { input: 100, output: 1, ..Usage::default() }));
    }
}
