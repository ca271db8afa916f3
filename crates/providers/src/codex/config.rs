//! Its configuration, written anew at each start: what an agent left there counts for nothing.

use ostler_domain::session::Approve;

use crate::{Launch, mcp};

/// The variable in which it finds what it sends as its key.
pub(super) const KEY: &str = "OSTLER_MODEL_KEY";

/// How it asks for leave: with `never` it does not, with `untrusted` for everything.
pub(super) const fn approval_policy(approve: Approve) -> &'static str {
    match approve {
        Approve::All => "never",
        _ => "untrusted",
    }
}

/// Its own sandbox is off: inside of ours it would fail for every command.
pub(super) const SANDBOX: &str = "danger-full-access";

/// Features that reach out at the start, widen rights, or never end a turn. Unknown names are only warned about.
const OFF: [&str; 13] = [
    "plugins",
    "remote_plugin",
    "plugin_sharing",
    "apps",
    "unbounded_connection_retries",
    "multi_agent",
    "goals",
    "image_generation",
    "tool_suggest",
    "browser_use",
    "computer_use",
    "in_app_browser",
    "skill_mcp_dependency_install",
];

/// The setting of a session that says how much its model thinks, and what it may be.
pub(super) const EFFORT: &str = "effort";
pub(super) const EFFORTS: &[&str] = &["minimal", "low", "medium", "high", "xhigh"];

pub(super) fn text(launch: &Launch) -> String {
    let terms = &launch.terms;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut config = String::new();
    let mut line = |text: String| {
        config.push_str(&text);
        config.push('\n');
    };
    if let Some(model) = terms.model.as_ref().or(launch.settings.model.as_ref()) {
        line(format!("model = {}", quoted(model)));
    }
    let access = launch.model_access.as_ref().map(|access| access.base_url.clone());
    let base_url = access.or_else(|| launch.settings.base_url.clone());
    if base_url.is_some() {
        line("model_provider = \"ostler\"".to_owned());
    }
    // A thread may be `untrusted`, the file may not: each thread is told again.
    let asks = if terms.approve == Approve::All { "never" } else { "on-request" };
    line(format!("approval_policy = {}", quoted(asks)));
    line(format!("sandbox_mode = {}", quoted(SANDBOX)));
    line("check_for_update_on_startup = false".to_owned());
    line("web_search = \"disabled\"".to_owned());
    // Without it models think in silence.
    line("model_reasoning_summary = \"auto\"".to_owned());
    if let Some(effort) = terms.config.get(EFFORT) {
        line(format!("model_reasoning_effort = {}", quoted(effort)));
    }
    // A login shell resets the search path.
    line("allow_login_shell = false".to_owned());
    if let Some(base_url) = &base_url {
        line("\n[model_providers.ostler]\nname = \"ostler\"".to_owned());
        line(format!("base_url = {}", quoted(base_url)));
        if launch.model_access.is_some() {
            line(format!("env_key = {}", quoted(KEY)));
        }
        line("wire_api = \"responses\"".to_owned());
    }
    if let Some(ostler) = &terms.mcp {
        line(format!("\n[mcp_servers.{}]", mcp::NAME));
        line(format!("command = {}", quoted(&ostler.to_string_lossy())));
        line(format!("args = [{}]", quoted(mcp::ARG)));
        // It hands on nothing that it was not told to.
        line(format!("env_vars = [{}]", mcp::VARIABLES.map(quoted).join(", ")));
        if terms.approve != Approve::Ask {
            line("default_tools_approval_mode = \"approve\"".to_owned());
        }
    }
    line("\n[features]".to_owned());
    for feature in OFF {
        line(format!("{feature} = false"));
    }
    // Its own rule keeps tools from everything that is called a token, also from the one by which they speak to us.
    line("\n[shell_environment_policy]\nignore_default_excludes = true".to_owned());
    line(format!("exclude = [{}, \"*_API_KEY\"]", quoted(KEY)));
    // Else it trusts a directory with a `.codex` in it by itself, and loads what an agent has written there.
    line(format!(
        "\n[projects.{}]\ntrust_level = \"untrusted\"",
        quoted(&terms.working_dir.to_string_lossy())
    ));
    line("\n[analytics]\nenabled = false\n\n[feedback]\nenabled = false".to_owned());
    config
}
