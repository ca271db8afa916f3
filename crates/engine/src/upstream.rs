//! The model of a session: where it is called, and the key that its gateway shows there. Keys are read anew for each start
//! and stay in memory: here for a moment, then with the keeper.

use std::{
    io::{self, Read},
    path::Path,
    process::Stdio,
    time::Duration,
};

use ostler_domain::{
    Hint, Name, Reason, Refusal, Secret,
    gateway::{KeyScheme, ModelOrder, Upstream},
    limits::GATEWAY_PORT,
    provider::{CallerKeys, KeySource, Settings},
    session::View,
};
use ostler_providers::{ModelAccess, Provider};
use tokio::{io::AsyncReadExt, process::Command, time::timeout};

use crate::{group::Group, keeper::NotStarted, shared::Shared};

/// Longest key; tokens of single sign-on have some kilobytes.
const KEY_BYTES: u64 = 64 * 1024;
/// A command that asks a person for a password is too slow for a session that nobody watches.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// What an agent has for a key. Some programs refuse to start without one that looks like theirs.
const NO_KEY: &str = "sk-ant-api03-held-by-the-gateway";

/// What the gateway of a session is told of its model. None where the agent calls it by a login of its own: nobody said
/// where the model is, nor where its key.
pub(crate) async fn order(
    provider: &dyn Provider,
    settings: &Settings,
    brought: impl Fn(&str) -> Option<Secret> + Copy,
    said: Option<Secret>,
    is_logged_in: bool,
) -> Result<Option<ModelOrder>, NotStarted> {
    let source = source(provider, settings, brought, is_logged_in);
    if settings.base_url.is_none() && source.is_none() {
        return Ok(None);
    }
    let name = provider.name();
    let refuse = |message: String| NotStarted::at("model", message);
    let url = settings.base_url.as_deref().or(provider.default_base_url()).ok_or_else(|| {
        let refusal = Refusal::invalid(format!("nobody says where {name} finds its model"));
        let set = format!("ostler config set providers.{name}.base_url URL");
        NotStarted::refused("model", refusal.hint(set, "says it"))
    })?;
    let upstream = Upstream::parse(url)
        .map_err(|fault| refuse(format!("providers.{name}.base_url is {url}, but {fault}")))?;
    let key = match source {
        Some(source) => {
            let missing =
                |why| NotStarted::refused(Reason::ProviderAuth.as_str(), no_key(name, settings, why));
            Some(match said {
                Some(said) => said,
                None => key(&source, brought).await.map_err(missing)?,
            })
        }
        None => None,
    };
    let scheme = provider.key_scheme().unwrap_or_else(|| KeyScheme::usual(&upstream));
    Ok(Some(ModelOrder::new(upstream, scheme, key)))
}

/// Whether a session calls its model through its gateway: somebody says where the model is, or has its key.
pub(crate) fn has_model(
    provider: &dyn Provider,
    settings: &Settings,
    keys: &CallerKeys,
    is_logged_in: bool,
) -> bool {
    let brought = |name: &str| keys.get(name).cloned();
    settings.base_url.is_some() || source(provider, settings, brought, is_logged_in).is_some()
}

/// Where the key is: as configured, or in the provider's usual variable where nothing is said and somebody has it.
fn source(
    provider: &dyn Provider,
    settings: &Settings,
    brought: impl Fn(&str) -> Option<Secret>,
    is_logged_in: bool,
) -> Option<KeySource> {
    settings.key_source().or_else(|| {
        // Whoever logged in wants to pay by that, whatever happens to be in somebody's environment.
        if is_logged_in {
            return None;
        }
        let variable = settings.key_variable(provider.key_variable())?;
        let has = brought(variable).is_some() || std::env::var_os(variable).is_some();
        has.then(|| KeySource::Variable(variable.to_owned()))
    })
}

/// Refuses a session whose key is not where it is said to be: it could only fail. What a command said is for its start.
pub(crate) async fn check_key(
    provider: &dyn Provider,
    settings: &Settings,
    keys: &CallerKeys,
) -> Result<Option<Secret>, Refusal> {
    let Some(source) = settings.key_source() else { return Ok(None) };
    let found = key(&source, |name| keys.get(name).cloned()).await;
    found.map(|key| said(&source, key)).map_err(|why| no_key(provider.name(), settings, why))
}

/// What a command said; what is elsewhere is read again.
fn said(source: &KeySource, key: Secret) -> Option<Secret> {
    matches!(source, KeySource::Command(_)).then_some(key)
}

impl Shared {
    /// Refuses to go on with a session whose key neither the caller brings nor the session has: it could only fail.
    pub(crate) async fn check_key_of(&self, session: &View, keys: &CallerKeys) -> Result<(), Refusal> {
        let settings = self.options.providers.of_account(&session.provider, session.auth_profile.as_ref())?;
        let Some(source) = settings.key_source() else { return Ok(()) };
        let brought = |name: &str| keys.get(name).cloned().or_else(|| self.keys.of(session.id, name));
        let found = key(&source, brought).await.map_err(|why| no_key(&session.provider, &settings, why))?;
        self.keys.keep_said(session.id, said(&source, found));
        Ok(())
    }
}

/// The variable that is to have the key, where neither the caller nor this daemon has it.
pub(crate) fn missing_variable<'a>(settings: &'a Settings, keys: &CallerKeys) -> Option<&'a str> {
    let name = settings.api_key_env.as_deref()?;
    variable(name, keys.get(name).cloned()).is_err().then_some(name)
}

/// The file that is to have the key, where this daemon finds none.
pub(crate) fn missing_file(settings: &Settings) -> Option<&Path> {
    settings.api_key_file.as_deref().filter(|file| !file.exists())
}

/// The key of a provider cannot be had.
fn no_key(name: &str, settings: &Settings, why: String) -> Refusal {
    let refusal = Refusal::new(Reason::ProviderAuth, format!("the key of {name} is missing")).because(why);
    let refusal = match &settings.api_key_env {
        Some(variable) => refusal.hint(format!("export {variable}=…"), "brings it; then ask again"),
        None => refusal,
    };
    // A provider has one place for its key: another one is named only after this one is not any more.
    let place = [
        ("api_key_env", settings.api_key_env.is_some()),
        ("api_key_command", settings.api_key_command.is_some()),
    ];
    let other = format!("ostler config set providers.{name}.api_key_file PATH");
    let other = match place.iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) => format!("ostler config unset providers.{name}.{key} && {other}"),
        None => other,
    };
    refusal
        .hint(format!("ostler config get providers.{name}"), "says where it is looked for")
        .hint(other, "names a file that has it")
}

impl Shared {
    /// What may help where the model's server does not take what it was shown.
    pub(crate) fn cures_of_a_refused_key(&self, name: &str, profile: Option<&Name>) -> Vec<Hint> {
        let Ok(settings) = self.options.providers.of_account(name, profile) else { return Vec::new() };
        let Ok(provider) = self.provider(name) else { return Vec::new() };
        refused_key(provider.as_ref(), &settings, self.login(provider.as_ref(), &settings).is_some())
    }
}

/// Where the key came from that was not taken, and how to bring another.
fn refused_key(provider: &dyn Provider, settings: &Settings, is_logged_in: bool) -> Vec<Hint> {
    let name = provider.name();
    let hint = |command: String, effect: &str| Hint { command, effect: effect.to_owned() };
    let usual = || provider.key_variable().filter(|_| !is_logged_in && settings.base_url.is_none());
    let source = settings.key_source().or_else(|| Some(KeySource::Variable(usual()?.to_owned())));
    let key = match source {
        Some(KeySource::Variable(variable)) => {
            Some(hint(format!("export {variable}=…"), "brings another key; then ostler resume"))
        }
        Some(KeySource::File(path)) => {
            let command = format!("ostler config set providers.{name}.api_key_file PATH");
            Some(hint(command, &format!("names another file; the key of {} is not taken", path.display())))
        }
        Some(KeySource::Command(_)) => Some(hint(
            format!("ostler config get providers.{name}.api_key_command"),
            "is the command whose key is not taken",
        )),
        None => None,
    };
    let login = provider.login().map(|_| {
        let effect = if is_logged_in { "logs in anew" } else { "uses a login instead of a key" };
        hint(login_command(name, settings), effect)
    });
    let neither = (key.is_none() && login.is_none()).then(|| {
        let command = format!("ostler config set providers.{name}.api_key_env VARIABLE");
        hint(command, "gives it the key of a variable; it has no login of its own here")
    });
    // Whoever is logged in and names no key has only the login to renew.
    key.into_iter().chain(login).chain(neither).collect()
}

/// What logs this account in.
pub(crate) fn login_command(name: &str, settings: &Settings) -> String {
    match &settings.login_of {
        Some(account) => format!("ostler provider login {name} --profile {account}"),
        None => format!("ostler provider login {name}"),
    }
}

/// The model as the agent sees it.
pub(crate) fn access() -> ModelAccess {
    ModelAccess { base_url: format!("http://127.0.0.1:{GATEWAY_PORT}"), key: NO_KEY.to_owned() }
}

async fn key(source: &KeySource, brought: impl Fn(&str) -> Option<Secret>) -> Result<Secret, String> {
    match source {
        KeySource::Variable(name) => variable(name, brought(name)),
        KeySource::File(path) => {
            let said = read(path).await;
            usable(said.map_err(|error| format!("{} cannot be read: {error}", path.display()))?)
        }
        KeySource::Command(command) => {
            usable(output(command).await.map_err(|error| format!("\"{command}\" gives none: {error}"))?)
        }
    }
}

/// The caller's, else the daemon's own.
fn variable(name: &str, brought: Option<Secret>) -> Result<Secret, String> {
    let own = || std::env::var(name).ok().map(Secret::new);
    let found = brought.filter(|key| !key.reveal().is_empty()).or_else(own);
    usable(found.ok_or_else(|| {
        format!("{name} is neither in the environment of whoever asked for this nor in the daemon's")
    })?)
}

/// The first line of what was said. It becomes a part of a header.
fn usable(said: Secret) -> Result<Secret, String> {
    let line = said.reveal().lines().next().unwrap_or_default().trim();
    if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("what is there is empty, or no key".to_owned());
    }
    Ok(Secret::new(line))
}

/// On a thread of its own: it may be a file of a slow disk, or none at all but a pipe.
async fn read(path: &Path) -> io::Result<Secret> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        std::fs::File::open(path)?.take(KEY_BYTES).read_to_string(&mut text)?;
        Ok(Secret::new(text))
    });
    timeout(COMMAND_TIME, read).await.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?
}

async fn output(command: &str) -> Result<Secret, String> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Group::start(&mut shell).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let ended = timeout(COMMAND_TIME, async {
        if let Some(stdout) = child.stdout.take() {
            stdout.take(KEY_BYTES).read_to_string(&mut text).await?;
        }
        child.wait().await
    });
    match ended.await {
        Err(_) => Err(format!("it takes longer than {} s", COMMAND_TIME.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(status)) if !status.success() => Err(format!("it ended with {status}")),
        Ok(Ok(_)) => Ok(Secret::new(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_s_variable_comes_before_the_daemon_s() {
        // Every process has this one.
        let own = variable("PATH", None).unwrap();
        assert_eq!(own.reveal(), std::env::var("PATH").unwrap());
        assert_eq!(variable("PATH", Some(Secret::new("sk-brought\n"))).unwrap().reveal(), "sk-brought");
        assert_eq!(variable("PATH", Some(Secret::new(""))).unwrap(), own, "an empty one is none");
    }

    #[tokio::test]
    async fn a_key_is_the_first_line_of_its_source_and_a_missing_one_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "sk-of-a-file\nsecond line\n").unwrap();
        assert_eq!(key(&KeySource::File(file), |_| None).await.unwrap().reveal(), "sk-of-a-file");
        let command = |text: &str| KeySource::Command(text.to_owned());
        assert_eq!(
            key(&command("echo ' sk-of-a-command '"), |_| None).await.unwrap().reveal(),
            "sk-of-a-command"
        );
        for (source, why) in [
            (KeySource::File(dir.path().join("none")), "cannot be read"),
            (KeySource::Variable("OSTLER_TEST_NO_SUCH_KEY".to_owned()), "OSTLER_TEST_NO_SUCH_KEY is neither"),
            (command("exit 3"), "exit status: 3"),
            (command("true"), "no key"),
            (command("printf 'a\\rb'"), "no key"),
        ] {
            let refused = key(&source, |_| None).await.unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_refused_key_is_cured_where_it_came_from() {
        let provider = ostler_providers::registry::find("codex").unwrap();
        let commands = |settings: &Settings, is_logged_in| -> Vec<String> {
            let cures = refused_key(provider.as_ref(), settings, is_logged_in);
            cures.into_iter().map(|cure| cure.command).collect()
        };
        let login = "ostler provider login codex";
        let named = Settings { api_key_env: Some("MY_KEY".into()), ..Settings::default() };
        assert_eq!(commands(&named, true), ["export MY_KEY=…", login]);
        assert_eq!(commands(&Settings::default(), false), ["export OPENAI_API_KEY=…", login]);
        assert_eq!(commands(&Settings::default(), true), [login]);
        let work = Settings { login_of: Some("work".parse().unwrap()), ..Settings::default() };
        assert_eq!(commands(&work, true), ["ostler provider login codex --profile work"]);
        let file = Settings { api_key_file: Some("/key".into()), ..Settings::default() };
        assert_eq!(commands(&file, false)[0], "ostler config set providers.codex.api_key_file PATH");
        let command = Settings { api_key_command: Some("pass x".into()), ..Settings::default() };
        assert_eq!(commands(&command, false)[0], "ostler config get providers.codex.api_key_command");
        let acp = ostler_providers::registry::find("acp:opencode").unwrap();
        let cures = refused_key(acp.as_ref(), &Settings::default(), false);
        assert_eq!(cures[0].command, "ostler config set providers.acp:opencode.api_key_env VARIABLE");
    }
}
