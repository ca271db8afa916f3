//! Several accounts at one provider: `[providers.<name>.profiles.<profile>]`. A session is run by one of them, or by what the
//! provider's own section says.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{KeySource, Settings};
use crate::{Name, Reason, Refusal, limits::PROVIDER_PROFILES};

/// An account: where its key is, or that it is a login of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    pub api_key_file: Option<PathBuf>,
    pub api_key_command: Option<String>,
    /// Its program logs in for it alone: `ostler provider login NAME --profile PROFILE`.
    pub login: bool,
    /// Sessions of it that run at once, of whatever mission; further ones wait.
    pub sessions: Option<u32>,
}

impl Profile {
    /// The names of what is said of one.
    pub const KEYS: [&'static str; 6] =
        ["base_url", "api_key_env", "api_key_file", "api_key_command", "login", "sessions"];

    fn key_source(&self) -> Option<KeySource> {
        self.as_settings().key_source()
    }

    fn as_settings(&self) -> Settings {
        Settings {
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            api_key_file: self.api_key_file.clone(),
            api_key_command: self.api_key_command.clone(),
            ..Settings::default()
        }
    }

    /// What makes it unusable, in words.
    fn fault(&self) -> Option<String> {
        if self.sessions == Some(0) {
            return Some("sessions = 0 lets nobody start".to_owned());
        }
        if self.login && self.key_source().is_some() {
            return Some("it has a key or a login, not both".to_owned());
        }
        if !self.login && self.key_source().is_none() && self.base_url.is_none() {
            return Some(
                "it says neither where its key is (api_key_env, api_key_file, api_key_command) nor login = true"
                    .to_owned(),
            );
        }
        self.as_settings().fault()
    }
}

impl Settings {
    /// What makes one of the accounts unusable.
    pub(super) fn profile_fault(&self) -> Option<String> {
        if self.profiles.len() > PROVIDER_PROFILES {
            return Some(format!("a provider has at most {PROVIDER_PROFILES} profiles"));
        }
        let mut faults = self.profiles.iter().filter_map(|(name, profile)| {
            let no_name = name.parse::<Name>().is_err().then(|| "that is no name of a profile".to_owned());
            Some((name, no_name.or_else(|| profile.fault())?))
        });
        faults.next().map(|(name, fault)| format!("profiles.{name}: {fault}"))
    }

    /// What holds for sessions of an account. Where its key is, it says alone: none of the provider's own section is ever
    /// shown to a server that the account names, nor used for a login that it has not.
    pub fn of_profile(mut self, provider: &str, profile: Option<&Name>) -> Result<Settings, Refusal> {
        let Some(name) = profile else { return Ok(self) };
        let Some(own) = self.profiles.get(name.as_str()).cloned() else {
            return Err(no_profile(provider, name, self.profiles.keys()));
        };
        if own.login || own.base_url.is_some() || own.key_source().is_some() {
            self.api_key_env = own.api_key_env;
            self.api_key_file = own.api_key_file;
            self.api_key_command = own.api_key_command;
        }
        self.base_url = if own.login { own.base_url } else { own.base_url.or(self.base_url) };
        self.login_of = own.login.then(|| name.clone());
        Ok(self)
    }
}

/// There is no such account, and these there are.
fn no_profile<'a>(provider: &str, name: &Name, known: impl Iterator<Item = &'a String>) -> Refusal {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let why = match known.as_slice() {
        [] => format!("{provider} has no profiles on this machine"),
        known => format!("there are {}", known.join(", ")),
    };
    Refusal::new(Reason::InvalidArgument, format!("{provider} has no profile {name}"))
        .because(why)
        .hint(
            format!("ostler config set providers.{provider}.profiles.{name}.api_key_env VARIABLE"),
            "makes one, by the variable that has its key",
        )
        .hint(format!("ostler provider show {provider}"), "lists those there are")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(profile: Profile) -> Settings {
        Settings {
            base_url: Some("http://127.0.0.1:1".to_owned()),
            api_key_env: Some("MAIN_KEY".to_owned()),
            profiles: [("work".to_owned(), profile)].into(),
            ..Settings::default()
        }
    }

    fn work() -> Name {
        "work".parse().unwrap()
    }

    #[test]
    fn an_account_has_its_own_key_and_nobody_gets_another_s() {
        let key = Profile { api_key_env: Some("WORK_KEY".to_owned()), ..Profile::default() };
        let own = settings(key.clone()).of_profile("codex", Some(&work())).unwrap();
        assert_eq!(own.key_source(), Some(KeySource::Variable("WORK_KEY".to_owned())));
        assert_eq!(own.base_url.as_deref(), Some("http://127.0.0.1:1"), "the same server");
        assert_eq!(settings(key.clone()).of_profile("codex", None).unwrap(), settings(key));
        let elsewhere = Profile { base_url: Some("http://127.0.0.1:2".to_owned()), ..Profile::default() };
        let own = settings(elsewhere).of_profile("codex", Some(&work())).unwrap();
        assert_eq!((own.key_source(), own.base_url.as_deref()), (None, Some("http://127.0.0.1:2")));
        let login = Profile { login: true, ..Profile::default() };
        let own = settings(login).of_profile("codex", Some(&work())).unwrap();
        assert_eq!((own.key_source(), own.base_url, own.login_of), (None, None, Some(work())));
    }

    #[test]
    fn who_names_an_account_that_is_none_hears_which_there_are() {
        let known = settings(Profile { login: true, ..Profile::default() });
        let refusal = known.of_profile("codex", Some(&"play".parse().unwrap())).unwrap_err();
        assert_eq!(refusal.why.as_deref(), Some("there are work"));
        let none = Settings::default().of_profile("codex", Some(&work())).unwrap_err();
        assert_eq!(none.why.as_deref(), Some("codex has no profiles on this machine"));
    }

    #[test]
    fn faults_of_accounts_are_named() {
        let of = |profile: Profile| settings(profile).fault().unwrap_or_default();
        assert!(of(Profile::default()).contains("profiles.work: it says neither"));
        let both = Profile { login: true, api_key_env: Some("A".to_owned()), ..Profile::default() };
        assert!(of(both).contains("not both"));
        let two = Profile {
            api_key_env: Some("A".to_owned()),
            api_key_command: Some("pass a".to_owned()),
            ..Profile::default()
        };
        assert!(of(two).contains("only one"));
        let login = Profile { login: true, ..Profile::default() };
        assert_eq!(settings(login.clone()).fault(), None);
        let odd = Settings { profiles: [("two words".to_owned(), login)].into(), ..Settings::default() };
        assert!(odd.fault().unwrap().contains("no name of a profile"));
    }
}
