//! Real agent programs in the sandbox, with a model server of the testkit behind the model gateway.

mod budgets;
mod census;
mod claude;
mod codex;
mod gemini;
mod hygiene;
mod instructions;
mod leave;
mod limits;
mod native;
mod openai_api;
mod openclaw;
mod opencode;
mod stage;
mod suite;
mod talk;
mod tools;
mod trial;
