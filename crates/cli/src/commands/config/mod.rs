//! `ostler config`: `config.toml`, read and changed by name. Comments and order stay as they are, and nothing is kept that
//! the daemon would refuse.

mod change;
mod comments;
mod edit;
mod entries;
mod file;
mod key_command;
mod show;

pub(crate) use entries::{Entry, add_entry, remove_channel};
pub(super) use show::empty_table;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use ostler_domain::{
    Refusal,
    config::{Config, Holds},
    provider::Settings,
};

use super::with_runtime;
use crate::{
    app::App,
    consent::DryRun,
    exit_code,
    failure::Failure,
    held_file::hold,
    listing::ListArgs,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Everything that holds, and who says so: the file, the environment, or nobody
    Show {
        /// Only this setting or section
        key: Option<String>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Print a setting, a section, or the whole file
    Get {
        /// Such as providers.claude-code.model
        key: Option<String>,
    },
    /// Change settings: KEY VALUE, KEY=V, KEY+=V, KEY-=V, KEY= for the default
    Set {
        /// What to change; `ostler config show` lists the settings
        #[arg(value_name = "SETTING", required = true, allow_negative_numbers = true)]
        settings: Vec<String>,
    },
    /// Take a setting or a section back
    Unset {
        /// Such as providers.codex.model, or providers.codex for all of it
        key: String,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Open the file in your editor; it is replaced when the daemon would understand it
    Edit,
    /// Print where the file is
    Path,
}

/// What a `config.toml` says about providers; none where it cannot be understood.
pub(crate) fn provider_settings(text: &str) -> Option<BTreeMap<String, Settings>> {
    toml_edit::de::from_str::<Config>(text).ok().map(Config::providers)
}

pub(crate) fn run(app: &App, args: ConfigArgs) -> Result<u8, Failure> {
    let path = app.home()?.config_toml();
    // An editor is not left with them.
    if !matches!(args.verb, Verb::Edit | Verb::Path | Verb::Set { .. } | Verb::Unset { .. }) {
        remark_unknown(app);
    }
    match args.verb {
        Verb::Show { key, list } => with_runtime(show::show(app, &path, key.as_deref(), &list)),
        Verb::Get { key } => show::get(app, &file::read(&path)?, key.as_deref()),
        Verb::Edit => edit::run(app, &path),
        Verb::Path => {
            let shown = path.to_string_lossy();
            if app.ui.is_json() {
                app.ui.json(&serde_json::json!({ "path": shown, "exists": path.exists() }))?;
            } else {
                app.ui.data(&Line::of(shown))?;
            }
            Ok(exit_code::OK)
        }
        Verb::Set { settings } => changed(app, change::typed(settings)?),
        Verb::Unset { key, dry } => {
            let wish = change::Wish::unset(&key)?;
            // Also where it cannot be taken back.
            wish.make(&mut file::read(&path)?)?;
            let form = serde_json::json!({ "key": wish.key() });
            match dry.said(&app.ui, &format!("unset {}", wish.key()), &form)? {
                true => Ok(exit_code::OK),
                false => changed(app, vec![wish]),
            }
        }
    }
}

fn changed(app: &App, wishes: Vec<change::Wish>) -> Result<u8, Failure> {
    let path = app.home()?.config_toml();
    let _held = hold(&path)?;
    let mut document = file::read(&path)?;
    for wish in &wishes {
        wish.make(&mut document)?;
        wish.key_command().map_or(Ok(()), |line| key_command::check(wish.key(), line))?;
    }
    file::keep(&path, &document)?;
    for wish in &wishes {
        let when = match wish.holds() {
            Holds::AtOnce => "   holds at once",
            Holds::NextSession => "   holds from the next session on",
            Holds::NextStart => {
                "   holds from the daemon's next start on: ostler daemon restart (agents go on meanwhile)"
            }
        };
        app.ui.remark(&Line::of(wish.to_string()).faint(when));
    }
    remark_unknown(app);
    if app.ui.is_json() {
        let keys: Vec<&str> = wishes.iter().map(change::Wish::key).collect();
        app.ui.json(&serde_json::json!({ "path": path.to_string_lossy(), "changed": keys }))?;
    }
    Ok(exit_code::OK)
}

/// Replaces all settings of a provider, or adds them.
pub(crate) fn set_provider(
    app: &App,
    name: &str,
    settings: impl Iterator<Item = (String, String)>,
) -> Result<(), Failure> {
    set_section(app, &format!("providers.{name}"), settings)
}

/// Replaces a section, or adds it.
pub(crate) fn set_section(
    app: &App,
    section: &str,
    settings: impl Iterator<Item = (String, String)>,
) -> Result<(), Failure> {
    let path = app.home()?.config_toml();
    let _held = hold(&path)?;
    let mut document = file::read(&path)?;
    change::Wish::unset(section)?.make(&mut document)?;
    for (key, value) in settings {
        change::Wish::set(&format!("{section}.{key}"), &value)?.make(&mut document)?;
    }
    Ok(file::keep(&path, &document)?)
}

/// What the file says now. Where it cannot be understood, the daemon says so; here it says nothing.
pub(crate) fn current(app: &App) -> Result<Config, Failure> {
    let text = file::text(&app.home()?.config_toml())?;
    Ok(toml_edit::de::from_str(&text).unwrap_or_default())
}

/// Whether the daemon would start with the file as it is.
pub(crate) fn check(app: &App) -> Result<(), Failure> {
    let path = app.home()?.config_toml();
    let Err(refusal) = file::check(&file::text(&path)?) else { return Ok(()) };
    Err(file::unusable(&path, refusal.why.as_deref().unwrap_or_default()).into())
}

/// Says what of this machine's file counts for nobody. Where it cannot be read, the daemon says so.
pub(crate) fn remark_unknown(app: &App) {
    let config = current(app).ok().filter(|_| app.node().is_none());
    for unknown in config.map(|config| config.unknown_providers()).unwrap_or_default() {
        let line = Line::toned(Tone::Warn, "config.toml: ").plain(unknown.words());
        app.ui.remark(&line.plain("   ").with(Tone::Accent, "ostler config edit"));
    }
}

/// Takes a section back.
pub(crate) fn unset(app: &App, section: &str) -> Result<(), Failure> {
    set_section(app, section, std::iter::empty())
}

/// Whether something is said about a provider.
pub(crate) fn has_provider(app: &App, name: &str) -> Result<bool, Failure> {
    let document = file::read(&app.home()?.config_toml())?;
    Ok(document.get("providers").and_then(|providers| providers.get(name)).is_some())
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

/// A key as it is typed.
fn joined(words: &[String]) -> String {
    words.join(".")
}
