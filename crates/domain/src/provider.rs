//! What a person says about a provider: the section `[providers.<name>]` of `config.toml`. Never a key itself, only where
//! one is found.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Secret, environment};

/// The beginning of the name of a provider that is configuration alone: any agent that speaks ACP.
pub const ACP_PREFIX: &str = "acp:";

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
}

/// One provider as this machine has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Status {
    pub name: String,
    pub program: Option<String>,
    pub version: Option<String>,
    /// What keeps it from being started, and the command that cures that.
    pub problem: Option<String>,
    pub cure: Option<String>,
    pub base_url: Option<String>,
    /// Where its key is found, in words; never the key.
    pub key: String,
    pub model: Option<String>,
    pub capabilities: Vec<String>,
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
    pub const USUAL: [&'static str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, variable: &str) -> Option<&Secret> {
        self.0.get(variable)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(variable, key)| (variable.as_str(), key))
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
    pub const KEYS: [&'static str; 8] =
        ["program", "base_url", "api_key_env", "api_key_file", "api_key_command", "model", "args", "env"];

    /// Where the key is found; none where nobody said.
    pub fn key_source(&self) -> Option<KeySource> {
        let variable = self.api_key_env.clone().map(KeySource::Variable);
        let file = self.api_key_file.clone().map(KeySource::File);
        variable.or(file).or_else(|| self.api_key_command.clone().map(KeySource::Command))
    }

    /// The variable that may have the key: the one that is named, or the provider's usual one where nothing is said about
    /// the model. A key of one model's server is not shown to another.
    pub fn key_variable<'a>(&'a self, usual: Option<&'a str>) -> Option<&'a str> {
        match (&self.api_key_env, self.key_source(), &self.base_url) {
            (Some(named), ..) => Some(named),
            (None, None, None) => usual,
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
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            return Some(format!("base_url \"{url}\" is neither http:// nor https://"));
        }
        if let Some(file) = self.api_key_file.as_ref().filter(|file| !file.is_absolute()) {
            return Some(format!("api_key_file {} is not an absolute path", file.display()));
        }
        if let Some(variable) = self.api_key_env.as_ref().filter(|name| name.is_empty() || name.contains('='))
        {
            return Some(format!("api_key_env \"{variable}\" is no name of a variable"));
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
        assert!(
            of(Settings { base_url: Some("localhost:1".into()), ..Settings::default() }).contains("base_url")
        );
        let preload =
            Settings { env: [("LD_PRELOAD".to_owned(), "x".to_owned())].into(), ..Settings::default() };
        assert!(of(preload).contains("env.LD_PRELOAD"));
        let relative = Settings { api_key_file: Some("key".into()), ..Settings::default() };
        assert!(of(relative).contains("absolute"));
    }
}
