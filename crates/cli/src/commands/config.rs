//! `ostler config`: what `config.toml` says. Comments and order stay as they are.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use clap::{Args, Subcommand};
use ostler_domain::{Refusal, provider::Settings};
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, Value, value};

use crate::{app::App, exit_code, failure::Failure, output::Line};

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print a setting, a section, or everything
    Get {
        /// Such as providers.claude-code.model
        key: Option<String>,
    },
    /// Change a provider's setting; it holds from the next session on
    Set {
        /// providers.NAME.KEY: program, base_url, api_key_env, api_key_file, api_key_command, model, args, env.VARIABLE
        key: String,
        /// Text, or a list as ["a", "b"]
        value: String,
    },
    /// Take a provider's setting back
    Unset {
        /// providers.NAME.KEY, or providers.NAME for all of it
        key: String,
    },
}

/// As much of the file as is changed here.
#[derive(Deserialize)]
struct Changed {
    #[serde(default)]
    providers: BTreeMap<String, Settings>,
}

/// What a `config.toml` says about providers; none where it cannot be understood.
pub(crate) fn provider_settings(text: &str) -> Option<BTreeMap<String, Settings>> {
    toml_edit::de::from_str::<Changed>(text).ok().map(|said| said.providers)
}

pub(crate) fn run(app: &App, args: ConfigArgs) -> Result<u8, Failure> {
    let path = app.home()?.config_toml();
    let mut document = read(&path)?;
    let done = match args.verb {
        Verb::Get { key } => return get(app, &document, key.as_deref()),
        Verb::Set { key, value } => {
            set(&mut document, &key, &value)?;
            format!("{key} = {value}")
        }
        Verb::Unset { key } => {
            unset(&mut document, &key)?;
            format!("{key} is unset")
        }
    };
    keep(&path, &document)?;
    if !app.ui.is_quiet() {
        app.ui.remark(&Line::of(done).faint("   holds from the next session on"));
    }
    Ok(exit_code::OK)
}

/// Sets several settings of providers, all of them or none.
pub(crate) fn set_all(app: &App, settings: impl Iterator<Item = (String, String)>) -> Result<(), Failure> {
    let path = app.home()?.config_toml();
    let mut document = read(&path)?;
    for (key, value) in settings {
        set(&mut document, &key, &value)?;
    }
    Ok(keep(&path, &document)?)
}

fn read(path: &Path) -> Result<DocumentMut, Refusal> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unusable(path, &error.to_string())),
    };
    text.parse().map_err(|error: toml_edit::TomlError| unusable(path, &error.to_string()))
}

fn keep(path: &Path, document: &DocumentMut) -> Result<(), Refusal> {
    check(document)?;
    write(path, &document.to_string()).map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, why: &str) -> Refusal {
    Refusal::invalid(format!("{} cannot be used", path.display())).because(why)
}

fn get(app: &App, document: &DocumentMut, key: Option<&str>) -> Result<u8, Failure> {
    let mut item = document.as_item();
    for part in key.map(words).transpose()?.unwrap_or_default() {
        item = item.get(&part).ok_or_else(|| {
            Refusal::new(
                ostler_domain::Reason::InvalidArgument,
                format!("{} is not set", key.unwrap_or_default()),
            )
            .hint("ostler config get", "prints everything that is")
        })?;
    }
    let text = match item.as_str() {
        Some(text) => text.to_owned(),
        None if key.is_none() => document.to_string().trim().to_owned(),
        None => item.to_string().trim().to_owned(),
    };
    if app.ui.is_json() {
        app.ui.json(&serde_json::json!({ "key": key, "value": text }))?;
    } else if !text.is_empty() {
        app.ui.text(&format!("{text}\n"))?;
    }
    Ok(exit_code::OK)
}

/// The words of a key; one that has quotes is read as the file's own are.
fn words(key: &str) -> Result<Vec<String>, Refusal> {
    if !key.contains(['"', '\'']) {
        return Ok(key.split('.').map(str::to_owned).collect());
    }
    let parsed = toml_edit::Key::parse(key)
        .map_err(|error| Refusal::invalid(format!("{key} is no key")).because(error.to_string()))?;
    Ok(parsed.iter().map(|word| word.get().to_owned()).collect())
}

/// The provider's name, and the rest of the key.
fn parts(key: &str) -> Result<(String, Vec<String>), Refusal> {
    let mut parts = words(key)?.into_iter();
    match (parts.next().as_deref(), parts.next().filter(|name| !name.is_empty())) {
        (Some("providers"), Some(name)) => Ok((name, parts.collect())),
        _ => Err(Refusal::invalid(format!("\"{key}\" is no setting of a provider"))
            .because("this command changes providers.NAME.KEY; everything else is changed in the file itself")
            .hint("ostler config get", "prints what is set")),
    }
}

fn set(document: &mut DocumentMut, key: &str, text: &str) -> Result<(), Refusal> {
    let (name, rest) = parts(key)?;
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let is_known = match rest.as_slice() {
        ["env", variable] => !variable.is_empty(),
        [field] => *field != "env" && Settings::KEYS.contains(field),
        _ => false,
    };
    if !is_known {
        return Err(Refusal::invalid(format!("\"{key}\" is no setting of a provider"))
            .because(format!("there are: {}", Settings::KEYS.join(", "))));
    }
    let mut table = document.entry("providers").or_insert_with(implicit);
    for part in std::iter::once(name.as_str()).chain(rest[..rest.len() - 1].iter().copied()) {
        let below =
            table.as_table_like_mut().ok_or_else(|| Refusal::invalid(format!("{part} is in no section")))?;
        table = below.entry(part).or_insert_with(|| Item::Table(Table::new()));
    }
    let below = table.as_table_like_mut().ok_or_else(|| Refusal::invalid(format!("{name} is no section")))?;
    let field = rest[rest.len() - 1];
    let is_list = field == "args" && rest.len() == 1;
    let new: Value = match text.parse::<Value>() {
        Ok(list @ Value::Array(_)) if is_list => list,
        _ if is_list => return Err(Refusal::invalid("args is a list, such as [\"acp\", \"--quiet\"]")),
        _ => text.into(),
    };
    below.insert(field, value(new));
    Ok(())
}

/// A section that only holds others is not written.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn unset(document: &mut DocumentMut, key: &str) -> Result<(), Refusal> {
    let (name, rest) = parts(key)?;
    let mut path = vec!["providers".to_owned(), name];
    path.extend(rest);
    let last = path.pop().unwrap_or_default();
    let mut item = document.as_item_mut();
    for part in &path {
        item = match item.get_mut(part) {
            Some(below) => below,
            // It is not set already.
            None => return Ok(()),
        };
    }
    if let Some(table) = item.as_table_like_mut() {
        table.remove(&last);
    }
    Ok(())
}

/// The daemon will read it: what it would refuse is refused here.
fn check(document: &DocumentMut) -> Result<(), Refusal> {
    let changed: Changed = toml_edit::de::from_str(&document.to_string())
        .map_err(|error| Refusal::invalid("that would not be understood").because(error.to_string()))?;
    let mut faults = changed.providers.iter().filter_map(|(name, settings)| Some((name, settings.fault()?)));
    match faults.next() {
        Some((name, fault)) => Err(Refusal::invalid(format!("providers.{name}: {fault}"))),
        None => Ok(()),
    }
}

/// Whole or not at all, and private from its first byte.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let half = path.with_extension("toml.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(half, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: &str, key: &str, text: &str) -> Result<String, Refusal> {
        let mut document: DocumentMut = before.parse().unwrap();
        set(&mut document, key, text)?;
        check(&document)?;
        Ok(document.to_string())
    }

    #[test]
    fn comments_and_order_stay() {
        let before =
            "# mine\norphan_grace = \"2h\" # long\n\n[providers.codex]\nmodel = \"gpt-5.5\" # the good one\n";
        let after = changed(before, "providers.codex.base_url", "http://127.0.0.1:1").unwrap();
        assert_eq!(after, format!("{before}base_url = \"http://127.0.0.1:1\"\n"));
        let other = changed(before, "providers.acp:opencode.args", "[\"acp\"]").unwrap();
        assert_eq!(changed(before, "providers.\"acp:opencode\".args", "[\"acp\"]").unwrap(), other);
        assert_eq!(other, format!("{before}\n[providers.\"acp:opencode\"]\nargs = [\"acp\"]\n"));
        assert_eq!(
            changed("", "providers.claude-code.model", "5").unwrap(),
            "[providers.claude-code]\nmodel = \"5\"\n"
        );
        let mut document: DocumentMut = after.parse().unwrap();
        unset(&mut document, "providers.codex.base_url").unwrap();
        unset(&mut document, "providers.codex.nothing").unwrap();
        assert_eq!(document.to_string(), before);
    }

    #[test]
    fn what_the_daemon_would_refuse_is_refused() {
        for (key, text) in [
            ("watchdog.silent", "1m"),
            ("providers.codex", "x"),
            ("providers.codex.api_key", "sk-1"),
            ("providers.codex.base_url", "nowhere"),
            ("providers.codex.args", "acp"),
            ("providers.codex.env", "A=B"),
            ("providers.codex.env.LD_PRELOAD", "x"),
        ] {
            assert!(changed("", key, text).is_err(), "{key}");
        }
        let two =
            changed("[providers.codex]\napi_key_env = \"A\"\n", "providers.codex.api_key_command", "pass x");
        assert!(two.unwrap_err().message.contains("only one"));
    }
}
