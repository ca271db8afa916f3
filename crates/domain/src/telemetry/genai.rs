//! The names of OpenTelemetry's conventions for generative AI, and those of our own beside them. They are still being
//! developed over there: whatever is renamed is renamed here and nowhere else.

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const WORKFLOW_NAME: &str = "gen_ai.workflow.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
/// All input tokens, cached ones included.
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(super) const ERROR_TYPE: &str = "error.type";

// What was said; only where it is asked for.
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

/// What a span is about.
pub(super) const SESSION: &str = "invoke_workflow";
pub(super) const TURN: &str = "invoke_agent";
pub(super) const MODEL_CALL: &str = "chat";
pub(super) const TOOL: &str = "execute_tool";

// Ours.
pub(super) const OSTLER_SESSION: &str = "ostler.session.id";
pub(super) const OSTLER_CAMPAIGN: &str = "ostler.campaign.id";
pub(super) const OSTLER_PROVIDER: &str = "ostler.provider";
pub(super) const OSTLER_OUTCOME: &str = "ostler.session.outcome";
pub(super) const OSTLER_TICKET: &str = "ostler.ticket";
pub(super) const OSTLER_TURN: &str = "ostler.turn";
/// Dollars; absent where the model has no price.
pub(super) const OSTLER_COST: &str = "ostler.cost.usd";
pub(super) const OSTLER_COVERED: &str = "ostler.cost.covered_by_plan";

/// Whose models a provider calls, by the convention's word where it has one.
pub(super) fn provider(name: &str) -> &str {
    match name {
        "claude-code" => "anthropic",
        "codex" | "openai-api" => "openai",
        "acp:gemini" => "gcp.gemini",
        other => other,
    }
}
