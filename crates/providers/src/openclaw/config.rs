//! Its configuration, written anew at each start. Everything is off that would make a turn nobody asked for, reach out,
//! or load code.

use std::{collections::BTreeMap, path::Path};

use ostler_domain::session::Approve;
use serde_json::json;

use super::STATE;
use crate::{Launch, LaunchError, mcp};

pub(super) const FILE: &str = "openclaw.json";
/// The setting of a session that says how its model is spoken to.
pub(super) const API: &str = "api";
const USUAL_API: &str = "openai-completions";
/// The network inside a sandbox is its own, so that the port can be the same in all.
pub(super) const PORT: u16 = 19_789;
/// The name under which it knows the one model server that it has.
const MODEL_SERVER: &str = "ostler";
/// What is said of a model that nobody told us more about: enough for a long dialogue, so that it compacts late.
const CONTEXT_WINDOW: u32 = 200_000;
const MOST_OUTPUT: u32 = 32_000;

/// Its own password for its own loopback: whoever could use it is inside already.
pub(super) fn token(session: &str) -> String {
    format!("ostler-{session}")
}

/// What it may do without asking.
pub(super) const fn permission_mode(approve: Approve) -> &'static str {
    match approve {
        Approve::All => "full",
        _ => "guarded",
    }
}

/// How it names a model.
pub(super) fn model_reference(model: &str) -> String {
    format!("{MODEL_SERVER}/{model}")
}

pub(super) fn environment(home: &Path) -> Vec<(String, String)> {
    let state = home.join(STATE);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = [
        ("HOME", text(home)),
        ("OPENCLAW_STATE_DIR", text(&state)),
        ("OPENCLAW_CONFIG_PATH", text(&state.join(FILE))),
    ];
    let fixed = [
        // Restarts stay in the process that is looked after.
        ("OPENCLAW_NO_RESPAWN", "1"),
        ("OPENCLAW_DISABLE_BONJOUR", "1"),
        ("OPENCLAW_SKIP_CHANNELS", "1"),
        ("OPENCLAW_NO_AUTO_UPDATE", "1"),
        ("OPENCLAW_OFFLINE", "1"),
        ("OPENCLAW_EXEC_SHELL_SNAPSHOT", "0"),
        // Else every command's output begins with a complaint about a file that the sandbox keeps.
        ("OPENCLAW_CHILD_OOM_SCORE_ADJ", "0"),
        ("OPENCLAW_HIDE_BANNER", "1"),
        ("OPENCLAW_SUPPRESS_NOTES", "1"),
        ("NO_COLOR", "1"),
    ];
    let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
    own.into_iter().chain(fixed).map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(super) fn text(launch: &Launch) -> Result<String, LaunchError> {
    let terms = &launch.terms;
    let missing =
        |key: &str, why: &str| LaunchError::WrongSetting { key: key.to_owned(), why: why.to_owned() };
    let model = terms.model.as_deref().or(launch.settings.model.as_deref()).ok_or_else(|| {
        missing("model", "no model is named; try: ostler config set providers.openclaw.model NAME")
    })?;
    let access = launch.model_access.as_ref();
    let base_url = match access {
        Some(access) => access.base_url.clone(),
        None => launch.settings.base_url.clone().ok_or_else(|| {
            missing("base_url", "there is no gateway to the model, so its address must be said")
        })?,
    };
    let tools = terms.mcp.as_ref().map(|ostler| {
        // It fills in what its own environment has, which it does not hand on.
        let env: BTreeMap<&str, String> =
            mcp::VARIABLES.iter().map(|name| (*name, format!("${{{name}}}"))).collect();
        (mcp::NAME, json!({"command": ostler, "args": [mcp::ARG], "env": env}))
    });
    let config = json!({
        "gateway": {
            "mode": "local", "bind": "loopback", "port": PORT,
            "auth": {"mode": "token", "token": token(&terms.session.to_string())},
        },
        "update": {"checkOnStart": false},
        "telemetry": {"enabled": false},
        "discovery": {"mdns": {"mode": "off"}},
        "cron": {"enabled": false},
        "plugins": {"enabled": false},
        // Else most tools hide behind three that look for them, and what is called says little.
        "tools": {"toolSearch": false},
        "mcp": {"servers": tools.into_iter().collect::<BTreeMap<_, _>>()},
        "agents": {"defaults": {
            "model": {"primary": model_reference(model)},
            "workspace": terms.working_dir,
            "skipBootstrap": true,
            "heartbeat": {"every": "0m"},
        }},
        "models": {"mode": "replace", "providers": {MODEL_SERVER: {
            "baseUrl": base_url,
            "apiKey": access.map_or("none", |access| access.key.as_str()),
            "api": terms.config.get(API).map_or(USUAL_API, String::as_str),
            "models": [{
                "id": model, "name": model, "reasoning": true, "input": ["text"],
                // What it costs is reckoned outside.
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": CONTEXT_WINDOW, "maxTokens": MOST_OUTPUT,
            }],
        }}},
    });
    Ok(format!("{config:#}\n"))
}
