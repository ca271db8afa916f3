//! Real agent programs in the sandbox, with a model server of the testkit behind the model gateway.

mod codex;
mod gemini;
mod openai_api;
mod openclaw;
mod opencode;
mod stage;
mod suite;
