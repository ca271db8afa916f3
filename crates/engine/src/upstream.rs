//! The model of a session: where it is called, and the key that its gateway shows there. Keys are read anew for each start
//! and stay in memory: here for a moment, then with the keeper.

use std::{
    io::{self, Read},
    path::Path,
    process::Stdio,
    time::Duration,
};

use ostler_domain::{
    Secret,
    gateway::{Allowance, KeyScheme, ModelOrder, Upstream},
    limits::GATEWAY_PORT,
    provider::{KeySource, Settings},
    session::Created,
};
use ostler_providers::{ModelAccess, Provider};
use tokio::{io::AsyncReadExt, process::Command, time::timeout};

use crate::keeper::NotStarted;

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
    created: &Created,
) -> Result<Option<ModelOrder>, NotStarted> {
    let source = settings.key_source();
    if settings.base_url.is_none() && source.is_none() {
        return Ok(None);
    }
    let name = provider.name();
    let refuse = |message: String| NotStarted { stage: "model".to_owned(), message };
    let url = settings.base_url.as_deref().or(provider.default_base_url()).ok_or_else(|| {
        refuse(format!(
            "nobody says where {name} finds its model; try: ostler config set providers.{name}.base_url URL"
        ))
    })?;
    let upstream = Upstream::parse(url)
        .map_err(|fault| refuse(format!("providers.{name}.base_url is {url}, but {fault}")))?;
    let key = match source {
        Some(source) => {
            Some(key(&source).await.map_err(|why| refuse(format!("the key of {name} is missing: {why}")))?)
        }
        None => None,
    };
    let scheme = provider.key_scheme().unwrap_or_else(|| KeyScheme::usual(&upstream));
    let mut order = ModelOrder::new(upstream, scheme, key);
    order.allowance = created.config.budget.map_or(Allowance::default(), |budget| budget.allowance());
    Ok(Some(order))
}

/// The model as the agent sees it.
pub(crate) fn access() -> ModelAccess {
    ModelAccess { base_url: format!("http://127.0.0.1:{GATEWAY_PORT}"), key: NO_KEY.to_owned() }
}

async fn key(source: &KeySource) -> Result<Secret, String> {
    let said = match source {
        KeySource::Variable(name) => std::env::var(name).map_err(|_| {
            format!("the daemon's environment has no {name}; start the daemon with it, or use api_key_file")
        })?,
        KeySource::File(path) => {
            read(path).await.map_err(|error| format!("{} cannot be read: {error}", path.display()))?
        }
        KeySource::Command(command) => {
            output(command).await.map_err(|error| format!("\"{command}\" gives none: {error}"))?
        }
    };
    let line = said.lines().next().unwrap_or_default().trim();
    // It becomes a part of a header.
    if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("what is there is empty, or no key".to_owned());
    }
    Ok(Secret::new(line))
}

/// On a thread of its own: it may be a file of a slow disk, or none at all but a pipe.
async fn read(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        std::fs::File::open(path)?.take(KEY_BYTES).read_to_string(&mut text).map(|_| text)
    });
    timeout(COMMAND_TIME, read).await.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?
}

async fn output(command: &str) -> Result<String, String> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
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
        Ok(Ok(_)) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_the_first_line_of_its_source_and_a_missing_one_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "sk-of-a-file\nsecond line\n").unwrap();
        assert_eq!(key(&KeySource::File(file)).await.unwrap().reveal(), "sk-of-a-file");
        let command = |text: &str| KeySource::Command(text.to_owned());
        assert_eq!(key(&command("echo ' sk-of-a-command '")).await.unwrap().reveal(), "sk-of-a-command");
        for (source, why) in [
            (KeySource::File(dir.path().join("none")), "cannot be read"),
            (KeySource::Variable("OSTLER_TEST_NO_SUCH_KEY".to_owned()), "has no OSTLER_TEST_NO_SUCH_KEY"),
            (command("exit 3"), "exit status: 3"),
            (command("true"), "no key"),
            (command("printf 'a\\rb'"), "no key"),
        ] {
            let refused = key(&source).await.unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
