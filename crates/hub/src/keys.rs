//! Who may come: nodes, and people who look. Kept as hashes in one file, which is read anew whenever somebody comes: it is
//! changed by another process.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ostler_domain::{Reason, Refusal, limits::HUB_NODES, node::Node};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Who a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// A machine whose sessions are listed here.
    Node,
    /// Somebody who looks.
    Viewer,
}

impl Sort {
    pub const fn as_str(self) -> &'static str {
        match self {
            Sort::Node => "node",
            Sort::Viewer => "viewer",
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Sort::Node => "nod",
            Sort::Viewer => "hub",
        }
    }
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub name: String,
    pub sort: Sort,
    hash: String,
    /// A node that also hears what the others list.
    #[serde(default)]
    pub sees_all: bool,
}

/// The file.
#[derive(Debug, Clone)]
pub struct Keys {
    dir: PathBuf,
}

impl Keys {
    pub fn in_dir(dir: &Path) -> Keys {
        Keys { dir: dir.to_owned() }
    }

    fn file(&self) -> PathBuf {
        self.dir.join("keys.json")
    }

    pub fn all(&self) -> Result<Vec<Key>, Refusal> {
        match fs::read(self.file()) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| self.unusable(&error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.unusable(&error.to_string())),
        }
    }

    /// Makes one, and says its secret, which nobody will say again.
    pub fn add(&self, name: &str, sort: Sort, sees_all: bool) -> Result<String, Refusal> {
        if let Some(fault) = Node::name_fault(name) {
            return Err(Refusal::invalid(fault));
        }
        let _held = self.hold()?;
        let mut all = self.all()?;
        if all.iter().any(|key| key.name == name && key.sort == sort) {
            return Err(Refusal::new(Reason::NameTaken, format!("there is a {} {name}", sort.as_str()))
                .hint(format!("ostler hub {} rm {name}", sort.as_str()), "takes its key back"));
        }
        if all.len() >= HUB_NODES {
            return Err(Refusal::new(Reason::TooLarge, format!("there are {HUB_NODES} keys")));
        }
        let secret = format!("{}_{}", sort.prefix(), random());
        all.push(Key { name: name.to_owned(), sort, hash: hash(&secret), sees_all });
        self.write(&all)?;
        Ok(secret)
    }

    pub fn remove(&self, name: &str, sort: Sort) -> Result<(), Refusal> {
        let _held = self.hold()?;
        let mut all = self.all()?;
        let before = all.len();
        all.retain(|key| !(key.name == name && key.sort == sort));
        if all.len() == before {
            return Err(Refusal::invalid(format!("there is no {} {name}", sort.as_str()))
                .hint(format!("ostler hub {} ls", sort.as_str()), "lists them"));
        }
        self.write(&all)
    }

    /// Whose secret this is.
    pub(crate) fn of(&self, secret: &str) -> Option<Key> {
        let wanted = hash(secret);
        self.all().ok()?.into_iter().find(|key| same(&key.hash, &wanted))
    }

    /// Whether a key is one still.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.all().is_ok_and(|all| all.contains(key))
    }

    fn hold(&self) -> Result<fs::File, Refusal> {
        let held = || {
            make_private(&self.dir)?;
            let lock = self.dir.join("keys.lock");
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)?;
            file.lock()?;
            Ok(file)
        };
        held().map_err(|error: io::Error| self.unusable(&error.to_string()))
    }

    fn write(&self, all: &[Key]) -> Result<(), Refusal> {
        write_whole(&self.file(), &serde_json::to_vec(all).unwrap_or_default())
            .map_err(|error| self.unusable(&error.to_string()))
    }

    fn unusable(&self, why: &str) -> Refusal {
        Refusal::new(Reason::StoreReadOnly, format!("{} cannot be used", self.file().display())).because(why)
    }
}

/// A directory that only its owner may enter.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Whole or not at all, and private from its first byte.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(fresh, path)
}

fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Without saying by the time it takes how far they agree.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// 256 bits that nobody can guess.
pub(crate) fn random() -> String {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        // Fails only before the kernel has any randomness.
        if let Ok(n) = rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            filled += n;
        }
    }
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_as_its_hash_and_opens_nothing_when_it_was_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keys::in_dir(dir.path());
        let secret = keys.add("build1", Sort::Node, false).unwrap();
        assert_eq!(keys.of(&secret).map(|key| (key.name, key.sort)), Some(("build1".to_owned(), Sort::Node)));
        assert!(keys.of("nod_other").is_none());
        assert_eq!(keys.add("build1", Sort::Node, false).unwrap_err().reason, Reason::NameTaken);
        assert!(keys.add("build1", Sort::Viewer, false).is_ok(), "a viewer is somebody else");
        assert!(!fs::read_to_string(dir.path().join("keys.json")).unwrap().contains(&secret));
        keys.remove("build1", Sort::Node).unwrap();
        assert!(keys.of(&secret).is_none() && keys.remove("build1", Sort::Node).is_err());
    }
}
