//! What an agent may ask of the upstream. The key is somebody else's, and opens more than models: files, batches, other
//! keys. Only calls that are counted go through, and what programs ask around them.

use crate::meter::is_call;

/// Ends of paths that are read without a call: which models there are, and whether anybody is there.
const READ: &[&str] = &["/models", "/props", "/api/tags", "/api/version"];

/// Ends of paths that cost nothing.
const FREE: &[&str] = &[
    "/messages/count_tokens",
    "/responses/input_tokens",
    ":countTokens",
    "/tokenize",
    "/detokenize",
    "/moderations",
    "/api/show",
];

pub(super) fn is_let_through(method: &str, path: &str) -> bool {
    let ends = |with: &[&str]| with.iter().any(|end| path.ends_with(end));
    match method {
        "GET" | "HEAD" => path.is_empty() || path == "/" || ends(READ) || is_one_model(path),
        // The messages of a stored thread are not those of a call.
        "POST" => (is_call(method, path) && !path.contains("/threads/")) || ends(FREE) || is_called_off(path),
        _ => false,
    }
}

fn is_one_model(path: &str) -> bool {
    // Names of models have slashes of their own.
    path.split_once("/models/").is_some_and(|(before, _)| !before.contains("/organization"))
}

/// An answer that is made in the background is called off by its id.
fn is_called_off(path: &str) -> bool {
    path.ends_with("/cancel") && path.contains("/responses/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_spoken_to_and_nothing_else_is_touched() {
        for (method, path) in [
            ("POST", "/v1/messages"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/chat/completions"),
            ("POST", "/openai/deployments/mine/chat/completions"),
            ("POST", "/v1/responses"),
            ("POST", "/v1/responses/resp_1/cancel"),
            ("POST", "/v1beta/models/gemini-3:streamGenerateContent"),
            ("POST", "/v1beta/models/gemini-3:countTokens"),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/meta/llama-5"),
            ("HEAD", "/"),
        ] {
            assert!(is_let_through(method, path), "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/v1/files"),
            ("GET", "/v1/files/file_1/content"),
            ("POST", "/v1/files"),
            ("DELETE", "/v1/files/abc"),
            ("DELETE", "/v1/models/ft:mine"),
            ("POST", "/v1/messages/batches"),
            ("POST", "/v1/threads/thread_1/messages"),
            ("POST", "/v1/batches"),
            ("POST", "/api/generate"),
            ("GET", "/v1/organizations/api_keys"),
            ("POST", "/v1/organization/admin_api_keys"),
            ("PUT", "/v1/responses"),
        ] {
            assert!(!is_let_through(method, path), "{method} {path}");
        }
    }
}
