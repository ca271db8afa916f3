//! The file itself: read whole, checked as the daemon would, replaced whole.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use ostler_domain::{
    Refusal,
    config::{Config, with_meant},
};
use toml_edit::DocumentMut;

use crate::held_file::{make_dir, unwritable};

pub(super) fn text(path: &Path) -> Result<String, Refusal> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(unusable(path, &error.to_string())),
    }
}

pub(super) fn read(path: &Path) -> Result<DocumentMut, Refusal> {
    text(path)?.parse().map_err(|error: toml_edit::TomlError| unusable(path, &error.to_string()))
}

pub(super) fn keep(path: &Path, document: &DocumentMut) -> Result<(), Refusal> {
    let text = document.to_string();
    check(&text).map_err(|refusal| match self::text(path).is_ok_and(|before| check(&before).is_ok()) {
        true => refusal.hint("ostler config show", "lists the settings"),
        // What is wrong was there before: settings cannot be listed either.
        false => refusal.hint("ostler config edit", "opens it"),
    })?;
    write(path, &text).map_err(|error| unwritable(path, &error))
}

/// The daemon will read it: what it would refuse is refused here.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    let refused = |why: String| Refusal::invalid("the daemon would not take that").because(why);
    let config: Config =
        toml_edit::de::from_str(text).map_err(|error| refused(with_meant(&error.to_string())))?;
    config.fault().map_or(Ok(()), |fault| Err(refused(fault)))
}

/// The same, and what the daemon would only pass over: whoever wrote it is still there.
pub(super) fn check_all(text: &str) -> Result<(), Refusal> {
    check(text)?;
    let config: Config = toml_edit::de::from_str(text).unwrap_or_default();
    match config.unknown_providers().first() {
        Some(unknown) => Err(Refusal::invalid("that would count for nobody").because(unknown.words())),
        None => Ok(()),
    }
}

/// Whole or not at all, and private from its first byte.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    make_dir(path)?;
    let half = path.with_extension("toml.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(half, path)
}

pub(super) fn unusable(path: &Path, why: &str) -> Refusal {
    Refusal::invalid(format!("{} cannot be used", path.display()))
        .because(why)
        .hint("ostler config edit", "opens it")
}
