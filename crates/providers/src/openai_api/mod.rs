//! Any OpenAI-compatible model, by an agent of our own: a part of this program that speaks ACP. See `docs/agent.md`.

use std::collections::BTreeMap;

use ostler_domain::{limits, session::Approve};
use ostler_tape::{frame::Rung, launch::default_ladder};
use serde_json::{Map, Value, json};

use crate::{
    Capabilities, CommandSpec, Dialogue, DialogueState, Launch, LaunchError, Provider, Say, Terms,
    UnknownState, acp,
};

pub struct OpenaiApi;

/// The variable in which the agent finds what it sends as its key.
const KEY: &str = "OSTLER_MODEL_KEY";
/// Settings of a session that are handed on as they are.
const HANDED_ON: [&str; 6] =
    ["wire", "context_window", "max_rounds", "idle_seconds", "headers", "extra_body"];

/// How much the model thinks before it answers, and the words that models know for that.
const EFFORT: &str = "effort";
const EFFORTS: [&str; 5] = ["minimal", "low", "medium", "high", "xhigh"];

/// What is added to each request, with the effort as the wire has it. What somebody said there themselves stays.
fn with_effort(config: &BTreeMap<String, String>, effort: &str) -> Result<String, String> {
    let said = config.get("extra_body").map_or("{}", String::as_str);
    let mut body: Map<String, Value> = serde_json::from_str(said).map_err(|error| error.to_string())?;
    let (key, value) = match config.get("wire").map(String::as_str) {
        Some("responses") => ("reasoning", json!({"effort": effort})),
        _ => ("reasoning_effort", json!(effort)),
    };
    body.entry(key).or_insert(value);
    Ok(Value::Object(body).to_string())
}

impl Provider for OpenaiApi {
    fn name(&self) -> &str {
        "openai-api"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { model_change: true, fork: true, steer: true, hears_why: true, ..acp::CAPABILITIES }
    }

    fn default_base_url(&self) -> Option<&str> {
        Some("https://api.openai.com/v1")
    }

    fn key_variable(&self) -> Option<&str> {
        Some("OPENAI_API_KEY")
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn unknown_setting<'a>(&self, config: &'a BTreeMap<String, String>) -> Option<&'a str> {
        config.keys().map(String::as_str).find(|key| *key != EFFORT && !HANDED_ON.contains(key))
    }

    fn thinking(&self, level: &str) -> Option<(&'static str, String)> {
        let effort = if level == "max" { "xhigh" } else { level };
        EFFORTS.contains(&effort).then(|| (EFFORT, effort.to_owned()))
    }

    fn instruction_files(&self) -> &[&str] {
        &["AGENTS.md", "CLAUDE.md"]
    }

    fn can_go_without_tools(&self) -> bool {
        true
    }

    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError> {
        let terms = &launch.terms;
        if let Some(key) = self.unknown_setting(&terms.config) {
            return Err(LaunchError::UnknownSetting { key: key.to_owned() });
        }
        let missing =
            |key: &str, why: &str| LaunchError::WrongSetting { key: key.to_owned(), why: why.to_owned() };
        let model = terms.model.as_deref().or(launch.settings.model.as_deref()).ok_or_else(|| {
            missing("model", "no model is named; try: ostler config set providers.openai-api.model NAME")
        })?;
        let mut env = vec![("HOME".to_owned(), launch.home.to_string_lossy().into_owned())];
        let base_url = match &launch.model_access {
            Some(access) => {
                env.push((KEY.to_owned(), access.key.clone()));
                access.base_url.clone()
            }
            None => launch.settings.base_url.clone().ok_or_else(|| {
                missing("base_url", "there is no gateway to the model, so its address must be said")
            })?,
        };
        let mut settings = vec![
            ("base_url", base_url),
            ("model", model.to_owned()),
            ("approve", if terms.approve == Approve::All { "all" } else { "announce" }.to_owned()),
        ];
        if launch.model_access.is_some() {
            settings.push(("key_env", KEY.to_owned()));
        }
        match (terms.no_tools, &terms.mcp) {
            (true, _) => settings.push(("tools", "none".to_owned())),
            (false, Some(_)) => settings.push(("tools", "ostler".to_owned())),
            (false, None) => {}
        }
        settings.extend(terms.instructions.clone().map(|text| ("instructions", text)));
        let mut config = terms.config.clone();
        if let Some(effort) = config.remove(EFFORT) {
            let body = with_effort(&config, &effort).map_err(|why| missing("extra_body", &why))?;
            config.insert("extra_body".to_owned(), body);
        }
        settings.extend(HANDED_ON.iter().filter_map(|key| Some((*key, config.get(*key)?.clone()))));
        let words = ["internal".to_owned(), "agent".to_owned()].into_iter();
        let args = words
            .chain(settings.into_iter().map(|(key, value)| format!("{key}={value}")))
            .chain(launch.settings.args.iter().cloned());
        Ok(CommandSpec {
            program: launch.ostler.clone(),
            args: args.collect(),
            env,
            ..CommandSpec::default()
        })
    }

    fn opening(&self, terms: &Terms) -> Vec<Say> {
        // It has them as its own.
        acp::opening(&Terms { mcp: None, ..terms.clone() })
    }

    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState> {
        Ok(Box::new(acp::AcpDialogue::restore(state)?))
    }

    fn stop_ladder(&self) -> Vec<Rung> {
        default_ladder(limits::STOP_RUNG)
    }

    fn memory(&self, provider_id: &str) -> Option<crate::Memory> {
        Some(crate::Memory {
            below: ".ostler-agent/sessions".into(),
            name_ends: format!("{provider_id}.jsonl"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_thinking_is_what_the_wire_calls_effort() {
        assert_eq!(OpenaiApi.thinking("max"), Some((EFFORT, "xhigh".to_owned())));
        assert_eq!((OpenaiApi.thinking("off"), OpenaiApi.thinking("on")), (None, None));
        let of = |pairs: &[(&str, &str)]| {
            let config = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            with_effort(&config, "high").unwrap()
        };
        assert_eq!(of(&[]), r#"{"reasoning_effort":"high"}"#);
        assert_eq!(of(&[("wire", "responses")]), r#"{"reasoning":{"effort":"high"}}"#);
        let own = r#"{"reasoning_effort":"low","x":1}"#;
        assert_eq!(of(&[("extra_body", own)]), own, "what somebody said stays");
    }
}
