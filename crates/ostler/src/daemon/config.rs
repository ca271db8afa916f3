//! `config.toml`, read for the daemon.

use std::{fs, io, path::Path};

use ostler_domain::{
    Refusal,
    config::{Config, with_meant},
};

/// A missing file means the defaults; one with a mistake is refused, with the line named.
pub(super) fn read(path: &Path) -> Result<Config, Refusal> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => {
            return Err(Refusal::invalid(format!("{} cannot be read", path.display()))
                .because(error.to_string())
                .hint("ostler config path", "says where it is: its owner must be able to read it"));
        }
    };
    // The parser's message names line and column.
    let mistake = |why: String| {
        Refusal::invalid(format!("{} has a mistake", path.display()))
            .because(why)
            .hint("ostler config edit", "opens it")
    };
    let config: Config = toml::from_str(&text).map_err(|error| mistake(with_meant(&error.to_string())))?;
    match config.fault() {
        Some(fault) => Err(mistake(fault)),
        None => Ok(config),
    }
}
