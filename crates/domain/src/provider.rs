//! What a person says about a provider: the section `[providers.<name>]` of `config.toml`. Never a key itself, only where
//! one is found.

mod profile;
pub mod trial;

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    Name, Reason, Refusal, Secret, environment, gateway::Upstream, limits::NAME_BYTES, policy::NetMode,
    text::one_line,
};

pub use profile::Profile;

/// The beginning of the name of a provider that is configuration alone: any agent that speaks ACP.
pub const ACP_PREFIX: &str = "acp:";

/// The own name of an agent that speaks ACP, if this is the name of one.
pub fn acp_name(name: &str) -> Option<&str> {
    let own = name.strip_prefix(ACP_PREFIX)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (!own.is_empty() && own.len() <= NAME_BYTES && own.bytes().all(is_plain)).then_some(own)
}

/// The providers that are part of Ostler, in the order in which they are listed.
pub const BUILT_IN: [&str; 5] = ["claude-code", "codex", "openai-api", "openclaw", SCRIPT];

/// The agent that plays a scenario: it is only ever run by whoever names it.
pub const SCRIPT: &str = "script";

/// What [`Status::key`] begins with where the program's login is used.
pub const ITS_LOGIN: &str = "its login";
/// One that nobody could renew.
pub const ENDED_LOGIN: &str = "its login, which has ended and could not be renewed";

/// What [`Status::key`] says of a program that has neither.
pub const NOT_LOGGED_IN: &str = "not logged in";

/// One provider's settings; nothing said means the provider's own defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// A path, or a name on the search path.
    pub program: Option<PathBuf>,
    /// Where its model is called, instead of the provider's usual place.
    pub base_url: Option<String>,
    /// The variable that has the key: of the caller's environment, else of the daemon's.
    pub api_key_env: Option<String>,
    pub api_key_file: Option<PathBuf>,
    /// A command whose first line of output is the key.
    pub api_key_command: Option<String>,
    pub model: Option<String>,
    /// Added to the provider's own arguments.
    pub args: Vec<String>,
    /// Added to the agent's environment.
    pub env: BTreeMap<String, String>,
    /// Sessions of it that run at once; further ones wait.
    pub sessions: Option<u32>,
    /// Whether its models have Ostler's tools; they do where nobody says otherwise.
    pub tools: Option<bool>,
    /// Further accounts, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Profile>,
    /// The account whose login is used; none for the provider's own. Nobody writes it: it follows from the account.
    #[serde(skip)]
    pub login_of: Option<Name>,
}

/// One provider as this machine has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Status {
    pub name: String,
    pub program: Option<String>,
    pub version: Option<String>,
    /// What keeps it from being started.
    pub problem: Option<String>,
    /// What it lacks before it can work: its program, a key or a login, a model. None: a session can be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// The command that cures what it lacks.
    pub cure: Option<String>,
    pub base_url: Option<String>,
    /// Where its key is found, in words; never the key.
    pub key: String,
    /// There is a login of its program here, whether or not a key is used before it.
    #[serde(default)]
    pub is_logged_in: bool,
    pub model: Option<String>,
    /// Those of [`CAPABILITIES`] that it has.
    pub capabilities: Vec<String>,
    /// Who tells of the tokens that its sessions take: `wire`, where its calls go through the gateway, and `report`, its
    /// own.
    #[serde(default)]
    pub usage_sources: Vec<String>,
    /// How far its sessions reach into the network where a campaign does not say.
    #[serde(default)]
    pub net_mode: Option<NetMode>,
    /// Further accounts of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Account>,
}

/// An account at a provider as this machine has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    pub name: String,
    pub base_url: Option<String>,
    /// Where its key is found, in words; never the key.
    pub key: String,
    pub is_logged_in: bool,
}

impl Account {
    /// What logs it in again, where its login has ended and could not be renewed.
    pub fn cure(&self, provider: &str) -> Option<String> {
        let is_ended = self.key == ENDED_LOGIN;
        is_ended.then(|| format!("ostler provider login {provider} --profile {}", self.name))
    }
}

/// What a provider may be able to do; the same words for all, in the order in which they are told.
pub const CAPABILITIES: [&str; 7] =
    ["resume", "fork", "steer", "interrupt", "approvals", "partial_output", "model_change"];

/// What [`Status::lacks`] says where only the model's name is missing.
pub const LACKS_MODEL: &str = "the name of its model";

/// The provider of a session for which nobody names one, neither who starts it nor its campaign nor this machine: the only
/// one that could work. The scripted agent is never meant.
pub fn choose(all: &[Status], is_model_named: bool) -> Result<&Status, Refusal> {
    let lacks = |status: &Status| match status.lacks.as_deref() {
        Some(LACKS_MODEL) if is_model_named => None,
        other => other.map(str::to_owned),
    };
    let meant: Vec<&Status> = all.iter().filter(|status| status.name != SCRIPT).collect();
    let passing: Vec<&Status> = meant.iter().copied().filter(|status| lacks(status).is_none()).collect();
    match passing.as_slice() {
        [only] => Ok(only),
        [] => {
            let said =
                meant.iter().filter_map(|status| Some(format!("{} lacks {}", status.name, lacks(status)?)));
            let refusal =
                Refusal::new(Reason::ProviderMissing, "no agent is ready to work, so nothing was started")
                    .because(said.collect::<Vec<_>>().join("; "));
            let cures = meant.iter().filter_map(|status| Some((status.cure.clone()?, &status.name)));
            let refusal =
                cures.fold(refusal, |refusal, (cure, name)| refusal.hint(cure, format!("what {name} lacks")));
            Err(refusal.hint(format!("ostler run -p {SCRIPT} \"…\""), "plays a scenario, without any model"))
        }
        [first, ..] => {
            let names: Vec<&str> = passing.iter().map(|status| status.name.as_str()).collect();
            let first = &first.name;
            Err(Refusal::invalid("several agents are ready to work, and nobody said which")
                .because(format!("there are {}", names.join(", ")))
                .hint(format!("ostler run -p {first} \"…\""), "names one for this session")
                .hint(format!("ostler campaign set . provider={first}"), "for this campaign")
                .hint(format!("ostler config set provider {first}"), "for this machine"))
        }
    }
}

/// The models that a provider's endpoint has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Models {
    pub models: Vec<String>,
    /// The address that was asked; none where there was nobody to ask.
    pub asked: Option<String>,
    /// Why nobody said.
    pub why_not: Option<String>,
}

impl Models {
    pub fn unknown(why: &str) -> Self {
        Self { why_not: Some(why.to_owned()), ..Self::default() }
    }

    pub fn not_from(asked: String, why: String) -> Self {
        Self { asked: Some(asked), why_not: Some(why), ..Self::default() }
    }
}

/// Most models of a list that are shown: some servers have every one there is.
const MOST_MODELS: usize = 1_000;

/// The names in an endpoint's answer, whichever of the forms it has: OpenAI's and Anthropic's `data`, or Google's `models`.
pub fn listed_models(body: &[u8]) -> Option<Vec<String>> {
    let said: serde_json::Value = serde_json::from_slice(body).ok()?;
    let (list, key) = match (&said["data"], &said["models"]) {
        (serde_json::Value::Array(list), _) => (list, "id"),
        (_, serde_json::Value::Array(list)) => (list, "name"),
        _ => return None,
    };
    let names = list.iter().filter_map(|model| model[key].as_str());
    let names = names.map(|name| one_line(name.strip_prefix("models/").unwrap_or(name), 200));
    let mut names: Vec<String> = names.take(MOST_MODELS).collect();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// Where a provider's key is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Variable(String),
    File(PathBuf),
    Command(String),
}

/// Keys that come with a request, by the variable that has each where the caller is. They stay in memory: no event, stored
/// request, tape or log has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerKeys(BTreeMap<String, Secret>);

impl CallerKeys {
    /// Variables that are looked at for whoever has not named one.
    pub const USUAL: [&'static str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, variable: &str) -> Option<&Secret> {
        self.0.get(variable)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(variable, key)| (variable.as_str(), key))
    }

    /// These, and others where these have none.
    #[must_use]
    pub fn and(mut self, others: CallerKeys) -> CallerKeys {
        for (variable, key) in others.0 {
            self.0.entry(variable).or_insert(key);
        }
        self
    }

    /// The one key that is needed.
    pub fn only(&self, variable: &str) -> CallerKeys {
        self.get(variable).map(|key| (variable.to_owned(), key.clone())).into_iter().collect()
    }
}

impl FromIterator<(String, Secret)> for CallerKeys {
    fn from_iter<T: IntoIterator<Item = (String, Secret)>>(keys: T) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeySource::Variable(name) => write!(f, "the variable {name}"),
            KeySource::File(path) => write!(f, "the file {}", path.display()),
            KeySource::Command(command) => write!(f, "the command \"{command}\""),
        }
    }
}

impl Settings {
    /// The names of the settings, for those who set one by name.
    pub const KEYS: [&'static str; 11] = [
        "program",
        "base_url",
        "api_key_env",
        "api_key_file",
        "api_key_command",
        "model",
        "args",
        "env",
        "sessions",
        "tools",
        "profiles",
    ];

    /// Where the key is found; none where nobody said.
    pub fn key_source(&self) -> Option<KeySource> {
        let variable = self.api_key_env.clone().map(KeySource::Variable);
        let file = self.api_key_file.clone().map(KeySource::File);
        variable.or(file).or_else(|| self.api_key_command.clone().map(KeySource::Command))
    }

    /// Whether somebody says where the model is, or where its key.
    pub fn says_model(&self) -> bool {
        self.base_url.is_some() || self.key_source().is_some()
    }

    /// The variable that may have the key: the one that is named, or the provider's usual one where nothing is said about
    /// the model. A key of one model's server is not shown to another.
    pub fn key_variable<'a>(&'a self, usual: Option<&'a str>) -> Option<&'a str> {
        match (&self.api_key_env, self.key_source(), &self.base_url) {
            (Some(named), ..) => Some(named),
            (None, None, None) if self.login_of.is_none() => usual,
            _ => None,
        }
    }

    /// What makes them unusable, in words.
    pub fn fault(&self) -> Option<String> {
        let sources =
            [self.api_key_env.is_some(), self.api_key_file.is_some(), self.api_key_command.is_some()];
        if sources.into_iter().filter(|is_said| *is_said).count() > 1 {
            return Some(
                "only one of api_key_env, api_key_file and api_key_command says where the key is".to_owned(),
            );
        }
        if let Some(url) = &self.base_url
            && let Err(fault) = Upstream::parse(url)
        {
            return Some(format!("base_url \"{url}\": {fault}"));
        }
        if let Some(file) = self.api_key_file.as_ref().filter(|file| !file.is_absolute()) {
            return Some(format!("api_key_file {} is not an absolute path", file.display()));
        }
        if let Some(variable) = self.api_key_env.as_ref().filter(|name| !environment::is_name(name)) {
            return Some(format!("api_key_env \"{variable}\" is no name of a variable"));
        }
        let empty = [
            (
                "program",
                self.program.as_ref().is_some_and(|program| program.to_string_lossy().trim().is_empty()),
            ),
            ("model", self.model.as_ref().is_some_and(|model| model.trim().is_empty())),
            ("api_key_command", self.api_key_command.as_ref().is_some_and(|line| line.trim().is_empty())),
        ];
        if let Some((key, _)) = empty.into_iter().find(|(_, is_empty)| *is_empty) {
            return Some(format!("{key} is empty; what is not to be said is left out"));
        }
        if let Some(fault) = self.profile_fault() {
            return Some(fault);
        }
        if self.sessions == Some(0) {
            return Some("sessions 0 would let nobody start".to_owned());
        }
        let mut refused = self.env.keys().filter_map(|name| Some((name, environment::refusal(name)?)));
        refused.next().map(|(name, why)| format!("env.{name} cannot be set: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_variable_counts_only_where_nothing_is_said_about_the_model() {
        let usual = Some("OPENAI_API_KEY");
        assert_eq!(Settings::default().key_variable(usual), usual);
        let named = Settings { api_key_env: Some("MY_KEY".into()), ..Settings::default() };
        assert_eq!(named.key_variable(usual), Some("MY_KEY"));
        let elsewhere = Settings { base_url: Some("http://127.0.0.1:1".into()), ..Settings::default() };
        assert_eq!(elsewhere.key_variable(usual), None);
        let file = Settings { api_key_file: Some("/key".into()), ..Settings::default() };
        assert_eq!(file.key_variable(usual), None);
    }

    #[test]
    fn the_only_one_that_could_work_is_meant_and_never_the_script() {
        let status = |name: &str, lacks: Option<&str>| Status {
            name: name.to_owned(),
            lacks: lacks.map(str::to_owned),
            cure: lacks.map(|_| format!("ostler provider login {name}")),
            ..Status::default()
        };
        let all = |codex, api| {
            [
                status("claude-code", Some("its program")),
                status("codex", codex),
                status("openai-api", api),
                status(SCRIPT, None),
            ]
        };
        let name = |all: &[Status], named| choose(all, named).map(|status| status.name.clone());
        assert_eq!(name(&all(None, Some("a key")), false).as_deref(), Ok("codex"));
        let none = name(&all(Some("a login or a key"), Some(LACKS_MODEL)), false).unwrap_err();
        assert_eq!(none.reason, Reason::ProviderMissing);
        assert_eq!(
            none.why.as_deref(),
            Some(
                "claude-code lacks its program; codex lacks a login or a key; openai-api lacks the name of its model"
            )
        );
        assert_eq!(none.hints.len(), 4, "{none:?}");
        let named = name(&all(Some("a login or a key"), Some(LACKS_MODEL)), true);
        assert_eq!(named.as_deref(), Ok("openai-api"), "who names a model does not lack it");
        let several = name(&all(None, None), false).unwrap_err();
        assert_eq!(
            (several.reason, several.why.as_deref()),
            (Reason::InvalidArgument, Some("there are codex, openai-api"))
        );
    }

    #[test]
    fn lists_of_models_have_several_forms() {
        let openai = br#"{"object":"list","data":[{"id":"b"},{"id":"a"},{"id":"a"},{}]}"#;
        assert_eq!(listed_models(openai).unwrap(), ["a", "b"]);
        assert_eq!(listed_models(br#"{"models":[{"name":"models/gemini-x"}]}"#).unwrap(), ["gemini-x"]);
        assert_eq!(listed_models(br#"{"data":[]}"#), Some(Vec::new()));
        assert_eq!(listed_models(br#"{"error":"no"}"#), None);
        assert_eq!(listed_models(b"<html>"), None);
    }

    #[test]
    fn keys_of_callers_are_carried_and_not_shown() {
        let keys: CallerKeys = [("A", "sk-1"), ("B", "sk-2")]
            .map(|(variable, key)| (variable.to_owned(), Secret::new(key)))
            .into_iter()
            .collect();
        assert_eq!(keys.only("B").iter().map(|(_, key)| key.reveal()).collect::<Vec<_>>(), ["sk-2"]);
        assert!(keys.only("C").is_empty());
        assert!(!format!("{keys:?} {keys:#?}").contains("sk-"));
    }

    #[test]
    fn faults_are_named() {
        let of = |settings: Settings| settings.fault().unwrap_or_default();
        assert_eq!(Settings::default().fault(), None);
        let two = Settings {
            api_key_env: Some("A".into()),
            api_key_command: Some("pass a".into()),
            ..Settings::default()
        };
        assert!(of(two).contains("only one"));
        for wrong in ["localhost:1", "http://", "https://:443/v1", "http://a b", "ftp://a", "http://a/../b"] {
            let settings = Settings { base_url: Some(wrong.into()), ..Settings::default() };
            assert!(of(settings).contains("base_url"), "{wrong}");
        }
        let preload =
            Settings { env: [("LD_PRELOAD".to_owned(), "x".to_owned())].into(), ..Settings::default() };
        assert!(of(preload).contains("env.LD_PRELOAD"));
        let relative = Settings { api_key_file: Some("key".into()), ..Settings::default() };
        assert!(of(relative).contains("absolute"));
    }
}
