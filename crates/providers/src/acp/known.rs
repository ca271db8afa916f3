//! Agents that people are likely to have: how each is told where its model is, and to keep to its work. Anybody else's words
//! are configured; what is configured counts more than what is said here.

use ostler_domain::{gateway::KeyScheme, session::Approve};
use serde_json::{Value, json};

use crate::{HomeFile, Launch, LaunchError};

/// What does not depend on a session.
#[derive(Debug)]
pub(super) struct Known {
    name: &'static str,
    /// Where its program lies below a `node_modules`.
    pub(super) natives: &'static [&'static str],
    pub(super) install: Option<&'static str>,
    pub(super) base_url: Option<&'static str>,
    pub(super) key_variable: Option<&'static str>,
    /// How its model's server is shown the key, wherever that is.
    pub(super) key_scheme: Option<KeyScheme>,
    /// Behind the base URL.
    pub(super) models_path: &'static str,
    /// Names of a project's files that it would run, whatever it is told.
    pub(super) unseen: &'static [&'static str],
    /// What it would read of a project if it were let to believe that in anything.
    pub(super) instruction_files: &'static [&'static str],
}

const KNOWN: [Known; 3] = [
    Known {
        name: OPENCODE,
        natives: &["opencode-linux-x64/bin/opencode", "opencode-linux-arm64/bin/opencode"],
        install: Some("npm install -g opencode-ai"),
        base_url: None,
        key_variable: None,
        key_scheme: None,
        models_path: "/models",
        // Its 1.18.33 reads its configuration twice. What does it second looks at none of OPENCODE_PURE,
        // OPENCODE_DISABLE_PROJECT_CONFIG and the like: it goes from the working directory up to the project's root, and
        // imports the plug-ins that these name.
        unseen: &[".opencode", "opencode.json", "opencode.jsonc"],
        instruction_files: &["AGENTS.md", "CLAUDE.md"],
    },
    Known {
        name: GEMINI,
        natives: &[],
        install: Some("npm install -g @google/gemini-cli"),
        base_url: Some("https://generativelanguage.googleapis.com"),
        key_variable: Some("GEMINI_API_KEY"),
        key_scheme: Some(KeyScheme::Google),
        models_path: "/v1beta/models",
        unseen: &[],
        instruction_files: &["GEMINI.md", "AGENTS.md"],
    },
    Known {
        name: GOOSE,
        natives: &[],
        install: None,
        base_url: None,
        key_variable: None,
        key_scheme: None,
        models_path: "/models",
        unseen: &[],
        instruction_files: &[],
    },
];

const OPENCODE: &str = "opencode";
const GEMINI: &str = "gemini";
const GOOSE: &str = "goose";

/// The variable in which opencode looks for its configuration before it looks anywhere else.
const OPENCODE_CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

/// A key instead of a login, no statistics, no updates; and a second file of its home in which it is told something: in the
/// first it writes down what it wants to remember.
const GEMINI_SETTINGS: &str = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},
"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false,"disableAutoUpdate":true},
"context":{"fileName":["GEMINI.md","OSTLER-PROJECT.md"]}}
"#;

pub(super) fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// What an agent is started with where nobody says otherwise.
#[derive(Debug, Default)]
pub(super) struct Usual {
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// What it must find in its home, because it can be told in no other way.
    pub(super) home_files: Vec<HomeFile>,
}

pub(super) fn usual(name: &str, launch: &Launch) -> Result<Usual, LaunchError> {
    match name {
        OPENCODE => opencode(launch),
        GEMINI => Ok(gemini(launch)),
        GOOSE => Ok(Usual { args: texts(["acp"]), ..Usual::default() }),
        _ => Ok(Usual::default()),
    }
}

fn opencode(launch: &Launch) -> Result<Usual, LaunchError> {
    let off = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "PROJECT_CONFIG"];
    let off = off.map(|what| (format!("OPENCODE_DISABLE_{what}"), "1".to_owned()));
    let mut env = off.to_vec();
    // The plug-ins of a home and of a project lie beside their configuration, and are not switched off with it.
    env.push(("OPENCODE_PURE".to_owned(), "1".to_owned()));
    if !launch.settings.env.contains_key(OPENCODE_CONFIG) {
        env.push((OPENCODE_CONFIG.to_owned(), opencode_config(launch)?.to_string()));
    }
    // It fetches what plug-ins would need into the directory of its settings, in every home; npm reads this there and
    // nowhere else, so that what the agent itself fetches is not touched.
    let no_fetching = HomeFile { path: ".config/opencode/.npmrc".into(), text: "offline=true\n".to_owned() };
    let told = instructions(".config/opencode/AGENTS.md", launch);
    Ok(Usual { args: texts(["acp"]), env, home_files: vec![no_fetching, told] })
}

/// For what of its own tools it asks for leave.
fn opencode_asks(launch: &Launch) -> Value {
    let mut asks = vec!["bash", "edit", "webfetch"];
    match launch.terms.approve {
        Approve::Ask => asks.extend(["read", "grep", "glob", "list", "websearch", "task", "skill"]),
        // There a rule answers for the campaign's own files, and nobody is asked; searches do not say where.
        Approve::Policy | Approve::Nobody if launch.is_confined => asks.push("read"),
        Approve::Policy | Approve::Nobody | Approve::All => {}
    }
    asks.into_iter()
        .map(|tool| (tool.to_owned(), Value::from("ask")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Its model by way of the gateway, as one that speaks OpenAI's chat completions; and leave asked for what changes something.
fn opencode_config(launch: &Launch) -> Result<Value, LaunchError> {
    let mut config = json!({"autoupdate": false, "share": "disabled", "permission": opencode_asks(launch)});
    let model = launch.terms.model.as_deref().or(launch.settings.model.as_deref());
    match (&launch.model_access, model) {
        (None, None) => {}
        (None, Some(model)) => config["model"] = model.into(),
        (Some(_), None) => {
            return Err(LaunchError::WrongSetting {
                key: "model".to_owned(),
                why: "no model is named; try: ostler config set providers.acp:opencode.model NAME".to_owned(),
            });
        }
        (Some(access), Some(model)) => {
            let named = format!("ostler/{model}");
            config["model"] = named.as_str().into();
            config["small_model"] = named.into();
            config["provider"] = json!({"ostler": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": access.base_url, "apiKey": access.key},
                "models": {model: {"tool_call": true}},
            }});
        }
    }
    Ok(config)
}

fn gemini(launch: &Launch) -> Usual {
    let model = launch.terms.model.as_deref().or(launch.settings.model.as_deref());
    let model = model.map(|model| texts(["--model", model])).unwrap_or_default();
    // It would start itself a second time, with more memory; and whether it believes what a project says about hooks and
    // servers would be for a file of its home to say, which the agent could write.
    let own = [("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "false")];
    let mut env = own.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    if let Some(access) = &launch.model_access {
        env.push(("GOOGLE_GEMINI_BASE_URL".to_owned(), access.base_url.clone()));
        env.push(("GEMINI_API_KEY".to_owned(), access.key.clone()));
    }
    let settings = HomeFile { path: ".gemini/settings.json".into(), text: GEMINI_SETTINGS.to_owned() };
    let told = instructions(".gemini/OSTLER-PROJECT.md", launch);
    let home_files = vec![settings, told];
    Usual { args: texts(["--acp"]).into_iter().chain(model).collect(), env, home_files }
}

/// What the project's people tell every agent, where the program looks in its home. Empty, it takes the place of what
/// they no longer say.
fn instructions(path: &str, launch: &Launch) -> HomeFile {
    HomeFile { path: path.into(), text: launch.terms.instructions.clone().unwrap_or_default() }
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        SessionId, Time,
        provider::Settings,
        session::{Approve, Begin},
    };

    use super::*;
    use crate::{ModelAccess, Terms};

    fn launch(model: Option<&str>, has_gateway: bool, settings: Settings) -> Launch {
        Launch {
            terms: Terms {
                session: SessionId::new(Time::from_micros(0), 1),
                working_dir: "/shop".into(),
                model: model.map(str::to_owned),
                begin: Begin::Fresh,
                approve: Approve::Ask,
                instructions: None,
                mcp: None,
                config: Default::default(),
                no_tools: false,
            },
            ostler: "/ostler".into(),
            program: None,
            home: "/home/agent".into(),
            settings,
            model_access: has_gateway
                .then(|| ModelAccess { base_url: "http://gateway".to_owned(), key: "none".to_owned() }),
            is_confined: true,
        }
    }

    fn variable(usual: &Usual, name: &str) -> Option<String> {
        usual.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn opencode_is_told_of_its_model_by_way_of_the_gateway() {
        let usual = usual(OPENCODE, &launch(Some("local/qwen3"), true, Settings::default())).unwrap();
        let config: Value = serde_json::from_str(&variable(&usual, OPENCODE_CONFIG).unwrap()).unwrap();
        assert_eq!(config["model"], "ostler/local/qwen3");
        assert_eq!(config["provider"]["ostler"]["options"]["baseURL"], "http://gateway");
        assert!(config["provider"]["ostler"]["models"]["local/qwen3"].is_object());
        assert_eq!(config["permission"]["bash"], "ask");
        let nameless = super::usual(OPENCODE, &launch(None, true, Settings::default()));
        assert!(matches!(nameless, Err(LaunchError::WrongSetting { key, .. }) if key == "model"));
        let own = super::usual(OPENCODE, &launch(None, false, Settings::default())).unwrap();
        assert!(variable(&own, OPENCODE_CONFIG).unwrap().contains("\"share\":\"disabled\""));
        let env = [(OPENCODE_CONFIG.to_owned(), "{}".to_owned())].into();
        let said =
            super::usual(OPENCODE, &launch(None, true, Settings { env, ..Settings::default() })).unwrap();
        assert_eq!(variable(&said, OPENCODE_CONFIG), None, "what a person says counts");
    }

    #[test]
    fn what_a_project_tells_agents_is_put_where_they_look() {
        for name in [OPENCODE, GEMINI] {
            let told = |instructions: Option<&str>| {
                let mut launch = launch(Some("m"), true, Settings::default());
                launch.terms.instructions = instructions.map(str::to_owned);
                let files = usual(name, &launch).unwrap().home_files;
                files
                    .into_iter()
                    .find(|file| file.path.extension().is_some_and(|end| end == "md"))
                    .unwrap()
                    .text
            };
            assert_eq!((told(Some("Use tabs.")).as_str(), told(None).as_str()), ("Use tabs.", ""), "{name}");
        }
    }

    #[test]
    fn opencode_asks_before_it_reads_where_that_can_be_answered() {
        let reads = |approve: Approve, is_confined: bool| {
            let mut launch = launch(None, false, Settings::default());
            launch.terms.approve = approve;
            launch.is_confined = is_confined;
            opencode_asks(&launch)["read"] == "ask"
        };
        assert!(reads(Approve::Ask, false) && reads(Approve::Ask, true));
        assert!(reads(Approve::Policy, true) && !reads(Approve::Policy, false));
        assert!(!reads(Approve::All, true));
    }

    #[test]
    fn gemini_is_told_of_its_model_by_way_of_the_gateway() {
        let usual = usual(GEMINI, &launch(Some("gemini-x"), true, Settings::default())).unwrap();
        assert_eq!(usual.args, ["--acp", "--model", "gemini-x"]);
        assert_eq!(variable(&usual, "GOOGLE_GEMINI_BASE_URL").as_deref(), Some("http://gateway"));
        assert_eq!(variable(&usual, "GEMINI_API_KEY").as_deref(), Some("none"));
    }
}
