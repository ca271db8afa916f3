//! What is kept between daemons: one file, written whole.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use ostler_domain::{Reason, Refusal};
use serde::{Deserialize, Serialize};

use super::{link::Link, token::Token};

/// Tokens and browsers together: each is looked at for every request.
const KEPT: usize = 512;

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// Where the door was opened, so that the next daemon opens it again.
    pub(super) open_at: Option<SocketAddr>,
    pub(super) tokens: Vec<Token>,
    /// Links to one approval each: they wait longer than a daemon may live.
    pub(super) links: Vec<Link>,
}

impl Kept {
    pub(super) fn read(file: &Path) -> Result<Kept, Refusal> {
        match fs::read(file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                Refusal::new(Reason::StoreCorrupt, format!("{} cannot be read", file.display()))
                    .because(error.to_string())
                    .hint(format!("rm {}", file.display()), "forgets all tokens and browsers")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::default()),
            Err(error) => Err(unwritable(file, &error)),
        }
    }

    pub(super) fn add(&mut self, token: Token) -> Result<(), Refusal> {
        if self.tokens.len() >= KEPT {
            // A browser can be let in again; a program's token cannot be made up.
            match self.tokens.iter().position(|token| token.is_browser) {
                Some(oldest) => drop(self.tokens.remove(oldest)),
                None => {
                    return Err(Refusal::new(Reason::TooLarge, format!("there are {KEPT} tokens"))
                        .hint("ostler api token", "lists them; `ostler api token rm` takes one back"));
                }
            }
        }
        self.tokens.push(token);
        Ok(())
    }

    /// Whole or not at all, and private from the first byte.
    pub(super) fn write(&self, file: &Path) -> Result<(), Refusal> {
        let text = serde_json::to_vec(self).map_err(|error| Refusal::internal(error.to_string()))?;
        let fresh = file.with_extension("json.new");
        let replace = || {
            let mut open =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            open.write_all(&text)?;
            open.sync_all()?;
            fs::rename(&fresh, file)
        };
        replace().map_err(|error| unwritable(file, &error))
    }
}

fn unwritable(file: &Path, error: &io::Error) -> Refusal {
    let reason = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::DiskFull,
        _ => Reason::StoreReadOnly,
    };
    Refusal::new(reason, format!("{} cannot be written", file.display())).because(error.to_string())
}
